#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes what a client of the suite runs from, once, in the cache, and prints its path.
#
#   build.sh python   a venv with the locked packages: its python
#   build.sh node     a directory with the locked packages and the scenario
#   build.sh rust     the scenario as a program
#   build.sh java     a directory with the scenario's jar and those it needs
#
# A directory is keyed by the locked versions and by the tool that made it, so two work trees share one cache; what
# depends on the scenario's own source is keyed by that. It must never write into the source tree.
#
#   SUBLET_CACHE        where built things live (default ${XDG_CACHE_HOME:-~/.cache}/sublet)
#   SUBLET_BUILD_WRAP   a command put before every compiler run, e.g. "nice -n 5"
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
CACHE=${SUBLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sublet}/clients
RUST_OLDEST=1.88
read -ra WRAP <<<"${SUBLET_BUILD_WRAP:-}"

die()
{
    echo "clients: $*" >&2
    exit 1
}

# key FILE-OR-WORD...: a name for the contents of files, and words
key()
{
    local x
    for x in "$@"; do
        if [ -f "$x" ]; then cat "$x"; else echo "$x"; fi
    done | sha256sum | cut -c1-12
}

needs()
{
    command -v "$1" >/dev/null || die "no $1 here: tests/setup clients installs Debian's $2"
}

python()
{
    local dir tmp
    dir=$CACHE/python-$(key "$HERE/python/requirements.txt" "$(/usr/bin/python3 --version)")
    if [ ! -e "$dir/complete" ]; then
        rm -rf "$dir"
        /usr/bin/python3 -m venv "$dir"
        "$dir/bin/pip" install -q --no-deps -r "$HERE/python/requirements.txt"
        touch "$dir/complete"
    fi >&2
    echo "$dir/bin/python"
}

node()
{
    local dir
    needs npm "nodejs and npm"
    dir=$CACHE/node-$(key "$HERE/node/package-lock.json" "$(command node --version)")
    if [ ! -e "$dir/complete" ]; then
        rm -rf "$dir"
        mkdir -p "$dir"
        cp "$HERE"/node/package*.json "$dir"
        (cd "$dir" && npm ci --no-audit --no-fund --ignore-scripts)
        touch "$dir/complete"
    fi >&2
    # An import is looked for beside the file that has it.
    dir=$dir/scenario-$(key "$HERE"/node/*.mjs)
    [ -d "$dir" ] || { mkdir -p "$dir.new" && cp "$HERE"/node/*.mjs "$dir.new" && mv -T "$dir.new" "$dir"; }
    echo "$dir"
}

rust()
{
    local dir program version
    needs cargo "cargo-web and rustc-web"
    version=$(rustc --version | cut -d' ' -f2)
    printf '%s\n' "$RUST_OLDEST" "$version" | sort -C -V || die "rustc $version is older than $RUST_OLDEST"
    dir=$CACHE/rust-$(key "$HERE/rust/Cargo.lock" "$version")
    program=$dir/client-$(key "$HERE"/rust/Cargo.toml "$HERE"/rust/src/*.rs)
    if [ ! -x "$program" ]; then
        mkdir -p "$dir"
        export CARGO_TARGET_DIR=$dir/target
        cargo fetch -q --locked --manifest-path "$HERE/rust/Cargo.toml"
        "${WRAP[@]}" cargo build -q --release --frozen --manifest-path "$HERE/rust/Cargo.toml"
        cp "$dir/target/release/sublet-test-client" "$program.new"
        mv "$program.new" "$program"
    fi >&2
    echo "$program"
}

java()
{
    local dir
    needs mvn "maven and default-jdk-headless"
    dir=$CACHE/java-$(key "$HERE/java/pom.xml" "$HERE"/java/src/*.java "$(command java -version 2>&1)")
    if [ ! -e "$dir/complete" ]; then
        rm -rf "$dir"
        mkdir -p "$dir"
        "${WRAP[@]}" mvn -q -B -f "$HERE/java/pom.xml" -Dbuilt="$dir" package
        touch "$dir/complete"
    fi >&2
    echo "$dir"
}

case ${1:-} in
python | node | rust | java)
    mkdir -p "$CACHE"
    exec 9>"$CACHE/.lock-$1"
    flock 9
    "$1" 9>&-
    ;;
*) die "unknown client: ${1:-none}" ;;
esac
