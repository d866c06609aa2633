# SPDX-License-Identifier: Apache-2.0
"""In-place resize: what a tenant writes reaches the host pod, the host judges it at once, and the node's word comes up
for the generation it is of. The node is simulated, so the test writes what a kubelet would report."""
import copy
import json

import pytest

from testenv import UNSET, eventually
from testenv.api import ApiError

from test_tenant import GPU, host_pod, pod, running

RESIZING = ("PodResizePending", "PodResizeInProgress")


class Kubelet:
    """The status of one host pod, as its kubelet writes it."""

    def __init__(self, host, vc, name):
        self.host, self.vc, self.name = host, vc, name

    def report(self, conditions=(), actuated=True):
        """`actuated`: containers have what the spec says; else what they had before."""
        def written():  # others write the pod too: a kubelet reads it again after a conflict
            try:
                return self.write(conditions, actuated)
            except ApiError as e:
                if e.code != 409:
                    raise
                return None
        return eventually(written, 30, "the report of the kubelet")

    def write(self, conditions, actuated):
        now = host_pod(self.vc, self.name)
        asked = {c["name"]: c.get("resources", {}) for c in now["spec"]["containers"]}
        statuses = copy.deepcopy(now["status"]["containerStatuses"])
        for s in statuses:
            if actuated or "resources" not in s:
                s["resources"] = asked[s["name"]]
                s["allocatedResources"] = asked[s["name"]].get("requests", {})
        generation = now["metadata"]["generation"]
        kept = [c for c in now["status"]["conditions"] if c["type"] not in RESIZING]
        self.host.api.put(f"/api/v1/namespaces/{self.vc.namespace}/pods/{now['metadata']['name']}/status", {
            **now, "status": {**now["status"], "observedGeneration": generation, "containerStatuses": statuses,
                              "conditions": kept + [{"status": "True", "observedGeneration": generation, **c}
                                                    for c in conditions]}})
        return now


def resources(cpu, memory=None, limits=True):
    requests = {"cpu": cpu, **({"memory": memory} if memory else {})}
    return {"requests": requests, **({"limits": requests} if limits else {})}


def body(**containers):
    return {"spec": {"containers": [{"name": n, "resources": r} for n, r in containers.items()]}}


def resize(vc, name, change, method="PATCH", **query):
    """(code, answer, Warnings)"""
    patch = {"content_type": "application/strategic-merge-patch+json"} if method == "PATCH" else {}
    code, headers, data = vc.api.raw(method, f"/api/v1/namespaces/default/pods/{name}/resize", change, query=query, **patch)
    return code, json.loads(data), " ".join(headers.get_all("Warning") or [])


def get(vc, name):
    return vc.api.get(f"/api/v1/namespaces/default/pods/{name}")


def up(vc, name, test, what):
    """The virtual pod, once `test` holds of its status."""
    def found():
        now = get(vc, name)
        return now if test(now["status"]) else None
    return eventually(found, 60, what, also=UNSET)


@pytest.fixture
def make(tenant, pools, host):
    """make(containers, config) -> (vc, kubelet): pod `p` runs, and its kubelet has reported once."""
    def made(policy=None, **containers):
        vc = tenant("resizes", config={**pools, **({"policy": policy} if policy else {})})
        p = pod("p")
        p["spec"]["containers"] = [{"name": n, "image": "busybox:1", "resources": r} for n, r in containers.items()]
        vc.kubectl.apply(p)
        running(vc.kubectl, "p")
        kubelet = Kubelet(host, vc, "p")
        kubelet.report()
        up(vc, "p", lambda s: all("resources" in c for c in s["containerStatuses"]) and s["observedGeneration"] == 1,
           "the kubelet's first word")
        return vc, kubelet
    return made


def on_host(vc):
    return {c["name"]: c["resources"] for c in host_pod(vc, "p")["spec"]["containers"]}


