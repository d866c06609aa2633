# SPDX-License-Identifier: Apache-2.0
"""CRDs, live: validation, pruning, defaults, versions, status and scale, columns, and real operators' CRDs."""
import os
import re

import pytest
import yaml

from testenv import UNSET, binaries, eventually
from testenv.api import ApiError


def crd(group="stable.example.com", plural="crontabs", kind="CronTab", versions=None, scope="Namespaced"):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["cronSpec"], "properties": {
            "cronSpec": {"type": "string", "pattern": r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$"},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
            "image": {"type": "string"},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                        "statusReplicasPath": ".status.replicas",
                                                        "labelSelectorPath": ".status.selector"}},
               "additionalPrinterColumns": [
                   {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
                   {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                   {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "versions": versions or [version],
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind,
                               "shortNames": [plural[:2]]}}}


def cron(name="c", **spec):
    return {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": name},
            "spec": {"cronSpec": "* * * * */5", **spec}}


PATH = "/apis/stable.example.com/v1/namespaces/default/crontabs"


@pytest.fixture
def vc(tenant):
    return tenant("alone", on=False)


@pytest.fixture
def crons(vc):
    vc.kubectl.apply(crd())
    vc.kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=180s")
    return vc


def test_life_of_a_custom_resource(crons):
    k = crons.kubectl
    k.apply(cron(replicas=2, image="x"))
    got = k.json("get", "crontab", "c")
    assert got["spec"] == {"cronSpec": "* * * * */5", "replicas": 2, "image": "x"}
    table = k("get", "cr").splitlines()
    assert table[0].split() == ["NAME", "SPEC", "REPLICAS", "AGE"]
    assert table[1].split()[0] == "c"
    k("scale", "crontab", "c", "--replicas=5")
    assert k.json("get", "crontab", "c")["spec"]["replicas"] == 5
    k("patch", "crontab", "c", "--type=merge", "-p", '{"spec":{"image":"y"}}')
    assert k.json("get", "crontab", "c")["metadata"]["generation"] == 3
    k("delete", "crontab", "c")
    assert "NotFound" in k.fails("get", "crontab", "c")


def test_objects_are_judged(crons):
    for spec, field, words in [
        ({"cronSpec": "never"}, "spec.cronSpec", "should match"),
        ({"replicas": 0}, "spec.replicas", "greater than or equal to 1"),
        ({"replicas": "two"}, "spec.replicas", "must be of type integer"),
        ({"mode": "medium"}, "spec.mode", "supported values"),
    ]:
        with pytest.raises(ApiError) as e:
            crons.api.post(PATH, cron(**spec))
        assert e.value.code == 422 and e.value.reason == "Invalid", spec
        causes = e.value.status["details"]["causes"]
        assert any(c["field"] == field and words in c["message"] for c in causes), causes
    bad = cron()
    del bad["spec"]["cronSpec"]
    with pytest.raises(ApiError) as e:
        crons.api.post(PATH, bad)
    assert e.value.status["details"]["causes"][0]["reason"] == "FieldValueRequired"


def test_unknown_fields_go_and_defaults_come(crons):
    made = crons.api.post(PATH, cron(unknown=1, free={"anything": {"goes": [1, "2"]}}))
    assert "unknown" not in made["spec"] and made["spec"]["replicas"] == 1
    assert made["spec"]["free"] == {"anything": {"goes": [1, "2"]}}
    with pytest.raises(ApiError) as e:
        crons.api.post(f"{PATH}?fieldValidation=Strict", cron("d", unknown=1))
    assert e.value.code == 400 and 'unknown field "spec.unknown"' in str(e.value.status["message"])


def test_status_is_written_apart(crons):
    crons.api.post(PATH, {**cron(), "status": {"replicas": 7}})
    assert "status" not in crons.api.get(f"{PATH}/c")
    o = crons.api.get(f"{PATH}/c")
    o["status"] = {"replicas": 3}
    o["spec"]["replicas"] = 9
    crons.api.put(f"{PATH}/c/status", o)
    got = crons.api.get(f"{PATH}/c")
    assert got["status"] == {"replicas": 3} and got["spec"]["replicas"] == 1
    assert got["metadata"]["generation"] == 1


def test_several_versions(vc):
    def version(name, storage):
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}

    vc.kubectl.apply(crd(versions=[version("v1", True), version("v2", False)]))
    vc.kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=180s")
    vc.api.post(PATH, cron())
    other = vc.api.get("/apis/stable.example.com/v2/namespaces/default/crontabs/c")
    assert other["apiVersion"] == "stable.example.com/v2"
    other["spec"]["x"] = 1
    vc.api.put("/apis/stable.example.com/v2/namespaces/default/crontabs/c", other)
    assert vc.api.get(f"{PATH}/c")["apiVersion"] == "stable.example.com/v1"
    assert vc.api.get(f"{PATH}/c")["spec"]["x"] == 1
    vc.kubectl.apply(crd(versions=[version("v1", False), version("v2", True)]))
    eventually(lambda: vc.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                                  "crontabs.stable.example.com")["status"]["storedVersions"] == ["v1", "v2"],
               30, "both stored versions", also=UNSET)
    assert vc.api.get(f"{PATH}/c")["apiVersion"] == "stable.example.com/v1"
    assert vc.api.get(PATH)["items"][0]["apiVersion"] == "stable.example.com/v1"


