#!/usr/bin/env bash
# Runs every fuzz target for a while, from small seeds that it makes; stops at the first that finds something.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]    60 seconds each, all targets unless named
#
# cargo-fuzz is installed when it is missing. The stable toolchain suffices, with a setting that permits unstable
# features. Corpora grow in target/fuzz and are kept there; what crashes a target is in target/fuzz/artifacts, and `cargo fuzz run TARGET FILE` repeats it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export RUSTC_BOOTSTRAP=1
# SQLite is linked twice, into the library and into what calls it; the two are the same
export ASAN_OPTIONS=detect_odr_violation=0
seconds=${1:-60}
shift || true
targets=("$@")
((${#targets[@]})) || targets=(csv ndjson parquet arrow rule specification compression tokens chunk verify)

cargo fuzz --version >/dev/null 2>&1 || env -u RUSTC_BOOTSTRAP cargo install --locked --quiet cargo-fuzz
# the same versions as the server has
cp Cargo.lock fuzz/Cargo.lock

readonly seeds=target/fuzz/seeds
env -u RUSTC_BOOTSTRAP cargo run --quiet --locked --example fuzz_seeds -- "$seeds" </dev/null
env -u RUSTC_BOOTSTRAP cargo build --quiet --locked --bin guardian </dev/null
release=$(mktemp -d)
trap 'rm -rf -- "$release"' EXIT
"${CARGO_TARGET_DIR:-target}/debug/guardian" publish --input examples/data/hospital.csv --spec examples/hospital.json --out "$release/out" 2>/dev/null
mkdir -p "$seeds/verify"
{
    cat "$release/out/manifest.json"
    for part in "$release"/out/*.csv; do
        printf '=== %s\n' "$(basename "$part")"
        cat "$part"
    done
} >"$seeds/verify/hospital"

cargo fuzz build --fuzz-dir fuzz --target-dir target/fuzz
for target in "${targets[@]}"; do
    corpus=target/fuzz/corpus/$target
    artifacts=target/fuzz/artifacts/$target
    mkdir -p "$corpus" "$artifacts" "$seeds/$target"
    echo "fuzz: $target for $seconds seconds"
    target/fuzz/x86_64-unknown-linux-gnu/release/"$target" "$corpus" "$seeds/$target" -max_total_time="$seconds" \
        -max_len=16384 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 -artifact_prefix="$artifacts/" 2>"$artifacts/log" || {
        tail -n 40 "$artifacts/log" >&2
        exit 1
    }
    grep -E 'stat::(number_of_executed_units|peak_rss_mb)' "$artifacts/log" || true
done
