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
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/nights.XXXXXX")
server=
stop() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    server=
}
finish() {
    stop
    rm -rf "$work"
}
trap finish EXIT
start() {
    "$guardian" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
    server=$!
    until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [ -n "$url" ]; do
        kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
        read -rt 0.1 <> <(:) || true
    done
}
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
