# SPDX-License-Identifier: Apache-2.0
"""The same requests to Sublet and to a real kube-apiserver: every answer is the same, or a line of the reviewed list
tests/differential/accepted.yaml says why it is not. SUBLET_DIFFER_CASES multiplies the cases, SUBLET_DIFFER_SEED
draws others."""
import functools
import json
import os

import pytest

from differential import protocol, reads, sequences
from differential.servers import prepare, start_pair
from differential.suite import NAMESPACE, Suite, accepted, load_seeds, unexpected, unused
from testenv import eventually

PROTOBUF = "application/vnd.kubernetes.protobuf"
MANY = float(os.environ.get("SUBLET_DIFFER_CASES", "1"))
SEED = int(os.environ.get("SUBLET_DIFFER_SEED", "1"))


@pytest.fixture(scope="module")
def pair(workdir):
    here, there = start_pair(os.path.join(workdir, "differential"))
    for api in (here.api, there.api):
        prepare(api, NAMESPACE)
    yield here.api, there.api
    try:
        here.close()
    finally:
        there.stop()


def told(found, shown=25):
    lines = [f"{len(ds):4} {key}\n     {[(list(p), str(v)[:80]) for p, v in ds[0].changes]}"
             for key, ds in sorted(found.items(), key=lambda x: -len(x[1]))]
    return f"{len(lines)} kinds of differences\n" + "\n".join(lines[:shown])


@pytest.fixture(scope="module")
def run(pair):
    """run(part) -> (differences, number of comparisons); each part is run once, by the first test that looks at it."""
    def objects():
        suite = Suite(*pair)
        return suite.run(int(16 * MANY), int(10 * MANY), SEED), suite.compared

    parts = {"objects": objects, "reads": lambda: reads.run(*pair, NAMESPACE), "conversations": lambda: protocol.run(*pair),
             "sequences": lambda: sequences.run(*pair, seeds=range(SEED - 1, SEED - 1 + max(1, int(2 * MANY))))}
    return functools.cache(lambda part: parts[part]())


@pytest.mark.parametrize("part,least", [("objects", 1500 * MANY), ("reads", 250), ("conversations", 700),
                                        ("sequences", 700 * MANY)])
def test_answers_are_alike(run, part, least):
    found, n = run(part)
    found = unexpected(found)
    assert n > least
    assert not found, told(found)


def test_a_watch_ends_with_its_schema(pair):
    """Who watches custom resources by a schema that is no more is shown nothing by it: the watch ends on both."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    group, field = "watched.example.com", {"type": "string", "default": "x"}
    shape = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": field}}}}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{group}"},
           "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
               {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}}]}}
    path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/things"
    more = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b", "value": field}]
    for api in pair:
        api.post(crds, crd)
        eventually(lambda a=api: a.raw("GET", path)[0] == 200, 120, "things")
        watcher = api.clone()
        watcher.timeout = 180
        response = watcher.open("GET", path + "?watch=1&timeoutSeconds=600")
        api.patch(f"{crds}/things.{group}", more, "json")
        assert response.read() == b""
        watcher.close()
        api.delete(f"{crds}/things.{group}")
        eventually(lambda a=api: a.raw("GET", f"{crds}/things.{group}")[0] == 404, 120, "the definition to go")


def test_the_reviewed_list_is_short():
    reasons = {why for _, why in accepted()}
    assert len(reasons) < 20
    assert all(len(why) > 20 for why in reasons)


def test_the_reviewed_list_is_used(run):
    """A difference that is gone leaves the list: its pattern would hide the next one."""
    left = unused([d for part in ("objects", "reads", "conversations", "sequences") for d in run(part)[0]])
    assert not left, "no difference is explained by:\n" + "\n".join(left)


def seed(kind):
    obj = next(s for s in load_seeds() if s["kind"] == kind)
    return {**obj, "metadata": {**obj["metadata"], "name": "pb"}}


def body(obj):
    """What both sides must agree on; addresses are given by each server, or not in a dry run."""
    spec = {k: v for k, v in (obj.get("spec") or {}).items() if not k.startswith(("clusterIP", "ipFamil"))}
    return [spec] + [obj.get(k) for k in ("data", "rules", "subjects")]


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Service", "ConfigMap", "Secret", "CronJob", "Ingress", "RoleBinding",
                                  "StorageClass", "HorizontalPodAutoscaler", "Lease", "CSIDriver"])
def test_protobuf_in_both_directions(pair, kind):
    """What Sublet answers in protobuf a real server takes, and what that answers Sublet takes."""
    obj = seed(kind)
    suite = Suite(*pair, kinds=[kind])
    path = suite.collection(obj)
    for sender, receiver in (pair, pair[::-1]):
        code, headers, data = sender.raw("POST", path, obj, accept=PROTOBUF, query={"dryRun": "All"})
        assert (code, headers["content-type"]) == (201, PROTOBUF) and data[:4] == b"k8s\0", data[:300]
        want = json.loads(sender.raw("POST", path, obj, query={"dryRun": "All"})[2])
        code, headers, data = receiver.raw("POST", path, data, PROTOBUF, query={"dryRun": "All"})
        got = json.loads(data)
        assert code == 201 and headers["content-type"] == "application/json", data[:300]
        assert body(got) == body(want)


def test_protobuf_lists_watches_and_errors(pair):
    here, _ = pair
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    code, headers, data = here.raw("GET", path, accept=PROTOBUF)
    assert (code, headers["content-type"]) == (200, PROTOBUF) and b"ConfigMapList" in data[:40]
    code, headers, data = here.raw("GET", f"{path}/none", accept=PROTOBUF)
    assert (code, headers["content-type"]) == (404, PROTOBUF) and b"Status" in data[:20]
    here.raw("POST", path, {"metadata": {"name": "watched"}})
    for seconds in ("1", "10", "60"):  # a busy machine may have sent nothing in one
        code, headers, data = here.raw("GET", path, accept=PROTOBUF, query={
            "watch": "1", "timeoutSeconds": seconds, "fieldSelector": "metadata.name=watched"})
        if data:
            break
    assert (code, headers["content-type"]) == (200, PROTOBUF + ";stream=watch")
    size = int.from_bytes(data[:4], "big")
    assert data[4:11] == b"\n\x05ADDED" and b"k8s\0" in data[11:20] and len(data) >= 4 + size
    for accept in (PROTOBUF + ",application/json", "application/json", PROTOBUF + ", */*"):
        assert here.raw("GET", path, accept=accept)[1]["content-type"] == "application/json"
