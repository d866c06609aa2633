# SPDX-License-Identifier: Apache-2.0
"""GPUPool and GPUBinding on a real host, and what `sublet fleet` grants by them."""
import datetime
import json
import os
import re
import secrets
from fractions import Fraction

import pytest
import yaml

from testenv import eventually
from testenv.api import ApiError
from testenv.binaries import TREE
from testenv.fleet import Fleet, chart_crds, chart_objects
from testenv.held import HeldHost

from test_host_compare import check
from test_pools import workload

GROUP = "/apis/sublet.dev/v1alpha1"
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


def refused(call, *args, **query):
    """The Status of a request that the host must refuse for what it holds."""
    with pytest.raises(ApiError) as raised:
        call(*args, **query)
    assert raised.value.code in (400, 422), raised.value
    return json.dumps(raised.value.status).replace('\\"', '"')


@pytest.fixture
def namespace(host):
    name = f"grants-{secrets.token_hex(3)}"
    host.create_namespace(name)
    yield name
    host.delete_namespace(name)


def pool_object(name, **spec):
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": name},
            "spec": {"nodeSelector": {"sublet.dev/pool": name}, **spec}}


def binding_object(pool, name=None, **spec):
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "GPUBinding", "metadata": {"name": name or pool},
            "spec": {"pool": pool, **spec}}


def bindings_of(namespace):
    return f"{GROUP}/namespaces/{namespace}/gpubindings"


def test_a_host_accepts_what_the_configuration_accepts(host, gpu_crds, namespace, pools):
    """Every key of pools and bindings as the configuration has it; nothing is pruned."""
    for item in pools["pools"]:
        made = pool_object(item["name"], **{k: v for k, v in item.items() if k != "name"})
        assert host.api.post(f"{GROUP}/gpupools", made, **STRICT)["spec"] == made["spec"]
    whole = pool_object(
        "whole", kind="shared", trust="cooperative", mode="time-slicing", products=["NVIDIA-L4"],
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 30}],
        resources={"nvidia.com/gpu": {"gpuEq": "1/4", "perPod": 2, "variables": ["EXAMPLE_VISIBLE_DEVICES"]}},
        rename={"nvidia.com/gpu": "nvidia.com/gpu.shared"}, runtimeClass="nvidia", priorityTiers={"high": "gpu-high"},
        caps={"perPodGPU": 2, "perContainerGPU": 1, "gpuPodsPerMinute": 60, "maxLifetime": "72h"}, defaultTier="high",
        release={"onNodeLossAfter": "10m"}, scheduler={"name": "default-scheduler", "kind": "none", "queueTemplate": ""},
        metering={"price": "2.50", "currency": "USD", "per": "GPUHour", "borrowFactor": "0.8"})
    assert host.api.post(f"{GROUP}/gpupools", whole, **STRICT)["spec"] == whole["spec"]
    claims = pool_object("claims", mode="dra", deviceClasses={"gpu.example.com": {"gpuEq": 1, "perClaim": 2, "config": [
        {"driver": "gpu.example.com", "parameters": {"kind": "X", "deep": {"a": [1]}}}],
                         "devices": {"driver": "gpu.example.com", "attributes": {"type": "gpu", "example.com/x": "true"}}}})
    assert host.api.post(f"{GROUP}/gpupools", claims, **STRICT)["spec"] == claims["spec"]
    bound = binding_object("whole", guarantee="1/7", burst=2, lend="0.1", overQuota="queue", queueOrder="strict",
                           queueHold="10m", default=True,
                           budget={"amount": "1500.00", "currency": "USD", "period": "Month", "warnAt": [50, 120], "enforcement": "Queue"})
    posted = host.api.post(bindings_of(namespace), bound, **STRICT)
    assert posted["spec"] == bound["spec"]


def test_the_example_and_the_page_are_accepted(host, gpu_crds, namespace):
    with open(os.path.join(TREE, "examples", "grants.yaml"), encoding="utf-8") as f:
        shown = list(yaml.safe_load_all(f))
    with open(os.path.join(TREE, "docs", "grants.md"), encoding="utf-8") as f:
        page = re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S)
    shown += [o for block in page for o in yaml.safe_load_all(block) if "kind" in o]
    assert len(shown) == 7
    for o in shown:
        o["metadata"].pop("namespace", None)
        host.api.post(f"{GROUP}/gpupools" if o["kind"] == "GPUPool" else bindings_of(namespace), o, **STRICT)


