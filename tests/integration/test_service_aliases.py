# SPDX-License-Identifier: Apache-2.0
"""`sync.toHost.services.mappings`: a tenant's Service under a name of the admin's, on a real host's API server."""
import shutil

import pytest

from testenv import eventually, never

from test_host_compare import check, clean
from test_restore import planned, sublet

CLUSTER, ALIAS = "sublet.dev/cluster", "sublet.dev/alias"
OWN = "/api/v1/namespaces/default/services"


def mapped(**names):
    return {"sync": {"toHost": {"services": {"mappings": {"byName": names}}}}}


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}],
                                                 **spec}}


@pytest.fixture
def vc(tenant):
    return tenant("shops", config=mapped(**{"default/web": "shop", "default/queue": "queue"}))


def on_host(vc):
    """{name: Service} of the host namespace."""
    return {s["metadata"]["name"]: s for s in vc.host.api.get(f"/api/v1/namespaces/{vc.namespace}/services")["items"]}


def theirs(vc, name):
    return f"/api/v1/namespaces/{vc.namespace}/services/{name}"


def become(vc, *names):
    """The host has these aliases, and no others."""
    def look():
        return sorted(n for n, s in on_host(vc).items() if ALIAS in s["metadata"].get("annotations", {})) == sorted(names)
    eventually(look, 60, f"the Services {names}")


def test_a_service_under_a_name_of_the_admins(host, vc):
    web = vc.api.post(OWN, service("web", type="NodePort", externalTrafficPolicy="Local"))
    become(vc, "shop")
    shop = on_host(vc)["shop"]
    copy = next(s for n, s in on_host(vc).items() if n.startswith("web-"))
    assert shop["spec"]["selector"] == copy["spec"]["selector"] and CLUSTER in shop["spec"]["selector"]
    assert shop["spec"]["type"] == "ClusterIP" and shop["spec"]["clusterIP"] not in ("", "None", web["spec"]["clusterIP"])
    assert "nodePort" not in shop["spec"]["ports"][0] and "externalTrafficPolicy" not in shop["spec"]
    assert shop["metadata"]["annotations"] == {**copy["metadata"]["annotations"], ALIAS: "shop"}

    # Changes on both sides; the address stays.
    vc.api.patch(f"{OWN}/web", {"spec": {"ports": [{"name": "http", "port": 81, "targetPort": "web"}], "selector": {"app": "b"}}})
    eventually(lambda: [p["port"] for p in on_host(vc)["shop"]["spec"]["ports"]] == [81], 30, "the change")
    host.api.patch(theirs(vc, "shop"), {"spec": {"ports": [{"name": "http", "port": 9}], "selector": {"app": "stolen"}}})
    eventually(lambda: [p["port"] for p in on_host(vc)["shop"]["spec"]["ports"]] == [81] and
               "app" not in on_host(vc)["shop"]["spec"]["selector"], 30, "the repair")
    host.api.patch(theirs(vc, "shop"), {"metadata": {"labels": {"of.the/host": "x"}}})
    vc.restart(kill=True)
    never(lambda: on_host(vc)["shop"]["metadata"]["uid"] != shop["metadata"]["uid"], 2, "another Service")
    assert on_host(vc)["shop"]["metadata"]["labels"]["of.the/host"] == "x"
    host.api.delete(theirs(vc, "shop"))
    become(vc, "shop")

    # Headless as the tenant's is; a Service of another name or without a selector has none.
    vc.api.post(OWN, service("queue", clusterIP="None"))
    vc.api.post(OWN, service("other"))
    become(vc, "shop", "queue")
    assert on_host(vc)["queue"]["spec"]["clusterIP"] == "None"
    vc.api.patch(f"{OWN}/queue", {"spec": {"selector": None}})
    become(vc, "shop")
    events = "/api/v1/namespaces/default/events"
    eventually(lambda: any("needs one" in e["message"] for e in vc.api.get(events)["items"]), 30, "the Event")
    vc.api.delete(f"{OWN}/web")
    become(vc)
    assert vc.api.post(OWN, service("web"))["spec"]["clusterIP"]
    become(vc, "shop")
    for name in ("web", "queue", "other"):
        vc.api.delete(f"{OWN}/{name}")
    eventually(lambda: not vc.host_objects("/api/v1", "services"), 60, "all to leave")


