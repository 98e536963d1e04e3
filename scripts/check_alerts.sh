#!/usr/bin/env bash
# Checks the configuration of Prometheus and Alertmanager with their own tools, and lets the alerts fire on made-up metrics. The tools
# are those of Debian's packages, which are installed where we may.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v promtool >/dev/null || ! command -v amtool >/dev/null; then
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "please install: prometheus prometheus-alertmanager" >&2
        exit 1
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # unpacked and not installed: their services would start
    chmod 755 "$work"
    (cd "$work" && apt-get update -qq && apt-get download -qq prometheus prometheus-alertmanager) </dev/null >&2
    for package in "$work"/*.deb; do
        dpkg --extract "$package" "$work/root"
    done
    PATH=$PATH:$work/root/usr/bin
fi

promtool check config docker/prometheus.yml
promtool test rules tests/prometheus/alerts.yml
amtool check-config docker/alertmanager.yml
# each severity of an alert has a receiver of its own
for severity in $(sed -n 's/.*severity: \([a-z]*\).*/\1/p' docker/alerts.yml | sort -u); do
    amtool config routes test --config.file=docker/alertmanager.yml --verify.receivers="$severity" "severity=$severity"
done
