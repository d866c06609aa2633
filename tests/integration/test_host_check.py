# SPDX-License-Identifier: Apache-2.0
"""A host that cannot be reached, trusted or used is reported: by `sublet check --host` before a virtual cluster
counts on it, and by a virtual cluster that serves, once, in its log, /readyz, Events and metrics."""
import base64
import os
import re
import subprocess

import pytest
import yaml

from testenv import binaries, eventually
from testenv.binaries import TREE
from testenv.helm import CHART, Helm
from testenv.nodes import pool_config
from testenv.pki import Pki, derive_kubeconfig
from testenv.process import Port

RIGHT = re.compile(r'^HOST_RIGHT\((\w+), (\w+), "([^"]*)", "([^"]+)",\s*"([^"]+)"', re.M)
DOWN = re.compile(r'^SYNC_DOWN\(\w+, "(\w+)", "([^"]*)", "\w+",\s*"(\w+)", (\w+)\)', re.M)
EVERYTHING = {"rbac": {"clusterRole": {"enabled": True}}}


def table():
    """{scope: {(group, resource): verbs}} of the one table of rights."""
    with open(os.path.join(TREE, "include/sublet/tbl/host_rights.h"), encoding="utf-8") as f:
        rows = RIGHT.findall(f.read())
    assert len(rows) > 10
    out = {"NAMESPACE": {}, "CLUSTER": {}}
    for scope, _, group, resource, verbs in rows:
        out[scope][group, resource] = set(verbs.split(","))
    return out


def rules_of(role):
    out = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                out.setdefault((group, resource), set()).update(rule["verbs"])
    return out


@pytest.fixture(scope="module")
def chart(tmp_path_factory):
    """The chart's Role and ClusterRole."""
    objects = Helm(tmp_path_factory.mktemp("helm")).template("research", "t", EVERYTHING)
    return {o["kind"]: o for o in objects if o["kind"] in ("Role", "ClusterRole")}


def test_the_chart_grants_what_the_syncer_uses(chart):
    granted = {"NAMESPACE": rules_of(chart["Role"]), "CLUSTER": rules_of(chart["ClusterRole"])}
    for scope, rows in table().items():
        for (group, resource), verbs in rows.items():
            assert verbs <= granted[scope].get((group, resource), set()), (scope, group, resource)


def to_host():
    """(a configuration that enables every kind of sync.toHost, {(group, plural)} of these in a namespace, and without one)"""
    with open(os.path.join(TREE, "include/sublet/tbl/sync_down.h"), encoding="utf-8") as f:
        rows = DOWN.findall(f.read())
    assert len(rows) >= 3
    config = {key: {"enabled": True} for key, _, _, _ in rows}
    config["storageClasses"]["provisioners"] = {"csi.example": {}}
    config["persistentVolumes"]["drivers"] = {"csi.example": {"volumeHandles": ["fs-*"]}}
    config["ingresses"].update({"classes": ["nginx"], "hosts": ["*.team.example"]})
    config["gateways"].update({"classes": ["shared"], "hosts": ["*.team.example"]})
    config["endpointSlices"]["allowedCIDRs"] = ["10.30.0.0/16"]
    config["customResources"] = {"things.team.example/v1": {"enabled": True}, "others.team.example": {"enabled": False}}
    of = {scope: {(group, plural) for _, group, plural, where in rows if where == scope} for scope in ("NAMESPACE", "CLUSTER")}
    assert len(rows) == sum(map(len, of.values()))
    return config, of["NAMESPACE"] | {("team.example", "things")}, of["CLUSTER"]


UP = re.compile(r'^SYNC_UP\(\w+, "(\w+)", "([^"]*)", "\w+",\s*"(\w+)",\s*(\w+)\)', re.M)


