#!/usr/bin/env bash
# Generates a TypeScript client from the committed document, with a generator in wide use, compiles it under strict rules and drives
# a service with it, which is started for it.
#
#   scripts/typescript_client.sh
#
# Needs java, node, tsc and axios; installs them with apt-get where it may. GUARDIAN names a binary that is built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=7.26.0
readonly MODULES=/usr/share/nodejs
missing=()
command -v java >/dev/null || missing+=(default-jre-headless)
command -v node >/dev/null || missing+=(nodejs)
command -v tsc >/dev/null || missing+=(node-typescript)
[[ -d $MODULES/axios ]] || missing+=(node-axios)
if ((${#missing[@]})); then
    echo "typescript: installs ${missing[*]}" >&2
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
[[ -n ${GUARDIAN:-} ]] || cargo build --quiet --locked --bin guardian </dev/null
guardian=$(realpath "${GUARDIAN:-${CARGO_TARGET_DIR:-target}/debug/guardian}")

home=$(mktemp -d)
server=
finish() {
    local status=$?
    trap - EXIT
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if ((status)) && [[ -s $home/log ]]; then
        tail -n 20 "$home/log" >&2
    fi
    rm -rf -- "$home"
    exit "$status"
}
trap finish EXIT
unset DATABASE_URL GUARDIAN_STORE

# the generator is one file of Java, which the package carries
venv=${CARGO_TARGET_DIR:-target}/openapi-generator
if ! "$venv/bin/pip" show openapi-generator-cli 2>/dev/null | grep -qF "Version: $VERSION"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "openapi-generator-cli==$VERSION"
fi
jar=$(find "$venv" -name openapi-generator.jar)
java -jar "$jar" generate -i openapi/openapi.json -g typescript-axios -o "$home/src/client" >"$home/log" 2>&1
cp scripts/typescript_client.ts "$home/src/main.ts"
# the client names a type that is younger than axios may be here
cat >"$home/src/axios.d.ts" <<'TYPES'
import "axios";
declare module "axios" {
    export type RawAxiosRequestConfig<D = any> = AxiosRequestConfig<D>;
}
TYPES
grep -q RawAxiosRequestConfig "$MODULES/axios/index.d.ts" && rm "$home/src/axios.d.ts"
cat >"$home/tsconfig.json" <<JSON
{"compilerOptions": {"target": "es2020", "module": "commonjs", "moduleResolution": "node", "strict": true, "types": [],
    "lib": ["es2020", "dom"], "outDir": "js", "baseUrl": "$MODULES"}, "include": ["src/main.ts", "src/axios.d.ts"]}
JSON
tsc -p "$home"

# the key is made while no service has the store
"$guardian" keys create --data "$home/data" --name client --preset admin 2>"$home/log" | grep -o 'gk_[0-9a-f_]*' >"$home/key"
"$guardian" serve --auth keys --data "$home/data" --listen 127.0.0.1:0 >"$home/serve.out" 2>"$home/log" &
server=$!
until grep -q 'http://' "$home/serve.out"; do
    kill -0 "$server" || exit 1
    sleep 0.1
done
url=$(grep -o 'http://[0-9.:]*' "$home/serve.out" | head -n 1)
NODE_PATH=$MODULES node "$home/js/main.js" "$url" "$home/key" examples/data/hospital.csv
