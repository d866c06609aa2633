# SPDX-License-Identifier: Apache-2.0
"""`sublet check --host` of a running virtual cluster: what was changed by hand on the host is listed with what mends
it; --repair mends what is proven and leaves everything else as it is."""
import contextlib
import json
import subprocess

from testenv import ApiError, binaries, eventually

from test_explain import explain, pod


def check(vc, *args):
    """Exit code, {(state, resource, virtual name): the lines of the finding}, the last line."""
    r = subprocess.run([binaries.sublet(), "check", "--host", "--data-dir", vc.store, *args], capture_output=True,
                       text=True, check=False, timeout=120)
    assert r.returncode in (0, 1), r.stderr
    lines = r.stdout.splitlines()
    found = {}
    for head, action in zip(lines[:-1:2], lines[1:-1:2]):
        state, resource, name = head.split()[:3]
        found[state, resource, name] = head + "\n" + action.strip()
    return r.returncode, found, lines[-1]


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def pod_with(name, *config_maps):
    return pod(name, volumes=[{"name": c, "configMap": {"name": c}} for c in config_maps])


def clean(vc):
    return eventually(lambda: (lambda r: r[0] == 0 and r)(check(vc)), 60, "both sides to agree")


def host_object(vc, manifest):
    """What the host would get of it."""
    code, out, err = explain(vc, manifest, "-o", "json")
    assert code == 0, err
    return json.loads(out)


