# SPDX-License-Identifier: Apache-2.0
"""What the ecosystem installs, whole: definitions, roles, workloads, webhooks of real operators, applied on the server.

Each install is applied to a real API server first and read back there, then to a virtual cluster: every object must be
the same, applying it again must change nothing, and deleting it must leave nothing. The real server is of this file
alone and ends with it: nothing is deleted there, since the finalizer of its definitions waits longer after each attempt,
for minutes on a busy machine.
"""
import os
import re
import subprocess

import pytest
import yaml

from differential.servers import ApiServer
from testenv import binaries, eventually
from testenv.api import ApiError

OPERATORS = ["argo-cd", "cert-manager", "flux", "kueue", "kuberay"]
NEEDS = {"kuberay": "cert-manager"}  # whose definitions have to be there
HERE = os.path.join(binaries.TREE, "tests", "testenv", "manifests.sh")
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Only their author writes these: a second apply may not even make a revision.
INERT = {"ConfigMap", "Secret", "Role", "RoleBinding", "ClusterRoleBinding", "NetworkPolicy", *WEBHOOKS}
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Install:
    """The manifest of one operator: .objects, .namespace, .file(...) for kubectl."""

    def __init__(self, operator, directory):
        text, namespace = (subprocess.run([HERE, *a, operator], stdout=subprocess.PIPE, text=True, check=True).stdout
                           for a in ((), ("--namespace",)))
        self.directory = directory
        self.namespace = namespace.strip()
        self.objects = [o for o in yaml.load_all(text, yaml.CSafeLoader) if o]
        self.text = text
        self.all = self._write("all.yaml", text)
        # Argo CD's objects name no namespace, the others name theirs.
        self.scope = ["-n", self.namespace] if operator == "argo-cd" else []

    def _write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def split(self):
        """(webhook configurations, all other objects) as files; the first may be empty."""
        parts = re.split(r"(?m)^---\s*$", self.text)
        hooks = [p for p in parts if re.search(rf"(?m)^kind: ({'|'.join(WEBHOOKS)})\s*$", p)]
        rest = [p for p in parts if p not in hooks and p.strip()]
        return [self._write(n, "---".join(p)) if p else None for n, p in (("hooks.yaml", hooks), ("rest.yaml", rest))]


class Paths:
    """Where objects are, by discovery."""

    def __init__(self, api):
        self.api = api
        self.groups = {}

    def of(self, o, namespace):
        version = o["apiVersion"]
        base = "/api/v1" if version == "v1" else f"/apis/{version}"
        if version not in self.groups:
            self.groups[version] = {r["kind"]: r for r in self.api.get(base)["resources"] if "/" not in r["name"]}
        r = self.groups[version][o["kind"]]
        scope = f"/namespaces/{o['metadata'].get('namespace', namespace)}" if r["namespaced"] else ""
        return f"{base}{scope}/{r['name']}/{o['metadata']['name']}"


def read(api, install):
    """Path -> object, for all of an install."""
    paths = Paths(api)
    return {p: api.get(p) for p in (paths.of(o, install.namespace) for o in install.objects)}


def stable(value, key=None):
    """Without what no two servers share: identities, addresses, times."""
    if isinstance(value, dict):
        drop = {"uid", "creationTimestamp", "resourceVersion", "time", "lastTransitionTime"}
        return {k: stable(v, k) for k, v in value.items() if k not in drop}
    if isinstance(value, list):
        return [stable(v, key) for v in value]
    if key in ("clusterIP", "clusterIPs") and value != "None":
        return "an address"
    return UUID.sub("UID", value) if isinstance(value, str) else value


def applied(o):
    """What the one who applied it answers for; of status only what the server itself says."""
    o = stable(o)
    metadata = o["metadata"]
    metadata["managedFields"] = [e for e in metadata.get("managedFields", []) if e["manager"] == "kubectl"]
    metadata.get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    if not metadata.get("annotations", True):
        del metadata["annotations"]
    if o["kind"] != "CustomResourceDefinition":
        o.pop("status", None)
    if "aggregationRule" in o:  # a controller gathers them, from roles of others too
        o.pop("rules", None)
    return o


