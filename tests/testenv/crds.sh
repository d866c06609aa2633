#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints where the CustomResourceDefinitions of real operators are: one path per line, in the Go module
# cache, downloaded if missing. They are read there and never copied into the tree.
#
#   crds.sh [OPERATOR...]     the CRD files (default: all operators)
#   crds.sh --dir OPERATOR    the root of its module, for its examples
set -euo pipefail

OPERATORS=(gateway-api cert-manager kueue)
module_of()
{
    case $1 in
    gateway-api) echo "sigs.k8s.io/gateway-api@v1.6.3 config/crd/standard" ;;
    cert-manager) echo "github.com/cert-manager/cert-manager@v1.21.2 deploy/crds" ;;
    kueue) echo "sigs.k8s.io/kueue@v0.15.0 config/components/crd/bases" ;;
    *) echo "crds: unknown operator: $1" >&2 && exit 2 ;;
    esac
}

only_dir=
[ "${1:-}" = --dir ] && only_dir=1 && shift
(($#)) || set -- "${OPERATORS[@]}"
for operator in "$@"; do
    recipe=$(module_of "$operator")
    read -r module path <<<"$recipe"
    dir=$("$(dirname "$0")/gomod.sh" "$module")
    if [ -n "$only_dir" ]; then
        echo "$dir"
    else
        grep -l '^kind: CustomResourceDefinition' "$dir/$path"/*.yaml
    fi
done
