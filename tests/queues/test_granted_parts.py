# SPDX-License-Identifier: Apache-2.0
"""A GPUPool of parts of GPUs: `sublet fleet`, with the rights of its chart alone, keeps the KAI Queues of two tenants, and the
host's real KAI obeys them."""
import json
import os
import secrets
import threading

import pytest

from testenv import eventually
from testenv.held import HeldHost
from testenv.nodes import pool_config
from testenv.schedulers import Kai

from test_grants import GROUP, Grants, binding_object, bindings_of, pool_object
from test_parts import devices, part  # noqa: F401 - a fixture
from test_tenant import host_pod, running

QUEUES = Kai.api + "/queues"
LISTED = ("get queues.scheduling.run.ai -o "  # docs/pools-and-quota.md
          "custom-columns=NAME:.metadata.name,PARENT:.spec.parentQueue,LIMIT:.spec.resources.gpu.limit")


@pytest.fixture(scope="module")
def kai(real_host, tmp_path_factory):
    made = Kai(real_host, tmp_path_factory.mktemp("kai")).start()
    yield made
    made.stop()


class Parts(Grants):
    """Of the pool "shared", which has 16 GPUs: only its API and its Queues are used."""

    def __init__(self, host, directory, tag, pools):
        super().__init__(host, directory, tag, pools)
        self.fleet.write_config(grants={"enabled": True, "grace": "1s", "kaiQueues": True})
        self.create(f"{GROUP}/gpupools", pool_object(
            "shared", kind="shared", mode="kai-fraction", tolerations=pool_config("shared", "l4")["tolerations"],
            scheduler={"kind": "kai", "queueTemplate": "{namespace}-parts"}))

    def bind(self, namespace, **spec):
        self.create(bindings_of(namespace), binding_object("shared", **spec))

    def change(self, namespace, **spec):
        self.host.api.patch(f"{bindings_of(namespace)}/shared", {"spec": spec})

    def status(self, namespace):
        self.fleet.process.check()
        return self.host.api.get(f"{bindings_of(namespace)}/shared").get("status", {})

    def unbind(self, namespace):
        self.made.remove(f"{bindings_of(namespace)}/shared")
        self.host.api.delete(f"{bindings_of(namespace)}/shared")

    def queue(self, namespace):
        return next((q for q in self.host.api.get(QUEUES)["items"] if q["metadata"]["name"] == f"{namespace}-parts"), None)

    def limit(self, namespace):
        """KAI adds floats: half a hundredth more is granted to no pod, and lets 28 parts of 0.07 be 1.96."""
        found = self.queue(namespace)
        return found["spec"]["resources"]["gpu"]["limit"] if found else None

    def condition(self, path, kind, status):
        self.fleet.process.check()
        found = self.host.api.get(path).get("status", {}).get("conditions", [])
        return next((c for c in found if c["type"] == kind and c["status"] == status), None)

    def said(self, namespace, name):
        return json.dumps(self.host.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"].get("conditions"))

    def part(self, namespace, name):
        """Half a GPU, as a tenant's process and the webhook of KAI make it."""
        given = f"{name}-shared-gpu"
        return self.host.api.post(f"/api/v1/namespaces/{namespace}/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"kai.scheduler/queue": f"{namespace}-parts"}, "annotations": {
                "gpu-fraction": "0.50", "gpu-fraction-container-name": "main", "runai/shared-gpu-configmap": given}},
            "spec": {"schedulerName": "kai-scheduler", "nodeSelector": {"sublet.dev/pool": "shared"},
                     "tolerations": [{"operator": "Exists"}], "containers": [{"name": "main", "image": "example.com/x", "env": [
                         {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {
                             "name": f"{given}-0", "key": "NVIDIA_VISIBLE_DEVICES"}}}]}]}})

    def end_all(self, namespace):
        """KAI's binder itself ends some whose reservation it does not find."""
        for p in self.host.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]:
            code, _, answer = self.host.api.raw("DELETE", f"/api/v1/namespaces/{namespace}/pods/{p['metadata']['name']}",
                                                {"gracePeriodSeconds": 0})
            assert code in (200, 404), answer

    def placed(self, namespace):
        return sorted(p["metadata"]["name"] for p in self.host.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
                      if p["spec"].get("nodeName"))


