{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* What config.sync.toHost adds to the kinds on the host, as JSON: group -> plurals, of the tenant's namespace. */ -}}
{{- define "sublet.synced" -}}
{{- include "sublet.syncedOf" (dict "root" . "scope" "NAMESPACE") -}}
{{- end -}}

{{- /* The same of what has no namespace. */ -}}
{{- define "sublet.syncedCluster" -}}
{{- include "sublet.syncedOf" (dict "root" . "scope" "CLUSTER") -}}
{{- end -}}

{{- /* config.sync.toHost with the kinds that its gatewayApi stands for, as JSON: of kinds alone, no number is exact. */ -}}
{{- define "sublet.toHost" -}}
{{- $to := deepCopy (((.Values.config).sync).toHost | default dict) -}}
{{- with $to.gatewayApi -}}
{{- if .enabled -}}
{{- $_ := set $to "gateways" . -}}
{{- range list "httpRoutes" "grpcRoutes" -}}
{{- if not (kindIs "map" (get $to .)) -}}
{{- $_ := set $to . (dict "enabled" true) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $to -}}
{{- end -}}

{{- define "sublet.syncedOf" -}}
{{- $scope := .scope -}}
{{- $to := include "sublet.toHost" .root | fromJson -}}
{{- $out := dict -}}
{{- range $key, $kind := .root.Files.Get "files/sync.json" | fromJson -}}
{{- if and (get $to $key | default dict).enabled (eq $kind.scope $scope) -}}
{{- $_ := set $out $kind.group (append (get $out $kind.group | default list) $kind.plural) -}}
{{- end -}}
{{- end -}}
{{- range $name, $kind := $to.customResources | default dict -}}
{{- if and ($kind | default dict).enabled (eq $scope "NAMESPACE") -}}
{{- $parts := splitn "." 2 (index (splitList "/" $name) 0) -}}
{{- $_ := set $out $parts._1 (append (get $out $parts._1 | default list) $parts._0) -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* The names of host Services that config.sync.toHost.services maps Services to, as JSON. */ -}}
{{- define "sublet.aliases" -}}
{{- $names := list -}}
{{- range $source, $name := (((((.Values.config).sync).toHost).services).mappings).byName | default dict -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- toJson (sortAlpha $names) -}}
{{- end -}}
