# SPDX-License-Identifier: Apache-2.0
"""What the controllers do that an ordinary kubectl sees, beside the workloads of test_tenant.py."""
import base64
import os
import subprocess

import pytest

from testenv import eventually

CLAIMS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: main, image: busybox:1, volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def request_of(directory, name, subject):
    """A signing request as base64 of PEM; its key is NAME.key in the directory."""
    key, csr = (os.path.join(directory, f"{name}.{kind}") for kind in ("key", "csr"))
    subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                    "-out", csr, "-subj", subject], check=True, capture_output=True)
    with open(csr, "rb") as f:
        return base64.b64encode(f.read()).decode()


@pytest.fixture
def vc(tenant):
    return tenant("controllers", config={"policy": {"verdict": "warn"}})


def test_the_hosts_verdict_knows_claims_of_statefulsets(vc):
    code, out, err = vc.kubectl.run("apply", "-f", "-", stdin=CLAIMS)
    assert code == 0, err
    assert "Warning" not in err, err
    eventually(lambda: vc.kubectl("get", "pvc", "data-db-0", "-o", "name"), 60, "the claim")


def test_a_user_gets_a_certificate_and_what_roles_give(vc, tmp_path):
    k = vc.kubectl
    request = request_of(tmp_path, "ann", "/O=team/CN=ann")
    k.apply({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
             "metadata": {"name": "ann"},
             "spec": {"request": request, "usages": ["client auth"], "expirationSeconds": 3600,
                      "signerName": "kubernetes.io/kube-apiserver-client"}})
    assert k("get", "csr", "ann", "-o", "jsonpath={.status.certificate}") == ""
    k("certificate", "approve", "ann")
    eventually(lambda: k("get", "csr", "ann", "-o", "jsonpath={.status.certificate}"), 30, "a certificate")
    cert = os.path.join(tmp_path, "ann.crt")
    with open(cert, "wb") as f:
        f.write(base64.b64decode(k("get", "csr", "ann", "-o", "jsonpath={.status.certificate}")))
    k("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    k("create", "rolebinding", "ann", "--role=reader", "--user=ann")
    ann = vc.kubectl_as(vc.user_kubeconfig("ann", cert=cert,
                                               key=os.path.join(tmp_path, "ann.key")))
    assert "kube-root-ca.crt" in ann("get", "configmaps", "-o", "name")
    assert "forbidden" in ann.fails("get", "secrets").lower()
    masters = request_of(tmp_path, "eve", "/O=system:masters/CN=eve")
    assert "system:masters" in k.fails("create", "-f", "-", stdin=f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: eve}}
spec:
  request: {masters}
  usages: [client auth]
  signerName: kubernetes.io/kube-apiserver-client
""")


def test_a_token_secret_lives_and_dies_with_its_secret(vc):
    k = vc.kubectl
    k("create", "serviceaccount", "robot")
    k("create", "clusterrolebinding", "robot", "--clusterrole=view", "--serviceaccount=default:robot")
    k.apply({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
             "metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}}})
    encoded = eventually(lambda: k("get", "secret", "robot", "-o", "jsonpath={.data.token}"), 30, "a token")
    token = base64.b64decode(encoded).decode()
    robot = vc.kubectl_as(vc.user_kubeconfig("robot", token=token))
    assert robot("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == \
        "system:serviceaccount:default:robot"
    k("delete", "secret", "robot")
    eventually(lambda: robot.run("get", "configmaps")[0] != 0, 30, "the token to be revoked")


def test_an_autoscaler_keeps_bounds_and_says_what_is_missing(vc):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx:1", "--replicas=1")
    k("autoscale", "deployment", "web", "--min=2", "--max=3", "--cpu=50%")
    eventually(lambda: k("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2", 30,
               "the lower bound")
    eventually(lambda: "FailedGetResourceMetric" in k("describe", "hpa", "web"), 30, "its reason")


def test_notes_on_a_node_stay(vc, host):
    k = vc.kubectl
    eventually(lambda: "cpu-1" in k.names("nodes"), 30, "the host's nodes")
    k("annotate", "node", "cpu-1", "example.com/note=mine")
    path, zone = "/api/v1/nodes/cpu-1", "topology.kubernetes.io/zone"
    before = host.api.get(path)["metadata"]["labels"].get(zone)
    patch = lambda value: host.api.request("PATCH", path, {"metadata": {"labels": {zone: value}}},
                                           content_type="application/merge-patch+json")
    patch("elsewhere")
    try:
        eventually(lambda: k.json("get", "node", "cpu-1")["metadata"]["labels"].get(zone) == "elsewhere", 30,
                   "the host's label")
        assert k.json("get", "node", "cpu-1")["metadata"]["annotations"]["example.com/note"] == "mine"
    finally:
        patch(before)


def test_whoever_changes_a_node_of_the_host_is_told_that_it_does_not_last(vc):
    k, path = vc.kubectl, "/api/v1/nodes/cpu-2"
    eventually(lambda: "cpu-2" in k.names("nodes"), 30, "the host's nodes")
    told = "labels, taints and the rest of a node are the host cluster's: what is changed here is set back"
    for change in ({"metadata": {"labels": {"color": "blue"}}}, {"spec": {"unschedulable": True}}):
        _, headers, _ = vc.api.raw("PATCH", path, change, content_type="application/merge-patch+json")
        assert told in headers.get("Warning", ""), change
    eventually(lambda: "color" not in vc.api.get(path)["metadata"]["labels"], 30, "the host's labels")
    eventually(lambda: "unschedulable" not in vc.api.get(path)["spec"], 30, "the host's spec")
    _, headers, _ = vc.api.raw("PATCH", path, {"metadata": {"annotations": {"example.com/note": "mine"}}},
                               content_type="application/merge-patch+json")
    assert headers.get("Warning") is None


def test_an_event_is_selected_by_its_source_or_its_reporter(vc):
    k = vc.kubectl
    for name, said in (("old", {"source": {"component": "a"}}), ("new", {"reportingComponent": "b"})):
        k.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": "Normal",
                  "involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"}, **said})
    assert k.names("events", "--field-selector=source=a") == ["old"]
    assert k.names("events", "--field-selector=source=b") == ["new"]


def test_quota_is_counted_also_where_the_controllers_are_external(tenant):
    k = tenant("external", config={"controllers": "external"}).kubectl
    k("create", "quota", "small", "--hard=configmaps=2,count/replicasets.apps=1")
    k("create", "configmap", "one")
    eventually(lambda: k.json("get", "quota", "small").get("status", {}).get("used") ==
               {"configmaps": "1", "count/replicasets.apps": "0"}, 30, "the count")
    k("create", "configmap", "two")
    assert "exceeded quota: small" in k.fails("create", "configmap", "three")
    k("create", "deployment", "web", "--image=nginx:1")
    assert k.names("replicasets") == [], "somebody acts on Deployments"
