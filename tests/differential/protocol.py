# SPDX-License-Identifier: Apache-2.0
"""Conversations: sequences of requests sent to both servers in the same order, every answer compared.

protocol.yaml holds them. A step is [METHOD, path, body, headers, more]. MERGE, JSON, STRATEGIC and APPLY are PATCH with
that content type. A path that begins with "ns/" is in a namespace of the conversation's own. A body that is a string is
sent as it is, one that begins with "base64:" decoded. more: {save: {name: member.of.answer}} puts the value where
<name> stands in later steps; {until: 200} repeats the request until that is the code; {quiet: true} is not compared.

What no two servers share is blotted out: uids, dates, revisions, numbers in messages. The order of items is not. In a
conversation with `ordered: maps` the order of keys in string maps is compared, too, with `ordered: custom` also those of
spec and status of custom resources: clients hash the bytes.
"""
import base64
import concurrent.futures
import gzip
import json
import os
import re
import secrets
import time

import yaml

from .compare import _walk, plain
from .suite import Difference

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARED = ("content-type", "warning", "allow", "retry-after", "content-encoding", "location", "vary", "cache-control",
            "x-content-type-options")
LONG = re.compile(r"\b\d{2,}\b")
AGE = re.compile(r"(\d+[smhdy])+")
SAVED = re.compile(r"<(\w+)>")
PATCHES = {"MERGE": "merge-patch+json", "JSON": "json-patch+json", "STRATEGIC": "strategic-merge-patch+json",
           "APPLY": "apply-patch+yaml"}
ONE_SECOND = "timeoutSeconds=1"
MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "requests", "limits", "hard")
ORDERED = {"maps": MAPS, "custom": MAPS + ("spec", "status")}
PATIENCE = 180  # seconds, with an answer that is waited for
AGENT = {"User-Agent": "conversation/1"}


def load():
    """[{name, do, ...}]"""
    with open(os.path.join(HERE, "protocol.yaml"), encoding="utf-8") as f:
        return yaml.safe_load(f)


class Side:
    """One server in one conversation."""

    def __init__(self, api, namespace):
        self.api = api.clone()
        self.api.headers.update(AGENT)
        self.names = {"ns": namespace}
        self.api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": self.names["ns"]}})

    def fill(self, text):
        return SAVED.sub(lambda m: str(self.names.get(m[1], m[0])), text)

    def path(self, path):
        if path.startswith("ns/"):
            return f"/api/v1/namespaces/{self.names['ns']}/{path[3:]}"
        return path

    def ask(self, step):
        method, path, body, headers, more = (list(step) + [None] * 4)[:5]
        data, sent = None, dict(headers or {})
        if body is not None:
            data = self.fill(body if isinstance(body, str) else json.dumps(body)).encode()
            if data.startswith(b"base64:"):
                data = base64.b64decode(data[7:])
            sent.setdefault("Content-Type", "application/" + PATCHES.get(method, "json"))
        path = self.fill(self.path(path))
        try:
            code, answered, data = self._raw("PATCH" if method in PATCHES else method, path, data, sent, more or {})
        except OSError as e:
            return {"code": type(e).__name__}
        answer = {"code": code, "body": read(answered, data)}
        for name, where in ((more or {}).get("save") or {}).items():
            self.names[name] = take(answer["body"], where)
        out = {h: sorted(answered.get_all(h)) for h in COMPARED if answered.get_all(h)}
        return {"code": code, "headers": blot(out), "body": clean(answer["body"])}

    def _raw(self, method, path, data, headers, more):
        """{until: 200} in a step: repeated until that is the answer."""
        last = time.monotonic() + PATIENCE
        while True:
            answer = self.api.raw(method, path, data, headers=headers)
            if answer[0] == more.get("until", answer[0]) or time.monotonic() > last:
                return answer
            time.sleep(0.1)

    def close(self):
        self.api.raw("DELETE", "/api/v1/namespaces/" + self.names["ns"])
        self.api.close()