def test_a_mixed_resize_comes_up_when_its_node_made_it(make):
    old = {"c1": resources("20m", "35Mi"), "c2": resources("22m", "37Mi"), "c3": resources("24m", "39Mi")}
    new = {"c1": resources("25m", "35Mi"), "c2": resources("17m", "42Mi"), "c3": resources("29m", "33Mi")}
    vc, kubelet = make(**old)
    code, answer, _ = resize(vc, "p", body(**new))
    assert code == 200 and answer["metadata"]["generation"] == 2
    assert {c["name"]: c["resources"] for c in answer["spec"]["containers"]} == new
    eventually(lambda: on_host(vc) == new, 30, "the host to have the new quantities")
    assert get(vc, "p")["status"]["observedGeneration"] == 1  # no kubelet has seen it

    kubelet.report([{"type": "PodResizeInProgress"}], actuated=False)
    now = up(vc, "p", lambda s: any(c["type"] == "PodResizeInProgress" for c in s["conditions"]), "the progress")
    shown = [c for c in now["status"]["conditions"] if c["type"] in RESIZING]
    assert [c["observedGeneration"] for c in shown] == [2] and now["status"]["observedGeneration"] == 2
    assert {c["name"]: c["resources"] for c in now["status"]["containerStatuses"]} == old

    kubelet.report()
    now = up(vc, "p", lambda s: not any(c["type"] in RESIZING for c in s["conditions"]), "the end of it")
    assert {c["name"]: c["resources"] for c in now["status"]["containerStatuses"]} == new
    assert {c["name"]: c["allocatedResources"] for c in now["status"]["containerStatuses"]} == \
        {n: r["requests"] for n, r in new.items()}
    assert now["status"]["observedGeneration"] == 2 and now["status"]["qosClass"] == "Guaranteed"


def test_the_replace_endpoint(make):
    vc, kubelet = make(main=resources("100m", "64Mi", limits=False))
    wanted = get(vc, "p")
    wanted["spec"]["containers"][0]["resources"] = resources("50m", "128Mi", limits=False)
    wanted["metadata"]["labels"] = {"not": "taken"}
    code, answer, _ = resize(vc, "p", wanted, "PUT")
    assert code == 200 and answer["metadata"]["generation"] == 2 and "not" not in answer["metadata"].get("labels", {})
    eventually(lambda: on_host(vc)["main"] == resources("50m", "128Mi", limits=False), 30, "the host to have it")
    kubelet.report()
    up(vc, "p", lambda s: s["observedGeneration"] == 2 and s["containerStatuses"][0]["resources"] ==
       resources("50m", "128Mi", limits=False), "the kubelet's word")
    assert vc.api.get("/api/v1/namespaces/default/pods/p/resize") == get(vc, "p")
    code, answer, _ = resize(vc, "p", wanted, "PUT")  # of an older resourceVersion
    assert code == 409, answer


def test_what_a_node_cannot_give(make):
    vc, kubelet = make(main=resources("100m", limits=False))
    assert resize(vc, "p", body(main=resources("3", limits=False)))[0] == 200
    eventually(lambda: on_host(vc)["main"] == resources("3", limits=False), 30, "the host to have it")
    kubelet.report([{"type": "PodResizePending", "reason": "Infeasible", "message": "Node didn't have enough capacity"}],
                   actuated=False)
    now = up(vc, "p", lambda s: any(c["type"] == "PodResizePending" for c in s["conditions"]), "the node's refusal")
    shown = [c for c in now["status"]["conditions"] if c["type"] == "PodResizePending"]
    assert [(c["reason"], c["message"], c["observedGeneration"]) for c in shown] == \
        [("Infeasible", "Node didn't have enough capacity", 2)]
    assert now["status"]["containerStatuses"][0]["resources"] == resources("100m", limits=False)
    assert resize(vc, "p", body(main=resources("90m", limits=False)))[0] == 200
    eventually(lambda: on_host(vc)["main"] == resources("90m", limits=False), 30, "the host to have the lesser one")
    kubelet.report()
    now = up(vc, "p", lambda s: s["observedGeneration"] == 3, "the kubelet's word")
    assert not [c for c in now["status"]["conditions"] if c["type"] in RESIZING]


def refuse_on_host(host, vc, kind, name, spec):
    plural = {"ResourceQuota": "resourcequotas", "LimitRange": "limitranges"}[kind]
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/{plural}", {"metadata": {"name": name}, "spec": spec})
    if kind == "ResourceQuota":
        eventually(lambda: host.kubectl.json("get", "quota", name, "-n", vc.namespace)["status"]["used"], 30,
                   "the host's quota to count", also=UNSET)


