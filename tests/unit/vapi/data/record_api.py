#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what a real kube-apiserver answers to the requests below, for test_api_oracle.c.

    PYTHONPATH=tests record_api.py KUBECONFIG > api.jsonl

Each case is a list of steps run one after the other in a fresh namespace; {rv:N} and {uid:N} stand for the
resourceVersion and uid that step N answered. What differs from run to run is blanked out: see volatile(). It
must only be run against a cluster made for tests."""
import json
import re
import sys
import time
import uuid

from testenv.api import Api

CM = "/api/v1/namespaces/{ns}/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def post(body, path=CM, **kw):
    return dict(method="POST", path=path, body=body, **kw)


def put(name, body, path=CM, **kw):
    return dict(method="PUT", path=path + "/" + name, body=body, **kw)


def patch(name, body, kind=MERGE, path=CM, **kw):
    return dict(method="PATCH", path=path + "/" + name, body=body, type=kind, **kw)


def delete(name, body=None, path=CM, **kw):
    return dict(method="DELETE", path=path + "/" + name, body=body, **kw)


def get(name, path=CM, **kw):
    return dict(method="GET", path=path + ("/" + name if name else ""), **kw)


def cm(name="a", data=None, **meta):
    return {"metadata": {"name": name, **meta}, **({"data": data} if data is not None else {})}


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}

CASES = {
    "create": [post(cm(data={"a": "1"})), get("a")],
    "create with kind": [post({"kind": "ConfigMap", "apiVersion": "v1", **cm()})],
    "create twice": [post(cm()), post(cm())],
    "create without a name": [post({})],
    "create with null metadata": [post({"metadata": None})],
    "create of a list": [post("[]"), post("null"), post("3"), post('"x"')],
    "create of no JSON": [post(""), post("{"), post("abc"), post("{}{}"), post('{"a":1,}'), post("{'a':1}")],
    "create with wrong kind": [post({"kind": "Secret", "apiVersion": "v1"}),
                               post({"kind": "Deployment", "apiVersion": "apps/v1"}),
                               post({"kind": "Foo", "apiVersion": "v1"}),
                               post({"kind": "ConfigMap", "apiVersion": "v2"}),
                               post({"kind": "ConfigMap"}), post({"apiVersion": "v1"}),
                               post({"kind": "ConfigMap", "apiVersion": "a/b/c"}),
                               post({"kind": 1}), post({"apiVersion": {}})],
    "create elsewhere": [post(cm(namespace="other"))],
    "create with system fields": [post(cm(uid="x", creationTimestamp="2001-01-01T00:00:00Z", generation=7,
                                          deletionTimestamp="2001-01-01T00:00:00Z",
                                          deletionGracePeriodSeconds=5, selfLink="/x"))],
    "create with a revision": [post(cm(resourceVersion="1")), post(cm(resourceVersion="x")),
                               post(cm(resourceVersion="0"))],
    "create with bad names": [post(cm("A")), post(cm("a_b")), post(cm("a" * 254)), post(cm("")), post(cm(".")),
                              post(cm("a b")), post(cm("é"))],
    "create with generateName": [post({"metadata": {"generateName": "x-"}}),
                                 post({"metadata": {"generateName": "x" * 80}}),
                                 post({"metadata": {"generateName": "x-", "name": "y"}})],
    "labels": [post(cm(labels={"a b": "c"})), post(cm(labels={"a": "b c"})), post(cm(labels={"": ""})),
               post(cm("b", labels={"x.y/z": "A-1_2.3", "e": ""})), post(cm(labels={"a/b/c": "x"})),
               post(cm(labels={"a" * 64: "x"})), post(cm(labels={"a": "x" * 64})),
               post(cm(labels={"a": 1})), post(cm(labels=["a"]))],
    "annotations": [post(cm(annotations={"A B": "x"})), post(cm("b", annotations={"UP/per": "any thing\n"}))],
    "finalizers": [post(cm(finalizers=["x y"])), post(cm(finalizers=["orphan", "foregroundDeletion"])),
                   post(cm("b", finalizers=["plain"])), post(cm("c", finalizers=["a.b/c", "a.b/c"]))],
    "owners": [post(cm(ownerReferences=[{}])),
               post(cm(ownerReferences=[{**OWNER, "apiVersion": "v1", "kind": "Event"}])),
               post(cm(ownerReferences=[{**OWNER, "controller": True},
                                        {**OWNER, "uid": "w", "controller": True}])),
               post(cm("b", ownerReferences=[OWNER, OWNER])),
               post(cm("c", ownerReferences=[OWNER, {**OWNER, "name": "q"}]))],
    "types": [post({**cm(), "data": "x"}), post({**cm(), "data": {"a": 1}}), post({"metadata": "x"}),
              post({**cm(), "immutable": "yes"}), post({**cm(), "binaryData": {"a": "%%"}}),
              post(cm(creationTimestamp="yesterday")), post(cm(generation="x"))],
    "nulls": [post({**cm(), "data": None, "binaryData": None, "immutable": None}),
              post({**cm("b", labels=None), "data": {}}), post({**cm("c"), "data": {"a": None}})],
    "strict": [post({**cm(), "foo": 1, "metadata": {"name": "a", "bar": 2}}, query="fieldValidation=Strict"),
               post('{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}', query="fieldValidation=Strict"),
               post({**cm(), "foo": 1}), post({**cm("b"), "foo": 1}, query="fieldValidation=Ignore"),
               post({**cm("c")}, query="fieldValidation=foo"),
               patch("a", {"foo": 1}, query="fieldValidation=Strict"), patch("a", {"foo": 1}),
               patch("a", '{"data":{"x":"1","x":"2"}}', query="fieldValidation=Strict")],
    "dry run": [post(cm(data={"a": "1"}), query="dryRun=All"), get("a"), post(cm(), query="dryRun=x"),
                post(cm(), query="dryRun="), post(cm()), put("a", cm(data={"a": "2"}), query="dryRun=All"),
                patch("a", {"data": {"b": "3"}}, query="dryRun=All"), delete("a", query="dryRun=All"),
                get("a"), delete("a", {"dryRun": ["All"]}), delete("a", {"dryRun": ["x"]}), get("a")],
    "field manager": [post(cm(), query="fieldManager=" + "a" * 129)],
    "content types": [post("{}", type="text/plain"), post("{}", type="application/cbor"),
                      post("metadata: {name: y1}\n", type="application/yaml"),
                      post("metadata: {name: y1\n", type="application/yaml"),
                      post("{}", type="application/json;x"),
                      post(cm("u"), type="application/json; charset=utf-8")],
    "update": [post(cm(data={"a": "1"})), put("a", cm(data={"a": "2"})),
               put("a", cm(data={"a": "3"}, resourceVersion="{rv:0}")),
               put("a", cm(data={"a": "3"}, resourceVersion="{rv:1}")),
               put("a", cm(data={"a": "3"}, resourceVersion="x")),
               put("a", cm(data={"a": "3"}, resourceVersion="0")),
               put("a", cm(data={"a": "3"})), get("a")],
    "update without change": [post(cm(data={"a": "1"})), put("a", cm(data={"a": "1"})), get("a")],
    "update of names": [post(cm()), put("a", cm("b")), put("a", {}), put("a", cm(namespace="other")),
                        put("b", cm("b")), put("a", {"kind": "Secret", "apiVersion": "v1", **cm()})],
    "update of uid": [post(cm()), put("a", cm(uid="x")), put("a", cm(uid="{uid:0}", data={"a": "1"}))],
    "update of system fields": [
        post(cm()), put("a", cm(creationTimestamp="2001-01-01T00:00:00Z", generation=5,
                                deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=3))],
    "conditional update": [post({"metadata": {"name": "l"}}, path=LEASES),
                           put("l", {"metadata": {"name": "l", "labels": {"a": "b"}}}, path=LEASES),
                           put("m", {"metadata": {"name": "m"}}, path=LEASES)],
    "merge patch": [post(cm(data={"a": "1", "b": "2"})), patch("a", {"data": {"a": None, "c": "3"}}),
                    patch("a", {}), patch("a", {"data": {"c": 3}}), patch("a", "[]"), patch("a", "x"),
                    patch("a", {"metadata": {"name": "b"}}), patch("a", {"metadata": {"uid": "b"}}),
                    patch("a", {"metadata": {"namespace": "b"}}), patch("b", {}),
                    patch("a", {"metadata": {"resourceVersion": "1"}}),
                    patch("a", {"kind": "Secret"}), patch("a", {"apiVersion": "v2"}),
                    patch("a", {"metadata": None}), get("a")],
    "JSON patch": [post(cm(data={"a": "1"})),
                   patch("a", [{"op": "replace", "path": "/data/a", "value": "2"}], JSON_PATCH),
                   patch("a", [{"op": "test", "path": "/data/a", "value": "9"}], JSON_PATCH),
                   patch("a", [{"op": "remove", "path": "/data/zz"}], JSON_PATCH),
                   patch("a", [{"op": "foo", "path": "/data/a"}], JSON_PATCH),
                   patch("a", {}, JSON_PATCH), patch("a", [], JSON_PATCH)],
    "strategic patch": [post(cm(data={"a": "1"}, finalizers=["a.b/c"])),
                        patch("a", {"metadata": {"finalizers": ["a.b/d"]}}, STRATEGIC),
                        patch("a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}, STRATEGIC),
                        patch("a", {"data": {"$patch": "replace", "z": "1"}}, STRATEGIC),
                        patch("a", {"$patch": "sometimes"}, STRATEGIC), patch("a", {"data": 7}, STRATEGIC)],
    "patch types": [post(cm()), patch("a", {}, "application/json"), patch("a", {}, "text/plain"),
                    patch("a", {}, query="force=true")],
    "delete": [post(cm()), delete("a"), delete("a"), get("a")],
    "delete with preconditions": [post(cm()), delete("a", {"preconditions": {"uid": "x"}}),
                                  delete("a", {"preconditions": {"resourceVersion": "1"}}),
                                  delete("a", {"preconditions": {"uid": "{uid:0}",
                                                                 "resourceVersion": "{rv:0}"}})],
    "delete options": [post(cm()), delete("a", {"propagationPolicy": "x"}),
                       delete("a", {"propagationPolicy": "Orphan", "orphanDependents": True}),
                       delete("a", {"kind": "Pod", "apiVersion": "v1"}), delete("a", "x"),
                       delete("a", {"gracePeriodSeconds": "x"}),
                       delete("a", query="gracePeriodSeconds=x"),
                       delete("a", {"kind": "DeleteOptions", "apiVersion": "apps/v1"})],
    "delete with finalizers": [post(cm(finalizers=["a.b/c"])), delete("a"), delete("a"), post(cm()),
                               patch("a", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}),
                               patch("a", {"metadata": {"deletionTimestamp": None}}),
                               patch("a", {"data": {"x": "1"}}),
                               patch("a", {"metadata": {"finalizers": []}}), get("a")],
    "delete by policy": [post(cm(finalizers=["a.b/c"])), delete("a", {"propagationPolicy": "Foreground"}),
                         delete("a", {"propagationPolicy": "Orphan"}),
                         delete("a", {"propagationPolicy": "Background"}),
                         patch("a", {"metadata": {"finalizers": None}})],
    "unknown things": [get("", path="/api/v1/namespaces/{ns}/foos"), get("", path="/apis/foo.bar/v1/foos"),
                       get("", path="/apis/apps/v1/namespaces/{ns}/foos"), get("a/foo"),
                       dict(method="PUT", path=CM, body={}), post(cm(), path=CM + "/a"),
                       post(cm(), path="/api/v1/configmaps"), get("a", path="/api/v1/configmaps"),
                       dict(method="DELETE", path="/api/v1/configmaps")],
    "queries": [get("", query="limit=x"), get("", query="labelSelector=a%3D%3D%3Db"),
                get("", query="labelSelector=,"), get("", query="fieldSelector=x"),
                get("", query="fieldSelector=foo%3Dbar"), get("", query="resourceVersion=x"),
                get("a", query="resourceVersion=x"), get("", query="resourceVersionMatch=Exact"),
                get("", query="timeout=x")],
}

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BLANK = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time")


def volatile(value, key=None):
    """Blanks out what a second run would answer differently, and what is recorded by server-side apply."""
    if isinstance(value, dict):
        if str(value.get("generateName", "")) and str(value.get("name", "")).startswith(value["generateName"][:58]):
            value = {**value, "name": "*"}
        return {k: volatile(v, k) for k, v in value.items() if k != "managedFields"}
    if isinstance(value, list):  # upstream checks updates of metadata twice: causes come twice
        items = [volatile(v) for v in value]
        return [v for i, v in enumerate(items) if key != "causes" or v not in items[:i]]
    if isinstance(value, str):
        value = re.sub(r"in record \(\d+\)", "in record (*)", UUID.sub("*", value))
        return "*" if key in BLANK and value else value
    return value


def fill(text, ns, seen):
    text = text.replace("{ns}", ns)
    for i, answer in enumerate(seen):
        meta = answer.get("metadata") or {} if isinstance(answer, dict) else {}
        text = text.replace("{rv:%d}" % i, meta.get("resourceVersion", ""))
        text = text.replace("{uid:%d}" % i, meta.get("uid", ""))
    return text


def run(api, ns, steps):
    seen, out = [], []
    for step in steps:
        body = step.get("body")
        if body is not None and not isinstance(body, str):
            body = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        path = step["path"] + ("?" + step["query"] if "query" in step else "")
        kind = step.get("type", "application/json")
        sent = None if body is None else fill(body, ns, seen).encode()
        code, headers, data = api.raw(step["method"], fill(path, ns, seen), sent, content_type=kind)
        try:
            answer = json.loads(data)
        except ValueError:
            answer = data.decode()
        seen.append(answer)
        clean = json.loads(json.dumps(volatile(answer)).replace(ns, "{ns}"))
        out.append({"method": step["method"], "path": path, "type": kind, "body": body, "code": code,
                    "answer": clean, "warnings": sorted(volatile(headers.get_all("warning") or []))})
    return out


def clean(api, ns):
    """Takes off the finalizers that would keep the namespace for ever."""
    configmaps = f"/api/v1/namespaces/{ns}/configmaps"
    for item in api.get(configmaps)["items"]:
        if item["metadata"].get("finalizers"):
            api.patch(f"{configmaps}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
    api.delete("/api/v1/namespaces/" + ns)


def main():
    api = Api(sys.argv[1])
    api.headers["User-Agent"] = "tests/1"
    for name, steps in CASES.items():
        ns = "record-" + uuid.uuid4().hex[:8]
        api.post("/api/v1/namespaces", {"metadata": {"name": ns}})
        time.sleep(0.2)
        print(json.dumps({"name": name, "steps": run(api, ns, steps)}, ensure_ascii=False))
        clean(api, ns)


if __name__ == "__main__":
    main()
