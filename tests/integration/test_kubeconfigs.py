# SPDX-License-Identifier: Apache-2.0
"""kubeconfig.additionalSecrets[].serviceAccount: a Secret of the host with the token of a tenant's service account."""
import base64
import os

import yaml

from testenv import eventually

ROBOT = {"name": "robot-kubeconfig", "context": "ci",
         "serviceAccount": {"name": "robot", "namespace": "default", "tokenLifetime": "10m"}}


def test_a_secret_with_the_token_of_a_service_account(tenant, host):
    vc = tenant("research", config={"kubeconfig": {"additionalSecrets": [ROBOT]}})
    path = f"/api/v1/namespaces/{vc.namespace}/secrets/robot-kubeconfig"

    def warnings():
        return vc.api.raw("GET", "/readyz/warnings")[-1].decode()

    def filled():
        return eventually(lambda: host.api.get(path).get("data"), 60, "the Secret to be filled in")

    def as_given(data, name):
        given = os.path.join(vc.dir, name)
        with open(given, "wb") as f:
            f.write(base64.b64decode(data["value"]))
        return vc.kubectl_as(given)

    eventually(lambda: "KubeconfigAccountMissing" in warnings(), 60, "the warning")
    assert not host.api.get(path).get("data")
    vc.kubectl("create", "serviceaccount", "robot")
    vc.kubectl("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=default:robot")
    data = filled()
    assert data["value"] == data["config"] and "client-key" not in data and "client-certificate" not in data
    config = yaml.safe_load(base64.b64decode(data["value"]))
    assert config["current-context"] == "ci" and config["users"][0]["user"] == {
        "token": base64.b64decode(data["token"]).decode()}
    robot = as_given(data, "first.kubeconfig")
    assert robot("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "system:serviceaccount:default:robot"
    robot("get", "configmaps")
    code, _, err = robot.run("get", "secrets")
    assert code and "forbidden" in err
    eventually(lambda: "KubeconfigAccountMissing" not in warnings(), 60, "the warning to end")

    # A restart keeps the token; without the account the Secret is empty, and the next account has another.
    vc.restart()
    eventually(lambda: "admin" in vc.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"), 60, "the API")
    assert filled()["token"] == data["token"]
    vc.kubectl("delete", "serviceaccount", "robot")
    eventually(lambda: not host.api.get(path).get("data"), 60, "the Secret to be empty")
    assert robot.run("get", "configmaps")[0]
    vc.kubectl("create", "serviceaccount", "robot")
    assert filled()["token"] != data["token"]
    as_given(filled(), "second.kubeconfig")("get", "configmaps")


def test_an_account_that_is_made_with_a_role(tenant, host):
    """`clusterRole`: neither the account nor its binding is a step of the tenant's, and another role replaces it."""
    def config(role):
        account = {"name": "robot", "namespace": "default", "clusterRole": role} if role else ROBOT["serviceAccount"]
        return {"kubeconfig": {"additionalSecrets": [{**ROBOT, "serviceAccount": account}]}}

    vc = tenant("research", config=config("view"))
    path = f"/api/v1/namespaces/{vc.namespace}/secrets/robot-kubeconfig"
    data = eventually(lambda: host.api.get(path).get("data"), 60, "the Secret to be filled in")
    given = os.path.join(vc.dir, "robot.kubeconfig")
    with open(given, "wb") as f:
        f.write(base64.b64decode(data["value"]))
    robot = vc.kubectl_as(given)
    eventually(lambda: robot.run("get", "configmaps")[0] == 0, 30, "the role")
    assert robot.run("get", "secrets")[0] and robot.run("create", "configmap", "c")[0]
    vc.write_config(config("edit"))
    vc.restart()
    eventually(lambda: robot.run("create", "configmap", "c")[0] == 0, 30, "the next role")
    names = vc.kubectl.names("clusterrolebindings")
    assert [n for n in names if n.startswith("sublet:kubeconfig:")] == ["sublet:kubeconfig:default:robot:edit"]
    vc.write_config(config(None))
    vc.restart()
    eventually(lambda: robot.run("get", "configmaps")[0], 30, "the role to end")


def test_secrets_that_others_change_are_mended(tenant, host):
    """The deleted one is made again, the edited one put right; what is another owner's now stays as it is."""
    vc = tenant("research", config={"kubeconfig": {"additionalSecrets": [{"name": "further"}]}})
    secrets = f"/api/v1/namespaces/{vc.namespace}/secrets"
    own = f"{secrets}/research-kubeconfig"
    data = {path: eventually(lambda p=path: host.api.get(p).get("data"), 60, path) for path in (own, f"{secrets}/further")}
    for path, was in data.items():
        host.api.patch(path, {"data": {"value": "ZWRpdGVk"}})
        eventually(lambda p=path, d=was: host.api.get(p)["data"] == d, 20, f"{path} as it was")
        host.api.delete(path)
        eventually(lambda p=path, d=was: host.api.get(p)["data"] == d, 20, f"{path} again", also=[404])
    host.api.patch(own, {"metadata": {"labels": {"app.kubernetes.io/instance": "theirs"}}, "data": {"value": "ZWRpdGVk"}})
    eventually(lambda: "KubeconfigSecretExists" in vc.api.raw("GET", "/readyz/warnings")[-1].decode(), 60, "the warning")
    assert host.api.get(own)["data"]["value"] == "ZWRpdGVk"
    host.api.delete(own)
    eventually(lambda: host.api.get(own)["data"] == data[own], 60, "its own in place of the other's", also=[404])
