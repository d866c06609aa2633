{{/* SPDX-License-Identifier: Apache-2.0
The file of `sublet serve`: what the admin gave, with the three keys a release knows better. */}}

{{- define "sublet.config" -}}
{{- $name := include "sublet.name" . -}}
{{- $server := printf "https://%s.%s.svc" $name .Release.Namespace -}}
{{- if ne (int .Values.service.port) 443 -}}
{{- $server = printf "%s:%d" $server (int .Values.service.port) -}}
{{- end -}}
{{- $own := dict "name" $name "host" (dict "namespace" .Release.Namespace) "kubeconfig" (dict "server" $server) -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config) (dict "name" $name)) -}}
{{- end }}
