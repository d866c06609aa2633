# SPDX-License-Identifier: Apache-2.0
"""OpenAPI v2 and v3: the same documents as a real API server's, and what kubectl does with them."""
import hashlib
import json
import re
import threading

import pytest
import yaml

from testenv import UNSET, eventually

from openapi_cases import (comparable, compared_crds, differences, document, fetch, index, messages, named)

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
GROUP = "stable.compare.example"
SECRET_GROUP = "secret.other-team.example"


def host_crd(group, plural="hiddens", kind="Hidden"):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


@pytest.fixture
def vc(tenant):
    return tenant("openapi")


@pytest.fixture
def alone(tenant):
    return tenant("alone", on=False)


@pytest.fixture
def both(vc, real_host):
    """Tenant and host with the same CRDs, published by both."""
    crds = compared_crds()
    text = yaml.safe_dump_all(crds)
    for kubectl in (vc.kubectl, real_host.kubectl):
        kubectl("apply", "-f", "-", stdin=text)
    roots = {f"apis/{GROUP}/v1", f"apis/{GROUP}/v1beta1"}
    try:
        for api in (vc.api, real_host.api):
            eventually(lambda a=api: published(a, roots), 60, "all of both definitions to be published", also=UNSET)
        yield vc, real_host
    finally:
        real_host.kubectl("delete", "-f", "-", stdin=text)


KINDS = {"v1.CronTab", "v1.CronTabList", "v1beta1.CronTab", "v1beta1.CronTabList", "v1.Gear", "v1.Gears"}


def published(api, roots):
    """A real server publishes version by version and kind by kind, each when it comes to it."""
    at = index(api)
    names = {f"{'.'.join(reversed(GROUP.split('.')))}.{kind}" for kind in KINDS}
    in_groups = set().union(*(document(api, at[root])["components"]["schemas"] for root in roots))
    return names <= in_groups and names <= set(document(api, "/openapi/v2")["definitions"])


def is_compared(root):
    """All but the custom resources of other tests on the same host."""
    group = root.split("/")[1] if root.startswith("apis/") else ""
    return group == GROUP or "." not in group or group.endswith(".k8s.io")


def without_others(v2):
    """A v2 document, which has all groups at once."""
    groups = {path.split("/")[2] for path in v2["paths"] if path.startswith("/apis/") and path.count("/") > 2}
    others = {g for g in groups if not is_compared(f"apis/{g}")}
    prefixes = tuple(".".join(reversed(g.split("."))) + "." for g in others)
    return {**v2, "definitions": {k: v for k, v in v2["definitions"].items() if not k.startswith(prefixes)},
            "paths": {k: v for k, v in v2["paths"].items() if not k.startswith(tuple(f"/apis/{g}/" for g in others))}}


def test_documents_are_those_of_a_real_server(both):
    vc, host = both
    ours, theirs = index(vc.api), index(host.api)
    served = {root for root in theirs if is_compared(root)}
    assert served - set(ours) == set()
    found = differences("v2", *(comparable(without_others(document(a, "/openapi/v2"))) for a in (vc.api, host.api)))
    for root in sorted(served):
        found += differences(root, *(comparable(document(a, i[root]))
                                     for a, i in ((vc.api, ours), (host.api, theirs))))
    assert not found, f"{len(found)} differences, the first:\n" + "\n".join(map(" ".join, found[:20]))


def test_index_and_hashes(vc, real_host):
    _, headers, _ = fetch(vc.api, "/openapi/v3")
    assert headers["content-type"] == "application/json"
    assert fetch(vc.api, "/openapi/v3", **{"If-None-Match": headers["etag"]})[0] == 304
    for api in (vc.api, real_host.api):
        status, _, body = fetch(api, "/openapi/v3")
        assert status == 200
        url = json.loads(body)["paths"]["apis/apps/v1"]["serverRelativeURL"]
        assert re.fullmatch(r"/openapi/v3/apis/apps/v1\?hash=[0-9A-F]{64,}", url)
        status, headers, body = fetch(api, url)
        assert status == 200 and headers["cache-control"] == "public, immutable"
        assert headers["etag"] == f'"{url.split("=")[1]}"'
        assert "expires" in headers and "last-modified" in headers and "Accept" in headers["vary"]
        assert fetch(api, url, **{"If-None-Match": headers["etag"]})[0] == 304

        status, plain, same = fetch(api, url.split("?")[0])
        assert status == 200 and same == body and "immutable" not in plain.get("cache-control", "")
        status, moved, _ = fetch(api, url.split("?")[0] + "?hash=0")
        assert status == 301 and moved["location"] == url
        assert fetch(api, url, accept="text/html")[0] == 406
        assert fetch(api, "/openapi/v3/apis/nothing/v1")[0] == 404