def test_what_is_anothers_stays(host, vc):
    """It is never written to nor deleted, whatever becomes of the Service that is mapped to its name."""
    made = host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", service("shop"))["metadata"]
    vc.api.post(OWN, service("web"))
    events = "/api/v1/namespaces/default/events"
    eventually(lambda: any("further name" in e["message"] for e in vc.api.get(events)["items"]), 60, "the warning")
    with open(vc.process.log_path, encoding="utf-8") as f:
        assert "ServiceNameTaken" in f.read()
    vc.restart(kill=True)
    vc.api.delete(f"{OWN}/web")
    never(lambda: host.api.get(theirs(vc, "shop"))["metadata"] != made, 3, "a change")
    vc.api.post(OWN, service("web"))
    # A copy has all the marks, under another name.
    become(vc)
    host.api.delete(theirs(vc, "shop"))
    eventually(lambda: "shop" in on_host(vc), 90, "the name that is free now")
    copy = dict(on_host(vc)["shop"])
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", {
        "metadata": {"name": "copy", "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"]},
        "spec": {"ports": [{"port": 1}]}})
    vc.api.delete(f"{OWN}/web")
    become(vc, "copy")
    host.api.delete(theirs(vc, "copy"))


def test_another_name_in_the_configuration(host, vc):
    """The Service under the former name leaves by its record; the name may be another's by then."""
    vc.api.post(OWN, service("web"))
    vc.api.post(OWN, service("queue"))
    become(vc, "shop", "queue")
    vc.stop()
    host.api.delete(theirs(vc, "queue"))
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", service("queue"))
    vc.config["sync"]["toHost"]["services"]["mappings"]["byName"] = {"default/web": "store", "default/queue": "line"}
    vc.write_config()
    vc.start()
    become(vc, "store", "line")
    assert on_host(vc)["queue"]["spec"]["selector"] == {"app": "queue"}
    vc.stop()
    vc.config["sync"]["toHost"]["services"] = None
    vc.write_config()
    vc.start()
    become(vc)
    assert on_host(vc)["queue"]["spec"]["selector"] == {"app": "queue"}
    assert len(vc.host_objects("/api/v1", "services")) == 2


def test_a_restore_takes_what_is_proven(host, vc, tmp_path):
    """As the plan says: what left since the backup comes back, what is newer is left alone."""
    copy = tmp_path / "copy.db"
    vc.api.post(OWN, service("web"))
    become(vc, "shop")
    sublet(vc, "backup", "--output", copy)
    vc.api.delete(f"{OWN}/web")
    become(vc)
    newer = vc.api.post(OWN, service("queue"))
    become(vc, "queue")
    made = host.api.get(theirs(vc, "queue"))["metadata"]
    assert made["annotations"]["sublet.dev/uid"] == newer["metadata"]["uid"]
    vc.stop()
    shutil.rmtree(vc.store)
    plan = planned(sublet(vc, "restore", "--plan", "--input", copy))
    assert plan == {("create", "services", "web", ""), ("create", "services", "web", "alias shop"),
                    ("quarantine", "services", "queue", ""), ("quarantine", "services", "queue", "alias queue")}
    sublet(vc, "restore", "--input", copy)
    vc.start()
    become(vc, "shop", "queue")
    vc.api.post(OWN, service("queue"))  # it takes over its host Service, and not the other one
    never(lambda: host.api.get(theirs(vc, "queue"))["metadata"] != made, 3, "a change")
    host.api.delete(theirs(vc, "queue"))
    eventually(lambda: ALIAS in on_host(vc).get("queue", {"metadata": {"annotations": {}}})["metadata"]["annotations"], 90, "its own")


def test_a_plan_keeps_one_without_an_address(host, vc, tmp_path):
    """As the start does: the form of a Service is not in its metadata."""
    copy = tmp_path / "copy.db"
    vc.api.post(OWN, service("web", clusterIP="None"))
    become(vc, "shop")
    made = on_host(vc)["shop"]
    assert made["spec"]["clusterIP"] == "None"
    sublet(vc, "backup", "--output", copy)
    vc.stop()
    plan = sublet(vc, "restore", "--plan", "--input", copy)
    assert "delete" not in {action for action, *_ in planned(plan)}, plan
    shutil.rmtree(vc.store)
    sublet(vc, "restore", "--input", copy)
    vc.start()
    never(lambda: on_host(vc).get("shop", {}).get("metadata", {}).get("uid") != made["metadata"]["uid"], 3, "a change")


def test_a_comparison_knows_them(host, vc):
    """A name with its mapping is no finding; a copy of its Service is."""
    vc.api.post(OWN, service("web"))
    become(vc, "shop")
    clean(vc)
    shop = on_host(vc)["shop"]["metadata"]
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", {
        "metadata": {"name": "copy", "labels": shop["labels"], "annotations": shop["annotations"]}, "spec": {"ports": [{"port": 1}]}})
    code, found, _ = check(vc, "--repair")
    assert code == 1 and len(found) == 1 and "copy" in next(iter(found.values())), found
    assert "copy" in on_host(vc) and "shop" in on_host(vc)
    host.api.delete(theirs(vc, "copy"))
    clean(vc)