def from_host():
    """(a configuration that shows every kind of sync.fromHost, {(group, plural)} that are read in the whole cluster)"""
    with open(os.path.join(TREE, "include/sublet/tbl/sync_up.h"), encoding="utf-8") as f:
        rows = UP.findall(f.read())
    assert len(rows) >= 11
    config = {key: {"enabled": True} for key, _, _, _ in rows}
    for key, _, _, where in rows:
        if where == "NAMESPACE":
            config[key]["mappings"] = {"byName": {"shared/ca": "default/ca", "tools/*": "tools/*", "/own": "default/own"}}
    config["gateways"]["hosts"] = ["*.team.example"]
    config["services"]["headless"] = True
    config["customResources"] = {
        "things.team.example/v1": {"enabled": True, "scope": "Cluster"},
        "tools.team.example": {"enabled": True, "scope": "Namespaced", "mappings": {"byName": {"": "own", "x/y": "a/b"}}}}
    return config, {(g, p) for _, g, p, where in rows if where == "CLUSTER"} | {("team.example", "things")}


def test_rights_to_what_is_shown_follow_the_configuration(chart, tmp_path):
    config, cluster = from_host()
    values = {**EVERYTHING, "config": {"sync": {"fromHost": config}, "metrics": {"source": "host", "nodes": "whole"}}}
    objects = Helm(tmp_path).template("research", "t", values)
    roles = {o["metadata"]["namespace"]: o for o in objects if o["kind"] == "Role"}
    assert set(roles) == {"t", "shared", "tools", "x"}
    granted = rules_of(next(o for o in objects if o["kind"] == "ClusterRole"))
    before = rules_of(chart["ClusterRole"])
    assert {k: v for k, v in granted.items() if k not in before} == \
        {k: {"list", "watch"} for k in cluster - set(before)} | {("metrics.k8s.io", "nodes"): {"list"}}
    assert cluster <= set(granted)
    assert roles["shared"]["rules"] == [
        {"apiGroups": [group], "resources": [p], "resourceNames": ["ca"], "verbs": ["list", "watch"]}
        for group, p in (("", "configmaps"), ("gateway.networking.k8s.io", "gateways"), ("", "secrets"), ("", "services"))] + [
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]
    assert [r.get("resourceNames") for r in roles["tools"]["rules"]] == [None] * 5
    assert rules_of(roles["x"]) == {("team.example", "tools"): {"list", "watch"}}
    own, always = rules_of(roles["t"]), rules_of(chart["Role"])
    assert {k: v for k, v in own.items() if k not in always} == {
        ("gateway.networking.k8s.io", "gateways"): {"list", "watch"}, ("discovery.k8s.io", "endpointslices"): {"list", "watch"},
        ("team.example", "tools"): {"list", "watch"}, ("metrics.k8s.io", "pods"): {"list"}}
    bindings = [o for o in objects if o["kind"] == "RoleBinding" and o["metadata"]["namespace"] in ("shared", "tools", "x")]
    assert len(bindings) == 3 and all(b["subjects"][0]["namespace"] == "t" for b in bindings)


def test_what_the_whole_cluster_is_read_for_needs_the_cluster_role(tmp_path):
    values = {"config": {"sync": {"fromHost": {"ingressClasses": {"enabled": True}}}}}
    with pytest.raises(AssertionError, match="rbac.clusterRole.enabled"):
        Helm(tmp_path).template("research", "t", values)


def test_rights_for_further_kinds_follow_the_configuration(chart, tmp_path):
    config, kinds, cluster = to_host()
    values = {**EVERYTHING, "hostFence": {"enabled": True}, "config": {"sync": {"toHost": config}}}
    objects = Helm(tmp_path).template("research", "t", values)
    granted = rules_of(next(o for o in objects if o["kind"] == "Role"))
    without_them = rules_of(chart["Role"])
    verbs = {"get", "list", "watch", "create", "patch", "delete"}
    assert {k: v for k, v in granted.items() if k not in without_them} == {k: verbs for k in kinds}
    granted, without_them = rules_of(next(o for o in objects if o["kind"] == "ClusterRole")), rules_of(chart["ClusterRole"])
    assert {k: v for k, v in granted.items() if v != without_them.get(k)} == {k: verbs for k in cluster}


@pytest.mark.parametrize("kind", [{"storageClasses": {"enabled": True, "provisioners": {"csi.example": None}}}, {
    "persistentVolumes": {"enabled": True, "drivers": {"csi.example": {"volumeHandles": ["a"]}}}}], ids=lambda kind: next(iter(kind)))
