# SPDX-License-Identifier: Apache-2.0
"""Published manifests: the objects that Kubernetes, operators and their users' examples ship, sent to both servers.

Each object is created and applied as a dry run, as kubectl sends it: with the default validation of fields, strictly, and
server-side with its managedFields. The definitions of custom resources are created first, on both. The objects are read
from Go modules, which gomod.sh downloads; nothing of them is in the tree.

    modules -> documents() -> objects that are different -> at most PER_KIND of a kind -> Published.run()
"""
import collections
import concurrent.futures
import copy
import hashlib
import json
import os
import re
from urllib.parse import quote

import yaml

from testenv import binaries, eventually

from .compare import Answer, differences, plain, said_more
from .suite import NAMESPACE, Difference, Server

MODULES = """
    k8s.io/api@v0.36.3 k8s.io/kubernetes@v1.36.3 sigs.k8s.io/gateway-api@v1.6.3 sigs.k8s.io/kueue@v0.15.0
    sigs.k8s.io/cluster-api@v1.14.2 github.com/cert-manager/cert-manager@v1.21.2 github.com/argoproj/argo-cd/v3@v3.5.7
    github.com/fluxcd/source-controller@v1.9.5 github.com/fluxcd/kustomize-controller@v1.9.5
    github.com/fluxcd/helm-controller@v1.6.4 github.com/ray-project/kuberay/ray-operator@v1.5.1
    github.com/kubeflow/trainer/v2@v2.0.0 github.com/prometheus-operator/prometheus-operator@v0.85.0
    github.com/external-secrets/external-secrets@v1.3.2 github.com/vmware-tanzu/velero@v1.18.3
    github.com/kedacore/keda/v2@v2.21.0 github.com/kyverno/kyverno@v1.19.1 knative.dev/serving@v0.51.0 istio.io/api@v1.32.0
    istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad
""".split()
PER_KIND = 40
LARGEST = 3 << 20  # bytes of a file that is read; a request may have as many
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OF_THE_SENDER = ("SelfSubjectReview", "SelfSubjectRulesReview")  # the two servers know it by different rights
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: what looks like a date is a string."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()}


def documents(directory):
    """The objects in the YAML and JSON files below it, in the order of their paths; templates are left out."""
    for root, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            if not name.endswith((".yaml", ".yml", ".json")) or os.path.getsize(path) > LARGEST:
                continue
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            for part in re.split(r"^---.*$", text, flags=re.M):
                if "apiVersion" in part and "kind" in part and "{{" not in part:
                    yield from _read(part)


def _read(text):
    try:
        obj = yaml.load(text, Loader=Loader)
        json.dumps(obj, allow_nan=False)
    except (yaml.YAMLError, ValueError, TypeError):
        return
    if not isinstance(obj, dict):
        return
    if str(obj.get("kind")).endswith("List") and isinstance(obj.get("items"), list):
        yield from (o for o in obj["items"] if _is_object(o))
    elif _is_object(obj):
        yield obj


def _is_object(obj):
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return False
    named = obj["metadata"].get("name") or obj["metadata"].get("generateName")
    return all(isinstance(v, str) for v in (obj.get("apiVersion"), obj.get("kind"), named))


def load(modules=None, per_kind=PER_KIND):
    """{(apiVersion, kind): [object]}: those that differ in more than their namespace, at most per_kind of each kind but of
    definitions, drawn evenly over the modules by the hash of the object."""
    found = collections.defaultdict(dict)
    for module in modules or MODULES:
        where = binaries.module_source(module)
        for obj in documents(where):
            obj["metadata"].pop("namespace", None)
            obj["metadata"].setdefault("name", obj["metadata"].pop("generateName", "") + "x")  # none is drawn
            found[obj["apiVersion"], obj["kind"]][hashlib.sha256(json.dumps(obj, sort_keys=True).encode()).hexdigest()] = obj
    return {kind: [objects[h] for h in sorted(objects)][:None if kind == CRD else per_kind] for kind, objects in found.items()}


class WithManagers(Answer):
    """An answer whose managedFields are compared, too."""

    def __init__(self, code, headers, data, sent):
        super().__init__(code, headers, data, sent)
        if code < 300:
            managers = json.loads(plain(data.decode())).get("metadata", {}).get("managedFields") or []
            self.body["managedFields"] = sorted(managers, key=lambda m: json.dumps(m, sort_keys=True))


