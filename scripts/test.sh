#!/usr/bin/env bash
# Runs all tests, those of the store on SQLite and on a private Postgres that lives as long as the run; arguments go to the test
# runner. SQLite and zstd are built from C; examples call curl, jq and Python, whose packages scripts/venv.sh gets; nginx is the
# gateway. What is missing is installed where we may.
# NO_POSTGRES=1 does without Postgres, NO_BROWSER=1 without a browser; their tests then say that they were skipped.
# Each property is tried on PROPTEST_CASES random cases, 64 unless told; .ci/slow tries many more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PROPTEST_CASES="${PROPTEST_CASES:-64}"

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v make >/dev/null || missing+=(make)
for program in curl jq openssl; do
    command -v "$program" >/dev/null || missing+=("$program")
done
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]] || missing+=(nginx-light)
if [[ -z ${NO_BROWSER:-} ]]; then
    command -v chromium >/dev/null || missing+=(chromium)
    command -v chromedriver >/dev/null || missing+=(chromium-driver)
    command -v pdftotext >/dev/null || missing+=(poppler-utils)
    # a page that is printed without a font has no text
    compgen -G '/usr/share/fonts/truetype/*' >/dev/null || missing+=(fonts-dejavu-core)
    export REQUIRE_BROWSER=1
fi
if [[ -z ${NO_POSTGRES:-} ]] && ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    missing+=(postgresql)
fi
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
    # tests of leases and time-outs wait, and leave their processor to others
    export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$(($(nproc) * 2))}"
    tests=(cargo nextest run --locked "$@")
else
    tests=(cargo test --locked --lib --bins --tests "$@")
fi
# in memory where there is room: tests make and drop hundreds of stores, and wait for the disk at every commit
if [[ -w /dev/shm ]] && (($(df --output=avail /dev/shm | tail -n 1) > 4 << 20)); then
    export PGTMP_ROOT="${PGTMP_ROOT:-/dev/shm}"
    if [[ -z ${TMPDIR:-} ]]; then
        TMPDIR=$(mktemp -d /dev/shm/guardian-tests.XXXXXX)
        trap 'rm -rf "$TMPDIR"' EXIT
        export TMPDIR
    fi
fi
if [[ -n ${NO_POSTGRES:-} ]]; then
    "${tests[@]}" </dev/null
else
    REQUIRE_POSTGRES=1 scripts/pg-tmp.sh run "${tests[@]}" </dev/null
fi
