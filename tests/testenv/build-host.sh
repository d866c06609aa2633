#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the real Kubernetes host of the integration tests from published Go modules, once.
#
#   build-host.sh [PROGRAM...]   build what is missing (default: everything a test session starts)
#   build-host.sh node           and what a real node runs
#   build-host.sh bench          and what only tests/bench compares with
#   build-host.sh minors         and the control planes of the other minor versions that `tests/run minors` is run against
#   build-host.sh --missing ...  print what of it is still to be built, build nothing
#   build-host.sh --dir          print the directory the programs are in, build nothing
#   build-host.sh --go           print a Go that is recent enough, fetched if the machine has none
#   build-host.sh --node         print the names of what a real node runs beside that
#   build-host.sh --bench        print the names of what only tests/bench compares with
#   build-host.sh --minors       print those versions
#   build-host.sh --clients      print the names of what the suite of clients runs beside that
#   build-host.sh --queues       print the names of queueing systems, built on request: half an hour of one processor
#   build-host.sh --operator     print the name of the operator of the tests, which is of this tree and keyed by its sources
#
# The directory is keyed by versions and recipe, so a changed version never meets an old binary, and two
# work trees share one cache. A program appears in it complete or not at all (built beside, then renamed).
# It must never write into the source tree, never ask for a root password, never start anything.
#
#   SUBLET_CACHE        where built things live (default ${XDG_CACHE_HOME:-~/.cache}/sublet)
#   SUBLET_HAMI         HAMi's repository, or a copy of it with its tags (default: the one on GitHub)
#   SUBLET_BUILD_WRAP   a command put before every compiler run, e.g. "nice -n 5"
set -euo pipefail

KUBERNETES=1.36.3
ETCD=3.6.8
KWOK=0.8.0
HELM=4.3.1
# In the name of their program, not in the key below: a newer one leaves the others as they are.
HELM3=3.22.0
H2SPEC=2.2.1 # the newest the module proxy has
CONTAINERD=2.4.2
RUNC=1.4.0
COREDNS=1.15.0
KUEUE=0.17.0
KAI=0.12.0      # KAI and Volcano: the newest that the module proxy has
VOLCANO=1.10.0
HAMI=2.10.0     # from its repository: the module proxy has none
NATIVE=1.37.2   # gangs of Kubernetes itself: the first minor whose groups may change their size
GO_OLDEST=1.26.3 # what the newest of the modules wants, the install manifests' among them
GO_FETCH=1.26.5  # the one that is fetched where the machine's is older
RECIPE=1         # to be raised when the way of building changes

