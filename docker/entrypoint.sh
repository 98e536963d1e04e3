#!/bin/sh
# Runs guardian. The database's password may stand in a file, which PGPASSWORD_FILE names, so that neither DATABASE_URL nor the
# container's description holds it.
set -eu

if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$PGPASSWORD_FILE")
    export PGPASSWORD
    unset PGPASSWORD_FILE
fi

# a process of a shared store would make a key of its own, which is gone with the container, and with it what the key wraps
if [ "${1:-}" = serve ] || [ "${1:-}" = worker ]; then
    case " $* ${GUARDIAN_STORE:-}" in
    *" --master-key"* | *" --config"* | *" --store embedded "* | *" --store=embedded "* | *" embedded") named=yes ;;
    *) named=${GUARDIAN_MASTER_KEY:-}${GUARDIAN_MASTER_KEY_FILE:-}${GUARDIAN_CONFIG:-} ;;
    esac
    if [ -z "$named" ]; then
        echo "guardian: name the master key of the store with GUARDIAN_MASTER_KEY_FILE, or say GUARDIAN_STORE=embedded" >&2
        exit 2
    fi
fi
exec guardian "$@"