def test_deleting_a_crd_takes_its_objects(crons):
    for i in range(5):
        crons.api.post(PATH, cron(f"c{i}"))
    assert "finalizers" not in crons.kubectl.json("get", "crd", "crontabs.stable.example.com")["metadata"]
    crons.kubectl("delete", "crd", "crontabs.stable.example.com", "--timeout=180s")
    with pytest.raises(ApiError) as e:
        crons.api.get(PATH)
    assert e.value.code == 404
    assert "crontabs" not in crons.kubectl("api-resources")
    crons.kubectl.apply(crd())
    crons.kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=180s")
    assert crons.api.get(PATH)["items"] == []


def test_apiservices_follow_what_is_served(crons):
    k = crons.kubectl
    name = "v1.stable.example.com"
    eventually(lambda: {"v1.", "v1.apps", "v2.autoscaling", name} <= set(k.names("apiservices")), 30, "the APIServices")
    assert k("get", "apiservice", "v1.apps", "--no-headers").split()[:3] == ["v1.apps", "Local", "True"]
    k("delete", "apiservice", name)
    eventually(lambda: name in k.names("apiservices"), 30, "it to be back")
    mine = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.mine.example.com"},
            "spec": {"group": "mine.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
                     "insecureSkipTLSVerify": True, "service": {"name": "s", "namespace": "default"}}}
    k.apply(mine)
    k("delete", "crd", "crontabs.stable.example.com")
    eventually(lambda: name not in k.names("apiservices"), 30, "it to go with its definition")
    assert "v1.mine.example.com" in k.names("apiservices")


def test_a_schema_changes_under_watch(crons):
    start = crons.api.get(PATH)["metadata"]["resourceVersion"]
    crons.api.post(PATH, cron("a"))
    changed = crd()
    spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["replicas"]["maximum"] = 3
    crons.kubectl.apply(changed)

    def refused():
        try:
            crons.api.post(f"{PATH}?dryRun=All", cron("b", replicas=5))
            return False
        except ApiError as e:
            return e.code == 422

    eventually(refused, 30, "the new maximum")
    crons.api.post(PATH, cron("b"))
    names = []
    for event in crons.api.clone().watch(f"{PATH}?resourceVersion={start}"):
        names.append(event["object"]["metadata"]["name"])
        if len(names) == 2:
            break
    assert names == ["a", "b"]


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"d": value}
    return value


