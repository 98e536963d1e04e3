#!/usr/bin/env bash
# So many clients at once (1000), each uploading a table of its own (1000 rows), submitting a job, polling it to its end and reading
# a part: how long calls take, what is answered, the peak memory of the server. Fails when a client does not come to its end.
# Needs bash, cargo and /proc; with STORE=postgres also Postgres (scripts/pg-tmp.sh).
#
#   benches/load.sh [CLIENTS] [ROWS]
#   STORE=postgres benches/load.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${STORE:-sqlite}" = postgres ] && [ -z "${DATABASE_URL:-}" ]; then
    exec scripts/pg-tmp.sh run "$0" "$@"
fi
target=${CARGO_TARGET_DIR:-target}
[ -n "${NO_BUILD:-}" ] || cargo build --quiet --release --bin guardian --example load
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/load.XXXXXX")
server=
finish() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    rm -rf "$work"
}
trap finish EXIT
ulimit -n "$(ulimit -Hn)"
"$target/release/guardian" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
server=$!
until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [ -n "$url" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
"$target/release/examples/load" "$url" "${1:-1000}" "${2:-1000}" "$server"
