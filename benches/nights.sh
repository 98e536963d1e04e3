#!/usr/bin/env bash
# What uploads and jobs cost after so many nights (200) of so many rows (2000) in one population, every night with people of its own and
# published, behind so many datasets (0) of which nothing is. Needs bash, cargo, python3 and /proc; with STORE=postgres also Postgres
# (scripts/pg-tmp.sh), whose own processes are not counted.
#
#   benches/nights.sh [NIGHTS] [ROWS] [DATASETS]
#   STORE=postgres benches/nights.sh
#   FILL=1000 benches/nights.sh 20                               # then made nights, and ten real ones after each step; embedded store
#   CLIENTS=32 benches/nights.sh 0 1000                          # instead: so many clients that upload side by side
#   GUARDIAN=path/to/guardian benches/nights.sh                  # one that is built already
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${STORE:-sqlite}" = postgres ] && [ -z "${DATABASE_URL:-}" ]; then
    exec scripts/pg-tmp.sh run "$0" "$@"
fi
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian
guardian=${GUARDIAN:-${CARGO_TARGET_DIR:-target}/release/guardian}
nights=${1:-200} rows=${2:-2000} datasets=${3:-0}
source benches/serve.sh
start
if [ -n "${CLIENTS:-}" ]; then
    python3 benches/side_by_side.py "$url" "$server" "$CLIENTS" "$rows"
    exit
fi
python3 benches/nights.py "$url" "$server" "$nights" "$rows" "$datasets"
for fill in ${FILL:-}; do
    stop
    nights=$(python3 benches/fill_ledger.py "$work/data/guardian.db" "$fill" "$rows")
    start
    python3 benches/nights.py "$url" "$server" 10 "$rows" 0 "$nights"
done
