#!/usr/bin/env bash
# Generates a Python client from the committed document and drives a running service with it, at URL, whose key that may do
# everything stands in KEY_FILE.
#
#   scripts/generated_client.sh URL KEY_FILE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$(scripts/venv.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=${python%/*}:$PATH openapi-python-client generate --path openapi/openapi.json --config scripts/generated_client.yaml \
    --output-path "$work/guardian_client" --meta none --fail-on-warning
PYTHONPATH=$work "$python" scripts/generated_client.py "$1" "$2"