@pytest.fixture
def parts(real_host, kai, devices, gpu_crds, workdir, pools, tmp_path):
    tag = secrets.token_hex(3)
    made = Parts(real_host, os.path.join(workdir, f"parts-{tag}"), tag, pools)
    made.tenants = [f"{made.namespace}-a", f"{made.namespace}-b"]
    for name in made.tenants:
        real_host.create_namespace(name)
    try:
        made.allow(tmp_path)
        yield made
    finally:
        for name in made.tenants:
            real_host.delete_namespace(name)
        made.close()
        for q in real_host.api.get(QUEUES)["items"]:
            real_host.api.delete(f"{QUEUES}/{q['metadata']['name']}")


def test_two_tenants_share_by_queues_of_the_fleet(parts, kai):
    """Exact limits, a lowered grant, a fleet that is killed, and Queues that leave with their bindings."""
    a, b = parts.tenants
    parts.bind(a, guarantee="1")
    parts.bind(b, guarantee="0.5")
    parts.fleet.start()
    assert parts.until(a, grant="1")["pool"]["scheduler"]["queueTemplate"] == f"{a}-parts"
    parts.until(b, grant="0.5")
    assert (parts.limit(a), parts.limit(b)) == (1.005, 0.505)
    shown = parts.host.kubectl(*LISTED.split()).splitlines()
    assert [line.split() for line in shown] == [["NAME", "PARENT", "LIMIT"], [f"{a}-parts", "sublet-shared", "1.005"],
                                                [f"{b}-parts", "sublet-shared", "0.505"], ["sublet-shared", "<none>", "-1"]]
    for name in ("one", "two", "three"):
        parts.part(a, name)
        parts.part(b, name)
    eventually(lambda: len(parts.placed(a)) == 2 and len(parts.placed(b)) == 1, 60, "KAI to fill both Queues")
    parts.fleet.kill()
    parts.change(a, guarantee="0.5")
    parts.fleet.start()
    parts.until(a, grant="0.5")
    assert parts.limit(a) == 1.005 and len(parts.placed(a)) == 2  # pods end first
    parts.end(a, ({"one", "two", "three"} - set(parts.placed(a))).pop())
    parts.end(a, parts.placed(a)[0])
    eventually(lambda: parts.limit(a) == 0.505, 60, "its Queue to follow")
    parts.part(a, "four")
    eventually(lambda: "over" in parts.said(a, "four").lower(), 60, "KAI to say that the Queue is full")
    assert len(parts.placed(a)) == 1
    parts.end_all(a)
    parts.unbind(b)
    parts.end_all(b)
    eventually(lambda: parts.queue(b) is None, 90, "the Queue of the deleted binding to be deleted")
    assert parts.limit(a) == 0.505


def test_a_queue_that_is_gone_is_made_again(parts, kai):
    """By hand, with a grant that stays; then nothing is written any more."""
    a, _ = parts.tenants
    parts.bind(a, guarantee="1")
    parts.fleet.start()
    parts.until(a, grant="1")
    before = parts.queue(a)["metadata"]["uid"]
    parts.host.api.delete(f"{QUEUES}/{a}-parts")
    eventually(lambda: parts.queue(a) and parts.limit(a) == 1.005, 60, "another Queue")
    assert parts.queue(a)["metadata"]["uid"] != before and parts.status(a)["grant"] == "1"
    parts.host.api.patch(f"{QUEUES}/{a}-parts", {"spec": {"resources": {"gpu": {"limit": -1}}}})
    eventually(lambda: parts.limit(a) == 1.005, 60, "the limit that was granted")
    version = parts.queue(a)["metadata"]["resourceVersion"]
    parts.part(a, "one")
    eventually(lambda: parts.placed(a), 60, "a pod in it")
    assert parts.queue(a)["metadata"]["resourceVersion"] == version


