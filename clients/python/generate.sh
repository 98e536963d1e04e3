#!/usr/bin/env bash
# Generates the calls under the package from the committed document, into FOLDER: by default where the package looks for them.
#
#   clients/python/generate.sh [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(realpath --canonicalize-missing "${1:-$here/src/guardian/_generated}")
cd "$here/../.."

python=$(scripts/venv.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# of several media types of a body, generated code sends any; this package sends one
jq '.paths["/v1/datasets"].post.requestBody.content |= with_entries(select(.key == "application/vnd.apache.parquet"))' \
    openapi/openapi.json >"$work/openapi.json"
PATH=${python%/*}:$PATH openapi-python-client generate --path "$work/openapi.json" --config scripts/generated_client.yaml \
    --output-path "$work/generated" --meta none --fail-on-warning >&2
rm -rf "$work/generated/.ruff_cache" "$folder"
mv "$work/generated" "$folder"
