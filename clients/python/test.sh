#!/usr/bin/env bash
# Tests the package against a running service at URL with a key of the preset pipeline, which stands in KEY_FILE. The key in
# ADMIN_KEY_FILE only declares a population. Then the package is installed from its folder, which builds a wheel.
#
#   clients/python/test.sh URL KEY_FILE ADMIN_KEY_FILE
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
url=$1 key=$(<"$2") admin=$(<"$3")

# in a copy, so that what was generated earlier is not tested
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$here/src" "$here/tests" "$here/examples" "$work"
rm -rf "$work/src/guardian/_generated"
python=$("$here/../../scripts/venv.sh")
if "$python" -m pip wheel --quiet --no-deps --wheel-dir "$work/incomplete" "$work" >/dev/null 2>&1; then
    echo "a package without the generated calls was built" >&2
    exit 1
fi
"$here/generate.sh" "$work/src/guardian/_generated"
cd "$work"
"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" -m mypy src/guardian
GUARDIAN_URL=$url GUARDIAN_KEY=$key GUARDIAN_ADMIN_KEY=$admin "$python" -m pytest -q -p no:cacheprovider

# as users install it, with nothing of this folder in sight
"$python" -m venv --without-pip "$work/fresh"
"$python" -m pip --python "$work/fresh/bin/python" install --quiet --disable-pip-version-check --no-compile "$work"
(cd / && GUARDIAN_URL=$url GUARDIAN_KEY=$key "$work/fresh/bin/python" -c "
import os
from importlib.resources import files
from guardian import Guardian
assert files('guardian').joinpath('py.typed').is_file()
with Guardian(os.environ['GUARDIAN_URL'], os.environ['GUARDIAN_KEY']) as service:
    try:
        service.release('018f0000-0000-7000-8000-000000000000', dict)
    except Exception as refused:
        assert getattr(refused, 'status', None) == 404, refused
    else:
        raise SystemExit('there is no such release')
")
echo "the Python client works"
