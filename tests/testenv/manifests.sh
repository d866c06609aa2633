#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the whole install manifest of a real operator, as its users apply it: definitions, roles, workloads, webhooks.
# It is read, or rendered, from published Go modules; nothing of it is copied into the tree.
#
#   manifests.sh OPERATOR              argo-cd cert-manager flux kueue kuberay
#   manifests.sh --namespace OPERATOR  where it is applied
#
# Flux's own manifest points at release files of its controllers; they are rendered from the modules of the
# controllers it installs by default, less notification-controller, which no module proxy has.
set -euo pipefail

here=$(dirname "$0")
ARGO_CD=v3.5.7
CERT_MANAGER=v1.21.2 # as in crds.sh
FLUX=v2.9.5
KUEUE=v0.15.0        # as in crds.sh
KUBERAY=v1.5.1
FLUX_CONTROLLERS=(source kustomize helm)

namespace_of()
{
    case $1 in
    argo-cd) echo argocd ;;
    cert-manager) echo cert-manager ;;
    flux) echo flux-system ;;
    kueue) echo kueue-system ;;
    kuberay) echo ray-system ;;
    *) echo "manifests: unknown operator: $1" >&2 && exit 2 ;;
    esac
}

kustomize()
{
    "$bin/kubectl" kustomize "$1"
}

flux()
{
    local dir tmp c base version module
    dir=$("$here/gomod.sh" "github.com/fluxcd/flux2/v2@$FLUX")
    tmp=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$tmp'" EXIT
    cp -r "$dir/manifests" "$tmp/manifests"
    chmod -R u+w "$tmp"
    for c in "${FLUX_CONTROLLERS[@]}"; do
        base=$tmp/manifests/bases/$c-controller
        version=$(sed -n 's#.*/releases/download/\(v[0-9.]*\)/.*crds.*#\1#p' "$base/kustomization.yaml")
        module=$("$here/gomod.sh" "github.com/fluxcd/$c-controller@$version")
        kustomize "$module/config/crd" >"$base/crds.yaml"
        kustomize "$module/config/manager" >"$base/deployment.yaml"
        sed -i -E 's#https://.*\.(crds|deployment)\.yaml#\1.yaml#' "$base/kustomization.yaml"
    done
    sed -i -E '/bases\/(notification|image|source-watcher)/d' "$tmp/manifests/install/kustomization.yaml"
    kustomize "$tmp/manifests/install"
}

render()
{
    local dir
    case $1 in
    argo-cd)
        dir=$("$here/gomod.sh" "github.com/argoproj/argo-cd/v3@$ARGO_CD")
        cat "$dir/manifests/install.yaml"
        ;;
    cert-manager)
        dir=$("$here/gomod.sh" "github.com/cert-manager/cert-manager@$CERT_MANAGER")
        "$bin/helm" template cert-manager "$dir/deploy/charts/cert-manager" -n cert-manager --set crds.enabled=true
        ;;
    flux) flux ;;
    kueue)
        dir=$("$here/gomod.sh" "sigs.k8s.io/kueue@$KUEUE")
        kustomize "$dir/config/default"
        ;;
    kuberay)
        dir=$("$here/gomod.sh" "github.com/ray-project/kuberay/ray-operator@$KUBERAY")
        kustomize "$dir/config/default-with-webhooks"
        ;;
    esac
}

if [ "${1:-}" = --namespace ]; then
    namespace_of "$2"
    exit
fi
namespace_of "$1" >/dev/null
bin=${SUBLET_HOST_BIN:-$("$here/build-host.sh" --dir)}
render "$1"
