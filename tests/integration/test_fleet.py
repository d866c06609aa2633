# SPDX-License-Identifier: Apache-2.0
"""`sublet fleet` and `sublet report`: usage and cost per team, from what a real host shows of two tenants' pods."""
import csv
import io
import os
import secrets
from datetime import datetime, timezone
from fractions import Fraction

import pytest
import yaml

from testenv import eventually
from testenv.binaries import TREE
from testenv.fleet import Fleet
from testenv.helm import Helm
from testenv.nodes import pool_config

from test_tenant import host_pod, pod, running

CHART = os.path.join(TREE, "charts", "sublet-fleet")
PRICES = {"a100": "2.50", "shared": "0.60"}


@pytest.fixture
def priced(pools):
    """The pools of the host with prices."""
    listed = [dict(p, metering={"price": PRICES[p["name"]], "currency": "USD"}) for p in pools["pools"]]
    return dict(pools, pools=listed)


@pytest.fixture
def make_fleet(workdir, host, priced):
    """make_fleet(**kw) -> a Fleet in a host namespace of its own; not started."""
    made, tag = [], secrets.token_hex(3)
    namespace = f"fleet-t{tag}"
    host.create_namespace(namespace)

    def make(**kw):
        fleet = Fleet(os.path.join(workdir, "fleet", f"{tag}-{len(made)}"), host, namespace,
                      kw.pop("pools", priced["pools"]), **kw)
        made.append(fleet)
        return fleet

    yield make
    for fleet in made:
        fleet.close()
    host.delete_namespace(namespace)


def gpu_pod(name, gpus, pool, **spec):
    body = pod(name, **spec)
    body["metadata"]["labels"] = {"sublet.dev/gpu-pool": pool}
    body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return body


def check_sums(report):
    """All lines of a report are the capacity on record, exactly, pool by pool; returns {pool: capacity}."""
    for b in report["balances"]:
        held, idle, unhealthy, capacity, unmatched = (
            Fraction(b[k]) for k in ("held", "idle", "unhealthy", "capacity", "unmatched"))
        assert held + idle + unhealthy == capacity + unmatched, b
        lines = [x for x in report["lines"] if x["pool"] == b["pool"]]
        assert sum(Fraction(x["gpuHoursExact"]) for x in lines) == held + idle + unhealthy
    return {b["pool"]: Fraction(b["capacity"]) for b in report["balances"]}


def seconds(line):
    return Fraction(line["gpuHoursExact"]) * 3600


def held_seconds(fleet, by="tenant,pool", **want):
    return sum(seconds(line) for line in fleet.lines(by, kind="held", **want))


def host_seconds(obj):
    """From PodScheduled to the last container's end, as the host has it."""
    status = obj["status"]
    begin = next(c["lastTransitionTime"] for c in status["conditions"] if c["type"] == "PodScheduled")
    end = max(c["state"]["terminated"]["finishedAt"] for c in status["containerStatuses"])
    parse = datetime.fromisoformat
    return int((parse(end.replace("Z", "+00:00")) - parse(begin.replace("Z", "+00:00"))).total_seconds())


