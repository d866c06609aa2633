{{/* SPDX-License-Identifier: Apache-2.0
The file of `sublet serve`: what the admin gave, with the keys a release knows better. */}}

{{- define "sublet.config" -}}
{{- $name := include "sublet.name" . -}}
{{- $server := printf "https://%s.%s.svc" $name .Release.Namespace -}}
{{- if ne (int .Values.service.port) 443 -}}
{{- $server = printf "%s:%d" $server (int .Values.service.port) -}}
{{- end -}}
{{- $exposed := or .Values.expose.ingress.enabled .Values.expose.tlsRoute.enabled -}}
{{- if $exposed -}}
{{- $server = printf "https://%s" .Values.expose.host -}}
{{- if ne (int .Values.expose.port) 443 -}}
{{- $server = printf "%s:%d" $server (int .Values.expose.port) -}}
{{- end -}}
{{- end -}}
{{- $host := dict "namespace" (include "sublet.tenantNamespace" .) "podServiceAccount" (include "sublet.podServiceAccount" .) -}}
{{- if ne $host.namespace .Release.Namespace -}}
{{- $_ := set $host "serviceNamespace" .Release.Namespace -}}
{{- end -}}
{{- $own := dict "name" $name "host" $host "kubeconfig" (dict "server" $server) -}}
{{- if .Values.dns.enabled -}}
{{- $_ := set $own "network" (dict "dns" (dict "listen" "0.0.0.0:1053")) -}}
{{- end -}}
{{- $made := mergeOverwrite $own (deepCopy .Values.config) (dict "name" $name) -}}
{{- if $exposed -}}
{{- $names := concat (($made.listen).names | default list) (list .Values.expose.host) | uniq -}}
{{- $_ := set $made "listen" (merge (dict "names" $names) ($made.listen | default dict)) -}}
{{- end -}}
{{- toYaml $made -}}
{{- end }}
