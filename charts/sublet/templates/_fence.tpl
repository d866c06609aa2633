{{/* SPDX-License-Identifier: Apache-2.0
The expressions of the host fence (hostfence.yaml), made of files/fence.json, which is generated from the tables of the
program, and of config.pools. CEL takes JSON's strings and lists as they are. */}}

{{- define "sublet.fence.validation" -}}
- expression: {{ index . 0 | toJson }}
  message: {{ printf "Sublet host fence: %s" (index . 1) | toJson }}
  reason: Forbidden
{{- end }}

{{/* One policy and its binding: (root, what, resourceRules, variables, validations) */}}
{{- define "sublet.fence.policy" -}}
{{- $root := .root -}}
{{- $name := printf "%s.%s.%s.sublet.dev" (include "sublet.name" $root) $root.Release.Namespace .what -}}
{{- "\n---\n" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "sublet.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      {{- range .resources }}
      - apiGroups: {{ index . 0 | toJson }}
        apiVersions: ["*"]
        resources: {{ index . 1 | toJson }}
        operations: {{ index . 2 | toJson }}
      {{- end }}
  matchConditions:
    - name: the-control-plane
      expression: {{ printf "request.userInfo.username == %s" (printf "system:serviceaccount:%s:%s" $root.Release.Namespace (include "sublet.serviceAccount" $root) | toJson) | toJson }}
  {{- with .variables }}
  variables:
    {{- range . }}
    - name: {{ index . 0 }}
      expression: {{ index . 1 | toJson }}
    {{- end }}
  {{- end }}
  validations:
    {{- range .validations }}
    {{- include "sublet.fence.validation" . | nindent 4 }}
    {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "sublet.labels" $root | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
  {{- with .inNamespace }}
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}}
  {{- end }}
{{- end }}

{{/* What the bound pools, and those of the fleet, add, as JSON: devices, their variables, schedulers, systems of queues, runtimeClasses, priorityClasses, tolerations,
nodeSelectors; allowed: the tolerations that a pod needs no device for. */}}
{{- define "sublet.fence.pools" -}}
{{- $allow := .Values.hostFence.allow -}}
{{- $bound := list -}}
{{- range (.Values.config).bindings -}}
{{- $bound = append $bound .pool -}}
{{- end -}}
{{- $devices := list -}}
{{- $schedulers := concat (list "default-scheduler") $allow.schedulerNames -}}
{{- $runtimes := $allow.runtimeClasses -}}
{{- $priorities := $allow.priorityClasses -}}
{{- with ((((.Values.config).sync).toHost).priorityClasses) -}}
{{- if .enabled -}}
{{- $priorities = concat $priorities (values ((.mappings).byName | default dict)) -}}
{{- range .ranges -}}
{{- $priorities = append $priorities .class -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with ((((.Values.config).sync).toHost).pods) -}}
{{- with .runtimeClassName -}}
{{- $runtimes = append $runtimes . -}}
{{- end -}}
{{- with .priorityClassName -}}
{{- $priorities = append $priorities . -}}
{{- end -}}
{{- end -}}
{{- $allowed := $allow.tolerations -}}
{{- range ((((.Values.config).sync).toHost).pods).enforceTolerations -}}
{{- $parts := splitn ":" 2 . -}}
{{- $pair := splitn "=" 2 $parts._0 -}}
{{- $one := dict "key" $pair._0 "operator" (contains "=" $parts._0 | ternary "Equal" "Exists") -}}
{{- range $member, $value := dict "value" $pair._1 "effect" $parts._1 -}}
{{- if $value -}}
{{- $_ := set $one $member $value -}}
{{- end -}}
{{- end -}}
{{- $allowed = append $allowed $one -}}
{{- end -}}
{{- $tolerations := list -}}
{{- $variables := list -}}
{{- $selectors := list -}}
{{- /* The kinds of scheduler.kind: the key by which each reads a pod's queue, and what its webhook adds beside it. */ -}}
{{- $systems := dict
  "kueue" (dict "map" "labels" "key" "kueue.x-k8s.io/queue-name" "added" (list "kueue.x-k8s.io/managed") "queues" list)
  "kai" (dict "map" "labels" "key" "kai.scheduler/queue" "added" list "queues" list "scheduler" "kai-scheduler")
  "volcano" (dict "map" "annotations" "key" "scheduling.volcano.sh/queue-name" "added" list "queues" list "scheduler" "volcano")
-}}
{{- $queued := list -}}
{{- /* Those that know gangs: the key by which each reads a pod's group, others beside it with their values (the hash by its webhook), and the API group of its PodGroups. */ -}}
{{- $groups := dict
  "kueue" (dict "map" "labels" "key" "kueue.x-k8s.io/pod-group-name" "also" (dict "kueue.x-k8s.io/pod-group-total-count" "^[1-9][0-9]{0,9}$" "kueue.x-k8s.io/role-hash" "^[0-9a-f]{8}$") "group" "")
  "kai" (dict "map" "annotations" "key" "pod-group-name" "also" (dict "kai.scheduler/skip-podgrouper" "^true$") "group" "scheduling.run.ai")
  "volcano" (dict "map" "annotations" "key" "scheduling.k8s.io/group-name" "also" dict "group" "scheduling.volcano.sh")
  "native" (dict "map" "" "also" dict "group" "scheduling.k8s.io")
-}}
{{- $gangs := dict -}}
{{- $classes := dict -}}
{{- $parts := list -}}
{{- $shares := list -}}
{{- range .Values.hostFence.pools -}}
{{- $bound = append $bound .name -}}
{{- end -}}
{{- range concat ((.Values.config).pools | default list) .Values.hostFence.pools -}}
{{- if has .name $bound -}}
{{- $offered := keys (.resources | default dict) -}}
{{- if kindIs "map" .profiles -}}
{{- range $profile, $_ := .profiles -}}
{{- $offered = append $offered (printf "nvidia.com/mig-%s" ($profile | replace "+" ".")) -}}
{{- end -}}
{{- end -}}
{{- $rename := .rename | default dict -}}
{{- $parted := eq (.mode | default "exclusive") "kai-fraction" -}}
{{- if $parted -}}
{{- $parts = append $parts .nodeSelector -}}
{{- end -}}
{{- $share := include "sublet.shares" .mode | fromJson -}}
{{- if $share -}}
{{- $offered = list $share.number $share.memory $share.cores -}}
{{- $shares = append $shares (merge (dict "selector" .nodeSelector "most" (int64 .gpuMemoryMiB) "scheduler" ((.scheduler).name | default (eq .mode "hami" | ternary "hami-scheduler" "volcano"))) $share) -}}
{{- end -}}
{{- range (and (empty $offered) (not $parted) (ne (.mode | default "exclusive") "dra") | ternary (list "nvidia.com/gpu") $offered) -}}
{{- $devices = append $devices (get $rename . | default .) -}}
{{- end -}}
{{- range $_, $share := (.resources | default dict) -}}
{{- if kindIs "map" $share -}}
{{- $variables = concat $variables ($share.variables | default list) -}}
{{- end -}}
{{- end -}}
{{- $selectors = append $selectors .nodeSelector -}}
{{- if kindIs "map" .deviceClasses -}}
{{- $_ := set $classes .name .deviceClasses -}}
{{- end -}}
{{- $system := get $systems ((.scheduler).kind | default "none") -}}
{{- $named := (.scheduler).name | default ($system | default dict).scheduler | default (eq ((.scheduler).kind | default "none") "hami" | ternary "hami-scheduler" "") -}}
{{- if $system -}}
{{- $queue := required (printf "pool %s: scheduler.queueTemplate is needed" .name) .scheduler.queueTemplate | replace "{tenant}" (include "sublet.name" $) | replace "{namespace}" (include "sublet.tenantNamespace" $) -}}
{{- $_ := set $system "queues" (append $system.queues $queue | uniq | sortAlpha) -}}
{{- if .scheduler.gang -}}
{{- $_ := set $gangs .scheduler.kind (get $groups .scheduler.kind) -}}
{{- end -}}
{{- if $system.scheduler -}}
{{- $_ := set $system "names" (append ($system.names | default list) $named | uniq | sortAlpha) -}}
{{- end -}}
{{- if eq .scheduler.kind "kai" -}}
{{- $runtimes = append $runtimes "nvidia" -}}{{/* by KAI's webhook, where the pod has no class */}}
{{- end -}}
{{- $queued = append $queued (dict "map" $system.map "key" $system.key "queue" $queue "selector" .nodeSelector "scheduler" ($system.scheduler | empty | ternary "" $named)) -}}
{{- end -}}
{{- if and (eq ((.scheduler).kind | default "none") "native") .scheduler.gang -}}
{{- $_ := set $gangs "native" (get $groups "native") -}}
{{- end -}}
{{- with $named -}}
{{- $schedulers = append $schedulers . -}}
{{- end -}}
{{- with .runtimeClass -}}
{{- $runtimes = append $runtimes . -}}
{{- end -}}
{{- with .priorityTiers -}}
{{- $priorities = concat $priorities (values .) -}}
{{- end -}}
{{- with .tolerations -}}
{{- $tolerations = concat $tolerations . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "devices" ($devices | uniq | sortAlpha) "schedulers" ($schedulers | uniq | sortAlpha) "runtimeClasses" ($runtimes | uniq | sortAlpha) "priorityClasses" ($priorities | uniq | sortAlpha) "tolerations" ($tolerations | uniq) "allowed" $allowed "variables" ($variables | uniq | sortAlpha) "selectors" $selectors "systems" $systems "queued" $queued "gangs" $gangs "classes" $classes "parts" $parts "shares" $shares | toJson -}}
{{- end }}

{{/* CEL: t is this toleration. */}}
{{- define "sublet.fence.toleration" -}}
(t.?key.orValue("") == {{ .key | default "" | toJson }} && t.?operator.orValue("Equal") == {{ .operator | default "Equal" | toJson }} && t.?value.orValue("") == {{ .value | default "" | toString | toJson }} && t.?effect.orValue("") == {{ .effect | default "" | toJson }} && {{ if hasKey . "tolerationSeconds" }}t.?tolerationSeconds.orValue(-1) == {{ int64 .tolerationSeconds }}{{ else }}!has(t.tolerationSeconds){{ end }})
{{- end }}

{{/* CEL: t is a toleration that the program sends, or that the host adds for a device. */}}
{{- define "sublet.fence.tolerated" -}}
{{- $any := list (printf "(t.?key.orValue(\"\") in %s && t.?operator.orValue(\"Equal\") == \"Exists\" && t.?effect.orValue(\"\") == \"NoExecute\" && t.?tolerationSeconds.orValue(%d) <= %d)" (toJson .tolerated.keys) (add (int64 .tolerated.seconds) 1) (int64 .tolerated.seconds)) -}}
{{- range .pools.allowed -}}
{{- $any = append $any (include "sublet.fence.toleration" .) -}}
{{- end -}}
{{- $pool := list (printf "(t.?key.orValue(\"\") in %s && t.?operator.orValue(\"Equal\") == \"Exists\" && t.?effect.orValue(\"\") == \"NoSchedule\")" (toJson .pools.devices)) -}}
{{- range .pools.tolerations -}}
{{- $pool = append $pool (include "sublet.fence.toleration" .) -}}
{{- end -}}
{{- $any = append $any (printf "(variables.device && (%s))" (join " || " $pool)) -}}
{{- join " || " $any -}}
{{- end }}

{{/* CEL: the pod selects the nodes of one of these pools. */}}
{{- define "sublet.fence.selected" -}}
{{- $any := list "false" -}}
{{- range .selectors -}}
{{- $all := list -}}
{{- range $key, $value := . -}}
{{- $all = append $all (printf "object.spec.?nodeSelector[?%s].orValue(\"\") == %s" (toJson $key) ($value | toString | toJson)) -}}
{{- end -}}
{{- $any = append $any (printf "(%s)" (join " && " $all)) -}}
{{- end -}}
{{- join " || " $any -}}
{{- end }}

{{/* CEL: the key k of a map is one the program writes, one that the host adds, or unchanged:
(keys, of the map, its name in metadata, name pattern of hashes) */}}
{{- define "sublet.fence.keys" -}}
{{- $any := list (printf "k in %s" (toJson .keys)) -}}
{{- range .prefixes -}}
{{- $any = append $any (printf "k.startsWith(%s)" (toJson .)) -}}
{{- end -}}
{{- $hash := .hash -}}
{{- range .hashed -}}
{{- $any = append $any (printf "k.matches(%s)" (printf "^%s%s$" (replace "." "\\." .) $hash | toJson)) -}}
{{- end -}}
{{- $any = append $any (printf "(request.operation == \"UPDATE\" && variables.%s[?k] == variables.old%s[?k])" .map (title .map)) -}}
{{- join " || " $any -}}
{{- end }}

{{/* As a JSON list, the validations of annotations whose value is the name of an object of the namespace, or a list of names, but
for those that the admin's patches set: (fence, namespace, patches) */}}
{{- define "sublet.fence.named" -}}
{{- $patched := list -}}
{{- range .patches | default list -}}
{{- $patched = append $patched (.path | default "" | trimPrefix "metadata.annotations[" | trimSuffix "]") -}}
{{- end -}}
{{- $naming := list -}}
{{- range .fence.noteNames -}}
{{- if not (has . $patched) -}}
{{- $naming = append $naming . -}}
{{- end -}}
{{- end -}}
{{- $lists := list -}}
{{- range .fence.noteLists -}}
{{- if not (has . $patched) -}}
{{- $lists = append $lists . -}}
{{- end -}}
{{- end -}}
{{- $named := printf "^(%s/)?%s$" .namespace (.fence.name | trimPrefix "^" | trimSuffix "$") -}}
{{- list
  (list (printf "object.metadata.?annotations.orValue({}).all(k, !(k in %s) || object.metadata.annotations[k].matches(%s))" (toJson $naming) (toJson $named)) "metadata.annotations: names an object that is not of this virtual cluster")
  (list (printf "object.metadata.?annotations.orValue({}).all(k, !(k in %s) || object.metadata.annotations[k].split(\",\").all(n, n.matches(%s)))" (toJson $lists) (toJson $named)) "metadata.annotations: a list names an object that is not of this virtual cluster") | toJson -}}
{{- end }}

{{/* CEL: h is a host name of the lists for Ingresses, Gateways and routes. */}}
{{- define "sublet.fence.hosts" -}}
{{- $sync := (.Values.config).sync | default dict -}}
{{- $any := list "false" -}}
{{- range list (($sync.toHost).ingresses) (($sync.toHost).gateways) (($sync.fromHost).gateways) -}}
{{- range (.).hosts | default list -}}
{{- $any = append $any (printf "h == %s" (toJson .)) -}}
{{- if hasPrefix "*." . -}}
{{- $any = append $any (printf "h.matches(%s)" (printf "^[^.*]+%s$" (trimPrefix "*" . | replace "." "[.]") | toJson)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join " || " ($any | uniq) -}}
{{- end }}

{{/* CEL, as a JSON list: the key k of variables.<map> has one of its listed values; a * ends one that only begins so:
(choices, map) */}}
{{- define "sublet.fence.choices" -}}
{{- $map := .map -}}
{{- $out := list -}}
{{- range $key, $values := .choices -}}
{{- range $values -}}
{{- if hasSuffix "*" . -}}
{{- $begins := trimSuffix "*" . | toJson -}}
{{- $out = append $out (printf "(k == %s && variables.%s[k].startsWith(%s) && variables.%s[k].substring(size(%s)).matches(\"^[A-Za-z0-9][-._A-Za-z0-9]*$\"))" (toJson $key) $map $begins $map $begins) -}}
{{- else -}}
{{- $out = append $out (printf "(k == %s && variables.%s[k] == %s)" (toJson $key) $map (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end }}

{{/* The rules of one shape as JSON: [[expression, message]]: (shape, level, around: CEL with %s for the rule, ours, fence) */}}
{{- define "sublet.fence.shape" -}}
{{- $level := .level -}}
{{- $around := .around -}}
{{- $more := .more -}}
{{- $ours := .ours -}}
{{- $out := list -}}
{{- range .shape.rules -}}
{{- $keys := .keys -}}
{{- if eq $level "privileged" -}}
{{- $keys = concat $keys .privileged | sortAlpha -}}
{{- end -}}
{{- $keys = concat $keys (get ($more | default dict) .path | default list) | sortAlpha -}}
{{- $out = append $out (list (printf $around (.cel | replace "KEYS" (toJson $keys))) (printf "%s: only %s are sent" .path (join ", " $keys))) -}}
{{- end -}}
{{- if .shape.names -}}
{{- $names := join " && " .shape.names -}}
{{- $names = regexReplaceAll "OURS\\(([^()]*)\\)" $names (printf "(${1}.matches(%s) || $1 in %s)" (toJson .form | replace "$" "$$") (toJson .named)) -}}
{{- $out = append $out (list (printf $around (printf "(%s)" $names)) (printf "%s: names an object that is not this virtual cluster's" (index .shape.rules 0).path)) -}}
{{- end -}}
{{- toJson $out -}}
{{- end }}
