# SPDX-License-Identifier: Apache-2.0
"""Every combination of the parameters of lists and watches, sent to both servers.

Revisions are given by name: "now" is the one of a list, "old" that of the first object. Numbers of answers are
blotted out, names and their order are not. The state does not change meanwhile.
"""
import base64
import concurrent.futures
import itertools
import json
import re

from .suite import Difference

COUNT = 5
BASE = "/api/v1/namespaces/{ns}/configmaps"
LABEL = "differential=reads"
REVISIONS = (None, "0", "now", "old", "future", "abc", "-1")
MATCHES = (None, "Exact", "NotOlderThan", "Bad")
LIMITS = (None, "0", "2", "-1", "x")
CONTINUES = (None, "good", "garbage", "foreign", "stale")
SENDS = (None, "true", "false")
FORMS = {"object": None, "partial": "application/json;as=PartialObjectMetadata{List};g=meta.k8s.io;v=v1",
         "table": "application/json;as=Table;g=meta.k8s.io;v=v1"}
NUMBER = re.compile(r"\d+")
FOREIGN = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v2","rv":5,"start":"x"}').decode().rstrip("=")


class Side:
    """One server: its revisions and tokens, and what it answers."""

    def __init__(self, api, namespace):
        self.api, self.path = api, BASE.format(ns=namespace)
        for i in range(COUNT):
            api.raw("DELETE", f"{self.path}/read-{i}")  # of an earlier run: a revision may be gone from history
            api.raw("POST", self.path, {"metadata": {"name": f"read-{i}", "labels": {"differential": "reads"}},
                                        "data": {"n": str(i)}})
        api.raw("PATCH", f"{self.path}/read-3", {"data": {"n": "changed"}}, content_type="application/merge-patch+json")
        got = api.get(self.path, labelSelector=LABEL)
        self.revisions = {"now": got["metadata"]["resourceVersion"], "future": "999999999",
                          "old": min((o["metadata"]["resourceVersion"] for o in got["items"]), key=int)}
        token = api.get(self.path, limit=2)["metadata"]["continue"]
        self.tokens = {"good": token, "garbage": "%%%", "foreign": FOREIGN, "stale": self._stale(token)}

    @staticmethod
    def _stale(token):
        """The same place, without a revision."""
        value = json.loads(base64.urlsafe_b64decode(token + "=="))
        value["rv"] = -1
        return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")

    def query(self, case):
        q = {k: v for k, v in case.items() if v is not None}
        if "resourceVersion" in q:
            q["resourceVersion"] = self.revisions.get(q["resourceVersion"], q["resourceVersion"])
        if "continue" in q:
            q["continue"] = self.tokens[q["continue"]]
        return q

    def list(self, case, form):
        api = self.api.clone()
        accept = FORMS[form] and FORMS[form].replace("{List}", "List")
        try:
            code, headers, data = api.raw("GET", self.path, query=self.query(case), accept=accept)
        finally:
            api.close()
        return summary(code, headers, json.loads(data))

    def watch(self, case, form, seconds=1):
        api = self.api.clone()
        query = {**self.query(case), "watch": "1", "timeoutSeconds": str(seconds)}
        accept = FORMS[form] and FORMS[form].replace("{List}", "")
        try:
            code, headers, data = api.raw("GET", self.path, query=query, accept=accept)
        finally:
            api.close()
        if code != 200:
            return summary(code, headers, json.loads(data))
        events = [json.loads(line) for line in data.splitlines() if line.strip()]
        return {"code": 200, "type": headers["content-type"], "events": [event(e) for e in events if counts(e)]}


def counts(e):
    """The bookmarks of time come when they will."""
    meta = e["object"].get("metadata", {})
    rows = e["object"].get("rows")
    if rows:
        meta = (rows[0].get("object") or {}).get("metadata", {})
    return e["type"] != "BOOKMARK" or meta.get("annotations")


def event(e):
    return [e["type"], shape(e["object"])]


def shape(obj):
    """An object without what no two servers share."""
    if not obj:
        return obj
    if obj.get("kind") == "Status":
        return status(obj)
    if obj.get("kind") == "Table":
        rows = [[r.get("cells", [""])[:2], shape(r.get("object"))] for r in obj["rows"] or []]
        return {"columns": [c["name"] for c in obj.get("columnDefinitions") or []], "rows": rows}
    meta = {k: v for k, v in obj.get("metadata", {}).items() if k != "managedFields"}
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        meta[key] = key in meta and bool(meta[key])
    return {**obj, "metadata": meta}


