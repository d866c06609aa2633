# SPDX-License-Identifier: Apache-2.0
"""ResourceClaims: what a pool grants goes down and is counted once, to the device; what it does not is a 403 at apply time.
The host's own scheduler and controller manager allocate; the driver is a ResourceSlice and nothing more."""
import copy
import json
import threading

import pytest

from testenv import ApiError, eventually
from testenv.nodes import gpu_node

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
TEMPLATES = f"{DRA}/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"
KEY, DRIVER = "sublet.dev/pool", "dev.example.com"
SHARING = {"apiVersion": "dev.example.com/v1", "kind": "Config", "sharing": "exclusive"}
NODE = "dra-node"


def pool(**more):
    return {"name": "dev", "mode": "dra", "nodeSelector": {KEY: "dev"},
            "tolerations": [{"key": KEY, "operator": "Equal", "value": "dev", "effect": "NoSchedule"},
                            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "deviceClasses": {"whole.example.com": {"gpuEq": "1", "config": [{"driver": DRIVER, "parameters": SHARING}]},
                              "half.example.com": {"gpuEq": "1/2"}}, **more}


def config(limit="4", **more):
    return {"pools": [pool(**more)], "bindings": [{"pool": "dev", "guarantee": limit}],
            "sync": {"toHost": {"resourceClaims": {"enabled": True}}, "fromHost": {"deviceClasses": {"enabled": True}}}}


@pytest.fixture(scope="module")
def devices(real_host):
    """A node of the pool with eight devices of two classes, and a class that no pool grants."""
    real_host.add_node(gpu_node(NODE, "dev"))
    for name in ("whole", "half", "foreign"):
        real_host.api.post(f"{DRA}/deviceclasses", {
            "metadata": {"name": f"{name}.example.com"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
    real_host.api.post(f"{DRA}/resourceslices", {
        "metadata": {"name": "dra-slice"},
        "spec": {"driver": DRIVER, "nodeName": NODE, "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": f"gpu-{i}"} for i in range(8)]}})
    yield
    real_host.api.delete(f"{DRA}/resourceslices/dra-slice")
    for name in ("whole", "half", "foreign"):
        real_host.api.delete(f"{DRA}/deviceclasses/{name}.example.com")
    real_host.remove_node(NODE)


@pytest.fixture
def vc(tenant, devices):
    return tenant("claims", config=config())


def exactly(name="r", **over):
    return {"name": name, "exactly": {"deviceClassName": "whole.example.com", **over}}


def claim(name, *requests, **devices):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": {"devices": {"requests": list(requests) or [exactly()], **devices}}}


def template(name, *requests, **devices):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": claim("x", *requests, **devices)["spec"]}}


def pod(name, **source):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"resourceClaims": [{"name": "dev", **source}], "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "dev", "request": "r"}]}}]}}


def refused(vc, path, body, text, code=403):
    with pytest.raises(ApiError) as e:
        vc.api.post(path, body)
    assert e.value.code == code and text in e.value.status["message"], e.value


def runs(vc, name):
    def running():
        now = vc.api.get(f"{PODS}/{name}")
        return now["status"].get("phase") == "Running" and now
    return eventually(running, 90, f"pod {name} to run")


def host_claims(vc):
    return vc.host_objects(DRA, "resourceclaims")


def gone(vc, path, name):
    vc.api.delete(f"{path}/{name}")
    eventually(lambda: name not in [o["metadata"]["name"] for o in vc.api.get(path)["items"]], 60, f"{name} gone")


def released(vc, count=1):
    """Waits until so many devices can be claimed again, and gives them back."""
    def fits():
        try:
            return vc.api.post(CLAIMS, claim("probe", exactly(count=count)))
        except ApiError as e:
            assert e.code == 403
            return None
    eventually(fits, 60, f"{count} devices to be free")
    gone(vc, CLAIMS, "probe")


def test_pods_share_a_claim_that_counts_once(vc, host):
    made = vc.api.post(CLAIMS, claim("c", exactly(count=3, selectors=[{"cel": {"expression": "true"}}]),
                                     config=[{"opaque": {"driver": DRIVER, "parameters": SHARING}}]))
    for name in ("a", "b"):
        vc.api.post(PODS, pod(name, resourceClaimName="c"))
    nodes = {runs(vc, name)["spec"]["nodeName"] for name in ("a", "b")}
    assert nodes == {NODE}
    down = host_claims(vc)[0]
    assert down["metadata"]["labels"]["sublet.dev/pool"] == "dev" and down["spec"] == made["spec"]
    assert down["metadata"]["name"] != "c" and not down["metadata"].get("ownerReferences")
    for one in vc.host_pods():
        assert one["spec"]["resourceClaims"] == [{"name": "dev", "resourceClaimName": down["metadata"]["name"]}]
        assert one["spec"]["containers"][0]["resources"]["claims"] == [{"name": "dev", "request": "r"}]
        assert one["spec"]["nodeSelector"] == {KEY: "dev"}

    def status():
        now = vc.api.get(f"{CLAIMS}/c").get("status", {})
        return len(now.get("reservedFor", [])) == 2 and now
    status = eventually(status, 60, "the claim's status")
    uids = {p["metadata"]["uid"] for p in vc.api.get(PODS)["items"]}
    assert {r["name"] for r in status["reservedFor"]} == {"a", "b"} and {r["uid"] for r in status["reservedFor"]} == uids
    results = status["allocation"]["devices"]["results"]
    assert len(results) == 3 and {r["pool"] for r in results} == {NODE}
    assert vc.namespace not in json.dumps(status)

    # 3 of 4: one is left, and what was shared counts no more than once.
    refused(vc, CLAIMS, claim("more", exactly(count=2)), "exceeded quota: gpu/dev, requested: gpu=2, used: gpu=3, limited: gpu=4")
    vc.api.post(CLAIMS, claim("one"))
    gone(vc, CLAIMS, "one")

    # In use on the host: the virtual claim is deleted, its devices are not free before the host's claim has left.
    gone(vc, CLAIMS, "c")
    eventually(lambda: host_claims(vc) and host_claims(vc)[0]["metadata"].get("deletionTimestamp"), 60, "it terminating")
    refused(vc, CLAIMS, claim("c", exactly(count=2)), "exceeded quota")
    for name in ("a", "b"):
        gone(vc, PODS, name)
    eventually(lambda: not host_claims(vc), 90, "no claim on the host")
    released(vc, 4)


def test_claims_are_made_of_templates(vc):
    vc.api.post(TEMPLATES, template("t", exactly(count=2)))
    for name in ("a", "b"):
        vc.api.post(PODS, pod(name, resourceClaimTemplateName="t"))
    for name in ("a", "b"):
        now = runs(vc, name)
        entry = now["status"]["resourceClaimStatuses"]
        assert entry[0]["name"] == "dev" and entry[0]["resourceClaimName"].startswith(f"{name}-dev-")
        made = vc.api.get(f"{CLAIMS}/{entry[0]['resourceClaimName']}")
        assert made["metadata"]["ownerReferences"][0]["uid"] == now["metadata"]["uid"]
        assert made["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "dev"
    # A third one's claim is refused by the quota: the pod waits, with the reason, and runs once there is room.
    vc.api.post(PODS, pod("c", resourceClaimTemplateName="t"))

    def said():
        return [e for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "FailedResourceClaimCreation" and "exceeded quota: gpu/dev" in e["message"]]
    eventually(said, 60, "an Event about the quota")
    assert len(host_claims(vc)) == 2
    gone(vc, PODS, "a")
    runs(vc, "c")
    assert len(vc.api.get(CLAIMS)["items"]) == 2
    vc.kill()
    vc.start()
    for name in ("b", "c"):
        gone(vc, PODS, name)
    eventually(lambda: not host_claims(vc) and not vc.api.get(CLAIMS)["items"], 90, "no claims")
    released(vc, 4)


FOREIGN = exactly(deviceClassName="foreign.example.com")
HALF = {"name": "h", "deviceClassName": "half.example.com", "allocationMode": "ExactCount", "count": 5}
REFUSED = {
    "a class": ([FOREIGN], {}, 'device class "foreign.example.com" is not granted by any pool'),
    "an alternative": ([{"name": "r", "firstAvailable": [HALF, {**HALF, "name": "f", "deviceClassName": "foreign.example.com"}]}],
                       {}, 'device class "foreign.example.com" is not granted by any pool'),
    "admin access": ([exactly(adminAccess=True)], {}, "adminAccess"),
    "all of them": ([exactly(allocationMode="All")], {}, 'allocationMode "All"'),
    "a taint": ([exactly(tolerations=[{"operator": "Exists"}])], {}, "tolerations"),
    "parameters": ([exactly()], {"config": [{"opaque": {"driver": DRIVER, "parameters": {**SHARING, "sharing": "all"}}}]},
                   "spec.devices.config"),
    "another driver": ([exactly()], {"config": [{"opaque": {"driver": "x.example.com", "parameters": SHARING}}]},
                       "spec.devices.config"),
    "a long expression": ([exactly(selectors=[{"cel": {"expression": "true || " * 300 + "true"}}])], {}, "CEL expression"),
    "more than there are": ([exactly(count=5)], {}, "exceeded quota: gpu/dev, requested: gpu=5, used: gpu=0, limited: gpu=4"),
    "the dearest": ([{"name": "r", "firstAvailable": [HALF, {**HALF, "name": "w", "deviceClassName": "whole.example.com"}]}],
                    {}, "requested: gpu=5"),
}


def test_what_no_pool_grants_is_refused_when_it_is_applied(vc):
    for what, (requests, devices, text) in REFUSED.items():
        refused(vc, CLAIMS, claim("c", *requests, **devices), text)
        if "quota" not in text and "requested" not in text:
            refused(vc, TEMPLATES, template("t", *requests, **devices), text)
    forged = claim("c")
    forged["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    refused(vc, CLAIMS, forged, "is the scheduler's to set")
    implicit = pod("p", resourceClaimName="c")
    implicit["spec"] = {"containers": [{"name": "c", "image": "i", "resources": {
        "limits": {"deviceclass.resource.kubernetes.io/whole.example.com": "1"}}}]}
    refused(vc, PODS, implicit, "is not offered by any pool")
    assert not host_claims(vc)
    released(vc, 4)


def test_others_claims_and_forged_states_have_no_effect(vc, host):
    theirs = host.api.post(f"{DRA}/namespaces/{vc.namespace}/resourceclaims", claim("theirs", exactly()))
    vc.api.post(CLAIMS, claim("mine"))
    vc.api.post(PODS, pod("p", resourceClaimName="theirs"))
    vc.api.post(PODS, pod("q", resourceClaimTemplateName="none"))
    eventually(lambda: host_claims(vc), 60, "the claim on the host")
    # The status of a pod that names a claim which was not made for it, and one of a claim that was allocated by none.
    vc.api.patch(f"{PODS}/q/status", {"status": {"resourceClaimStatuses": [{"name": "dev", "resourceClaimName": "mine"}]}})
    vc.api.patch(f"{CLAIMS}/mine/status", {"status": {"allocation": {"devices": {"results": [
        {"request": "r", "driver": DRIVER, "pool": "forged", "device": "gpu-0"}]}}}})
    runs_not = {"p", "q"}
    vc.api.post(PODS, pod("r", resourceClaimName="mine"))
    runs(vc, "r")
    allocated = vc.api.get(f"{CLAIMS}/mine")["status"]["allocation"]["devices"]["results"]
    assert allocated[0]["pool"] == NODE
    assert {p["metadata"]["annotations"]["sublet.dev/name"] for p in vc.host_pods()}.isdisjoint(runs_not)
    now = host.api.get(f"{DRA}/namespaces/{vc.namespace}/resourceclaims/theirs")
    assert now["metadata"]["uid"] == theirs["metadata"]["uid"] and not now.get("status", {}).get("reservedFor")
    mine = [c for c in host_claims(vc) if c["metadata"]["name"] != "theirs"]
    assert len(mine) == 1 and "forged" not in json.dumps(mine)


def test_racing_claims_never_exceed_the_limit(vc):
    won = []

    def race(i):
        api = vc.api.clone()
        for k in range(4):
            try:
                won.append(api.post(CLAIMS, claim(f"c{i}-{k}"))["metadata"]["name"])
            except ApiError as e:
                assert e.code == 403, e
        api.close()

    threads = [threading.Thread(target=race, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 4
    vc.kill()
    vc.start()
    refused(vc, CLAIMS, claim("after"), "used: gpu=4, limited: gpu=4")
    eventually(lambda: len(host_claims(vc)) == 4, 60, "the claims on the host")
    vc.api.delete(CLAIMS)
    released(vc, 4)


def test_a_claim_of_before_goes_down_only_if_it_is_charged(tenant, devices):
    off = copy.deepcopy(config(limit="1"))
    del off["sync"]["toHost"]
    vc = tenant("before", config=off)
    for name in ("a", "b"):
        vc.api.post(CLAIMS, claim(name))
    refused(vc, PODS, pod("p", resourceClaimName="a"), "sync.toHost.resourceClaims")
    vc.stop()
    vc.write_config(config(limit="1"))
    vc.start()
    first = eventually(lambda: host_claims(vc), 60, "one claim on the host")
    refused(vc, CLAIMS, claim("c"), "used: gpu=1, limited: gpu=1")

    def said():
        return [e for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "SyncError" and "exceeded quota: gpu/dev" in e["message"]]
    eventually(said, 60, "an Event of the other")
    assert len(first) == 1 and len(host_claims(vc)) == 1
    gone(vc, CLAIMS, first[0]["metadata"]["annotations"]["sublet.dev/name"])
    eventually(lambda: [c for c in host_claims(vc) if c["metadata"]["uid"] != first[0]["metadata"]["uid"]], 60, "the other")
