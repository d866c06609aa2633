# SPDX-License-Identifier: Apache-2.0
"""An ordinary kubectl against a virtual cluster without a host: every command says what it always says."""
import json

import pytest

from testenv import eventually


@pytest.fixture
def vc(tenant):
    return tenant("alone", on=False)


CREATES = [
    ("namespace", "n1"),
    ("configmap", "c1", "--from-literal=a=b"),
    ("secret", "generic", "s1", "--from-literal=a=b"),
    ("secret", "docker-registry", "s2", "--docker-username=u", "--docker-password=p"),
    ("serviceaccount", "sa1"),
    ("deployment", "d1", "--image=nginx", "--replicas=2"),
    ("job", "j1", "--image=busybox"),
    ("cronjob", "cj1", "--image=busybox", "--schedule=*/5 * * * *"),
    ("role", "r1", "--verb=get,list", "--resource=pods"),
    ("rolebinding", "rb1", "--role=r1", "--serviceaccount=default:sa1"),
    ("clusterrole", "cr1", "--verb=get", "--resource=nodes"),
    ("clusterrolebinding", "crb1", "--clusterrole=cr1", "--user=bob"),
    ("quota", "q1", "--hard=pods=50,services=10"),
    ("service", "clusterip", "svc1", "--tcp=80:8080"),
    ("service", "externalname", "svc2", "--external-name=example.com"),
    ("ingress", "i1", "--rule=foo.example/bar=svc1:80"),
    ("poddisruptionbudget", "pdb1", "--selector=app=d1", "--min-available=1"),
    ("priorityclass", "pc1", "--value=1000"),
]


def test_create_every_kind(vc):
    for args in CREATES:
        out = vc.kubectl("create", *args)
        assert "created" in out, args
    assert len(vc.kubectl("create", "token", "sa1").strip().split(".")) == 3
    vc.kubectl("autoscale", "deployment", "d1", "--min=1", "--max=3")
    vc.kubectl("expose", "deployment", "d1", "--port=80", "--name=exposed")
    vc.kubectl("run", "p1", "--image=nginx")


def test_read_in_every_form(vc):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx", "--replicas=3")
    eventually(lambda: len(k.names("pods", "-l", "app=web")) == 3, 30, "three pods")
    table = k("get", "deployments").splitlines()
    assert table[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert table[1].split()[:4] == ["web", "0/3", "3", "0"]
    wide = k("get", "pods", "-o", "wide").splitlines()
    assert wide[0].split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert wide[1].split()[1:3] == ["0/1", "Pending"]
    assert k("get", "pods", "-o", "name").count("pod/web-") == 3
    assert k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "kind: Deployment" in k("get", "deploy", "web", "-o", "yaml")
    assert "web" in k("get", "all", "-A")
    described = k("describe", "deployment", "web")
    assert "Replicas:" in described and "ScalingReplicaSet" in described
    assert "deployments" in k("api-resources")
    assert "apps/v1" in k("api-versions")
    assert "FIELDS:" in k("explain", "deployment.spec")
    assert "running" in k("cluster-info")


def test_change_and_remove(vc):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    k("label", "deployment", "web", "tier=front")
    k("annotate", "deployment", "web", "note=x")
    k("scale", "deployment", "web", "--replicas=3")
    assert k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas} {.metadata.labels.tier}") == "3 front"
    k("set", "image", "deployment/web", "nginx=nginx:2")
    eventually(lambda: "2" in k("rollout", "history", "deployment/web"), 30, "a second revision")
    k("rollout", "undo", "deployment/web")
    image = "jsonpath={.spec.template.spec.containers[0].image}"
    eventually(lambda: k("get", "deploy", "web", "-o", image) == "nginx:1", 30, "the first image")
    k("patch", "deployment", "web", "-p", '{"spec":{"paused":true}}')
    k("patch", "deployment", "web", "--type=json", "-p",
      '[{"op":"replace","path":"/spec/paused","value":false}]')
    k("patch", "deployment", "web", "--type=merge", "-p", '{"spec":{"replicas":1}}')
    assert k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "1"
    k("delete", "deployment", "web")
    eventually(lambda: not k.names("rs") and not k.names("pods"), 30, "the collector to do its work")


