{{/* SPDX-License-Identifier: Apache-2.0
Addresses that no pod may reach, and which CIDR holds which: a rule is judged by what it leads to, however it is cut. */}}

{{/* Where clouds hand out machines' credentials and their configuration. */}}
{{- define "sublet.metadataCIDRs" -}}
{{- list "169.254.0.0/16" "168.63.129.16/32" "100.100.100.200/32" "192.0.0.192/32" "fd00:ec2::254/128" "fe80::/10" | toJson -}}
{{- end }}

{{/* Where a host's API servers are unless the values say: never everywhere. */}}
{{- define "sublet.privateCIDRs" -}}
{{- list "10.0.0.0/8" "100.64.0.0/10" "172.16.0.0/12" "192.168.0.0/16" "fc00::/7" | toJson -}}
{{- end }}

{{/* Metadata addresses, the host's API servers and what else the values forbid, as a JSON list. */}}
{{- define "sublet.forbiddenCIDRs" -}}
{{- $all := concat (include "sublet.metadataCIDRs" . | fromJsonArray) .Values.networkPolicy.forbidden .Values.networkPolicy.hostApi.cidrs | uniq -}}
{{- range $all -}}
{{- $_ := include "sublet.cidr.parse" . -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* "10.0.0.0/8" as JSON: {width: bits of a group, groups: [numbers], bits: prefix} */}}
{{- define "sublet.cidr.parse" -}}
{{- $parts := splitList "/" . -}}
{{- $address := first $parts -}}
{{- $groups := list -}}
{{- $width := 8 -}}
{{- if contains ":" $address -}}
{{- $width = 16 -}}
{{- $halves := splitList "::" $address -}}
{{- $head := compact (splitList ":" (first $halves)) -}}
{{- $tail := list -}}
{{- if eq (len $halves) 2 -}}
{{- $tail = compact (splitList ":" (last $halves)) -}}
{{- end -}}
{{- range $head -}}
{{- $groups = append $groups (int64 (printf "0x%s" .)) -}}
{{- end -}}
{{- range until (int (sub 8 (add (len $head) (len $tail)))) -}}
{{- $groups = append $groups 0 -}}
{{- end -}}
{{- range $tail -}}
{{- $groups = append $groups (int64 (printf "0x%s" .)) -}}
{{- end -}}
{{- else -}}
{{- range splitList "." $address -}}
{{- $groups = append $groups (int64 .) -}}
{{- end -}}
{{- end -}}
{{- $whole := mul $width (len $groups) -}}
{{- if or (ne (len $parts) 2) (not (has (len $groups) (list 4 8))) (gt (int64 (last $parts)) $whole) -}}
{{- fail (printf "networkPolicy: %q is not a CIDR such as 10.0.0.0/8" .) -}}
{{- end -}}
{{- dict "width" $width "groups" $groups "bits" (int64 (last $parts)) | toJson -}}
{{- end }}

{{/* (outer, inner) as JSON of sublet.cidr.parse: "yes" when every address of inner is one of outer. */}}
{{- define "sublet.cidr.holds" -}}
{{- $outer := include "sublet.cidr.parse" (index . 0) | fromJson -}}
{{- $inner := include "sublet.cidr.parse" (index . 1) | fromJson -}}
{{- $holds := and (eq $outer.width $inner.width) (le $outer.bits $inner.bits) -}}
{{- if $holds -}}
{{- range $i, $group := $outer.groups -}}
{{- $bits := sub (int64 $outer.bits) (mul $i (int64 $outer.width)) | max 0 | min (int64 $outer.width) -}}
{{- $size := int64 1 -}}
{{- range until (int (sub (int64 $outer.width) $bits)) -}}
{{- $size = mul $size 2 -}}
{{- end -}}
{{- if ne (div (int64 $group) $size) (div (int64 (index $inner.groups $i)) $size) -}}
{{- $holds = false -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- ternary "yes" "" $holds -}}
{{- end }}

{{/* Of a list of CIDRs, those that lie strictly inside another, as a JSON list: (outer, list) */}}
{{- define "sublet.cidr.inside" -}}
{{- $outer := index . 0 -}}
{{- $out := list -}}
{{- range index . 1 -}}
{{- if and (ne . $outer) (include "sublet.cidr.holds" (list $outer .)) -}}
{{- $out = append $out . -}}
{{- end -}}
{{- end -}}
{{- $out | uniq | toJson -}}
{{- end }}
