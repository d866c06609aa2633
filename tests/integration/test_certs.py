# SPDX-License-Identifier: Apache-2.0
"""`sublet certs` on a running tenant, with real clients that trust one authority or the other."""
import base64
import shutil
import subprocess

import pytest

from testenv import binaries, eventually

BEGIN = "-----BEGIN CERTIFICATE-----"


def certs(vc, word):
    return subprocess.run([binaries.sublet(), "certs", word, "--data-dir", vc.store], capture_output=True,
                          text=True, check=False)


def listed(done):
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[2] for line in done.stdout.splitlines()[1:]}


def kept(vc, name):
    """kubectl with the admin's kubeconfig as it is now."""
    path = f"{vc.dir}/{name}.kubeconfig"
    shutil.copy(vc.kubeconfig, path)
    return vc.kubectl_as(path)


def root_ca(vc):
    return vc.kubectl.json("get", "configmap", "kube-root-ca.crt")["data"]["ca.crt"]


@pytest.fixture
def vc(tenant):
    return tenant("certs")


def test_the_authority_is_replaced(vc):
    k = vc.kubectl
    k.create({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
              "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}}})
    before, first = kept(vc, "before"), root_ca(vc)
    began = listed(certs(vc, "check"))
    assert set(began) == {"ca", "serving", "kubeconfig"}
    assert certs(vc, "retire-ca").returncode == 1

    assert set(listed(certs(vc, "rotate-ca"))) == {"ca", "previous-ca", "serving", "kubeconfig"}
    refused = certs(vc, "rotate-ca")
    assert refused.returncode == 1 and "retire it first" in refused.stderr
    between = kept(vc, "between")
    assert before.names("namespaces") == between.names("namespaces")
    eventually(lambda: root_ca(vc).count(BEGIN) == 2, 60, "both authorities in kube-root-ca.crt")
    assert root_ca(vc).endswith(first)
    token = k.json("get", "secret", "token")["data"]
    assert base64.b64decode(token["ca.crt"]).decode().count(BEGIN) == 2
    trust = k.json("get", "configmap", "extension-apiserver-authentication", "-n", "kube-system")["data"]
    assert trust["client-ca-file"].count(BEGIN) == 2

    vc.restart(kill=True)
    assert before.names("namespaces") == between.names("namespaces")
    assert set(listed(certs(vc, "check"))) == {"ca", "previous-ca", "serving", "kubeconfig"}

    assert set(listed(certs(vc, "retire-ca"))) == {"ca", "serving", "kubeconfig"}
    after = kept(vc, "after")
    assert after.names("namespaces") == between.names("namespaces")
    assert "certificate" in before.fails("get", "namespaces")
    eventually(lambda: root_ca(vc).count(BEGIN) == 1, 60, "one authority in kube-root-ca.crt")
    assert first not in root_ca(vc)
    vc.restart()
    assert after.names("namespaces") and "certificate" in before.fails("get", "namespaces")


def test_the_published_kubeconfig_follows(vc, host):
    def published():
        text = host.kubectl.json("get", "secret", "certs-kubeconfig", "-n", vc.namespace)["data"]["value"]
        return base64.b64decode(text).decode()

    eventually(lambda: published() == open(vc.kubeconfig, encoding="utf-8").read(), 60, "the Secret", also=(AssertionError,))
    was = published()
    listed(certs(vc, "renew"))
    eventually(lambda: published() != was and published() == open(vc.kubeconfig, encoding="utf-8").read(), 60, "the renewed one")
    was = published()
    listed(certs(vc, "rotate-ca"))
    eventually(lambda: published() != was and published() == open(vc.kubeconfig, encoding="utf-8").read(), 60, "the new one")


def test_what_is_no_order_is_refused(vc):
    for words in ([], ["burn"]):
        done = subprocess.run([binaries.sublet(), "certs", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "usage: sublet certs" in done.stderr
    vc.stop()
    done = certs(vc, "check")
    assert done.returncode == 2 and "no process serves" in done.stderr