def test_what_has_no_namespace_needs_the_cluster_role_and_the_fence(tmp_path, kind):
    values = {"config": {"sync": {"toHost": kind}}}
    with pytest.raises(AssertionError, match="rbac.clusterRole.enabled"):
        Helm(tmp_path).template("research", "t", {**values, "hostFence": {"enabled": True}})
    with pytest.raises(AssertionError, match="hostFence.enabled"):
        Helm(tmp_path).template("research", "t", {**values, **EVERYTHING})
    assert Helm(tmp_path).template("research", "t", {**values, **EVERYTHING, "hostFence": {"enabled": True}})


# --- sublet check --host --------------------------------------------------------------------------------

@pytest.fixture
def team(host, chart, request):
    """A host namespace with an account that has the chart's rights there: (namespace, kubeconfig)."""
    namespace = "team-check-" + os.urandom(3).hex()
    host.create_namespace(namespace)
    request.addfinalizer(lambda: host.delete_namespace(namespace))
    kubeconfig = host.service_account_kubeconfig(namespace, "runner")
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "runner"},
            "rules": chart["Role"]["rules"]}
    host.api.post(f"{rbac}/roles", role)
    host.api.post(f"{rbac}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "runner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "runner"},
        "subjects": [{"kind": "ServiceAccount", "name": "runner", "namespace": namespace}]})
    return namespace, kubeconfig


def set_rules(host, namespace, rules):
    host.api.patch(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/runner", {"rules": rules})


def without(rules, resource, verb):
    """The rules, less one verb of one resource."""
    out = []
    for rule in rules:
        kept = [r for r in rule["resources"] if r != resource]
        out.append({**rule, "resources": kept or ["none"]})
        if resource in rule["resources"]:
            out.append({**rule, "resources": [resource], "verbs": [v for v in rule["verbs"] if v != verb]})
    return out


def check_host(tmp_path, namespace, account, pools=(), **more):
    """The exit code of `sublet check --host`, and {check: (level, message)} of its table."""
    config = tmp_path / "check.yaml"
    config.write_text(yaml.safe_dump({"name": "research", "host": {"namespace": namespace, "kubeconfig": account},
                                      "policy": {"storageClasses": ["no-such-class"]}, "pools": list(pools), **more}))
    r = subprocess.run([binaries.sublet(), "check", "--config", config, "--host"], capture_output=True, text=True,
                       check=False, timeout=120)
    lines = [(x[:8].strip(), x[9:39].strip(), x[40:]) for x in r.stdout.splitlines()[1:-1]]
    assert lines and all(all(x) for x in lines), r.stdout + r.stderr
    return r.returncode, {what: (level, text) for level, what, text in lines}


def test_check_reviews_the_rights_of_further_kinds(host, team, chart, tmp_path):
    namespace, kubeconfig = team
    config, kinds, cluster = to_host()
    code, found = check_host(tmp_path, namespace, kubeconfig, sync={"toHost": config})
    for _, plural in kinds | cluster:
        assert found[f"right {plural}"] == ("missing", "not permitted: get, list, watch, create, patch, delete")
    assert code == 1, found
    set_rules(host, namespace, chart["Role"]["rules"] + [
        {"apiGroups": sorted({g for g, _ in kinds}), "resources": sorted(p for _, p in kinds),
         "verbs": ["get", "list", "watch", "create", "patch", "delete"]}])

    def granted():
        return check_host(tmp_path, namespace, kubeconfig, sync={"toHost": config})[1]["right things"][0] == "ok"

    eventually(granted, 30, "the host's authorizer to see the Role")


def test_check_reviews_the_rights_to_what_is_shown(team, tmp_path):
    namespace, kubeconfig = team
    config, cluster = from_host()
    code, found = check_host(tmp_path, namespace, kubeconfig, sync={"fromHost": config}, metrics={"source": "host"})
    for _, plural in cluster - {("storage.k8s.io", "storageclasses"), ("scheduling.k8s.io", "priorityclasses")}:
        assert found[f"right {plural}"] == ("missing", "not permitted: list, watch")
    for what, name in (("configmaps of shared", "ca: "), ("secrets of tools", ""), ("tools of x", "y: "), ("tools", ""),
                       ("endpointslices of shared", "")):
        assert found[f"right {what}"] == ("missing", f"{name}not permitted: list, watch")
    assert code == 1, found


def test_check_reviews_the_rights_to_further_kubeconfigs(host, team, tmp_path):
    """Those beside the tenant's objects are under the right to Secrets there; each other Secret by its name."""
    namespace, kubeconfig = team
    names = {which: f"k{which}-{os.urandom(3).hex()}" for which in ("a", "b")}  # as long as the table has room for
    for apart in names.values():
        host.create_namespace(apart)
    try:
        given = {"kubeconfig": {"additionalSecrets": [
            {"name": "own"}, {"name": "own-too", "namespace": namespace}, {"name": "one", "namespace": names["a"]},
            {"name": "two", "namespace": names["b"], "serviceAccount": {"name": "robot", "namespace": "default"}}]}}
        code, found = check_host(tmp_path, namespace, kubeconfig, **given)
        assert code == 1 and found["right secrets"][0] == "ok", found
        assert found[f"right secrets of {names['a']}"] == ("missing", "one: not permitted: get, list, watch, patch")
        assert found[f"right secrets of {names['b']}"] == ("missing", "two: not permitted: get, list, watch, patch")
        assert f"right secrets of {namespace}" not in found
        for apart, name, verbs in ((names["a"], "one", ["get", "list", "watch"]), (names["b"], "two", ["get", "list", "watch", "patch"])):
            rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{apart}"
            host.api.post(f"{rbac}/roles", {"metadata": {"name": "k"}, "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": verbs}]})
            host.api.post(f"{rbac}/rolebindings", {
                "metadata": {"name": "k"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "k"},
                "subjects": [{"kind": "ServiceAccount", "name": "runner", "namespace": namespace}]})

        def seen():
            code, found = check_host(tmp_path, namespace, kubeconfig, **given)
            return found[f"right secrets of {names['b']}"] == ("ok", "two: get,list,watch,patch") and (
                code, found[f"right secrets of {names['a']}"]) == (1, ("missing", "one: not permitted: patch"))

        eventually(seen, 30, "the host's authorizer to see the Roles")
    finally:
        for apart in names.values():
            host.delete_namespace(apart)