def status(obj):
    return {k: NUMBER.sub("N", v) if isinstance(v, str) else v for k, v in obj.items() if k != "details"} | {
        "causes": [{k: NUMBER.sub("N", v) for k, v in c.items()}
                   for c in (obj.get("details") or {}).get("causes") or []],
        "retry": (obj.get("details") or {}).get("retryAfterSeconds")}


def summary(code, headers, body):
    out = {"code": code, "type": headers["content-type"], "kind": body.get("kind"), "version": body.get("apiVersion")}
    if code >= 400:
        return out | {"status": status(body)}
    meta = body["metadata"]
    items = body.get("items") or body.get("rows") or []
    return out | {"items": [shape(i) if "metadata" in i else [i["cells"][:2], shape(i.get("object"))] for i in items],
                  "rv": "resourceVersion" in meta, "continue": bool(meta.get("continue")),
                  "rest": meta.get("remainingItemCount")}


def wrongs(rv, match, cont=None):
    """How many errors: of several, servers may report another first."""
    return ((rv in ("abc", "-1")) + (match == "Bad") + (cont in ("garbage", "foreign"))
            + bool(match and not rv) + bool(match and cont) + bool(cont and rv not in (None, "0"))
            + (match == "Exact" and rv == "0"))


def lists():
    for rv, match, limit, cont in itertools.product(REVISIONS, MATCHES, LIMITS, CONTINUES):
        if wrongs(rv, match, cont) + (limit in ("-1", "x")) <= 1 and not (rv == "future" and (limit or cont)):
            yield {"resourceVersion": rv, "resourceVersionMatch": match, "limit": limit, "continue": cont}
    for send in SENDS[1:]:
        yield {"sendInitialEvents": send}
    for selector in ("a in (b", "differential", "!x", "a=b,", "=x", "a==b", "x notin ()"):
        yield {"labelSelector": selector}
    for selector in ("metadata.name=read-1", "metadata.namespace!=x", "spec.x=1", "metadata.name", "a=b=c",
                     "metadata.name=a\\,b"):
        yield {"fieldSelector": selector, "limit": "2"}


def watches():
    for rv, match, send, marks in itertools.product(REVISIONS, MATCHES, SENDS, (None, "true")):
        if (rv in ("abc", "-1")) + bool(match or send) <= 1:
            yield {"resourceVersion": rv, "resourceVersionMatch": match, "sendInitialEvents": send,
                   "allowWatchBookmarks": marks}
    yield {"fieldSelector": "metadata.name=read-1"}
    yield {"labelSelector": "none=such", "sendInitialEvents": "true", "allowWatchBookmarks": "true",
           "resourceVersionMatch": "NotOlderThan"}
    yield {"continue": "good"}
    yield {"limit": "2"}


def cases():
    for case in lists():
        yield "list", case, "object"
    for case in watches():
        yield "watch", case, "object"
    for form in ("partial", "table"):
        for case in ({}, {"limit": "2"}, {"resourceVersion": "0"}, {"includeObject": "None"},
                     {"includeObject": "Object"}, {"includeObject": "Bad"}):
            yield "list", case, form
            yield "watch", {k: v for k, v in case.items() if k != "limit"}, form
        yield "watch", {"sendInitialEvents": "true", "allowWatchBookmarks": "true",
                        "resourceVersionMatch": "NotOlderThan"}, form


def run(here, there, namespace, threads=12):
    """([Difference], number of cases)."""
    sides = [Side(api, namespace) for api in (here, there)]

    def one(verb, case, form):
        got = [getattr(s, verb)(case, form) for s in sides]
        for seconds in (5, 20) if verb == "watch" else ():
            if got[0] == got[1]:
                break
            got = [s.watch(case, form, seconds) for s in sides]  # one may not have sent all of it yet
        return got

    todo, found = list(cases()), []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for (verb, case, form), (a, b) in zip(todo, pool.map(lambda c: one(*c), todo)):
            shown = " ".join(f"{k}={v}" for k, v in case.items() if v is not None)
            for key in sorted(set(a) | set(b)):
                if a.get(key) != b.get(key):
                    found.append(Difference(verb, form, f"{key} ({shown})", a.get(key), b.get(key), []))
                    break
    return found, len(todo)