def finish(host, obj):
    """Its container ends now, as its kubelet would say."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = obj["spec"]["containers"][0]["name"]
    path = f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods/{obj['metadata']['name']}/status"
    host.api.patch(path, {"status": {"phase": "Succeeded", "containerStatuses": [
        {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0,
         "state": {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}}]}})
    return host.api.get(path.removesuffix("/status"))


def test_usage_and_bill_per_team(host, tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a, b = tenant("alpha", config=priced), tenant("beta", config=priced)
    a.kubectl.apply(gpu_pod("train", 4, "a100"))
    template = gpu_pod("unused", 1, "shared")
    template["metadata"] = {"labels": {"app": "infer", "sublet.dev/gpu-pool": "shared"}}
    b.kubectl.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "infer"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "infer"}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
    b.kubectl("rollout", "status", "deployment/infer", "--timeout=180s")
    running(a.kubectl, "train")

    # What runs accrues, under its tenant's own names.
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > 0, 60, "alpha's usage")
    line, = fleet.lines("tenant,namespace,pod,pool,product", tenant=a.namespace)
    assert (line["namespace"], line["pod"], line["pool"], line["running"]) == ("default", "train", "a100", 1)
    assert line["product"] == "NVIDIA-A100-SXM4-80GB"

    eventually(lambda: [x["pods"] for x in fleet.lines("tenant,owner", tenant=b.namespace)] == [2], 60, "beta's usage")
    assert fleet.lines("tenant,owner", tenant=b.namespace)[0]["owner"] == "Deployment/infer"

    # A pod that ended is billed for the time that the host shows, and no more.
    ended = finish(host, host_pod(a, "train"))
    want = 4 * host_seconds(ended)
    eventually(lambda: fleet.lines(tenant=a.namespace)[0]["running"] == 0, 30, "the end on record")
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) == want, 30, "the whole of it to be seen")
    assert Fraction(fleet.lines(tenant=a.namespace)[0]["costExact"]) == Fraction(want, 3600) * Fraction("2.50")
    assert fleet.lines(tenant=a.namespace)[0]["estimated"] == 0

    report = fleet.report()
    check_sums(report)
    assert {x["pool"] for x in report["lines"]} >= {"a100", "shared"}
    table = fleet.print_report()
    assert "checked exactly" in table and a.namespace in table and "USD" in table
    focus = list(csv.DictReader(io.StringIO(fleet.print_report("--format", "focus"))))
    assert {r["BillingAccountId"] for r in focus} >= {a.namespace, b.namespace}
    assert all(r["BillingCurrency"] == "USD" for r in focus)
    assert {r["kind"] for r in csv.DictReader(io.StringIO(fleet.print_report("--format", "csv")))} >= {"held", "idle"}

    # One of the two A100 machines fails: its time is unhealthy, and is billed to no team.
    a.kubectl.apply(gpu_pod("again", 1, "a100"))
    running(a.kubectl, "again")
    node = host_pod(a, "again")["spec"]["nodeName"]
    before = host.api.get(f"/api/v1/nodes/{node}")
    host.remove_node(node)
    try:
        eventually(lambda: fleet.lines("node", kind="idle", node=node), 30, "its idle time on record")

        def stands_still():
            first = held_seconds(fleet, "node,tenant", node=node)
            until = fleet.report()["until"]
            eventually(lambda: fleet.report()["until"] > until, 30, "the host to be seen again")
            return held_seconds(fleet, "node,tenant", node=node) == first
        eventually(stands_still, 60, "nothing more to be billed on a lost node")
        check_sums(fleet.report())
    finally:
        for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            before["metadata"].pop(key, None)
        before["spec"] = {k: v for k, v in before["spec"].items() if k == "taints"}
        before["spec"]["taints"] = [t for t in before["spec"].get("taints", [])
                                    if not t["key"].startswith("node.kubernetes.io/")]
        host.add_node(before)


def test_killed_and_restarted(host, tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a = tenant("alpha", config=priced)
    for name in ("stays", "ends", "vanishes"):
        a.kubectl.apply(gpu_pod(name, 1, "a100"))
    for name in ("stays", "ends", "vanishes"):
        running(a.kubectl, name)
    eventually(lambda: len(fleet.lines("tenant,pod", tenant=a.namespace)) == 3, 30, "all three on record")

    # While no process observes, one ends, one is deleted without a trace, and one begins.
    fleet.kill()
    ended = finish(host, host_pod(a, "ends"))
    vanished = host_pod(a, "vanishes")["metadata"]["name"]
    host.api.delete(f"/api/v1/namespaces/{a.namespace}/pods/{vanished}", {"gracePeriodSeconds": 0})
    a.kubectl.apply(gpu_pod("begins", 1, "a100"))
    running(a.kubectl, "begins")
    begun = host_pod(a, "begins")
    fleet.start()

    def line(name):
        lines = fleet.lines("tenant,pod", tenant=a.namespace, pod=name)
        return lines[0] if lines else None
    eventually(lambda: line("begins"), 30, "the pod that began meanwhile")
    assert line("ends")["running"] == 0 and line("ends")["estimated"] == 0
    assert seconds(line("ends")) == host_seconds(ended)
    assert line("vanishes")["running"] == 0 and line("vanishes")["estimated"] == 1
    assert line("stays")["running"] == 1 and line("stays")["pods"] == 1
    assert Fraction(fleet.report()["unobservedSeconds"]) > 0

    # Killed again and again: what is on record does not change.
    for _ in range(3):
        fleet.kill()
        fleet.start()
    assert seconds(line("ends")) == host_seconds(ended)
    assert [line(n)["pods"] for n in ("stays", "ends", "vanishes", "begins")] == [1, 1, 1, 1]
    finished = finish(host, begun)
    eventually(lambda: line("begins")["running"] == 0, 30, "its end")
    eventually(lambda: seconds(line("begins")) == host_seconds(finished), 30, "its time")
    check_sums(fleet.report())


def test_prices_have_a_history(tenant, priced, make_fleet):
    fleet = make_fleet().start()
    a = tenant("alpha", config=priced)
    a.kubectl.apply(gpu_pod("train", 1, "a100"))
    running(a.kubectl, "train")
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > 0, 60, "alpha's usage")
    fleet.stop()
    paid = fleet.lines(tenant=a.namespace)[0]
    end = fleet.report()["until"]
    assert Fraction(paid["costExact"]) == Fraction(paid["gpuHoursExact"]) * Fraction("2.50")

    dear = [dict(p, metering={"price": "5", "currency": "USD"}) for p in priced["pools"]]
    fleet.write_config(pools=dear)
    fleet.start()
    eventually(lambda: held_seconds(fleet, tenant=a.namespace) > seconds(paid), 60, "more usage")
    then = [x for x in fleet.report("tenant,pool", "--to", end)["lines"] if x.get("tenant") == a.namespace][0]
    now = fleet.lines(tenant=a.namespace)[0]
    assert then["costExact"] == paid["costExact"]
    hours = Fraction(now["gpuHoursExact"]) - Fraction(paid["gpuHoursExact"])
    cost = Fraction(now["costExact"]) - Fraction(paid["costExact"])
    assert hours * Fraction("2.50") < cost <= hours * 5


def test_one_acts_at_a_time(host, make_fleet):
    first = make_fleet().start()
    second = make_fleet().start(wait=False)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{first.config['host']['namespace']}/leases/sublet-fleet"
    holder = host.api.get(lease)["spec"]["holderIdentity"]
    eventually(lambda: "has the Lease" in second.process.tail(), 30, "the second to stand by")
    assert "ready" not in second.process.output()
    first.stop()
    second.wait_ready()
    assert host.api.get(lease)["spec"]["holderIdentity"] not in ("", holder)


@pytest.fixture
def helm(tmp_path):
    return Helm(tmp_path)


def render(helm, namespace, values):
    text = helm("template", "fleet", CHART, "-n", namespace, values=values)
    return [o for o in yaml.safe_load_all(text) if o]


def test_the_charts_rights_are_enough(host, helm, make_fleet, priced):
    """Its ClusterRole reads nodes and pods, its Role writes one Lease; without them it ends with the reason."""
    fleet = make_fleet()
    namespace = fleet.config["host"]["namespace"]
    rules = [o for o in render(helm, namespace, {"config": {"pools": priced["pools"]}})
             if o["apiVersion"].startswith("rbac.")]
    assert sorted(o["kind"] for o in rules) == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    granted = {v for o in rules if o["kind"] == "ClusterRole" for r in o["rules"] for v in r["verbs"]}
    assert granted == {"get", "list", "watch"}
    kubeconfig = host.service_account_kubeconfig(namespace, "fleet")
    fleet.write_config(host={"namespace": namespace, "kubeconfig": kubeconfig})
    fleet.start(wait=False)
    assert fleet.process.wait(60) == 1
    assert "forbidden" in fleet.process.tail().lower()
    paths = []
    try:
        for o in rules:
            scope = f"/namespaces/{namespace}" if "namespace" in o["metadata"] else ""
            path = f"/apis/{o['apiVersion']}{scope}/{o['kind'].lower()}s"
            host.api.post(path, o)
            paths.append(f"{path}/{o['metadata']['name']}")
        fleet.start()
    finally:
        for path in paths:
            host.api.delete(path)


def test_the_chart(helm, priced):
    helm("lint", "--strict", CHART, values={"config": {"pools": priced["pools"]}})
    objects = {o["kind"]: o for o in render(helm, "sublet-system", {"config": {"pools": priced["pools"]}})}
    config = yaml.safe_load(objects["ConfigMap"]["data"]["fleet.yaml"])
    assert config["host"] == {"namespace": "sublet-system"} and config["pools"] == priced["pools"]
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert objects["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert pod["securityContext"]["runAsNonRoot"] and pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert {m["mountPath"] for m in pod["containers"][0]["volumeMounts"]} == {"/etc/sublet", config["store"]["path"]}
    assert objects["PersistentVolumeClaim"]["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "pools" in helm.fails("template", "fleet", CHART, values={})
    assert "pool" in helm.fails("template", "fleet", CHART, values={"pool": []})


def test_a_shared_device_is_a_fraction(host, tenant, make_fleet):
    """Time-slicing: ten replicas of a device are one GPU; one second of one is a tenth of a second."""
    tag = secrets.token_hex(3)
    sliced = pool_config(f"sliced-{tag}", "l4", kind="shared", mode="time-slicing",
                         rename={"nvidia.com/gpu": "nvidia.com/gpu.shared"},
                         resources={"nvidia.com/gpu": {"gpuEq": "1/10"}},
                         metering={"price": "1", "currency": "EUR"})
    host.add_gpu_node(f"sliced-{tag}", pool=f"sliced-{tag}", model="l4", gpus=2, replicas=10,
                      resource="nvidia.com/gpu.shared")
    try:
        fleet = make_fleet(pools=[sliced]).start()
        a = tenant("alpha", config={"pools": [sliced], "bindings": [
            {"pool": f"sliced-{tag}", "guarantee": "1", "default": True}]})
        a.kubectl.apply(gpu_pod("slice", 1, f"sliced-{tag}"))
        running(a.kubectl, "slice")
        eventually(lambda: fleet.lines(tenant=a.namespace), 30, "its usage")
        ended = finish(host, host_pod(a, "slice"))
        want = Fraction(host_seconds(ended), 10)
        eventually(lambda: held_seconds(fleet, tenant=a.namespace) == want, 30, "a tenth of its time")
        check_sums(fleet.report())
    finally:
        host.remove_node(f"sliced-{tag}")