def test_a_refused_write_is_said_and_stops_no_other(parts, kai):
    """A policy of the host refuses the Queue of one tenant: conditions say so, the other has its grant, and so has the first
    one once the policy is gone."""
    a, b = parts.tenants
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {"apiGroups": ["scheduling.run.ai"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["queues"]}
    parts.create(policies, {"metadata": {"name": b}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.name != '{b}-parts'", "message": "not this one"}]}})
    parts.create(f"{policies[:-3]}ybindings", {"metadata": {"name": b}, "spec": {"policyName": b, "validationActions": ["Deny"]}})
    probe = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": f"{b}-parts"}, "spec": {}}
    eventually(lambda: parts.host.api.raw("POST", QUEUES, probe, query={"dryRun": "All"})[0] in (403, 422), 60, "the policy")
    parts.bind(b, guarantee="1")
    parts.fleet.start()
    bounded = eventually(lambda: parts.condition(f"{bindings_of(b)}/shared", "Bounded", "False"), 60, "the binding's condition")
    assert bounded["reason"] == "QueueRefused" and parts.status(b)["grant"] == "0", bounded
    fenced = eventually(lambda: parts.condition(f"{GROUP}/gpupools/shared", "Fenced", "False"), 60, "the pool's condition")
    assert fenced["reason"] == "QueueRefused" and "not this one" in fenced["message"] and f"{b}-parts" in fenced["message"], fenced
    parts.bind(a, guarantee="1")
    parts.until(a, grant="1")
    for path in parts.made[-4:-2][::-1]:
        if "admission" in path:
            parts.made.remove(path)
            parts.host.api.delete(path)
    parts.until(b, grant="1")
    eventually(lambda: parts.condition(f"{bindings_of(b)}/shared", "Bounded", "True"), 60, "no more trouble")
    eventually(lambda: parts.condition(f"{GROUP}/gpupools/shared", "Fenced", "True"), 60, "no more trouble")


def test_a_tenants_pods_are_in_its_own_queue(parts, kai, tenant):
    """Its process follows the GPUBinding: KAI places two halves, a third is beyond the grant, and a tenant's label names no
    other Queue."""
    other = parts.tenants[1]
    vc = tenant("research", config={"fleet": {"bindings": True}})
    parts.bind(vc.namespace, guarantee="1", default=True)
    parts.bind(other, guarantee="1")
    parts.fleet.start()
    parts.until(vc.namespace, grant="1")
    parts.until(other, grant="1")
    forged = part("one", 50)
    forged["metadata"]["labels"] = {"kai.scheduler/queue": f"{other}-parts"}
    eventually(lambda: vc.kubectl.run("apply", "-f", "-", stdin=json.dumps(forged))[0] == 0, 60, "its process to have the pool")
    vc.kubectl.apply(part("two", 50))
    for name in ("one", "two"):
        running(vc.kubectl, name)
        assert host_pod(vc, name)["metadata"]["labels"]["kai.scheduler/queue"] == f"{vc.namespace}-parts"
    code, _, said = vc.kubectl.run("create", "-f", "-", stdin=json.dumps(part("three", 50)))
    assert code and "exceeded quota: gpu/shared" in said and "limited: gpu=1" in said, said
    vc.kubectl("delete", "pod", "one", "two")
    eventually(lambda: not vc.host_pods(), 60, "the host's pods gone")


class OneWrite:
    """Lets one write to Queues, bindings and pools through in each life of the process; the others never reach the host."""

    def __init__(self):
        self.left, self.lock = 0, threading.Lock()

    def held(self, method, path):
        if method != "GET" and ("/queues" in path or "/gpu" in path):
            with self.lock:
                if not self.left:
                    raise ConnectionAbortedError
                self.left -= 1
        return False


def test_it_may_end_between_any_two_writes(parts, kai, tmp_path):
    """What one tenant borrowed becomes the guarantee of another, by lives of one write each: no GPU is promised twice, and no
    grant is beyond its Queue."""
    a, b = parts.tenants
    door = OneWrite()
    held = HeldHost(parts.host, parts.fleet.config["host"]["kubeconfig"], str(tmp_path), held=door.held)
    parts.fleet.config["host"]["kubeconfig"] = held.kubeconfig
    parts.fleet.write_config()

    def whole(namespace):
        found = parts.limit(namespace)
        return 0 if found is None else int(found)

    def lives(done):
        for n in range(40):
            door.left = 1
            parts.fleet.start()
            eventually(lambda: not door.left or done(), 60, "a write")
            parts.fleet.kill()
            assert whole(a) + whole(b) <= 16, (whole(a), whole(b))
            for tenant in parts.tenants:
                grant = parts.host.api.get(f"{bindings_of(tenant)}/shared").get("status", {}).get("grant", "0")
                assert int(grant) <= whole(tenant), (tenant, grant, whole(tenant))
            if done():
                return n
        raise AssertionError("it does not come to rest")

    def grants(*want):
        return lambda: [parts.host.api.get(f"{bindings_of(t)}/shared").get("status", {}).get("grant") for t in parts.tenants] == [*want]
    try:
        parts.bind(a, guarantee="3", burst="13")
        parts.bind(b, burst="0")
        assert lives(grants("16", "0")) >= 3
        parts.change(b, guarantee="13")
        assert lives(grants("3", "13")) >= 3
        assert (parts.limit(a), parts.limit(b)) == (3.005, 13.005)
    finally:
        held.close()
