#!/usr/bin/env bash
# Runs docker-compose.yml from nothing, works through its gateway while containers die, and takes it down again. Needs root, docker with
# its compose tool, curl, jq and openssl. Secrets, volumes and ports are its own.
#
#   scripts/compose_smoke.sh             builds the image first; PROFILE=release builds what is shipped
#   NO_BUILD=1 scripts/compose_smoke.sh  takes the image that is there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export HTTP_PORT=${HTTP_PORT:-18080} HTTPS_PORT=${HTTPS_PORT:-18443}
export PROMETHEUS_PORT=${PROMETHEUS_PORT:-19090} ALERTMANAGER_PORT=${ALERTMANAGER_PORT:-19093}
export DOCKER_BUILDKIT=1
source scripts/smoke_stage.sh
if [[ -z ${NO_BUILD:-} ]]; then
    docker build --network host --build-arg "PROFILE=${PROFILE:-dev}" --tag guardian:0.1.0 . >&2
fi

stage guardian-smoke docker-compose.yml docker
openssl rand -hex 24 >"$secrets/db_password"
chmod 0400 "$secrets/db_password"
chown 10001:10001 "$secrets/db_password"

# until SECONDS COMMAND...: waits until a command succeeds
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || { echo "waited in vain: $*" >&2; return 1; }
        sleep 1
    done
}

api=https://localhost:$HTTPS_PORT/guardian
call() { # METHOD PATH [CURL OPTIONS]
    local method=$1 path=$2
    shift 2
    # what a client does: it repeats what is safe to repeat, for as long as containers come and go
    curl --silent --show-error --fail-with-body --noproxy '*' --cacert "$secrets/tls.crt" --max-time 120 \
        --retry 30 --retry-delay 1 --retry-all-errors --retry-max-time 90 \
        --header "@$work/key" --request "$method" "$api$path" "$@"
}

step "start"
"${compose[@]}" up --no-build --detach >/dev/null 2>&1
until_true 180 curl --silent --fail --noproxy '*' --cacert "$secrets/tls.crt" "$api/readyz"
# in a file, because others can see a command line
sed 's/^/Authorization: Bearer /' "$secrets/first/first.key" >"$work/key"

step "publish through the gateway"
table=$repository/examples/data/hospital.csv
call PUT /v1/populations/clinic --json '{"description": "patients"}' >/dev/null
dataset=$(call POST '/v1/datasets?name=hospital&population=clinic' --header 'Content-Type: text/csv' \
    --header 'Idempotency-Key: smoke-upload' --data-binary "@$table" | jq --raw-output .id)
jq --arg dataset "$dataset" '.dataset = $dataset' "$repository/examples/hospital.json" >job.json
job=$(call POST '/v1/jobs?wait=60' --header 'Idempotency-Key: smoke-job' --json @job.json)
[[ $(jq --raw-output .status <<<"$job") == succeeded ]] || { echo "$job" >&2; exit 1; }
release=$(jq --raw-output .release <<<"$job")
# the links lead through the gateway
[[ $(jq --raw-output .links.release <<<"$job") == "/guardian/v1/releases/$release" ]] || { echo "$job" >&2; exit 1; }
call GET "/v1/jobs/$(jq --raw-output .id <<<"$job")/events" | grep -q '^event:'
call GET /docs/ | grep -q swagger-ui

# verified RELEASE: each part has the bytes that the manifest names
verified() {
    local manifest path sum
    manifest=$(call GET "/v1/releases/$1")
    while read -r path sum; do
        [[ $(call GET "/v1/releases/$1/$path" | sha256sum | cut -d' ' -f1) == "$sum" ]] || { echo "$1 $path" >&2; return 1; }
    done < <(jq --raw-output '.tables[] | .name as $t | .parts[] | "tables/\($t)/parts/\(.name) \(.sha256)"' <<<"$manifest")
}
verified "$release"

# work N: publishes the table of N other people; prints the job
work() {
    local id
    sed "2,\$s/^/$1/" "$table" >"table$1.csv"
    call PUT "/v1/populations/town$1" --json "$(jq --null-input --argjson number "$1" '{description: "a town", reason: "other towns",
        disjoint_from: (["clinic"] + [range(1; $number) | "town\(.)"])}')" >/dev/null
    id=$(call POST "/v1/datasets?population=town$1" --header 'Content-Type: text/csv' \
        --header "Idempotency-Key: smoke-upload-$1" --data-binary "@table$1.csv" | jq --raw-output .id)
    jq --arg dataset "$id" '.dataset = $dataset' "$repository/examples/hospital.json" >"job$1.json"
    call POST /v1/jobs --header "Idempotency-Key: smoke-job-$1" --json "@job$1.json" | jq --raw-output .id
}

# containers SERVICE: their ids
containers() { "${compose[@]}" ps --quiet "$1"; }

network=$(docker network ls --format '{{.Name}}' | grep 'guardian-smoke.*back')
number=0
jobs=()
disturb() { # WORDS COMMAND...
    step "$1"
    shift
    number=$((number + 1))
    jobs+=("$(work "$number")")
    "$@" >/dev/null 2>&1
    number=$((number + 1))
    jobs+=("$(work "$number")")
}
# as a crash: what the engine itself kills is not started again
killed() { kill -KILL "$(docker inspect --format '{{.State.Pid}}' "$1")"; }
recreated() { "${compose[@]}" up --no-build --detach --force-recreate --no-deps "$@"; }
cut_off() {
    docker network disconnect "$network" "$1"
    sleep 15
    docker network connect --alias worker "$network" "$1"
}
paused() {
    docker pause "$1"
    sleep 45
    docker unpause "$1"
}
disturb "kill a worker" killed "$(containers worker | head -1)"
disturb "kill a server" killed "$(containers serve | head -1)"
disturb "cut a worker off" cut_off "$(containers worker | tail -1)"
disturb "pause a worker for longer than its lease" paused "$(containers worker | head -1)"
disturb "replace the servers" recreated serve
disturb "restart Postgres" docker restart "$(containers postgres)"
disturb "replace the gateway" recreated gateway

step "nothing is lost, doubled or unverified"
for job in "${jobs[@]}"; do
    ended=$(call GET "/v1/jobs/$job?wait=60")
    [[ $(jq --raw-output .status <<<"$ended") == succeeded ]] || { echo "$ended" >&2; exit 1; }
    verified "$(jq --raw-output .release <<<"$ended")"
done
published=$(call GET '/v1/releases?limit=100' | jq '.items | length')
((published == ${#jobs[@]} + 1)) || { echo "$published releases of $((${#jobs[@]} + 1)) jobs" >&2; exit 1; }

step "metrics are scraped, and not shown outside"
[[ $(curl --silent --output /dev/null --write-out '%{http_code}' --noproxy '*' --cacert "$secrets/tls.crt" "$api/metrics") == 404 ]]
all_are_up() {
    docker exec "$(containers prometheus)" promtool query instant http://127.0.0.1:9090 'sum(up)' | grep -q '=> 4 '
}
until_true 60 all_are_up
# this machine reaches Prometheus, and Prometheus Alertmanager
alerts_are_taken() {
    curl --silent --fail --noproxy '*' "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/alertmanagers" |
        jq --exit-status '.data.activeAlertmanagers | length == 1'
}
until_true 60 alerts_are_taken
until_true 60 curl --silent --fail --noproxy '*' "http://127.0.0.1:$ALERTMANAGER_PORT/-/ready"

step "done: ${#jobs[@]} jobs while containers died"
