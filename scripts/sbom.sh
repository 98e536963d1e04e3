#!/usr/bin/env bash
# Prints what the program is built from, as CycloneDX 1.5 in JSON: every package that Cargo.lock names for the program itself, without
# those of tests, with licence, checksum and who depends on whom. The same input gives the same output. Needs cargo and jq.
#
#   scripts/sbom.sh > guardian.cdx.json
#   TARGET=aarch64-unknown-linux-gnu scripts/sbom.sh
#   FEATURES=spark scripts/sbom.sh           of the image
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
checksums=$(awk -F'"' '
    /^name = / { name = $2 }
    /^version = / { version = $2 }
    /^checksum = / { printf "%s %s %s\n", name, version, $2 }' Cargo.lock)

cargo metadata --format-version 1 --locked --features "${FEATURES:-}" --filter-platform "$target" |
    jq --arg checksums "$checksums" --arg target "$target" '
    ($checksums | split("\n") | map(split(" ") | {key: "\(.[0]) \(.[1])", value: .[2]}) | from_entries) as $checksums
    | (.packages | map({key: .id, value: .}) | from_entries) as $packages
    | (.resolve.nodes | map({key: .id, value: [.deps[] | select(any(.dep_kinds[]; .kind != "dev")) | .pkg]}) | from_entries) as $needed
    | .resolve.root as $root
    | def reached: . as $seen | (($seen + [$seen[] | $needed[.][]]) | unique) as $more
        | if $more == $seen then $seen else $more | reached end;
      def purl: $packages[.] | "pkg:cargo/\(.name)@\(.version)";
      def component: . as $id | $packages[.] | {
        type: (if $id == $root then "application" else "library" end),
        "bom-ref": ($id | purl), name, version, purl: ($id | purl)
      }
      + (if .description then {description: (.description | gsub("\\s+"; " ") | ltrimstr(" ") | rtrimstr(" "))} else {} end)
      # with a slash in manifests of old packages
      + (if .license then {licenses: [{expression: (.license | gsub("\\s*/\\s*"; " OR "))}]} else {} end)
      + ($checksums["\(.name) \(.version)"] as $sum
        | if $sum then {hashes: [{alg: "SHA-256", content: $sum}]} else {} end)
      + (if .repository then {externalReferences: [{type: "vcs", url: .repository}]} else {} end);
    ([$root] | reached) as $all
    | {
        bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
        metadata: {component: ($root | component), properties: [{name: "cargo:target", value: $target}]},
        components: [$all[] | select(. != $root) | component] | sort_by(.purl),
        dependencies: [$all[] | {ref: purl, dependsOn: [$needed[.][] | purl] | unique}] | sort_by(.ref)
      }'
