# SPDX-License-Identifier: Apache-2.0
"""A GPUPool of mode dra on a real host: `sublet fleet` counts devices of ResourceSlices and bounds ResourceClaims by a ResourceQuota;
a tenant's own process follows what is granted. The driver is a ResourceSlice and nothing more."""
import copy
import json
import os
import secrets
from fractions import Fraction

import pytest

from testenv import eventually
from testenv.api import ApiError
from testenv.fixtures import install_crds
from testenv.fleet import Fleet, chart_crds, chart_objects
from testenv.host import HostCluster
from testenv.nodes import gpu_node

from test_device_claims import CLAIMS, DRA, claim, exactly, gone, pod, runs
from test_fleet import check_sums
from test_grants import GROUP, binding_object, bindings_of, condition, pool_object

KEY, DRIVER, CLASS, POOL = "sublet.dev/pool", "granted.example.com", "whole.granted.example.com", "claims"
QUOTA = f"{CLASS}.deviceclass.resource.k8s.io/devices"
NODES = ("granted-0", "granted-1")


def taken(count=1):
    return {"name": "r", "exactly": {"deviceClassName": CLASS, "count": count}}


def slice_of(node, devices=2, generation=1, count=1, kind="gpu", name=None, **more):
    return {"metadata": {"name": name or f"slice-{node}"},
            "spec": {"driver": DRIVER, "nodeName": node,
                     "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
                     "devices": [{"name": f"{kind}-{i}", "attributes": {"type": {"string": kind}}, **more} for i in range(devices)]}}