def read(headers, data):
    kind = headers.get("content-type") or ""
    if headers.get("content-encoding") == "gzip":
        data = gzip.decompress(data)
    if "protobuf" in kind:
        return {"protobuf": len(data) > 0}
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return yaml.safe_load(text) if "yaml" in kind else text


def take(value, where):
    for key in where.split("."):
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


def blot(value):
    return json.loads(plain(json.dumps(value)))


def token(text):
    """A continue token without its revision."""
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return {**value, "rv": value["rv"] > 0}
    except (ValueError, KeyError):
        return text


def clean(value):
    value = blot(value)

    def walk(node):
        if isinstance(node, list):
            return [walk(n) for n in node]
        if not isinstance(node, dict):
            return node
        out = {k: walk(v) for k, v in node.items()}
        if isinstance(out.get("resourceVersion"), str):
            out["resourceVersion"] = bool(out["resourceVersion"])
        if isinstance(out.get("continue"), str):
            out["continue"] = token(out["continue"])
        if isinstance(out.get("message"), str) and ("status" in out or "reason" in out):
            out["message"] = LONG.sub("N", out["message"])
        if isinstance(out.get("managedFields"), list):  # their order is that of seconds
            out["managedFields"].sort(key=lambda e: json.dumps(e, sort_keys=True))
        if isinstance(out.get("cells"), list):
            out["cells"] = ["AGE" if isinstance(c, str) and AGE.fullmatch(c) else c for c in out["cells"]]
        if isinstance(out.get("causes"), list):  # upstream checks some fields twice and then reports both
            out["causes"] = [c for i, c in enumerate(out["causes"]) if c not in out["causes"][:i]]
        return out
    return walk(value)


def differences(a, b, ordered=()):
    if a["code"] != b["code"]:
        return [("code", f"{a['code']} {a.get('body')}"[:400], f"{b['code']} {b.get('body')}"[:400])]
    return [*_walk(a, b, ""), *_orders(a["body"], b["body"], "", ordered)]


def _orders(here, there, path, maps):
    """Members of these names whose keys are in another order."""
    if isinstance(here, dict) and isinstance(there, dict):
        if path.split(".")[-1] in maps and here.keys() == there.keys() and list(here) != list(there):
            yield f"{path} order", list(here), list(there)
        for key in here.keys() & there.keys():
            yield from _orders(here[key], there[key], f"{path}.{key}", maps)
    elif isinstance(here, list) and isinstance(there, list):
        for i, (a, b) in enumerate(zip(here, there)):
            yield from _orders(a, b, f"{path}[{i}]", maps)


def one(pair, talk):
    namespace = "talk-" + secrets.token_hex(4)  # what an earlier run left is another one
    sides = [Side(api, namespace) for api in pair]
    found = []
    try:
        for i, step in enumerate(talk["do"]):
            a, b = [s.ask(step) for s in sides]
            for seconds in (5, 20) if ONE_SECOND in step[1] else ():
                if a == b:
                    break
                longer = [step[0], step[1].replace(ONE_SECOND, f"timeoutSeconds={seconds}"), *step[2:]]
                a, b = [s.ask(longer) for s in sides]  # one may not have sent all of it yet
            what = f"{i} {step[0]} {step[1]}" + (f" {json.dumps(step[3])}" if len(step) > 3 and step[3] else "")
            quiet = len(step) > 4 and step[4].get("quiet")
            for where, x, y in [] if quiet else differences(a, b, ORDERED.get(talk.get("ordered"), ())):
                if where.split(".")[-1].split("[")[0] not in talk.get("but", ()):
                    found.append(Difference(talk["name"], what, where, x, y, []))
    finally:
        for s in sides:
            s.close()
    return found, len(talk["do"])


def run(here, there, only=None, threads=4):
    """([Difference], number of requests compared)."""
    talks = [t for t in load() if not only or only in t["name"]]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(lambda t: one((here, there), t), [t for t in talks if not t.get("alone")]))
    done += [one((here, there), t) for t in talks if t.get("alone")]
    return [d for found, _ in done for d in found], sum(n for _, n in done)
