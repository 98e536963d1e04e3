#!/usr/bin/env bash
# Runs docker/single-node.yml from nothing with its gateway, publishes, copies the store while it is served, kills the container, and
# restores the copy into an emptied volume. Needs root, docker with its compose tool, curl, jq, openssl, and the image guardian:0.1.0,
# which scripts/compose_smoke.sh builds. Secrets, volumes and ports are its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export HTTP_PORT=${HTTP_PORT:-18081} HTTPS_PORT=${HTTPS_PORT:-18444} PORT=${PORT:-18082} METRICS_PORT=${METRICS_PORT:-19464}
source scripts/smoke_stage.sh
compose+=(--project-name guardian-single-smoke --file docker/single-node.yml --profile tls)
stage guardian-single-smoke docker
api=https://localhost:$HTTPS_PORT/guardian
call() { # METHOD PATH [CURL OPTIONS]
    local method=$1 path=$2
    shift 2
    curl --silent --show-error --fail-with-body --noproxy '*' --cacert "$secrets/tls.crt" --max-time 120 \
        --retry 60 --retry-delay 1 --retry-all-errors --retry-max-time 120 \
        --header "@$work/key" --request "$method" "$api$path" "$@"
}
# retries print the bodies of all attempts: waits until there is only one
ready() { call GET /readyz >/dev/null; }
container() { "${compose[@]}" ps --quiet serve; }

step "start"
"${compose[@]}" up --no-build --detach >/dev/null 2>&1
: >key
ready
sed 's/^/Authorization: Bearer /' "$secrets/first/first.key" >"$work/key"
for address in "127.0.0.1:$PORT/guardian/readyz" "127.0.0.1:$METRICS_PORT/metrics"; do
    curl --silent --show-error --fail --noproxy '*' --output /dev/null "http://$address"
done
# the key is mounted: none is made next to the store
docker exec "$(container)" sh -c 'test -f guardian.db && test ! -e master.key'

step "publish, and copy the store"
call PUT /v1/populations/clinic --json '{"description": "patients"}' >/dev/null
dataset=$(call POST '/v1/datasets?population=clinic' --header 'Content-Type: text/csv' --header 'Idempotency-Key: upload' \
    --data-binary "@$repository/examples/data/hospital.csv" | jq --raw-output .id)
jq --arg dataset "$dataset" '.dataset = $dataset' "$repository/examples/hospital.json" >job.json
release=$(call POST '/v1/jobs?wait=60' --header 'Idempotency-Key: job' --json @job.json | jq --raw-output .release)
manifest=$(call GET "/v1/releases/$release" | jq --sort-keys .)
docker exec "$(container)" guardian backup /var/lib/guardian/copy.db >/dev/null
docker cp "$(container):/var/lib/guardian/copy.db" copy.db >/dev/null

step "kill the container"
# as a crash: what the engine itself kills is not started again
kill -KILL "$(docker inspect --format '{{.State.Pid}}' "$(container)")"
ready
[[ $(call GET "/v1/releases/$release" | jq --sort-keys .) == "$manifest" ]]

step "restore the copy into an emptied volume"
"${compose[@]}" down --volumes --timeout 30 >/dev/null 2>&1
chown 10001:10001 copy.db
"${compose[@]}" run --rm --no-deps --volume "$PWD/copy.db:/copy.db:ro" --entrypoint cp serve \
    /copy.db /var/lib/guardian/guardian.db >/dev/null 2>&1
"${compose[@]}" up --no-build --detach >/dev/null 2>&1
ready
[[ $(call GET "/v1/releases/$release" | jq --sort-keys .) == "$manifest" ]]
# an equal job has the release
[[ $(call POST '/v1/jobs?wait=60' --header 'Idempotency-Key: again' --json @job.json | jq --raw-output .release) == "$release" ]]
step "done"
