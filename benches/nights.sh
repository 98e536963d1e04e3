#!/usr/bin/env bash
# What uploads and jobs cost after so many nights (200) of so many rows (2000) in one population, every night with people of its own and
# published, behind so many datasets (0) of which nothing is. Needs bash, cargo, python3 and /proc; with STORE=postgres also Postgres
# (scripts/pg-tmp.sh), whose own processes are not counted.
#
#   benches/nights.sh [NIGHTS] [ROWS] [DATASETS]
#   STORE=postgres benches/nights.sh
#   GUARDIAN=path/to/guardian benches/nights.sh                  # one that is built already
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${STORE:-sqlite}" = postgres ] && [ -z "${DATABASE_URL:-}" ]; then
    exec scripts/pg-tmp.sh run "$0" "$@"
fi
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian
guardian=${GUARDIAN:-${CARGO_TARGET_DIR:-target}/release/guardian}
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/nights.XXXXXX")
server=
finish() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    rm -rf "$work"
}
trap finish EXIT
"$guardian" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
server=$!
until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [ -n "$url" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
python3 benches/nights.py "$url" "$server" "${1:-200}" "${2:-2000}" "${3:-0}"