class Claims:
    """A fleet with the rights that the chart gives it, one GPUPool of mode dra, and two nodes with two devices each."""

    def __init__(self, host, directory, tag):
        self.host, self.namespace, self.made = host, f"fleet-{tag}", []
        host.create_namespace(self.namespace)
        kubeconfig = host.service_account_kubeconfig(self.namespace, "fleet")
        self.fleet = Fleet(os.path.join(directory, "fleet"), host, self.namespace, [{"name": POOL, "nodeSelector": {KEY: POOL}}],
                           kubeconfig=kubeconfig, args=("--listen", "127.0.0.1:0"))
        self.fleet.write_config(grants={"enabled": True, "grace": "1s", "deviceClaims": True})
        for node in NODES:
            host.add_node(gpu_node(node, POOL))
            self.create(f"{DRA}/resourceslices", slice_of(node))
        self.create(f"{DRA}/deviceclasses", {"metadata": {"name": CLASS}, "spec": {"selectors": [
            {"cel": {"expression": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "gpu"'}}]}})
        self.create(f"{GROUP}/gpupools", pool_object(
            POOL, mode="dra",
            tolerations=[{"key": KEY, "operator": "Equal", "value": POOL, "effect": "NoSchedule"},
                         {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            deviceClasses={CLASS: {"gpuEq": "1", "devices": {"driver": DRIVER, "attributes": {"type": "gpu"}}}}))

    def create(self, path, body):
        self.made.append(f"{path}/{body['metadata']['name']}")
        return self.host.api.post(path, body)

    def allow(self, directory):
        values = {"config": {"pools": [], "grants": {"enabled": True, "deviceClaims": True}}}
        for o in chart_objects(directory, self.namespace, **values):
            if o["apiVersion"].startswith("rbac."):
                scope = f"/namespaces/{self.namespace}" if "namespace" in o["metadata"] else ""
                self.create(f"/apis/{o['apiVersion']}{scope}/{o['kind'].lower()}s", o)

    def publish(self, node, **how):
        """In place, as a driver does."""
        path = f"{DRA}/resourceslices/slice-{node}"
        now = self.host.api.get(path)
        self.host.api.put(path, dict(now, spec=slice_of(node, **how)["spec"]))

    def bind(self, namespace, **spec):
        self.create(bindings_of(namespace), binding_object(POOL, **spec))

    def change(self, namespace, **spec):
        self.host.api.patch(f"{bindings_of(namespace)}/{POOL}", {"spec": spec})

    def pool(self):
        return self.host.api.get(f"{GROUP}/gpupools/{POOL}")

    def status(self, namespace):
        self.check()
        return self.host.api.get(f"{bindings_of(namespace)}/{POOL}").get("status", {})

    def until(self, namespace, grant):
        return eventually(lambda: self.status(namespace).get("grant") == grant and self.status(namespace), 60, f"{namespace}: {grant}")

    def hard(self, namespace):
        return self.host.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/sublet-gpu")["spec"]["hard"][QUOTA]

    def check(self):
        """No device is promised twice, whenever one looks."""
        self.fleet.process.check()
        listed = self.host.api.get("/api/v1/resourcequotas", fieldSelector="metadata.name=sublet-gpu")["items"]
        assert sum(int(q["spec"]["hard"].get(QUOTA, 0)) for q in listed) <= 4, listed

    def close(self):
        self.fleet.close()
        for path in reversed(self.made):
            self.host.api.delete(path)
        for node in NODES:
            self.host.remove_node(node)
        self.host.delete_namespace(self.namespace)


@pytest.fixture
def grants(real_host, gpu_crds, workdir, tmp_path):
    tag = secrets.token_hex(3)
    eventually(lambda: not real_host.api.get(f"{DRA}/resourceclaims")["items"], 90, "claims of namespaces that are being deleted to be gone")
    made = Claims(real_host, os.path.join(workdir, f"claims-{tag}"), tag)
    try:
        made.allow(tmp_path)
        yield made
    finally:
        made.close()


@pytest.fixture
def namespace(real_host):
    name = f"claims-{secrets.token_hex(3)}"
    real_host.create_namespace(name)
    yield name
    real_host.delete_namespace(name)


def refusal(api, path, body):
    with pytest.raises(ApiError) as raised:
        api.post(path, body)
    assert raised.value.code == 403, raised.value
    return raised.value.status["message"]


def on_host(namespace):
    return f"{DRA}/namespaces/{namespace}/resourceclaims"


def test_a_tenant_claims_what_is_granted(real_host, grants, tenant):
    """2 are granted: the third claim is a 403 at apply; more once the grant is raised; lowered, what is claimed stays."""
    vc = tenant("claims", on=real_host, config={
        "fleet": {"bindings": True}, "sync": {"toHost": {"resourceClaims": {"enabled": True}},
                                              "fromHost": {"deviceClasses": {"enabled": True}}}})
    grants.fleet.start()
    grants.bind(vc.namespace, guarantee="2", default=True)
    assert grants.until(vc.namespace, "2")["pool"]["deviceClasses"][CLASS]["devices"]["driver"] == DRIVER
    assert grants.hard(vc.namespace) == "2"

    def first():
        try:
            return vc.api.post(CLAIMS, claim("one", taken()))
        except ApiError as e:  # the tenant's process has not seen the grant yet
            assert e.code == 403, e
            return None
    eventually(first, 60, "the first claim")
    vc.api.post(CLAIMS, claim("two", taken()))
    assert refusal(vc.api, CLAIMS, claim("three", taken())).endswith(
        f"exceeded quota: gpu/{POOL}, requested: gpu=1, used: gpu=2, limited: gpu=2")
    vc.api.post("/api/v1/namespaces/default/pods", pod("a", resourceClaimName="one"))
    assert runs(vc, "a")["spec"]["nodeName"] in NODES
    eventually(lambda: len(vc.host_objects(DRA, "resourceclaims")) == 2, 60, "both claims on the host")

    message = refusal(real_host.api, on_host(vc.namespace), claim("direct", taken()))  # whatever a tenant's process does
    assert f"exceeded quota: sublet-gpu, requested: {QUOTA}=1, used: {QUOTA}=2, limited: {QUOTA}=2" in message, message

    grants.change(vc.namespace, guarantee="3")
    grants.until(vc.namespace, "3")

    def third():
        try:
            return vc.api.post(CLAIMS, claim("three", taken()))
        except ApiError as e:
            assert e.code == 403, e
            return None
    eventually(third, 60, "the third claim")
    eventually(lambda: len(vc.host_objects(DRA, "resourceclaims")) == 3, 60, "three claims on the host")

    grants.change(vc.namespace, guarantee="1")
    grants.until(vc.namespace, "1")
    reclaiming = eventually(lambda: condition({"status": grants.status(vc.namespace)}, "Reclaiming"), 60, "a word")
    assert reclaiming["reason"] == "ClaimsBeyondGrant" and reclaiming["message"].startswith("claims hold 2 GPUs beyond"), reclaiming
    assert grants.hard(vc.namespace) == "3" and "reclaim" not in grants.status(vc.namespace)
    assert runs(vc, "a")
    refusal(vc.api, CLAIMS, claim("four", taken()))
    gone(vc, CLAIMS, "three")
    gone(vc, CLAIMS, "two")
    eventually(lambda: grants.hard(vc.namespace) == "1", 60, "the quota to follow what was given back")


def exact(balance):
    held, idle, unhealthy, capacity, unmatched = (Fraction(balance[k]) for k in ("held", "idle", "unhealthy", "capacity", "unmatched"))
    assert held + idle + unhealthy == capacity + unmatched, balance
    return held, unmatched


METERED = {"name": POOL, "mode": "dra", "nodeSelector": {KEY: POOL},
           "tolerations": [{"key": KEY, "operator": "Equal", "value": POOL, "effect": "NoSchedule"}],
           "deviceClasses": {CLASS: {"gpuEq": "1", "devices": {"driver": DRIVER, "attributes": {"type": "gpu"}}}},
           "metering": {"price": "3600", "currency": "USD", "per": "GPUHour"}}


def test_claims_are_in_the_ledger(real_host, grants, namespace):
    """An allocation is held by its namespace, once for all pods that use it, also after they ended and over a kill, until it is gone."""
    columns = "tenant,owner,pod,pool,node,mode,reason"

    def held(**more):
        return grants.fleet.lines(columns, kind="held", tenant=namespace, **more)

    def gauges():
        metrics = grants.fleet.metrics()
        return [sum(metrics.get(f"sublet_fleet_{name}_gpus", {}).values()) for name in ("held", "idle", "unhealthy", "capacity")]
    grants.fleet.write_config(pools=[METERED], grants={"enabled": False})
    grants.fleet.start()
    eventually(lambda: gauges() == [0, 4, 0, 4], 60, "four devices, idle")
    real_host.api.post(on_host(namespace), claim("shared", taken(2)))
    real_host.api.post(on_host(namespace), claim("waits", taken()))  # not allocated: it holds nothing
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("a", "b"):
        body = pod(name, resourceClaimName="shared")
        body["metadata"]["annotations"] = {"sublet.dev/owner": "Job/forged"}  # of no virtual cluster: it names nothing
        body["spec"]["tolerations"] = [{"operator": "Exists"}]
        real_host.api.post(pods, body)
    eventually(lambda: gauges() == [2, 2, 0, 4], 60, "two devices, held once")
    line = eventually(held, 60, "a line of the report")[0]
    assert (line["pod"], line["mode"], line["reason"], line["owner"]) == ("ResourceClaim/shared", "dra", "Running", ""), line
    assert line["node"] in NODES and line["pods"] == 1, line

    grants.fleet.kill()
    grants.fleet.start()
    assert gauges() == [2, 2, 0, 4], "read back"
    for name in ("a", "b"):
        real_host.api.delete(f"{pods}/{name}", gracePeriodSeconds=0)
    eventually(lambda: gauges() == [0, 4, 0, 4], 90, "the host to give the devices back")
    lines = eventually(lambda: held(reason="Deallocated"), 60, "the end")
    assert len(lines) == 1 and lines[0]["pods"] == 1 and lines[0]["estimated"] == 0, lines
    assert Fraction(lines[0]["costExact"]) == Fraction(lines[0]["gpuHoursExact"]) * 3600 > 0, lines
    grants.publish(NODES[1], taints=[{"key": "xid", "value": "79", "effect": "NoSchedule"}])
    eventually(lambda: gauges() == [0, 2, 2, 4], 60, "a tainted node")
    grants.made.remove(f"{DRA}/resourceslices/slice-{NODES[1]}")
    real_host.api.delete(f"{DRA}/resourceslices/slice-{NODES[1]}")
    eventually(lambda: gauges() == [0, 2, 0, 2], 60, "a node without slices")
    report = grants.fleet.report(columns)
    total, unmatched = exact(report["balances"][0])
    assert total == sum(Fraction(line["gpuHoursExact"]) for line in report["lines"] if line["kind"] == "held") > 0, report
    assert not unmatched, report


@pytest.fixture
def ruled_host(workdir, tmp_path):
    """A host that serves DeviceTaintRules, which are off by default."""
    made = HostCluster(os.path.join(workdir, "ruled-host"), api_args=["--runtime-config=resource.k8s.io/v1beta2=true"],
                       gates=("DRADeviceTaintRules",)).start()
    try:
        install_crds(made.api, chart_crds(tmp_path))
        yield made
    finally:
        made.stop()


RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"


def rule(name, **selector):
    return {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": {
        "key": "example.com/faulty", "value": "xid", "effect": "NoSchedule"}}}


def test_rules_taint_devices(ruled_host, workdir, tmp_path):
    """What an administrator taints by a rule is unhealthy, in the ledger from then on and for grants; over a restart, too."""
    grants = Claims(ruled_host, os.path.join(workdir, "claims-ruled"), secrets.token_hex(3))
    namespace = f"{grants.namespace}-a"
    ruled_host.create_namespace(namespace)

    def gauges():
        metrics = grants.fleet.metrics()
        return [sum(metrics.get(f"sublet_fleet_{name}_gpus", {}).values()) for name in ("held", "idle", "unhealthy", "capacity")]

    def capacity(want):
        eventually(lambda: grants.pool()["status"]["capacity"] == want, 60, f"a capacity of {want}")
    try:
        grants.allow(tmp_path)
        grants.fleet.write_config(pools=[METERED])
        grants.bind(namespace, guarantee="3")
        grants.fleet.start()
        grants.until(namespace, "3")
        eventually(lambda: gauges() == [0, 4, 0, 4], 60, "four devices, idle")
        ruled_host.api.post(RULES, rule("one", driver=DRIVER, pool=NODES[0], device="gpu-1"))
        capacity("3")
        eventually(lambda: gauges() == [0, 3, 1, 4], 60, "one device of a node")
        ruled_host.api.post(RULES, rule("node", pool=NODES[1]))
        capacity("1")
        eventually(lambda: gauges() == [0, 1, 3, 4], 60, "and all of the other node")
        assert condition(grants.pool(), "Overcommitted")["reason"] == "Unhealthy"
        assert grants.status(namespace)["grant"] == "3", "a guarantee that counts stays"
        grants.fleet.stop()
        grants.fleet.start()
        assert gauges() == [0, 1, 3, 4], "from the first moment"
        ruled_host.api.delete(f"{RULES}/node")
        capacity("3")
        ruled_host.api.patch(f"{RULES}/one", {"spec": {"taint": {"effect": "None"}}})
        capacity("4")
        eventually(lambda: gauges() == [0, 4, 0, 4], 60, "four devices again")
        check_sums(grants.fleet.report())
    finally:
        for name in ("one", "node"):
            ruled_host.api.raw("DELETE", f"{RULES}/{name}")
        grants.close()
        ruled_host.delete_namespace(namespace)


HOSTILE = {
    "plain": claim("x", taken(2)),
    "alternatives": claim("x", {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "other.example.com"},
                                                                {"name": "b", "deviceClassName": CLASS, "count": 2}]}),
    "all": claim("x", {"name": "r", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}}),
    "two requests": claim("x", taken(), {**taken(), "name": "q"}),
}


def test_claims_in_the_host_namespace_are_bounded(real_host, grants, namespace):
    """Written directly, in every form, also as the scheduler marks its own; none without a grant, after a kill either."""
    other = f"{namespace}-b"
    real_host.create_namespace(other)
    try:
        grants.bind(namespace, guarantee="1")
        grants.bind(other, guarantee="3")
        grants.fleet.start()
        grants.until(namespace, "1")
        grants.until(other, "3")
        for form, body in HOSTILE.items():
            assert "exceeded quota: sublet-gpu" in refusal(real_host.api, on_host(namespace), body), form
        forged = copy.deepcopy(HOSTILE["plain"])
        forged["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
        assert "exceeded quota: sublet-gpu" in refusal(real_host.api, on_host(namespace), forged)
        real_host.api.post(on_host(other), claim("three", taken(3)))
        grants.change(other, guarantee="1")
        grants.change(namespace, guarantee="3")
        grants.until(other, "1")
        assert grants.status(namespace)["grant"] == "1" and grants.hard(other) == "3"
        grants.fleet.kill()
        real_host.api.delete(f"{on_host(other)}/three")
        grants.fleet.start()
        grants.until(namespace, "3")
        assert grants.hard(namespace) == "3" and grants.hard(other) == "1"
        eventually(lambda: grants.pool()["status"]["granted"] == "4", 60, "the pool's status, which follows")
        shown = {k: grants.pool()["status"][k] for k in ("capacity", "guaranteed", "granted", "free", "mode")}
        assert shown == {"capacity": "4", "guaranteed": "4", "granted": "4", "free": "0", "mode": "dra"}
        assert condition(grants.pool(), "Fenced")["status"] == "True"
        shown = real_host.kubectl("get", "gpupool", POOL).splitlines()
        assert shown[0].split()[:7] == ["NAME", "KIND", "MODE", "CAPACITY", "GUARANTEED", "GRANTED", "FREE"], shown
        assert shown[1].split()[1:6] == ["dra", "4", "4", "4", "0"], shown  # no kind
        hard = real_host.kubectl("-n", namespace, "get", "resourcequota", "sublet-gpu", "-o", "jsonpath={.spec.hard}")
        assert json.loads(hard) == {QUOTA: "3"}
    finally:
        real_host.delete_namespace(other)


def test_devices_that_slices_show_are_the_capacity(real_host, grants, namespace):
    """Stale generations, other drivers, taints, and claims of a namespace without a binding."""
    grants.bind(namespace, guarantee="4")
    grants.fleet.start()
    grants.until(namespace, "4")

    def capacity(want):
        eventually(lambda: grants.pool()["status"]["capacity"] == want, 60, f"a capacity of {want}")
    for name, more in (("nic", {"kind": "nic"}), ("foreign", {})):
        body = slice_of(NODES[0], devices=8, name=f"slice-{name}", **more)
        body["spec"]["pool"]["name"] = name
        if not more:
            body["spec"]["driver"] = "foreign.example.com"
        grants.create(f"{DRA}/resourceslices", body)
    grants.publish(NODES[0], devices=2, generation=2, count=2)  # half of an update
    capacity("2")
    assert grants.status(namespace)["grant"] == "4"
    grants.create(f"{DRA}/resourceslices", slice_of(NODES[0], devices=1, generation=2, count=2, kind="nic", name="slice-second"))
    capacity("4")
    grants.publish(NODES[1], taints=[{"key": "xid", "value": "79", "effect": "NoSchedule"}])
    capacity("2")
    assert condition(grants.pool(), "Overcommitted")["reason"] == "Unhealthy"
    assert grants.status(namespace)["grant"] == "4"
    grants.publish(NODES[1])
    capacity("4")

    other = f"{namespace}-b"
    real_host.create_namespace(other)
    try:
        real_host.api.post(on_host(other), claim("theirs", taken()))
        body = pod("theirs", resourceClaimName="theirs")
        body["spec"]["tolerations"] = [{"operator": "Exists"}]
        real_host.api.post(f"/api/v1/namespaces/{other}/pods", body)
        grants.until(namespace, "3")
        eventually(lambda: grants.hard(namespace) == "3", 60, "the quota, which is lowered after the grant")
        real_host.api.delete(f"/api/v1/namespaces/{other}/pods/theirs", gracePeriodSeconds=0)
        real_host.api.delete(f"{on_host(other)}/theirs")
        grants.until(namespace, "4")
    finally:
        real_host.delete_namespace(other)


def test_what_cannot_be_granted_is_said(real_host, grants, namespace):
    """Over-commitment, a second tenant of a dedicated pool, borrowing; and without the right to read, nothing changes."""
    other = f"{namespace}-b"
    real_host.create_namespace(other)

    def ready(ns, reason):
        eventually(lambda: grants.status(ns) and condition({"status": grants.status(ns)}, "Ready")["reason"] == reason, 60, reason)
    try:
        grants.bind(namespace, guarantee="3")
        grants.fleet.start()
        grants.until(namespace, "3")
        grants.bind(other, guarantee="2")
        ready(other, "Overcommitted")
        assert condition(grants.pool(), "Overcommitted")["reason"] == "Refused"
        grants.change(other, guarantee="1", lend="1")
        ready(other, "Invalid")
        assert "claims of devices are not taken back" in str(grants.status(other)["conditions"])
        real_host.api.patch(f"{GROUP}/gpupools/{POOL}", {"spec": {"kind": "dedicated"}})
        grants.change(other, lend=None)
        ready(other, "PoolDedicated")
        assert grants.hard(other) == "0"

        grants.fleet.stop()
        grants.fleet.write_config(grants={"enabled": True, "grace": "1s"})
        grants.fleet.start()
        eventually(lambda: "grants.deviceClaims" in condition(grants.pool(), "Ready")["message"], 60, "the reason")
        assert grants.hard(namespace) == "3", "what was bounded stays bounded"
    finally:
        real_host.delete_namespace(other)


def test_without_the_right_to_read_nothing_changes(real_host, grants, namespace):
    grants.bind(namespace, guarantee="3")
    grants.fleet.start()
    grants.until(namespace, "3")
    grants.fleet.stop()
    path = next(p for p in grants.made if "/clusterroles/" in p and ":" not in p.rsplit("/", 1)[1])
    role = real_host.api.get(path)
    real_host.api.put(path, dict(role, rules=[r for r in role["rules"] if r.get("apiGroups") != ["resource.k8s.io"]]))
    grants.fleet.start()
    eventually(lambda: condition(grants.pool(), "Ready")["reason"] == "DevicesUnknown", 60, "the reason")
    assert "forbidden" in condition(grants.pool(), "Ready")["message"]
    grants.change(namespace, guarantee="1")
    eventually(lambda: grants.pool()["status"]["granted"] == "3", 30, "the grant as it was")
    assert grants.hard(namespace) == "3" and grants.status(namespace)["grant"] == "3"


def test_the_chart_gives_the_rights_where_they_are_needed(tmp_path):
    def rules(**grants):
        made = chart_objects(tmp_path, config={"pools": [], "grants": grants})
        return [r for o in made if o["kind"] == "ClusterRole" for r in o["rules"] if r.get("apiGroups") == ["resource.k8s.io"]]
    assert rules(enabled=True, deviceClaims=True) == [{"apiGroups": ["resource.k8s.io"], "verbs": ["list", "watch"],
                                                       "resources": ["resourceslices", "resourceclaims", "devicetaintrules"]}]
    assert not rules(enabled=True)
    made = chart_objects(tmp_path, config={"pools": [METERED]})
    assert [r["verbs"] for o in made if o["kind"] == "ClusterRole" for r in o["rules"] if r.get("apiGroups") == ["resource.k8s.io"]] == [
        ["list", "watch"]]
