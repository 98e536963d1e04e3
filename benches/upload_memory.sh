#!/usr/bin/env bash
# Uploads a large CSV table, 2 GB unless told otherwise, into a service that may take so much memory (256 MB), and says what it took.
# The table is made as it is sent: a census with a column of unique numbers and one of about three million texts. Where control
# groups of version 2 can be made, the kernel holds the bound; the peak of resident memory is measured in any case, and a higher
# one fails. Needs bash, cargo, curl, jq and /proc.
#
#   benches/upload_memory.sh [ROWS] [MB]     16500000 rows are 2.1 GB
#   KIND=census benches/upload_memory.sh     the census alone
set -euo pipefail
cd "$(dirname "$0")/.."
rows=${1:-16500000} most=${2:-256} kind=${KIND:-people}
target=${CARGO_TARGET_DIR:-target}
[ -n "${NO_BUILD:-}" ] || cargo build --quiet --release --bin guardian --example census
guardian=$target/release/guardian census=$target/release/examples/census
[ "$kind" = census ] && kind=

work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/upload.XXXXXX")
server= group=
finish() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

"$guardian" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
server=$!
bound="measured only"
if [ -w /sys/fs/cgroup/cgroup.controllers ] && mkdir "/sys/fs/cgroup/guardian-upload.$$" 2>/dev/null; then
    group=/sys/fs/cgroup/guardian-upload.$$
    if echo "${most}000000" >"$group/memory.max" 2>/dev/null && echo "$server" >"$group/cgroup.procs" 2>/dev/null; then
        echo 0 >"$group/memory.swap.max" 2>/dev/null || true
        bound="held by the kernel"
    fi
fi
until url=$(grep -o 'http://[0-9.:]*' "$work/out" | head -1) && [ -n "$url" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
resident() { awk -v what="$1" '$1 == what":" { print $2 }' "/proc/$server/status"; }
idle=$(resident VmRSS)

begun=$(date +%s)
# shellcheck disable=SC2086
status=$("$census" "$rows" /dev/stdout $kind | tee >(wc -c >"$work/bytes") |
    curl -sS -T - -X POST -H 'Content-Type: text/csv' -H 'Expect:' -o "$work/dataset.json" -w '%{http_code}' "$url/v1/datasets?name=large")
took=$(($(date +%s) - begun))
peak=$(resident VmHWM)
[ "$status" = 201 ] || { cat "$work/dataset.json" >&2; exit 1; }
id=$(sed 's/^{"id":"\([^"]*\)".*/\1/' "$work/dataset.json")
curl -sS "$url/v1/datasets/$id" -o "$work/again.json"
# only the answer to the upload has warnings
cmp <(jq -S "del(.warnings)" "$work/dataset.json") <(jq -S . "$work/again.json")
echo "sent     $(cat "$work/bytes") bytes in $took s"
echo "rows     $(grep -o '"rows":[0-9]*' "$work/again.json" | head -1 | cut -d: -f2)"
grep -o '"name":"[a-z]*","type":"[a-z]*","distinct":[0-9a-z]*' "$work/again.json" | tr -d '"' | sed 's/^/column   /'
echo "stored   $(du -sm "$work/data" | cut -f1) MB"
awk -v i="$idle" -v p="$peak" -v m="$most" -v b="$bound" 'BEGIN {
    printf "memory   %.0f MB idle, %.0f MB at its peak, of %d MB (%s)\n", i * 1.024 / 1000, p * 1.024 / 1000, m, b
    exit p * 1024 > m * 1e6 }'
