# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases/*.yaml: what a hostile tenant sends, what it is answered, what the host gets.

A case is a piece of a pod (`pod`, `meta`), which is tried by every way a pod can be written, or `steps`: requests in
their order. cases/README in the folder's README says what the keys mean.
"""
import copy
import json
import re
import shutil
import string
import time

import yaml

from testenv.api import Api
from testenv.virtual import merge
from testenv.wait import eventually
from wire import protobuf_pod

TALLY = {"cases": 0, "tried": 0, "through": 0}
PATIENCE = 30

TYPES = {"json": "application/json-patch+json", "merge": "application/merge-patch+json",
         "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}
TEMPLATES = {  # kind -> (path, how a pod template stands in its spec)
    "Deployment": ("/apis/apps/v1", "deployments"), "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"), "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Job": ("/apis/batch/v1", "jobs"), "CronJob": ("/apis/batch/v1", "cronjobs"),
    "ReplicationController": ("/api/v1", "replicationcontrollers")}
# Where kinds are that sync.toHost adds; all others are in the core group.
ROOTS = {"networkpolicies": "/apis/networking.k8s.io/v1", "ingresses": "/apis/networking.k8s.io/v1",
         "poddisruptionbudgets": "/apis/policy/v1", "endpointslices": "/apis/discovery.k8s.io/v1",
         "gateways": "/apis/gateway.networking.k8s.io/v1", "httproutes": "/apis/gateway.networking.k8s.io/v1",
         "backendtlspolicies": "/apis/gateway.networking.k8s.io/v1",
         "resourceclaims": "/apis/resource.k8s.io/v1", "serviceaccounts": "/api/v1"}
# Of these, what has no namespace.
CLUSTER_ROOTS = {"storageclasses": "/apis/storage.k8s.io/v1", "persistentvolumes": "/api/v1"}


class LetThrough(AssertionError):
    """A way that worked and must not."""
    may_pass = False


# --- where it happens -------------------------------------------------------------------------------

class Field:
    """The clusters of the suite, users in them, and words for `$name` in cases."""

    def __init__(self, host, clusters):
        self.host = host
        self.clusters = clusters
        self.number = 0
        self.apis = {}
        self.words = {}
        self._furnish_victim()
        self.before = self.victims_things()

    def _furnish_victim(self):
        victim = self.clusters["victim"]
        base = "/api/v1/namespaces/default"
        victim.api.post(f"{base}/secrets", {"metadata": {"name": "gold"}, "stringData": {"k": "v"}})
        victim.api.post(f"{base}/configmaps", {"metadata": {"name": "gold"}, "data": {"k": "v"}})
        victim.api.post(f"{base}/services", {"metadata": {"name": "gold"}, "spec": {
            "selector": {"app": "gold"}, "ports": [{"port": 80}]}})
        victim.api.post(f"{base}/pods", {"metadata": {"name": "gold", "labels": {"app": "gold"}}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [
                {"name": "c", "image": "example.com/i:1", "envFrom": [{"secretRef": {"name": "gold"}},
                                                                     {"configMapRef": {"name": "gold"}}]}]}})
        pod = eventually(lambda: self.host_objects("victim", "pods", "default", "gold"), PATIENCE, "the victim's pod")[0]
        eventually(lambda: victim.api.get(f"{base}/pods/gold")["status"].get("phase") == "Running", PATIENCE,
                   "the victim's pod to run")
        service = eventually(lambda: self.host_objects("victim", "services", "default", "gold"), PATIENCE, "its Service")[0]
        secret = eventually(lambda: self.host_objects("victim", "secrets", "default", "gold"), PATIENCE, "its Secret")[0]
        self.words = {
            "victim_namespace": victim.namespace, "victim_pod": pod["metadata"]["name"],
            "victim_uid": pod["metadata"]["uid"], "victim_secret": secret["metadata"]["name"],
            "victim_service": service["metadata"]["name"], "victim_ip": service["spec"]["clusterIP"],
            "victim_cluster": pod["metadata"]["labels"]["sublet.dev/cluster"], "foreign_node": "gpu-a100-1",
            "own_node": "gpu-l4-1", "longname": "a" * 254, "halfmegabyte": "x" * (1 << 19),
            "large": json.dumps({"metadata": {"name": "large"}, "data": {"k": "x" * (4 << 20)}}), "host_url": self.host.url, "victim_url": f"https://127.0.0.1:{victim.port}"}

    def victims_things(self):
        """Everything of the victim on the host, without what changes by itself."""
        out = {}
        for resource in ("pods", "services", "secrets", "configmaps"):
            for o in self.clusters["victim"].host_objects("/api/v1", resource):
                out[resource, o["metadata"]["uid"]] = json.dumps(
                    [o["metadata"]["labels"], o.get("spec"), o.get("data"), "deletionTimestamp" in o["metadata"]],
                    sort_keys=True)
        return out

    def revive(self):
        """Clusters whose process has ended, each begun anew with nothing: the next case is not to suffer."""
        died = {name: vc for name, vc in self.clusters.items() if vc.process.died}
        told = {name: vc.process.tail(12) for name, vc in died.items()}
        for vc in died.values():
            vc.kill()
            shutil.rmtree(vc.store, ignore_errors=True)
            self.host.delete_namespace(vc.namespace)
            eventually(lambda n=vc.namespace: self.host.api.raw("GET", f"/api/v1/namespaces/{n}")[0] == 404, PATIENCE, "its end")
            self.host.create_namespace(vc.namespace)
            vc.start()
        if died:
            self.apis.clear()
        return told

    def of_the_cluster(self, cluster, resource):
        """The host's objects without a namespace that a tenant made."""
        items = self.host.api.get(f"{CLUSTER_ROOTS[resource]}/{resource}")["items"]
        return [o for o in items if o["metadata"].get("labels", {}).get("sublet.dev/host-namespace")
                == self.clusters[cluster].namespace]

    def host_objects(self, cluster, resource, namespace, name=None):
        def is_it(o):
            notes = o["metadata"]["annotations"]
            return notes.get("sublet.dev/namespace") == namespace and name in (None, notes["sublet.dev/name"])
        if resource in CLUSTER_ROOTS:
            return [o for o in self.of_the_cluster(cluster, resource) if o["metadata"]["annotations"]["sublet.dev/name"] == name]
        return [o for o in self.clusters[cluster].host_objects(ROOTS.get(resource, "/api/v1"), resource) if is_it(o)]

    def api(self, cluster, user, namespace):
        """The API as a user: admin, anonymous, unprivileged (authenticated, no rights), editor (of the namespace)."""
        key = (cluster, user, "" if user == "admin" else namespace)
        if key not in self.apis:
            vc = self.clusters[cluster]
            api = Api(vc.kubeconfig)
            if user != "admin":
                path = vc.user_kubeconfig(f"{user}-{len(self.apis)}", token=self._token(vc, user, namespace))
                api = Api(path)
            if user == "anonymous":
                api.headers.pop("Authorization", None)
            self.apis[key] = api
        return self.apis[key]

    def _token(self, vc, user, namespace):
        if user == "anonymous":
            return "x"
        token = vc.api.create_service_account(namespace, user)
        if user == "editor":
            vc.api.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
                "metadata": {"name": user}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                       "name": "admin"},
                "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": namespace}]})
        return token

    def new_namespace(self, cluster):
        self.number += 1
        name = f"e-{self.number}"
        self.clusters[cluster].api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        eventually(lambda: self.clusters[cluster].api.raw(
            "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, PATIENCE, "the service account")
        return name


# --- answers ----------------------------------------------------------------------------------------

class Answer:
    def __init__(self, code, headers, data):
        self.code = code
        self.text = data.decode("utf-8", "replace")
        self.warnings = " | ".join(headers.get_all("Warning") or [])
        try:
            self.body = json.loads(data)
        except ValueError:
            self.body = {}

    @property
    def message(self):
        return self.body.get("message", "") if isinstance(self.body, dict) else ""

    def __str__(self):
        return f"{self.code} {self.message or self.text[:300]} (warnings: {self.warnings})"


def send(api, method, path, body=None, content_type=None, **kw):
    return Answer(*api.raw(method, path, body, content_type=content_type, **kw))


def must_refuse(answer, want, codes=(403,), reason=None):
    """Refused, in the words of the case."""
    if answer.code < 400:
        raise LetThrough(f"accepted: {answer}")
    assert answer.code in codes, f"want {codes}: {answer}"
    assert re.search(want, answer.message or answer.text), f"want {want!r}: {answer}"
    if reason:
        assert answer.body.get("reason") == reason, f"want {reason}: {answer}"


def at(value, path):
    """What stands at a.b[0].'c.d'; None where there is nothing."""
    for quoted, index, plain in re.findall(r"'([^']*)'|\[(\d+)\]|([^.\[\]']+)", path):
        if index:
            value = value[int(index)] if isinstance(value, list) and len(value) > int(index) else None
        else:
            value = value.get(quoted or plain) if isinstance(value, dict) else None
    return value


def check_host(objects, want):
    """Host objects as the case says: `absent` paths, `equal` and `not` values, `match` and `without` of their JSON."""
    for o in objects:
        name = f"{o.get('kind', 'object')} {o['metadata']['name']}"
        text = json.dumps({k: v for k, v in o.items() if k != "status"})
        for path in want.get("absent", []):
            if at(o, path) not in (None, [], {}):
                raise LetThrough(f"{name} on the host has {path}: {at(o, path)}")
        for path, value in want.get("not", {}).items():
            if at(o, path) == value:
                raise LetThrough(f"{name} on the host has {path}: {value}")
        for path, value in want.get("equal", {}).items():
            if at(o, path) != value:
                raise LetThrough(f"{name} on the host has {path}: {at(o, path)}, not {value}")
        for pattern in want.get("without", []):
            if re.search(pattern, text):
                raise LetThrough(f"{name} on the host has {pattern}: {text}")
        for pattern in want.get("match", []):
            assert re.search(pattern, text), f"{name} on the host lacks {pattern}: {text}"


# --- pods, by every way ------------------------------------------------------------------------------

class PodCase:
    """A piece of a pod by every way it can be written."""

    def __init__(self, field, case, cluster, namespace):
        self.field, self.case, self.cluster, self.namespace = field, case, cluster, namespace
        self.api = field.api(cluster, case.get("as", "admin"), namespace)
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.refused = case.get("refused")
        self.host = case.get("host", {})
        self.ways = 0

    def pod(self, name, **meta):
        base = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace, **meta},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "example.com/i:1"}]}}
        return base

    def hostile(self, name, **meta):
        pod = self.pod(name, **meta)
        pod["metadata"] = merge(pod["metadata"], self.case.get("meta", {}))
        pod["spec"] = merge(pod["spec"], self.case.get("pod", {}))
        return pod

    def run(self):
        ways = {"create": self.create, "yaml": self.yaml, "dry-run": self.dry_run, "apply": self.apply,
                "unchecked": self.unchecked, "put": self.put, "merge": self.patch, "strategic": self.patch,
                "json": self.json_patch, "apply-over": self.apply_over, "protobuf": self.protobuf, "templates": self.templates}
        for name in self.case.get("ways", ways):
            if name == "protobuf" and "protobuf" not in self.case:
                continue
            if "update" in self.case and self.case["update"] is False and name in (
                    "put", "merge", "strategic", "json", "apply-over"):
                continue
            try:
                ways[name](name)
            except AssertionError as e:
                raise type(e)(f"by {name}: {e}") from None
            self.ways += 1
        return self.ways

    # ways that make a pod

    def judge(self, answer, name, dry=False):
        """The answer to a pod that is new, and what the host got."""
        if self.refused:
            must_refuse(answer, self.refused, self.case.get("codes", (403, 422)), self.case.get("reason"))
            assert not self.field.host_objects(self.cluster, "pods", self.namespace, name), "the host has it"
            return
        assert answer.code < 300, f"refused: {answer}"
        if "warning" in self.case:
            assert re.search(self.case["warning"], answer.warnings), f"want the warning {self.case['warning']!r}: {answer}"
        if dry:
            assert not self.field.host_objects(self.cluster, "pods", self.namespace, name), "a dry run made it"
        elif self.case.get("stays"):
            assert not self.field.host_objects(self.cluster, "pods", self.namespace, name), "the host has it"
        else:
            def there():
                return (self.field.host_objects(self.cluster, "pods", self.namespace, name)
                        or "may-go" in self.case and send(self.api, "GET", f"{self.pods}/{name}").code == 404)
            objects = eventually(there, PATIENCE, f"the host pod of {name}")
            check_host(objects if isinstance(objects, list) else [], self.host)

    def create(self, way):
        self.judge(send(self.api, "POST", self.pods, self.hostile("create")), way)

    def yaml(self, way):
        body = yaml.safe_dump(self.hostile("yaml")).encode()
        self.judge(send(self.api, "POST", self.pods, body, "application/yaml"), way)

    def unchecked(self, way):
        """fieldValidation=Ignore is what old clients send."""
        self.judge(send(self.api, "POST", self.pods, self.hostile("unchecked"), query={"fieldValidation": "Ignore"}), way)

    def dry_run(self, way):
        self.judge(send(self.api, "POST", self.pods, self.hostile("dry-run"), query={"dryRun": "All"}), way, dry=True)

    def apply(self, way):
        self.judge(send(self.api, "PATCH", f"{self.pods}/apply", json.dumps(self.hostile("apply")).encode(), TYPES["apply"],
                        query={"fieldManager": "e", "force": "true"}), way)

    def protobuf(self, way):
        body = protobuf_pod(self.namespace, "protobuf", self.case["protobuf"])
        self.judge(send(self.api, "POST", self.pods, body, "application/vnd.kubernetes.protobuf"), way)

    # ways that change one

    def existing(self, name):
        if send(self.api, "GET", f"{self.pods}/{name}").code == 404:
            answer = send(self.api, "POST", self.pods, self.pod(name))
            assert answer.code == 201, f"a harmless pod: {answer}"
        eventually(lambda: self.field.host_objects(self.cluster, "pods", self.namespace, name), PATIENCE, f"the host pod of {name}")
        return f"{self.pods}/{name}"

    def judge_change(self, answer, name):
        assert answer.code < 500, str(answer)
        if self.refused and answer.code < 300 and not self.case.get("ignored"):
            raise LetThrough(f"accepted: {answer}")
        if answer.code < 300:
            self.settle(name)
        check_host(self.field.host_objects(self.cluster, "pods", self.namespace, name), self.host)

    def settle(self, name):
        """A label after the change has reached the host: so has the change."""
        mark = f"m-{time.monotonic_ns()}"
        answer = send(self.api, "PATCH", f"{self.pods}/{name}", {"metadata": {"labels": {"mark": mark}}}, TYPES["merge"])
        assert answer.code == 200, str(answer)
        eventually(lambda: [o for o in self.field.host_objects(self.cluster, "pods", self.namespace, name)
                            if mark in o["metadata"]["labels"].values()], PATIENCE, "a later change on the host")

    def change(self):
        out = {}
        if "meta" in self.case:
            out["metadata"] = copy.deepcopy(self.case["meta"])
        if "pod" in self.case:
            out["spec"] = copy.deepcopy(self.case["pod"])
        return out

    def put(self, way):
        path = self.existing(way)
        pod = self.api.get(path)
        pod = merge(pod, self.change())
        self.judge_change(send(self.api, "PUT", path, pod), way)

    def patch(self, way):
        path = self.existing(way)
        self.judge_change(send(self.api, "PATCH", path, self.change(), TYPES[way]), way)

    def json_patch(self, way):
        path = self.existing(way)
        ops = [{"op": "add", "path": f"/{part}/{key}", "value": value}
               for part, keys in self.change().items() for key, value in keys.items()]
        self.judge_change(send(self.api, "PATCH", path, json.dumps(ops).encode(), TYPES["json"]), way)

    def apply_over(self, way):
        path = self.existing(way)
        self.judge_change(send(self.api, "PATCH", path, json.dumps(self.hostile(way)).encode(), TYPES["apply"],
                               query={"fieldManager": "e", "force": "true"}), way)

    # ways that have one made

    def template(self, kind):
        pod = self.hostile(kind.lower())
        meta = {k: v for k, v in pod["metadata"].items() if k in ("labels", "annotations", "finalizers")}
        meta["labels"] = {**meta.get("labels", {}), "by": kind.lower()}
        template = {"metadata": meta, "spec": pod["spec"]}
        spec = {"template": template}
        if kind in ("Job", "CronJob"):
            template["spec"]["restartPolicy"] = "Never"
            spec["backoffLimit"] = 0
        else:
            spec["selector"] = {"matchLabels": {"by": kind.lower()}}
        if kind == "ReplicationController":
            spec["selector"] = {"by": kind.lower()}
        if kind == "StatefulSet":
            spec["serviceName"] = "s"
        if kind == "CronJob":
            spec = {"schedule": "0 0 29 2 *", "jobTemplate": {"spec": spec}}
        return {"kind": kind, "apiVersion": TEMPLATES[kind][0].split("/", 2)[-1].replace("api/v1", "v1"),
                "metadata": {"name": kind.lower()}, "spec": spec}

    def templates(self, _way):
        waiting = {}
        for kind, (group, plural) in TEMPLATES.items():
            answer = send(self.api, "POST", f"{group}/namespaces/{self.namespace}/{plural}", self.template(kind))
            assert answer.code < 500, f"{kind}: {answer}"
            self.ways += 1
            if answer.code < 300 and kind != "CronJob":
                waiting[kind] = answer
            else:
                assert self.refused or kind == "CronJob" or self.case.get("templates-refused"), f"{kind}: {answer}"
        for kind in waiting:
            self.wait_for_template(kind)

    def wait_for_template(self, kind):
        def made():
            return [o for o in self.field.host_objects(self.cluster, "pods", self.namespace)
                    if o["metadata"]["annotations"]["sublet.dev/name"].startswith(kind.lower() + "-")]

        def failed():
            events = self.field.clusters[self.cluster].api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
            return [e for e in events if e["reason"] == "FailedCreate"
                    and e["involvedObject"]["name"].startswith(kind.lower())]

        def without_nodes():
            path = f"{TEMPLATES[kind][0]}/namespaces/{self.namespace}/{TEMPLATES[kind][1]}/{kind.lower()}"
            status = self.field.clusters[self.cluster].api.get(path).get("status", {})
            return kind == "DaemonSet" and status.get("observedGeneration") and not status.get("desiredNumberScheduled")

        if self.refused and not self.case.get("ignored"):
            eventually(lambda: failed() or without_nodes(), PATIENCE, f"{kind}: the refusal of its pod")
            if made():
                raise LetThrough(f"{kind}: the host has its pod")
        elif not self.case.get("stays"):
            eventually(lambda: made() or without_nodes(), PATIENCE, f"{kind}: its pod on the host")
            check_host(made(), self.host)


