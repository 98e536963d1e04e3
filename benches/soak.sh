#!/usr/bin/env bash
# Keeps `guardian serve` busy for so many minutes (60) with clients that upload, plan, submit, read, list, delete and withdraw at a
# moderate rate, and says how its resident memory went. Fails when an answer is no success, or a part has not the bytes that its
# manifest names. Needs bash, cargo, python3 and /proc; for Postgres also scripts/pg-tmp.sh.
#
#   benches/soak.sh embedded|postgres [MINUTES]
#   RATE=2 benches/soak.sh embedded 10                           # tables a second (1)
#   GUARDIAN=path/to/guardian benches/soak.sh embedded           # one that is built already
set -euo pipefail
cd "$(dirname "$0")/.."
store=${1:?embedded or postgres}
case $store in
embedded) unset DATABASE_URL ;;
postgres) [[ -n ${DATABASE_URL:-} ]] || exec scripts/pg-tmp.sh run "$0" "$@" ;;
*)
    echo "a store is embedded or postgres" >&2
    exit 2
    ;;
esac
[[ -n ${GUARDIAN:-} ]] || cargo build --quiet --release --bin guardian
guardian=${GUARDIAN:-${CARGO_TARGET_DIR:-target}/release/guardian}
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/soak.XXXXXX")
server=
finish() {
    [[ -z $server ]] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    rm -rf "$work"
}
trap finish EXIT
"$guardian" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
server=$!
until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [[ -n $url ]]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
python3 benches/soak.py "$url" "$server" "${2:-60}" "${RATE:-1}"
