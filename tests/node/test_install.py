# SPDX-License-Identifier: Apache-2.0
"""The chart on a real node: the real image as a pod, under the chart's account and nothing more."""
from testenv.node import NODE
from testenv.wait import eventually


def test_the_control_plane_is_a_pod(host, research):
    pod = research.on_host.json("get", "pod", "research-0")
    assert pod["status"]["phase"] == "Running" and pod["spec"]["nodeName"] == NODE
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    said = research.in_control_plane("sublet", "check", "--config", "/etc/sublet/config.yaml", "--host")
    assert said.endswith("host: 0 required missing\n"), said


def test_a_tenants_pod_runs_in_the_hosts_namespace(host, research, place):
    place.start("first")
    shown = place.get("pods", "first")
    assert shown["spec"]["nodeName"] == NODE and shown["status"]["hostIP"] == host.machine.address
    [there] = [p for p in research.on_host.items("pods") if p["metadata"].get("annotations", {}).get(
        "sublet.dev/namespace") == place.namespace]
    assert there["status"]["podIP"] == shown["status"]["podIP"]
    assert there["spec"]["serviceAccountName"] == "research-pods" and not there["spec"]["automountServiceAccountToken"]
    assert [n["metadata"]["name"] for n in research.kubectl.items("nodes")] == [NODE]


def test_a_control_plane_that_is_replaced_loses_nothing(research, place):
    place.start("stays")
    before = place.get("pods", "stays")
    research.on_host("delete", "pod", "research-0")
    research.wait_ready()
    place.apply("ConfigMap", "after", data={"a": "b"})
    assert place.ready("stays")["metadata"]["uid"] == before["metadata"]["uid"]
    assert place.get("pods", "stays")["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert place.sh("stays", "echo alive") == "alive"
    eventually(lambda: place.start("later"), 60, "a pod after it")
