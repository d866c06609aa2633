# SPDX-License-Identifier: Apache-2.0
"""A start does not wait for the host: what a cluster was, it is again before its host answers."""
import pytest

from testenv import eventually


@pytest.fixture
def vc(tenant, pools):
    return tenant("research", config=pools)


def test_a_restart_serves_while_the_host_is_silent(vc, host):
    vc.api.post("/api/v1/namespaces/default/configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    eventually(lambda: vc.api.get("/api/v1/namespaces/default/services/kubernetes"), 30, "the address")
    host.pause_component("kube-apiserver")  # connections open, and nothing answers
    try:
        vc.kill()
        vc.start(wait=False)
        eventually(vc._read_ready_line, 60, "the ready line")
        code, _, text = vc.api.raw("GET", "/readyz?verbose")
        assert code == 200 and b"[+]host-sync ok" in text, text
        assert vc.api.get("/api/v1/namespaces/default/configmaps/kept")
    finally:
        host.resume_component("kube-apiserver")
    vc.kubectl("run", "after", "--image=busybox:1")
    vc.kubectl("wait", "--for=condition=Ready", "pod/after", "--timeout=180s")
