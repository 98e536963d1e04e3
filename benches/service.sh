#!/usr/bin/env bash
# What an upload, a job and a list cost on tables (200) of 1000 rows, by so many clients (1) side by side. Needs bash, cargo, python3 and
# /proc; with STORE=postgres also Postgres (scripts/pg-tmp.sh), whose own processes are not counted.
#
#   benches/service.sh [TABLES] [CLIENTS]
#   STORE=postgres benches/service.sh
#   GUARDIAN=path/to/guardian CENSUS=path/to/census benches/service.sh     # some that are built already
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${STORE:-sqlite}" = postgres ] && [ -z "${DATABASE_URL:-}" ]; then
    exec scripts/pg-tmp.sh run "$0" "$@"
fi
target=${CARGO_TARGET_DIR:-target}/release
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian --example census
guardian=${GUARDIAN:-$target/guardian} census=${CENSUS:-$target/examples/census}
source benches/serve.sh
"$census" "$((${1:-200} * 1000))" "$work/census.csv"
start
[ -z "${PROFILE:-}" ] || { perf record -q -F 999 -g -o "$PROFILE" -p "$server" & }
python3 benches/service.py "$url" "$server" "$work/census.csv" "${2:-1}"
