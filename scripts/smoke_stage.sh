# shellcheck shell=bash
# What the smoke scripts of containers have in common. Sourced; leaves the script in a copy of the files, which it takes down at its end.

docker() { command "${DOCKER:-docker}" "$@"; }
if docker compose version >/dev/null 2>&1; then compose=(docker compose); else compose=(docker-compose); fi
secrets=docker/secrets
step() { echo "$(date +%T) $*"; }

end() {
    local code=$?
    if ((code != 0)); then
        "${compose[@]}" ps >&2 || true
        "${compose[@]}" logs --tail=40 --no-color >&2 || true
    fi
    "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 || true
    rm -rf "$work"
    exit "$code"
}

# stage PROJECT FILE...: goes to a copy of the files, with secrets of its own. `$work` is removed, `$repository` is where we were.
stage() {
    repository=$PWD
    work=$(mktemp -d)
    mkdir "$work/$1"
    cp -r "${@:2}" "$work/$1"
    rm -rf "$work/$1/docker/secrets"
    cd "$work/$1"
    trap end EXIT
    mkdir -p "$secrets/first"
    head -c 32 /dev/urandom >"$secrets/master.key"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$secrets/tls.key" -out "$secrets/tls.crt" 2>/dev/null
    chmod 0400 "$secrets/master.key" "$secrets/tls.key"
    chown -R 10001:10001 "$secrets/master.key" "$secrets/first"
    chown 101:101 "$secrets/tls.key" "$secrets/tls.crt"
}