SOURCES=$(cd "$(dirname "$0")/../integration/operator" && pwd)
OPERATOR=operator-$(cat "$SOURCES"/*.go "$SOURCES"/go.mod "$SOURCES"/go.sum | sha256sum | cut -c1-12)

CACHE=${SUBLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sublet}
KEY=$(printf '%s\n' "$KUBERNETES" "$ETCD" "$KWOK" "$HELM" "$RECIPE" "$(uname -m)" | sha256sum | cut -c1-12)
HOST=$CACHE/host-$KEY
BIN=$HOST/bin
read -ra WRAP <<<"${SUBLET_BUILD_WRAP:-}"

# program -> package and the recipe that builds it; the order is the order of need
DEFAULT=(kube-apiserver etcd kubectl kube-controller-manager kube-scheduler kwok stages.yaml helm h2spec-$H2SPEC "$OPERATOR")
NODE=(kubelet kube-proxy "containerd-$CONTAINERD" "runc-$RUNC" "coredns-$COREDNS" agnhost)
BENCH=("coredns-bind-$COREDNS")
CLIENTS=("helm3-$HELM3")
QUEUES=("kueue-$KUEUE" {kai-scheduler,kai-podgrouper,kai-binder}-$KAI {volcano-scheduler,volcano-controller-manager}-$VOLCANO
    hami-scheduler-$HAMI kube-{apiserver,controller-manager,scheduler}-$NATIVE)
MINORS=(1.34.4 1.35.4 1.37.2) # the newest of each that the module proxy has
for_minors()
{
    local v
    for v in "${MINORS[@]}"; do
        printf '%s\n' "kube-apiserver-$v" "kube-controller-manager-$v" "kube-scheduler-$v"
    done
}
recipe_of()
{
    case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kubectl | kubelet | kube-proxy) echo "kubernetes cmd/$1" ;;
    kube-apiserver-* | kube-controller-manager-* | kube-scheduler-*) echo "kubernetes cmd/${1%-*} ${1##*-}" ;;
    agnhost) echo "kubernetes test/images/agnhost" ;;
    containerd-*) echo "containerd v$CONTAINERD" ;;
    runc-*) echo "runc v$RUNC" ;;
    coredns-bind-*) echo "coredns v$COREDNS bind" ;;
    coredns-*) echo "coredns v$COREDNS" ;;
    e2e.test) echo "kubernetes_test test/e2e" ;;
    etcd) echo "module go.etcd.io/etcd/server/v3 v$ETCD go.etcd.io/etcd/server/v3" ;;
    kwok) echo "module sigs.k8s.io/kwok v$KWOK sigs.k8s.io/kwok/cmd/kwok" ;;
    helm) echo "module helm.sh/helm/v4 v$HELM helm.sh/helm/v4/cmd/helm" ;;
    helm3-*) echo "module helm.sh/helm/v3 v$HELM3 helm.sh/helm/v3/cmd/helm" ;;
    h2spec-*) echo "h2spec v$H2SPEC+incompatible" ;;
    kueue-*) echo "module sigs.k8s.io/kueue v$KUEUE sigs.k8s.io/kueue/cmd/kueue" ;;
    kai-*) echo "main_module github.com/NVIDIA/KAI-scheduler v$KAI ${1:4:-${#KAI}-1}" ;;
    volcano-*) echo "main_module volcano.sh/volcano v$VOLCANO ${1:8:-${#VOLCANO}-1}" ;;
    hami-*) echo "hami v$HAMI" ;;
    operator-*) echo "operator" ;;
    stages.yaml) echo "stages" ;;
    *) die "unknown program: $1" ;;
    esac
}

say()
{
    echo "build-host: $*" >&2
}
die()
{
    say "$*"
    exit 1
}

# --- Go ---------------------------------------------------------------------------------------------

go_is_recent()
{
    local v
    v=$("$1" env GOVERSION 2>/dev/null) || return 1
    printf 'go%s\n%s\n' "$GO_OLDEST" "${v%% *}" | sort -C -V
}

# Any Go can download a newer one as a module; a module's files have no run bits, so a copy gets them.
fetch_go()
{
    local old=$1 arch dir tmp
    arch=$("$old" env GOARCH)
    say "fetching Go $GO_FETCH"
    mkdir -p "$CACHE"
    tmp=$(mktemp -d "$CACHE/.go.XXXXXX")
    dir=$(cd "$tmp" && GOFLAGS=-mod=mod GOTOOLCHAIN=local "$old" mod download -json \
        "golang.org/toolchain@v0.0.1-go$GO_FETCH.linux-$arch" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    [ -n "$dir" ] || die "Go $GO_FETCH could not be downloaded"
    cp -r "$dir" "$tmp/go"
    chmod -R u+w "$tmp/go"
    find "$tmp/go/bin" "$tmp/go/pkg/tool" -type f -exec chmod +x {} +
    mv -T "$tmp/go" "$CACHE/go-$GO_FETCH" 2>/dev/null || [ -x "$CACHE/go-$GO_FETCH/bin/go" ]
    rm -rf "$tmp"
}

find_go()
{
    local g any=
    for g in ${SUBLET_GO:-} "$(command -v go || true)" "$CACHE/go-$GO_FETCH/bin/go" \
        /usr/local/go/bin/go /usr/lib/go-1.*/bin/go /usr/lib/go/bin/go; do
        [ -x "$g" ] || continue
        go_is_recent "$g" && echo "$g" && return
        any=$g
    done
    [ -n "$any" ] || die "no Go found; any version will do (Debian: golang-go)"
    fetch_go "$any"
    go_is_recent "$CACHE/go-$GO_FETCH/bin/go" || die "the fetched Go does not run"
    echo "$CACHE/go-$GO_FETCH/bin/go"
}