@pytest.mark.parametrize("spec, message", [
    ({}, "nodeSelector"),
    ({"nodeSelector": {}}, "nodeSelector"),
    ({"mode": "fast"}, 'Unsupported value: "fast"'),
    ({"unknown": 1}, "unknown field"),
    ({"products": ["x" * 254]}, "Too long"),
    ({"products": ["x"] * 65}, "must have at most 64 items"),
    ({"rename": {f"k{i}": "v" for i in range(65)}}, "must have at most 64"),
    ({"rename": {"k" * 318: "v"}}, "at most 317 characters"),
    ({"resources": {"nvidia.com/gpu": {}}}, "gpuEq"),
    ({"resources": {"nvidia.com/gpu": {"gpuEq": "-1"}}}, "gpuEq"),
    ({"resources": {"nvidia.com/gpu": {"gpuEq": -1}}}, "gpuEq"),
    ({"resources": {"nvidia.com/gpu": {"gpuEq": "1" * 41}}}, "gpuEq"),
    ({"caps": {"perPodGPU": -1}}, "perPodGPU"),
    ({"caps": {"maxLifetime": "3 days"}}, "maxLifetime"),
    ({"maintenance": {"state": "drian"}}, 'Unsupported value: "drian"'),
    ({"maintenance": {"state": "drain", "start": "2026-12-02T08:00:00Z", "until": "2026-12-01T08:00:00Z"}}, "until must be after start"),
    ({"maintenance": {"state": "drain", "until": "1969-12-31T08:00:00Z"}}, "until must be after start"),
    ({"maintenance": {"state": "drain", "start": "2026-02-30T08:00:00Z"}}, "spec"),
    ({"maintenance": {"state": "drain", "grace": "25h"}}, "maintenance.grace is 1s to 24h"),
    ({"maintenance": {"state": "drain", "grace": "999ms"}}, "maintenance.grace is 1s to 24h"),
    ({"maintenance": {"state": "drain", "reason": "two\nlines"}}, "maintenance.reason is one line of at most 200 bytes"),
    ({"maintenance": {"state": "drain", "reason": "\u00e9" * 101}}, "maintenance.reason is one line of at most 200 bytes"),
])
def test_a_host_refuses_a_pool_that_is_none(host, gpu_crds, spec, message):
    body = pool_object("refused", **spec)
    if not spec:
        del body["spec"]["nodeSelector"]
    assert message in refused(host.api.post, f"{GROUP}/gpupools", body, **STRICT)


@pytest.mark.parametrize("spec, message", [
    ({}, "guarantee or burst is needed"),
    ({"guarantee": "four"}, "guarantee"),
    ({"guarantee": "4", "lend": "1/0"}, "lend"),
    ({"guarantee": "4", "overQuota": "borrow"}, "overQuota"),
    ({"guarantee": "4", "queueHold": "soon"}, "queueHold"),
    ({"guarantee": "4", "budget": {}}, "budget.amount"),
    ({"guarantee": "4", "budget": {"amount": "1/2"}}, "budget.amount"),
    ({"guarantee": "4", "budget": {"amount": "1", "enforcement": "End"}}, 'Unsupported value: "End"'),
    ({"guarantee": "4", "budget": {"amount": "1", "warnAt": [0]}}, "budget.warnAt"),
])
def test_a_host_refuses_a_binding_that_is_none(host, gpu_crds, namespace, spec, message):
    assert message in refused(host.api.post, bindings_of(namespace), binding_object("any", **spec), **STRICT)


