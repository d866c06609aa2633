# SPDX-License-Identifier: Apache-2.0
"""Each client runs its scenario against kube-apiserver, then against a virtual cluster, and must see the same."""
import os
import subprocess
import sys

import pytest

from testenv import binaries
from testenv.pki import sec1_kubeconfig
from testenv.wait import PATIENCE, crowd, eventually

from compare import steps, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 600  # seconds, of a whole scenario
WAIT = 60      # seconds, of whatever a step waits for

# client -> its command, of what build.sh made
COMMANDS = {
    "kubernetes": lambda built: [built("python"), os.path.join(HERE, "python", "client.py")],
    "kr8s": lambda built: [built("python"), os.path.join(HERE, "python", "kr8s_client.py")],
    "kopf": lambda built: [built("python"), os.path.join(HERE, "python", "kopf_operator.py")],
    "client-node": lambda built: ["node", os.path.join(built("node"), "client.mjs")],
    "kube-rs": lambda built: [built("rust")],
    "fabric8": lambda built: ["java", "-cp", f"{built('java')}/client.jar:{built('java')}/lib/*", "Client"],
    "helm3": lambda _: [sys.executable, os.path.join(HERE, "helm", "scenario.py"), binaries.client_program("helm3")],
    "helm4": lambda _: [sys.executable, os.path.join(HERE, "helm", "scenario.py"), binaries.host_program("helm")],
}
# Enough history for a scenario's own watches, and soon not for one from the first revision.
CONFIG = {"store": {"historyEvents": 128}}


def aged(vc):
    """The virtual cluster, with so many changes behind it that its first revision is too old for a watch."""
    path = "/api/v1/namespaces/default/configmaps"
    vc.api.post(path, {"metadata": {"name": "changes"}})

    def forgotten():
        for i in range(100):
            vc.api.patch(f"{path}/changes", {"data": {"i": str(i)}})
        first = next(vc.api.watch(f"{path}?resourceVersion=1&timeoutSeconds=5"))
        return first["type"] == "ERROR" and first["object"]["code"] == 410

    eventually(forgotten, 60, "the first revision to be too old")
    vc.api.delete(f"{path}/changes")
    return vc


def play(argv, kubeconfig, client, directory):
    """The steps a scenario printed; its complaints are kept beside."""
    os.makedirs(directory, exist_ok=True)
    env = {**os.environ, "KUBECONFIG": kubeconfig, "CLIENT_NAMESPACE": f"clients-{client}", "HOME": directory,
           "CLIENT_WAIT": str(WAIT * PATIENCE * crowd()), "NO_PROXY": "*", "no_proxy": "*", "PYTHONDONTWRITEBYTECODE": "1"}
    with open(os.path.join(directory, "stderr"), "w+", encoding="utf-8") as err:
        r = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=err, text=True, timeout=TIMEOUT * PATIENCE * crowd(), check=False)
        with open(os.path.join(directory, "stdout"), "w", encoding="utf-8") as out:
            out.write(r.stdout)
        err.seek(0)
        assert r.returncode == 0, f"{client} ended with {r.returncode}:\n{err.read()[-4000:]}"
    return steps(r.stdout)


@pytest.mark.parametrize("client", COMMANDS)
def test_sees_the_same(client, built, host, tenant, workdir):
    argv = COMMANDS[client](built)
    host.clear_log()
    host.write_log("one\ntwo")
    seen = {}
    kubeconfig = host.kubeconfig
    if client == "fabric8":  # reads the SEC 1 keys that a tenant's kubeconfig has, not PKCS #8, which openssl writes
        kubeconfig = sec1_kubeconfig(os.path.join(workdir, "sec1.kubeconfig"), kubeconfig)
    seen["real"] = play(argv, kubeconfig, client, os.path.join(workdir, client, "real"))
    seen["ours"] = play(argv, aged(tenant(client, CONFIG)).kubeconfig, client, os.path.join(workdir, client, "ours"))
    findings = verdict(client, seen["real"], seen["ours"])
    assert not findings, "\n".join(findings)
