# SPDX-License-Identifier: Apache-2.0
"""ServiceAccounts of a tenant as accounts of the host that its pods run under, by sync.toHost.serviceAccounts."""
import copy

import pytest

from testenv import ApiError, eventually

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
ROLE = "eks.amazonaws.com/role-arn"
TEAM = "arn:aws:iam::111122223333:role/team-"
CONFIG = {"sync": {"toHost": {"serviceAccounts": {"enabled": True, "annotations": {ROLE: [f"{TEAM}*"]}}}},
          "policy": {"annotations": {"allow": ["note"]}}}


@pytest.fixture
def vc(tenant):
    return tenant("research", config=CONFIG)


def create(vc, name="web", role=f"{TEAM}a", **more):
    return vc.api.post(ACCOUNTS, {"metadata": {"name": name, "annotations": {ROLE: role, "note": "x"} if role else {}}, **more})


def run(vc, name, account="web", **query):
    return vc.api.post(PODS, {"metadata": {"name": name}, "spec": {
        "serviceAccountName": account, "automountServiceAccountToken": True, "containers": [{"name": "c", "image": "i"}]}},
        **query)


def accounts(vc):
    return {o["metadata"]["annotations"]["sublet.dev/name"]: o for o in vc.host_objects("/api/v1", "serviceaccounts")}


def arrives(vc, name="web"):
    return eventually(lambda: accounts(vc).get(name), 60, f"the account {name} on the host")


def host_pod(vc, name):
    return eventually(lambda: next((p for p in vc.host_pods()
                                    if p["metadata"]["annotations"]["sublet.dev/name"] == name), None), 60, f"{name} on the host")


def role_of(vc, name="web"):
    return accounts(vc)[name]["metadata"]["annotations"].get(ROLE)


def refused(call, words):
    with pytest.raises(ApiError) as caught:
        call()
    assert caught.value.code == 403 and words in str(caught.value), caught.value


def test_life(vc, host):
    own = create(vc, secrets=[{"name": "s"}], imagePullSecrets=[{"name": "registry"}], automountServiceAccountToken=True)
    create(vc, "unused")
    run(vc, "p")
    spec, account = host_pod(vc, "p")["spec"], arrives(vc)
    name, uid = account["metadata"]["name"], account["metadata"]["uid"]
    assert spec["serviceAccountName"] == name != "web" and spec["automountServiceAccountToken"] is False
    assert not any("serviceAccountToken" in source for v in spec["volumes"] for source in v.get("projected", {}).get("sources", []))
    assert account["automountServiceAccountToken"] is False and not {"secrets", "imagePullSecrets"} & set(account)
    notes = account["metadata"]["annotations"]
    assert notes["sublet.dev/uid"] == own["metadata"]["uid"] and notes[ROLE] == f"{TEAM}a" and "note" not in notes
    assert vc.api.get(f"{PODS}/p")["spec"]["serviceAccountName"] == "web"
    # The default account of the namespace goes down with a pod as well; one that no pod has never does.
    run(vc, "q", "default")
    assert host_pod(vc, "q")["spec"]["serviceAccountName"] == arrives(vc, "default")["metadata"]["name"]
    assert set(accounts(vc)) == {"web", "default"}

    # A change of the tenant's, and one on the host while this process is away.
    vc.api.patch(f"{ACCOUNTS}/web", {"metadata": {"annotations": {ROLE: f"{TEAM}b"}}})
    eventually(lambda: role_of(vc) == f"{TEAM}b", 60, "the changed role")
    path = f"/api/v1/namespaces/{vc.namespace}/serviceaccounts/{name}"
    vc.stop()
    host.api.patch(path, {"automountServiceAccountToken": True, "metadata": {"annotations": {ROLE: "admin"}}})
    vc.start()
    eventually(lambda: role_of(vc) == f"{TEAM}b" and accounts(vc)["web"]["automountServiceAccountToken"] is False, 60,
               "the host's change to be put right")
    assert accounts(vc)["web"]["metadata"]["uid"] == uid

    # Deleted on the host it is created again; it leaves with the last pod, but not with a process that ends.
    host.api.delete(path)
    eventually(lambda: accounts(vc).get("web", account)["metadata"]["uid"] != uid, 60, "it again on the host")
    uid = accounts(vc)["web"]["metadata"]["uid"]
    vc.restart(kill=True)
    run(vc, "r")
    host_pod(vc, "r")
    vc.api.delete(f"{PODS}/p", gracePeriodSeconds=0)
    eventually(lambda: vc.api.raw("GET", f"{PODS}/p")[0] == 404, 60, "the first pod to be deleted")
    assert accounts(vc)["web"]["metadata"]["uid"] == uid
    vc.api.delete(f"{PODS}/r", gracePeriodSeconds=0)
    eventually(lambda: "web" not in accounts(vc), 60, "the account to leave after the last pod")
    assert vc.api.get(f"{ACCOUNTS}/web")["metadata"]["uid"] == own["metadata"]["uid"]
    assert "default" in accounts(vc)