def test_status_is_apart_and_shown(host, gpu_crds, namespace):
    """status is written by its subresource alone; kubectl shows the columns; a binding keeps its pool."""
    path = bindings_of(namespace)
    made = host.api.post(path, dict(binding_object("a100", guarantee="4", burst="8"), status={"grant": "99"}))
    assert "status" not in made
    pool = pool_object("a100")["spec"]
    made["status"] = {"grant": "4", "pool": {"name": "a100", **pool}, "observedGeneration": 1,
                      "reclaim": {"gpus": "1/7", "notBefore": "2026-01-01T00:00:00Z"},
                      "conditions": [{"type": "Ready", "status": "True", "reason": "Granted", "message": "",
                                      "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    written = host.api.put(f"{path}/a100/status", made)
    assert written["status"] == made["status"]
    made = written
    made["status"]["grant"] = "-1"
    assert "status.grant" in refused(host.api.put, f"{path}/a100/status", made)
    shown = host.kubectl.within(namespace)("get", "gbind", "-o", "wide").splitlines()
    assert shown[0].split() == ["NAME", "POOL", "GUARANTEE", "BURST", "GRANT", "READY", "REASON", "RECLAIM", "NOT-BEFORE", "SPENT",
                                "FORECAST", "BUDGET", "AGE"]
    assert shown[1].split()[:8] == ["a100", "a100", "4", "8", "4", "True", "Granted", "1/7"]
    assert "pool is immutable" in refused(host.api.patch, f"{path}/a100", {"spec": {"pool": "l4"}})


def test_the_chart_keeps_the_definitions(tmp_path):
    """Uninstalling the chart must not delete every pool and binding of the host."""
    made = chart_crds(tmp_path)
    assert sorted(c["metadata"]["name"] for c in made) == ["gpubindings.sublet.dev", "gpupools.sublet.dev"]
    assert all(c["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for c in made)
    assert chart_crds(tmp_path, crds={"install": False}) == []


def test_rights_for_queues_are_only_with_them(tmp_path):
    """The chart gives rights to Queues of KAI with grants.kaiQueues, and none without."""
    def rights(**grants):
        return [r["verbs"] for o in chart_objects(tmp_path, config={"pools": [], "grants": grants}) if o["kind"] == "ClusterRole"
                for r in o["rules"] if "queues" in r["resources"]]
    assert rights(enabled=True) == []
    assert rights(enabled=True, kaiQueues=True) == [["list", "watch", "create", "update", "delete"]]


# --- grants ---------------------------------------------------------------------------------------------

QUOTA = "requests.nvidia.com/gpu"


class Grants:
    """A fleet that grants, with no other rights than the chart gives it, and the pool a100 (16 GPUs) as a GPUPool."""

    def __init__(self, host, directory, tag, pools):
        self.host, self.namespace, self.made = host, f"fleet-{tag}", []
        host.create_namespace(self.namespace)
        kubeconfig = host.service_account_kubeconfig(self.namespace, "fleet")
        self.fleet = Fleet(os.path.join(directory, "fleet"), host, self.namespace, pools["pools"], kubeconfig=kubeconfig,
                           args=("--listen", "127.0.0.1:0"))
        self.fleet.write_config(grants={"enabled": True, "grace": "1s", "lendPause": "10s"})
        spec = {k: v for k, v in pools["pools"][0].items() if k != "name"}
        self.create(f"{GROUP}/gpupools", pool_object("a100", **{**spec, "kind": "shared"}))

    def create(self, path, body):
        self.made.append(f"{path}/{body['metadata']['name']}")
        return self.host.api.post(path, body)

    def allow(self, directory):
        values = {"config": {"pools": [], "grants": {"enabled": True, "kaiQueues": "kaiQueues" in self.fleet.config["grants"]}}}
        for o in chart_objects(directory, self.namespace, **values):
            if o["apiVersion"].startswith("rbac."):
                scope = f"/namespaces/{self.namespace}" if "namespace" in o["metadata"] else ""
                self.create(f"/apis/{o['apiVersion']}{scope}/{o['kind'].lower()}s", o)

    def bind(self, namespace, **spec):
        self.create(bindings_of(namespace), binding_object("a100", **spec))

    def status(self, namespace):
        self.check()
        return self.host.api.get(f"{bindings_of(namespace)}/a100").get("status", {})

    def quota(self, namespace):
        return int(self.host.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/sublet-gpu")["spec"]["hard"][QUOTA])

    def check(self):
        """No GPU is promised twice, whenever one looks."""
        self.fleet.process.check()
        listed = self.host.api.get("/api/v1/resourcequotas", fieldSelector="metadata.name=sublet-gpu")["items"]
        assert sum(int(q["spec"]["hard"].get(QUOTA, 0)) for q in listed) <= 16, listed

    def until(self, namespace, **want):
        """Waits until the status of the namespace's binding has these members."""
        def is_so():
            status = self.status(namespace)
            return status if all(status.get(k) == v for k, v in want.items()) else None
        return eventually(is_so, 60, f"{namespace}: {want}")

    def pod(self, namespace, name, gpus):
        pool = self.host.api.get(f"{GROUP}/gpupools/a100")["spec"]
        return self.host.api.post(f"/api/v1/namespaces/{namespace}/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeSelector": pool["nodeSelector"], "tolerations": pool["tolerations"], "containers": [
                {"name": "main", "image": "example.com/x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})

    def end(self, namespace, name):
        self.host.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", gracePeriodSeconds=0)

    def close(self):
        self.fleet.close()
        for path in reversed(self.made):
            self.host.api.delete(path)
        self.host.delete_namespace(self.namespace)


@pytest.fixture
def grants(host, gpu_crds, workdir, pools, tmp_path):
    tag = secrets.token_hex(3)
    made = Grants(host, os.path.join(workdir, f"grants-{tag}"), tag, pools)
    try:
        made.allow(tmp_path)
        yield made
    finally:
        made.close()


def condition(obj, kind):
    return next(c for c in obj["status"]["conditions"] if c["type"] == kind)


def test_a_guarantee_is_taken_back(host, grants, namespace, pools):
    """One team has borrowed all of a pool; another gets its guarantee as pods end, across restarts of the fleet."""
    other = f"{namespace}-b"
    host.create_namespace(other)
    try:
        grants.bind(namespace, guarantee="4", burst=12)
        grants.fleet.start()
        status = grants.until(namespace, grant="16")
        assert status["pool"]["name"] == "a100" and status["pool"]["nodeSelector"] == pools["pools"][0]["nodeSelector"]
        assert grants.quota(namespace) == 16
        grants.pod(namespace, "one", 8)
        grants.pod(namespace, "two", 8)
        grants.bind(other, guarantee="8")
        status = grants.until(namespace, grant="8")
        status = eventually(lambda: grants.status(namespace).get("reclaim"), 60, "the notice")
        assert status["gpus"] == "8"
        grants.until(other, grant="0")
        assert grants.quota(namespace) == 16, "its pods still run"
        grants.fleet.kill()
        grants.end(namespace, "one")
        grants.fleet.start()
        grants.until(other, grant="8")
        assert grants.quota(namespace) == 8 and grants.quota(other) == 8
        assert "reclaim" not in grants.until(namespace, grant="8")
        grants.pod(other, "three", 8)
        eventually(lambda: host.api.get(f"/api/v1/namespaces/{other}/pods/three")["spec"].get("nodeName"), 60, "its pod placed")
        with pytest.raises(ApiError) as raised:  # whatever the tenant's process does
            grants.pod(namespace, "four", 1)
        assert raised.value.code == 403 and "exceeded quota: sublet-gpu" in str(raised.value)
        pool = host.api.get(f"{GROUP}/gpupools/a100")
        shown = {k: pool["status"][k] for k in ("capacity", "guaranteed", "granted", "free")}
        assert shown == {"capacity": "16", "guaranteed": "12", "granted": "16", "free": "0"}
        metrics = grants.fleet.metrics()
        labels = frozenset({("pool", "a100"), ("tenant", namespace)})
        assert metrics["sublet_fleet_granted_gpus"][labels] == 8 and metrics["sublet_fleet_borrowed_gpus"][labels] == 4
        assert metrics["sublet_fleet_guaranteed_gpus"][labels] == 4
        pool = dict(labels)["pool"]
        assert 0 < metrics["sublet_fleet_fairness_index"][frozenset({("pool", pool)})] <= 1
        assert metrics["sublet_fleet_bindings"][frozenset({("pool", pool), ("state", "Granted")})] >= 1
        grants.end(namespace, "two")
        grants.end(other, "three")
    finally:
        host.delete_namespace(other)


def test_an_idle_guarantee_is_lent(host, grants, namespace):
    """Of what a tenant reports that it does not want, another borrows; it comes back when it is wanted, across a kill."""
    other = f"{namespace}-b"
    host.create_namespace(other)
    demand = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sublet-gpu-demand"}, "data": {"a100": "1"}}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    try:
        grants.bind(namespace, guarantee="16", lend="12")
        grants.bind(other, burst="16")
        grants.fleet.start()
        grants.until(namespace, grant="16")
        grants.until(other, grant="0")
        host.api.post(path, demand)
        grants.until(namespace, grant="4")
        grants.until(other, grant="12")
        assert grants.quota(namespace) == 4 and grants.quota(other) == 12
        assert condition(host.api.get(f"{bindings_of(other)}/a100"), "Borrowing")["status"] == "True"
        host.api.put(f"{path}/sublet-gpu-demand", dict(demand, data={"a100": "9"}))
        grants.fleet.kill()
        grants.fleet.start()
        grants.until(namespace, grant="9", lent="7")
        grants.until(other, grant="7")
    finally:
        host.delete_namespace(other)


def demand_of(vc):
    """What the tenant's process reports, or None; the object has the marks of its cluster."""
    found = vc.host.api.get(f"/api/v1/namespaces/{vc.namespace}/configmaps", fieldSelector="metadata.name=sublet-gpu-demand")["items"]
    if not found:
        return None
    meta = found[0]["metadata"]
    assert meta["labels"] == {"app.kubernetes.io/managed-by": "sublet", "app.kubernetes.io/instance": vc.name}, meta
    assert set(meta["annotations"]) == {"sublet.dev/cluster-uid", "sublet.dev/epoch"}, meta
    return found[0]["data"]


def ready_of(vc):
    return vc.api.get("/apis/apps/v1/namespaces/default/deployments/work")["status"].get("readyReplicas", 0)


def test_a_tenant_takes_its_guarantee_back(host, grants, tenant):
    """Two tenants' own processes and a fleet: one lends what it does not use, and has it back when its Deployment grows."""
    following = {"fleet": {"bindings": True, "lendAfter": "1s"}}
    a, b = (tenant(name, config=following, on=host) for name in ("lender", "borrower"))
    grants.bind(a.namespace, guarantee="4", lend="2", default=True)
    grants.bind(b.namespace, guarantee="12", burst="4", default=True)
    grants.fleet.start()
    assert eventually(lambda: demand_of(a), 60, "the report of an idle tenant") == {"a100": "0"}
    a.kubectl.apply(workload("Deployment", "work", replicas=1))
    b.kubectl.apply(workload("Deployment", "work", replicas=14))
    eventually(lambda: demand_of(a) == {"a100": "1"} and demand_of(b) == {"a100": "14"}, 60, "their reports")
    grants.until(b.namespace, grant="14")
    grants.until(a.namespace, grant="2")
    eventually(lambda: ready_of(a) == 1 and ready_of(b) == 14, 120, "what is lent to run")
    assert grants.quota(a.namespace) == 2

    a.kubectl("scale", "deployment", "work", "--replicas=4")
    eventually(lambda: demand_of(a) == {"a100": "4"}, 60, "the report of a tenant that wants its own")
    grants.until(b.namespace, grant="12")
    eventually(lambda: ready_of(a) == 4, 120, "the lender's own pods to run")
    eventually(lambda: ready_of(b) == 12, 120, "what the borrower keeps")
    assert "reclaim" not in grants.until(a.namespace, grant="4")
    assert grants.quota(a.namespace) == 4 and grants.quota(b.namespace) == 12

    until = grants.status(a.namespace)["lendPause"]
    assert until["lend"] == "0", until
    a.kubectl("scale", "deployment", "work", "--replicas=1")
    eventually(lambda: demand_of(a) == {"a100": "1"}, 60, "less")
    ended = eventually(lambda: "lendPause" not in grants.status(a.namespace) and datetime.datetime.now(datetime.timezone.utc), 60,
                       "the end of the pause, without any other change")
    assert ended >= datetime.datetime.fromisoformat(until["until"].replace("Z", "+00:00")), (until, ended)
    eventually(lambda: ready_of(b) == 14, 120, "what is lent again to run")
    for vc in (a, b):
        vc.kubectl("create", "configmap", "sublet-gpu-demand", "--from-literal=a100=0")  # the tenant's own, and no more
        assert "sublet-gpu-demand" not in str(check(vc)), "it is expected"
    assert demand_of(a) == {"a100": "1"} and demand_of(b) == {"a100": "14"}


def test_refusals_are_conditions(host, grants, namespace):
    """What does not fit is refused with the reason; what is deleted is bounded by 0."""
    other = f"{namespace}-b"
    host.create_namespace(other)
    try:
        grants.bind(namespace, guarantee="10")
        grants.fleet.start()
        grants.until(namespace, grant="10")
        grants.bind(other, guarantee="7")
        eventually(lambda: grants.status(other).get("conditions"), 60, "its conditions")
        ready = condition(host.api.get(f"{bindings_of(other)}/a100"), "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "Overcommitted") and other in ready["message"], ready
        over = eventually(lambda: condition(host.api.get(f"{GROUP}/gpupools/a100"), "Overcommitted"), 60, "the pool's")
        assert over["status"] == "True" and f"{other}/a100" in over["message"]
        host.api.delete(grants.made.pop(grants.made.index(f"{bindings_of(namespace)}/a100")))
        grants.until(other, grant="7")
        assert grants.quota(namespace) == 0
    finally:
        host.delete_namespace(other)


ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def forbid(grants, name, group, resource, operations, refuses):
    """A policy of the host that refuses these writes; returns once it does, by a probe that `refuses` makes."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": [resource]}
    grants.create(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.namespace != '{name}'", "message": "quotas are ours"}]}})
    grants.create(f"{ADMISSION}/validatingadmissionpolicybindings", {
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}})
    eventually(lambda: refuses() in (403, 422), 60, "the policy")


def permit(grants, name):
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        grants.host.api.delete(grants.made.pop(grants.made.index(f"{ADMISSION}/{kind}/{name}")))


def test_a_policy_that_refuses_one_quota_stops_no_other(host, grants, namespace):
    """A refused write is a condition, a metric and one line of the log; other grants go on, and so does it afterwards."""
    other = f"{namespace}-b"
    host.create_namespace(other)
    quotas = f"/api/v1/namespaces/{other}/resourcequotas"
    probe = {"metadata": {"name": "probe"}, "spec": {"hard": {"pods": "1"}}}
    try:
        forbid(grants, other, "", "resourcequotas", ["CREATE", "UPDATE"],
               lambda: host.api.raw("POST", quotas, probe, query={"dryRun": "All"})[0])
        grants.bind(other, guarantee="4")
        grants.fleet.start()
        grants.bind(namespace, guarantee="4")
        grants.until(namespace, grant="4")
        bounded = eventually(lambda: next((c for c in grants.status(other).get("conditions", []) if c["type"] == "Bounded"), None), 60,
                             "the condition")
        assert (bounded["status"], bounded["reason"]) == ("False", "QuotaRefused") and "quotas are ours" in bounded["message"], bounded
        fenced = eventually(lambda: (c := condition(host.api.get(f"{GROUP}/gpupools/a100"), "Fenced"))["status"] == "False" and c, 60,
                            "the pool's condition")
        assert fenced["reason"] == "WriteRefused" and f'namespace "{other}"' in fenced["message"], fenced
        host.api.patch(f"{bindings_of(namespace)}/a100", {"spec": {"guarantee": "12"}})  # beside what is reserved for the other
        grants.until(namespace, grant="12")
        host.api.patch(f"{bindings_of(namespace)}/a100", {"spec": {"guarantee": "2"}})
        grants.until(namespace, grant="2")
        assert grants.status(other)["grant"] == "0"
        assert grants.fleet.metrics()["sublet_fleet_refused_writes"][frozenset({("kind", "ResourceQuota")})] == 1
        assert grants.fleet.process.tail().count("is refused, and tried again") == 1
        permit(grants, other)
        grants.until(other, grant="4")
        eventually(lambda: not any(c["type"] == "Bounded" for c in grants.status(other)["conditions"]), 60, "no more trouble")
        eventually(lambda: condition(host.api.get(f"{GROUP}/gpupools/a100"), "Fenced")["status"] == "True", 60, "no more trouble")
    finally:
        host.delete_namespace(other)


def test_a_webhook_that_cannot_be_called_is_a_refusal(host, grants, namespace):
    """The host answers an internal error for one kind and namespace: a condition and a metric say so, and pauses grow."""
    hooks = f"{ADMISSION}/validatingwebhookconfigurations"
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    probe = {"metadata": {"name": "probe"}, "spec": {"hard": {"pods": "1"}}}
    host.api.post(hooks, {"metadata": {"name": namespace}, "webhooks": [{
        "name": "down.example.com", "clientConfig": {"url": "https://127.0.0.1:1/down"}, "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["resourcequotas"]}]}]})
    try:
        eventually(lambda: host.api.raw("POST", quotas, probe, query={"dryRun": "All"})[0] == 500, 60, "the webhook")
        grants.bind(namespace, guarantee="4")
        grants.fleet.start()
        bounded = eventually(lambda: next((c for c in grants.status(namespace).get("conditions", []) if c["type"] == "Bounded"), None),
                             60, "the condition")
        assert (bounded["status"], bounded["reason"]) == ("False", "QuotaRefused"), bounded
        assert "failed calling webhook" in bounded["message"], bounded
        assert grants.fleet.metrics()["sublet_fleet_refused_writes"][frozenset({("kind", "ResourceQuota")})] == 1
    finally:
        host.api.delete(f"{hooks}/{namespace}")
    grants.until(namespace, grant="4")


def test_a_policy_that_refuses_one_status_promises_nothing_twice(host, grants, namespace):
    """Of a tenant whose binding cannot be lowered nothing is given to another; the pool says why."""
    other = f"{namespace}-b"
    host.create_namespace(other)
    path = f"{bindings_of(namespace)}/a100"
    try:
        grants.bind(namespace, guarantee="4", burst="12")
        grants.fleet.start()
        grants.until(namespace, grant="16")
        forbid(grants, namespace, "sublet.dev", "gpubindings/status", ["UPDATE"],
               lambda: host.api.raw("PUT", f"{path}/status", host.api.get(path), query={"dryRun": "All"})[0])
        grants.bind(other, guarantee="8")
        fenced = eventually(lambda: (c := condition(host.api.get(f"{GROUP}/gpupools/a100"), "Fenced"))["status"] == "False" and c, 60,
                            "the pool's condition")
        assert fenced["reason"] == "WriteRefused" and f'GPUBinding "{namespace}/a100"' in fenced["message"], fenced
        grants.until(other, grant="0")
        assert grants.status(namespace)["grant"] == "16" and grants.quota(namespace) == 16
        permit(grants, namespace)
        grants.until(namespace, grant="8")
        grants.until(other, grant="8")
    finally:
        host.delete_namespace(other)


def described(host, namespace, kind, name):
    """(type, reason, message) of each Event that `kubectl describe` shows."""
    shown = host.kubectl.within(namespace)("describe", kind, name)
    lines = shown.partition("\nEvents:")[2].splitlines()
    rows = [re.match(r"\s+(Normal|Warning)\s+(\w+)\s+\S.*?\ssublet-fleet\s+(.*)", line) for line in lines]
    return [row.groups() for row in rows if row]


def test_changes_are_events(host, grants, namespace):
    """`kubectl describe` of a binding and of a pool shows what was granted, refused, and is taken back."""
    other = f"{namespace}-b"
    host.create_namespace(other)

    def said(name, kind, reason, *words):
        def found():
            return next((m for t, r, m in described(host, name, kind, "a100") if r == reason and all(w in m for w in words)), None)
        return eventually(found, 60, f"an Event {reason} of the {kind} of {name}")
    try:
        grants.bind(namespace, guarantee="4", burst=12)
        grants.fleet.start()
        grants.until(namespace, grant="16")
        said(namespace, "gpubinding", "Granted")
        said(namespace, "gpubinding", "GrantChanged", "16 GPUs")
        said("default", "gpupool", "Served")
        grants.pod(namespace, "one", 8)
        grants.pod(namespace, "two", 8)
        grants.bind(other, guarantee="17")
        assert namespace not in said(other, "gpubinding", "Refused", "Overcommitted", "does not fit").replace(other, "")
        assert other not in said("default", "gpupool", "Overcommitted", "a guarantee does not fit")
        grants.host.api.patch(f"{bindings_of(other)}/a100", {"spec": {"guarantee": "8"}})
        said(namespace, "gpubinding", "Reclaiming", "8 GPUs are to be given back", "pods are ended from")
        said(namespace, "gpubinding", "GrantChanged", "8 GPUs", "before 16")
        said("default", "gpupool", "WithinCapacity")
        grants.end(namespace, "one")
        said(namespace, "gpubinding", "Reclaimed")
        grants.until(other, grant="8")
        events = host.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        assert all(e["source"] == {"component": "sublet-fleet"} and other not in e["message"] for e in events
                   if e["involvedObject"]["kind"] == "GPUBinding"), events
        counts = {e["reason"]: e["count"] for e in events if e["involvedObject"]["kind"] == "GPUBinding"}
        assert counts["GrantChanged"] >= 2, counts
        grants.end(namespace, "two")
    finally:
        host.delete_namespace(other)


def test_a_host_that_takes_no_events_is_granted(host, grants, namespace):
    """A chart older than the process: one line in the log, and grants as ever."""
    role = next(p for p in grants.made if "/clusterroles/" in p)
    rules = host.api.get(role)
    rules["rules"] = [r for r in rules["rules"] if r.get("resources") != ["events"]]
    host.api.put(role, rules)
    grants.bind(namespace, guarantee="4")
    grants.fleet.start()
    grants.until(namespace, grant="4")
    eventually(lambda: "no Events are written" in grants.fleet.process.tail(), 60, "the warning")
    assert grants.fleet.metrics()["sublet_fleet_events_dropped_total"][frozenset()] >= 1
    host.api.patch(f"{bindings_of(namespace)}/a100", {"spec": {"guarantee": "5"}})
    grants.until(namespace, grant="5")
    assert grants.fleet.process.tail().count("no Events are written") == 1


def test_a_host_that_is_slow_with_events_is_granted(host, grants, namespace, tmp_path):
    """Not one Event is answered: grants go on as ever, and the Events are written when the host takes them."""
    held = HeldHost(host, grants.fleet.config["host"]["kubeconfig"], str(tmp_path),
                    held=lambda method, path: method != "GET" and "/events" in path)
    grants.fleet.config["host"]["kubeconfig"] = held.kubeconfig
    grants.fleet.write_config()
    others = [f"{namespace}-{i}" for i in range(8)]
    try:
        for name in others:
            host.create_namespace(name)
            grants.bind(name, guarantee="2")
        grants.fleet.start()
        for name in others:
            grants.until(name, grant="2")
        eventually(lambda: held.n_held, 60, "an Event that is held back")
        for name in others:
            host.api.patch(f"{bindings_of(name)}/a100", {"spec": {"guarantee": "1"}})
        for name in others:
            grants.until(name, grant="1")
        assert not described(host, others[0], "gpubinding", "a100")
        held.release()
        eventually(lambda: any(described(host, name, "gpubinding", "a100") for name in others), 60, "an Event")
    finally:
        held.release()
        for name in others:
            host.delete_namespace(name)
        grants.fleet.stop()
        held.close()


def test_a_write_whose_answer_is_lost_is_said_once(host, grants, namespace, tmp_path):
    """The host has executed it: its Events follow from the object, once."""
    losing = []

    def lost(method, path):
        return bool(losing) and method == "PUT" and f"/{namespace}/gpubindings/" in path
    held = HeldHost(host, grants.fleet.config["host"]["kubeconfig"], str(tmp_path), lost=lost)
    grants.fleet.config["host"]["kubeconfig"] = held.kubeconfig
    grants.fleet.write_config()

    def said_of(gpus):
        """How often a change was said until now, the last time of so many GPUs."""
        events = host.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        event = next((e for e in events if e["reason"] == "GrantChanged"), None)
        return event["count"] if event and event["message"].startswith(f"{gpus} GPUs") else None

    def change(gpus):
        host.api.patch(f"{bindings_of(namespace)}/a100", {"spec": {"guarantee": str(gpus)}})
        grants.until(namespace, grant=str(gpus))
        return eventually(lambda: said_of(gpus), 60, f"the Event of {gpus} GPUs")
    try:
        grants.bind(namespace, guarantee="4")
        grants.fleet.start()
        grants.until(namespace, grant="4")
        before = change(5)
        losing.append(True)
        assert change(6) == before + 1
        assert 200 in held.lost_codes
        losing.clear()
        assert change(7) == before + 2
    finally:
        grants.fleet.stop()
        held.close()


def test_idle_it_writes_nothing(host, grants, namespace):
    """At rest there are no writes: the versions of what it wrote stay."""
    grants.bind(namespace, guarantee="1/2", burst="1/3")
    grants.fleet.start()
    grants.until(namespace, grant="5/6")
    assert Fraction(grants.status(namespace)["grant"]) == Fraction(5, 6) and grants.quota(namespace) == 0

    def versions():
        paths = (f"{bindings_of(namespace)}/a100", f"{GROUP}/gpupools/a100",
                 f"/api/v1/namespaces/{namespace}/resourcequotas/sublet-gpu")
        return [host.api.get(p)["metadata"]["resourceVersion"] for p in paths]
    seen = [None]

    def rests():
        before, seen[0] = seen[0], versions()
        return before == seen[0]
    def run(name):
        grants.pod(namespace, name, 0)
        eventually(lambda: host.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"]["phase"] == "Running", 60, "a pod")
    run("cpu-only")  # on a node of the pool, which a condition says once
    eventually(lambda: condition(host.api.get(f"{GROUP}/gpupools/a100"), "Misused")["status"] == "True", 60, "the condition")
    eventually(rests, 60, "rest")
    run("another")
    assert versions() == seen[0]


def test_faults_of_nodes_are_shown(host, grants, namespace):
    """A node without a taint, with an XID error, or cordoned, and pods without GPUs: in conditions, Events and metrics."""
    pools = f"{GROUP}/gpupools/a100"
    grants.bind(namespace, guarantee="4")
    grants.fleet.start()
    grants.until(namespace, grant="4")
    eventually(lambda: condition(host.api.get(pools), "NodesHealthy")["status"] == "True", 60, "healthy nodes")
    nodes = host.api.get("/api/v1/nodes", labelSelector="sublet.dev/pool=a100")["items"]
    path = f"/api/v1/nodes/{nodes[0]['metadata']['name']}"
    before = host.api.get(path)["spec"].get("taints", [])
    try:
        host.api.patch(path, {"spec": {"taints": None, "unschedulable": True}})
        host.api.patch(f"{path}/status", {"status": {"conditions": [{"type": "XIDError", "status": "True", "reason": "Xid79"}]}},
                       "strategic-merge")
        grants.pod(namespace, "cpu-only", 0)
        name = nodes[0]["metadata"]["name"]

        def seen():
            found = {c["type"]: c for c in host.api.get(pools)["status"]["conditions"]}
            return (found["NodesHealthy"]["reason"] == "Unhealthy" and name in found["NodesHealthy"]["message"]
                    and found["Untainted"]["status"] == "True" and name in found["Untainted"]["message"]
                    and found["Misused"]["status"] == "True")
        eventually(seen, 60, "the conditions")
        shown = {r for _, r, _ in described(host, "default", "gpupool", "a100")}
        assert {"NodesUnhealthy", "Untainted", "PodsWithoutGPUs"} <= shown, shown
        metrics = grants.fleet.metrics()
        of = {dict(k)["state"]: v for k, v in metrics["sublet_fleet_nodes"].items() if dict(k)["pool"] == "a100"}
        assert of["any"] == len(nodes) and of["unhealthy"] >= 1 and of["untainted"] >= 1 and of["cordoned"] >= 1, of
        assert metrics["sublet_fleet_misuse_pods"][frozenset({("pool", "a100"), ("tenant", namespace)})] == 1
    finally:
        host.api.patch(f"{path}/status", {"status": {"conditions": [{"type": "XIDError", "$patch": "delete"}]}}, "strategic-merge")
        host.api.patch(path, {"spec": {"taints": before, "unschedulable": None}})
    eventually(lambda: condition(host.api.get(pools), "NodesHealthy")["status"] == "True", 60, "healthy nodes again")


def status_writes(host):
    """How many requests to write a status of a GPUBinding the API server of the host has answered."""
    lines = host.api.raw("GET", "/metrics")[2].decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("apiserver_request_total{")
               and 'resource="gpubindings"' in line and 'subresource="status"' in line and 'verb="PUT"' in line)


def test_older_definitions_are_not_written_to_for_ever(host, grants, namespace):
    """What the host prunes from a status is written again after pauses that grow; the log says so once."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpubindings.sublet.dev"
    other = f"{namespace}-b"
    host.create_namespace(other)
    whole = host.api.get(path)["spec"]
    older = json.loads(json.dumps(whole))
    for version in older["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        del status["lent"], status["lendPause"]
    try:
        host.api.patch(path, {"spec": older})
        grants.bind(namespace, guarantee="16", lend="12")
        grants.bind(other, burst="16")
        host.api.post(f"/api/v1/namespaces/{namespace}/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sublet-gpu-demand"}, "data": {"a100": "1"}})

        def pruned():
            made = host.api.get(f"{bindings_of(namespace)}/a100")
            made.setdefault("status", {})["lent"] = "1"
            return "lent" not in host.api.put(f"{bindings_of(namespace)}/a100/status", made).get("status", {})
        eventually(pruned, 60, "the older definition to be served")
        grants.fleet.start()
        grants.until(other, grant="12")
        eventually(lambda: "older than this process" in grants.fleet.process.tail(), 60, "the warning")
        before, begun = status_writes(host), datetime.datetime.now()
        eventually(lambda: datetime.datetime.now() - begun > datetime.timedelta(seconds=6), 60, "some pauses")
        assert status_writes(host) - before <= 6
        assert grants.fleet.process.tail().count("older than this process") == 1
        host.api.post(f"/api/v1/namespaces/{other}/configmaps", {  # others are written at once
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sublet-gpu-demand"}, "data": {"a100": "2"}})
        grants.until(namespace, grant="14")
    finally:
        host.api.patch(path, {"spec": whole})
        host.delete_namespace(other)
