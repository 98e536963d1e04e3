#!/usr/bin/env bash
# Measures every line of "In one run" of BENCHMARKS.md. Needs bash, cargo, python3 and Postgres (scripts/pg-tmp.sh), and half an hour at most.
#
#   benches/table.sh                     prints the lines
#   benches/table.sh --large --write     with ten million rows, and Parquet against DuckDB; writes the lines to the page
#   GUARDIAN=path/to/guardian CENSUS=path/to/census COPY=path/to/csv_copy benches/table.sh      # some that are built already
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/release
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian --example census --example csv_copy
exec python3 benches/table.py "${GUARDIAN:-$target/guardian}" "${CENSUS:-$target/examples/census}" "${COPY:-$target/examples/csv_copy}" "$@"
