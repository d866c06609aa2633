{{/* SPDX-License-Identifier: Apache-2.0
Names and labels. The name of the virtual cluster is the name of every object here: the program finds its own
Service by it. */}}

{{- define "sublet.name" -}}
{{ (.Values.config).name | default .Release.Name }}
{{- end }}

{{- define "sublet.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "sublet.name" .) }}
{{- end }}

{{/* Where everything is that the program writes. */}}
{{- define "sublet.tenantNamespace" -}}
{{ .Values.tenantNamespace | default .Release.Namespace }}
{{- end }}

{{/* Of the tenant's pods: without rights, and its token is in none of them. */}}
{{- define "sublet.podServiceAccount" -}}
{{ ((.Values.config).host).podServiceAccount | default (printf "%s-pods" (include "sublet.name" .)) }}
{{- end }}

{{/* Cluster scoped, so the namespace is part of it. */}}
{{- define "sublet.clusterName" -}}
sublet:{{ .Release.Namespace }}:{{ include "sublet.name" . }}
{{- end }}

{{- define "sublet.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* Keys of sublet.dev are never a tenant's: its pods may carry app.kubernetes.io/ labels if the admin allows them, so none of those
may select the control plane. */}}
{{- define "sublet.selector" -}}
sublet.dev/control-plane: {{ include "sublet.name" . | quote }}
{{- end }}

{{- define "sublet.labels" -}}
app.kubernetes.io/name: sublet
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "sublet.metadata" -}}
name: {{ include "sublet.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "sublet.labels" . | nindent 2 }}
{{- end }}

{{- define "sublet.tenantMetadata" -}}
name: {{ include "sublet.name" . }}
namespace: {{ include "sublet.tenantNamespace" . }}
labels:
  {{- include "sublet.labels" . | nindent 2 }}
{{- end }}

{{/* The port of network.dns.listen. */}}
{{- define "sublet.dnsPort" -}}
{{- $address := (((.Values.config).network).dns).listen | default "0.0.0.0:1053" -}}
{{ splitList ":" $address | last }}
{{- end }}

{{/* The port of listen.address. */}}
{{- define "sublet.port" -}}
{{- $address := ((.Values.config).listen).address | default "0.0.0.0:8443" -}}
{{ splitList ":" $address | last }}
{{- end }}

{{/* As a JSON list: the Services of config.sync.kubeletAddresses */}}
{{- define "sublet.kubeletServices" -}}
{{- $names := list -}}
{{- range until (int (((.Values.config).sync).kubeletAddresses | default 0)) -}}
{{- $names = append $names (printf "%s-kubelet-%d" (include "sublet.name" $) .) -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}