def test_check_looks_for_addresses_of_kubelets(host, team, tmp_path):
    """Those that the chart makes, and whether a node can have them."""
    namespace, kubeconfig = team
    services = f"/api/v1/namespaces/{namespace}/services"

    def found():
        return check_host(tmp_path, namespace, kubeconfig, sync={"kubelets": "own", "kubeletAddresses": 3})[1]

    rows = found()
    assert rows["kubelet services"] == ("warning", "0 of 3 can be the address of a node")
    assert rows["service research-kubelet-2"][0] == "warning" and "does not exist" in rows["service research-kubelet-2"][1]
    made = [{"ports": [{"name": "kubelet", "port": 10250}]}, {"ports": [{"port": 443}]},
            {"clusterIP": "None", "ports": [{"name": "kubelet", "port": 10250}]}]
    for i, spec in enumerate(made):
        host.api.post(services, {"metadata": {"name": f"research-kubelet-{i}"}, "spec": spec})
    rows = found()
    assert rows["kubelet services"] == ("ok", "1 of 3 can be the address of a node") and "service research-kubelet-0" not in rows
    assert rows["service research-kubelet-1"] == ("warning", "has no port 10250, where clients expect a kubelet")
    assert rows["service research-kubelet-2"] == ("warning", "has no cluster IP: a node has no address by it")
    for i in range(len(made)):
        host.api.delete(f"{services}/research-kubelet-{i}")


def test_check_looks_for_further_kubeconfigs(host, team, tmp_path):
    """In another namespace the Secret has to be there, with the annotation that gives it to this virtual cluster."""
    namespace, _ = team
    apart = f"k-{os.urandom(3).hex()}"
    host.create_namespace(apart)
    secrets = f"/api/v1/namespaces/{apart}/secrets"
    given = {"kubeconfig": {"additionalSecrets": [{"name": "own"}, {"name": "one", "namespace": apart}]}}

    def one():
        return check_host(tmp_path, namespace, host.kubeconfig, **given)[1]["secret one"]

    try:
        found = check_host(tmp_path, namespace, host.kubeconfig, **given)[1]
        assert found["secret own"] == ("ok", "does not exist yet: the virtual cluster makes it")
        assert found["secret one"] == ("warning", "does not exist: the chart makes it, and no kubeconfig is there without it")
        host.api.post(secrets, {"metadata": {"name": "one"}})
        assert one() == ("warning", "is not made for this virtual cluster, and never written: annotation "
                                    "sublet.dev/kubeconfig: research gives it")
        host.api.patch(f"{secrets}/one", {"metadata": {"annotations": {"sublet.dev/kubeconfig": "research"}}})
        assert one() == ("ok", "exists, and is to be filled in")
        host.api.patch(f"{secrets}/one", {"data": {"value": "YQ=="}})
        assert one() == ("ok", "exists, and holds a kubeconfig")
    finally:
        host.delete_namespace(apart)


