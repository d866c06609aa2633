{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* What config.sync.toHost adds to the kinds on the host, as JSON: group -> plurals. */ -}}
{{- define "sublet.synced" -}}
{{- $to := ((.Values.config).sync).toHost | default dict -}}
{{- $out := dict -}}
{{- range $key, $kind := .Files.Get "files/sync.json" | fromJson -}}
{{- if (get $to $key | default dict).enabled -}}
{{- $_ := set $out $kind.group (append (get $out $kind.group | default list) $kind.plural) -}}
{{- end -}}
{{- end -}}
{{- range $name, $kind := $to.customResources | default dict -}}
{{- if ($kind | default dict).enabled -}}
{{- $parts := splitn "." 2 (index (splitList "/" $name) 0) -}}
{{- $_ := set $out $parts._1 (append (get $out $parts._1 | default list) $parts._0) -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}
