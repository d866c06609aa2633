# SPDX-License-Identifier: Apache-2.0
"""`sublet fleet` as its chart installs it on a real node, and its page as docs/usage.md says: by a port-forward."""
import json
import os
import urllib.error
import urllib.request

import pytest

from testenv.fleet import CHART
from testenv.helm import Helm
from testenv.release import VALUES
from testenv.wait import eventually

NAMESPACE = "sublet-system"
POOLS = [{"name": "a100", "nodeSelector": {"sublet.dev/pool": "a100"}}]


@pytest.fixture
def fleet(host, workdir):
    """The chart's release `fleet`, ready."""
    directory = os.path.join(workdir, "fleet-chart")
    os.makedirs(directory)
    helm = Helm(directory, host.kubeconfig)
    host.create_namespace(NAMESPACE, {"pod-security.kubernetes.io/enforce": "restricted"})
    helm("install", "fleet", CHART, "-n", NAMESPACE, values={
        "image": VALUES["image"], "persistence": VALUES["persistence"], "config": {"pools": POOLS}, "page": {"enabled": True}})
    on_host = host.kubectl.within(NAMESPACE)
    on_host("rollout", "status", "deployment/fleet", "--timeout=300s")
    yield on_host
    helm("uninstall", "fleet", "-n", NAMESPACE)
    host.delete_namespace(NAMESPACE)


def ask(port, token=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/fleet/state",
                                     headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_the_page_by_a_port_forward(host, fleet):
    host.create_namespace("ops")
    ops = host.kubectl.within("ops")
    ops("create", "serviceaccount", "viewer")
    with fleet.forwarded("deploy/fleet", 8081) as port:
        token = ops("create", "token", "viewer", "--audience", "sublet-fleet").strip()
        assert ask(port)[0] == 401
        assert ask(port, token)[0] == 403
        host.kubectl("create", "clusterrolebinding", "gpu-viewers", "--clusterrole", "sublet-system-fleet:viewer",
                     "--serviceaccount", "ops:viewer")

        def permitted():
            code, state = ask(port, token)
            return state if code == 200 else None
        state = eventually(permitted, 60, "the permission")
        assert state["leader"] and [p["name"] for p in state["pools"]] == ["a100"]
    host.kubectl("delete", "clusterrolebinding", "gpu-viewers")
    host.delete_namespace("ops")
