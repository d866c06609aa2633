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
{{- if ne . $.Release.Namespace -}}
{{- fail (printf "config.host.namespace: %q is not the namespace of this release, %q: install into the team's namespace with -n" . $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if ($config.host).kubeconfig -}}
{{- fail "config.host.kubeconfig: the chart runs on the host itself, with its service account: leave it empty" -}}
{{- end -}}
{{- with ($config.store).path -}}
{{- if ne . "/data" -}}
{{- fail (printf "config.store.path: %q is not the volume, which is /data: leave it empty" .) -}}
{{- end -}}
{{- end -}}
{{- include "sublet.checkBindings" $config -}}
{{- include "sublet.checkQuota" .Values.quota -}}
{{- include "sublet.checkEgress" .Values.networkPolicy -}}
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

{{/* 169.254.0.0/16 is where clouds hand out a machine's credentials. */}}
{{- define "sublet.checkEgress" -}}
{{- range $i, $rule := .egress -}}
{{- range $rule.to -}}
{{- if and .ipBlock (eq .ipBlock.cidr "0.0.0.0/0") (not (has "169.254.0.0/16" (.ipBlock.except | default list))) -}}
{{- fail (printf "networkPolicy.egress[%d]: 0.0.0.0/0 needs except: [169.254.0.0/16]: machines' credentials are there" $i) -}}
{{- end -}}
{{- end -}}
{{- if not $rule.to -}}
{{- fail (printf "networkPolicy.egress[%d]: a rule without `to` allows every address: say which" $i) -}}
{{- end -}}
{{- end -}}
{{- end }}
