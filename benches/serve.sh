# shellcheck shell=bash
# For benchmarks that source it: a folder, and a service on the data in it, both of which end with the script.
# `start` sets `server`, its process, and `url`; `guardian` is the program.
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/bench.XXXXXX")
server='' url=''
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
    "${guardian:?}" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
    server=$!
    until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [ -n "$url" ]; do
        kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
        read -rt 0.1 <> <(:) || true
    done
}