class Published:
    """Published(here, there).run() -> [Difference]; .compared and .objects count, .kinds has the number of objects of each."""

    def __init__(self, here, there, objects, threads=3):
        self.pair = Server(here), Server(there)
        self.objects_of = objects
        self.threads = threads
        self.compared = self.objects = 0
        self.kinds = {}

    def run(self):
        resources = self._discover()
        found = self._compare_kind(resources[CRD], CRD)
        self._define()
        resources = self._discover()
        with concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
            jobs = [pool.submit(self._compare_kind, resources[kind], kind) for kind in sorted(self.objects_of)
                    if kind in resources and kind != CRD and kind[1] not in OF_THE_SENDER]
            for job in jobs:
                found += job.result()
        return found

    def _discover(self):
        """{(apiVersion, kind): (path of the collection in NAMESPACE)} of what both serve."""
        both = [self._served(s.api) for s in self.pair]
        return {kind: path for kind, path in both[1].items() if both[0].get(kind) == path}

    @staticmethod
    def _served(api):
        bases = {"v1": "/api/v1"}
        for group in api.get("/apis")["groups"]:
            bases.update({v["groupVersion"]: "/apis/" + v["groupVersion"] for v in group["versions"]})
        found = {}
        for version, base in bases.items():
            for r in api.get(base)["resources"]:
                if "/" not in r["name"] and "create" in r["verbs"]:
                    ns = f"/namespaces/{NAMESPACE}" if r["namespaced"] else ""
                    found.setdefault((version, r["kind"]), f"{base}{ns}/{r['name']}")
        return found

    def _define(self):
        """One definition of each name that both take, each version served, without webhooks: none runs here."""
        made = set()
        for crd in self.objects_of.get(CRD, ()):
            name = crd["metadata"].get("name")
            if name in made:
                continue
            crd = copy.deepcopy(crd)
            if isinstance(crd.get("spec"), dict):
                crd["spec"].pop("conversion", None)
            answers = [s.ask("POST", CRDS, crd) for s in self.pair]
            if all(a.code == 201 for a in answers):
                made.add(name)
            else:  # one that is refused for what CEL cannot say here may stand on one side
                for s in self.pair:
                    s.api.raw("DELETE", f"{CRDS}/{name}")
        for server in self.pair:
            eventually(lambda s=server: self._established(s.api) >= made, 180, "the definitions")

    @staticmethod
    def _established(api):
        return {c["metadata"]["name"] for c in api.get(CRDS)["items"]
                if any(d["type"] == "Established" and d["status"] == "True" for d in (c.get("status") or {}).get("conditions") or [])}

    def _compare_kind(self, path, kind):
        found, pair = [], [s.clone() for s in self.pair]
        try:
            for obj in self.objects_of.get(kind, ()):
                self.objects += 1
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
                for case, answers in self._ask(pair, path, obj):
                    found += self._compare(obj, case, answers)
        finally:
            for server in pair:
                server.api.close()
        return found

    @staticmethod
    def _ask(pair, path, obj):
        """[(case, (answer of here, of there))]"""
        yield "create", [s.ask("POST", path, obj, dryRun="All") for s in pair]
        yield "strict", [s.ask("POST", path, obj, dryRun="All", fieldValidation="Strict") for s in pair]
        yield "apply", [_apply(s.api, f"{path}/{quote(obj['metadata']['name'])}", obj) for s in pair]

    def _compare(self, obj, case, answers):
        here, there = answers
        if there is None:
            return []
        assert here, f"no answer to {case} of {obj}"
        self.compared += 1
        here.warnings = said_more(here.warnings, obj["kind"], here.code < 300)
        changes = [(("metadata", "name"), obj["metadata"].get("name"))]
        return [Difference(obj["kind"], case, what, a, b, changes) for what, a, b in differences(here, there)]


def _apply(api, path, obj):
    code, headers, data = api.raw("PATCH", path, json.dumps(obj).encode(), "application/apply-patch+yaml",
                                  query={"dryRun": "All", "fieldManager": "published", "force": "true"})
    return WithManagers(code, headers, data, obj)