HOST_RULES = {
    "ResourceQuota": ({"hard": {"requests.cpu": "300m"}}, "exceeded quota: rule"),
    "LimitRange": ({"limits": [{"type": "Container", "max": {"cpu": "300m"}}]}, "maximum cpu usage per Container is 300m"),
}


@pytest.mark.parametrize("kind", HOST_RULES)
def test_the_hosts_verdict_when_it_is_written(make, host, kind):
    spec, why = HOST_RULES[kind]
    vc, _ = make({"verdict": "enforce"}, main=resources("100m"))
    refuse_on_host(host, vc, kind, "rule", spec)

    def refused():
        code, answer, _ = resize(vc, "p", body(main=resources("2")), dryRun="All")
        return answer if code == 403 else None
    eventually(refused, 30, f"the host's {kind} to be known")
    for method, change in (("PATCH", body(main=resources("2"))), ("PUT", get(vc, "p"))):
        if method == "PUT":
            change["spec"]["containers"][0]["resources"] = resources("2")
        code, answer, _ = resize(vc, "p", change, method)
        assert code == 403 and answer["reason"] == "Forbidden" and why in answer["message"], answer
        assert '"p"' in answer["message"] or "pod" in answer["message"]
        named = json.dumps(answer)
        assert vc.namespace not in named and host_pod(vc, "p")["metadata"]["name"] not in named
    now = get(vc, "p")
    assert now["spec"]["containers"][0]["resources"] == resources("100m") and now["metadata"]["generation"] == 1
    assert on_host(vc)["main"] == resources("100m")
    assert resize(vc, "p", body(main=resources("200m")))[0] == 200
    eventually(lambda: on_host(vc)["main"] == resources("200m"), 30, "what the host allows")


def test_a_verdict_that_warns(make, host):
    vc, _ = make({"verdict": "warn"}, main=resources("100m"))
    refuse_on_host(host, vc, "ResourceQuota", "rule", {"hard": {"requests.cpu": "300m"}})

    def warned():
        code, _, told = resize(vc, "p", body(main=resources("2")), dryRun="All")
        return code == 200 and "the host cluster would refuse it: " in told and "exceeded quota" in told
    eventually(warned, 30, "the Warning")
    assert resize(vc, "p", body(main=resources("2")))[0] == 200
    eventually(lambda: "the host cluster refuses it: " in vc.kubectl("get", "events"), 30, "the Event")
    assert get(vc, "p")["status"]["observedGeneration"] == 1  # the host pod lacks it
    host.api.delete(f"/api/v1/namespaces/{vc.namespace}/resourcequotas/rule")
    eventually(lambda: on_host(vc)["main"] == resources("2"), 60, "the resize to be tried again")


def test_devices_are_not_resized(make):
    vc, _ = make(main={"limits": {GPU: "1", "cpu": "1"}, "requests": {GPU: "1", "cpu": "1"}})
    for change in ({"limits": {GPU: "2"}, "requests": {GPU: "2"}}, {"limits": {GPU: None}, "requests": {GPU: None}},
                   {"limits": {"ephemeral-storage": "1Gi"}}, {"claims": [{"name": "x"}]}):
        code, answer, _ = resize(vc, "p", body(main=change))
        assert code == 422, answer
    assert on_host(vc)["main"]["limits"][GPU] == "1"
    assert resize(vc, "p", body(main=resources("500m")))[0] == 200
    eventually(lambda: on_host(vc)["main"]["limits"] == {GPU: "1", "cpu": "500m"}, 30, "the host to have it")


def test_a_resize_is_charged_to_the_tenants_quota(make):
    vc, _ = make(main=resources("100m"))
    vc.api.post("/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}})

    def used():
        return vc.api.get("/api/v1/namespaces/default/resourcequotas/q")["status"]["used"]["requests.cpu"]
    eventually(lambda: used() == "100m", 30, "the quota", also=UNSET)
    assert resize(vc, "p", body(main=resources("900m")))[0] == 200
    eventually(lambda: used() == "900m", 30, "the quota after the resize")
    with pytest.raises(ApiError) as refused:
        vc.api.patch("/api/v1/namespaces/default/pods/p/resize", body(main=resources("2")), kind="strategic-merge")
    assert refused.value.code == 403 and "exceeded quota: q" in str(refused.value)