def differences(path, real, ours):
    if isinstance(real, dict) and isinstance(ours, dict):
        return [d for k in sorted(real.keys() | ours.keys())
                for d in differences(f"{path} .{k}", real.get(k), ours.get(k))]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [d for i, (a, b) in enumerate(zip(real, ours)) for d in differences(f"{path}[{i}]", a, b)]
    return [] if real == ours else [f"{path}\n  real {str(real)[:300]}\n  ours {str(ours)[:300]}"]


def prepare(kubectl, operator, namespace):
    kubectl.run("create", "namespace", namespace)
    if operator in NEEDS:
        for path in binaries.crds(NEEDS[operator]):
            kubectl("apply", "--server-side", "-f", path)
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")


def remove(kubectl, operator, install):
    kubectl("delete", "-f", install.all, *install.scope, "--ignore-not-found", "--timeout=180s", timeout=900)
    if operator in NEEDS:
        for path in binaries.crds(NEEDS[operator]):
            kubectl("delete", "-f", path)


@pytest.fixture(scope="module")
def real(workdir):
    """kube-apiserver without controllers; definitions are established by itself."""
    server = ApiServer(os.path.join(workdir, "manifests"))
    yield server.start()
    server.stop()


def on_the_real_server(real, operator, install):
    """Its webhooks are applied last and deleted at once: their servers never run, and every request would call them."""
    hooks, rest = install.split()
    prepare(real.kubectl, operator, install.namespace)
    try:
        for path in filter(None, (rest, hooks)):
            real.kubectl("apply", "--server-side", "-f", path, *install.scope)
        eventually(lambda: established(real.kubectl), 60, "the definitions")
        return {p: applied(o) for p, o in read(real.api, install).items()}
    finally:
        if hooks:
            real.kubectl("delete", "-f", hooks, "--ignore-not-found")


def established(kubectl):
    """kube-apiserver shows `conditions: null` in the moment before the first condition is written."""
    return all("Established" in [c["type"] for c in o.get("status", {}).get("conditions") or [] if c["status"] == "True"]
               for o in kubectl.items("crd"))


def check_same(vc, install, real):
    ours = read(vc.api, install)
    assert ours.keys() == real.keys()
    found = [d for p in ours for d in differences(p, real[p], applied(ours[p]))]
    print(f"{len(ours)} objects compared, {len(found)} differences")
    assert not found, "\n".join(found[:20])
    return ours


def check_again(vc, install, before):
    """A second apply changes nothing, and diff has nothing to say."""
    vc.kubectl("apply", "--server-side", "-f", install.all, *install.scope)
    for path, after in read(vc.api, install).items():
        then, now = before[path]["metadata"], after["metadata"]
        assert applied(before[path]) == applied(after), path
        assert then.get("generation") == now.get("generation"), path
        if after["kind"] in INERT:
            assert then["resourceVersion"] == now["resourceVersion"], path
    code, out, err = vc.kubectl.run("diff", "--server-side", "-f", install.all, *install.scope)
    assert (code, out) == (0, ""), err + out[:2000]


def check_gone(vc, install):
    for o in install.objects:
        try:
            left = vc.api.get(Paths(vc.api).of(o, install.namespace))
        except (ApiError, KeyError):  # the object, or its kind, or all of its group
            continue
        raise AssertionError(f"left behind: {left['kind']} {left['metadata']['name']}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_installs_like_on_a_real_cluster(real, tenant, operator, tmp_path):
    install = Install(operator, str(tmp_path))
    theirs = on_the_real_server(real, operator, install)
    vc = tenant("installs", config={"policy": {"verdict": "off"}})
    prepare(vc.kubectl, operator, install.namespace)
    vc.kubectl("apply", "--server-side", "-f", install.all, *install.scope)
    eventually(lambda: established(vc.kubectl), 60, "the definitions")
    before = check_same(vc, install, theirs)
    check_again(vc, install, before)
    vc.kubectl("wait", "--for=condition=Available", "deployment", "--all", "-n", install.namespace,
               "--timeout=180s", timeout=900)
    remove(vc.kubectl, operator, install)
    check_gone(vc, install)
