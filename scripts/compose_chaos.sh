#!/usr/bin/env bash
# What happens to the containers of docker-compose.yml in their life: an upgrade by a version with a migration while clients publish,
# servers that are killed again and again, a gigabyte through the gateway, the session of README.md and the generated client, a full disk,
# clocks that are minutes off. Nothing may be lost, doubled or unverified. Needs root, docker with its compose tool, cargo, python3, curl, jq,
# openssl and libfaketime, the images of docker-compose.yml and guardian:0.1.0, which scripts/compose_smoke.sh builds. Secrets, volumes and
# ports are its own.
#
#   scripts/compose_chaos.sh [PHASE...]                      upgrade kills session upload disk clocks, unless named
#   GUARDIAN=path/to/guardian scripts/compose_chaos.sh       an image of this binary in place of guardian:0.1.0
#   MEGABYTES=100 scripts/compose_chaos.sh upload            less than a gigabyte
#   FORMER=path/to/guardian scripts/compose_chaos.sh         the former version; otherwise that before the last migration is built
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

phases=("$@")
((${#phases[@]})) || phases=(upgrade kills session upload disk clocks)
export HTTP_PORT=${HTTP_PORT:-18090} HTTPS_PORT=${HTTPS_PORT:-18445}
export PROMETHEUS_PORT=${PROMETHEUS_PORT:-19095} ALERTMANAGER_PORT=${ALERTMANAGER_PORT:-19096}
export DOCKER_BUILDKIT=1
source scripts/smoke_stage.sh

faketime=$(compgen -G '/usr/lib/*/faketime/libfaketime.so.1' || true)
if [[ -z $faketime && " ${phases[*]} " == *" clocks "* ]]; then
    apt-get update -qq </dev/null >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime </dev/null >&2
    faketime=$(compgen -G '/usr/lib/*/faketime/libfaketime.so.1')
fi

# image TAG BINARY TREE: the image of the tree's Dockerfile around a binary that was built elsewhere
image() {
    local context
    context=$(mktemp -d)
    cp -r "$3/docker" "$context"
    rm -rf "$context/docker/secrets"
    install --strip --mode=0755 "$2" "$context/guardian"
    sed -n '/^FROM debian/,$p' "$3/Dockerfile" | sed 's|--from=build /out/guardian|guardian|' >"$context/Dockerfile"
    docker build --quiet --network host --tag "$1" "$context" >/dev/null
    rm -rf "$context"
}

# former_tree FOLDER: the sources of the newest version that has some of the migrations of this one, and no others
former_tree() {
    local version now
    now=$(git ls-tree -r HEAD migrations/postgres)
    # a branch may number its migrations otherwise than what it was merged into
    while read -r version; do
        if [[ $(git ls-tree -r "$version" migrations/postgres) != "$now" ]] &&
            ! grep -qvxF "$now" <<<"$(git ls-tree -r "$version" migrations/postgres)"; then
            mkdir "$1"
            git archive "$version" | tar --extract --directory "$1"
            return
        fi
    done < <(git rev-list HEAD -- migrations/postgres)
    echo "there is no version before the last migration" >&2
    return 1
}

[[ -z ${GUARDIAN:-} ]] || image guardian:0.1.0 "$GUARDIAN" .
if [[ " ${phases[*]} " == *" upgrade "* ]]; then
    tree=$(mktemp -d)/guardian
    former_tree "$tree"
    if [[ -z ${FORMER:-} ]]; then
        # a folder of its own, which the next run finds again
        target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")/former
        CARGO_TARGET_DIR=$target cargo build --quiet --locked --manifest-path "$tree/Cargo.toml" --bin guardian </dev/null
        FORMER=$target/debug/guardian
    fi
    image guardian:former "$FORMER" "$tree"
    rm -rf "${tree%/*}"
fi

stage guardian-chaos docker-compose.yml docker
openssl rand -hex 24 >"$secrets/db_password"
chmod 0400 "$secrets/db_password"
chown 10001:10001 "$secrets/db_password"
current=("${compose[@]}")
small_disk=/var/lib/guardian:size=256k,uid=10001,gid=10001,mode=0700
{ echo services:; printf '  %s: {image: "guardian:former"}\n' serve worker migrate; } >former.yml
printf 'services:\n  %s\n' "serve: {tmpfs: [\"$small_disk\"]}" >cramped.yml
former=("${compose[@]}" --file docker-compose.yml --file former.yml)
cramped=("${compose[@]}" --file docker-compose.yml --file cramped.yml)

lone=()
clients=
end_of_chaos() {
    local code=$?
    # the end is gone through, whatever fails
    set +e
    ((code == 0)) || for name in ${lone[@]+"${lone[@]}"}; do docker logs --tail 20 "$name" >&2; done
    touch "$work/stop"
    [[ -z $clients ]] || kill "$clients" 2>/dev/null
    ((${#lone[@]} == 0)) || docker rm --force "${lone[@]}" >/dev/null 2>&1
    (exit "$code")
    end
}
trap end_of_chaos EXIT

api=https://localhost:$HTTPS_PORT/guardian
until_true() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || { echo "waited in vain: $*" >&2; return 1; }
        sleep 1
    done
}
ask() { command curl --silent --show-error --noproxy '*' --cacert "$secrets/tls.crt" --max-time 600 "$@"; }
call() { # METHOD PATH [CURL OPTIONS]
    ask --fail-with-body --header "@$work/key" --request "$1" "$api$2" "${@:3}"
}
containers() { "${compose[@]}" ps --quiet "$1"; }
healthy() { # SERVICE
    local container
    for container in $(containers "$1"); do
        [[ $(docker inspect --format '{{.State.Health.Status}}' "$container") == healthy ]] || return 1
    done
}
schema() {
    docker exec "$(containers postgres)" psql --username guardian --tuples-only --no-align \
        --command 'SELECT MAX(version) FROM _sqlx_migrations'
}
key_of() { # TENANT: a key of a tenant of its own, which may do everything
    "${compose[@]}" run --rm migrate keys create --tenant "$1" --name chaos --preset admin 2>/dev/null | grep -o 'gk_[0-9a-f_]*'
}

# clients publish until they are ended, and then nothing is lost
start_clients() {
    rm -f "$work/stop"
    python3 "$repository/scripts/chaos_clients.py" "$api" "$work/token" "$secrets/tls.crt" "$work" &
    clients=$!
}
end_clients() {
    touch "$work/stop"
    local all=$clients
    clients=
    wait "$all"
}
summary() { jq --exit-status "$1" "$work/summary.json" >/dev/null || { cat "$work/summary.json" >&2; return 1; }; }

# lone_container NAME COMMAND [DOCKER OPTIONS]: one more container of the image than the file has
network=
lone_container() {
    local name=guardian-chaos-$1 command=$2
    lone+=("$name")
    docker run --detach --name "$name" --network "$network" --read-only --cap-drop ALL \
        --volume "$PWD/$secrets/master.key:/run/secrets/master_key:ro" --volume "$PWD/$secrets/db_password:/run/secrets/db_password:ro" \
        --env DATABASE_URL=postgres://guardian@postgres/guardian --env PGPASSWORD_FILE=/run/secrets/db_password \
        --env GUARDIAN_MASTER_KEY_FILE=/run/secrets/master_key --env GUARDIAN_METRICS_LISTEN=0.0.0.0:9464 \
        --env GUARDIAN_WORKERS=1 "${@:3}" guardian:0.1.0 "$command" >/dev/null
}
end_lone() { # NAME
    docker rm --force "guardian-chaos-$1" >/dev/null
}
address() { docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "guardian-chaos-$1"; }
lost_leases() { # NAME: it has no such line as long as it lost none
    command curl --silent --fail --noproxy '*' "http://$(address "$1"):9464/metrics" | awk '/^guardian_leases_lost_total/ {lost += $2} END {print lost + 0}'
}
roomy_disk=/var/lib/guardian:uid=10001,gid=10001,mode=0700

# people ROWS PREFIX: a table of so many persons; with another prefix it says other things
people() {
    awk -v rows="$1" -v prefix="$2" -v seed="$(($(cksum <<<"$2" | cut -d' ' -f1) % 65521))" 'BEGIN { srand(seed); print "person,age,area,illness"
        for (row = 0; row < rows; row++) printf "%s%d,%d,a%d,i%d\n", prefix, row, 17 + rand() * 74, rand() * 100, rand() * 30 }'
}
# submitted DATASET [MEMBERS]: the id of its job
submitted() {
    jq --null-input --arg dataset "$1" --argjson more "${2:-null}" '{dataset: $dataset, unlisted: "drop", method: {type: "versatile",
        rules: ["age, area -> illness"], default_guarantee: {type: "l_diversity", l: 2}}} + ($more // {})' |
        call POST /v1/jobs --json @- | jq --raw-output .id
}
job() { call GET "/v1/jobs/$1" | jq --raw-output "$2"; }
ended() { # JOB SECONDS STATUS
    local end=$((SECONDS + $2)) status
    until status=$(job "$1" .status) && [[ $status != queued && $status != running ]]; do
        ((SECONDS < end)) || break
        sleep 1
    done
    [[ $status == "$3" ]] || { call GET "/v1/jobs/$1" >&2; return 1; }
}
uploaded() { # POPULATION PREFIX ROWS: the id of the dataset
    people "$3" "$2" | call POST "/v1/datasets?population=$1" --header 'Content-Type: text/csv' --data-binary @- | jq --raw-output .id
}
population() { # NAME
    call GET '/v1/populations?limit=100' |
        jq --arg name "$1" '[.items[].name] as $others | {description: $name, person: [{key_system: $name, columns: ["person"]}]}
            + if $others == [] then {} else {disjoint_from: $others, reason: "made up"} end' |
        call PUT "/v1/populations/$1" --json @- >/dev/null
}

started() { # COMPOSE...
    "$@" up --no-build --detach >/dev/null 2>&1
    until_true 180 ask --fail "$api/readyz"
    network=$(docker network ls --format '{{.Name}}' | grep 'guardian-chaos.*back')
    cp "$secrets/first/first.key" "$work/token"
    # in a file, because others can see a command line
    sed 's/^/Authorization: Bearer /' "$work/token" >"$work/key"
}

# all_of_now_are_healthy SERVICE: those of the former version say that they are not ready after a migration that is not for them, and
# serve what reaches them
all_of_now_are_healthy() {
    local container
    for container in $(containers "$1"); do
        [[ $(docker inspect --format '{{.Config.Image}} {{.State.Health.Status}}' "$container") =~ former|\ healthy ]] || return 1
    done
}
upgrade() {
    step "start the former version"
    started "${former[@]}"
    local before container service
    before=$(schema)
    start_clients
    sleep 10
    step "migrate from $before while it serves"
    "${current[@]}" run --rm migrate >/dev/null 2>&1
    (($(schema) > before)) || { echo "there is no migration between the versions" >&2; return 1; }
    sleep 10
    for service in serve worker; do
        for container in $(containers "$service"); do
            step "replace a $service"
            docker stop --time 60 "$container" >/dev/null
            docker rm "$container" >/dev/null
            "${current[@]}" up --no-build --detach --no-deps --no-recreate "$service" >/dev/null 2>&1
            until_true 120 all_of_now_are_healthy "$service"
        done
    done
    until_true 60 healthy serve
    until_true 60 healthy worker
    sleep 5
    end_clients
    [[ -z $(docker ps --quiet --filter ancestor=guardian:former) ]]
}

kills() {
    start_clients
    local round container
    for round in {1..10}; do
        sleep 5
        kill -0 "$clients"
        container=$(containers serve | sed -n "$((round % 2 + 1))p")
        step "kill a server: $round of 10"
        # as a crash: what the engine itself kills is not started again
        kill -KILL "$(docker inspect --format '{{.State.Pid}}' "$container")"
        sleep 5
        until_true 120 healthy serve
    done
    end_clients
    # one of two was there all the time
    summary '.longest_without < 15'
}

session() {
    step "the session of README.md"
    mkdir "$work/session"
    ln -s "$repository/examples" "$work/session/examples"
    key_of readme | sed 's/^/Authorization: Bearer /' >"$work/readme.key"
    block() { awk -v fence="^\`\`\`$1 session" '$0 ~ fence {on = 1; next} /^```/ {on = 0} on' "$repository/README.md"; }
    block sh | sed "s|^api=.*|api=$api/v1|" >"$work/session/session.sh"
    (
        cd "$work/session"
        key=$work/readme.key ca=$work/guardian-chaos/$secrets/tls.crt
        curl() { command curl --noproxy '*' --cacert "$ca" --header "@$key" "$@"; }
        source ./session.sh
    ) >"$work/session/said"
    diff <(block text) "$work/session/said"

    step "events as they come"
    local dataset of
    population sessions
    dataset=$(uploaded sessions s 20000)
    of=$(submitted "$dataset")
    ask --no-buffer --fail --header "@$work/key" "$api/v1/jobs/$of/events" >"$work/events"
    grep -q '^event: status' "$work/events"
    [[ $(sed -n 's/^data: //p' "$work/events" | tail -1 | jq --raw-output .status) == succeeded ]]

    step "Swagger UI under the prefix"
    local page asset
    page=$(call GET /docs/)
    for asset in $(grep -oE '(src|href)="[^"]+"' <<<"$page" | cut -d'"' -f2 | sort -u); do
        ask --fail --output /dev/null "$(python3 -c 'import sys, urllib.parse; print(urllib.parse.urljoin(*sys.argv[1:]))' "$api/docs/" "$asset")"
    done
    ask --fail "$api/openapi.json" | jq --exit-status '.servers[0].url == "/guardian"' >/dev/null

    step "a generated client"
    key_of generated >"$work/generated.key"
    (cd "$repository" && SSL_CERT_FILE=$work/guardian-chaos/$secrets/tls.crt scripts/generated_client.sh "$api" "$work/generated.key")
}

peaks() {
    local container
    for container in $(containers serve); do
        awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$(docker inspect --format '{{.State.Pid}}' "$container")/status"
    done
}
upload() {
    local answer megabytes=${MEGABYTES:-1000} rows
    step "$megabytes MB through the gateway, made as they are sent"
    rows=$((megabytes * 15500))
    key_of bulk | sed 's/^/Authorization: Bearer /' >"$work/bulk.key"
    answer=$(awk -v rows="$rows" 'BEGIN { print "age,city,ward,diagnosis,code,stay,note"
        for (row = 0; row < rows; row++) printf "%d,city-%03d,ward-%02d,diagnosis-%02d,%06d,%d,note of no length worth\n",
            17 + row * 7 % 74, row * 13 % 500, row % 40, row * 31 % 60, row % 999983, row % 30 }' |
        tee >(wc -c >"$work/sent") |
        ask --max-time 3600 --fail-with-body --header "@$work/bulk.key" --header 'Content-Type: text/csv' --upload-file - --request POST "$api/v1/datasets")
    [[ $(jq .rows <<<"$answer") == "$rows" ]] || { echo "$answer" >&2; return 1; }
    until_true 10 test -s "$work/sent"
    (($(cat "$work/sent") >= megabytes * 1000000)) || { echo "only $(cat "$work/sent") bytes" >&2; return 1; }
    local peak
    peak=$(peaks | sort -n | tail -1)
    step "$(cat "$work/sent") bytes; most memory of a server: $peak MB"
    ((peak < 512))
}

# renewed COMPOSE... SERVICE: made anew with empty disks; the servers answer again
renewed() {
    "${@:1:$#-1}" up --no-build --detach --no-deps --force-recreate --renew-anon-volumes "${!#}" >/dev/null 2>&1
    until_true 120 healthy serve
    until_true 60 ask --fail "$api/readyz"
}
count() { # LIST: how many items it has, page by page
    local page cursor='' all=0
    while :; do
        page=$(call GET "/v1/$1?limit=1000$cursor")
        all=$((all + $(jq '.items | length' <<<"$page")))
        cursor=$(jq --raw-output '.next // empty' <<<"$page")
        [[ -n $cursor ]] || break
        cursor="&cursor=$cursor"
    done
    echo "$all"
}

disk() {
    local of small before datasets status
    step "workers whose disks are full"
    population cramped
    of=$(uploaded cramped c 150000)
    before=$(count releases) datasets=$(count datasets)
    renewed "${cramped[@]}" serve
    "${compose[@]}" stop worker >/dev/null 2>&1
    lone_container cramped worker --tmpfs "$small_disk"
    of=$(submitted "$of")
    is_back() { (($(job "$of" .attempt) > 1)) && [[ $(job "$of" .status) =~ queued|running ]]; }
    until_true 240 is_back
    [[ $(count releases) == "$before" ]]
    # what needs no room is done meanwhile
    population snug
    small=$(submitted "$(uploaded snug s 1000)")
    ended "$small" 120 succeeded
    step "a server whose disk is full"
    status=$(people 200000 d | ask --output "$work/answer" --write-out '%{http_code}' --header "@$work/key" --request POST \
        --header 'Content-Type: text/csv' --data-binary @- "$api/v1/datasets?population=cramped")
    [[ $status == 507 && $(jq --raw-output .type "$work/answer") == */storage-full ]] ||
        { echo "$status" >&2; cat "$work/answer" >&2; return 1; }
    [[ $(count datasets) == $((datasets + 1)) ]]
    step "there is room again"
    docker stop --time 60 guardian-chaos-cramped >/dev/null
    end_lone cramped
    renewed "${current[@]}" serve
    ended "$of" 240 succeeded
    [[ $(count releases) == $((before + 2)) ]]
    "${current[@]}" up --no-build --detach --no-deps worker >/dev/null 2>&1
}

has_begun() { # NAME: whether it has begun a job
    docker logs "guardian-chaos-$1" 2>&1 | grep 'job started' >/dev/null
}
clocks() {
    step "workers whose clocks are off by minutes"
    local name of off
    for off in behind:-7m ahead:+7m; do
        name=${off%:*}
        lone_container "$name" worker --tmpfs "$roomy_disk" --volume "$faketime:/faketime.so:ro" --env LD_PRELOAD=/faketime.so \
            --env "FAKETIME=${off#*:}" --env FAKETIME_DONT_FAKE_MONOTONIC=1 --env DONT_FAKE_MONOTONIC=1 --env GUARDIAN_WORKERS=4
        off=$(($(docker exec "guardian-chaos-$name" date +%s) - $(date +%s)))
        ((off < -400 || off > 400)) || { echo "the clock is off by $off s" >&2; return 1; }
    done
    start_clients
    sleep 40
    end_clients
    # nobody took another's job
    summary '.most_attempts == 1'
    for name in behind ahead; do
        has_begun "$name"
        [[ $(lost_leases "$name") == 0 ]]
    done
    step "deadlines on a worker whose clock is ahead"
    end_lone behind
    "${compose[@]}" stop worker >/dev/null 2>&1
    docker restart --time 60 guardian-chaos-ahead >/dev/null
    population punctual
    local jobs=() number
    for number in {1..6}; do
        jobs+=("$(submitted "$(uploaded punctual "p$number-" 500)" '{"deadline": "PT3M"}')")
    done
    for of in "${jobs[@]}"; do
        ended "$of" 170 succeeded
    done
    end_lone ahead
    "${current[@]}" up --no-build --detach --no-deps worker >/dev/null 2>&1
}

[[ " ${phases[*]} " == *" upgrade "* ]] || started "${current[@]}"
for phase in "${phases[@]}"; do
    "$phase"
done
docker image rm guardian:former >/dev/null 2>&1 || true
step "done: ${phases[*]}"
