#!/usr/bin/env bash
# A private Postgres for tests: its own cluster in a temporary folder, reached through a socket there, deleted afterwards.
#
#   scripts/pg-tmp.sh run CMD...   runs CMD with DATABASE_URL set, and GUARDIAN_TEST_PGDATA to the folder of the cluster's files;
#                                  keeps its exit status
#   scripts/pg-tmp.sh start        prints DIR and DATABASE_URL, one a line; leaves the cluster running
#   scripts/pg-tmp.sh crash DIR    ends it without a checkpoint and starts it again, to recover
#   scripts/pg-tmp.sh stop DIR     ends it and deletes DIR
#
# PG_BINDIR says where initdb is, PGTMP_USER who owns the cluster when this runs as root (Postgres refuses to be root),
# PGTMP_ROOT where its folder is made: /tmp unless told, /dev/shm for one in memory.
# Nothing is synced to disk: a crash of the machine loses the cluster, which is all the same here.
set -euo pipefail

readonly PORT=54329 # names the socket only; no cluster listens on TCP, so clusters never meet

fail() {
    echo "pg-tmp: $*" >&2
    exit 1
}

find_bindir() {
    local found
    if [[ -n ${PG_BINDIR:-} ]]; then
        bindir=$PG_BINDIR
    elif found=$(command -v initdb); then
        bindir=$(dirname "$(readlink -f "$found")")
    else
        # Debian keeps it off PATH; the newest wins
        bindir=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    fi
    [[ -x $bindir/initdb && -x $bindir/pg_ctl ]] || fail "no Postgres here: install postgresql or set PG_BINDIR"
}

# Runs a program as the owner of the cluster, in a folder that the owner can read.
as_owner() {
    if [[ $(id -u) -ne 0 ]]; then
        (cd "$dir" && "$@")
    else
        setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups env -C "$dir" HOME="$dir" "$@"
    fi
}

find_owner() {
    owner=$(id -un)
    [[ $(id -u) -eq 0 ]] || return 0
    if [[ -n ${PGTMP_USER:-} ]]; then
        owner=$PGTMP_USER
    elif id postgres >/dev/null 2>&1; then
        owner=postgres
    else
        owner=nobody
    fi
}

is_cluster() {
    [[ ${dir##*/} == pgtmp.* && -d $dir/data ]]
}

start() {
    find_bindir
    find_owner
    # a socket's path may have 107 bytes: not under TMPDIR, which may be long
    dir=$(mktemp -d "${PGTMP_ROOT:-/tmp}/pgtmp.XXXXXX")
    chmod 755 "$dir"
    [[ $(id -u) -ne 0 ]] || chown "$owner" "$dir"
    as_owner "$bindir/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 ||
        { cat "$dir/initdb.log" >&2; fail "initdb failed"; }
    # its output goes to a file: a server that kept this script's standard output open would hang a caller that reads it
    as_owner "$bindir/pg_ctl" -w -t 60 -s -D "$dir/data" -l "$dir/server.log" start -o "-c listen_addresses='' \
-c port=$PORT -c unix_socket_directories=$dir -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
-c max_connections=200" >/dev/null </dev/null ||
        { cat "$dir/server.log" >&2; fail "the server did not start"; }
    url="postgres://postgres@localhost:$PORT/postgres?host=$dir"
}

stop() {
    # takes part in an EXIT trap: no errexit surprises, and nothing that changes the status
    if [[ -n ${dir:-} && -d $dir ]]; then
        if [[ -f $dir/data/postmaster.pid ]]; then
            as_owner "$bindir/pg_ctl" -D "$dir/data" -m immediate -s stop >/dev/null 2>&1 || true
        fi
        rm -rf -- "$dir"
    fi
    dir=
}

case ${1:-} in
run)
    shift
    [[ $# -gt 0 ]] || fail "run what?"
    child=
    finish() {
        local status=$?
        trap - EXIT INT TERM
        if [[ -n $child ]]; then kill "$child" 2>/dev/null || true; fi
        stop
        exit "$status"
    }
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start
    # in the background, so that a signal is acted on at once and not when CMD has ended; with this script's own input
    DATABASE_URL=$url GUARDIAN_TEST_PGDATA=$dir/data "$@" <&0 &
    child=$!
    status=0
    wait "$child" || status=$?
    child=
    exit "$status"
    ;;
start)
    # what fails half-way leaves nothing behind
    trap 'stop' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start
    trap - EXIT INT TERM
    printf 'DIR=%s\nDATABASE_URL=%s\n' "$dir" "$url"
    ;;
crash)
    dir=${2:-}
    is_cluster || fail "no cluster of this script: '$dir'"
    find_bindir
    owner=$(stat -c %U "$dir")
    as_owner "$bindir/pg_ctl" -w -t 60 -s -D "$dir/data" -m immediate -l "$dir/server.log" restart >/dev/null </dev/null
    ;;
stop)
    dir=${2:-}
    is_cluster || fail "no cluster of this script: '$dir'"
    find_bindir
    find_owner
    owner=$(stat -c %U "$dir")
    stop
    ;;
*)
    sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