def test_v2_is_told_once(vc, real_host):
    def still(api, etag):
        return [fetch(api, "/openapi/v2", **{"If-None-Match": e})[0] for e in (etag, '"x", W/' + etag)] == [304, 304]

    for api in (vc.api, real_host.api):
        status, headers, body = fetch(api, "/openapi/v2")
        assert status == 200 and headers["content-type"] == "application/json"
        assert "Accept" in headers["vary"] and "last-modified" in headers
        # Kinds of tests before this one may still be terminating on the host.
        eventually(lambda a=api: still(a, fetch(a, "/openapi/v2")[1]["etag"]), 60, "the same document twice")
        assert json.loads(body)["swagger"] == "2.0"
        assert fetch(api, "/openapi/v2", accept="text/html")[0] == 406
        assert fetch(api, "/openapi/v2", accept="*/*")[1]["content-type"] == "application/json"


def same_names(api):
    top = dict(messages(fetch(api, "/openapi/v2", V2_PROTOBUF)[2]))
    known = document(api, "/openapi/v2")
    return set(named(top[9], 1)) == set(known["definitions"]) and set(named(top[8], 2)) == set(known["paths"])


def test_protobuf_tells_the_same(both):
    vc, host = both
    shapes = []
    for api in (vc.api, host.api):
        eventually(lambda a=api: same_names(a), 60, "the same document in both forms, whatever still goes from the host")
        status, headers, body = fetch(api, "/openapi/v2", V2_PROTOBUF)
        assert status == 200
        assert headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        top = dict(messages(body))
        cron = named(top[9], 1)[f"{'.'.join(reversed(GROUP.split('.')))}.v1.CronTab"]
        properties = named(dict(messages(cron))[25], 1)
        spec = named(dict(messages(properties["spec"]))[25], 1)
        # Numbers of the fields every property has, less its description (4).
        shapes.append({k: sorted(n for n, _ in messages(v) if n != 4) for k, v in spec.items()})

        url = index(api)[f"apis/{GROUP}/v1"]
        status, headers, body = fetch(api, url, V3_PROTOBUF)
        assert status == 200
        assert headers["content-type"] == "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
        schemas = dict(messages(dict(messages(body))[5]))[1]
        assert set(named(schemas, 1)) == set(document(api, url)["components"]["schemas"])
    assert shapes[0] == shapes[1]


EXPLAINED = [["deployment.spec"], ["pods.spec.containers"], ["pod.spec", "--recursive"], ["cronjobs"],
             ["hpa.spec.metrics", "--api-version=autoscaling/v2"], ["service.spec.ports.targetPort"],
             ["crd.spec.versions.schema"], ["node.status.capacity"], ["ingress.spec.rules.http"],
             ["configmap.metadata"]]


def test_explain_prints_the_hosts_text(vc, real_host):
    real_host.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(host_crd(SECRET_GROUP)))
    try:
        eventually(lambda: f"apis/{SECRET_GROUP}/v1" in index(real_host.api))
        for what in EXPLAINED:
            assert vc.kubectl("explain", *what) == real_host.kubectl("explain", *what), what
        assert "no <description>" not in vc.kubectl("explain", "deployment.spec")
        # A host is full of other teams' kinds: none of their names comes through.
        texts = [json.dumps(document(vc.api, url)) for url in index(vc.api).values()]
        texts += [json.dumps(index(vc.api)), json.dumps(document(vc.api, "/openapi/v2"))]
        assert not [t[:200] for t in texts if "other-team" in t or "Hidden" in t]
    finally:
        real_host.kubectl("delete", "crd", f"hiddens.{SECRET_GROUP}")


def test_a_tenants_group_takes_no_text_of_the_hosts(vc, real_host):
    theirs = host_crd("shared.example")
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(
        {"description": "of another team", "properties": {"spec": {"type": "string", "description": "theirs"}}})
    ours = host_crd("shared.example")
    ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": {"type": "string"}}
    real_host.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(theirs))
    try:
        eventually(lambda: "apis/shared.example/v1" in index(real_host.api))
        vc.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(ours))
        url = eventually(lambda: index(vc.api).get("apis/shared.example/v1"))
        text = json.dumps(document(vc.api, url))
        assert "another team" not in text and "theirs" not in text
        assert "Standard object's metadata" in text
    finally:
        real_host.kubectl("delete", "crd", "hiddens.shared.example")


