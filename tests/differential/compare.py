# SPDX-License-Identifier: Apache-2.0
"""What of two answers must be equal: the code, the whole body less what no two servers share, the warnings.

A difference is (what, here, there): here is Sublet, there the real server.
"""
import json
import re

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOW = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CUT_SHORT = re.compile(r'((?:Invalid|Unsupported|Duplicate) value: )[\[{].+(: [^"{}\[\]]*)$', re.S)
MADE_UP = re.compile(r"(kube-api-access-)[a-z0-9]{5}")
SENT_TIMES = ("2026-01-02", "2020-01-01")


def _times(match):
    return match[0] if match[0].startswith(SENT_TIMES) else "NOW"


# What upstream shows of an object that is wrong has the names of its own Go types.
SHOWN = re.compile(r'((?:Invalid|Unsupported|Duplicate) value: )(\{.*?\}|\[.*?\]|null)(: |$|, )', re.S)


def plain(text):
    """Without uids, times of today and names drawn at random."""
    return MADE_UP.sub(r"\1XXXXX", NOW.sub(_times, UUID.sub("UID", text)))


def plain_message(text):
    """A cause without objects, which may be cut short, and without the diff of Go structures upstream adds."""
    return CUT_SHORT.sub(r"\1{}\2", SHOWN.sub(r"\1{}\3", (text or "").split("\n")[0]))


def clean(obj, sent):
    """An object without what no two servers share. sent: what the client sent."""
    obj = json.loads(plain(json.dumps(obj)))
    meta = obj.get("metadata", {})
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        meta.pop(key, None)
    if meta.get("generateName") and not sent.get("metadata", {}).get("name"):
        meta["name"] = meta["generateName"] + "*"
    if obj.get("kind") == "CertificateSigningRequest":  # the requesting user differs between the servers
        for key in ("username", "groups", "uid", "extra"):
            obj.get("spec", {}).pop(key, None)
    if obj.get("kind") == "Service":
        _clean_service(obj.get("spec", {}), sent.get("spec") or {})
    return obj


def _clean_service(spec, sent):
    if "clusterIP" not in sent and spec.get("clusterIP") not in (None, "", "None"):
        spec["clusterIP"], spec["clusterIPs"] = "IP", ["IP"]
    asked = [p.get("nodePort") for p in sent.get("ports") or []]
    for port in spec.get("ports") or []:
        if port.get("nodePort") and port["nodePort"] not in asked:
            port["nodePort"] = "PORT"
    if spec.get("healthCheckNodePort") and "healthCheckNodePort" not in sent:
        spec["healthCheckNodePort"] = "PORT"


class Answer:
    """One server's answer, as far as it is compared."""

    def __init__(self, code, headers, data, sent):
        self.code = code
        self.warnings = sorted(plain(w) for w in headers.get_all("warning") or [])
        try:
            self.body = json.loads(data)
        except ValueError:
            self.body = {"text": data.decode("utf-8", "replace")}
        if code < 300:
            self.body = clean(self.body, sent)
        else:
            self.body = json.loads(self._without_name(plain(json.dumps(self.body)), sent))

    @staticmethod
    def _without_name(text, sent):
        """A name the server makes up; upstream's admission runs before there is one."""
        prefix = sent.get("metadata", {}).get("generateName")
        if not isinstance(prefix, str) or not prefix or sent["metadata"].get("name"):
            return text
        shown = re.escape(json.dumps(prefix[:58])[1:-1])  # a longer one is cut
        shown += "(?:" + re.escape(json.dumps(prefix[58:])[1:-1]) + ")?"
        return re.sub(rf'"{shown}(?:[a-z0-9]{{5}})?(\\?")', r'"NAME\1', re.sub(
            rf'\\"{shown}(?:[a-z0-9]{{5}})?\\"', r'\\"NAME\\"', text))

    def causes(self):
        """Each once: upstream checks some fields twice and then reports both."""
        found = (self.body.get("details") or {}).pop("causes", None) or []
        return list(dict.fromkeys((c.get("reason"), c.get("field"), plain_message(c.get("message")))
                                  for c in found))


NO_EFFECT = {  # what Sublet says beside upstream's own warnings, of every write that succeeds
    "NetworkPolicy": "NetworkPolicy has no effect yet: the traffic of pods is not restricted by it",
    "ServiceCIDR": "ServiceCIDR has no effect yet: cluster IPs are the host's",
}


def said_more(warnings, kind, must):
    """The warnings of a write less those expected of Sublet alone; one that must be there and is not stands in the list."""
    def text(w):
        return w.split('"', 1)[1].rsplit('"', 1)[0] if '"' in w else w

    if kind not in NO_EFFECT:
        return warnings
    others = [w for w in warnings if text(w) != NO_EFFECT[kind]]
    return others if len(others) < len(warnings) or not must else [*others, f"missing: {NO_EFFECT[kind]}"]


def differences(here, there):
    """[(what, here, there)]"""
    if here.code != there.code:
        return [("code", _brief(here), _brief(there))]
    out = []
    if here.warnings != there.warnings:
        out.append(("warnings", here.warnings, there.warnings))
    mine, theirs = here.causes(), there.causes()
    if mine or theirs:  # their order is that of Go's maps at times
        both = set(mine) & set(theirs)
        if len(both) < max(len(mine), len(theirs)):
            out.append(("causes", [c for c in mine if c not in both], [c for c in theirs if c not in both]))
        for answer in (here, there):
            answer.body["message"] = answer.body.get("message", "").split(" is invalid: ")[0]
    return out + list(_walk(here.body, there.body, ""))


def _brief(answer):
    return f"{answer.code} {answer.body.get('message', '')}"


def _walk(here, there, path):
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(set(here) | set(there)):
            yield from _walk(here.get(key, "-"), there.get(key, "-"), f"{path}.{key}" if path else key)
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for i, (a, b) in enumerate(zip(here, there)):
            yield from _walk(a, b, f"{path}[{i}]")
    elif here != there or type(here) is not type(there):  # 1 is not 1.0, nor true
        yield path, here, there
