{{/* SPDX-License-Identifier: Apache-2.0
The host's bound for every GPU resource the bindings offer: floor((guarantee + burst) / gpuEq) units of it,
summed over the pools. Exact: amounts are fractions of whole numbers. What the fleet may grant is bounded by its own
ResourceQuota, sublet-gpu, and not here: two quotas of a resource admit the lesser. */}}

{{/* A number of a values file is a float to Helm: 1000000 would be printed as 1e+06. */}}
{{- define "sublet.plain" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{ int64 . }}
{{- else -}}
{{ toString . }}
{{- end -}}
{{- end }}

{{/* What of each count the chart itself takes in the namespace: of Secrets, Helm keeps one per revision. */}}
{{- define "sublet.ownCounts" -}}
{{- $claims := ternary 1 0 .Values.persistence.enabled -}}
{{- $services := add (ternary 2 1 .Values.dns.enabled) (include "sublet.aliases" . | fromJsonArray | len) (include "sublet.kubeletServices" . | fromJsonArray | len) -}}
pods: 1
count/pods: 1
services: {{ $services }}
count/services: {{ $services }}
services.loadbalancers: {{ ternary 1 0 (eq .Values.service.type "LoadBalancer") }}
services.nodeports: {{ ternary 0 1 (eq .Values.service.type "ClusterIP") }}
persistentvolumeclaims: {{ $claims }}
count/persistentvolumeclaims: {{ $claims }}
configmaps: 2
count/configmaps: 2
secrets: 12
count/secrets: 12
count/serviceaccounts: 3
{{- end }}

{{/* "4", 0.25 or "1/7" as [numerator, denominator] */}}
{{- define "sublet.fraction" -}}
{{- $text := include "sublet.plain" . -}}
{{- if contains "/" $text -}}
{{- $parts := splitList "/" $text -}}
{{ toJson (list (int64 (index $parts 0)) (int64 (index $parts 1))) }}
{{- else if contains "." $text -}}
{{- $parts := splitList "." $text -}}
{{- $places := len (index $parts 1) -}}
{{- $ten := int64 (printf "1%s" (repeat $places "0")) -}}
{{ toJson (list (add (mul (int64 (index $parts 0)) $ten) (atoi (trimPrefix "0" (index $parts 1) | default "0"))) $ten) }}
{{- else -}}
{{ toJson (list (int64 $text) 1) }}
{{- end -}}
{{- end }}

{{/* mode -> the resources by which the host gives a share of a GPU, or {} */}}
{{- define "sublet.shares" -}}
{{- $all := dict
  "hami" (dict "number" "nvidia.com/gpu" "memory" "nvidia.com/gpumem" "cores" "nvidia.com/gpucores")
  "volcano-vgpu" (dict "number" "volcano.sh/vgpu-number" "memory" "volcano.sh/vgpu-memory" "cores" "volcano.sh/vgpu-cores")
-}}
{{ get $all (. | default "exclusive") | default dict | toJson }}
{{- end }}

{{/* (pool, binding) -> {host resource: units} */}}
{{- define "sublet.poolUnits" -}}
{{- $pool := .pool -}}
{{- $offered := dict -}}
{{- range $resource, $share := $pool.resources | default dict -}}
{{- $_ := set $offered $resource $share.gpuEq -}}
{{- end -}}
{{- if kindIs "map" $pool.profiles -}}
{{- range $profile, $share := $pool.profiles -}}
{{- $_ := set $offered (printf "nvidia.com/mig-%s" ($profile | replace "+" ".")) $share.gpuEq -}}
{{- end -}}
{{- end -}}
{{- $share := get (include "sublet.shares" $pool.mode | fromJson) "cores" -}}
{{- if $share -}}{{/* one GPU to a container, and of its memory and compute the same share: sublet/vgpu.h */}}
{{- $names := include "sublet.shares" $pool.mode | fromJson -}}
{{- $_ := set $offered $names.number "1/100" -}}
{{- $_ := set $offered $names.cores "1/100" -}}
{{- $_ := set $offered $names.memory (printf "1/%d" (int64 (required (printf "pool %s: gpuMemoryMiB is needed" $pool.name) $pool.gpuMemoryMiB))) -}}
{{- end -}}
{{- if and (not $offered) (ne ($pool.mode | default "exclusive") "kai-fraction") -}}{{/* parts of GPUs are no resource: the queue bounds them */}}
{{- $_ := set $offered "nvidia.com/gpu" 1 -}}
{{- end -}}
{{- $g := include "sublet.fraction" (.binding.guarantee | default 0) | fromJsonArray -}}
{{- $b := include "sublet.fraction" (.binding.burst | default 0) | fromJsonArray -}}
{{- $num := add (mul (index $g 0) (index $b 1)) (mul (index $b 0) (index $g 1)) -}}
{{- $den := mul (index $g 1) (index $b 1) -}}
{{- $units := dict -}}
{{- range $resource, $gpuEq := $offered -}}
{{- $e := include "sublet.fraction" $gpuEq | fromJsonArray -}}
{{- $host := get ($pool.rename | default dict) $resource | default $resource -}}
{{- if gt (int64 (index $e 0)) 0 -}}
{{- $_ := set $units $host (div (mul $num (index $e 1)) (mul $den (index $e 0))) -}}
{{- end -}}
{{- end -}}
{{ toJson $units }}
{{- end }}

{{- define "sublet.gpuQuota" -}}
{{- $pools := dict -}}
{{- range (.Values.config).pools -}}
{{- $_ := set $pools .name . -}}
{{- end -}}
{{- $sums := dict "nvidia.com/gpu" 0 -}}
{{- range (.Values.config).bindings -}}
{{- if hasKey $pools .pool -}}
{{- $units := include "sublet.poolUnits" (dict "pool" (get $pools .pool) "binding" .) | fromJson -}}
{{- range $resource, $n := $units -}}
{{- $_ := set $sums $resource (add (get $sums $resource | default 0) $n) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq (toString ((.Values.config).fleet).bindings) "true" -}}
{{- if not .Values.hostFence.pools -}}
{{- $sums = dict -}}
{{- end -}}
{{- range .Values.hostFence.pools -}}
{{- range $resource, $n := include "sublet.poolUnits" (dict "pool" . "binding" dict) | fromJson -}}
{{- $_ := unset $sums $resource -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $resource, $n := $sums }}
requests.{{ $resource }}: {{ $n | toString | quote }}
{{- end -}}
{{- end }}
