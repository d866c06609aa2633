# SPDX-License-Identifier: Apache-2.0
"""Sends both servers the same requests and collects how their answers differ.

Creates and updates are dry runs, so that one case costs little and leaves nothing; updates need one live object
of each seed on both sides. It must only run against clusters made for tests.
"""
import collections
import concurrent.futures
import http.client
import json
import os
import random
import re
import secrets
import zlib

import yaml

from .compare import Answer, differences, said_more
from .mutate import Mutator, change, reaches
from .schema import Shapes

HERE = os.path.dirname(os.path.abspath(__file__))
NAMESPACE = "differential"
RECORDED = os.path.join(os.path.dirname(HERE), "unit", "vapi", "data", "kinds_cases.yaml")
# A new name is another object; a time or a uid is the server's.
SKIP = [("metadata", k) for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation",
                                  "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")]
HAS_STATUS = {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "Service", "Namespace", "Node",
              "PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "ResourceQuota", "PodDisruptionBudget",
              "HorizontalPodAutoscaler", "Ingress", "CertificateSigningRequest", "ValidatingAdmissionPolicy", "FlowSchema",
              "PriorityLevelConfiguration", "APIService", "ResourceClaim", "VolumeAttachment", "ServiceCIDR"}

Difference = collections.namedtuple("Difference", "kind case what here there changes")


def load_seeds():
    with open(os.path.join(HERE, "seeds.yaml"), encoding="utf-8") as f:
        text = f.read()
    with open(RECORDED, encoding="utf-8") as f:
        request = yaml.safe_load(f)["csr"]["base"]["spec"]["request"]
    return [o for o in yaml.safe_load_all(text.replace("{csr}", request)) if o]


class Server:
    """One of the two."""

    def __init__(self, api):
        self.api = api
        api.headers["User-Agent"] = "differential/1"

    def clone(self):
        return Server(self.api.clone())

    def ask(self, method, path, body, sent=None, **query):
        text = json.dumps(body).encode()
        for _ in range(3):
            try:
                code, headers, data = self.api.raw(method, path, text, "application/json", query=query or None)
                return Answer(code, headers, data, sent if sent is not None else body)
            except (OSError, http.client.HTTPException):  # an idle connection may have been closed; nothing is made
                self.api.close()
                if "dryRun" not in query:
                    raise
        return None  # upstream panics at some objects and hangs up

    def get(self, path):
        return self.api.get(path)


class Suite:
    """Suite(here, there).run(creates, updates, seed) -> {difference key: [Difference]}; .compared counts."""

    def __init__(self, here, there, kinds=None, threads=3):
        self.pair = Server(here), Server(there)
        self.shapes = Shapes(there)
        self.seeds = [s for s in load_seeds() if not kinds or s["kind"] in kinds]
        self.threads = threads
        self.resources = {}
        self.compared = 0
        for api_version in {s["apiVersion"] for s in self.seeds}:
            self._discover(there, api_version)

    def _discover(self, api, api_version):
        base = ("/apis/" if "/" in api_version else "/api/") + api_version
        for r in api.get(base)["resources"]:
            if "/" not in r["name"]:
                self.resources[api_version, r["kind"]] = base, r["name"], r["namespaced"]
        for s in self.seeds:  # made before threads share them
            if s["apiVersion"] == api_version:
                self.shapes.root(api_version, s["kind"])

    def collection(self, obj):
        base, plural, namespaced = self.resources[obj["apiVersion"], obj["kind"]]
        if not namespaced:
            return f"{base}/{plural}"
        return f"{base}/namespaces/{obj['metadata'].get('namespace', NAMESPACE)}/{plural}"

    def run(self, creates=40, updates=25, seed=1):
        found = []
        with concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
            jobs = [pool.submit(self._one_seed, i, s, creates, updates, seed) for i, s in enumerate(self.seeds)]
            for job in jobs:
                differences_, n = job.result()
                found += differences_
                self.compared += n
        return found

    def _one_seed(self, number, obj, creates, updates, seed):
        worker = Worker(self, number, obj, random.Random(zlib.crc32(f"{seed}/{number}".encode())))
        try:
            worker.creates(creates)
            worker.updates(updates)
        finally:
            worker.close()
        return worker.found, worker.compared