def test_the_chart_lets_every_method_through_proxies(team, tenant):
    """OPTIONS has the empty verb, which the chart's Role has to name."""
    namespace, kubeconfig = team
    vc = tenant("methods", {"host": {"namespace": namespace}}, host_kubeconfig=kubeconfig)
    vc.api.post("/api/v1/namespaces/default/services", {
        "metadata": {"name": "bare"}, "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}})
    path = "/api/v1/namespaces/default/services/bare:80/proxy/"
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        eventually(lambda m=method: b"no endpoints available" in vc.api.raw(m, path)[2], 30, method + " to arrive")


def test_check_finds_a_name_of_a_service_that_is_taken(host, team, tmp_path):
    namespace, kubeconfig = team
    mapped = {"toHost": {"services": {"mappings": {"byName": {"default/web": "shop", "default/db": "store"}}}}}
    host.api.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}})
    code, found = check_host(tmp_path, namespace, kubeconfig, sync=mapped)
    assert found["service store"] == ("ok", "is free for default/db")
    assert found["service shop"][0] == "warning" and "is left alone, and default/web has no such name" in found["service shop"][1]
    assert code == 0, found
    marks = {"labels": {"sublet.dev/cluster": "x"}, "annotations": {"sublet.dev/alias": "shop"}}
    host.api.patch(f"/api/v1/namespaces/{namespace}/services/shop", {"metadata": marks})
    assert check_host(tmp_path, namespace, kubeconfig, sync=mapped)[1]["service shop"] == ("ok", "exists for default/web")


KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.fixture
def queues(host, request):
    """Kueue's own definitions of its queues, without Kueue."""
    files = subprocess.run([os.path.join(TREE, "tests/testenv/crds.sh"), "kueue"], capture_output=True, text=True, check=True)
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for path in files.stdout.split():
        if path.endswith(("_localqueues.yaml", "_clusterqueues.yaml")):
            with open(path, encoding="utf-8") as f:
                crd = host.api.post(crds, yaml.safe_load(f))
            request.addfinalizer(lambda name=crd["metadata"]["name"]: host.api.delete(f"{crds}/{name}"))
    for plural in ("localqueues", "clusterqueues"):
        eventually(lambda p=plural: host.api.raw("GET", f"{KUEUE}/{p}")[0] == 200, 60, f"{plural} to be served")