def test_identities_are_the_admins(vc):
    create(vc, "one")
    refused(lambda: create(vc, role="arn:aws:iam::111122223333:role/admin"), f"metadata.annotations[{ROLE}]")
    refused(lambda: vc.api.patch(f"{ACCOUNTS}/one", {"metadata": {"annotations": {ROLE: "admin"}}}), "does not permit")
    run(vc, "p", "one")
    assert arrives(vc, "one")["metadata"]["annotations"][ROLE] == f"{TEAM}a"
    # The list becomes shorter: the host's account has no identity, and an Event says why.
    vc.stop()
    shorter = copy.deepcopy(CONFIG)
    shorter["sync"]["toHost"]["serviceAccounts"]["annotations"] = {ROLE: [f"{TEAM}z"]}
    vc.write_config(shorter)
    vc.start()
    eventually(lambda: role_of(vc, "one") is None, 60, "the role to be taken back")
    eventually(lambda: any("does not permit" in e["message"] and e["involvedObject"]["kind"] == "ServiceAccount"
                           for e in vc.api.get("/api/v1/namespaces/default/events")["items"]), 60, "an Event")
    run(vc, "q", "one")
    host_pod(vc, "q")


def test_an_account_of_the_host_is_never_a_tenants(vc, host):
    create(vc)
    run(vc, "p")
    name = arrives(vc)["metadata"]["name"]
    vc.api.delete(f"{PODS}/p", gracePeriodSeconds=0)
    eventually(lambda: not accounts(vc), 60, "the account to leave")
    path = f"/api/v1/namespaces/{vc.namespace}/serviceaccounts"
    foreign = host.api.post(path, {"metadata": {"name": name, "annotations": {ROLE: "admin"}}})
    run(vc, "q")
    eventually(lambda: any("its name is taken on the host" in e["message"]
                           for e in vc.api.get("/api/v1/namespaces/default/events")["items"]), 60, "an Event")
    assert not vc.host_pods()
    now = host.api.get(f"{path}/{name}")
    assert (now["metadata"]["uid"], now["metadata"]["annotations"]) == (foreign["metadata"]["uid"], {ROLE: "admin"})
    host.api.delete(f"{path}/{name}")
    assert host_pod(vc, "q")["spec"]["serviceAccountName"] == arrives(vc)["metadata"]["name"] == name


def test_dry_runs(vc):
    """An account that is not on the host yet is no reason to refuse its first pod."""
    create(vc)
    for verdict in ("warn", "enforce"):
        status, headers, body = vc.api.raw("POST", PODS, {"metadata": {"name": "p"}, "spec": {
            "serviceAccountName": "web", "containers": [{"name": "c", "image": "i"}]}}, query={"dryRun": "All"})
        assert status == 201 and "Warning" not in headers, (verdict, status, headers, body)
        vc.stop()
        vc.write_config({**CONFIG, "policy": {"verdict": "enforce"}})
        vc.start()
    run(vc, "p")
    host_pod(vc, "p")