# --- recipes: each runs in an empty module of its own and leaves its result in the file $1 -----------

new_module()
{
    printf 'module example.invalid/build\n\ngo %s\n\nrequire %s %s\n' "$GO_OLDEST" "$1" "$2" >go.mod
}

# k8s.io/kubernetes replaces its staging modules by directories of its own repository, which a dependent
# does not have; their published versions carry the same content.
kubernetes_module()
{
    local v=v$1 dir
    new_module k8s.io/kubernetes "$v"
    dir=$("$GO" mod download -json "k8s.io/kubernetes@$v" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    [ -n "$dir" ] || die "k8s.io/kubernetes $v could not be downloaded"
    sed -nE "s#^\s*(replace )?(k8s.io/[a-z0-9-]+) => ./staging/.*#replace \2 => \2 v0.${1#1.}#p" \
        "$dir/go.mod" >>go.mod
}

# Without these a client sees v0.0.0 and kubectl complains about version skew.
kubernetes_ldflags()
{
    local p minor=${1#1.}
    for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf -- '-X %s.gitVersion=v%s -X %s.gitMajor=1 -X %s.gitMinor=%s ' \
            $p "$1" $p $p "${minor%.*}"
    done
}

kubernetes()
{
    local v=${3:-$KUBERNETES}
    kubernetes_module "$v"
    "${WRAP[@]}" "$GO" build -ldflags="-s -w $(kubernetes_ldflags "$v")" -o "$1" "k8s.io/kubernetes/$2"
}

kubernetes_test()
{
    kubernetes_module "$KUBERNETES"
    "${WRAP[@]}" "$GO" test -c -ldflags="-s -w $(kubernetes_ldflags "$KUBERNETES")" -o "$1" "k8s.io/kubernetes/$2"
}

module()
{
    new_module "$2" "$3"
    "${WRAP[@]}" "$GO" build -ldflags="-s -w" -o "$1" "$4"
}

# A program of a module that replaces others, which counts only where it is the main one: built in a copy of it.
main_module()
{
    local dir
    new_module "$2" "$3"
    dir=$("$GO" mod download -json "$2@$3" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    [ -n "$dir" ] || die "$2 $3 could not be downloaded"
    cp -r "$dir" module
    chmod -R u+w module
    (cd module && GOFLAGS="-mod=readonly -trimpath -buildvcs=false" "${WRAP[@]}" "$GO" build -ldflags="-s -w" \
        -o "$1" "./cmd/$4")
}

# It asks NVIDIA's library by C, which it loads only where it needs it.
hami()
{
    git init -q source
    git -C source fetch -q --depth 1 "${SUBLET_HAMI:-https://github.com/Project-HAMi/HAMi}" "refs/tags/$2"
    git -C source checkout -q FETCH_HEAD
    (cd source && CGO_ENABLED=1 GOFLAGS="-mod=readonly -trimpath -buildvcs=false" "${WRAP[@]}" "$GO" build -ldflags="-s -w" \
        -o "$1" ./cmd/scheduler)
}

# It has no go.mod, so what it is built with is pinned here.
h2spec()
{
    new_module github.com/summerwind/h2spec "$2"
    printf 'require (\n\tgolang.org/x/net v0.62.0\n\tgithub.com/spf13/cobra v1.10.2\n\tgithub.com/fatih/color v1.19.0\n)\n' >>go.mod
    "${WRAP[@]}" "$GO" build -ldflags="-s -w" -o "$1" github.com/summerwind/h2spec/cmd/h2spec
}

# A directory: the daemon looks for its shim beside itself.
containerd()
{
    local p=github.com/containerd/containerd/v2
    new_module $p "$2"
    mkdir "$1"
    "${WRAP[@]}" "$GO" build -tags "no_btrfs no_zfs no_devmapper" -ldflags="-s -w" -o "$1/" \
        $p/cmd/containerd $p/cmd/containerd-shim-runc-v2 $p/cmd/ctr
}

# It enters namespaces in C before Go starts, and filters system calls with libseccomp.
runc()
{
    new_module github.com/opencontainers/runc "$2"
    CGO_ENABLED=1 "${WRAP[@]}" "$GO" build -tags seccomp -ldflags="-s -w" -o "$1" github.com/opencontainers/runc
}

# With the plugins of a Corefile as clusters have it, and any more that are named; those of cloud vendors' zones are most of
# the build otherwise.
coredns()
{
    local m=github.com/coredns/coredns p
    new_module $m "$2"
    {
        echo 'package main'
        for p in cache errors file forward health kubernetes ready "${@:3}"; do
            printf 'import _ "%s/plugin/%s"\n' $m $p
        done
        printf 'import "%s/coremain"\nfunc main() { coremain.Run() }\n' $m
    } >main.go
    "${WRAP[@]}" "$GO" build -ldflags="-s -w" -o "$1" .
}

# Its module pins what it is built with; the copy keeps the tree clean.
operator()
{
    cp "$SOURCES"/*.go "$SOURCES"/go.mod "$SOURCES"/go.sum .
    GOFLAGS="-mod=readonly -trimpath -buildvcs=false" "${WRAP[@]}" "$GO" build -ldflags="-s -w" -o "$1" .
}

# What simulated nodes and pods do: kwok's own fast stages and leases; a pod owned by a Job completes.
stages()
{
    local dir f
    dir=$("$GO" mod download -json "sigs.k8s.io/kwok@v$KWOK" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    for f in "$dir"/kustomize/stage/{pod/fast/pod-,node/fast/node-,node/heartbeat-with-lease/node-}*.yaml; do
        echo "---"
        cat "$f"
    done >"$1"
}

build_one()
{
    local name=$1 tmp start=$SECONDS recipe args
    [ -e "$BIN/$name" ] && return
    read -ra args <<<"$(recipe_of "$name")"
    recipe=${args[0]}
    say "$name: building"
    tmp=$(mktemp -d "$HOST/.build.XXXXXX")
    if ! (cd "$tmp" && "$recipe" "$tmp/out" "${args[@]:1}") >"$tmp/log" 2>&1; then
        tail -n 40 "$tmp/log" >&2
        rm -rf "$tmp"
        die "$name: failed"
    fi
    mv -T "$tmp/out" "$BIN/$name"
    rm -rf "$tmp"
    say "$name: done in $((SECONDS - start)) s"
}

main()
{
    case ${1:-} in
    --dir)
        echo "$BIN"
        return
        ;;
    --queues)
        printf '%s\n' "${QUEUES[@]}"
        return
        ;;
    --operator)
        echo "$OPERATOR"
        return
        ;;
    --node)
        printf '%s\n' "${NODE[@]}"
        return
        ;;
    --bench)
        printf '%s\n' "${BENCH[@]}"
        return
        ;;
    --minors)
        printf '%s\n' "${MINORS[@]}"
        return
        ;;
    --clients)
        printf '%s\n' "${CLIENTS[@]}"
        return
        ;;
    --go)
        find_go
        return
        ;;
    esac
    local p missing=() only_say=
    [ "${1:-}" = --missing ] && only_say=1 && shift
    (($#)) || set -- "${DEFAULT[@]}"
    for p in "$@"; do
        [ "$p" = node ] && set -- "$@" "${DEFAULT[@]}" "${NODE[@]}"
        [ "$p" = bench ] && set -- "$@" "${DEFAULT[@]}" "${BENCH[@]}"
        # shellcheck disable=SC2046 # names
        [ "$p" = minors ] && set -- "$@" "${DEFAULT[@]}" $(for_minors)
    done
    for p in "$@"; do
        [[ $p =~ ^(node|bench|minors)$ ]] && continue
        recipe_of "$p" >/dev/null
        [ -e "$BIN/$p" ] || missing+=("$p")
    done
    ((${#missing[@]})) || return 0
    [ -z "$only_say" ] || {
        echo "${missing[*]}"
        return
    }
    mkdir -p "$BIN"
    GO=$(find_go)
    PATH=$(dirname "$GO"):$PATH
    export GO PATH CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS="-mod=mod -trimpath -buildvcs=false"
    exec 9>"$HOST/.lock"
    flock 9
    for p in "${missing[@]}"; do
        build_one "$p" 9>&-
    done
}

main "$@"
