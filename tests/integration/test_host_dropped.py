# SPDX-License-Identifier: Apache-2.0
"""A host that accepts an object and keeps less of it: of another minor, or with feature gates off. What it drops is said
before (explain, Warnings, a refusal where the host's verdict binds) and after (an Event, `sublet check --host`)."""
import json
import os

import pytest

from testenv import eventually
from testenv.host import HostCluster

from test_explain import explain, pod
from test_host_compare import check, clean

GATES = "ImageVolume=false,ProcMountType=false,UserNamespacesSupport=false,HostnameOverride=false"
GONE = {"hostnameOverride": "name.example", "volumes": [{"name": "model", "image": {"reference": "example.com/m:1"}}]}


@pytest.fixture(scope="module")
def older(workdir):
    """It serves what a 1.35 without these gates does."""
    made = HostCluster(os.path.join(workdir, "older-host"),
                       api_args=["--emulated-version=1.35", "--feature-gates=" + GATES]).start()
    try:
        made.add_cpu_node("cpu-0")
        yield made
    finally:
        made.stop()


def events(vc, reason):
    return [e["message"] for e in vc.api.get("/api/v1/namespaces/default/events")["items"] if e["reason"] == reason]


def create(vc, manifest, *args):
    return vc.kubectl.run("create", "-f", "-", *args, stdin=json.dumps(manifest))


def test_what_the_host_drops_is_said(tenant, older):
    vc = tenant("research", on=older)
    manifest = pod(hostUsers=False, **GONE)
    code, out, err = explain(vc, manifest)
    assert (code, err) == (0, ""), out
    last = out.splitlines()[-1]
    assert last.startswith("the host admits it without ")
    for path in ("spec.hostUsers", "spec.hostnameOverride", "spec.volumes[model]"):
        assert path in last

    for args in (("--dry-run=server",), ()):
        code, _, err = create(vc, manifest, *args)
        warnings = [line for line in err.splitlines() if "the host cluster would run it without " in line]
        assert code == 0 and len(warnings) == 1 and "spec.volumes[model]" in warnings[0], err

    said = eventually(lambda: events(vc, "HostDroppedFields"), 60, "the Event")
    assert len(said) == 1 and "spec.volumes[model]" in said[0] and "spec.hostUsers" in said[0]
    assert "example.com" not in said[0]  # no values
    code, found, _ = eventually(lambda: (lambda r: r[1] and r)(check(vc)), 60, "the finding")
    finding = found["dropped", "pods", "default/train"]
    assert code == 1 and len(found) == 1 and "spec.volumes[model]" in finding and "spec.hostUsers" in finding


def test_what_the_host_keeps_is_quiet(tenant, older):
    vc = tenant("research", on=older)
    create(vc, pod("plain", terminationGracePeriodSeconds=0, hostNetwork=False,
                   securityContext={"runAsUser": 1000}, volumes=[{"name": "v", "emptyDir": {}}]))
    vc.kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                      "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}})
    eventually(lambda: vc.api.get("/api/v1/namespaces/default/pods/plain")["status"].get("phase") == "Running", 120,
               "the pod to run")
    clean(vc)
    assert not events(vc, "HostDroppedFields")


def test_a_binding_verdict_refuses_another_pod(tenant, older):
    vc = tenant("research", {"policy": {"verdict": "enforce"}}, on=older)
    code, _, err = create(vc, pod(hostUsers=False, **GONE))
    assert code == 1 and "Forbidden" in err and "the host cluster would run it without " in err, err
    assert not vc.kubectl.names("pods")
    code, _, err = create(vc, pod(hostnameOverride="name.example"))  # the same pod by another name
    assert code == 0 and "would run it without spec.hostnameOverride: " in err, err
