#!/usr/bin/env bash
# Schemathesis against a service with keys: requests that the OpenAPI document allows and such that it does not, with the key of
# every preset; what is answered must be what the document says, and never a failure of the service.
#
#   scripts/schemathesis.sh [PRESET...]    all presets unless named
#
# SEED repeats a run, EXAMPLES bounds the cases of each operation (30), SCHEMATHESIS names a command to use instead of installing
# one. Everything is loopback and temporary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=4.32.5
readonly CHECKS=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance
seed=${SEED:-$RANDOM$RANDOM}
examples=${EXAMPLES:-30}
presets=("$@")
((${#presets[@]})) || presets=(pipeline officer analyst operator admin)

if [[ -z ${SCHEMATHESIS:-} ]]; then
    venv=target/schemathesis
    SCHEMATHESIS=$venv/bin/schemathesis
    if ! "$SCHEMATHESIS" --version 2>/dev/null | grep -qF "$VERSION"; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$VERSION"
    fi
fi
cargo build --quiet --locked --bin guardian </dev/null
guardian=${CARGO_TARGET_DIR:-target}/debug/guardian

home=$(mktemp -d)
server=
finish() {
    local status=$?
    trap - EXIT INT TERM
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if ((status)) && [[ -s $home/serve.log ]]; then
        grep -E 'ERROR|panicked' "$home/serve.log" | tail -n 20 >&2 || true
    fi
    rm -rf -- "$home"
    exit "$status"
}
export SCHEMATHESIS_HOOKS=schemathesis_hooks
export PYTHONPATH=$PWD/scripts${PYTHONPATH:+:$PYTHONPATH}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
unset DATABASE_URL GUARDIAN_STORE

# the keys are made while no service has the store
declare -A tokens
for preset in "${presets[@]}" admin; do
    tokens[$preset]=$("$guardian" keys create --data "$home/data" --name "$preset" --preset "$preset" | grep -o 'gk_[0-9a-f_]*')
done
"$guardian" serve --auth keys --data "$home/data" --listen 127.0.0.1:0 >"$home/serve.out" 2>"$home/serve.log" &
server=$!
until grep -q 'http://' "$home/serve.out"; do
    kill -0 "$server" || exit 1
    sleep 0.1
done
url=$(grep -o 'http://[0-9.:]*' "$home/serve.out" | head -n 1)

# something that ids stand for
call() {
    curl --fail-with-body -sS -H "Authorization: Bearer ${tokens[admin]}" "$@"
}
id() {
    sed 's/^{"id":"\([^"]*\)".*/\1/'
}
dataset=$(call -H 'Content-Type: text/csv' --data-binary @examples/data/hospital.csv "$url/v1/datasets?name=hospital" | id)
call -H 'Content-Type: application/json' -d "{\"dataset\": \"$dataset\", $(tail -c +2 examples/hospital.json)" \
    "$url/v1/jobs?wait=60" >"$home/job.json"
job=$(id <"$home/job.json")
release=$(sed 's/.*"release":"\([^"]*\)","reused".*/\1/' "$home/job.json")

# the same ids everywhere, in the runs that read
cat >"$home/ids.toml" <<TOML
[[operations]]
include-path-regex = "^/v1/datasets/"
parameters = { "path.id" = "$dataset" }
[[operations]]
include-path-regex = "^/v1/jobs/"
parameters = { "path.id" = "$job" }
[[operations]]
include-path-regex = "^/v1/releases/"
parameters = { "path.id" = "$release", "path.table" = "t1", "path.part" = "qi" }
TOML
touch "$home/none.toml"

failed=()
run() {
    local preset=$1 config=$2
    shift 2
    echo "schemathesis: $preset, $(basename "$config" .toml) ids, seed $seed"
    (cd "$home" && "$schemathesis" --config-file "$config" run "$url/openapi.json" --checks "$CHECKS" --seed "$seed" \
        --max-examples "$examples" --continue-on-failure --workers 1 --request-timeout 70 --suppress-health-check all \
        --header "Authorization: Bearer ${tokens[$preset]}" "$@") || failed+=("$preset/$(basename "$config" .toml)")
}
schemathesis=$(command -v "$SCHEMATHESIS")
schemathesis=$(realpath -s "$schemathesis")
for preset in "${presets[@]}"; do
    # the stream of a job's events lasts as long as the job
    run "$preset" "$home/ids.toml" --include-method GET --phases examples,coverage,fuzzing
done
for preset in "${presets[@]}"; do
    run "$preset" "$home/none.toml" --phases examples,coverage,fuzzing,stateful
done
kill -0 "$server" || { echo "the service ended" >&2; exit 1; }
if grep -qE 'panicked' "$home/serve.log"; then
    echo "a handler panicked" >&2
    exit 1
fi
if ((${#failed[@]})); then
    echo "failed: ${failed[*]}; repeat with SEED=$seed" >&2
    exit 1
fi
echo "schemathesis: ${#presets[@]} presets, seed $seed: as documented"
