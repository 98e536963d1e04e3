#!/usr/bin/env bash
# Makes the base images that Dockerfile and docker-compose.yml name, from Debian's packages and the Rust toolchain of this machine,
# for machines without an image registry. They stand in for the official images in tests, under their names; images that are there
# already are kept. Needs root, docker and mmdebstrap, which is installed where it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v mmdebstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap </dev/null >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# image NAME: how Dockerfile or docker-compose.yml names it, with its tag
image() {
    grep -hoE "(FROM|image:) $1:[^ ]+" Dockerfile docker-compose.yml | head -1 | sed 's/.* //'
}

# tree PACKAGES: a Debian system with these packages, in $work/root
tree() {
    rm -rf "$work/root"
    mmdebstrap --quiet --variant=minbase --include="$1" --dpkgopt='path-exclude=/usr/share/doc/*' bookworm "$work/root"
    # downloads from inside trust what this machine trusts
    install -D /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
    rm -f "$work/root/etc/resolv.conf"
}

# store NAME [CHANGE]...: the tree as an image, with changes in the words of a Dockerfile
store() {
    local name=$1 changes=()
    shift
    for change in "$@"; do
        changes+=(--change "$change")
    done
    tar --create --one-file-system --directory "$work/root" . | docker import "${changes[@]}" - "$name" >/dev/null
    echo "made $name"
}

# absent NAME: whether the image has to be made
absent() {
    ! docker image inspect "$1" >/dev/null 2>&1
}

debian=$(image debian)
if absent "$debian"; then
    tree ca-certificates
    store "$debian" 'CMD ["bash"]'
fi

rust=$(image rust)
if absent "$rust"; then
    tree ca-certificates,gcc,libc6-dev
    mkdir -p "$work/root/usr/local/rust" "$work/root/usr/local/cargo"
    cp -a "$(rustc --print sysroot)/." "$work/root/usr/local/rust"
    rm -rf "$work/root/usr/local/rust/share/doc"
    store "$rust" 'ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        'ENV CARGO_HOME=/usr/local/cargo' 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' 'CMD ["bash"]'
fi

postgres=$(image postgres)
if absent "$postgres"; then
    tree postgresql
    install --mode=0755 scripts/base_images/postgres.sh "$work/root/usr/local/bin/docker-entrypoint.sh"
    version=$(ls "$work/root/usr/lib/postgresql")
    store "$postgres" "ENV PATH=/usr/lib/postgresql/$version/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        'ENV PGDATA=/var/lib/postgresql/data' 'VOLUME /var/lib/postgresql/data' \
        'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["postgres"]'
fi

nginx=$(image nginx)
if absent "$nginx"; then
    tree nginx-light
    store "$nginx" 'CMD ["nginx", "-g", "daemon off;"]'
fi

prometheus=$(image prom/prometheus)
if absent "$prometheus"; then
    tree prometheus
    install --directory --owner=65534 --group=65534 "$work/root/prometheus"
    store "$prometheus" 'USER 65534:65534' 'WORKDIR /prometheus' 'VOLUME /prometheus' 'ENTRYPOINT ["/usr/bin/prometheus"]'
fi

alertmanager=$(image prom/alertmanager)
if absent "$alertmanager"; then
    tree prometheus-alertmanager
    install --directory --owner=65534 --group=65534 "$work/root/alertmanager"
    store "$alertmanager" 'USER 65534:65534' 'WORKDIR /alertmanager' 'VOLUME /alertmanager' \
        'ENTRYPOINT ["/usr/bin/prometheus-alertmanager"]'
fi
