# SPDX-License-Identifier: Apache-2.0
"""init.manifests: what a virtual cluster has from its first start, applied until it is there, and left to the tenant then."""
import subprocess

import pytest
import yaml

from testenv import ApiError, binaries, eventually
from testenv.helm import Helm

NOTE = "/api/v1/namespaces/kube-system/configmaps/sublet-init"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = """
apiVersion: team.example/v1
kind: Thing
metadata: {name: early, namespace: tools}
spec: {size: 1}
---
# a comment alone
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: greeting, namespace: tools}, data: {a: "1", b: "2"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: here}, data: {a: "1"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: tools}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.team.example}
spec:
  group: team.example
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def there(vc, path):
    return eventually(lambda: vc.api.get(path), 60, f"{path} to be applied", also=[404])


def data(vc, name, namespace="tools"):
    return there(vc, f"/api/v1/namespaces/{namespace}/configmaps/{name}")["data"]


def warnings(vc):
    return vc.api.raw("GET", "/readyz/warnings")[2].decode()


def test_what_is_there_from_the_first_start(tenant):
    """In whatever order: a kind, a namespace and their objects follow one another."""
    vc = tenant("research", config={"init": {"manifests": TEXT}})
    first = there(vc, NOTE)["data"]["applied"]
    assert there(vc, "/apis/team.example/v1/namespaces/tools/things/early")["spec"] == {"size": 1}
    assert data(vc, "greeting") == {"a": "1", "b": "2"} and data(vc, "here", "default") == {"a": "1"}
    assert there(vc, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/team")["roleRef"]["name"] == "view"
    managers = vc.api.get("/api/v1/namespaces/tools/configmaps/greeting")["metadata"]["managedFields"]
    assert [(m["manager"], m["operation"]) for m in managers] == [("sublet-init", "Apply")]
    assert "init" not in warnings(vc)

    # Then it is the tenant's: a restart leaves what it changed and deleted.
    vc.api.patch("/api/v1/namespaces/tools/configmaps/greeting", {"data": {"a": "mine"}})
    vc.api.delete("/api/v1/namespaces/default/configmaps/here")
    vc.restart(kill=True)
    assert there(vc, NOTE)["data"]["applied"] == first
    assert data(vc, "greeting") == {"a": "mine", "b": "2"}
    with pytest.raises(ApiError):
        vc.api.get("/api/v1/namespaces/default/configmaps/here")

    # Other manifests are applied: it takes its fields back, drops those it has no more, and deletes no object.
    vc.stop()
    vc.write_config({"init": {"manifests": TEXT.replace(', b: "2"', '').replace("size: 1", "size: 2").replace("name: team}", "name: team2}", 1)}})
    vc.start()
    eventually(lambda: there(vc, NOTE)["data"]["applied"] != first, 60, "the other text to be applied")
    assert data(vc, "greeting") == {"a": "1"} and data(vc, "here", "default") == {"a": "1"}
    assert vc.api.get("/apis/team.example/v1/namespaces/tools/things/early")["spec"] == {"size": 2}
    for name in ("team", "team2"):
        assert vc.api.get(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}")
    vc.stop()
    vc.write_config({"init": None})
    vc.start()
    assert data(vc, "greeting") == {"a": "1"}


def test_what_cannot_be_applied_is_said_and_tried_again(tenant):
    """By log, metric and readiness; the others are there, and the API serves."""
    manifests = [{"apiVersion": "team.example/v1", "kind": "Thing", "metadata": {"name": "late"}, "spec": {}},
                 {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rooted"}, "spec": {
                     "hostNetwork": True, "containers": [{"name": "c", "image": "busybox:1"}]}},
                 {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {"name": "x"}, "spec": {}},
                 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fine"}, "data": {"a": "1"}}]
    vc = tenant("research", config={"init": {"manifests": manifests[:1] + manifests[3:]}})
    assert data(vc, "fine", "default") == {"a": "1"}
    said = eventually(lambda: "ManifestsNotApplied" in vc.api.raw("GET", "/readyz?verbose")[2].decode() and warnings(vc), 60,
                      "the warning")
    assert "1 of 2 init.manifests" in said and "Thing late: its kind is not served" in said
    assert [line for line in vc.api.raw("GET", "/metrics")[2].decode().splitlines()
            if line.startswith("sublet_notices{") and 'topic="init"' in line and line.endswith(" 1")]
    assert "ManifestsNotApplied" in vc.process.tail(1000)
    crd = next(d for d in yaml.safe_load_all(TEXT) if d and d["kind"] == "CustomResourceDefinition")
    vc.api.post(CRDS, crd)
    there(vc, "/apis/team.example/v1/namespaces/default/things/late")
    there(vc, NOTE)
    eventually(lambda: "ManifestsNotApplied" not in warnings(vc), 60, "no warning any more")

    # The admin's policy holds for them as for what the tenant writes.
    vc.stop()
    vc.write_config({"init": {"manifests": manifests[1:]}})
    vc.start()
    said = eventually(lambda: "ManifestsNotApplied" in warnings(vc) and warnings(vc), 60, "the other warning")
    assert "2 of 3 init.manifests" in said and "Pod rooted" in said and "hostNetwork" in said or "host namespaces" in said
    with pytest.raises(ApiError):
        vc.api.get("/api/v1/namespaces/default/pods/rooted")


@pytest.mark.parametrize("manifests,message", [
    ("a: [", "init.manifests[0]: "), ("kind: ConfigMap", "want an object with apiVersion, kind and metadata.name"),
    ([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}}], "init.manifests[0]: want an object"),
    (5, "want a list of objects, or YAML documents as a string"), (["a"], "init.manifests[0]: want an object"),
    ([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}} for i in range(257)], "at most 256 objects"),
    ("#" + "a" * 530000, "at most 524288 bytes"),
    ([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}, "data": {"a": "x" * 10000}} for i in range(60)],
     "at most 524288 bytes")], ids=["syntax", "no name", "a made name", "a number", "a string", "many", "a long text", "long ones"])
def test_mistakes(tmp_path, manifests, message):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"init": {"manifests": manifests}}))
    answer = subprocess.run([binaries.sublet(), "check", "--config", path], capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and message in answer.stderr, answer


def test_manifests_of_the_chart(tmp_path):
    objects = Helm(tmp_path).template("research", "t", {"config": {"init": {"manifests": TEXT}}})
    config = yaml.safe_load(next(o for o in objects if o["kind"] == "ConfigMap")["data"]["config.yaml"])
    assert config["init"]["manifests"] == TEXT
    listed = {"config": {"init": {"manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tools"}}]}}}
    config = yaml.safe_load(next(o for o in Helm(tmp_path).template("research", "t", listed)
                                 if o["kind"] == "ConfigMap")["data"]["config.yaml"])
    assert config["init"] == listed["config"]["init"]
