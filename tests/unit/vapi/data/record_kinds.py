#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what a real kube-apiserver makes of objects of every built-in kind, for test_kinds.c.

    PYTHONPATH=tests record_kinds.py KUBECONFIG [NAME...] > kinds.jsonl

The cases are in kinds_cases.yaml: for each kind a base object, changes of it to create, changes to update it with,
statuses to print as table rows. One line comes out for each of them. What depends on the server or is admission's
work is cut: see clean(). It must only be run against a cluster made for tests."""
import copy
import email.utils
import json
import os
import re
import sys
import time
import uuid

import yaml

from testenv.api import Api

UID = "11111111-2222-4333-8444-555555555555"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BORN = "2026-01-02T03:04:05Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OURS = {"not-ready", "unreachable"}


class Server:
    def __init__(self, kubeconfig):
        self.api = Api(kubeconfig)
        self.api.headers["User-Agent"] = "tests/1"
        self.resources = {}

    def resource(self, obj):
        key = obj["apiVersion"], obj["kind"]
        if key not in self.resources:
            base = ("/api/" if "/" not in key[0] else "/apis/") + key[0]
            for r in self.api.get(base)["resources"]:
                if "/" not in r["name"]:
                    self.resources[key[0], r["kind"]] = base, r["name"], r["namespaced"]
        return self.resources[key]

    def path(self, obj, ns):
        base, plural, namespaced = self.resource(obj)
        return f"{base}/namespaces/{ns}/{plural}" if namespaced else f"{base}/{plural}"

    def call(self, method, path, body=None, **kw):
        code, headers, data = self.api.raw(method, path, body, **kw)
        return code, headers, json.loads(data)


def change(obj, changes):
    """A copy with {dotted.path: value} set; None removes; items of lists by number."""
    obj = copy.deepcopy(obj)
    for path, value in (changes or {}).items():
        at, keys = obj, path.split("|") if "|" in path else path.split(".")
        for key in keys[:-1]:
            if isinstance(at, list):
                while len(at) <= int(key):
                    at.append({})
                at = at[int(key)]
            else:
                at = at.setdefault(key, {})
        last = keys[-1]
        if isinstance(at, list):
            if value is None:
                del at[int(last)]
            elif int(last) >= len(at):
                at.append(value)
            else:
                at[int(last)] = value
        elif value is None:
            at.pop(last, None)
        else:
            at[last] = value
    return obj


def expand(value, ns=None):
    """{"$repeat": [string, n]} stands for a long string, {ns} for the namespace."""
    if isinstance(value, dict):
        if "$repeat" in value:
            return value["$repeat"][0] * value["$repeat"][1]
        return {k: expand(v, ns) for k, v in value.items()}
    if isinstance(value, str):
        return value.replace("{ns}", ns)
    return [expand(v, ns) for v in value] if isinstance(value, list) else value


def blank(answer, ns):
    text = json.dumps(answer)
    meta = answer.get("metadata", {})
    if meta.get("uid"):
        text = text.replace(meta["uid"], UID)
    return json.loads(text.replace(ns, "ns1"))


def clean_pod(pod, sent):
    spec = pod["spec"]
    for key in ("priority", "preemptionPolicy"):
        spec.pop(key, None)
    for key in ("serviceAccountName", "serviceAccount"):
        if spec.get(key) == "default" and not any(k.startswith("serviceAccount") for k in sent):
            del spec[key]
    left = [t for t in spec.get("tolerations", []) if t.get("key", "").split("/")[-1] not in OURS]
    spec.pop("tolerations", None)
    if left:
        spec["tolerations"] = left


def clean(answer, ns, sent):
    """Without what the server's clock, the allocators and admission put there."""
    answer = blank(answer, ns)
    meta = answer.get("metadata", {})
    born = meta.get("creationTimestamp")
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        meta.pop(key, None)
    kind = answer["kind"]
    if kind == "Pod":
        clean_pod(answer, sent.get("spec", {}))
    if kind == "Service":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
            if key.replace("IPs", "IP") not in sent.get("spec", {}):
                answer["spec"].pop(key, None)
        for port in answer["spec"].get("ports") or []:
            port.pop("nodePort", None)
    if kind == "Node":
        answer["spec"].pop("taints", None)
    if kind in ("PersistentVolumeClaim", "PersistentVolume", "VolumeAttributesClass"):
        meta.pop("finalizers", None)
    if kind == "CertificateSigningRequest":
        for key in ("username", "groups", "uid", "extra"):
            answer["spec"].pop(key, None)
    if kind == "IPAddress":
        meta.pop("labels", None)
    text = json.dumps(answer)
    return json.loads(text.replace(born, BORN) if born else text)


def causes(status):
    """Type, field and message of each; upstream reports some twice."""
    out = []
    for c in status.get("details", {}).get("causes", []):
        one = [c.get("reason"), c.get("field"), UUID.sub(UID, c.get("message"))]
        if one not in out:
            out.append(one)
    return out


def outcome(code, answer, ns, sent):
    if code < 300:
        return {"want": clean(answer, ns, sent)}
    if code == 422:
        return {"causes": causes(blank(answer, ns))}
    raise AssertionError(f"{code} {answer.get('message')}")


