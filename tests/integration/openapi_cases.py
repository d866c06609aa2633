# SPDX-License-Identifier: Apache-2.0
"""OpenAPI documents of two servers, side by side, and the reviewed list of what may differ."""
import json
import re

# (where, why): regular expressions over "<document>/<path in it>".
ACCEPTED = [
    (r"^v2/definitions/io\.k8s\.apimachinery\.pkg\.apis\.meta\.v1\.(DeleteOptions|WatchEvent)/"
     r"x-kubernetes-group-version-kind$", "upstream lists alpha and beta groups nobody serves"),
    (r"^apis/stable\.compare\.example/.*/io\.k8s\.apimachinery\.pkg\.apis\.meta\.v1\.DeleteOptions/"
     r"x-kubernetes-group-version-kind$", "of custom resources too, and leaves out their own group"),
]


def without_text(node, names=False):
    """Less descriptions (an object's member may be called description: `names`)."""
    if isinstance(node, dict):
        return {k: without_text(v, k == "properties" and not names) for k, v in node.items()
                if names or not (k == "description" and isinstance(v, str))}
    if isinstance(node, list):
        return [without_text(v) for v in node]
    return node


def _plain(node):
    """The order of required fields means nothing; a lone allOf is what it holds."""
    if isinstance(node, list):
        return [_plain(v) for v in node]
    if not isinstance(node, dict):
        return node
    out = {k: _plain(v) for k, v in node.items()}
    if isinstance(out.get("required"), list):
        out["required"] = sorted(out["required"])
    if list(out) == ["allOf"] and len(out["allOf"]) == 1 and "$ref" in out["allOf"][0]:
        return out["allOf"][0]
    return out


def _parameters(shared, listed):
    """References are resolved: upstream names what is shared by a hash of its bytes."""
    found = [shared[p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p for p in listed]
    return sorted(found, key=lambda p: (p["name"], p["in"]))


def comparable(document):
    document = _plain(without_text(document))
    shared = document.pop("parameters", {})
    for path in document.get("paths", {}).values():
        for method, operation in path.items():
            if method == "parameters":
                path[method] = _parameters(shared, operation)
            elif "parameters" in operation:
                operation["parameters"] = _parameters(shared, operation["parameters"])
    return document


def differences(where, ours, theirs):
    """(where, ours, theirs) of every leaf that differs, less what is accepted."""
    out = []
    _walk(out, where, ours, theirs)
    return [d for d in out if not any(re.search(p, d[0]) for p, _ in ACCEPTED)]


def _walk(out, where, ours, theirs):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            _walk(out, f"{where}/{key}", ours.get(key), theirs.get(key))
    elif ours != theirs:
        out.append((where, json.dumps(ours)[:200], json.dumps(theirs)[:200]))


def fetch(api, path, accept="application/json", **headers):
    """(status, headers in lower case, body)."""
    response = api.open("GET", path, headers={"Accept": accept, **headers})
    return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def document(api, path):
    status, _, body = fetch(api, path)
    assert status == 200, (path, status, body[:300])
    return json.loads(body)


def index(api):
    return {root: entry["serverRelativeURL"] for root, entry in document(api, "/openapi/v3")["paths"].items()}


def messages(data):
    """The fields of a protobuf message: [(number, value)], bytes or int."""
    out, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
        elif key & 7 == 1:
            out.append((key >> 3, data[at:at + 8]))
            at += 8
        else:
            assert key & 7 == 2, key
            size = varint()
            assert at + size <= len(data)
            out.append((key >> 3, data[at:at + size]))
            at += size
    return out


def named(data, number):
    """{name: message} of the entries that are field `number` of a message."""
    entries = [dict(messages(entry)) for n, entry in messages(data) if n == number]
    return {e[1].decode(): e[2] for e in entries}


RICH = {
    "type": "object", "description": "A CronTab for tests.", "required": ["spec"],
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}}},
        "spec": {
            "type": "object", "description": "What is wanted.", "required": ["cronSpec", "nothing"],
            "oneOf": [{"required": ["color"]}, {"required": ["replicas"]}], "not": {"required": ["no"]},
            "properties": {
                "cronSpec": {"type": "string", "pattern": "^a*$", "description": "When.", "minLength": 1,
                             "format": "date-time"},
                "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10,
                             "exclusiveMaximum": True, "default": 1},
                "nothing": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True, "description": "A port."},
                "said": {"x-kubernetes-int-or-string": True, "pattern": "x",
                         "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "narrow": {"x-kubernetes-int-or-string": True, "allOf": [{"pattern": "w+"}],
                           "anyOf": [{"minimum": 3}, {"pattern": "z"}]},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                        "description": "Anything.", "properties": {"a": {"type": "string"}}},
                "free": {"x-kubernetes-preserve-unknown-fields": True},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True,
                             "properties": {"spec": {"type": "object"}}},
                "open": {"type": "object", "x-kubernetes-embedded-resource": True,
                         "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 5}},
                "nulls": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
                "ports": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
                          "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"], "x-kubernetes-map-type": "atomic",
                                    "properties": {"name": {"type": "string"},
                                                   "num": {"type": "number", "format": "double",
                                                           "multipleOf": 2}}}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "objects": {"type": "array", "items": {"type": "object",
                                                       "x-kubernetes-preserve-unknown-fields": True}},
                "off": {"type": "boolean", "default": False, "nullable": False},
                "empty": {"type": "object", "default": {}, "properties": {}},
            }},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer", "format": "int64"}}}}}


def compared_crds():
    """Two CRDs in one group: three versions, one of them not served; with all there is to publish."""
    def crd(plural, kind, scope, versions, **names):
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.stable.compare.example"},
                "spec": {"group": "stable.compare.example", "scope": scope, "versions": versions,
                         "names": {"plural": plural, "singular": kind.lower(), "kind": kind, **names}}}

    def version(name, schema, **more):
        return {"name": name, "served": True, "storage": name == "v1",
                "schema": {"openAPIV3Schema": schema}, **more}

    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return [
        crd("crontabs", "CronTab", "Namespaced", [
            version("v1", RICH, subresources={"status": {}, "scale": scale},
                    selectableFields=[{"jsonPath": ".spec.color"}]),
            version("v1beta1", {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                                "description": "rooted"}),
            version("v1alpha1", {"type": "object"}, served=False)]),
        crd("gears", "Gear", "Cluster", [
            version("v1", {"type": "object", "properties": {"spec": {"type": "string"}}})], listKind="Gears"),
    ]
