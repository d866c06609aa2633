# SPDX-License-Identifier: Apache-2.0
"""Sequences of writes for the comparison of Sublet with a real kube-apiserver: who owns which field after each.

A case is a list of steps on one server; a step is (what, do) where do(session) makes one request. Sessions keep the
answers, without what no two servers share: uids, revisions, addresses and times. The hand-picked cases follow upstream's
own tests of server-side apply (test/integration/apiserver/apply); the seeded ones are any mix of writes.
"""
import copy
import json
import random
import re
import time

MANAGERS_OF_OTHERS = ("kube-controller-manager", "kube-scheduler", "kubelet", "kwok", "sublet")
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")

GVR = {  # kind: (path of the group and version, plural)
    "ConfigMap": ("/api/v1", "configmaps"),
    "Pod": ("/api/v1", "pods"),
    "Service": ("/api/v1", "services"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "HorizontalPodAutoscaler": ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    "Ingress": ("/apis/networking.k8s.io/v1", "ingresses"),
    "Widget": ("/apis/apply.example.com/v1", "widgets"),
    "Free": ("/apis/apply.example.com/v1", "frees"),
}


def path_of(ns, kind, name=None, sub=None, version=None):
    base, plural = GVR[kind]
    if version:
        base = base.rsplit("/", 1)[0] + "/" + version
    path = f"{base}/namespaces/{ns}/{plural}"
    return "/".join(filter(None, [path, name, sub]))


def api_version(kind):
    base = GVR[kind][0].split("/")
    return "/".join(base[2:])


def obj(kind, name, meta=None, **rest):
    return {"apiVersion": api_version(kind), "kind": kind, "metadata": {"name": name, **(meta or {})}, **rest}


# ---- what is compared ----

# What a host, a controller or an allocator fills in, whoever is said to own it then.
FILLED_IN = ("f:clusterIP", "f:clusterIPs", "f:ipFamilies", "f:ipFamilyPolicy", "f:nodePort",
             "f:deployment.kubernetes.io/revision")


def without_filled_in(fields):
    out = {}
    for key, below in fields.items():
        if key in FILLED_IN or (key == "f:annotations" and not below):
            continue  # when a controller's annotation was the only one, an empty map may stay owned
        rest = without_filled_in(below)
        if rest and set(rest) != {"."} or not below:
            out[re.sub(r"kube-api-access-\w{5}", "kube-api-access", key)] = rest
        elif set(rest) == {"."} and set(below) == {"."}:
            out[key] = rest
    return out


def entries_of(metadata):
    out = []
    for e in metadata.get("managedFields") or []:
        if e.get("manager") in MANAGERS_OF_OTHERS:
            continue
        e = {**e, "fieldsV1": without_filled_in(e["fieldsV1"])}
        e["time"] = "time" in e
        out.append(e)
    return sorted(out, key=lambda e: json.dumps(e, sort_keys=True))


def stable_text(text):
    """Patched objects stand in messages, each printed in its server's own order."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", text)
    text = re.sub(r"(pod updates may not change fields other than).*", r"\1 ...", text, flags=re.S)
    return re.sub(r'Invalid value: "\{.*: (json: |strict |converting )', r'Invalid value: "OBJECT": \1', text, flags=re.S)


def stable(value):
    """An answer without what differs between any two servers."""
    if not isinstance(value, dict):
        return value
    value = copy.deepcopy(value)
    if value.get("kind") == "Status":
        value["message"] = stable_text(value.get("message", ""))
        value.get("details", {}).pop("uid", None)
        if value.get("details") == {}:
            value.pop("details")
        causes = value.get("details", {}).get("causes")
        if causes:
            for cause in causes:
                cause["message"] = stable_text(cause.get("message", ""))
            causes.sort(key=lambda c: json.dumps(c, sort_keys=True))
        return value
    meta = value.get("metadata", {})
    for key in VOLATILE:
        meta.pop(key, None)
    for key in ("deployment.kubernetes.io/revision", "autoscaling.alpha.kubernetes.io/conditions"):
        meta.get("annotations", {}).pop(key, None)
    if not meta.get("annotations", {"": ""}):
        meta.pop("annotations")
    meta["managedFields"] = entries_of(meta)
    status = value.get("status", {})
    if value.get("kind") in ("Pod", "Deployment", "HorizontalPodAutoscaler", "Scale"):
        if not meta.get("labels", {}).get("keep-status"):
            value.pop("status", None)
        else:  # controllers write the other fields
            value["status"] = [c for c in status.get("conditions", []) if c["type"] == "Mine"], status.get("message")
    spec = value.get("spec", {})
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodeName"):
        if spec.get(key) not in ("None", ["None"]):  # a cluster without a host has no addresses to give
            spec.pop(key, None)
    for port in spec.get("ports", []) if value.get("kind") == "Service" else []:
        port.pop("nodePort", None)
    volumes = [v for v in spec.get("volumes", []) if not v["name"].startswith("kube-api-access")]
    if value.get("kind") == "Pod":
        spec.pop("volumes", None)
        if volumes:
            spec["volumes"] = volumes
        for c in spec.get("containers", []):
            mounts = [m for m in c.get("volumeMounts", []) if not m["name"].startswith("kube-api-access")]
            c.pop("volumeMounts", None)
            if mounts:
                c["volumeMounts"] = mounts
    return value


class Session:
    """The steps of one case on one server."""

    def __init__(self, api, ns):
        self.api = api
        self.ns = ns
        self.answers = []

    def send(self, method, path, body=None, content_type=None, **query):
        headers = {"User-Agent": query.pop("agent", "tester/1.0 (x)")}
        query = {k: v for k, v in query.items() if v is not None}
        code, _, data = self.api.raw(method, path, body, content_type=content_type, query=query, headers=headers)
        try:
            value = json.loads(data)
        except ValueError:
            value = data.decode("utf-8", "replace")
        self.answers.append((code, stable(value)))
        return value

    def current(self, kind, name):
        return self.api.get(path_of(self.ns, kind, name))


# ---- steps ----

def apply(o, manager="a", force=None, sub=None, version=None, **query):
    def do(s):
        s.send("PATCH", path_of(s.ns, o["kind"], o["metadata"]["name"], sub, version), json.dumps(o).encode(),
               "application/apply-patch+yaml", fieldManager=manager, force=force, **query)
    return f"apply as {manager}{' ' + sub if sub else ''}", do


def apply_to(kind, name, body, manager="a", sub=None, force=None, text=None, **query):
    def do(s):
        data = text if text is not None else json.dumps(body)
        s.send("PATCH", path_of(s.ns, kind, name, sub), data.encode(), "application/apply-patch+yaml",
               fieldManager=manager, force=force, **query)
    return f"apply to {kind} {name}{'/' + sub if sub else ''}", do


def create(o, manager="c", **query):
    def do(s):
        s.send("POST", path_of(s.ns, o["kind"]), o, fieldManager=manager, **query)
    return f"create as {manager}", do


def patch(kind, name, body, how="merge", manager="p", sub=None, version=None, **query):
    def do(s):
        s.send("PATCH", path_of(s.ns, kind, name, sub, version), json.dumps(body).encode(),
               f"application/{how}-patch+json", fieldManager=manager, **query)
    return f"{how} patch as {manager}", do


def put(kind, name, change, manager="u", sub=None, **query):
    def do(s):
        for _ in range(100):  # controllers write as well
            o = s.current(kind, name)
            change(o)
            answer = s.send("PUT", path_of(s.ns, kind, name, sub), o, fieldManager=manager, **query)
            if answer.get("code") != 409 or "has been modified" not in answer["message"]:
                return
            s.answers.pop()
            time.sleep(0.01)
        s.answers.append((409, "it is modified for ever"))
    return f"put as {manager}", do


def get(kind, name, sub=None):
    return "get", lambda s: s.send("GET", path_of(s.ns, kind, name, sub))


# ---- objects ----

def cm(name="x", data=None, **meta):
    return obj("ConfigMap", name, meta, **({"data": data} if data is not None else {}))


def container(name="c", **more):
    return {"name": name, "image": "nginx", **more}


def deployment(name="d", replicas=0, containers=None, labels=None, **spec):
    return obj("Deployment", name, {"labels": labels} if labels else None, spec={
        **({"replicas": replicas} if replicas is not None else {}), "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}},
                     "spec": {"containers": containers if containers is not None else [container()]}}, **spec})


def pod(name="p", containers=None, **spec):
    return obj("Pod", name, spec={"containers": containers or [container()],
                                  "schedulingGates": [{"name": "example.com/wait"}], **spec})


def service(name="s", ports=None, **spec):
    return obj("Service", name, spec={"ports": ports if ports is not None else [{"port": 80}],
                                      "selector": {"app": "d"}, **spec})


def set_in(path, value):
    keys = path.split(".")

    def change(o):
        for k in keys[:-1]:
            o = o.setdefault(k, {})
        o[keys[-1]] = value
    return change


def drop_in(path):
    keys = path.split(".")

    def change(o):
        for k in keys[:-1]:
            o = o.get(k, {})
        o.pop(keys[-1], None)
    return change


LAST = "kubectl.kubernetes.io/last-applied-configuration"


def with_last_applied(o):
    o = copy.deepcopy(o)
    bare = json.dumps(o, sort_keys=True, separators=(",", ":")) + "\n"
    o["metadata"].setdefault("annotations", {})[LAST] = bare
    return o


# ---- custom resources ----

def crds():
    widget = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3}, "color": {"type": "string"},
            "replicas": {"type": "integer"}, "when": {"type": "string", "format": "date-time"},
            "limit": {"x-kubernetes-int-or-string": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                     "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                      "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"],
                      "items": {"type": "object", "required": ["port"], "properties": {
                          "port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"},
                          "name": {"type": "string"}, "opts": {"type": "object",
                                                              "additionalProperties": {"type": "string"}}}}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": True,
                      "x-kubernetes-preserve-unknown-fields": True}}},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "phase": {"type": "string"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                           "items": {"type": "object", "required": ["type"], "properties": {
                               "type": {"type": "string"}, "status": {"type": "string"}}}}}}}}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [crd("widgets", "Widget", widget, {"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}, two=True),
        crd("frees", "Free", free, {})]


def crd(plural, kind, schema, subresources, two=False):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "subresources": subresources}
    versions = [version] + ([{**version, "name": "v1beta1", "storage": False}] if two else [])
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.apply.example.com"},
            "spec": {"group": "apply.example.com", "scope": "Namespaced", "versions": versions,
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}}}


def widget(name="w", status=None, **spec):
    return obj("Widget", name, spec=spec, **({"status": status} if status is not None else {}))


# ---- hand-picked cases ----

def reset_cases():
    start = [apply(cm(data={"k": "1"}), "a")]
    return {
        "reset by put": start + [put("ConfigMap", "x", set_in("metadata.managedFields", [{}])),
                                 apply(cm(data={"k": "2"}), "b")],
        "reset by put of an empty list": start + [put("ConfigMap", "x", set_in("metadata.managedFields", []))],
        "reset by merge patch": start + [patch("ConfigMap", "x", {"metadata": {"managedFields": [{}]}})],
        "reset by strategic patch": start + [
            patch("ConfigMap", "x", {"metadata": {"managedFields": [{}]}}, "strategic-merge")],
        "reset by json patch": start + [
            patch("ConfigMap", "x", [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], "json"),
            patch("ConfigMap", "x", {"data": {"z": "1"}})],
        "reset with a change": start + [
            put("ConfigMap", "x", lambda o: (set_in("metadata.managedFields", [])(o), set_in("data.z", "1")(o)))],
        "dropped by a put": start + [put("ConfigMap", "x", drop_in("metadata.managedFields"))],
        "renamed": start + [
            put("ConfigMap", "x", lambda o: o["metadata"]["managedFields"][0].update(manager="other")),
            apply(cm(data={"k": "2"}), "b")],
        "bad operation": start + [
            put("ConfigMap", "x", lambda o: o["metadata"]["managedFields"][0].update(operation="Nonsense"))],
        "bad fields": start + [
            put("ConfigMap", "x", lambda o: o["metadata"]["managedFields"][0].update(fieldsV1={"nonsense": {}}))],
    }


def config_map_cases():
    return {
        "apply creates": [apply(cm(data={"k": "v"}, labels={"a": "b"}), "a"), get("ConfigMap", "x")],
        "apply again": [apply(cm(data={"k": "v"})), apply(cm(data={"k": "v"}))],
        "conflict": [apply(cm(data={"k": "1"}), "a"), apply(cm(data={"k": "2"}), "b"),
                     apply(cm(data={"k": "2"}), "b", force="true"), apply(cm(data={"k": "1"}), "a")],
        "several conflicts": [apply(cm(data={"k": "1", "l": "1"}, labels={"q": "1"}), "a"),
                              apply(cm(data={"m": "1"}), "c"),
                              apply(cm(data={"k": "2", "l": "2", "m": "2"}, labels={"q": "2"}), "b")],
        "conflict with an updater": [create(cm(data={"k": "1"}), "c"), apply(cm(data={"k": "2"}), "a"),
                                     apply(cm(data={"k": "2"}), "a", force="true")],
        "shared": [apply(cm(data={"k": "1"}), "a"), apply(cm(data={"k": "1"}), "b"), apply(cm(data={}), "a"),
                   apply(cm(data={}), "b")],
        "dropped field": [apply(cm(data={"k": "1", "l": "1"}), "a"), apply(cm(data={"l": "1"}), "a"),
                          apply(cm(), "a")],
        "dropped field others own": [apply(cm(data={"k": "1", "l": "1"}), "a"),
                                     patch("ConfigMap", "x", {"data": {"k": "2"}}), apply(cm(data={"l": "1"}), "a")],
        "update takes over": [apply(cm(data={"k": "1"}), "a"), patch("ConfigMap", "x", {"data": {"k": "2"}}, manager="b"),
                              apply(cm(data={"k": "3"}), "a")],
        "agents": [create(cm(data={"k": "1"}), None, agent="kubectl/v1.36 (linux)"),
                   patch("ConfigMap", "x", {"data": {"k": "2"}}, manager=None, agent="Mozilla/5.0"),
                   patch("ConfigMap", "x", {"data": {"l": "2"}}, manager=None, agent="")],
        "requires a manager": [apply(cm(data={"k": "1"}), None), apply(cm(data={"k": "1"}), "x" * 129),
                               patch("ConfigMap", "x", {}, force="true")],
        "wrong kind": [apply_to("ConfigMap", "x", {**cm(), "kind": "Secret"}),
                       apply_to("ConfigMap", "x", {**cm(), "apiVersion": "v2"}),
                       apply_to("ConfigMap", "x", {"metadata": {"name": "x"}}),
                       apply_to("ConfigMap", "x", cm("y")), apply_to("ConfigMap", "x", {"apiVersion": "v1",
                                                                                      "kind": "ConfigMap"})],
        "unknown field": [apply({**cm(data={"k": "v"}), "foo": {"bar": 1}})],
        "wrong types": [apply({**cm(), "data": {"k": 1}}), apply({**cm(), "data": "x"}), apply({**cm(), "data": [1]}),
                        apply({**cm(), "immutable": "yes"})],
        "bad yaml": [apply_to("ConfigMap", "x", None, text="a: b\nc: d: e\n"), apply_to("ConfigMap", "x", None, text="[]")],
        "nulls": [apply({**cm(), "data": None}), apply({**cm(), "data": {"k": None, "l": "1"}}), apply(cm(data={}))],
        "managedFields in the body": [apply({**cm(), "metadata": {"name": "x", "managedFields": [{"manager": "q"}]}})],
        "uid on create": [apply(cm(data={}, uid="8d1b7a5e-0000-4000-8000-000000000000"))],
        "revision": [apply(cm(data={"k": "1"})), apply(cm(data={"k": "2"}, resourceVersion="1"))],
        "revision on create": [apply(cm(data={"k": "1"}, resourceVersion="1"))],
        "dry run": [apply(cm(data={"k": "1"}), dryRun="All"), get("ConfigMap", "x"),
                    apply(cm(data={"k": "1"})), apply(cm(data={"k": "2"}), "b", dryRun="All"),
                    apply(cm(data={"k": "2"}), "b", dryRun="All", force="true"), get("ConfigMap", "x")],
        "before first apply": [create(cm(data={"k": "1"}), "c"),
                               put("ConfigMap", "x", set_in("metadata.managedFields", [{}])),
                               apply(cm(data={"k": "2"}), "a"), apply(cm(data={"l": "2"}), "a")],
        "many updaters": [create(cm(data={"k": "0"}), "c")] + [
            patch("ConfigMap", "x", {"data": {f"k{i}": "1"}}, manager=f"m{i:02d}") for i in range(14)],
        "no change": [create(cm(data={"k": "1"}), "c"), put("ConfigMap", "x", lambda o: None, "u"),
                      patch("ConfigMap", "x", {"data": {"k": "1"}}, manager="p")],
        "kubectl migrates": [create(with_last_applied(cm(data={"k": "1", "l": "1"})), "kubectl-client-side-apply"),
                             apply(cm(data={"k": "2"}), "kubectl"), get("ConfigMap", "x"),
                             apply(cm(data={"k": "2"}), "kubectl", force="true")],
        "kubectl conflicts with others": [
            create(with_last_applied(cm(data={"k": "1", "l": "1"})), "kubectl-client-side-apply"),
            patch("ConfigMap", "x", {"data": {"l": "9"}}, manager="o"), apply(cm(data={"k": "2", "l": "2"}), "kubectl")],
        "finalizers": [
            apply(cm(finalizers=["example.com/a"]), "a"), apply(cm(finalizers=["example.com/b"]), "b"),
            apply(cm(), "a"), apply(cm(finalizers=[]), "b")],
        "duplicate finalizers": [apply(cm(finalizers=["example.com/a", "example.com/a"]))],
        "odd keys": [apply(cm(data={"a.b": "1", "k-1": "2"}, annotations={"x/y<&>": "1", "q": "é"})),
                     apply(cm(annotations={"x/y": "1", "q": "é"}))],
    }


def workload_cases():
    ports = [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "u"}]
    two = deployment(containers=[container("c"), container("e", image="busybox")])
    return {
        "create": [create(deployment(containers=[container(ports=ports)]))],
        "apply": [apply(deployment(containers=[container(ports=ports)])), get("Deployment", "d")],
        "remove a port": [apply(deployment(containers=[container(ports=ports)])),
                          apply(deployment(containers=[container(ports=ports[:1])])),
                          apply(deployment(containers=[container()]))],
        "remove a container": [apply(two), apply(deployment()), apply(deployment(containers=[container("e")]))],
        "transfer replicas": [apply(deployment(replicas=0), "a"), patch("Deployment", "d", {"spec": {"replicas": 0}}),
                              patch("Deployment", "d", {"spec": {"paused": True}}, manager="b"),
                              apply(deployment(replicas=None), "a"), apply(deployment(replicas=0), "b")],
        "shared field unset": [apply(deployment(replicas=0), "a"), apply(deployment(replicas=0), "b"),
                               apply(deployment(replicas=None), "a"), apply(deployment(replicas=None), "b")],
        "env": [apply(deployment(containers=[container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])])),
                patch("Deployment", "d", {"spec": {"template": {"spec": {"containers": [
                    {"name": "c", "env": [{"name": "C", "value": "3"}]}]}}}}, "strategic-merge"),
                apply(deployment(containers=[container(env=[{"name": "B", "value": "2"}])]))],
        "resources": [apply(deployment(containers=[container(resources={"requests": {"cpu": "1000m"}})])),
                      apply(deployment(containers=[container(resources={"requests": {"cpu": "1"}})]), "b"),
                      apply(deployment(containers=[container(resources={"requests": {"cpu": 1}})]), "b")],
        "bad quantity": [apply(deployment(containers=[container(resources={"requests": {"cpu": "lots"}})]))],
        "duplicate containers": [apply(deployment(containers=[container(), container()])),
                                 apply(deployment(containers=[container(env=[{"name": "A"}, {"name": "A"}])])),
                                 apply(deployment(containers=[container(ports=[{"containerPort": 80},
                                                                               {"containerPort": 80}])]))],
        "duplicates kept": [
            create(deployment(containers=[container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])])),
            apply(deployment(containers=[container(env=[{"name": "B", "value": "3"}])]), "a", force="true"),
            apply(deployment(containers=[container(env=[{"name": "A", "value": "3"}])]), "a", force="true"),
            apply(deployment(containers=[container()]), "a")],
        "atomic lists": [apply(deployment(containers=[container(command=["a", "b"], args=["1"])]), "a"),
                         apply(deployment(containers=[container(command=["a", "c"])]), "b"),
                         apply(deployment(containers=[container(command=["a", "b"])]), "b")],
        "atomic selector": [apply(deployment()), apply({**deployment(), "spec": {
            **deployment()["spec"], "selector": {"matchLabels": {"app": "d", "x": "y"}}}}, "b")],
        "missing name": [apply(deployment(containers=[{"image": "x"}]))],
        "unknown": [apply(deployment(containers=[container(foo=1)])), apply(deployment(bar={"x": 1}))],
        "types": [apply(deployment(replicas="x")), apply(deployment(paused="x")), apply(deployment(containers={})),
                  apply(deployment(containers=["x"])), apply(deployment(containers=[None])),
                  apply(deployment(strategy="x")), apply(deployment(containers=[container(image=1)]))],
        "nulls": [apply(deployment(replicas=0, paused=None, strategy=None)),
                  apply(deployment(containers=[container(env=None, ports=None)]))],
        "strategy": [apply(deployment(strategy={"type": "Recreate"})),
                     apply(deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}}), "a"),
                     apply(deployment(strategy={"rollingUpdate": {"maxSurge": 2}}), "b"),
                     apply(deployment(), "a")],
        "volumes": [apply(deployment()), apply({**deployment(), "spec": {**deployment()["spec"], "template": {
            "metadata": {"labels": {"app": "d"}}, "spec": {
                "containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
                "volumes": [{"name": "v", "configMap": {"name": "x"}}]}}}}), apply(deployment())],
        "status by apply": [
            apply(deployment(labels={"keep-status": "1"}), "a"),
            apply_to("Deployment", "d", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                                         "status": {"conditions": [{"type": "Mine", "status": "True"}]}}, "s", "status"),
            apply_to("Deployment", "none", {"apiVersion": "apps/v1", "kind": "Deployment",
                                            "metadata": {"name": "none"}, "status": {}}, "s", "status")],
        "scale": [apply(deployment(replicas=0), "a"), get("Deployment", "d", "scale"),
                  patch("Deployment", "d", {"spec": {"replicas": 0}}, sub="scale", manager="k"), get("Deployment", "d"),
                  apply_to("Deployment", "d", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
                                               "spec": {"replicas": 0}}, "s", "scale"), get("Deployment", "d"),
                  patch("Deployment", "d", {"spec": {"replicas": 1, "paused": True}}, manager="k"),
                  apply_to("Deployment", "d", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
                                               "spec": {"replicas": 0}}, "s", "scale"),
                  apply_to("Deployment", "d", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
                                               "spec": {"replicas": 0}}, "s", "scale", force="true"),
                  get("Deployment", "d"), patch("Deployment", "d", {"spec": {"replicas": 2}}, sub="scale", manager="k2"),
                  get("Deployment", "d"), apply(deployment(replicas=0), "a")],
        "scale of a create": [create(deployment(replicas=0, paused=True)),
                              patch("Deployment", "d", {"spec": {"replicas": 1}}, sub="scale", manager="k"),
                              get("Deployment", "d")],
        "scale of another kind": [apply(deployment(replicas=0), "a"),
                                  apply_to("Deployment", "d", deployment(), "s", "scale")],
        "kubectl migrates": [create(with_last_applied(deployment(containers=[container(ports=ports)])),
                                    "kubectl-client-side-apply"),
                             apply(deployment(containers=[container(image="busybox")]), "kubectl"),
                             get("Deployment", "d")],
    }


def pod_and_service_cases():
    return {
        "pod": [apply(pod()), patch("Pod", "p", {"metadata": {"labels": {"a": "b"}}}),
                apply(pod(containers=[container(image="busybox")]), "b"),
                apply(pod(containers=[container(image="busybox")]), "b", force="true")],
        "pod ports": [apply(pod(containers=[container(ports=[{"containerPort": 53, "protocol": "UDP"},
                                                              {"containerPort": 53, "protocol": "TCP"}])]))],
        "pod tolerations": [apply(pod(tolerations=[{"key": "a", "operator": "Exists"}])),
                            apply(pod(tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]))],
        "pod spread": [apply(pod(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]))],
        "pod hosts": [apply(pod(hostAliases=[{"ip": "127.0.0.1", "hostnames": ["a"]}], imagePullSecrets=[{"name": "s"}])),
                      apply(pod(imagePullSecrets=[{"name": "s"}, {}]), "b")],
        "ephemeral container": [
            create(pod()), patch("Pod", "p", {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}},
                                 "strategic-merge", sub="ephemeralcontainers"), get("Pod", "p")],
        "ephemeral container and the rest": [
            create(pod()), patch("Pod", "p", {"metadata": {"labels": {"new": "x"}}, "spec": {
                "activeDeadlineSeconds": 5, "ephemeralContainers": [{"name": "e", "image": "x"}]}},
                                 "strategic-merge", sub="ephemeralcontainers"), get("Pod", "p")],
        "resize": [
            create(pod(containers=[container(resources={"requests": {"cpu": "1"}})])),
            patch("Pod", "p", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}},
                  "strategic-merge", sub="resize"), get("Pod", "p")],
        "resize and the rest": [
            create(pod(containers=[container(resources={"requests": {"cpu": "1"}})])),
            patch("Pod", "p", {"metadata": {"labels": {"new": "x"}}, "spec": {"activeDeadlineSeconds": 5, "containers": [
                {"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}]}},
                  "strategic-merge", sub="resize"), get("Pod", "p"),
            apply(pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}]), "b", sub="resize", force="true"),
            get("Pod", "p")],
        "resize of a pod": [
            create(pod(resources={"requests": {"cpu": "1"}})),
            apply(pod(containers=[{"name": "c"}], resources={"requests": {"cpu": "2"}}), "b", sub="resize", force="true"),
            get("Pod", "p")],
        "pod status": [
            create(pod()), patch("Pod", "p", {"status": {"message": "hi", "podIPs": [{"ip": "10.0.0.1"}]},
                                              "metadata": {"labels": {"keep-status": "1"}}},
                                 "strategic-merge", sub="status", manager="k"), get("Pod", "p")],
        "service": [apply(service()), apply(service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])),
                    apply(service(ports=[{"port": 81, "name": "b"}])),
                    apply(service(ports=[{"port": 81, "name": "b", "targetPort": "x"}]), "b")],
        "service ports of two protocols": [
            apply(service(ports=[{"port": 53, "name": "t", "protocol": "TCP"}, {"port": 53, "name": "u", "protocol": "UDP"}])),
            apply(service(ports=[{"port": 53, "name": "u", "protocol": "UDP"}]))],
        "service type": [apply(service()), apply(service(type="NodePort"), "b"), apply(service(type="ClusterIP"), "b"),
                         patch("Service", "s", {"spec": {"externalIPs": ["1.2.3.4"]}}), apply(service(), "a")],
        "headless": [apply(service(clusterIP="None"))],
        "service created": [create(service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])),
                            put("Service", "s", set_in("spec.sessionAffinity", "ClientIP"))],
        "accounts": [apply(obj("ServiceAccount", "sa", secrets=[{"name": "x"}], imagePullSecrets=[{"name": "y"}])),
                     apply(obj("ServiceAccount", "sa", secrets=[{"name": "z"}]), "b"),
                     apply(obj("ServiceAccount", "sa"), "a")],
        "autoscaler versions": [
            apply(obj("HorizontalPodAutoscaler", "h", spec={"maxReplicas": 3, "scaleTargetRef": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {
                        "type": "Utilization", "averageUtilization": 50}}}]}), "a"),
            patch("HorizontalPodAutoscaler", "h", {"spec": {"maxReplicas": 4}}, manager="b", version="v1"),
            get("HorizontalPodAutoscaler", "h"),
            apply({**obj("HorizontalPodAutoscaler", "h", spec={"maxReplicas": 5}), "apiVersion": "autoscaling/v1"},
                  "c", version="v1"),
            apply({**obj("HorizontalPodAutoscaler", "h", spec={"maxReplicas": 5}), "apiVersion": "autoscaling/v1"},
                  "c", version="v1", force="true"),
            get("HorizontalPodAutoscaler", "h")],
        "ingress": [apply(obj("Ingress", "i", spec={"rules": [{"host": "a", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]})),
            apply(obj("Ingress", "i", spec={"tls": [{"hosts": ["a"], "secretName": "t"}]}), "b")],
    }


def custom_cases():
    port = {"port": 80, "proto": "TCP", "name": "a"}
    return {
        "widget": [apply(widget(size=1, color="red")), apply(widget(color="red")), apply(widget(color="blue"), "b"),
                   apply(widget(), "a")],
        "defaults": [apply(widget(color="red")), apply(widget(size=3), "b"), apply(widget(size=4), "c")],
        "maps and sets": [apply(widget(tags=["a", "b"], labels={"x": "1"}, whole={"a": "1"}, list=["p"])),
                          apply(widget(tags=["b", "c"], labels={"y": "1"}), "b"),
                          apply(widget(whole={"b": "1"}), "b"), apply(widget(list=["p", "q"]), "b"),
                          apply(widget(tags=["b"]), "a"), apply(widget(), "b")],
        "ports": [apply(widget(ports=[port])), apply(widget(ports=[{"port": 80, "name": "b"}]), "b"),
                  apply(widget(ports=[{"port": 81}, {"port": 80, "opts": {"k": "v"}}]), "b"),
                  apply(widget(ports=[]), "a"), apply(widget(ports=[{"name": "x"}]), "c")],
        "duplicates": [apply(widget(tags=["a", "a"])), apply(widget(ports=[{"port": 80}, {"port": 80, "proto": "TCP"}]))],
        "unknown": [apply(widget(nope=1)), apply(widget(free={"any": {"thing": [1, {"x": 2}]}})),
                    apply(widget(free={"any": {"other": 1}}), "b"), apply(widget(free={"any": 1}), "b"),
                    apply(widget(free={"any": 1}), "b", force="true"), apply(widget(free={}), "a")],
        "half known": [apply(widget(half={"known": {"a": "1", "b": "2"}, "more": {"x": 1}})),
                       apply(widget(half={"known": {"a": "1"}}))],
        "types": [apply(widget(size="x")), apply(widget(color=1)), apply(widget(tags="x")), apply(widget(labels=["x"])),
                  apply(widget(limit=1)), apply(widget(limit="1%")), apply(widget(limit={"a": 1}))],
        "embedded": [apply(widget(inner={"apiVersion": "v1", "kind": "X", "metadata": {
            "name": "n", "labels": {"a": "b"}, "finalizers": ["x"]}, "data": {"k": [1]}}))],
        "status": [apply(widget(status={"phase": "new"}, color="red"), "a"),
                   apply_to("Widget", "w", widget(status={"phase": "up", "conditions": [
                       {"type": "Ready", "status": "True"}]}), "s", "status"),
                   apply_to("Widget", "w", widget(status={"conditions": [{"type": "Ready", "status": "False"}]}), "t",
                            "status"), apply(widget(color="red"), "s"),
                   put("Widget", "w", set_in("status.phase", "down"), "u", "status"),
                   put("Widget", "w", set_in("status.phase", "gone"), "u")],
        "scale": [apply(widget(replicas=1), "a"), patch("Widget", "w", {"spec": {"replicas": 2}}, sub="scale"),
                  # Applying to the Scale of a custom resource fails upstream, whatever is applied; here it works.
                  get("Widget", "w"), apply(widget(replicas=3), "a")],
        "versions": [apply(widget(size=1, tags=["a"]), "a"),
                     patch("Widget", "w", {"spec": {"size": 2}}, manager="b", version="v1beta1"),
                     apply({**widget(size=3, tags=["b"]), "apiVersion": "apply.example.com/v1beta1"}, "a",
                           version="v1beta1", force="true"),
                     get("Widget", "w"), apply({**widget(), "apiVersion": "apply.example.com/v1beta1"}, "a"),
                     apply(widget(tags=["c"]), "a")],
        "reset": [create(widget(size=1), "c"), put("Widget", "w", set_in("metadata.managedFields", [])),
                  patch("Widget", "w", {"metadata": {"managedFields": []}}),
                  patch("Widget", "w", {"metadata": {"managedFields": [{}]}}),
                  patch("Widget", "w", {"spec": {"size": 2}}), apply(widget(color="red", size=2), "a")],
        "created": [create(widget(size=1, ports=[port], tags=["a"], free={"x": {"y": 1}}), "c"),
                    put("Widget", "w", set_in("spec.ports", [{"port": 81}]), "u"),
                    patch("Widget", "w", {"spec": {"free": {"x": None, "z": [1]}}}, manager="p")],
        "free": [apply(obj("Free", "f", spec={"a": {"b": [1, 2]}, "c": 1})),
                 apply(obj("Free", "f", spec={"a": {"b": [1, 3]}}), "b"), apply(obj("Free", "f", other={"x": "y"}), "b"),
                 apply(obj("Free", "f", spec={"c": {"deep": 1}}), "a"), apply(obj("Free", "f"), "a")],
    }


def raw(method, kind, name, text, content_type, sub=None, **query):
    """A body as it is, in any form."""
    def do(s):
        s.send(method, path_of(s.ns, kind, name, sub), text.encode(), content_type, **query)
    return f"{method} of {content_type}", do


def patch_cases():
    def smp(body, kind="Deployment", name="d", **kw):
        return patch(kind, name, body, "strategic-merge", **kw)

    def containers(*items, **more):
        return {"spec": {"template": {"spec": {"containers": list(items), **more}}}}

    def ops(*items, name="x"):
        return patch("ConfigMap", name, list(items), "json")

    two = create(deployment(containers=[
        container("a", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], args=["1", "2"]),
        container("b", ports=[{"containerPort": 80}, {"containerPort": 81}])]))
    volumes = create({**deployment(), "spec": {**deployment()["spec"], "template": {
        "metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container()], "volumes": [
            {"name": "v", "configMap": {"name": "x"}}, {"name": "w", "emptyDir": {}}]}}}})
    start = create(cm(data={"a": "1", "b": "2"}, labels={"x": "1"}, finalizers=["example.com/a", "example.com/b"]))
    return {
        "strategic merge": [two, smp(containers({"name": "a", "image": "z", "env": [{"name": "B", "value": "9"}]})),
                            smp(containers({"name": "c", "image": "n"}))],
        "$patch delete of an item": [two, smp(containers({"name": "b", "$patch": "delete"})),
                                     smp(containers({"name": "none", "$patch": "delete"}))],
        "$patch replace of an item": [two, smp(containers({"name": "q", "image": "r"}, {"$patch": "replace"})),
                                      smp(containers({"$patch": "replace", "name": "q", "image": "s"}))],
        "$patch replace of an object": [two, smp({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}),
                                        smp({"metadata": {"labels": {"$patch": "replace", "n": "1"}}})],
        "$patch delete of an object": [start, smp({"metadata": {"labels": {"$patch": "delete"}}}, "ConfigMap", "x"),
                                       smp({"data": {"$patch": "merge", "c": "3"}}, "ConfigMap", "x")],
        "$patch unknown": [two, smp(containers({"name": "a", "$patch": "nonsense"})),
                           smp({"spec": {"strategy": {"$patch": "nonsense"}}})],
        "$deleteFromPrimitiveList": [
            start, smp({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, "ConfigMap", "x"),
            smp({"metadata": {"$deleteFromPrimitiveList/finalizers": ["none"], "finalizers": ["example.com/c"]}},
                "ConfigMap", "x")],
        "$setElementOrder": [
            two, smp(containers(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})),
            smp(containers({"name": "c", "image": "n"},
                           **{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]})),
            smp(containers({"name": "c", "image": "m"}, **{"$setElementOrder/containers": [{"name": "a"}]}))],
        "$setElementOrder of texts": [
            start, smp({"metadata": {"$setElementOrder/finalizers": ["example.com/b", "example.com/a"]}},
                       "ConfigMap", "x"),
            smp({"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/a", "example.com/b"],
                              "finalizers": ["example.com/c"]}}, "ConfigMap", "x")],
        "$retainKeys": [
            volumes, smp({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            smp({"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {},
                                                             "$retainKeys": ["name", "emptyDir"]}]}}}}),
            smp({"spec": {"template": {"spec": {"volumes": [{"name": "w", "hostPath": {"path": "/"},
                                                             "$retainKeys": ["name"]}]}}}})],
        "strategic nulls": [two, smp(containers({"name": "a", "env": None, "args": None})),
                            smp({"spec": {"template": {"spec": {"containers": None}}}})],
        "strategic wrong types": [two, smp({"spec": "x"}), smp({"spec": {"replicas": "x"}}),
                                  smp(containers("x")), smp(containers({"image": "no name"}))],
        # Without Strict an unknown field is dropped upstream; here it survives, as newer clients' fields do.
        "strategic of unknown fields": [two, smp({"spec": {"foo": 1}}, fieldValidation="Strict")],
        "json patch": [
            start, ops({"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "9"}),
            ops({"op": "test", "path": "/data/a", "value": "1"}), ops({"op": "test", "path": "/data/none", "value": "1"}),
            ops({"op": "remove", "path": "/data/none"}), ops({"op": "replace", "path": "/data/none", "value": "1"}),
            ops({"op": "add", "path": "/data/x~1y", "value": "1"}), ops({"op": "add", "path": "/none/x", "value": "1"}),
            ops({"op": "move", "from": "/data/a", "path": "/data/m"}), ops({"op": "copy", "from": "/data/m", "path": "/data/n"}),
            ops({"op": "nonsense", "path": "/data/a"}), ops({"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/z"}),
            ops({"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/y"}),
            ops({"op": "remove", "path": "/metadata/finalizers/9"}), ops({"op": "add", "path": "/data/t", "value": 1}),
            ops({"op": "remove", "path": "/metadata/name"}),
            ops({"op": "test", "path": "/metadata/labels", "value": {"x": "1"}}),
            ops({"op": "test", "path": "/metadata/none", "value": None}),
            raw("PATCH", "ConfigMap", "x", "{}", "application/json-patch+json"),
            raw("PATCH", "ConfigMap", "x", "[1]", "application/json-patch+json"),
            raw("PATCH", "ConfigMap", "x", "nonsense", "application/json-patch+json")],
        "merge patch": [
            start, patch("ConfigMap", "x", {"data": {"a": None, "c": "3"}}), patch("ConfigMap", "x", {"data": None}),
            patch("ConfigMap", "x", {"metadata": {"name": "y"}}), patch("ConfigMap", "x", {"kind": "Secret"}),
            patch("ConfigMap", "x", {"data": "x"}), patch("ConfigMap", "none", {"data": {}}),
            patch("ConfigMap", "x", {"metadata": {"resourceVersion": "1"}}),
            raw("PATCH", "ConfigMap", "x", "[]", "application/merge-patch+json"),
            raw("PATCH", "ConfigMap", "x", "{", "application/merge-patch+json"),
            raw("PATCH", "ConfigMap", "x", '{"data":{"q":"1","q":"2"}}', "application/merge-patch+json",
                fieldValidation="Strict")],
        "content types": [
            start, raw("PATCH", "ConfigMap", "x", "{}", "application/json"), raw("PATCH", "ConfigMap", "x", "{}", "text/plain"),
            raw("PATCH", "ConfigMap", "x", "{}", "application/apply-patch+json", fieldManager="a"),
            raw("PATCH", "ConfigMap", "x", "{}", "application/apply-patch+cbor", fieldManager="a"),
            raw("PATCH", "ConfigMap", "x", "{}", "application/merge-patch+json; charset=utf-8")],
        "yaml bodies": [
            raw("POST", "ConfigMap", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: |\n    b\n  c: 'd'\n",
                "application/yaml", fieldManager="y"),
            raw("PUT", "ConfigMap", "x", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: z}\n",
                "application/yaml", fieldManager="y"),
            raw("POST", "ConfigMap", "", "a: b\nc: d: e", "application/yaml"),
            raw("PUT", "ConfigMap", "x", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nfoo: 1\n",
                "application/yaml", fieldValidation="Strict"),
            raw("PATCH", "ConfigMap", "x", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  b: 'c'\n",
                "application/apply-patch+yaml", fieldManager="a")],
        "custom resources": [
            create(widget(size=1, tags=["a"], labels={"a": "1"})),
            raw("PATCH", "Widget", "w", "{}", "application/strategic-merge-patch+json"),
            patch("Widget", "w", [{"op": "test", "path": "/spec/size", "value": 1}, {"op": "remove", "path": "/spec/tags"}], "json"),
            patch("Widget", "w", {"spec": {"labels": {"a": None, "b": "2"}}})],
    }


def hand_picked():
    groups = {"patch": patch_cases(), "reset": reset_cases(), "config": config_map_cases(), "workload": workload_cases(),
              "core": pod_and_service_cases(), "custom": custom_cases()}
    return {f"{g}: {name}": steps for g, cases in groups.items() for name, steps in cases.items()}


# ---- seeded cases ----

def some(rng, items, most=None):
    items = list(items)
    return rng.sample(items, rng.randint(0, min(len(items), most or len(items))))


def random_config_map(rng):
    return cm(data={k: rng.choice("123") for k in some(rng, "abcd")},
              **({"labels": {k: rng.choice("12") for k in some(rng, "xyz")}} if rng.random() < .5 else {}),
              **({"finalizers": [f"example.com/{k}" for k in some(rng, "pqr")]} if rng.random() < .3 else {}))


def random_container(rng, name):
    c = container(name, image=rng.choice(["nginx", "busybox"]))
    if rng.random() < .5:
        c["env"] = [{"name": k, "value": rng.choice("12")} for k in some(rng, "ABC")]
    if rng.random() < .4:
        c["ports"] = [{"containerPort": p} for p in some(rng, (80, 81, 443))]
    if rng.random() < .3:
        c["args"] = some(rng, ["a", "b"])
    if rng.random() < .3:
        c["resources"] = {"limits": {"cpu": rng.choice(["1", "500m", "1000m"])}}
    return c


def random_deployment(rng):
    names = some(rng, "ce") or ["c"]
    extra = {}
    if rng.random() < .4:
        extra["strategy"] = rng.choice([{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": rng.choice([1, "50%"])}}])
    if rng.random() < .3:
        extra["minReadySeconds"] = rng.choice([0, 1, 2])
    return deployment(replicas=rng.choice([None, 0]), containers=[random_container(rng, n) for n in names], **extra)


def random_service(rng):
    ports = [{"port": p, "name": f"n{p}", **({"targetPort": rng.choice([80, "x"])} if rng.random() < .5 else {})}
             for p in some(rng, (80, 81, 443)) or (80,)]
    return service(ports=ports, **({"sessionAffinity": "None"} if rng.random() < .3 else {}),
                   **({"externalIPs": some(rng, ["1.1.1.1", "2.2.2.2"])} if rng.random() < .4 else {}))


def random_pod(rng):
    o = pod(containers=[container(image=rng.choice(["nginx", "busybox"]))])
    if rng.random() < .6:
        o["metadata"]["labels"] = {k: rng.choice("12") for k in some(rng, "xyz")}
    if rng.random() < .4:
        o["metadata"]["annotations"] = {k: rng.choice("12") for k in some(rng, "xyz")}
    return o


def random_widget(rng):
    spec = {}
    choices = {
        "size": lambda: rng.choice([1, 2, 3]), "color": lambda: rng.choice(["red", "blue"]),
        "tags": lambda: some(rng, "abcd"), "labels": lambda: {k: rng.choice("12") for k in some(rng, "xyz")},
        "whole": lambda: {k: rng.choice("12") for k in some(rng, "ab")}, "list": lambda: some(rng, "abc"),
        "ports": lambda: [{"port": p, **({"name": rng.choice("mn")} if rng.random() < .5 else {}),
                           **({"proto": "UDP"} if rng.random() < .2 else {})} for p in some(rng, (1, 2, 3))],
        "free": lambda: {k: rng.choice([1, "x", {"y": 1}, {"z": {"q": 2}}, [1, 2], None]) for k in some(rng, "uvw")},
        "limit": lambda: rng.choice([1, "5%"])}
    for key in some(rng, choices, 5):
        spec[key] = choices[key]()
    return widget(**spec)


MAKERS = {"ConfigMap": (random_config_map, "x"), "Deployment": (random_deployment, "d"), "Pod": (random_pod, "p"),
          "Service": (random_service, "s"), "Widget": (random_widget, "w")}


def replace_with(new):
    """A put that keeps what the server filled in of metadata and replaces all other fields."""
    def change(o):
        for key in new:
            if key == "metadata":
                for part in ("labels", "annotations", "finalizers"):
                    o["metadata"].pop(part, None)
                o["metadata"].update({k: v for k, v in new["metadata"].items() if k != "name"})
            elif key == "spec" and new["kind"] in ("Service", "Pod"):
                o["spec"].update(new["spec"])
            else:
                o[key] = new[key]
    return change


def seeded(kind, seed, n=14):
    rng = random.Random(f"{kind}/{seed}")
    make, name = MAKERS[kind]
    first = make(rng)
    steps = [rng.choice([apply(first, "a"), create(first, "c")])]
    for _ in range(n):
        o = make(rng)
        manager = rng.choice(["a", "b", "kubectl"])
        roll = rng.random()
        if roll < .55:
            steps.append(apply(o, manager, force=rng.choice([None, "true"])))
        elif roll < .7:
            body = {k: v for k, v in o.items() if k != "kind" and k != "apiVersion"}
            how = "merge" if kind == "Widget" or rng.random() < .5 else "strategic-merge"
            steps.append(patch(kind, name, body, how, rng.choice(["p", "q"])))
        elif roll < .95:
            steps.append(put(kind, name, replace_with(o), rng.choice(["u", "v"])))
        else:
            steps.append(put(kind, name, set_in("metadata.managedFields", [{}]), "reset"))
    return steps