def test_custom_resources_are_published_and_gone_at_once(alone):
    kubectl, api = alone.kubectl, alone.api
    crontabs = compared_crds()[0]
    name = "example.compare.stable.{}.CronTab"
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(crontabs))
    kubectl("wait", "crd/crontabs." + GROUP, "--for=condition=Established")

    def published(version):
        return name.format(version) in document(api, "/openapi/v2")["definitions"]

    assert published("v1") and published("v1beta1") and not published("v1alpha1")
    etag = fetch(api, "/openapi/v2")[1]["etag"]
    apps = index(api)["apis/apps/v1"]
    crontabs["spec"]["versions"][1]["served"] = False
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(crontabs))
    eventually(lambda: not published("v1beta1"))
    assert published("v1") and fetch(api, "/openapi/v2")[1]["etag"] != etag
    assert index(api)["apis/apps/v1"] == apps, "groups that did not change keep their hashes"
    assert f"apis/{GROUP}/v1beta1" not in index(api)

    assert "What is wanted." in kubectl("explain", "crontabs.spec")
    assert "List of" not in kubectl("explain", "crontabs.spec.port")
    assert re.search(r"(?s)DESCRIPTION:.*A CronTab for tests.*FIELDS:.*apiVersion.*<string>.*APIVersion defines"
                     r".*spec.*<Object>.*What is wanted", kubectl("explain", "crontabs"))
    assert re.search(r"(?s)Standard object's metadata.*creationTimestamp.*<string>.*CreationTimestamp is the time",
                     kubectl("explain", "crontabs.metadata"))
    assert 'field "nope" does not exist' in kubectl.fails("explain", "crontabs.spec.nope")
    assert "ports\t<[]Object>" in kubectl("explain", "crontabs.spec", "--recursive")
    assert "What is wanted." in kubectl("explain", "crontabs.spec", "--output=plaintext-openapiv2")

    kubectl("delete", "crd", "crontabs." + GROUP)
    eventually(lambda: not published("v1"))
    assert not [root for root in index(api) if GROUP in root]


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx%s}]}
"""


def test_kubectl_validates_and_compares(alone):
    kubectl = alone.kubectl
    kubectl("apply", "--validate=strict", "-f", "-", stdin=DEPLOYMENT % ("1", ""))
    assert 'unknown field "spec.template.spec.containers[0].imagine"' in kubectl.fails(
        "apply", "--validate=strict", "-f", "-", stdin=DEPLOYMENT % ("1", ", imagine: all"))
    kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-",
            stdin=DEPLOYMENT % ("2", ""))
    code, out, err = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT % ("3", ""))
    assert code == 1 and "-  replicas: 2" in out and "+  replicas: 3" in out, err
    assert kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT % ("2", ""))[0] == 0
    kubectl("create", "--validate=true", "--dry-run=client", "-f", "-", stdin=DEPLOYMENT % ("1", ""))


def test_client_side_validation_reads_the_schema(alone):
    """A server that validates no fields is one whose documents say so: then kubectl reads the schema itself."""
    kubectl = alone.kubectl
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(compared_crds()[0]))
    kubectl("wait", "crd/crontabs." + GROUP, "--for=condition=Established")
    cron = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab", "metadata": {"name": "c"},
            "spec": {"cronSpec": "2006-01-02T15:04:05Z", "color": "red", "unknown": 1}}
    assert 'unknown field "spec.unknown"' in kubectl.fails("create", "--validate=strict", "-f", "-",
                                                           stdin=yaml.safe_dump(cron))
    patch = document(alone.api, "/openapi/v2")["paths"][f"/apis/{GROUP}/v1/namespaces/{{namespace}}/crontabs/{{name}}"]
    names = {p.get("name") or p["$ref"].rsplit("/", 1)[1] for p in patch["patch"]["parameters"]}
    assert {"dryRun", "fieldValidation", "force"} <= names


def test_a_host_that_is_away_costs_the_text_only(tenant, real_host):
    vc = tenant("away")
    before = index(vc.api)
    apps = document(vc.api, before["apis/apps/v1"])
    assert apps["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]["description"]
    real_host.pause_component("kube-apiserver")
    try:
        # Requested for the first time: the hash promised a document, and the answer says that there is none.
        status, headers, body = fetch(vc.api, before["apis/batch/v1"])
        assert status == 200 and "immutable" not in headers["cache-control"]
        assert headers["etag"] != f'"{before["apis/batch/v1"].split("=")[1]}"'
        job = json.loads(body)["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"]
        assert "description" not in job and "completions" in job["properties"]
        assert "Deployment" in vc.kubectl("explain", "deployment")
    finally:
        real_host.resume_component("kube-apiserver")


def test_many_at_once_are_served_the_same_bytes(vc):
    roots = index(vc.api)
    answers = []

    def ask():
        api = vc.api.clone()
        try:
            for root in ("api/v1", "apis/apps/v1", "apis/batch/v1"):
                answers.append((root, hashlib.sha256(fetch(api, roots[root])[2]).hexdigest()))
        finally:
            api.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(answers) == 24 and len(set(answers)) == 3