def test_what_is_stored_can_be_read_after_a_restart(crons):
    """managedFields nest deeper than what a client sends, and a policy can nest it once more."""
    admission = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
    wrap = 'Object{spec: Object.spec{free: {"e": {"e": {"e": {"e": {"e": {"e": {"e": {"e": object.spec.free}}}}}}}}}}'
    crons.api.post(f"{admission}ies", {"metadata": {"name": "wrap"}, "spec": {
        "reinvocationPolicy": "Never", "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": wrap}}],
        "matchConstraints": {"objectSelector": {"matchLabels": {"wrap": "yes"}}, "resourceRules": [
            {"apiGroups": ["stable.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["crontabs"]}]}}})
    crons.api.post(f"{admission}ybindings", {"metadata": {"name": "wrap"}, "spec": {"policyName": "wrap"}})
    codes = {}
    for depth in range(238, 256):
        for wrapped in ("no", "yes"):
            body = cron(f"d{depth}-{wrapped}", free=nested(depth))
            body["metadata"]["labels"] = {"wrap": wrapped}
            codes[body["metadata"]["name"]] = crons.api.raw("POST", PATH, body)[0]
    assert {201, 413} <= set(codes.values()) <= {201, 400, 413}, codes
    crons.process.kill()
    crons.start()
    made = {name for name, code in codes.items() if code == 201}
    assert {o["metadata"]["name"] for o in crons.api.get(PATH)["items"]} == made
    assert {name: crons.api.raw("GET", f"{PATH}/{name}")[0] for name in made} == {name: 200 for name in made}


def test_names_do_not_clash(crons):
    other = crd(plural="cronies", kind="CronTab")
    other["spec"]["names"]["singular"] = "crony"
    other["spec"]["names"]["shortNames"] = ["crn"]
    crons.kubectl.apply(other)

    def conditions():
        o = crons.kubectl.json("get", "crd", "cronies.stable.example.com")
        return {c["type"]: c for c in o.get("status", {}).get("conditions", [])}

    eventually(lambda: conditions().get("NamesAccepted", {}).get("status") == "False", 30, "a refusal")
    assert conditions()["NamesAccepted"]["reason"] == "ListKindConflict"  # the last of them, as upstream
    assert conditions()["Established"]["status"] == "False"


def test_bad_definitions_are_refused(vc):
    def change(**spec):
        o = crd()
        o["spec"].update(spec)
        return o

    cases = [(change(scope="Everywhere"), "spec.scope"), (change(group="nodots"), "spec.group"),
             (change(versions=[]), "spec.versions")]
    untyped = crd()
    untyped["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] = {}
    cases.append((untyped, "type"))
    guarded = crd(group="things.k8s.io")
    cases.append((guarded, "api-approved"))
    for o, words in cases:
        with pytest.raises(ApiError) as e:
            vc.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", o)
        assert e.value.code == 422, o
        assert any(words in c["field"] for c in e.value.status["details"]["causes"]), e.value.status


@pytest.mark.parametrize("operator", ["gateway-api", "cert-manager", "kueue"])
def test_real_operators(vc, operator):
    paths = binaries.crds(operator)
    assert paths
    plain = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            docs = [d for d in yaml.safe_load_all(f) if d and d.get("kind") == "CustomResourceDefinition"]
        for d in docs:
            # Helm templates' leavings in published manifests are not part of a CRD.
            assert not re.search(r"\{\{", yaml.safe_dump(d)), os.path.basename(path)
            plain.append(d)
            made = vc.kubectl.create(d)
            assert "created" in made
    for d in plain:
        vc.kubectl("wait", "--for=condition=Established", "crd/" + d["metadata"]["name"], "--timeout=180s")
    served = vc.kubectl("api-resources", "-o", "name")
    for d in plain:
        assert d["metadata"]["name"] in served


def test_objects_of_real_operators(vc):
    for operator in ("gateway-api", "cert-manager"):
        for path in binaries.crds(operator):
            vc.kubectl("create", "-f", path)
    eventually(lambda: "certificates.cert-manager.io" in vc.kubectl("api-resources", "-o", "name") and
               "gateways.gateway.networking.k8s.io" in vc.kubectl("api-resources", "-o", "name"),
               30, "the kinds")
    vc.kubectl.apply({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "c"},
                      "spec": {"secretName": "s", "issuerRef": {"name": "i"}, "dnsNames": ["a.example"]}})
    refusal = vc.kubectl.fails("create", "-f", "-", stdin=yaml.safe_dump(
        {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "d"},
         "spec": {"secretName": 5, "issuerRef": {"name": "i"}}}))
    assert "spec.secretName" in refusal and "must be of type string" in refusal
    vc.kubectl.apply({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                      "metadata": {"name": "g"}, "spec": {"gatewayClassName": "x", "listeners": [
                          {"name": "http", "port": 80, "protocol": "HTTP"}]}})
    bad = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "bad"},
           "spec": {"gatewayClassName": "x", "listeners": [{"name": "http", "port": 99999,
                                                            "protocol": "HTTP"}]}}
    assert "spec.listeners[0].port" in vc.kubectl.fails("create", "-f", "-", stdin=yaml.safe_dump(bad))
