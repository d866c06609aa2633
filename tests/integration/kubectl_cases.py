# SPDX-License-Identifier: Apache-2.0
"""kubectl as people use it: one command per line, in order, in a namespace of its own.

A line that begins with a word and `<` gives that manifest to the command as its input. `?` before a command: what it
says depends on the moment (events, conditions), only its exit code counts. `wait` lines make the next ones certain.
Schedules are those of leap days: a day that is played as the hour turns would see a job that others do not.
"""

MANIFESTS = {
    "web": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: registry.example/web:1
        ports: [{containerPort: 80, name: http}]
        env: [{name: COLOR, value: blue}]
        resources: {requests: {cpu: 50m, memory: 32Mi}}
        readinessProbe: {httpGet: {path: /, port: http}}
        volumeMounts: [{name: config, mountPath: /etc/web}]
      volumes: [{name: config, configMap: {name: settings}}]
""",
    "web-green": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "registry.example/web:1", env: [{name: COLOR, value: green}]}
""",
    "things": """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: LimitRange, metadata: {name: bounds}, spec: {limits: [{type: Container, max: {cpu: "8"}, default: {cpu: "1"}}]}}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: closed}
  spec:
    podSelector: {matchLabels: {app: web}}
    ingress: [{from: [{namespaceSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 80}]}]
    policyTypes: [Ingress, Egress]
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {storageClassName: standard, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db}
  spec: {serviceName: db, replicas: 0, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: registry.example/db}]}}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: old}
  spec: {replicas: 0, selector: {matchLabels: {app: old}}, template: {metadata: {labels: {app: old}}, spec: {containers: [{name: old, image: registry.example/old}]}}}
- apiVersion: v1
  kind: ReplicationController
  metadata: {name: older}
  spec: {replicas: 0, selector: {app: older}, template: {metadata: {labels: {app: older}}, spec: {containers: [{name: older, image: registry.example/older}]}}}
- {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lock}, spec: {holderIdentity: me, leaseDurationSeconds: 15}}
- {apiVersion: v1, kind: PodTemplate, metadata: {name: mold}, template: {spec: {containers: [{name: c, image: i}]}}}
""",
    "wrong": """
apiVersion: v1
kind: ConfigMap
metadata: {name: wrong}
dta: {a: b}
""",
    "invalid": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: invalid}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: UPPER, image: ""}]}}}
""",
    "settings": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
""",
    "roles": """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reconciled}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
""",
    "more-roles": """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reconciled}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {apiGroups: [apps], resources: [deployments], verbs: [get, list]}]
""",
}

