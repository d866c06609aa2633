# SPDX-License-Identifier: Apache-2.0
"""Server-side apply beside the real thing: the same writes to Sublet and to kube-apiserver, the same answers.

Compared are codes, errors with their causes, and whole objects with managedFields, less what no two servers share
(apply_cases.stable). SUBLET_APPLY_SEEDS sets how many seeded sequences run per kind.
"""
import json
import os
import time

import pytest

from testenv import eventually
from testenv.api import ApiError

import apply_cases as cases

SEEDS = int(os.environ.get("SUBLET_APPLY_SEEDS", "6"))


def prepare(api):
    """The custom resources of the cases, served."""
    for crd in cases.crds():
        try:
            api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        except ApiError as e:
            assert e.code == 409, e
    for version in ("v1", "v1beta1"):
        eventually(lambda v=version: api.get(f"/apis/apply.example.com/{v}/namespaces/default/widgets"), 30,
                   "the widgets to be served", also=(429,))
    eventually(lambda: api.get("/apis/apply.example.com/v1/namespaces/default/frees"), 30, "frees", also=(429,))


def namespaces(api, names):
    """All at once, each with its service account."""
    for name in names:
        api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name in names:
        eventually(lambda n=name: api.get(f"/api/v1/namespaces/{n}/serviceaccounts/default"), 60, f"accounts of {name}")


def play(api, ns, steps):
    session = cases.Session(api, ns)
    for _, do in steps:
        try:
            do(session)
        except (ApiError, KeyError, IndexError) as e:
            session.answers.append((0, f"{type(e).__name__}: {e}"))
    return session.answers


def differences(name, steps, real, ours):
    out = []
    titles = [what for what, _ in steps]
    for title, theirs, mine in zip(titles, real, ours):
        if theirs != mine:
            out.append(f"{name}, {title}:\n  real  {json.dumps(theirs, sort_keys=True)}\n"
                       f"  ours  {json.dumps(mine, sort_keys=True)}")
    return out


def compare(real, ours, sequences):
    """Plays every sequence on both; returns (steps compared, differences)."""
    names = {name: f"a{i}" for i, name in enumerate(sequences)}
    for api in (real, ours):
        namespaces(api, names.values())
    compared, found = 0, []
    for name, steps in sequences.items():
        answers = [play(api, names[name], steps) for api in (real, ours)]
        compared += len(answers[0])
        found += differences(name, steps, *answers)
    return compared, found


@pytest.fixture
def pair(host, tenant):
    vc = tenant("apply", on=False)
    for api in (host.api, vc.api):
        prepare(api)
    yield host.api, vc.api
    for item in host.api.get("/api/v1/namespaces")["items"]:
        if item["metadata"]["name"].startswith("a") and item["metadata"]["name"][1:].isdigit():
            host.delete_namespace(item["metadata"]["name"])
            time.sleep(0)


def test_same_as_a_real_server(pair):
    sequences = dict(cases.hand_picked())
    for kind in cases.MAKERS:
        for seed in range(SEEDS):
            sequences[f"seeded {kind}/{seed}"] = cases.seeded(kind, seed)
    compared, found = compare(*pair, sequences)
    print(f"{len(sequences)} sequences, {compared} steps, {len(found)} differences")
    assert not found, "\n".join(found[:20])


# ---- kubectl ----

@pytest.fixture
def alone(tenant):
    return tenant("apply", on=False)


def owners(o):
    return sorted((e["manager"], e["operation"], e.get("subresource", "")) for e in o["metadata"]["managedFields"])


def test_kubectl_applies_on_the_server(alone):
    k = alone.kubectl
    k.apply(cases.cm(data={"k": "1"}), "--server-side")
    k.apply(cases.cm(data={"k": "1", "l": "2"}), "--server-side")
    assert owners(k.json("get", "cm", "x", "--show-managed-fields")) == [("kubectl", "Apply", "")]
    k("patch", "cm", "x", "-p", '{"data":{"k":"9"}}', "--field-manager=other")
    says = k.fails("apply", "--server-side", "-f", "-", stdin=json.dumps(cases.cm(data={"k": "1"})))
    assert 'conflict with "other" using v1: .data.k' in says and "--force-conflicts" in says
    k.apply(cases.cm(data={"k": "1"}), "--server-side", "--force-conflicts")
    assert k.json("get", "cm", "x")["data"] == {"k": "1"}
    assert "managedFields" not in k("get", "cm", "x", "-o", "yaml")


def test_kubectl_applies_a_status(alone):
    k = alone.kubectl
    k.apply(cases.deployment(), "--server-side")
    k.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
             "status": {"conditions": [{"type": "Mine", "status": "True"}]}},
            "--server-side", "--subresource=status", "--field-manager=mine")
    made = k.json("get", "deployment", "d", "--show-managed-fields")
    assert ("mine", "Apply", "status") in owners(made)
    assert "Mine" in [c["type"] for c in made["status"]["conditions"]]


def test_kubectl_moves_from_the_client_to_the_server(alone):
    k = alone.kubectl
    k.apply(cases.deployment(containers=[cases.container(ports=[{"containerPort": 80}])]))
    k.apply(cases.deployment(containers=[cases.container(image="busybox")]), "--server-side")
    made = k.json("get", "deployment", "d", "--show-managed-fields")
    assert ("kubectl", "Apply", "") in owners(made)
    assert ("kubectl-client-side-apply", "Update", "") not in owners(made)
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"
    assert "ports" not in made["spec"]["template"]["spec"]["containers"][0]
    k.apply(cases.deployment(containers=[cases.container(image="nginx")]))
    assert k.json("get", "deployment", "d")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx"
