{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "fleet.labels" -}}
app.kubernetes.io/name: sublet-fleet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "fleet.metadata" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "fleet.labels" . | nindent 2 }}
{{- end -}}
{{- /* Of cluster-scoped objects: releases of two namespaces may have one name. */ -}}
{{- define "fleet.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end -}}
{{- define "fleet.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}
{{- define "fleet.config" -}}
{{- if not (or .Values.config.pools (include "fleet.grants" .)) }}{{ fail "config.pools is needed: the pools of the virtual clusters, with metering" }}{{ end -}}
{{- $fixed := dict "host" (dict "namespace" .Release.Namespace) "store" (dict "path" "/data") -}}
{{- if .Values.ledger.postgres.secret }}{{ $_ := set $fixed "ledger" (dict "postgres" (dict "file" (printf "/etc/sublet-ledger/%s" .Values.ledger.postgres.key))) }}{{ end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $fixed) -}}
{{- end -}}
{{- define "fleet.grants" -}}
{{- if (.Values.config.grants | default dict).enabled }}true{{ end -}}
{{- end -}}
