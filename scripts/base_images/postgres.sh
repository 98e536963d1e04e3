#!/bin/sh
# Starts Postgres as the official image does: makes the cluster and the database on an empty volume, then serves.
set -eu

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 0700 "$PGDATA" /run/postgresql
    # the secret is readable by root alone
    if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
        install -o postgres -g postgres -m 0400 "$POSTGRES_PASSWORD_FILE" /run/postgresql/password
    fi
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086 # several arguments
    initdb --username="$user" --pwfile=/run/postgresql/password ${POSTGRES_INITDB_ARGS:-} --pgdata="$PGDATA"
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    if [ "$database" != postgres ]; then
        echo "CREATE DATABASE \"$database\"" | postgres --single -j -D "$PGDATA" postgres
    fi
fi
rm -f /run/postgresql/password
exec "$@" -c listen_addresses='*'
