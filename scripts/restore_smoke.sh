#!/usr/bin/env bash
# Loses a Postgres store and brings it back: from pg_dump, and from a base backup with the archived log up to a named point and to its
# end. Verifies each release that came back, and shows what is left where the master key is lost. Installs what it
# needs where it may; everything else is in a temporary folder, which is deleted.
#
#   scripts/restore_smoke.sh                     builds guardian first
#   GUARDIAN=/path/to/guardian scripts/restore_smoke.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=()
for program in curl jq unzip zstd; do
    command -v "$program" >/dev/null || missing+=("$program")
done
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || [[ -n ${PG_BINDIR:-} ]] || missing+=(postgresql)
if ((${#missing[@]})); then
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "please install: ${missing[*]}" >&2
        exit 1
    fi
    apt-get update -qq </dev/null >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
fi
if [[ -z ${GUARDIAN:-} ]]; then
    cargo build --locked --bin guardian </dev/null
    GUARDIAN=${CARGO_TARGET_DIR:-target}/debug/guardian
fi
GUARDIAN=$(realpath "$GUARDIAN")
bindir=${PG_BINDIR:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)}
examples=$PWD/examples

# short, because the path of a socket is
work=$(mktemp -d /tmp/restore.XXXXXX)
owner=$(id -un)
# Postgres refuses to be root
if ((EUID == 0)); then owner=${PGTMP_USER:-$(id -un postgres 2>/dev/null || echo nobody)}; fi
chmod 755 "$work"
mkdir "$work/pg" "$work/pg/log"
if ((EUID == 0)); then chown -R "$owner" "$work/pg"; fi
cd "$work"

service=
clusters=()
end() {
    local code=$?
    if [[ -n $service ]]; then kill "$service" 2>/dev/null || true; fi
    for cluster in ${clusters[@]+"${clusters[@]}"}; do
        as_owner "$bindir/pg_ctl" -D "$work/pg/$cluster" -m immediate -s stop >/dev/null 2>&1 || true
    done
    ((code == 0)) || { echo "line ${failed:-?}" >&2; tail -n 20 "$work"/*.log "$work"/pg/*.log >&2; } || true
    rm -rf "$work"
    exit "$code"
}
trap end EXIT
trap 'failed=$LINENO' ERR

step() { echo "$(date +%T) $*"; }

as_owner() {
    if ((EUID != 0)); then "$@"; else
        setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups env HOME="$work/pg" "$@"
    fi
}

# cluster NAME [OPTIONS]: starts the cluster in pg/NAME, whose socket is there too
cluster() {
    local name=$1
    clusters+=("$name")
    as_owner "$bindir/pg_ctl" -w -t 60 -s -D "pg/$name" -l "$work/pg/$name.log" start \
        -o "-c listen_addresses='' -c unix_socket_directories=$work/pg/$name -c fsync=off ${2:-}" >/dev/null </dev/null
}

created() { # NAME
    as_owner "$bindir/initdb" -D "pg/$1" -U postgres -A trust -E UTF8 --locale=C --no-sync >/dev/null
}

lost() { # NAME: ends without a checkpoint, and deletes what it wrote
    as_owner "$bindir/pg_ctl" -D "pg/$1" -m immediate -s stop >/dev/null
    rm -rf "pg/$1"
}

url() { echo "postgres://postgres@localhost/guardian?host=$work/pg/$1"; }
sql() { # CLUSTER STATEMENT
    as_owner "$bindir/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$work/pg/$1" -U postgres -d guardian -c "$2"
}

serve() { # CLUSTER KEY
    : >"serve-$1.out"
    "$GUARDIAN" serve --store "$(url "$1")" --master-key "$2" --data data --listen 127.0.0.1:0 \
        >"serve-$1.out" 2>"serve-$1.log" </dev/null &
    service=$!
    for _ in {1..300}; do
        api=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "serve-$1.out" | head -1 || true)
        if [[ -n $api ]]; then return; fi
        kill -0 "$service" 2>/dev/null || break
        sleep 0.2
    done
    service=
    return 1
}

stopped() {
    kill "$service"
    wait "$service" || true
    service=
}

call() { # METHOD PATH [CURL OPTIONS]
    local method=$1 path=$2
    shift 2
    curl --silent --show-error --fail-with-body --noproxy '*' --max-time 120 --request "$method" "$api$path" "$@"
}

# work NAME: publishes the table of persons of its own; prints the job
work() {
    local dataset
    sed "2,\$s/^/$1/" "$examples/data/hospital.csv" >"$1.csv"
    call PUT "/v1/populations/$1" --json "$(jq --null-input --arg others "${2:-}" \
        '{description: "a town"} + if $others == "" then {} else {reason: "other towns", disjoint_from: [$others]} end')" >/dev/null
    dataset=$(call POST "/v1/datasets?population=$1" --header 'Content-Type: text/csv' --data-binary "@$1.csv" | jq -r .id)
    jq --arg dataset "$dataset" '.dataset = $dataset' "$examples/hospital.json" >"$1.json"
    submitted "$1"
}

submitted() { # NAME: the release of its job
    local job
    job=$(call POST '/v1/jobs?wait=60' --json "@$1.json")
    [[ $(jq -r .status <<<"$job") == succeeded ]] || { echo "$job" >&2; return 1; }
    jq -r .release <<<"$job"
}

# verified RELEASE NAME: by the verifier, against the original and what was asked for
verified() {
    rm -rf folder && mkdir folder
    call GET "/v1/releases/$1/archive" --output archive.zip
    unzip -q archive.zip -d folder
    cp "$examples/hospital.json" folder/specification.json
    "$GUARDIAN" verify folder --original "$2.csv" >/dev/null
}

released() { call GET '/v1/releases?limit=100' | jq -r '.items[].id' | sort | tr '\n' ' '; }

step "publish, with a dump, a base backup and the archived log"
mkdir data
head -c 32 /dev/urandom >master.key
head -c 32 /dev/urandom >other.key
chmod 600 ./*.key
created first
cluster first "-c archive_mode=on -c archive_command='cp %p $work/pg/log/%f'"
as_owner "$bindir/createdb" -h "$work/pg/first" -U postgres guardian
as_owner "$bindir/pg_basebackup" -h "$work/pg/first" -U postgres -D pg/base -X none --checkpoint=fast 2>/dev/null
serve first master.key
a=$(work north)
as_owner "$bindir/pg_dump" -h "$work/pg/first" -U postgres --format=custom --file=pg/guardian.dump guardian
sql first "SELECT pg_create_restore_point('before_south')" >/dev/null
b=$(work south north)
"$GUARDIAN" ledger export --store "$(url first)" --master-key master.key >ledger.ndjson
stopped
# a site whose log is rarely full sets archive_timeout
sql first 'SELECT pg_switch_wal()' >/dev/null
for _ in {1..100}; do
    [[ $(sql first "SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver") != t ]] || break
    sleep 0.1
done
lost first

step "restore the dump"
created second
cluster second
as_owner "$bindir/createdb" -h "$work/pg/second" -U postgres guardian
as_owner "$bindir/pg_restore" -h "$work/pg/second" -U postgres --exit-on-error --no-owner --dbname=guardian pg/guardian.dump
serve second master.key
[[ $(released) == "$a " ]]
verified "$a" north
# an equal job has the release; the dump has forgotten the second one
[[ $(submitted north) == "$a" ]]
stopped

step "complete it with the ledger that was exported later"
"$GUARDIAN" ledger import --store "$(url second)" --master-key master.key ledger.ndjson >/dev/null
serve second master.key
verified "$a" north
gone=$(curl --silent --noproxy '*' --output /dev/null --write-out '%{http_code}' "$api/v1/releases/$b")
[[ $gone == 410 ]]
stopped

# from_log NAME OPTIONS: the base backup, rolled forward by the archived log
from_log() {
    as_owner cp -a pg/base "pg/$1"
    as_owner touch "pg/$1/recovery.signal"
    cluster "$1" "-c restore_command='cp $work/pg/log/%f %p' -c recovery_target_action=promote ${2:-}"
    for _ in {1..300}; do
        [[ $(sql "$1" 'SELECT pg_is_in_recovery()') != f ]] || return 0
        sleep 0.1
    done
    return 1
}

step "roll a base backup forward to a point between the releases"
from_log between "-c recovery_target_name=before_south"
serve between master.key
[[ $(released) == "$a " ]]
verified "$a" north
stopped

step "roll it forward to the end of the log"
from_log whole
serve whole master.key
[[ $(released) == "$(printf '%s\n' "$a" "$b" | sort | tr '\n' ' ')" ]]
verified "$a" north
verified "$b" south
manifest=$(call GET "/v1/releases/$a")
stopped

step "without the master key"
if serve whole other.key; then echo "a wrong key was taken" >&2; exit 1; fi
grep -q 'master key' serve-whole.log
rm -rf data && mkdir data
if serve whole data/master.key; then echo "a key was made for a used store" >&2; exit 1; fi
[[ ! -e data/master.key ]]
# what was published is in the tables as it is: each part, in chunks
parts=0
bytes() { # STATEMENT
    sql whole "$1" | base64 --decode
}
while read -r file sum; do
    [[ $(bytes "SELECT encode(payload, 'base64') FROM part_chunks JOIN releases USING (job_id, attempt)
        WHERE id = '$a' AND file = '$file' ORDER BY chunk_no" | zstd --decompress --quiet | sha256sum | cut -d' ' -f1) == "$sum" ]]
    parts=$((parts + 1))
done < <(jq -r '.tables[] | .name as $table | .parts[] | "\($table).\(.name).csv \(.sha256)"' <<<"$manifest")
((parts > 0))
# what was uploaded is noise
chunks=$(sql whole 'SELECT count(*) FROM column_chunks')
((chunks > 0))
if bytes "SELECT encode(payload, 'base64') FROM column_chunks LIMIT 1" | zstd --decompress --quiet >/dev/null 2>&1; then
    echo "rows are read without the key" >&2
    exit 1
fi
step "done"