def set_active(host, path, status, reason="Ready", message="x"):
    host.api.patch(f"{path}/status", {"status": {"conditions": [{
        "type": "Active", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2024-01-01T00:00:00Z"}]}})


def test_check_finds_queues_that_admit_nothing(host, team, tmp_path, queues):
    namespace, _ = team
    pool = pool_config("shared", "l4", kind="shared", scheduler={"kind": "kueue", "queueTemplate": "t-{tenant}"})

    def found(kubeconfig=host.kubeconfig):
        out = check_host(tmp_path, namespace, kubeconfig, pools=[pool], bindings=[{"pool": "shared", "guarantee": "8"}])[1]
        return {what: row for what, row in out.items() if "queue" in what}

    assert found() == {"queue t-research": (
        "missing", "no LocalQueue of this name in the namespace: pods of pool shared are never admitted")}
    local, everywhere = f"{KUEUE}/namespaces/{namespace}/localqueues", f"{KUEUE}/clusterqueues"
    of_all = "q-" + namespace[-6:]
    host.api.post(local, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "t-research"},
                          "spec": {"clusterQueue": of_all}})
    set_active(host, f"{local}/t-research", "False", "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue")
    assert found() == {
        "queue t-research": ("warning", "admits no pod of pool shared: ClusterQueueDoesNotExist: Can't submit new workloads to "
                             "clusterQueue"),
        "cluster queue " + of_all: ("warning", "does not exist; named by LocalQueue t-research")}

    host.api.post(everywhere, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": of_all},
                               "spec": {"namespaceSelector": {"matchLabels": {"team": "other"}}}})
    try:
        set_active(host, f"{everywhere}/{of_all}", "False", "FlavorNotFound", "references missing ResourceFlavor(s): l4")
        set_active(host, f"{local}/t-research", "True")
        assert found()["cluster queue " + of_all] == (
            "warning", "is not active: FlavorNotFound: references missing ResourceFlavor(s): l4")
        set_active(host, f"{everywhere}/{of_all}", "True")
        assert found()["cluster queue " + of_all] == (
            "warning", f"its namespaceSelector leaves {namespace} out: no pod there is admitted")
        host.api.patch(f"{everywhere}/{of_all}", {"spec": {"namespaceSelector": {"matchLabels": {
            "team": None, "kubernetes.io/metadata.name": namespace}}}})
        rows = found()
        assert {row[0] for row in rows.values()} == {"ok"} and len(rows) == 2, rows
        host.api.patch(f"{local}/t-research", {"spec": {"stopPolicy": "Hold"}})
        assert found()["queue t-research"] == ("warning", "admits no pod of pool shared: its stopPolicy is Hold")
    finally:
        host.api.delete(f"{everywhere}/{of_all}")


def test_check_without_kueue_or_rights_to_its_queues(host, team, tmp_path):
    namespace, kubeconfig = team
    pool = pool_config("shared", "l4", kind="shared", scheduler={"kind": "kueue", "queueTemplate": "t-{tenant}"})
    more = {"pools": [pool], "bindings": [{"pool": "shared", "guarantee": "8"}]}
    assert check_host(tmp_path, namespace, host.kubeconfig, **more)[1]["queues"] == (
        "missing", "not served: the host has no Kueue, or one before v1beta2")
    assert check_host(tmp_path, namespace, kubeconfig, **more)[1]["queues"] == (
        "warning", "may not be read with these credentials: not checked")


@pytest.mark.parametrize("kind,name", [("kai", "KAI"), ("volcano", "Volcano"), ("native", "Kubernetes")])
def test_check_without_pod_groups_or_rights_to_them(host, team, tmp_path, kind, name):
    namespace, kubeconfig = team
    queue = {} if kind == "native" else {"queueTemplate": "t-{tenant}"}
    pool = pool_config("shared", "l4", kind="shared", scheduler={"kind": kind, "gang": True, **queue})
    more = {"pools": [pool], "bindings": [{"pool": "shared", "guarantee": "8"}]}
    found = check_host(tmp_path, namespace, host.kubeconfig, **more)[1]
    assert found["pod groups of " + name] == ("missing", "not served: pods of a pool with scheduler.gang are never created")
    found = check_host(tmp_path, namespace, kubeconfig, **more)[1]
    assert found["right podgroups"] == ("missing", "not permitted: list, watch, create, patch, delete"), found
    assert found["pod groups of " + name][0] == "warning"
    pool["scheduler"] = {"kind": "kueue", "queueTemplate": "t-{tenant}", "gang": True}
    found = check_host(tmp_path, namespace, kubeconfig, **more)[1]
    assert ("missing", "not permitted: delete") in found.values(), found


def test_check_says_what_a_host_lacks(host, team, chart, tmp_path):
    namespace, kubeconfig = team
    code, found = check_host(tmp_path, namespace, kubeconfig)
    assert found["connection"][0] == "ok" and "v1." in found["connection"][1]
    assert found["right pods"] == ("ok", "get,list,watch,create,patch,delete")
    assert found["right nodes"][0] == "warning" and "list, watch" in found["right nodes"][1]
    assert found["storage class"][0] == "warning" and "may not be read" in found["storage class"][1]
    assert code == 0, found # what is missing is optional
    set_rules(host, namespace, without(chart["Role"]["rules"], "services", "create"))

    def refused():
        return check_host(tmp_path, namespace, kubeconfig)[1]["right services"][0] == "missing"

    eventually(refused, 30, "the host's authorizer to see the Role")
    code, found = check_host(tmp_path, namespace, kubeconfig)
    assert (code, found["right services"]) == (1, ("missing", "not permitted: create"))
    assert found["right pods"][0] == "ok"


def test_check_as_an_admin_sees_the_rest(host, team, tmp_path):
    namespace, _ = team
    code, found = check_host(tmp_path, namespace, host.kubeconfig)
    assert code == 1 and found["storage class"] == ("missing", "no-such-class of policy.storageClasses does not exist")
    assert {x: found[x][0] for x in ("namespace", "pod security", "resource quota", "limit range")} == {
        "namespace": "ok", "pod security": "warning", "resource quota": "warning", "limit range": "warning"}
    host.api.patch(f"/api/v1/namespaces/{namespace}",
                   {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    assert check_host(tmp_path, namespace, host.kubeconfig)[1]["pod security"] == ("ok", "baseline")
    code, found = check_host(tmp_path, "no-such-namespace", host.kubeconfig)
    assert code == 1 and found["namespace"] == ("missing", "no-such-namespace does not exist")


def pool(label):
    return {"name": label, "kind": "shared", "mode": "exclusive", "nodeSelector": {"sublet.dev/pool": label},
            "tolerations": [{"key": "sublet.dev/pool", "operator": "Equal", "value": label, "effect": "NoSchedule"}]}


def test_check_looks_at_the_nodes_of_pools(host, team, tmp_path, request):
    namespace, _ = team
    bare = "bare-" + os.urandom(3).hex()
    host.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": bare, "labels": {"sublet.dev/pool": bare}}})
    request.addfinalizer(lambda: host.api.delete(f"/api/v1/nodes/{bare}"))
    _, found = check_host(tmp_path, namespace, host.kubeconfig, [pool("a100"), pool(bare), pool("nowhere")])
    assert found["pool a100"] == ("ok", "2 nodes with its taint")
    assert found[f"pool {bare}"][0] == "warning" and found[f"pool {bare}"][1].endswith(bare), found
    assert found["pool nowhere"][0] == "warning"


def test_check_looks_for_the_classes_that_are_named(host, team, tmp_path, request):
    """A class that the host lacks has the host refuse every pod that gets it: known before the first one."""
    namespace, _ = team
    there = "there-" + os.urandom(3).hex()
    host.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": there}, "value": 7})
    request.addfinalizer(lambda: host.api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{there}"))
    host.api.post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": there}, "handler": "runc"})
    request.addfinalizer(lambda: host.api.delete(f"/apis/node.k8s.io/v1/runtimeclasses/{there}"))
    tiers = pool("a100") | {"priorityTiers": {"high": there, "low": "none-low", "odd": "none-low"}, "runtimeClass": "none-run"}
    pods = {"priorityClassName": there, "runtimeClassName": there}
    ranked = {"enabled": True, "mappings": {"byName": {"urgent": "none-urgent"}},
              "ranges": [{"upTo": 9, "class": "none-ranked"}]}
    code, found = check_host(tmp_path, namespace, host.kubeconfig, [tiers],
                             sync={"toHost": {"pods": pods, "priorityClasses": ranked}})
    assert code == 1
    assert found[f"priority class {there}"] == found[f"runtime class {there}"] == ("ok", "exists")
    for what, named in (("priority class none-low", 'priorityTiers of pool "a100"'),
                        ("priority class none-urgent", "sync.toHost.priorityClasses"),
                        ("priority class none-ranked", "sync.toHost.priorityClasses"),
                        ("runtime class none-run", 'runtimeClass of pool "a100"')):
        assert found[what] == ("missing", f"does not exist; named by {named}")
    namespace, kubeconfig = team
    _, found = check_host(tmp_path, namespace, kubeconfig, [tiers])
    assert found["runtime classes"][0] == "warning" and "may not be read" in found["runtime classes"][1]
    _, found = check_host(tmp_path, namespace, host.kubeconfig)
    assert not any("class" in x for x in found if x != "storage class" and not x.startswith("right")), "named by nothing"


def other_host(tmp_path, kubeconfig, **cluster):
    """The kubeconfig with another cluster entry."""
    with open(kubeconfig, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    config["clusters"][0]["cluster"].update(cluster)
    path = tmp_path / "other.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def wrong_ca(tmp_path, kubeconfig):
    directory = tmp_path / "other-ca"
    directory.mkdir()
    with open(Pki(str(directory)).path("ca.crt"), "rb") as f:
        return other_host(tmp_path, kubeconfig, **{"certificate-authority-data": base64.b64encode(f.read()).decode()})


def test_check_says_why_there_is_no_dialogue(host, team, tmp_path):
    namespace, kubeconfig = team
    code, found = check_host(tmp_path, namespace, wrong_ca(tmp_path, kubeconfig))
    assert code == 1 and list(found) == ["connection"]
    assert found["connection"][1].startswith("TLSVerificationFailed: ")
    port = Port()
    code, found = check_host(tmp_path, namespace, other_host(tmp_path, kubeconfig, server=f"https://127.0.0.1:{port}"))
    port.close()
    assert code == 1 and found["connection"][1].startswith("ConnectionFailed: ")
    expired = derive_kubeconfig(str(tmp_path / "token.kubeconfig"), kubeconfig, token="nonsense")
    code, found = check_host(tmp_path, namespace, expired)
    assert code == 1 and found["credentials"][1].startswith("Unauthorized: ")


# --- a virtual cluster that serves ----------------------------------------------------------------------

def notices(vc):
    """topic -> its reasons, as /readyz?verbose shows them."""
    return vc.api.raw("GET", "/readyz", query={"verbose": ""})[2].decode()


def metric(vc, topic):
    text = vc.api.raw("GET", "/metrics")[2].decode()
    return [x for x in text.splitlines() if x.startswith(f'sublet_notices{{topic="{topic}"') and x.endswith(" 1")]


def events(vc, reason):
    items = vc.api.get("/api/v1/events")["items"]
    return [e["message"] for e in items if e["reason"] == reason]


def test_a_host_that_is_not_trusted_is_reported(host, team, tenant, tmp_path):
    namespace, kubeconfig = team
    vc = tenant("distrust", host_kubeconfig=wrong_ca(tmp_path, kubeconfig))
    eventually(lambda: "TLSVerificationFailed" in notices(vc), 30, "the notice at /readyz")
    assert vc.api.raw("GET", "/readyz")[0] == 200
    assert eventually(lambda: events(vc, "TLSVerificationFailed"), 30, "the Event")[0].startswith("the host cluster: ")
    assert eventually(lambda: metric(vc, "host"), 30, "the metric")
    assert not any("127.0.0.1" in m for m in events(vc, "TLSVerificationFailed"))
    vc.kubectl("create", "configmap", "serves", "--from-literal=a=b")
    lines = [x for x in vc.process.tail(1000).splitlines() if "TLSVerificationFailed" in x]
    assert len(lines) == 1, lines # once, however often it is tried


def test_a_missing_right_is_reported_until_it_is_there(host, team, chart, tenant):
    namespace, kubeconfig = team
    rules = chart["Role"]["rules"]
    set_rules(host, namespace, without(rules, "services", "create"))
    vc = tenant("research", {"host": {"namespace": namespace}}, host_kubeconfig=kubeconfig)

    def create(name):
        return vc.api.raw("POST", "/api/v1/namespaces/default/services",
                          {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                           "spec": {"ports": [{"port": 80}]}})[0]

    eventually(lambda: create("early-" + os.urandom(3).hex()) == 503, 30, "the refusal")
    eventually(lambda: "host-rights" in notices(vc) and "Forbidden" in notices(vc), 30, "the notice")
    assert eventually(lambda: [m for m in events(vc, "Forbidden") if "create services" in m], 30, "the Event")
    assert eventually(lambda: metric(vc, "host-rights"), 30, "the metric")
    set_rules(host, namespace, rules)
    eventually(lambda: create("late-" + os.urandom(3).hex()) == 201, 30, "the Service")
    eventually(lambda: not metric(vc, "host-rights"), 30, "the notice to end")
    lines = [x for x in vc.process.tail(1000).splitlines() if 'host-rights: Forbidden subject="create services"' in x]
    assert len(lines) == 1, lines
