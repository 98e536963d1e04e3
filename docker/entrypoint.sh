#!/bin/sh
# Runs guardian. The database's password may stand in a file, which PGPASSWORD_FILE names, so that neither DATABASE_URL nor the
# container's description holds it.
set -eu

if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$PGPASSWORD_FILE")
    export PGPASSWORD
    unset PGPASSWORD_FILE
fi
exec guardian "$@"