def emit(out, **line):
    out.write(json.dumps({k: v for k, v in line.items() if v is not None}, ensure_ascii=False) + "\n")


def warnings(headers):
    return [w.split('"', 1)[1].rsplit('"', 1)[0].replace('\\"', '"') for w in headers.get_all("warning") or []]


def record_create(server, ns, name, obj, out):
    code, headers, answer = server.call("POST", server.path(obj, ns), obj, query={"dryRun": "All"})
    try:
        emit(out, name=name, object=blank(obj, ns), **outcome(code, answer, ns, obj), warnings=warnings(headers) or None)
    except AssertionError as e:
        print(f"{name}: {e}", file=sys.stderr)


def remove(server, path):
    server.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    for _ in range(100):
        code, _, got = server.call("GET", path)
        if code == 404:
            return
        if got["metadata"].get("finalizers"):
            server.call("PATCH", path, {"metadata": {"finalizers": None}},
                        content_type="application/merge-patch+json")
        time.sleep(0.05)


def create(server, ns, name, obj):
    path = server.path(obj, ns)
    code, _, made = server.call("POST", path, obj)
    if code >= 300:
        raise AssertionError(f"{name}: cannot create: {made.get('message')}")
    return path + "/" + made["metadata"]["name"], made


def set_status(server, ns, name, path, status):
    for _ in range(20):  # controllers write too
        made = server.call("GET", path)[2]
        code, _, answer = server.call("PUT", path + "/status", dict(made, status=status))
        if code != 409:
            break
        time.sleep(0.1)
    if code >= 300:
        raise AssertionError(f"{name}: cannot set the first status: {answer.get('message')}")


def record_update(server, ns, name, obj, changes, out):
    path, made = create(server, ns, name, obj)
    sub = changes.pop("$sub", None)
    status = changes.pop("$status", None)
    if status:
        set_status(server, ns, name, path, status)
    for _ in range(5):  # controllers write too
        _, _, made = server.call("GET", path)
        wanted = change(made, changes)
        target = path + ("/" + sub if sub else "")
        code, _, answer = server.call("PUT", target, wanted, query={"dryRun": "All"})
        if code != 409:
            break
    try:
        emit(out, name=name, sub=sub, old=clean(made, ns, made), object=clean(wanted, ns, made),
             **outcome(code, answer, ns, made))
    except AssertionError as e:
        print(f"{name}: {e}", file=sys.stderr)
    remove(server, path)


def record_row(server, ns, name, obj, status, out):
    path, made = create(server, ns, name, obj)
    if status:
        for _ in range(5):
            _, _, made = server.call("GET", path)
            made.update({"status": status} if "status" in made or "$" not in status else {})
            code, _, answer = server.call("PUT", path + "/status", made)
            if code != 409:
                break
        if code >= 300:
            print(f"{name}: status: {answer.get('message')}", file=sys.stderr)
    code, headers, table = server.call("GET", path, accept=TABLE, query={"includeObject": "Object"})
    now = int(email.utils.parsedate_to_datetime(headers["date"]).timestamp())
    row = table["rows"][0]
    cells = json.loads(json.dumps(row["cells"]).replace(made["metadata"]["uid"], UID))
    emit(out, name=name, row=blank(row["object"], ns), cells=cells, now=now,
         columns=[[c["name"], c["type"], c["format"], c["priority"]] for c in table["columnDefinitions"]],
         conditions=row.get("conditions"))
    remove(server, path)


def record_kind(server, ns, key, kind, out, only):
    base = expand(kind["base"], ns)

    def wanted(name):
        return not only or any(o in name for o in only)

    if wanted(key):
        record_create(server, ns, key, base, out)
    for name, changes in (kind.get("create") or {}).items():
        if wanted(f"{key}: {name}"):
            record_create(server, ns, f"{key}: {name}", change(base, expand(changes, ns)), out)
    for name, changes in (kind.get("update") or {}).items():
        if wanted(f"{key}: update: {name}"):
            first = expand(changes, ns).pop("$from", None)
            changes = {k: v for k, v in expand(changes, ns).items() if k != "$from"}
            record_update(server, ns, f"{key}: update: {name}", change(base, first), changes, out)
    for name, row in (kind.get("rows") or {}).items():
        if wanted(f"{key}: row: {name}"):
            row = expand(row or {}, ns)
            record_row(server, ns, f"{key}: row: {name}", change(base, row.get("set")), row.get("status"), out)


def main():
    server = Server(sys.argv[1])
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "kinds_cases.yaml"), encoding="utf-8") as f:
        kinds = yaml.safe_load(f)
    ns = "record-" + uuid.uuid4().hex[:8]
    server.api.post("/api/v1/namespaces", {"metadata": {"name": ns}})
    for _ in range(100):
        if server.call("GET", f"/api/v1/namespaces/{ns}/serviceaccounts/default")[0] == 200:
            break
        time.sleep(0.05)
    try:
        for key, kind in kinds.items():
            record_kind(server, ns, key, kind, sys.stdout, sys.argv[2:])
    finally:
        server.api.delete("/api/v1/namespaces/" + ns)


if __name__ == "__main__":
    main()
