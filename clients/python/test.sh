#!/usr/bin/env bash
# Tests the package against a running service at URL, whose key that may do everything stands in KEY_FILE.
#
#   clients/python/test.sh URL KEY_FILE
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
url=$1 key=$(<"$2")

# in a copy, so that what was generated earlier is not tested
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/pyproject.toml" "$here/src" "$here/tests" "$here/examples" "$work"
"$here/generate.sh" "$work/src/guardian/_generated"
python=$("$here/../../scripts/venv.sh")
cd "$work"
"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" -m mypy src/guardian
GUARDIAN_URL=$url GUARDIAN_KEY=$key "$python" -m pytest -q -p no:cacheprovider
echo "the Python client works"
