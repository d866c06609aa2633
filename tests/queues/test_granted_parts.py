# SPDX-License-Identifier: Apache-2.0
"""A GPUPool of parts of GPUs: `sublet fleet`, with the rights of its chart alone, keeps the KAI Queues of two tenants, and the
host's real KAI obeys them."""
import os
import secrets

import pytest

from testenv import eventually
from testenv.schedulers import Kai

from test_grants import GROUP, Grants, binding_object, bindings_of, pool_object
from test_parts import devices  # noqa: F401 - a fixture

QUEUES = Kai.api + "/queues"
PART = {"gpu-fraction": "0.50"}


@pytest.fixture(scope="module")
def kai(real_host, tmp_path_factory):
    made = Kai(real_host, tmp_path_factory.mktemp("kai")).start()
    yield made
    made.stop()


class Parts(Grants):
    """Of the pool "shared", which has 8 GPUs: only its API and its Queues are used."""

    def __init__(self, host, directory, tag, pools):
        super().__init__(host, directory, tag, pools)
        self.fleet.write_config(grants={"enabled": True, "grace": "1s", "kaiQueues": True})
        self.create(f"{GROUP}/gpupools", pool_object(
            "shared", kind="shared", mode="kai-fraction", tolerations=[{"operator": "Exists"}],
            scheduler={"kind": "kai", "queueTemplate": "{namespace}-parts"}))

    def bind(self, namespace, **spec):
        self.create(bindings_of(namespace), binding_object("shared", **spec))

    def change(self, namespace, **spec):
        self.host.api.patch(f"{bindings_of(namespace)}/shared", {"spec": spec})

    def status(self, namespace):
        self.fleet.process.check()
        return self.host.api.get(f"{bindings_of(namespace)}/shared").get("status", {})

    def limit(self, namespace):
        found = [q for q in self.host.api.get(QUEUES)["items"] if q["metadata"]["name"] == f"{namespace}-parts"]
        return found[0]["spec"]["resources"]["gpu"]["limit"] if found else None

    def part(self, namespace, name):
        return self.host.api.post(f"/api/v1/namespaces/{namespace}/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": PART, "labels": {"kai.scheduler/queue": f"{namespace}-parts"}},
            "spec": {"schedulerName": "kai-scheduler", "nodeSelector": {"sublet.dev/pool": "shared"},
                     "tolerations": [{"operator": "Exists"}], "containers": [{"name": "main", "image": "example.com/x"}]}})

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
    for name in ("one", "two", "three"):
        parts.part(a, name)
        parts.part(b, name)
    eventually(lambda: len(parts.placed(a)) == 2 and len(parts.placed(b)) == 1, 60, "KAI to fill both Queues")
    parts.fleet.kill()
    parts.change(a, guarantee="0.5")
    parts.fleet.start()
    parts.until(a, grant="0.5")
    assert parts.limit(a) == 1.005 and len(parts.placed(a)) == 2  # pods end first
    parts.end(a, parts.placed(a)[0])
    eventually(lambda: parts.limit(a) in (0.505, 1.005) and len(parts.placed(a)) <= 2, 60, "its Queue to follow")
    for name in parts.placed(a):
        parts.end(a, name)
    parts.host.api.delete(f"{bindings_of(b)}/shared")
    parts.made.remove(f"{bindings_of(b)}/shared")
    for name in ("one", "two", "three"):
        parts.end(b, name)
    eventually(lambda: parts.limit(b) is None, 90, "the Queue of the deleted binding to be deleted")
    assert parts.limit(a) is not None
