#!/usr/bin/env bash
# Prints the Python that tests run examples with: of an environment in target/venv, made once for what scripts/requirements.txt
# pins. Fails when there is no python3 with venv, or the packages cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${CARGO_TARGET_DIR:-target}/venv
wanted=$(cat scripts/requirements.txt examples/requirements.txt)
mkdir -p "${venv%/*}"
# tests that run at the same time wait for the first
exec 9>"$venv.lock"
flock 9
if [[ ! -x $venv/bin/python || $(cat "$venv/made-of" 2>/dev/null) != "$wanted" ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --no-compile --quiet --disable-pip-version-check --no-input -r scripts/requirements.txt >&2
    printf '%s\n' "$wanted" >"$venv/made-of"
fi
realpath --no-symlinks "$venv/bin/python"
