# SPDX-License-Identifier: Apache-2.0
"""A definition whose versions a webhook converts, and that webhook, of a virtual cluster and of a real kube-apiserver; what
both answer, without what two servers cannot share."""
import contextlib
import copy
import json
import re

from testenv import eventually
from testenv.process import Port
from testenv.webhook import WebhookServer, address, ca_bundle

NS = "converted"
GROUP = "conv.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


def path(version="v1", name="", plural="spots"):
    end = f"/{name}" if name else ""
    return f"/apis/{GROUP}/{version}/namespaces/{NS}/{plural}{end}"


def converted(o, to):
    """v1 has host and port, v2 has both in one string; storage is v2."""
    o = copy.deepcopy(o)
    spec = o.get("spec")
    if isinstance(spec, dict) and to.endswith("/v2") and ("host" in spec or "port" in spec):
        spec["at"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
    elif isinstance(spec, dict) and to.endswith("/v1") and "at" in spec:
        spec["host"], _, spec["port"] = spec.pop("at").partition(":")
        spec.pop("late", None)
    o["apiVersion"] = to
    return o


def broken(mode, objects):
    """Of one answer with converted objects, what a bad webhook makes."""
    o = objects[0] if objects else {}
    meta = o.get("metadata", {})
    if mode == "kind":
        o["kind"] = "Other"
    elif mode == "no-kind":
        del o["kind"]
    elif mode == "version":
        o["apiVersion"] = f"{GROUP}/v3"
    elif mode in ("name", "namespace", "uid"):
        meta[mode] = "another"
    elif mode == "no-metadata":
        del o["metadata"]
    elif mode == "metadata-list":
        o["metadata"] = []
    elif mode == "label-value":
        meta["labels"] = {"a": "no label!"}
    elif mode == "label-key":
        meta["labels"] = {"no key!": "a"}
    elif mode == "label-number":
        meta["labels"] = {"a": 1}
    elif mode == "labels-list":
        meta["labels"] = ["a"]
    elif mode == "annotation-key":
        meta["annotations"] = {"no key!": "a"}
    elif mode == "annotation-null":
        meta["annotations"] = {"a": None}
    elif mode == "fewer":
        objects.pop()
    elif mode == "more":
        objects.append(copy.deepcopy(o))
    return objects


BROKEN = ["kind", "no-kind", "version", "name", "namespace", "uid", "no-metadata", "metadata-list", "label-value", "label-key",
          "label-number", "labels-list", "annotation-key", "annotation-null", "fewer", "more"]
RESULTS = {"failure": {"status": "Failure", "message": "not today"}, "silent": {"status": "Failure"}, "empty": {},
           "message-only": {"message": "why"}}


def schema(version):
    spec = ({"host": {"type": "string"}, "port": {"type": "string"}, "size": {"type": "integer", "default": 1}} if version == "v1"
            else {"at": {"type": "string"}, "size": {"type": "integer"}, "late": {"type": "string", "default": "x"}})
    return {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {**spec, "replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"seen": {"type": "string"}, "replicas": {"type": "integer"}}}}}


class Side:
    """One of the two servers, with its webhook and its definition."""

    def __init__(self, api, pki, where, release):
        self.api, self.release, self.port, self.pki = api, release, Port(), pki
        self.mode = None
        self.admit = None  # answers the reviews of admission: admit(path, request)
        code, _, data = api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
        assert code == 201, data
        api.post(f"/api/v1/namespaces/{NS}/services", {
            "metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": [{"port": self.port.number}]}})
        self.ip = api.get(f"/api/v1/namespaces/{NS}/services/hook")["spec"]["clusterIP"]
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(address(self.ip))
        self.cert = pki.issue(where, "/CN=hook", (f"hook.{NS}.svc",))
        self.reviews = []
        self.start()
        self.stack.callback(lambda: self.server.stop())

    def start(self):
        self.server = WebhookServer(self.cert, self.ip, self.port.number, self.answer)

    def away(self):
        """No new connection, and the end of those that are kept."""
        self.mode = "close"
        self.server.stop()

    def answer(self, handler, where, review):
        if where != "/convert":
            return self.admit(where, review["request"])
        request = review["request"]
        self.reviews.append(review)
        if self.mode == "hang":
            self.release.wait(60)
        elif self.mode == "close":
            handler.close_connection = True
            return None
        elif self.mode == "text":
            return handler.say(b"hello")
        elif self.mode == "big":
            return handler.say(b"[" + b" " * (5 << 20) + b"]")
        elif self.mode == "array":
            return handler.say(b"[]")
        elif self.mode == "absent":
            return handler.say({"apiVersion": review["apiVersion"], "kind": "ConversionReview"})
        elif self.mode in ("404", "500", "418"):
            return handler.say({"message": "no"}, int(self.mode))
        made = [converted(o, request["desiredAPIVersion"]) for o in request["objects"]]
        if self.mode in BROKEN:
            made = broken(self.mode, made)
        elif self.mode == "labels":
            for o in made:
                o["metadata"]["labels"] = {"seen-as": request["desiredAPIVersion"].split("/")[1]}
                o["metadata"]["annotations"] = {"a": "b"}
                o["metadata"]["finalizers"] = ["x.dev/never"]
                o["metadata"]["generation"] = 17
        elif self.mode == "unknown":
            for o in made:
                o["spec"].update(other=1, more={"a": []})
        response = {"result": RESULTS.get(self.mode, {"status": "Success"}), "convertedObjects": made}
        return {**response, "uid": "other"} if self.mode == "uid" else response

    def crd(self, plural="spots", kind="Spot", reviews=("v1",), **client):
        def version(name):
            return {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema(name)},
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                             "statusReplicasPath": ".status.replicas"}},
                    "additionalPrinterColumns": [{"name": "Host" if name == "v1" else "At", "type": "string",
                                                  "jsonPath": ".spec.host" if name == "v1" else ".spec.at"}]}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{GROUP}"}, "spec": {
                    "group": GROUP, "scope": "Namespaced", "versions": [version("v1"), version("v2")],
                    "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
                    "conversion": {"strategy": "Webhook", "webhook": {
                        "conversionReviewVersions": list(reviews), "clientConfig": client or {
                            "service": {"namespace": NS, "name": "hook", "port": self.port.number, "path": "/convert"},
                            "caBundle": ca_bundle(self.pki)}}}}}

    def define(self, plural="spots", **over):
        made = self.api.post(CRDS, self.crd(plural=plural, **over))
        for version in ("v1", "v2"):
            eventually(lambda v=version: self.api.raw("GET", path(v, plural=plural))[0] == 200, 60, f"{plural} {version}")
        return made

    @contextlib.contextmanager
    def behaving(self, mode):
        self.mode, self.reviews = mode, []
        try:
            yield self
        finally:
            self.mode = None

    def clear(self):
        for o in self.api.get(path("v2"))["items"]:
            self.api.delete(path("v2", o["metadata"]["name"]))


VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "selfLink", "time", "lastTransitionTime")


def plain(value, ports=()):
    if isinstance(value, dict):
        shown = {k: plain(v, ports) for k, v in value.items() if k not in VOLATILE}
        if shown.get("managedFields"):  # sorted by time, which has seconds
            shown["managedFields"].sort(key=lambda m: json.dumps(m, sort_keys=True))
        return shown
    if isinstance(value, list):
        return [plain(v, ports) for v in value]
    if isinstance(value, str):
        for p in ports:
            value = value.replace(str(p), "PORT")
        value = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UID", value)
        if "conversion webhook for " in value:  # of a base, which kube-apiserver may have from its cache, or of the object
            value = re.sub(r"/v[12], Kind=Spot", "/VERSION, Kind=Spot", value)
            value = re.sub(r"expected (.*)/v[12],", r"expected \1/VERSION,", value)
        elif "is missing in" in value:
            value = value.split(" in ")[0]
    return value


def spot(name="a", version="v1", **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Spot", "metadata": {"name": name}, "spec": spec}


def run(side, act, mode=None):
    answers = []

    def send(method, where, body=None, **kw):
        code, headers, data = side.api.raw(method, where, body, **kw)
        try:
            shown = json.loads(data)
        except ValueError:
            shown = data.decode()
        answers.append([code, sorted(headers.get_all("Warning") or []), plain(shown, [side.port.number, side.ip])])
        return shown
    with side.behaving(mode):
        act(send)
    return answers


def alike(mine, theirs, act, mode=None):
    try:
        got, wanted = run(mine, act, mode), run(theirs, act, mode)
    finally:
        theirs.clear()
    for i, (x, y) in enumerate(zip(got, wanted)):
        assert x == y, f"{i}: " + json.dumps([x, y], indent=1)
    assert len(got) == len(wanted)
    return got