def test_apply_edit_diff(vc):
    k = vc.kubectl
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    assert "created" in k.apply(manifest)
    assert "unchanged" in k.apply(manifest)
    manifest["data"] = {"b": "before"}
    assert "configured" in k.apply(manifest)
    assert k.json("get", "cm", "c")["data"] == {"b": "before"}
    code, out, err = k.run("edit", "cm", "c", env={"KUBE_EDITOR": "sed -i s/before/after/"})
    assert code == 0, err
    assert k.json("get", "cm", "c")["data"] == {"b": "after"}
    k("wait", "--for=jsonpath={.data.b}=after", "cm/c", "--timeout=180s")
    assert "deleted" in k("delete", "cm", "c")
    assert "NotFound" in k.fails("get", "cm", "c")


def test_namespace_goes_with_its_content(vc):
    k = vc.kubectl
    k("create", "namespace", "tmp")
    k("create", "configmap", "c", "-n", "tmp", "--from-literal=a=b")
    k("create", "deployment", "d", "-n", "tmp", "--image=nginx")
    k("delete", "namespace", "tmp", "--timeout=180s")
    assert "NotFound" in k.fails("get", "namespace", "tmp")
    assert "not found" in k.fails("create", "configmap", "c", "-n", "tmp", "--from-literal=a=b")
    assert "Forbidden" in k.fails("delete", "namespace", "kube-system")


def test_who_may_what(vc):
    k = vc.kubectl
    assert k("auth", "can-i", "create", "pods").strip() == "yes"
    assert "system:masters" in k("auth", "whoami")
    k("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    k("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
    user = vc.kubectl_as(vc.service_account_kubeconfig("default", "reader"))
    assert user("auth", "can-i", "list", "configmaps").strip() == "yes"
    assert user.run("auth", "can-i", "list", "secrets")[1].strip() == "no"
    assert "kube-root-ca.crt" in user("get", "configmaps")
    denied = user.fails("get", "secrets")
    assert ('secrets is forbidden: User "system:serviceaccount:default:reader" cannot list resource '
            '"secrets" in API group "" in the namespace "default"') in denied
    assert "forbidden" in user.fails("create", "configmap", "x", "--from-literal=a=b")
    assert "forbidden" in user.fails("get", "configmaps", "-n", "kube-system")
    assert "system:serviceaccount:default:reader" in user("auth", "whoami")
    k("delete", "serviceaccount", "reader")
    assert "Unauthorized" in user.fails("get", "configmaps") or \
        "logged in" in user.fails("get", "configmaps")


def test_nobody_hands_out_more_than_they_have(vc):
    k = vc.kubectl
    k("create", "role", "limited", "--verb=get,create,update", "--resource=roles,rolebindings,configmaps")
    k("create", "rolebinding", "limited", "--role=limited", "--serviceaccount=default:limited")
    user = vc.kubectl_as(vc.service_account_kubeconfig("default", "limited"))
    user("create", "role", "same", "--verb=get", "--resource=configmaps")
    assert "not currently held" in user.fails("create", "role", "more", "--verb=get",
                                              "--resource=secrets")
    assert "not currently held" in user.fails("create", "rolebinding", "all",
                                              "--clusterrole=cluster-admin", "--user=me")


def test_impersonation(vc):
    k = vc.kubectl
    k("create", "clusterrole", "seer", "--verb=list", "--resource=nodes")
    k("create", "clusterrolebinding", "seer", "--clusterrole=seer", "--group=ops")
    assert k("auth", "can-i", "list", "nodes", "--as=eve", "--as-group=ops").strip() == "yes"
    assert k.run("auth", "can-i", "list", "nodes", "--as=eve")[1].strip() == "no"
    assert "forbidden" in k.fails("get", "pods", "--as=eve")


def test_a_restart_keeps_everything(vc):
    k = vc.kubectl
    k("create", "configmap", "keep", "--from-literal=a=b")
    before = k.json("get", "cm", "keep")
    vc.restart()
    assert vc.kubectl.json("get", "cm", "keep") == before
    vc.restart(kill=True)
    assert vc.kubectl.json("get", "cm", "keep") == before
    newer = vc.kubectl.json("create", "configmap", "next", "--from-literal=a=b")
    assert int(newer["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


def test_raw_answers_are_statuses(vc):
    raw = vc.api.raw
    for method, path, code, reason in [
        ("GET", "/api/v1/namespaces/default/pods/none", 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/things", 404, "NotFound"),
        ("POST", "/api/v1/namespaces/default/pods/none", 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/namespaces", 405, "MethodNotAllowed"),
        ("GET", "/api/v1/namespaces/default/pods/none/log", 404, "NotFound"),
    ]:
        got, _, body = raw(method, path)
        assert got == code, (method, path, got, body)
        if body.startswith(b"{"):
            status = json.loads(body)
            assert status["kind"] == "Status" and status["code"] == code
            assert status["reason"] == reason, status
