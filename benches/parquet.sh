#!/usr/bin/env bash
# What a table of Parquet of so many rows (10000000) of the census costs through the service, and what DuckDB takes to copy it.
# Needs bash, cargo, python3 with venv, and DuckDB's package of PyPI, which it gets.
#
#   benches/parquet.sh [ROWS]
#   GUARDIAN=path/to/guardian CENSUS=path/to/census benches/parquet.sh     # some that are built already
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/release
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian --example census
guardian=${GUARDIAN:-$target/guardian} census=${CENSUS:-$target/examples/census}
source benches/serve.sh
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet install duckdb
"$census" "${1:-10000000}" "$work/census.csv"
duckdb() { "$work/venv/bin/python" -c 'import sys, duckdb; duckdb.sql(sys.argv[1])' "$1"; }
duckdb "COPY (FROM read_csv('$work/census.csv', all_varchar = true)) TO '$work/census.parquet' (FORMAT parquet)"
rm "$work/census.csv"
TIMEFORMAT='a copy by DuckDB: %U + %S s, %R s on the clock'
time duckdb "COPY (FROM '$work/census.parquet') TO '$work/copy.parquet' (FORMAT parquet)"
start
[ -z "${PROFILE:-}" ] || { perf record -q -F 100 --call-graph dwarf,16384 -o "$PROFILE" -p "$server" & }
python3 benches/parquet.py "$url" "$server" "$work/census.parquet" benches/anatomy.json
