#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# gomod.sh MODULE@VERSION : prints the directory of a Go module in the module cache, downloaded if missing.
# Tests read published facts there (schemas, round-trip data, CRDs); nothing of it is copied into the tree.
set -euo pipefail

go=$("$(dirname "$0")/build-host.sh" --go)
# The surrounding of the download is an empty module, so that no go.mod nearby has a say.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf 'module example.invalid/modules\n\ngo 1.26.0\n' >"$tmp/go.mod"
out=$(cd "$tmp" && GOTOOLCHAIN=local GOWORK=off "$go" mod download -json "$1" 2>&1) || true
sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<<"$out" | grep . || {
    echo "gomod: $1 could not be downloaded: $out" >&2
    exit 1
}
