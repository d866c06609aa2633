# SPDX-License-Identifier: Apache-2.0
"""What a client printed against two servers, compared step by step.

A difference passes where a row of accepted.yaml explains it; a row that explains nothing any more is a failure.
It must never leave out what a server decides: only names, times and addresses that no two servers share.
"""
import json
import os
import re

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))

# What no two runs share -> how it reads.
VOLATILE = [(re.compile(pattern), to) for pattern, to in (
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", "TIME"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "ADDRESS"),
    (r"""((?:resourceVersion|resource_version)\\*["']:\s*\\*["'])\d+""", r"\1N"),
    (r"(resource version: )\d+ \(\d+\)", r"\1N"),
    (r"(the ResourceVersion in record \()\d+", r"\1N"),
)]


def normalised(text):
    try:
        text = json.dumps(ordered(json.loads(text)), sort_keys=True)
    except ValueError:  # the words of an unexpected exception
        pass
    for pattern, to in VOLATILE:
        text = pattern.sub(to, text)
    return text


def ordered(value):
    """Servers sort managed fields by their second first, in which two runs differ; here the manager decides."""
    if isinstance(value, list):
        return [ordered(x) for x in value]
    if not isinstance(value, dict):
        return value
    return {k: sorted(v, key=manager) if k == "managedFields" and isinstance(v, list) else ordered(v) for k, v in value.items()}


def manager(entry):
    return entry["manager"], entry["operation"], entry.get("subresource", ""), entry["apiVersion"]


def steps(output):
    """{step: what was seen} of a client's output, in its order; the last line says how many there are."""
    lines = [line for line in output.splitlines() if line.strip()]
    assert lines and lines[-1].startswith("end: "), f"the client did not reach its end:\n{output[-2000:]}"
    found = dict(line.split(": ", 1) for line in lines[:-1])
    assert f"end: {len(found)} steps" == lines[-1], f"{len(found)} steps, and {lines[-1]}"
    return {name: normalised(seen) for name, seen in found.items()}


def differences(real, ours):
    """[(step, "real | ours")], of steps that were not seen alike; shortened to where they part."""
    assert list(real) == list(ours), f"other steps: {sorted(set(real) ^ set(ours))}"
    return [(name, f"{apart(real[name], ours[name])} | {apart(ours[name], real[name])}")
            for name in real if real[name] != ours[name]]


def apart(text, other, around=60):
    """The part of a string between what it has in common with the other at both ends, and a little of that."""
    first = len(os.path.commonprefix([text, other]))
    last = len(os.path.commonprefix([text[first:][::-1], other[first:][::-1]]))
    return text[max(0, first - around):len(text) - last + min(last, around)]


class Accepted:
    """The rows for one client."""

    def __init__(self, client):
        with open(os.path.join(HERE, "accepted.yaml"), encoding="utf-8") as f:
            rows = yaml.safe_load(f) or []
        assert all(set(r) == {"why", "clients", "match"} for r in rows), "a row has why, clients and match"
        self.rows = [(r["why"], re.compile(r["match"], re.S)) for r in rows if client in r["clients"]]
        self.used = set()

    def explains(self, step, difference):
        """Whether a row has this difference: its pattern is found in "STEP: REAL | OURS"."""
        found = {why for why, pattern in self.rows if pattern.search(f"{step}: {difference}")}
        self.used |= found
        return bool(found)

    def unused(self):
        return [f"no longer needed: {why}" for why, _ in self.rows if why not in self.used]


def verdict(client, real, ours):
    """The findings of one client: [] when both servers looked the same to it."""
    findings = [f"{name}, on kube-apiserver: {seen}" for name, seen in real.items() if "UNEXPECTED" in seen]
    accepted = Accepted(client)
    findings += [f"{name}:\n  real | ours: {d}" for name, d in differences(real, ours) if not accepted.explains(name, d)]
    return findings + accepted.unused()
