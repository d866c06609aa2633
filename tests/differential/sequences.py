# SPDX-License-Identifier: Apache-2.0
"""Sequences drawn from a seed: requests that meet on one or two names, sent to both servers in the same order.

Every answer is compared, and at the end what a watcher saw from the beginning and the list. sequences.yaml holds the
kinds: whole objects, and the members that are changed with what they are changed to. Uids and revisions are given by
the order in which a server first showed them, so that a write that changed nothing must be none on both.

What depends on the clock is not drawn: grace periods are either none or minutes long. A sequence that differs is named
by its seed; its first difference alone counts, later ones may follow from it. It must never draw from anything but the
seed, nor leave anything behind that a controller would have to clean up.
"""
import concurrent.futures
import copy
import json
import os
import random
import re
import secrets

import yaml

from testenv.wait import eventually

from .compare import UUID, _walk, plain, plain_message, said_more
from .protocol import LONG, PATCHES, token
from .suite import Difference

HERE = os.path.dirname(os.path.abspath(__file__))
GONE = "(gone)"  # in the place of a value: the member is taken away
WATCH_SECONDS = 180
WHOLE = re.compile(r'Invalid value: "\{.*?\}": ', re.S)  # in an order of its own
ETCD_KEY = re.compile(r"StorageError: .*?AdditionalErrorMsg: ")
LABELS = {"metadata": {"labels": {"x": "1"}}}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}
METADATA = [
    ["metadata.labels.x", ["1", "2", GONE, "bad value!"]], ["metadata.annotations", [GONE, {}, {"n": "1"}, {"n": "2"}]],
    ["metadata.finalizers", [["a.b/c"], ["a.b/c", "d.e/f"], ["foregroundDeletion"], ["orphan", "a.b/c"], [], GONE]],
    ["metadata.ownerReferences", [[OWNER], [{**OWNER, "controller": True}], GONE, []]],
    ["metadata.generation", [1, 7, GONE]], ["metadata.managedFields", [[{}], GONE]],
    ["metadata.resourceVersion", ["<rv>", "<stale>", GONE]], ["metadata.uid", ["wrong", "<uid>", GONE]],
    ["metadata.name", ["other"]], ["metadata.namespace", ["other"]], ["kind", ["Other"]]]
DELETE_OPTIONS = [
    None, None, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background"},
    {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 900}, {"gracePeriodSeconds": 300}, {"preconditions": {"uid": "wrong"}},
    {"preconditions": {"uid": "<uid>", "resourceVersion": "<rv>"}}, {"preconditions": {"resourceVersion": "<stale>"}},
    {"dryRun": ["All"]}, {"orphanDependents": False}]


def load():
    """({name: kind}, [CustomResourceDefinition])"""
    with open(os.path.join(HERE, "sequences.yaml"), encoding="utf-8") as f:
        held = yaml.safe_load(f)
    return held["kinds"], held["definitions"]


# ---- drawing ----

def put_in(obj, path, value):
    keys = path.split(".")
    for key, following in zip(keys, keys[1:]):
        if isinstance(obj, list):
            if int(key) >= len(obj):
                return
            obj = obj[int(key)]
            continue
        if not isinstance(obj.get(key), (dict, list)):
            if value == GONE or following.isdigit():
                return
            obj[key] = {}
        obj = obj[key]
    if isinstance(obj, dict) and value == GONE:
        obj.pop(keys[-1], None)
    elif isinstance(obj, dict):
        obj[keys[-1]] = copy.deepcopy(value)


