#!/usr/bin/env bash
# Counts the instructions of a publication by each method, by valgrind, and fails where one takes more than benches/instructions.json
# says. Needs bash, cargo, python3 and valgrind, which it installs where it may.
#
#   benches/instructions.sh
#   benches/instructions.sh --write                                              # writes what was counted
#   GUARDIAN=path/to/guardian CENSUS=path/to/census benches/instructions.sh      # some that are built already
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
    ((EUID == 0)) && command -v apt-get >/dev/null || { echo "please install: valgrind" >&2; exit 1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind </dev/null >&2
fi
target=${CARGO_TARGET_DIR:-target}/release
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --locked --profile bench --bin guardian --example census
python3 benches/instructions.py "${GUARDIAN:-$target/guardian}" "${CENSUS:-$target/examples/census}" "$@"