@contextlib.contextmanager
def held(vc, host, resource, expression, undo, path):
    """The host refuses updates of the resource without `expression`, so that the virtual cluster writes none back.
    `undo` is such an update of the object at `path`."""
    root = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    group, version = path.split("/")[2:4] if path.startswith("/apis/") else ("", "v1")
    meta = {"name": f"hold-{vc.namespace}"}
    host.api.post(f"{root}ies", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta,
        "spec": {"matchConstraints": {"resourceRules": [{
            "apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["UPDATE"]}]},
            "validations": [{"expression": expression}]}})
    host.api.post(f"{root}ybindings", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta,
        "spec": {"policyName": meta["name"], "validationActions": ["Deny"], "matchResources": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": vc.namespace}}}}})

    def holds():
        try:
            host.api.patch(path, undo, dryRun="All")
        except ApiError as e:
            return e.code in (403, 422)
        return False

    try:
        eventually(holds, 60, "the host to refuse the update")
        yield
    finally:
        host.api.delete(f"{root}ybindings/{meta['name']}")
        host.api.delete(f"{root}ies/{meta['name']}")


def test_both_sides_agree(tenant):
    vc = tenant("research")
    vc.kubectl.apply(config_map("settings", k="v"))
    vc.kubectl.apply(pod_with("web", "settings"))
    vc.kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
                      "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    vc.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
    _, found, last = clean(vc)
    assert not found and last.endswith("0 findings, 0 repairs requested")
    vc.stop()
    r = subprocess.run([binaries.sublet(), "check", "--host", "--data-dir", vc.store], capture_output=True, text=True,
                       check=False)
    assert r.returncode == 2 and "no process serves" in r.stderr


def test_what_drifted_is_written_back(tenant, host):
    vc = tenant("research")
    vc.kubectl.apply(config_map("settings", k="v"))
    vc.kubectl.apply(pod_with("web", "settings"))
    vc.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
    clean(vc)
    [there] = [o for o in vc.host_objects("/api/v1", "configmaps")
               if o["metadata"]["annotations"]["sublet.dev/name"] == "settings"]
    path = f"/api/v1/namespaces/{vc.namespace}/configmaps/{there['metadata']['name']}"
    # Written back once; what is changed again within a minute stays that long.
    host.api.patch(path, {"data": {"k": "once"}})
    eventually(lambda: host.api.get(path)["data"] == {"k": "v"}, 60, "the first change to be written back")
    host.api.patch(path, {"data": {"k": "by hand", "more": "x"}})

    code, found, _ = check(vc)
    text = found["drifted", "configmaps", "default/settings"]
    assert code == 1 and "differs in data" in text and text.endswith("--repair") and "by hand" not in text
    assert host.api.get(path)["data"] == {"k": "by hand", "more": "x"}  # a check changes nothing
    code, _, last = check(vc, "--repair")
    assert code == 1 and last.endswith("1 findings, 1 repairs requested")
    assert host.api.get(path)["data"] == {"k": "v"}
    clean(vc)


def test_what_is_not_proven_stays(tenant, host):
    vc = tenant("research")
    base = f"/api/v1/namespaces/{vc.namespace}/configmaps"
    ghost = host_object(vc, config_map("ghost", k="newer"))
    host.api.post(base, ghost)
    foreign = {**config_map("x", of="another"), "metadata": {
        "name": host_object(vc, config_map("taken", k="v"))["metadata"]["name"]}}
    host.api.post(base, foreign)
    copy = {**config_map("x", k="copied"), "metadata": {"name": "copy", "labels": {
        "sublet.dev/cluster": ghost["metadata"]["labels"]["sublet.dev/cluster"]}}}
    host.api.post(base, copy)
    vc.kubectl.apply(config_map("taken", k="v"))
    vc.kubectl.apply(pod_with("web", "taken"))

    def listed():
        found = check(vc)[1]
        return {k[0] for k in found} >= {"quarantined", "foreign", "extra"} and found

    found = eventually(listed, 60, "all three to be listed")
    name = foreign["metadata"]["name"]
    assert f"kubectl --namespace {vc.namespace} delete configmaps {name}" in found["foreign", "configmaps",
                                                                                   "default/taken"]
    assert f"delete configmaps {ghost['metadata']['name']}" in found["quarantined", "configmaps", "default/ghost"]
    assert [text for key, text in found.items() if key[0] == "extra" and "delete configmaps copy" in text]
    check(vc, "--repair")
    check(vc, "--repair")
    stay = {o["metadata"]["name"]: o.get("data") for o in host.api.get(base)["items"]}
    assert stay["copy"] == {"k": "copied"} and stay[name] == {"of": "another"}
    assert stay[ghost["metadata"]["name"]] == {"k": "newer"}
    # The command that it names is what mends it.
    host.api.delete(f"{base}/{name}")
    check(vc, "--repair")
    eventually(lambda: host.api.get(f"{base}/{name}").get("data") == {"k": "v"}, 60, "ours under its name",
               also=(Exception,))


def test_what_is_missing_is_created(tenant, host):
    vc = tenant("research")
    quotas = f"/api/v1/namespaces/{vc.namespace}/resourcequotas"
    used = len(host.api.get(f"/api/v1/namespaces/{vc.namespace}/configmaps")["items"])
    host.api.post(quotas, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
                           "spec": {"hard": {"count/configmaps": str(used)}}})
    eventually(lambda: host.api.get(f"{quotas}/full").get("status", {}).get("used"), 60, "the quota to count")
    vc.kubectl.apply(config_map("late", k="v"))
    vc.kubectl.apply(pod_with("web", "late"))
    found = eventually(lambda: (lambda f: ("missing", "configmaps", "default/late") in f and f)(check(vc)[1]), 60,
                       "the missing one to be listed")
    assert ("missing", "pods", "default/web") in found  # it waits for what it refers to
    host.api.delete(f"{quotas}/full")
    check(vc, "--repair")
    vc.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
    clean(vc)


def test_a_kind_without_its_definition_is_left_out(tenant):
    """The definition of a configured custom resource is the tenant's: it may be missing."""
    vc = tenant("research", config={"sync": {"toHost": {"customResources": {"widgets.example.com": {"enabled": True}}}}})
    clean(vc)


NETWORKING, POLICY = "/apis/networking.k8s.io/v1", "/apis/policy/v1"


def test_configured_kinds_are_compared(tenant, host):
    vc = tenant("research", config={"sync": {"toHost": {"networkPolicies": {"enabled": True},
                                                        "podDisruptionBudgets": {"enabled": True}}}})
    full = f"/api/v1/namespaces/{vc.namespace}/resourcequotas"
    host.api.post(full, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
                         "spec": {"hard": {"count/poddisruptionbudgets.policy": "0"}}})
    eventually(lambda: host.api.get(f"{full}/full").get("status", {}).get("used"), 60, "the quota to count")
    vc.api.post(f"{POLICY}/namespaces/default/poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "budget"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
    vc.api.post(f"{NETWORKING}/namespaces/default/networkpolicies", {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "fence"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}})
    [there] = eventually(lambda: vc.host_objects(NETWORKING, "networkpolicies"), 60, "the policy on the host")
    path = f"{NETWORKING}/namespaces/{vc.namespace}/networkpolicies/{there['metadata']['name']}"

    # What the host does not take back stays apart.
    with held(vc, host, "networkpolicies", "'Egress' in object.spec.policyTypes", {"spec": {"policyTypes": ["Ingress"]}},
              path):
        host.api.patch(path, {"spec": {"policyTypes": ["Ingress", "Egress"]}})
        code, found, _ = check(vc)
        assert code == 1 and set(found) == {("missing", "poddisruptionbudgets", "default/budget"),
                                            ("drifted", "networkpolicies", "default/fence")}
        text = found["drifted", "networkpolicies", "default/fence"]
        assert "differs in spec.policyTypes" in text and text.endswith("--repair")
    host.api.delete(f"{full}/full")
    check(vc, "--repair")
    clean(vc)
    assert host.api.get(path)["spec"]["policyTypes"] == ["Ingress"]
    assert len(vc.host_objects(POLICY, "poddisruptionbudgets")) == 1