class Worker:
    """The cases of one seed, in one thread."""

    def __init__(self, suite, number, obj, rand):
        self.obj, self.number = obj, number
        self.pair = [s.clone() for s in suite.pair]
        self.collection = suite.collection(obj)
        self.shape = suite.shapes.root(obj["apiVersion"], obj["kind"])
        self.mutator = Mutator(rand, SKIP)
        self.found, self.compared = [], 0
        self.tag = "t" + secrets.token_hex(3)  # what an earlier run left is another object
        self.live = None

    def _compare(self, case, changes, here, there):
        if there is None:
            return
        assert here, f"no answer to {case} of {self.collection} with {changes}"
        self.compared += 1
        if case != "status":
            here.warnings = said_more(here.warnings, self.obj["kind"], here.code < 300)
        for what, a, b in differences(here, there):
            self.found.append(Difference(self.obj["kind"], case, what, a, b, changes))

    def creates(self, n):
        self._create([])
        for _ in range(n):
            self._create(self.mutator.draw(self.obj, self.shape))

    def _create(self, changes):
        sent = change(self.obj, changes)
        answers = [s.ask("POST", self.collection, sent, dryRun="All") for s in self.pair]
        self._compare("create", changes, *answers)

    def updates(self, n):
        if not self._make_live():
            return
        has_status = self.obj["kind"] in HAS_STATUS
        self._update([], "update", "")
        for _ in range(n):
            self._update(self.mutator.draw(self._of_there(), self.shape), "update", "")
        for _ in range(n // 2 if has_status else 0):
            self._update(self.mutator.draw(self._of_there(), self.shape, ("status",)), "status", "/status")

    def _make_live(self):
        obj = json.loads(json.dumps(self.obj))
        name = obj["metadata"].get("name", obj["metadata"].get("generateName", "") + "0")
        if name.startswith("s") and len(name) < 4:
            name = f"live-{self.number}-{self.tag}"
        obj["metadata"]["name"] = name
        obj["metadata"].pop("finalizers", None)
        obj["metadata"].pop("generateName", None)
        for server in self.pair:
            server.api.close()  # a fresh connection: this is not repeated
        answers = [s.ask("POST", self.collection, obj) for s in self.pair]
        self.live = f"{self.collection}/{name}"
        if any(a.code not in (201, 409) for a in answers):
            if answers[0].code != answers[1].code:
                self._compare("make", [], *answers)
            return False
        return True

    def _of_there(self):
        return self.pair[1].get(self.live)

    def _update(self, changes, case, sub):
        answers = []
        before = [server.get(self.live) for server in self.pair]  # one may have what its controllers put there
        changes = [c for c in changes if all(reaches(obj, c[0]) for obj in before)]
        for server in self.pair:
            for _ in range(4):  # controllers write too
                sent = change(server.get(self.live), changes)
                answer = server.ask("PUT", self.live + sub, sent, self.obj, dryRun="All")
                if not answer or answer.code != 409:
                    break
            answers.append(answer)
        self._compare(case, changes, *answers)

    def close(self):
        for server in self.pair:
            server.api.close()
            if self.live:
                server.api.raw("PATCH", self.live, {"metadata": {"finalizers": None}},
                               content_type="application/merge-patch+json")
                server.api.raw("DELETE", self.live, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
            server.api.close()


def signature(d):
    """What two differences of one cause have in common."""
    def general(value):
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        return re.sub(r"\[\d+\]", "[]", re.sub(r"-?\d+", "N", text))[:300]
    place = re.sub(r"\[\d+\]", "[]", d.what)
    return f"{d.kind} {d.case} {place}: {general(d.here)} | {general(d.there)}"


LIST = "accepted.yaml"


def accepted(name=LIST, chance=True):
    """[(pattern, reason)]: a reviewed list, one pattern for each alternative; without those that a run need not meet
    unless `chance`."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [(re.compile(m, re.S), a["why"]) for a in yaml.safe_load(f) if chance or not a.get("chance")
                for m in a["match"]]


def unused(found, name=LIST):
    """Patterns of a reviewed list that explain none of these differences."""
    keys = {signature(d) for d in found}
    return [p.pattern for p, _ in accepted(name, chance=False) if not any(p.search(key) for key in keys)]


def unexpected(found, *more):
    """{signature: [Difference]} of those that no line of the reviewed list explains, nor of `more` lists."""
    patterns, out = [p for name in (LIST, *more) for p, _ in accepted(name)], collections.defaultdict(list)
    for d in found:
        key = signature(d)
        if not any(p.search(key) for p in patterns):
            out[key].append(d)
    return out
