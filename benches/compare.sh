#!/usr/bin/env bash
# Compares `guardian publish` with a process that copies the same CSV file with the csv crate: user + system time of whole
# processes, taken alternately, medians of ROUNDS (5), and the peak memory of publishing. Needs bash and cargo, and GNU time
# for the peak where /proc is not there.
#
#   benches/compare.sh [ROWS]     the census of examples/census.rs (1000000 rows), anatomy, l = 10
#   INPUT=table.csv SPEC=job.json benches/compare.sh     any other table and job
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --bin guardian --example csv_copy --example census
guardian=$target/release/guardian copy=$target/release/examples/csv_copy

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
spec=${SPEC:-benches/anatomy.json}
input=${INPUT:-$work/census.csv}
[ -n "${INPUT:-}" ] || "$target/release/examples/census" "${1:-1000000}" "$input"

# user + system seconds of a command
TIMEFORMAT='%U %S'
cpu() {
    local times
    times=$({ time "$@" >"$work/out" 2>"$work/err"; } 2>&1) || { cat "$work/err" >&2; return 1; }
    awk '{ printf "%.3f\n", $1 + $2 }' <<<"$times"
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
publish() { "$guardian" publish --input "$input" --spec "$spec" --out "$work/release"; }

cat "$input" >/dev/null
for _ in $(seq "$rounds"); do
    cpu "$copy" "$input" "$work/copy.csv" >>"$work/copy"
    rm -rf "$work/release"
    cpu publish >>"$work/publish"
done
cmp -s "$input" "$work/copy.csv" || echo "note: the copy is written with other quotes or line ends than the input" >&2

# the most memory that was resident at once, from the kernel's own mark while the process still stands, every 10 ms
rm -rf "$work/release"
peak=0
publish >/dev/null 2>&1 &
while kill -0 $! 2>/dev/null; do
    child=$(pgrep -P $! || echo $!)
    now=$(awk '/^VmHWM/ { print $2 }' "/proc/$child/status" 2>/dev/null || true)
    [ "${now:-0}" -le "$peak" ] || peak=$now
    sleep 0.01
done
wait $!

copied=$(median "$work/copy") published=$(median "$work/publish")
echo "copy     $copied s user + system ($(tr '\n' ' ' <"$work/copy"))"
echo "publish  $published s user + system ($(tr '\n' ' ' <"$work/publish"))"
awk -v p="$published" -v c="$copied" -v m="$peak" \
    'BEGIN { printf "ratio    %.2f\npeak     %.0f MB resident\n", p / c, m / 1024 }'
