{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* What config.sync.fromHost and config.metrics read on the host, as JSON: cluster: group -> plurals; namespaces:
namespace -> list of {group, plural, names}, without names for all objects. */ -}}
{{- define "sublet.shown" -}}
{{- $from := ((.Values.config).sync).fromHost | default dict -}}
{{- $metrics := (.Values.config).metrics | default dict -}}
{{- $own := include "sublet.tenantNamespace" . -}}
{{- $out := dict "cluster" dict "namespaces" dict -}}
{{- $kinds := .Files.Get "files/sync_up.json" | fromJson -}}
{{- $entries := list -}}
{{- range $key, $kind := $kinds -}}
{{- $entry := get $from $key -}}
{{- if and (eq $key "gatewayClasses") (not (kindIs "map" $entry)) -}}
{{- $entry = dict "enabled" (((((($.Values.config).sync).toHost).gatewayApi).enabled) | default false) -}}
{{- end -}}
{{- $entries = append $entries (merge (dict "entry" ($entry | default dict)) $kind) -}}
{{- end -}}
{{- /* Names of EndpointSlices are random: RBAC cannot bind their list to those of one Service. */ -}}
{{- with $from.services -}}
{{- if .headless -}}
{{- $entries = append $entries (dict "entry" . "group" "discovery.k8s.io" "plural" "endpointslices" "read" "NAMESPACE" "whole" true) -}}
{{- end -}}
{{- end -}}
{{- range $name, $entry := $from.customResources | default dict -}}
{{- $parts := splitn "." 2 (index (splitList "/" $name) 0) -}}
{{- $read := ternary "CLUSTER" "NAMESPACE" (eq (($entry | default dict).scope | default "") "Cluster") -}}
{{- $entries = append $entries (dict "entry" ($entry | default dict) "group" $parts._1 "plural" $parts._0 "read" $read) -}}
{{- end -}}
{{- range $entries -}}
{{- if .entry.enabled -}}
{{- if eq .read "CLUSTER" -}}
{{- $_ := set $out.cluster .group (append (get $out.cluster .group | default list) .plural | uniq) -}}
{{- else -}}
{{- include "sublet.shownMappings" (dict "out" $out "one" . "own" $own) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq (toString $metrics.source) "host" -}}
{{- if eq (toString $metrics.nodes) "whole" -}}
{{- $_ := set $out.cluster "metrics.k8s.io" (list "nodes") -}}
{{- end -}}
{{- $_ := set $out.namespaces $own (append (get $out.namespaces $own | default list) (dict "group" "metrics.k8s.io" "plural" "pods")) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- define "sublet.shownMappings" -}}
{{- $one := .one -}}
{{- $own := .own -}}
{{- $names := dict -}}
{{- range $source, $target := (.one.entry.mappings).byName | default dict -}}
{{- $parts := splitn "/" 2 $source -}}
{{- $ns := $parts._0 | default $own -}}
{{- $name := $parts._1 | default "*" -}}
{{- $_ := set $names $ns (append (get $names $ns | default list) $name | uniq) -}}
{{- end -}}
{{- $out := .out -}}
{{- range $ns, $list := $names -}}
{{- $rule := dict "group" $one.group "plural" $one.plural -}}
{{- if not (or $one.whole (has "*" $list)) -}}
{{- $_ := set $rule "names" (sortAlpha $list) -}}
{{- end -}}
{{- $_ := set $out.namespaces $ns (append (get $out.namespaces $ns | default list) $rule) -}}
{{- end -}}
{{- end -}}
