{{/* SPDX-License-Identifier: Apache-2.0
Mistakes that take more than one value to see. What a single value may be is in values.schema.json, and what
only the program can tell, `sublet check` says. */}}

{{- define "sublet.check" -}}
{{- $name := include "sublet.name" . -}}
{{- $config := .Values.config | default dict -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$" $name) -}}
{{- fail (printf "config.name: %q (the release's name unless given) must be a DNS label of at most 52 characters: lower case letters, digits and \"-\"" $name) -}}
{{- end -}}
{{- with ($config.host).namespace -}}
{{- if ne . (include "sublet.tenantNamespace" $) -}}
{{- fail (printf "config.host.namespace: %q is not the namespace of this release, %q: install into the team's namespace with -n, or set tenantNamespace" . (include "sublet.tenantNamespace" $)) -}}
{{- end -}}
{{- end -}}
{{- if ($config.host).kubeconfig -}}
{{- fail "config.host.kubeconfig: the chart runs on the host itself, with its service account: leave it empty" -}}
{{- end -}}
{{- with .Values.expose -}}
{{- if and (or .ingress.enabled .tlsRoute.enabled) (not .host) -}}
{{- fail "expose.host: an Ingress or a TLSRoute needs the name under which it exposes the API" -}}
{{- end -}}
{{- if and .tlsRoute.enabled (not .tlsRoute.parentRefs) -}}
{{- fail "expose.tlsRoute.parentRefs: a route needs a Gateway" -}}
{{- end -}}
{{- $host := .host -}}
{{- $wild := printf "*.%s" (regexReplaceAll "^[^.]*[.]" $host "") -}}
{{- range $of := list (list "toHost" "ingresses") (list "toHost" "gateways") (list "toHost" "gatewayApi") (list "fromHost" "gateways") -}}
{{- $kind := get ((get ($config.sync | default dict) (first $of)) | default dict) (last $of) | default dict -}}
{{- range (kindIs "map" $kind | ternary $kind dict).hosts | default list -}}
{{- if and $host (or (eq . $host) (eq . $wild) (and (eq (first $of) "fromHost") (hasPrefix "*." .) (hasSuffix (trimPrefix "*" .) $host))) -}}
{{- fail (printf "expose.host: %q is one of config.sync.%s.%s.hosts: the tenant could take the traffic of its API" $host (first $of) (last $of)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with ($config.store).path -}}
{{- if ne . "/data" -}}
{{- fail (printf "config.store.path: %q is not the volume, which is /data: leave it empty" .) -}}
{{- end -}}
{{- end -}}
{{- $role := .Values.rbac.clusterRole -}}
{{- if and .Values.rbac.create (not $role.enabled) (not $role.name) -}}
{{- range $group, $plurals := (include "sublet.shown" . | fromJson).cluster -}}
{{- fail (printf "config.sync.fromHost, config.metrics: %s of %s are read in the whole cluster: set rbac.clusterRole.enabled, or rbac.clusterRole.name" (join ", " $plurals) $group) -}}
{{- end -}}
{{- range $group, $plurals := include "sublet.syncedCluster" . | fromJson -}}
{{- fail (printf "config.sync.toHost: %s have no namespace: set rbac.clusterRole.enabled, or rbac.clusterRole.name" (join ", " $plurals)) -}}
{{- end -}}
{{- if eq (toString ($config.sync).kubelets) "own" -}}
{{- fail "config.sync.kubelets: kubelets are reached by nodes/proxy, a right of the whole cluster: set rbac.clusterRole.enabled, or rbac.clusterRole.name" -}}
{{- end -}}
{{- if eq (toString ($config.sync).nodes) "perPool" -}}
{{- fail "config.sync.nodes: what a pool's nodes have is read in the whole cluster: set rbac.clusterRole.enabled, or rbac.clusterRole.name" -}}
{{- end -}}
{{- end -}}
{{- if not .Values.hostFence.enabled -}}
{{- range $group, $plurals := include "sublet.syncedCluster" . | fromJson -}}
{{- fail (printf "config.sync.toHost: the right to write %s is of the whole cluster: set hostFence.enabled, which narrows it to this virtual cluster's" (join ", " $plurals)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.hostFence.enabled (eq (toString ($config.fleet).bindings) "true") (empty .Values.hostFence.pools) -}}
{{- fail "hostFence.pools: needed with config.fleet.bindings: the fence lets no pod request devices of a pool that it does not know" -}}
{{- end -}}
{{- include "sublet.checkBindings" $config -}}
{{- include "sublet.checkQuota" .Values.quota -}}
{{- if .Values.networkPolicy.enabled -}}
{{- include "sublet.checkEgress" . -}}
{{- end -}}
{{- if .Values.namespaceCheck -}}
{{- include "sublet.checkNamespace" . -}}
{{- end -}}
{{- end }}

{{- define "sublet.checkBindings" -}}
{{- $pools := list -}}
{{- range $i, $pool := .pools -}}
{{- if has $pool.name $pools -}}
{{- fail (printf "config.pools[%d].name: there are two pools called %q" $i $pool.name) -}}
{{- end -}}
{{- $pools = append $pools $pool.name -}}
{{- end -}}
{{- $bound := list -}}
{{- range $i, $binding := .bindings -}}
{{- if not (has $binding.pool $pools) -}}
{{- fail (printf "config.bindings[%d].pool: no pool is called %q: config.pools has [%s]" $i $binding.pool (join ", " $pools)) -}}
{{- end -}}
{{- if has $binding.pool $bound -}}
{{- fail (printf "config.bindings[%d].pool: pool %q is bound already" $i $binding.pool) -}}
{{- end -}}
{{- $bound = append $bound $binding.pool -}}
{{- end -}}
{{- end }}

{{- define "sublet.checkQuota" -}}
{{- range $key, $amount := .hard -}}
{{- if and (contains "/" $key) (not (regexMatch "^(requests\\.|limits\\.|count/)" $key)) (not (contains ".storageclass." $key)) -}}
{{- fail (printf "quota.hard: %q would count nothing: a quota of an extended resource is called \"requests.%s\"" $key $key) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A rule may not lead to a forbidden address: none at all, one inside its block without an exception, or all. */}}
{{- define "sublet.checkEgress" -}}
{{- $forbidden := include "sublet.forbiddenCIDRs" . | fromJsonArray -}}
{{- range $key := list "egress" "controlPlaneEgress" -}}
{{- range $i, $rule := get $.Values.networkPolicy $key -}}
{{- $place := printf "networkPolicy.%s[%d]" $key $i -}}
{{- range $rule.to -}}
{{- if .ipBlock -}}
{{- include "sublet.checkBlock" (list $place .ipBlock $forbidden) -}}
{{- end -}}
{{- end -}}
{{- if not $rule.to -}}
{{- fail (printf "%s: a rule without `to` allows every address: say which" $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sublet.checkBlock" -}}
{{- $place := index . 0 -}}
{{- $block := index . 1 -}}
{{- range $one := index . 2 -}}
{{- if include "sublet.cidr.holds" (list $one $block.cidr) -}}
{{- fail (printf "%s: %s leads to %s, where machines' credentials or the host's own servers are" $place $block.cidr $one) -}}
{{- else if include "sublet.cidr.holds" (list $block.cidr $one) -}}
{{- $excepted := false -}}
{{- range ($block.except | default list) -}}
{{- if include "sublet.cidr.holds" (list . $one) -}}
{{- $excepted = true -}}
{{- end -}}
{{- end -}}
{{- if not $excepted -}}
{{- fail (printf "%s: %s needs except: [%s]: machines' credentials or the host's own servers are there" $place $block.cidr $one) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What the program lets through, the host must not judge more mildly. Nothing is known without a cluster (helm
template), or of a namespace that this very install makes. */}}
{{- define "sublet.checkNamespace" -}}
{{- $level := ((.Values.config).policy).podSecurity | default "baseline" -}}
{{- with lookup "v1" "Namespace" "" (include "sublet.tenantNamespace" .) -}}
{{- $enforced := get (.metadata.labels | default dict) "pod-security.kubernetes.io/enforce" -}}
{{- if and (ne $level "privileged") (not (has $enforced (list "baseline" "restricted"))) -}}
{{- fail (printf "namespace %s: label pod-security.kubernetes.io/enforce is %q: set it to baseline or restricted (kubectl label namespace %s pod-security.kubernetes.io/enforce=baseline), or namespaceCheck to false" .metadata.name $enforced .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end }}