class Drawer:
    """Drawer(kind, seed).sequence() -> steps: dicts of op, name, sub, query, body or changes."""

    def __init__(self, kind, seed):
        self.kind, self.random = kind, random.Random(f"{kind['plural']}/{seed}")

    def sequence(self):
        names = self.random.choice((["a"], ["a", "b"]))
        steps = [self._step(names, 0)] + [self._step(names, 1) for _ in range(self.random.randint(8, 14))]
        return steps

    def _changes(self, sub):
        out = []
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            pool = self.kind["status"] if sub else self.kind["fields"]
            path, values = self.random.choice(pool if self.random.random() < .65 else METADATA)
            if path == "kind" and self.kind.get("custom"):
                continue  # the message for a kind that does not match differs with the way it is written
            out.append([path, self.random.choice(values)])
        return out

    def _query(self):
        pick = self.random.random()
        return "dryRun=All" if pick < .1 else "fieldManager=" + self.random.choice("mn") if pick < .3 else ""

    def _nested(self, changes):
        body = {}
        for path, value in changes:
            if not any(k.isdigit() for k in path.split(".")):
                put_in(body, path, None if value == GONE else value)
        return body

    def _operations(self, changes):
        out = []
        for path, value in changes:
            where = "/" + path.replace(".", "/")
            out.append({"op": "remove", "path": where} if value == GONE else
                       {"op": self.random.choice(("add", "add", "replace", "test")), "path": where, "value": value})
        check = self.random.choice((None, None, None, "uid", "rv", "stale"))
        if check:
            where = "/metadata/" + ("uid" if check == "uid" else "resourceVersion")
            out.insert(0, {"op": "test", "path": where, "value": f"<{check}>"})
        return out

    def _whole(self, sub, apply):
        body = {} if sub else copy.deepcopy(self.random.choice(self.kind["bodies"]))
        for path, value in self._changes(sub):
            if not apply or path not in ("metadata.managedFields", "metadata.generation", "metadata.resourceVersion"):
                put_in(body, path, value)
        return body

    def _step(self, names, later):
        pick = self.random.random() if later else 0
        sub = "status" if later and self.kind.get("status") and self.random.random() < .25 else ""
        step = {"name": self.random.choice(names), "sub": sub, "query": self._query()}
        if pick < .2:
            step.update(op="POST", sub="", body=self._whole("", False))
            put_in(step["body"], "metadata.resourceVersion", GONE)
        elif pick < .42:
            step.update(op="PUT", changes=self._changes(sub), otherwise=self.random.choice(self.kind["bodies"]))
        elif pick < .54:
            kinds = ("MERGE",) if self.kind.get("custom") else ("MERGE", "STRATEGIC")
            step.update(op=self.random.choice(kinds), body=self._nested(self._changes(sub)))
        elif pick < .62:
            step.update(op="JSON", body=self._operations(self._changes(sub)))
        elif pick < .76:
            force = self.random.choice(("", "&force=true"))
            step.update(op="APPLY", query=f"fieldManager={self.random.choice('pq')}{force}", body=self._whole(sub, True))
        elif pick < .88:
            step.update(op="DELETE", sub="", query="", body=self.random.choice(DELETE_OPTIONS))
        elif pick < .91 and self.kind.get("namespaced", True):
            step.update(op="DELETE", name="", sub="", body=None, query=self.random.choice(("", "labelSelector=x", "labelSelector=x%3D1")))
        elif pick < .97:
            step.update(op="MERGE", sub="", body={"metadata": {"finalizers": self.random.choice((None, [], ["a.b/c"]))}})
        else:
            step.update(op="GET", query="", body=None)
        return step


# ---- playing ----

