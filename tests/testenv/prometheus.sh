#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# prometheus.sh : prints the directory of Debian's prometheus and promtool, unpacked in the cache if missing.
# Unpacked rather than installed: the package starts a server of its own.
set -euo pipefail

CACHE=${SUBLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sublet}

offered()
{
    apt-cache policy prometheus 2>/dev/null | sed -n 's/^ *Candidate: \([^(].*\)/\1/p'
}

version=$(offered)
if [ -z "$version" ]; then
    if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo apt-get update -qq; fi
    version=$(offered)
fi
[ -n "$version" ] || {
    echo "prometheus.sh: Debian's package prometheus is not to be had" >&2
    exit 1
}
to=$CACHE/prometheus-$version
if [ ! -x "$to/usr/bin/promtool" ]; then
    mkdir -p "$CACHE"
    tmp=$(mktemp -d "$CACHE/prometheus.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    (cd "$tmp" && apt-get -o APT::Sandbox::User="$(id -un)" download -qq "prometheus=$version" >&2 && dpkg-deb -x ./*.deb root)
    rm -rf "$to"
    mv "$tmp/root" "$to"
fi
echo "$to/usr/bin"
