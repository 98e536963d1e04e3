#!/bin/sh
# Publishes last night's export of a table that changes every night. For cron, which mails what stands on standard error:
#
#   15 3 * * *  publisher  /usr/local/lib/guardian/nightly.sh /etc/guardian/nightly.env
#
# The environment file sets GUARDIAN_URL, KEY_FILE (a file with a key of the preset pipeline), EXPORTS (a folder with 2026-03-01.csv, ...),
# POPULATION (whose people the exports are about), JOB (a job document without its dataset, of the method anatomy or bucketize) and
# RELEASES (a folder for 2026-03-01.zip, ...). A second argument names the night. An officer defines the population once, with
# the columns that identify its people, before anything of it is published:
#
#   curl -X PUT ... $GUARDIAN_URL/v1/populations/clinic --data '{"description": "patients of the clinic",
#       "person": [{"key_system": "patient", "columns": ["patient"]}], "republication": {}}'
#
# Every night shows everybody who is in the export, and all nights together reveal no more than one. People who are new wait
# until there are enough of them; a row whose sensitive value is another one waits until the value is back.
#
# Safe to run twice: a night that is published is left alone, and a run that was cut off is taken up where it was, because
# every request bears a key that follows from the date. An export that is like the one before gives that release again. Needs
# curl, jq, flock and GNU date.
#
# Ends with 0: published, now or before. 65: refused. 66: there is no export. 69: the service cannot be reached. 75: another run
# is under way. 78: the environment file is not right.
set -eu
umask 077

fail() {
    status=$1
    shift
    echo "nightly: $*" >&2
    exit "$status"
}

[ -r "${1:-}" ] || fail 78 "usage: nightly.sh ENVIRONMENT-FILE [YYYY-MM-DD]"
# without a slash it would be looked for in PATH
case $1 in */*) environment=$1 ;; *) environment=./$1 ;; esac
# shellcheck source=/dev/null
. "$environment"
for name in GUARDIAN_URL KEY_FILE EXPORTS POPULATION JOB RELEASES; do
    eval "[ -n \"\${$name:-}\" ]" || fail 78 "$1 does not set $name"
done
night=${2:-$(date --date=yesterday +%F)}
export=$EXPORTS/$night.csv
archive=$RELEASES/$night.zip

mkdir -p "$RELEASES"
exec 9>"$RELEASES/.lock"
flock --nonblock 9 || fail 75 "another run is under way"
[ ! -e "$archive" ] || exit 0
[ -r "$export" ] || fail 66 "there is no $export"

# beside the archive, so that a rename puts it in its place at once
work=$(mktemp -d "$RELEASES/.$night.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# not on the command line, where others could see it
printf 'header = "Authorization: Bearer %s"\n' "$(cat "$KEY_FILE")" >"$work/key"

# call PATH [curl options]: the answer is in $work/body
call() {
    path=$1
    shift
    attempt=1
    while :; do
        code=$(curl --silent --show-error --config "$work/key" "$@" --output "$work/body" --dump-header "$work/headers" \
            --connect-timeout 5 --write-out '%{http_code}' "$GUARDIAN_URL$path" 2>"$work/said") || code=000
        after=$(sed -n 's/^[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([0-9]*\).*/\1/p' "$work/headers" 2>/dev/null | tail -n 1)
        case $code in
        2??) return 0 ;;
        000 | 429 | 502 | 503 | 504) ;;
        409) [ -n "$after" ] || break ;;
        *) break ;;
        esac
        [ "$attempt" -lt "${TRIES:-10}" ] || fail 69 "$path: $code $(cat "$work/said")"
        sleep "${after:-$attempt}"
        attempt=$((attempt + 1))
    done
    fail 65 "$path: $code $(said .)"
}

# what a problem document at a place of the answer says
said() {
    jq -r "$1"' | "\(.title): \(.detail)", (.errors[]? | "  \(.pointer): \(.detail)")' "$work/body" 2>/dev/null || cat "$work/body"
}

call "/v1/datasets?name=export-$night&population=$POPULATION" --header "Content-Type: text/csv" \
    --header "Idempotency-Key: export-$night" --data-binary "@$export"
jq -r '.warnings[]? | "nightly: \(.type): \(.detail)"' "$work/body" >&2
jq --arg dataset "$(jq -r .id "$work/body")" '. + {$dataset, republish: (.republish // {})}' "$JOB" >"$work/job.json"
call "/v1/jobs" --header "Content-Type: application/json" --header "Idempotency-Key: publish-$night" \
    --data-binary "@$work/job.json"
job=$(jq -r .id "$work/body")
while :; do
    state=$(jq -r .status "$work/body")
    case $state in
    queued | running) call "/v1/jobs/$job?wait=60" ;;
    succeeded) break ;;
    *)
        fail 65 "the job $job is $state: $(said .problem)"
        ;;
    esac
done
release=$(jq -r .release "$work/body")
call "/v1/releases/$release"
claim=$(jq -r .composition "$work/body")
[ "$claim" = enforced ] || fail 65 "the release $release is no more than $claim: its people are not identified"
call "/v1/releases/$release/archive"
mv "$work/body" "$archive"
