# SPDX-License-Identifier: Apache-2.0
"""Two tenants on one host: nothing of one is visible to the other, and each has its own CRDs."""
import json
import threading

import pytest

from testenv import UNSET, eventually

from test_crd import PATH, cron, crd
from test_tenant import host_pod, pod, running


@pytest.mark.both_hosts
def test_same_names_do_not_meet(tenant, pools):
    a, b = tenant("alpha", config=pools), tenant("beta", config=pools)
    for vc, image in ((a, "busybox:1"), (b, "busybox:2")):
        body = pod("same")
        body["spec"]["containers"][0]["image"] = image
        vc.kubectl.apply(body)
        vc.kubectl("create", "configmap", "same", f"--from-literal=who={vc.name}")
    for vc in (a, b):
        running(vc.kubectl, "same")
    assert host_pod(a, "same")["spec"]["containers"][0]["image"] == "busybox:1"
    assert host_pod(b, "same")["spec"]["containers"][0]["image"] == "busybox:2"
    for vc, other in ((a, b), (b, a)):
        everything = json.dumps([vc.kubectl.items(kind, "-A") for kind in
                                 ("pods", "configmaps", "services", "events", "nodes", "secrets")])
        assert other.namespace not in everything
        assert json.dumps(vc.kubectl.json("get", "cm", "same")["data"]) == json.dumps({"who": vc.name})
    a.kubectl("delete", "pod", "same", "--now")
    eventually(lambda: not a.host_pods(), 30, "alpha's pod to go")
    assert host_pod(b, "same")["status"]["phase"] == "Running"


def test_two_versions_of_one_crd(tenant):
    a, b = tenant("alpha", on=False), tenant("beta", on=False)
    strict = crd()
    loose = crd()
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["spec"]["scope"] = "Namespaced"
    a.kubectl.apply(strict)
    b.kubectl.apply(loose)
    for vc in (a, b):
        vc.kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com",
                   "--timeout=180s")
    b.api.post(PATH, cron(cronSpec=5, anything="goes"))
    assert b.api.get(f"{PATH}/c")["spec"]["anything"] == "goes"
    refusal = a.kubectl.fails("create", "-f", "-", stdin=json.dumps(cron(cronSpec=5)))
    assert "must be of type string" in refusal
    assert a.api.get(PATH)["items"] == []


def test_credentials_of_one_are_nothing_to_the_other(tenant):
    a, b = tenant("alpha", on=False), tenant("beta", on=False)
    token = a.api.create_service_account("default", "spy")
    stranger = b.kubectl_as(b.user_kubeconfig("stranger", token=token))
    err = stranger.fails("get", "pods")
    assert "Unauthorized" in err or "logged in" in err


@pytest.mark.both_hosts
def test_racing_creates_stop_exactly_at_the_limit(tenant, pools):
    vc = tenant("race", config={**pools, "bindings": [
        {"pool": "shared", "guarantee": "10", "default": True}], "pools": pools["pools"][1:]})
    made, refused, other = [], [], []


    def burst(worker):
        api = vc.api.clone()
        for i in range(25):
            code, _, body = api.raw("POST", "/api/v1/namespaces/default/pods",
                                    json.dumps(pod(f"r{worker}-{i}", 1)))
            text = body.decode()
            (made if code == 201 else refused if "exceeded quota: gpu/shared" in text else other).append(text)

    threads = [threading.Thread(target=burst, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
    assert not other, other[:3]
    assert (len(made), len(refused)) == (10, 190)
    assert len(vc.kubectl.names("pods")) == 10


def test_racing_creates_stop_exactly_at_a_resource_quota(tenant):
    vc = tenant("race", on=False)
    vc.kubectl("create", "quota", "q", "--hard=pods=10")
    codes = []

    def burst(worker):
        api = vc.api.clone()
        for i in range(25):
            codes.append(api.raw("POST", "/api/v1/namespaces/default/pods",
                                 json.dumps(pod(f"r{worker}-{i}")))[0])

    threads = [threading.Thread(target=burst, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
    assert sorted(set(codes)) == [201, 403] and codes.count(201) == 10 and len(codes) == 200
    eventually(lambda: vc.kubectl.json("get", "quota", "q")["status"]["used"] == {"pods": "10"}, 30,
               "the quota's status", also=UNSET)