class Side:
    """One server in one sequence."""

    def __init__(self, api, kind, tag):
        self.api, self.kind, self.tag = api.clone(), kind, tag
        self.api.headers["User-Agent"] = "sequence/1"
        self.namespace = "sequence-" + tag
        self.uids, self.revisions, self.known = {}, {}, {}
        self.api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.api.raw("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        scope = f"/namespaces/{self.namespace}" if kind.get("namespaced", True) else ""
        self.path = f"{kind['base']}{scope}/{kind['plural']}"
        self.start = json.loads(self.api.raw("GET", self.path + "?limit=1")[2])["metadata"]["resourceVersion"]
        self.watchers = [self._watch("")]

    def _watch(self, query):
        watcher = self.api.clone()
        watcher.timeout = WATCH_SECONDS
        path = f"{self.path}?watch=1&timeoutSeconds={WATCH_SECONDS}&resourceVersion={self.start}{query}"
        return watcher, watcher.open("GET", path)

    def name(self, name):
        return name if self.kind.get("namespaced", True) else f"{self.tag}-{name}"

    def ask(self, step):
        name = self.name(step["name"]) if step["name"] else ""
        path = "/".join(filter(None, [self.path, name, step["sub"]]))
        body = step.get("body")
        if step["op"] == "POST":
            path = self.path
        if step["op"] == "PUT":
            code, _, data = self.api.raw("GET", path)
            body = json.loads(data) if code == 200 else copy.deepcopy(step["otherwise"])
            self._learn(body)
        if step["op"] in ("POST", "PUT", "APPLY"):
            body = {"apiVersion": self.kind["version"], "kind": self.kind["kind"], **body,
                    "metadata": {"name": name, **body.get("metadata", {})}}
        for change in step.get("changes", ()):
            put_in(body, *change)
        data = None if body is None else self._fill(json.dumps(body, separators=(",", ":")), name).encode()
        content = "application/" + PATCHES.get(step["op"], "json") if data is not None else None
        code, headers, data = self.api.raw("PATCH" if step["op"] in PATCHES else step["op"],
                                           path + ("?" + step["query"] if step["query"] else ""), data, content)
        value = json.loads(data)
        if code < 300 and "dryRun" not in f"{step['query']}{body}":
            self._learn(value)
        return {"code": code, "warnings": sorted(plain(w) for w in headers.get_all("warning") or []), "body": self.clean(value)}

    def _fill(self, text, name):
        known = self.known.get(name, {})
        for word, otherwise in (("uid", "00000000-0000-4000-8000-000000000000"), ("rv", "7"), ("stale", "7")):
            text = text.replace(f"<{word}>", known.get(word) or otherwise)
        return text.replace("<ns>", self.namespace)

    def _learn(self, value):
        meta = value.get("metadata", {})
        if value.get("kind") != self.kind["kind"] or not meta.get("uid") or not meta.get("resourceVersion"):
            return
        known = self.known.setdefault(meta["name"], {})
        if known.get("rv") != meta["resourceVersion"]:
            known["stale"] = known.get("rv")
        known.update(uid=meta["uid"], rv=meta["resourceVersion"])

    def clean(self, value):
        return self._blot(json.loads(ETCD_KEY.sub("", plain(json.dumps(self._numbered(value))))))

    def _numbered(self, node, above=""):
        """Uids and revisions of objects by the order in which they came."""
        if isinstance(node, list):
            return [self._numbered(n) for n in node]
        if not isinstance(node, dict):
            return node
        out = {}
        for key, value in node.items():
            if key == "uid" and isinstance(value, str) and UUID.fullmatch(value):
                value = self.uids.setdefault(value, f"U-{len(self.uids)}")
            elif key == "resourceVersion" and above == "metadata" and value:
                value = self.revisions.setdefault(value, f"R-{len(self.revisions)}") if "name" in node else "of a list"
            out[key] = self._numbered(value, key)
        return out

    def _blot(self, node):
        if isinstance(node, list):
            return [self._blot(n) for n in node]
        if not isinstance(node, dict):
            return node
        node = {k: self._blot(v) for k, v in node.items()}
        if isinstance(node.get("managedFields"), list):
            node["managedFields"].sort(key=lambda e: json.dumps(e, sort_keys=True))
        if isinstance(node.get("continue"), str):
            node["continue"] = token(node["continue"])
        if isinstance(node.get("message"), str) and ("reason" in node or node.get("kind") == "Status"):
            node["message"] = LONG.sub("N", plain_message(WHOLE.sub("Invalid value: {}: ", node["message"])))
        if isinstance(node.get("causes"), list):
            unique = {json.dumps(c, sort_keys=True): c for c in node["causes"]}
            node["causes"] = [unique[k] for k in sorted(unique)]
        if node.get("reason") == "Invalid" and "message" in node:
            node["message"] = node["message"].split(" is invalid: ")[0]
        return node

    def end(self):
        """[(what, the list or the events)]; watchers stop at the last write."""
        out = [("list", self._mine(json.loads(self.api.raw("GET", self.path)[2])["items"]))]
        last = self.name("z")
        body = {"apiVersion": self.kind["version"], "kind": self.kind["kind"], **copy.deepcopy(self.kind["bodies"][0])}
        body["metadata"] = {"name": last, **LABELS["metadata"]}
        code, _, data = self.api.raw("POST", self.path, self._fill(json.dumps(body), last).encode(), "application/json")
        assert code == 201, data
        self.watchers += [self._watch(""), self._watch("&labelSelector=x%3D1")]
        for what, (watcher, response) in zip(("watched", "watched again", "selected"), self.watchers):
            out.append((what, self._events(response, last)))
            watcher.close()
        return [(what, self.clean(value)) for what, value in out]

    def _mine(self, items):
        return [i for i in items if self.kind.get("namespaced", True) or i["metadata"]["name"].startswith(self.tag)]

    def _events(self, response, last):
        out = []
        for line in response:
            event = json.loads(line) if line.strip() else None
            if event and event["object"].get("metadata", {}).get("name") == last:
                return out
            if event and self._mine([event["object"]]):
                out.append(event)
        return out + ["the watch ended"]

    def close(self):
        for watcher, _ in self.watchers:
            watcher.close()
        for name in () if self.kind.get("namespaced", True) else ("a", "b", "z"):
            path = f"{self.path}/{self.name(name)}"
            self.api.raw("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            self.api.raw("DELETE", path, {"propagationPolicy": "Background"})
        self.api.raw("DELETE", "/api/v1/namespaces/" + self.namespace)
        self.api.close()


def play(pair, name, kind, seed):
    """([Difference], number of answers compared): those of the first step that differs."""
    tag = "t" + secrets.token_hex(4)  # what an earlier run left is another one
    sides = [Side(api, kind, "t" + tag) for api in pair]
    steps = Drawer(kind, seed).sequence()
    try:
        for i, step in enumerate(steps):
            here, there = [s.ask(step) for s in sides]
            if step["op"] not in ("GET", "DELETE") and not step["sub"]:
                here["warnings"] = said_more(here["warnings"], kind["kind"], here["code"] < 300)
            found = told(name, seed, f"{step['sub'] or 'sequence'} {i} {json.dumps(step)}", here, there)
            if found:
                return found, i + 1
        for (what, here), (_, there) in zip(*[s.end() for s in sides]):
            found = told(name, seed, f"sequence {what}", here, there)
            if found:
                return found, len(steps) + 4
        return [], len(steps) + 4
    finally:
        for s in sides:
            s.close()


def told(name, seed, case, here, there):
    return [Difference(name.split("/")[0], f"{case} seed {seed}", what, a, b, []) for what, a, b in _walk(here, there, "")]


def prepare(api, definitions):
    """The custom resources of the sequences, served."""
    for crd in definitions:
        api.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        path = f"/apis/{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}/{crd['spec']['names']['plural']}"
        eventually(lambda p=path: api.raw("GET", p)[0] == 200, 120, path)


def run(here, there, seeds=range(2), kinds=None, threads=3):
    """([Difference], number of answers compared)."""
    known, definitions = load()
    for api in (here, there):
        prepare(api, definitions)
    work = [(name, kind, seed) for name, kind in known.items() if not kinds or name in kinds for seed in seeds]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(lambda w: play((here, there), *w), work))
    return [d for found, _ in done for d in found], sum(n for _, n in done)