# --- requests ----------------------------------------------------------------------------------------

class StepsCase:
    """Requests in their order, and what the host has then."""

    METHODS = ("post", "put", "patch", "get", "delete")

    def __init__(self, field, case, cluster, namespace):
        self.field, self.case, self.cluster, self.namespace = field, case, cluster, namespace

    def run(self):
        for number, step in enumerate(self.case["steps"]):
            try:
                self.step(step)
            except AssertionError as e:
                raise type(e)(f"step {number}: {e}") from None
        for what, want in self.case.get("host", {}).items():
            resource, name = what.split("/")
            if want == "none":
                if self.field.host_objects(self.cluster, resource, self.namespace, name):
                    raise LetThrough(f"the host has {what}")
            else:
                check_host(eventually(lambda r=resource, n=name: self.field.host_objects(
                    self.cluster, r, self.namespace, n), PATIENCE, f"{what} on the host"), want)
        return len(self.case["steps"])

    def step(self, step):
        method = next(m for m in self.METHODS if m in step)
        if "until" in step:
            eventually(lambda: self.once(step, method), PATIENCE, f"{method} {step[method]}")
            return
        self.judge(step, self.once(step, method))

    def once(self, step, method):
        api = self.field.api(step.get("in", self.cluster), step.get("as", "admin"), self.namespace)
        body, kind = step.get("body"), None
        if method == "patch":
            kind = TYPES[step.get("type", "merge")]
            body = json.dumps(body).encode()
        elif isinstance(body, str):
            body = body.encode()
            kind = step.get("type", "application/json")
        answer = send(api, method.upper(), step[method], body, kind, headers=step.get("headers"), query=step.get("query"))
        if "until" in step:
            return re.search(step["until"], answer.text)
        return answer

    def judge(self, step, answer):
        if "refused" in step:
            codes = step.get("code", [400, 401, 403, 404, 405, 409, 413, 422, 429])
            must_refuse(answer, step["refused"], codes if isinstance(codes, list) else [codes], step.get("reason"))
        else:
            code = step.get("code", [200, 201, 202])
            assert answer.code in (code if isinstance(code, list) else [code]), str(answer)
        if "warning" in step:
            assert re.search(step["warning"], answer.warnings), f"want the warning {step['warning']!r}: {answer}"
        for pattern in step.get("without", []):
            if re.search(pattern, answer.text):
                raise LetThrough(f"the answer has {pattern}: {answer.text[:2000]}")
        for pattern in step.get("match", []):
            assert re.search(pattern, answer.text), f"the answer lacks {pattern}: {answer.text[:2000]}"


