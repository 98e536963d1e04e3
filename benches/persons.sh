#!/usr/bin/env bash
# What a table of so many persons (1000000) of the census costs through the service: published once, and two nights of which the second
# has 2% other persons; each in a service of its own. Needs bash, awk, cargo, python3 and /proc; with STORE=postgres also Postgres
# (scripts/pg-tmp.sh).
#
#   benches/persons.sh [PERSONS]
#   STORE=postgres benches/persons.sh
#   GUARDIAN=path/to/guardian CENSUS=path/to/census benches/persons.sh     # some that are built already
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/release
[ -n "${GUARDIAN:-}" ] || cargo build --quiet --release --bin guardian --example census
guardian=${GUARDIAN:-$target/guardian} census=${CENSUS:-$target/examples/census} persons=${1:-1000000}
export GUARDIAN=$guardian CENSUS=$census
# a store for each: what is published of persons keeps them from being published once more
if [ -z "${NIGHTS:-}" ]; then
    for nights in 1 2; do
        if [ "${STORE:-sqlite}" = postgres ]; then
            NIGHTS=$nights scripts/pg-tmp.sh run "$0" "$persons"
        else
            NIGHTS=$nights "$0" "$persons"
        fi
    done
    exit
fi
source benches/serve.sh
"$census" "$persons" "$work/census.csv"
awk 'NR == 1 { print "pid," $0; next } { print "p" NR "," $0 }' "$work/census.csv" >"$work/1.csv"
awk -v others=$((persons / 50)) 'NR > 1 && NR <= others + 1 { $0 = "other" $0 } { print }' "$work/1.csv" >"$work/2.csv"
start
python3 benches/persons.py "$url" "$server" "$NIGHTS" "$work" benches/anatomy.json
