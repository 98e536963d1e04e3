#!/usr/bin/env bash
# Runs all tests; arguments go to the test runner. SQLite and zstd are built from C, and the README's session calls curl: what
# is missing is installed where we may.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v make >/dev/null || missing+=(make)
command -v curl >/dev/null || missing+=(curl)
if ((${#missing[@]})); then
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "please install: ${missing[*]}" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq </dev/null >&2
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
fi

if cargo nextest --version >/dev/null 2>&1; then
    exec cargo nextest run --locked "$@" </dev/null
fi
exec cargo test --locked --lib --bins --tests "$@" </dev/null