# --- what holds after every case ----------------------------------------------------------------------

def sweep(field, cluster):
    """Host objects of the cluster, whatever was sent: what none may have. Read here, by rules of its own."""
    vc = field.clusters[cluster]
    allowed = {t["key"] for p in vc.config.get("pools", []) for t in p["tolerations"]}
    allowed |= {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure"}
    for resource in ("pods", "services", "secrets", "configmaps", "persistentvolumeclaims"):
        for o in vc.host_objects("/api/v1", resource):
            meta, spec = o["metadata"], o.get("spec", {})
            name = f"{resource}/{meta['name']}"
            wrong = [k for k in ("ownerReferences",) if meta.get(k)]
            if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?-[a-z2-7]{16}", meta["name"]):
                wrong.append("its name")
            if resource == "pods":
                wrong += [k for k in ("hostNetwork", "hostPID", "hostIPC", "resourceClaims", "schedulingGates") if spec.get(k)]
                wrong += [t for t in spec.get("tolerations", []) if t.get("key") not in allowed]
                wrong += [v for v in spec.get("volumes", []) if set(v) & {"hostPath", "csi", "nfs", "iscsi"}]
                if spec.get("automountServiceAccountToken") is not False:
                    wrong.append("a token of the host")
            if resource == "services":
                wrong += [k for k in ("externalIPs", "externalName", "loadBalancerClass") if spec.get(k)]
            if resource == "secrets" and o.get("type") == "kubernetes.io/service-account-token":
                wrong.append("a type the host acts on")
            if wrong:
                raise LetThrough(f"the host's {name} has {wrong}")


def named(value, key):
    """Every object that is, or is an item of, a member of that name, at any depth."""
    if isinstance(value, list):
        return [found for item in value for found in named(item, key)]
    if not isinstance(value, dict):
        return []
    here = value.get(key, [])
    return (here if isinstance(here, list) else [here]) + [f for inner in value.values() for f in named(inner, key)]


def sweep_synced(vc):
    """The same of the kinds that sync.toHost sends down: all that they name is this tenant's, or on the lists."""
    uid = None

    def own(selector):
        return selector and selector.get("matchLabels", {}).get("sublet.dev/cluster") == uid

    def open_peer(peer):
        block = peer.get("ipBlock")
        return not block["cidr"].startswith("10.20.") if block else "namespaceSelector" in peer or \
            not own(peer.get("podSelector"))

    for resource, root in ROOTS.items():
        for o in vc.host_objects(root, resource):
            meta, spec = o["metadata"], o.get("spec", {})
            uid = meta["labels"]["sublet.dev/cluster"]
            wrong = [k for k in ("ownerReferences", "finalizers") if meta.get(k)]
            wrong += [k for k in meta["annotations"] if not k.startswith("sublet.dev/") and "/" in k and "class" in k]
            rules = [(r, r.get("from")) for r in spec.get("ingress") or []] + [
                (r, r.get("to")) for r in spec.get("egress") or []]
            if resource == "networkpolicies":
                wrong += ["a policy for others' pods"] * (not own(spec["podSelector"]))
                wrong += [r for r, peers in rules if not peers or any(map(open_peer, peers))]
            if resource == "ingresses":
                hosts = [r.get("host", "") for r in spec.get("rules", [])]
                hosts += [h for t in spec.get("tls", []) for h in t.get("hosts", [])]
                wrong += [h for h in hosts if not re.fullmatch(r"[^.]+\.synced\.example", h)]
                wrong += [k for k in ("defaultBackend",) if spec.get(k)] + [
                    c for c in [spec.get("ingressClassName")] if c != "nginx"]
            if resource in ("ingresses", "gateways", "httproutes", "backendtlspolicies"):
                wrong += [k for k, v in meta["annotations"].items() if k.startswith("nginx.") and not re.fullmatch(
                    rf"({re.escape(vc.namespace)}/)?[-a-z0-9]+-[a-z2-7]{{16}}", v)]
            if resource == "endpointslices":
                wrong += [e for e in o["endpoints"] or [] if set(e) - {"addresses", "conditions"}
                          or not all(a.startswith("10.30.") for a in e["addresses"])]
            if resource in ("gateways", "httproutes", "backendtlspolicies"):
                wrong += re.findall(r'"namespace": "[^"]*"', json.dumps(spec))
                wrong += [r for key in ("parentRefs", "certificateRefs", "backendRefs", "backendRef", "extensionRef", "targetRefs",
                                      "caCertificateRefs")
                          for r in named(spec, key) if not re.search(r"-[a-z2-7]{16}$", r["name"])]
            if resource == "gateways":
                wrong += [c for c in [spec["gatewayClassName"]] if c != "shared"]
                wrong += [x for x in spec["listeners"] if not re.fullmatch(r"[^.]+\.synced\.example", x.get("hostname", ""))]
            if resource == "serviceaccounts":
                wrong += [k for k in ("secrets", "imagePullSecrets") if o.get(k)]
                wrong += ["a token"] * (o.get("automountServiceAccountToken") is not False)
                wrong += [(k, v) for k, v in meta["annotations"].items() if not k.startswith("sublet.dev/")
                          and not (k == "id.example/role" and re.fullmatch(r"team-[-._A-Za-z0-9]+", v))]
            if resource == "poddisruptionbudgets" and spec.get("selector") is not None and not own(spec["selector"]):
                wrong.append("a budget of others' pods")
            if wrong:
                raise LetThrough(f"the host's {resource}/{meta['name']} has {wrong}")


def sweep_classes(found):
    for o in found:
        meta = o["metadata"]
        wrong = [k for k in meta["annotations"] if not k.startswith("sublet.dev/")]
        wrong += ["its name"] * (not re.fullmatch(r"[a-z0-9][-a-z0-9]*-[a-z2-7]{16}", meta["name"]))
        wrong += [(k, v) for k, v in o.get("parameters", {}).items() if (k, v) != ("type", "fast")]
        wrong += [o["provisioner"]] * (o["provisioner"] != "csi.synced.example")
        wrong += [k for k in ("mountOptions", "ownerReferences", "finalizers") if o.get(k) or meta.get(k)]
        wrong += ["Retain"] * (o.get("reclaimPolicy") != "Delete")
        if wrong:
            raise LetThrough(f"the host's storageclasses/{meta['name']} has {wrong}")


def sweep_volumes(found, namespace):
    """Those of this tenant: of a listed handle, for a claim of its own, with Secrets of its own."""
    for o in found:
        meta, spec = o["metadata"], o["spec"]
        wrong = [k for k in meta["annotations"] if not k.startswith(("sublet.dev/", "pv.kubernetes.io/bound-by"))]
        wrong += ["its name"] * (not re.fullmatch(r"[a-z0-9][-a-z0-9]*-[a-z2-7]{16}", meta["name"]))
        csi = spec.get("csi", {})
        wrong += [csi] * ((csi.get("driver"), csi.get("volumeHandle")) != ("csi.synced.example", "fs-own"))
        refs = [v for k, v in csi.items() if k.endswith("SecretRef")] + [spec.get("claimRef", {})]
        wrong += [r for r in refs if r.get("namespace") != namespace or not re.search("-[a-z2-7]{16}$", r["name"])]
        wrong += [k for k in ("mountOptions", "nodeAffinity", "hostPath", "nfs", "local", "flexVolume") if spec.get(k)]
        wrong += [k for k in ("volumeAttributes", "fsType") if csi.get(k)]
        wrong += ["Delete"] * (spec.get("persistentVolumeReclaimPolicy") != "Retain")
        wrong += ["a class"] * bool(spec.get("storageClassName"))
        if wrong:
            raise LetThrough(f"the host's persistentvolumes/{meta['name']} has {wrong}")


def substitute(value, words):
    if isinstance(value, str):
        return string.Template(value).safe_substitute(words)
    if isinstance(value, list):
        return [substitute(v, words) for v in value]
    if isinstance(value, dict):
        return {substitute(k, words): substitute(v, words) for k, v in value.items()}
    return value


def run_case(field, case):
    cluster = case.get("tenant", "attacker")
    field.revive()
    namespace = field.new_namespace(cluster)
    case = substitute(case, {**field.words, "ns": namespace, "own_namespace": field.clusters[cluster].namespace})
    TALLY["cases"] += 1
    try:
        runner = StepsCase if "steps" in case else PodCase
        TALLY["tried"] += runner(field, case, cluster, namespace).run()
        sweep(field, cluster)
        sweep_synced(field.clusters[cluster])
        sweep_classes(field.of_the_cluster(cluster, "storageclasses"))
        sweep_volumes(field.of_the_cluster(cluster, "persistentvolumes"), field.clusters[cluster].namespace)
        if field.victims_things() != field.before:
            raise LetThrough("something of the victim's has changed on the host")
    except LetThrough:
        TALLY["through"] += 1
        raise
    finally:
        died = field.revive()
        field.before = field.victims_things()
        field.clusters[cluster].api.raw("DELETE", f"/api/v1/namespaces/{namespace}")
        if died:
            TALLY["through"] += 1
    assert not died, f"a tenant ended {died}"
