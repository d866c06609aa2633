# SPDX-License-Identifier: Apache-2.0
"""Requests that a server must refuse, or take with a warning: (name, method, path, body, headers).

They are sent to a real kube-apiserver and to Sublet, and the answers are compared (test_refusals.py).
A name may be listed in DIFFERENT with the reason why the answers are not the same.
"""
import json

CMS = "/api/v1/namespaces/default/configmaps"
ONE = CMS + "/refusal"  # exists in both, {"data": {"a": "1"}}
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JSON, YAML = {"Content-Type": "application/json"}, {"Content-Type": "application/yaml"}
META = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never"}}
DRY = "?dryRun=All"

PATCH = {kind: {"Content-Type": f"application/{kind}-patch+json"}
         for kind in ("json", "merge", "strategic-merge")}


def cm(**over):
    return {**META, **over}


def meta(**over):
    return {**META, "metadata": {"name": "never", **over}}


def deep(levels, inner=b"1"):
    return b'{"a":' * levels + inner + b"}" * levels


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "never"},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def deployment(**spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "never"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}, **spec}}


def _json_bodies():
    base = json.dumps(META).encode()
    yield "empty", b""
    yield "open", b"{"
    yield "open-string", b'{"apiVersion":"v1'
    yield "word", b"nul"
    yield "null", b"null"
    yield "list", b"[]"
    yield "string", b'"x"'
    yield "number", b"17"
    yield "object", b"{}"
    yield "no-kind", b'{"metadata":{"name":"never"}}'
    yield "trailing", base + b" x"
    yield "two", base + base
    yield "comma", base[:-1] + b",}"
    yield "leading-zero", base[:-1] + b',"immutable":01}'
    yield "nan", base[:-1] + b',"immutable":NaN}'
    yield "single-quotes", b"{'apiVersion':'v1'}"
    yield "comment", b"/* x */" + base
    yield "control", base[:-1] + b',"data":{"a":"\x01"}}'
    yield "newline-in-string", base[:-1] + b',"data":{"a":"\n"}}'
    yield "bad-escape", base[:-1] + b',"data":{"a":"\\q"}}'
    yield "bad-unicode-escape", base[:-1] + b',"data":{"a":"\\u12g4"}}'
    yield "bom", b"\xef\xbb\xbf" + base
    yield "utf16", base.decode().encode("utf-16")
    yield "deep-300", deep(300)
    yield "deep-10001", deep(10001)
    yield "deep-lists", b"[" * 100000
    yield "deep-in-data", base[:-1] + b',"data":' + deep(9000) + b"}"
    yield "kind-number", b'{"kind":1,"apiVersion":"v1"}'
    yield "version-list", b'{"kind":"ConfigMap","apiVersion":["v1"]}'
    yield "version-slashes", b'{"kind":"ConfigMap","apiVersion":"a/b/c"}'
    yield "other-kind", json.dumps({**META, "kind": "Secret"}).encode()
    yield "no-such-kind", json.dumps({**META, "kind": "Nothing"}).encode()
    yield "other-version", json.dumps({**META, "apiVersion": "v2"}).encode()
    yield "other-group", json.dumps({**META, "apiVersion": "apps/v1"}).encode()
    yield "long-garbage", b"\x00\xff" * 5000


def _yaml_bodies():
    yield "empty", b""
    yield "tab", b"a:\n\t- b"
    yield "open-flow", b"a: ["
    yield "list", b"- a"
    yield "scalar", b"hello"
    yield "alias", b"a: *x"
    yield "bomb", b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(10))
    yield "other-kind", b"apiVersion: v1\nkind: Secret\nmetadata: {name: never}\n"
    yield "wrong-type", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: never}\ndata: [a]\n"
    yield "bad-indent", b"a:\n  b: 1\n c: 2\n"