COMMANDS = """
version
?api-versions
# making things, with every generator
create configmap settings --from-literal=color=red --from-literal=size=3
create configmap settings --from-literal=color=red
create secret generic pass --from-literal=user=u --from-literal=word=w
create secret docker-registry pull --docker-username=u --docker-password=p --docker-server=registry.example
create serviceaccount robot
create role reader --verb=get,list --resource=pods,deployments.apps
create rolebinding reader --role=reader --serviceaccount=NS:robot
create rolebinding viewers --clusterrole=view --group=team
create quota small --hard=pods=40,requests.cpu=20,services=10
create job once --image=registry.example/job:1 -- true
create cronjob nightly --image=registry.example/job:1 --schedule=5,10 */2 29 2 *
create cronjob hourly --image=registry.example/job:1 --schedule=0 0 29 2 *
create job byhand --from=cronjob/hourly
create service clusterip plain --tcp=80:8080
create service clusterip headless --clusterip=None --tcp=5432
create service nodeport node --tcp=80:8080
create service externalname elsewhere --external-name=example.com
create ingress site --rule=site.example/path*=plain:80,tls=cert --annotation=a=b
create poddisruptionbudget guard --selector=app=web --min-available=1
create deployment plainly --image=registry.example/a:1 --replicas=0 --port=80
create deployment plainly --image=registry.example/a:1 --dry-run=server -o yaml
create configmap nothing --from-literal=a --dry-run=client
create token robot --duration=1s
things < apply -f -
web < apply -f -
web < apply -f -
wrong < apply -f -
invalid < apply -f -
invalid < create -f - --validate=ignore
?rollout status deployment/web --timeout=180s
wait --for=condition=Available deployment/web --timeout=180s
wait --for=jsonpath={.status.readyReplicas}=2 deployment/web --timeout=180s
run single --image=registry.example/single:1 --labels=app=single --env=A=b --port=8080
wait --for=condition=Ready pod/single --timeout=180s
wait --for=condition=Complete job/once job/byhand --timeout=180s
expose deployment web --port=80 --target-port=http
expose pod single --port=8080 --name=single
autoscale deployment web --min=2 --max=4 --cpu=80%
# reading them
wait --for=jsonpath={.status.used.pods}=3 resourcequota/small --timeout=180s
get all -o name
get pods -l app=single -o wide
get pods -l app=web
get deployments,statefulsets,replicasets -l tier=front
get deploy web -o wide
get deploy web -o jsonpath={.spec.template.spec.containers[0].image}
get deploy web -o custom-columns=NAME:.metadata.name,WANT:.spec.replicas,IMG:.spec.template.spec.containers[*].image
get deploy -o go-template={{range .items}}{{.metadata.name}}{{"\\n"}}{{end}}
get deploy web -o yaml
get deploy web -o json --show-managed-fields
get statefulsets,daemonsets,replicationcontrollers,controllerrevisions
get jobs
get jobs -o wide
get cronjobs
get cronjobs -o wide
get services
get services -o wide
get ingresses
get networkpolicies
get configmaps
get secrets
get serviceaccounts
get roles,rolebindings
get rolebindings -o wide
get resourcequotas
get limitranges
get pdb
?get hpa
get pvc
get leases
get podtemplates
get endpointslices -l kubernetes.io/service-name=plain
get cm settings missing
get nothing
get pods --field-selector=status.phase=Running,metadata.name=single
get pods --field-selector=spec.nothing=1
get pods -l a=b=c
get pods --show-labels -l app=single
get pods -L app -l app=single --sort-by=.metadata.name
get --raw /api/v1/namespaces/NS/configmaps/none
get ns NS
get priorityclasses
get apiservices v1.apps
get clusterroles system:basic-user -o jsonpath={.rules}
get flowschemas exempt
describe deployment plainly
describe configmap settings
describe secret pass
describe serviceaccount robot
describe role reader
describe rolebinding reader
describe resourcequota small
describe limitrange bounds
describe networkpolicy closed
describe service headless
describe service elsewhere
describe ingress site
describe pdb guard
describe cronjob nightly
describe pvc claim
describe statefulset db
describe replicaset old
describe rc older
describe podtemplate mold
describe lease lock
describe priorityclass system-node-critical
describe clusterrole system:basic-user
describe clusterrolebinding cluster-admin
describe pod single
describe job once
describe deployment web
?describe hpa web
describe ns NS
explain deployment.spec.strategy
explain pod.spec.containers.nothing
explain nothing
explain cronjobs --recursive
api-resources --namespaced=true -o name --api-group=apps
api-resources --api-group=batch
# changing them
web < diff -f -
web-green < diff -f -
label deployment web color=blue
label deployment web color=red
label deployment web color=red --overwrite
label deployment web color-
label pods -l app=single a=b c=d
annotate deployment web note=first kubernetes.io/change-cause=second
annotate deployment web note-
wait --for=jsonpath={.metadata.annotations.kubernetes\\.io/change-cause}=second replicaset -l app=web --timeout=180s
patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"SIZE","value":"3"}]}]}}}}
patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":9}]
patch deployment web --type=json -p [{"op":"replace","path":"/spec/replicas","value":1}]
?patch deployment web --type=merge -p {"spec":{"replicas":2}}
?patch deployment web --type=merge -p {"spec":{"replicas":"two"}}
patch deployment web --subresource=scale --type=merge -p {"spec":{"replicas":3}}
patch cm settings -p {"data":{"color":null}}
?rollout status deployment/web --timeout=180s
rollout history deployment/web
rollout history deployment/web --revision=2
rollout undo deployment/web --to-revision=99
rollout undo deployment/web
?rollout status deployment/web --timeout=180s
rollout pause deployment/web
rollout pause deployment/web
set image deployment/web main=registry.example/web:2
set resources deployment/web --limits=cpu=200m --requests=memory=64Mi
set env deployment/web SIZE=9 COLOR-
set env deployment/web --list
set serviceaccount deployment/web robot
set selector service plain app=web
set subject rolebinding viewers --group=others
rollout resume deployment/web
rollout restart deployment/plainly
?rollout status deployment/web --timeout=180s
get deploy web -o jsonpath={.spec.template.spec}
scale deployment web --replicas=1 --current-replicas=9
scale deployment web --replicas=1
scale statefulset db --replicas=0
scale --replicas=0 rs/old rc/older
settings < replace -f -
settings < replace --force -f - --grace-period=0
settings < apply -f - --server-side --field-manager=me
settings < apply view-last-applied -f -
edit configmap settings
taint nodes none a=b:NoSchedule
cordon none
auth can-i create deployments
auth can-i list secrets --as=system:serviceaccount:NS:robot
auth can-i get pods --as=system:serviceaccount:NS:robot
auth can-i --list --as=system:serviceaccount:NS:robot
auth can-i get nodes --as=guest --as-group=nogroup
auth can-i get /healthz --as=guest
auth can-i eat bananas
auth whoami --as=ann --as-group=team -o yaml
get secrets --as=ann
delete cm settings --as=system:serviceaccount:NS:robot
roles < auth reconcile -f -
more-roles < auth reconcile -f -
more-roles < auth reconcile -f - --dry-run=server
top pods
top nodes
certificate approve none
?cluster-info
?events
?get events --field-selector=involvedObject.name=web
debug single --image=registry.example/debug:1 --attach=false
get pod single -o jsonpath={.spec.ephemeralContainers[*].image}
?drain none
get pod single -o jsonpath={.metadata.labels} {.spec}
# and away with them
delete cm missing
delete cm missing --ignore-not-found
delete deployment plainly --cascade=foreground
delete deployment web --cascade=orphan
get rs -l app=web -o name
delete rs -l app=web
?wait --for=delete pod -l app=web --timeout=180s
delete job once --cascade=background
delete pod single --grace-period=0 --force
delete services --all
# jobs first: those of a CronJob go with it, sooner or later
delete jobs,cronjobs --all
?delete all --all
delete secret pass -o name
get all
"""


def commands():
    """(line, only its code counts, manifest or None, arguments) of each; arguments are cut at spaces."""
    for line in COMMANDS.splitlines():
        if not line or line.startswith("#"):
            continue
        loose = line.startswith("?")
        text = line.lstrip("?")
        name, mark, rest = text.partition(" < ")
        manifest = MANIFESTS[name] if mark else None
        yield line, loose, manifest, _arguments(rest if mark else text)


def _arguments(text):
    words = []
    for word in text.split(" "):
        # A schedule's fields, and a template's, belong to the option they follow.
        if words and (words[-1].startswith("--schedule=") or words[-1].count("{{") > words[-1].count("}}")) \
                and not word.startswith("--"):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


# Said beside upstream's own warnings when such an object is written.
NO_EFFECT = {"Warning: NetworkPolicy has no effect yet: the traffic of pods is not restricted by it"}

# What differs for a reason, by command.
REVIEWED = {
    "describe pvc claim": "a claim in use is kept by the host, not by a finalizer",
}
