#!/usr/bin/env bash
# A session with curl and jq, in functions to take over: upload, plan, a job that is held, its events, approval, downloads.
#
#   GUARDIAN_URL=https://host/guardian GUARDIAN_KEY=... OFFICER_KEY=... examples/session.sh [TABLE.csv [JOB.json [FOLDER]]]
#
# The keys have the presets pipeline and officer: who publishes a table does not approve it.
# What is asked for twice is made once: every request that makes something bears a key that follows from its content.
set -euo pipefail

url=${GUARDIAN_URL:-http://127.0.0.1:8080}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# in a file, because others can see a command line
key=()
if [[ -n ${GUARDIAN_KEY:-} ]]; then
    printf 'header = "Authorization: Bearer %s"\n' "$GUARDIAN_KEY" >"$work/key"
    key=(--config "$work/key")
fi
officer=("${key[@]}")
if [[ -n ${OFFICER_KEY:-} ]]; then
    printf 'header = "Authorization: Bearer %s"\n' "$OFFICER_KEY" >"$work/officer"
    officer=(--config "$work/officer")
fi

# as_officer COMMAND...: runs a function with the officer's key
as_officer() {
    local key=("${officer[@]}")
    "$@"
}

# call METHOD PATH [curl options]: the answer is in $work/body, its headers in $work/headers. Waits and tries again where that
# helps; a refusal is printed on standard error, and the function fails.
call() {
    local method=$1 path=$2 status seconds attempt
    shift 2
    for attempt in 1 2 3 4 5 6; do
        status=$(curl --silent --show-error --request "$method" "${key[@]}" "$@" \
            --output "$work/body" --dump-header "$work/headers" --write-out '%{http_code}' "$url$path") || status=000
        [[ $status != 2* ]] || return 0
        seconds=$(sed -n 's/^retry-after: *\([0-9]*\).*/\1/Ip' "$work/headers" 2>/dev/null | tail -n 1)
        # too many at once, away for a moment, no answer, or the first request with this key still runs
        case $status in
        429 | 503 | 000) ;;
        409) [[ -n $seconds ]] || break ;;
        *) break ;;
        esac
        [[ $attempt == 6 ]] || sleep "${seconds:-$attempt}"
    done
    echo "$method $path: $status" >&2
    jq -r '"\(.title): \(.detail)", (.errors[]? | "  \(.pointer): \(.detail)")' "$work/body" >&2 2>/dev/null || true
    return 1
}

sha256() { sha256sum "$@" | cut -d ' ' -f 1; }

# upload FILE NAME: the id of the dataset
upload() {
    local digest
    digest=$(openssl dgst -sha256 -binary "$1" | base64)
    call POST "/v1/datasets?name=$2" --header "Content-Type: text/csv" --header "Content-Digest: sha-256=:$digest:" \
        --header "Idempotency-Key: upload-$2-$(sha256 "$1")" --data-binary "@$1"
    jq -r .id "$work/body"
}

# plan JOB.json: fails when the job would be refused, and says why
plan() {
    call POST /v1/plans --header "Content-Type: application/json" --data-binary "@$1"
    jq -r '.rules[] | "\(.quasi_identifiers | join(", ")) -> \(.sensitive | join(", ")): \(.status), l up to \(.largest_l)"' \
        "$work/body"
    jq -r '.problems[] | .detail, (.errors[]? | "  \(.pointer): \(.detail)")' "$work/body" >&2
    jq -e .feasible "$work/body" >/dev/null
}

# submit JOB.json: the id of the job
submit() {
    call POST /v1/jobs --header "Content-Type: application/json" --header "Idempotency-Key: job-$(sha256 "$1")" \
        --data-binary "@$1"
    jq -r .id "$work/body"
}

# follow JOB: tells each change of the job until it has ended
follow() {
    curl --silent --show-error --no-buffer "${key[@]}" "$url/v1/jobs/$1/events" | sed -un 's/^data: *//p' |
        jq -r --unbuffered '"\(.status) \(.progress.phase // "")"'
}

# wait_for JOB: the id of its release; fails when there is none
wait_for() {
    local status=queued
    while [[ $status == queued || $status == running ]]; do
        call GET "/v1/jobs/$1?wait=30"
        status=$(jq -r .status "$work/body")
    done
    if [[ $status != succeeded ]]; then
        jq -r '"the job is \(.status): \(.problem.detail)", (.problem.errors[]? | "  \(.pointer): \(.detail)")' "$work/body" >&2
        return 1
    fi
    jq -r .release "$work/body"
}

# approve RELEASE REASON: publishes a release that waits. When the answer is lost, the second try finds it published.
approve() {
    if ! call POST "/v1/releases/$1/approve" --header "Content-Type: application/json" \
        --data-binary "$(jq -n --arg reason "$2" '{$reason}')" 2>"$work/said"; then
        call GET "/v1/releases/$1"
        [[ $(jq -r .status "$work/body") == published ]] || { cat "$work/said" >&2; return 1; }
    fi
    jq -r '"the release is \(.status)"' "$work/body"
}

# download RELEASE FOLDER: the manifest, every part as CSV, checked, and as Parquet, and the archive
download() {
    local table part file hash
    mkdir -p "$2"
    call GET "/v1/releases/$1"
    cp "$work/body" "$2/manifest.json"
    while IFS=$'\t' read -r table part file hash; do
        call GET "/v1/releases/$1/tables/$table/parts/$part?format=csv"
        [[ $(sha256 "$work/body") == "$hash" ]] || { echo "$file is not what the manifest says" >&2; return 1; }
        cp "$work/body" "$2/$file"
        call GET "/v1/releases/$1/tables/$table/parts/$part?format=parquet"
        cp "$work/body" "$2/${file%.csv}.parquet"
        echo "$file: $(($(wc -l <"$2/$file") - 1)) rows"
    done < <(jq -r '.tables[] | .name as $table | .parts[] | [$table, .name, .file, .sha256] | @tsv' "$2/manifest.json")
    call GET "/v1/releases/$1/archive"
    cp "$work/body" "$2/release.zip"
}

main() {
    local table=${1:-$here/data/hospital.csv} job=${2:-$here/hospital.json} folder=${3:-release} dataset id release
    dataset=$(upload "$table" "$(basename "$table" .csv)")
    # the release waits until somebody approves it
    jq --arg dataset "$dataset" '. + {$dataset, hold: true}' "$job" >"$work/job.json"
    plan "$work/job.json"
    id=$(submit "$work/job.json")
    follow "$id"
    release=$(wait_for "$id")
    # others do not see what waits
    as_officer call GET "/v1/releases/$release"
    if [[ $(jq -r .status "$work/body") == held ]]; then
        as_officer approve "$release" "the rules are those that were agreed on"
    fi
    download "$release" "$folder"
}

# sourced, it gives the functions alone
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    main "$@"
fi