def _objects():
    """POST of JSON objects that are well-formed and wrong."""
    for name, value in {
            "data-list": cm(data=[]), "data-number": cm(data={"a": 1}), "data-string": cm(data="x"),
            "data-null": cm(data={"a": None}), "data-key": cm(data={"a b": ""}),
            "data-key-dots": cm(data={"..": ""}), "data-key-long": cm(data={"a" * 254: ""}),
            "binary-not-base64": cm(binaryData={"a": "*"}), "binary-number": cm(binaryData={"a": 1}),
            "data-and-binary": cm(data={"a": ""}, binaryData={"a": ""}),
            "immutable-string": cm(immutable="yes"), "immutable-number": cm(immutable=1),
            "metadata-list": cm(metadata=[]), "metadata-string": cm(metadata="x"),
            "metadata-null": cm(metadata=None),
            "no-name": meta(name=""), "name-number": meta(name=7), "name-upper": meta(name="Never"),
            "name-long": meta(name="a" * 254), "name-slash": meta(name="a/b"), "name-dots": meta(name=".."),
            "name-percent": meta(name="a%b"), "name-space": meta(name=" never"), "name-nul": meta(name="a\0b"),
            "name-unicode": meta(name="é"), "generate-name": meta(name="", generateName="A_"),
            "other-namespace": meta(namespace="kube-system"), "namespace-number": meta(namespace=1),
            "labels-list": meta(labels=[]), "label-number": meta(labels={"a": 1}),
            "label-key": meta(labels={"a b": ""}), "label-key-long": meta(labels={"a" * 64: ""}),
            "label-value": meta(labels={"a": "b c"}), "label-value-long": meta(labels={"a": "b" * 64}),
            "label-prefix": meta(labels={"A_/b": "c", "/x": "y", "a/b/c": "d"}),
            "annotation-key": meta(annotations={"a b": ""}), "annotation-bool": meta(annotations={"a": True}),
            "annotations-large": meta(annotations={"a": "x" * (256 * 1024)}),
            "finalizer": meta(finalizers=["a b"]), "finalizers-string": meta(finalizers="a"),
            "owner-empty": meta(ownerReferences=[{}]),
            "owner-two-controllers": meta(ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"]),
            "resource-version-on-create": meta(resourceVersion="1"),
            "uid-list": meta(uid=[]), "generation-string": meta(generation="1"),
            "generation-float": meta(generation=1.5), "created-bad": meta(creationTimestamp="yesterday"),
            "managed-fields-string": meta(managedFields="x"), "data-large": cm(data={"a": "x" * (1 << 20)}),
    }.items():
        yield "object/" + name, "POST", CMS + DRY, json.dumps(value).encode(), JSON
    for name, value in {
            "no-containers": pod(containers=[]), "containers-object": pod(containers={}),
            "container-string": pod(containers=["x"]), "container-empty": pod(containers=[{}]),
            "container-twice": pod(containers=[{"name": "c", "image": "i"}] * 2),
            "port": pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]),
            "port-string": pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": "80"}]}]),
            "port-float": pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80.5}]}]),
            "port-range": pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 1 << 40}]}]),
            "quantity": pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1x"}}}]),
            "quantity-list": pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": []}}}]),
            "quantity-negative": pod(containers=[
                {"name": "c", "image": "i", "resources": {"limits": {"cpu": "-1"}}}]),
            "restart-policy": pod(restartPolicy="Sometimes"), "host-network-string": pod(hostNetwork="true"),
            "volume-empty": pod(volumes=[{"name": "v"}]), "spec-null": {**pod(), "spec": None},
            "grace-negative": pod(terminationGracePeriodSeconds=-1),
            "node-selector-number": pod(nodeSelector={"a": 1}),
    }.items():
        yield "pod/" + name, "POST", PODS + DRY, json.dumps(value).encode(), JSON
    for name, value in {
            "no-selector": deployment(selector=None), "other-labels": deployment(selector={"matchLabels": {"a": "c"}}),
            "replicas-negative": deployment(replicas=-1), "replicas-string": deployment(replicas="3"),
            "replicas-float": deployment(replicas=1e3), "replicas-huge": deployment(replicas=1 << 33),
            "strategy": deployment(strategy={"type": "Best"}),
            "surge": deployment(strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": 0}}),
            "operator": deployment(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
    }.items():
        yield "deployment/" + name, "POST", DEPLOYMENTS + DRY, json.dumps(value).encode(), JSON


def _validation():
    """fieldValidation in each way, on fields that are unknown, doubled or spelt otherwise."""
    cm_body = (b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"never","nmae":"x","labels":{"a":"b"},'
               b'"labels":{"a":"c"}},"data":{"a":"1","a":"2"},"Data":{},"dta":{"x":1},"unknown":null}')
    pod_body = json.dumps(pod(nodeNam="x", containers=[
        {"name": "c", "image": "i", "imge": "x", "ports": [{"containerPort": 1, "hostport": 1}]}])).encode()
    yaml_body = (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: never, nmae: x}\n"
                 b"data: {a: '1', a: '2'}\nunknown: 1\nunknown: 2\n")
    patch = b'{"data":{"b":"1"},"dta":{"x":1},"metadata":{"nmae":"x","nmae":"y"}}'
    ops = b'[{"op":"add","path":"/unknown","value":1,"extra":2},{"op":"add","path":"/metadata/nmae","value":1}]'
    many = json.dumps({**META, **{f"unknown{i}": i for i in range(60)}}).encode()
    for mode in ("", "Strict", "Warn", "Ignore", "strict", "Bogus"):
        query = DRY + (f"&fieldValidation={mode}" if mode else "")
        for name, method, path, body, headers in (
                ("json", "POST", CMS, cm_body, JSON), ("yaml", "POST", CMS, yaml_body, YAML),
                ("pod", "POST", PODS, pod_body, JSON), ("many", "POST", CMS, many, JSON),
                ("put", "PUT", ONE, cm_body.replace(b'"never"', b'"refusal"'), JSON),
                ("merge", "PATCH", ONE, patch, PATCH["merge"]),
                ("strategic", "PATCH", ONE, patch, PATCH["strategic-merge"]),
                ("json-patch", "PATCH", ONE, ops, PATCH["json"])):
            yield f"validation/{mode or 'default'}/{name}", method, path + query, body, headers


def _patches():
    for name, body in {
            "empty": b"", "open": b"[", "object": b"{}", "null": b"null", "op-unknown": b'[{"op":"jump","path":"/a"}]',
            "op-missing": b'[{"path":"/data"}]', "op-number": b'[{"op":1,"path":"/data"}]',
            "path-missing": b'[{"op":"add","value":1}]', "path-relative": b'[{"op":"add","path":"data","value":1}]',
            "value-missing": b'[{"op":"add","path":"/data/x"}]', "item-string": b'["add"]',
            "remove-nothing": b'[{"op":"remove","path":"/data/nothing"}]',
            "replace-nothing": b'[{"op":"replace","path":"/data/nothing","value":"1"}]',
            "add-nowhere": b'[{"op":"add","path":"/a/b/c","value":1}]',
            "test-fails": b'[{"op":"test","path":"/data/a","value":"2"}]',
            "test-nothing": b'[{"op":"test","path":"/data/zz","value":"2"}]',
            "copy-nowhere": b'[{"op":"copy","from":"/x/y","path":"/data/b"}]',
            "move-nowhere": b'[{"op":"move","from":"/x/y","path":"/data/b"}]',
            "bad-escape": b'[{"op":"add","path":"/data/~2","value":"1"}]',
            "index": b'[{"op":"add","path":"/metadata/finalizers/5","value":"a/b"}]',
            "kind": b'[{"op":"replace","path":"/kind","value":"Secret"}]',
            "root": b'[{"op":"replace","path":"","value":[]}]', "root-remove": b'[{"op":"remove","path":""}]',
            "wrong-type": b'[{"op":"replace","path":"/data","value":[]}]',
            "too-many": b"[" + b",".join([b'{"op":"test","path":"/data/a","value":"1"}'] * 10001) + b"]",
            "grows": json.dumps([{"op": "add", "path": "/data/x", "value": "x" * 1000}] + [
                {"op": "copy", "from": "/data", "path": f"/data/y{i}"} for i in range(30)]).encode(),
            "name": b'[{"op":"replace","path":"/metadata/name","value":"other"}]',
    }.items():
        yield "patch/json/" + name, "PATCH", ONE + DRY, body, PATCH["json"]
    for name, body in {
            "empty": b"", "open": b"{", "list": b"[]", "null": b"null", "string": b'"x"',
            "wrong-type": b'{"data":[]}', "number": b'{"data":{"a":1}}', "kind": b'{"kind":"Secret"}',
            "version": b'{"apiVersion":"v2"}', "name": b'{"metadata":{"name":"other"}}',
            "namespace": b'{"metadata":{"namespace":"other"}}', "uid": b'{"metadata":{"uid":"x"}}',
            "revision": b'{"metadata":{"resourceVersion":"1"}}', "revision-bad": b'{"metadata":{"resourceVersion":"x"}}',
            "metadata-null": b'{"metadata":null}', "labels": b'{"metadata":{"labels":{"a b":"c"}}}',
            "deep": deep(9000), "directive": b'{"$patch":"what"}', "directive-number": b'{"$patch":1}',
            "retain-keys": b'{"$retainKeys":"x"}', "delete-directive": b'{"data":{"$patch":"delete"}}',
            "order": b'{"metadata":{"$setElementOrder/finalizers":["a"],"finalizers":["b"]}}',
            "order-string": b'{"metadata":{"$setElementOrder/finalizers":"a"}}',
            "delete-list": b'{"metadata":{"$deleteFromPrimitiveList/finalizers":{}}}',
            "owner-no-key": b'{"metadata":{"ownerReferences":[{"name":"x"}]}}',
    }.items():
        for kind in ("merge", "strategic-merge"):
            yield f"patch/{kind}/{name}", "PATCH", ONE + DRY, body, PATCH[kind]
    yield "patch/nothing", "PATCH", CMS + "/nothing" + DRY, b'{"data":{}}', PATCH["merge"]
    yield "patch/collection", "PATCH", CMS, b"{}", PATCH["merge"]
    for kind in ("application/json", "application/apply-patch+json", "text/plain", "", "x", "application/merge-patch"):
        yield f"patch/type/{kind}", "PATCH", ONE, b"{}", {"Content-Type": kind} if kind else {}


def _content_types():
    body = json.dumps(META).encode()
    for kind in ("text/plain", "application/xml", "application/json; charset=utf-8", "application/json;",
                 "application/json; charset", "APPLICATION/JSON", ";;;", "application/*", "multipart/form-data",
                 "application/x-www-form-urlencoded", "application/vnd.kubernetes.protobuf", "application/cbor-x"):
        yield f"type/{kind}", "POST", CMS + DRY, body, {"Content-Type": kind}
    for accept in ("text/html", "application/xml", "application/json;as=Table;v=v9;g=meta.k8s.io",
                   "application/json;as=Nothing;v=v1;g=meta.k8s.io", "application/json;stream=watch", "x", ";",
                   "text/*", "application/json;q=0", "application/yaml;q=0.1,text/html", "*/*;q=0.5"):
        yield f"accept/{accept}", "GET", ONE, None, {"Accept": accept}
        yield f"accept-list/{accept}", "GET", CMS + "?limit=1", None, {"Accept": accept}


def _queries():
    for query in (
            "limit=x", "limit=-1", "limit=99999999999999999999", "limit=1.5", "continue=x", "continue=eyJ2IjoibWV0YSJ9",
            "resourceVersion=x", "resourceVersion=-1", "resourceVersion=99999999999",
            "resourceVersionMatch=Exact", "resourceVersionMatch=Bogus&resourceVersion=1",
            "resourceVersion=0&resourceVersionMatch=Exact", "limit=1&continue=x&resourceVersion=1",
            "timeoutSeconds=x", "timeoutSeconds=99999999999999999999", "labelSelector=a%20b", "labelSelector=a%3D%3D%3Db",
            "labelSelector=a%20in%20(", "labelSelector=!", "labelSelector=a%3Db%2C%2C", "labelSelector=" + "a" * 300,
            "labelSelector=a%3D" + "b" * 64, "fieldSelector=a", "fieldSelector=metadata.nothing%3Dx",
            "fieldSelector=metadata.name%3E1", "fieldSelector=%3D", "watch=x&limit=1",
            "watch=1&resourceVersion=x", "watch=1&resourceVersion=-1", "watch=1&labelSelector=%20%20%21",
            "watch=1&sendInitialEvents=true", "watch=1&resourceVersionMatch=NotOlderThan",
            "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", "sendInitialEvents=true",
            "watch=1&timeoutSeconds=x", "allowWatchBookmarks=x&limit=1", "pretty=x&limit=1"):
        yield f"query/{query[:40]}", "GET", f"{CMS}?{query}", None, {}
    for query in ("dryRun=x", "dryRun=", "dryRun=All&dryRun=All", "dryRun=all", "fieldManager=" + "a" * 129,
                  "fieldManager=%01", "fieldManager=a%20b&dryRun=All"):
        yield f"query/create/{query[:20]}", "POST", f"{CMS}?{query}", json.dumps(meta(labels={"a b": ""})).encode(), JSON
    for query in ("gracePeriodSeconds=x", "gracePeriodSeconds=-1", "propagationPolicy=Bogus", "orphanDependents=x",
                  "orphanDependents=true&propagationPolicy=Orphan", "dryRun=x", "propagationPolicy="):
        yield f"query/delete/{query}", "DELETE", f"{CMS}/nothing?{query}", None, {}
    for name, body in {"open": b"{", "list": b"[]", "kind": b'{"kind":"Pod","apiVersion":"v1"}', "string": b'"x"',
                       "grace": b'{"gracePeriodSeconds":"x"}', "policy": b'{"propagationPolicy":"Bogus"}',
                       "uid": b'{"preconditions":{"uid":"x"}}', "both": b'{"orphanDependents":true,"propagationPolicy":"Orphan"}',
                       "revision": b'{"preconditions":{"resourceVersion":"1"}}', "dry": b'{"dryRun":["x"]}',
                       "unknown": b'{"nothing":1,"dryRun":["All"]}'}.items():
        yield f"delete/{name}", "DELETE", ONE, body, JSON


def _paths():
    for path in ("/api/v1/nothing", "/api/v1/namespaces/default/nothing", "/api/v2", "/api/v2/pods", "/apis/none/v1/x",
                 "/apis/apps/v9/deployments", "/apis/apps/v1/nothing", "/apis/apps", "/apis/none", "/nothing", "/api/",
                 "/api/v1/namespaces/default/configmaps/", "/api/v1/namespaces/default/configmaps/nothing",
                 "/api/v1/configmaps/x", "/api/v1/namespaces/default/nodes", "/api/v1/namespaces/nothing/configmaps",
                 PODS + "/x/nothing", PODS + "/x/log", PODS + "/x/status", PODS + "/x/scale", CMS + "/refusal/status",
                 "/api/v1/namespaces/nothing", "/apis/apps/v1/namespaces/default/deployments/x/scale", "/openapi/v9",
                 "/openapi/v3/none", "/version/x", "/healthz/nothing", "/readyz/nothing", "/metrics/x", "/logs", "/debug",
                 "/api/v1/namespaces/default/configmaps/a%2Fb", "/api/v1/namespaces/%2e%2e/configmaps",
                 "/api/v1/namespaces/default/configmaps/%00", "/api/v1/namespaces/default/configmaps/%ff",
                 CMS + "/" + "x" * 300, "/" + "x" * 4000):
        yield f"path/GET {path[:60]}", "GET", path, None, {}
    for method, path in (
            ("POST", ONE), ("PUT", CMS), ("DELETE", "/api/v1/namespaces"), ("DELETE", "/api/v1/nodes/nothing"),
            ("POST", "/api/v1/configmaps"), ("DELETE", "/api/v1/configmaps"), ("PUT", "/version"), ("POST", "/healthz"),
            ("DELETE", "/apis"), ("PATCH", "/api/v1"), ("OPTIONS", CMS), ("TRACE", CMS), ("BREW", CMS), ("PROPFIND", "/api"),
            ("get", CMS), ("CONNECT", CMS), ("SOURCE", ONE), ("X" * 100, CMS), ("BREW", "/version"), ("BREW", "/nothing"),
            ("HEAD", ONE), ("HEAD", CMS + "/nothing"), ("HEAD", "/nothing"), ("GET", PODS + "/x/exec"),
            ("GET", PODS + "/x/binding"), ("POST", PODS + "/x/status"), ("PUT", PODS + "/x/binding"),
            ("DELETE", PODS + "/x/log"), ("POST", PODS + "/x/eviction"), ("PUT", CMS + "/nothing"), ("POST", "/api/v1/bindings")):
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None
        yield f"verb/{method} {path}", method, path, body, (PATCH["merge"] if method == "PATCH" else JSON) if body else {}
    same = json.dumps(meta(name="refusal")).encode()
    yield "put/other-name", "PUT", ONE + DRY, json.dumps(META).encode(), JSON
    yield "put/no-name", "PUT", ONE + DRY, json.dumps(meta(name="")).encode(), JSON
    yield "put/revision-old", "PUT", ONE + DRY, json.dumps(meta(name="refusal", resourceVersion="1")).encode(), JSON
    yield "put/revision-bad", "PUT", ONE + DRY, json.dumps(meta(name="refusal", resourceVersion="x")).encode(), JSON
    yield "put/uid", "PUT", ONE + DRY, json.dumps(meta(name="refusal", uid="x")).encode(), JSON
    yield "create/exists", "POST", CMS, same, JSON
    yield "create/no-namespace", "POST", "/api/v1/namespaces/nothing/configmaps", json.dumps(META).encode(), JSON


def cases():
    for name, body in _json_bodies():
        yield "json/" + name, "POST", CMS + DRY, body, JSON
    for name, body in _yaml_bodies():
        yield "yaml/" + name, "POST", CMS + DRY, body, YAML
    for part in (_objects, _validation, _patches, _content_types, _queries, _paths):
        yield from part()
