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
source benches/serve.sh
start
python3 benches/soak.py "$url" "$server" "${2:-60}" "${RATE:-1}"
