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
guardian=$target/release/guardian
source benches/serve.sh
ulimit -n "$(ulimit -Hn)"
start
"$target/release/examples/load" "$url" "${1:-1000}" "${2:-1000}" "$server"
