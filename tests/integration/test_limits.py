# SPDX-License-Identifier: Apache-2.0
"""What bounds a client, over the wire: bodies, headers, deadlines, turns between users, and /metrics."""
import json
import re
import threading
import time

import pytest

from testenv.api import Api
from testenv.pki import derive_kubeconfig
from testenv.wait import eventually

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def oracle(real_host):
    return real_host.api.clone()


@pytest.fixture
def vc(tenant):
    return tenant("limits", on=False)


def both(oracle, vc, method, path, **kw):
    return [api.raw(method, path, **kw) for api in (oracle, vc.api)]


def status_of(answer):
    code, headers, body = answer
    return code, headers.get("Content-Type"), json.loads(body)


# --- bodies, headers, deadlines -------------------------------------------------------------------

def test_bodies_too_large(oracle, vc):
    big = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"x": "y" * (4 << 20)}}
    for method, path in (("POST", CONFIGMAPS), ("PUT", CONFIGMAPS + "/big")):
        theirs, ours = both(oracle, vc, method, path, body=big)
        assert status_of(ours) == status_of(theirs)
        assert ours[0] == 413


def test_deadlines_that_are_none(oracle, vc):
    for value in ("never", "1", "-", "1h2x"):
        theirs, ours = both(oracle, vc, "GET", f"{CONFIGMAPS}?timeout={value}")
        assert status_of(ours) == status_of(theirs)
        assert ours[0] == 400
    for value in ("0", "0s", "5m", ""):
        assert [x[0] for x in both(oracle, vc, "GET", f"{CONFIGMAPS}?timeout={value}")] == [200, 200]


def test_headers_too_large(vc):
    code, _, _ = vc.api.raw("GET", "/version", headers={"X-Long": "x" * 70_000})
    assert code == 431
    many = {f"X-{i}": "y" for i in range(90)}
    assert vc.api.raw("GET", "/version", headers=many)[0] == 200


def test_warnings(oracle, vc):
    def warnings(api, fields):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, **fields}
        code, headers, _ = api.raw("POST", CONFIGMAPS + "?dryRun=All&fieldValidation=Warn", body=body)
        assert code == 201
        return headers.get_all("Warning")

    for fields in ({"a\"b\\c": 1}, {f"f{i:03}": 1 for i in range(40)}, {"é" * 300: 1, "b": 2},
                   {"x" * 900 + str(i): 1 for i in range(8)}):
        assert warnings(vc.api, fields) == warnings(oracle, fields)


# --- priority and fairness ---------------------------------------------------------------------------

KINDS = ("flowschemas", "prioritylevelconfigurations")
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def flow_objects(api):
    found = {}
    for kind in KINDS:
        for item in api.get(f"{FLOW}/{kind}")["items"]:
            for condition in item["status"].get("conditions", []):
                condition.pop("lastTransitionTime")
            found[kind, item["metadata"]["name"]] = (item["metadata"].get("annotations"), item["spec"], item["status"])
    return found


def settled(api):
    """Once every schema says whether its level exists."""
    def look():
        found = flow_objects(api)
        schemas = [status for (kind, _), (_, _, status) in found.items() if kind == KINDS[0]]
        return found if schemas and all("conditions" in status for status in schemas) else None
    return eventually(look, 30, "the status of the FlowSchemas")


def test_the_objects_every_cluster_has(oracle, vc):
    assert settled(vc.api) == settled(oracle)
    revisions = {x["metadata"]["resourceVersion"] for kind in KINDS for x in vc.api.get(f"{FLOW}/{kind}")["items"]}
    time.sleep(1)  # long enough for a keeper that fights itself
    assert revisions == {x["metadata"]["resourceVersion"] for kind in KINDS
                         for x in vc.api.get(f"{FLOW}/{kind}")["items"]}


def test_they_are_kept(vc):
    settled(vc.api)
    vc.api.delete(f"{FLOW}/flowschemas/exempt")
    vc.api.delete(f"{FLOW}/prioritylevelconfigurations/workload-low")
    vc.api.patch(f"{FLOW}/flowschemas/probes", {"spec": {"matchingPrecedence": 77}})
    vc.api.patch(f"{FLOW}/flowschemas/global-default", {
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
        "spec": {"matchingPrecedence": 9901}})

    def kept():
        found = flow_objects(vc.api)
        return (("flowschemas", "exempt") in found and ("flowschemas", "probes") in found and (KINDS[1], "workload-low") in found and
                found["flowschemas", "probes"][1]["matchingPrecedence"] == 2)
    eventually(kept, 30, "what was changed to be as before")
    assert flow_objects(vc.api)["flowschemas", "global-default"][1]["matchingPrecedence"] == 9901


def test_headers_name_the_schema(vc):
    def uid(kind, name):
        return vc.api.get(f"{FLOW}/{kind}/{name}")["metadata"]["uid"]

    def named(**kw):
        headers = vc.api.raw("GET", CONFIGMAPS, **kw)[1]
        return headers["X-Kubernetes-PF-FlowSchema-UID"], headers["X-Kubernetes-PF-PriorityLevel-UID"]

    settled(vc.api)
    assert named() == (uid(KINDS[0], "exempt"), uid(KINDS[1], "exempt"))
    account = {"Impersonate-User": "system:serviceaccount:default:x"}
    assert named(headers=account) == (uid(KINDS[0], "service-accounts"), uid(KINDS[1], "workload-low"))
    vc.api.post(f"{FLOW}/flowschemas", {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "mine"},
        "spec": {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "nowhere"}, "rules": [{
            "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": "x"}}],
            "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"],
                               "namespaces": ["*"]}]}]}})
    assert named(headers=account)[0] == uid(KINDS[0], "mine")
    eventually(lambda: flow_objects(vc.api)[KINDS[0], "mine"][2].get("conditions", [{}])[0].get("status") == "True",
               30, "its level to be missed")


def user_api(vc, name, verbs):
    """The Api of a service account that may do this to ConfigMaps."""
    token = vc.api.create_service_account("default", name)
    vc.api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]})
    vc.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
    return Api(derive_kubeconfig(f"{vc.dir}/{name}.kubeconfig", vc.kubeconfig, token=token), timeout=180)


def test_a_noisy_user_starves_nobody(vc):
    """Sixteen clients of one user list as Tables without a pause: another one's requests stay short beside
    them, since they do not stand in the same queue."""
    for i in range(400):
        vc.api.post(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"},
                                 "data": {"x": "y" * 500}})
    noisy, quiet = user_api(vc, "noisy", ["list"]), user_api(vc, "quiet", ["get"])
    stop, took = threading.Event(), []

    def shout():
        api = noisy.clone()
        while not stop.is_set():
            began = time.monotonic()
            assert api.raw("GET", CONFIGMAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")[0] == 200
            took.append(time.monotonic() - began)
        api.close()

    def queued():
        text = vc.api.raw("GET", "/metrics")[2].decode()
        return float(re.search(r"^sublet_requests_queued_total (\S+)$", text, re.M).group(1))

    threads = [threading.Thread(target=shout) for _ in range(16)]
    for t in threads:
        t.start()
    try:
        eventually(lambda: len(took) > 32 and queued(), 60, "the noise to be there, and to wait for its turn")
        beside = []
        for _ in range(20):
            began = time.monotonic()
            assert quiet.raw("GET", CONFIGMAPS + "/c1")[0] == 200
            beside.append(time.monotonic() - began)
    finally:
        stop.set()
        for t in threads:
            t.join()
    loud, short = sorted(took)[len(took) // 2], sorted(beside)[len(beside) // 2]
    print(f"noisy: median {loud * 1000:.1f} ms, quiet: median {short * 1000:.1f} ms, {queued():.0f} waited")
    assert short < loud


# --- metrics ------------------------------------------------------------------------------------------

def families(text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


def test_metrics_are_those_dashboards_know(oracle, vc):
    vc.api.get(CONFIGMAPS)
    theirs = families(oracle.raw("GET", "/metrics")[2].decode())
    code, headers, body = vc.api.raw("GET", "/metrics")
    ours = families(body.decode())
    assert code == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    ended = [name for name in ours if name.split("_")[-1] in ("bucket",)]
    assert not ended
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds", "apiserver_longrunning_requests",
                 "apiserver_current_inflight_requests", "apiserver_storage_objects", "apiserver_resource_objects",
                 "apiserver_audit_event_total", "apiserver_flowcontrol_dispatched_requests_total",
                 "process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds",
                 "process_open_fds", "kubernetes_build_info"):
        assert ours.get(name) == theirs[name], name
    shared = {n: (ours[n], theirs[n]) for n in ours if n in theirs and ours[n] != theirs[n]}
    assert not shared


def labels_of(text, name):
    return {frozenset(re.findall(r'(\w+)="', m)) for m in re.findall(rf"^{name}{{(.*)}} ", text, re.M)}


def test_labels_are_those_of_kube_apiserver(oracle, vc):
    for api in (oracle, vc.api):
        api.get(CONFIGMAPS)
        assert api.raw("GET", CONFIGMAPS + "?watch=1&timeoutSeconds=1")[0] == 200
    theirs, ours = (api.raw("GET", "/metrics")[2].decode() for api in (oracle, vc.api))
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds_bucket", "apiserver_storage_objects",
                 "apiserver_request_sli_duration_seconds_bucket", "apiserver_longrunning_requests",
                 "apiserver_resource_objects", "apiserver_current_inflight_requests"):
        assert labels_of(ours, name) == labels_of(theirs, name), name
    bounds = [{m for m in re.findall(r'^apiserver_request_sli_duration_seconds_bucket{.*,le="(.*?)"}', text, re.M)}
              for text in (ours, theirs)]
    assert bounds[0] == bounds[1] and len(bounds[0]) == 22
    line = (r'^apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",'
            r'scope="namespace",subresource="",verb="LIST",version="v1"} [1-9]')
    assert re.search(line, ours, re.M) and re.search(line, theirs, re.M)


def test_health_checks_are_numbers_too(oracle, vc):
    def good(api):
        for path in ("/healthz", "/livez", "/readyz"):  # upstream reports those that a client requested
            api.raw("GET", path)
        text = api.raw("GET", "/metrics/slis")[2].decode()
        return {x for x in re.findall(r"^kubernetes_healthcheck{.*} 1$", text, re.M) if "host-sync" not in x}
    # A check of a busy machine may fail for a moment, there or here.
    found = eventually(lambda: (f := [good(oracle), good(vc.api)])[0] == f[1] and f, 30, "the same checks to be good")
    assert len(found[0]) > 20
    assert vc.api.raw("GET", "/metrics/slis", headers={"Impersonate-User": "bob"})[0] == 403


def test_metrics_need_to_be_allowed(vc):
    code, _, body = vc.api.raw("GET", "/metrics", headers={"Impersonate-User": "bob"})
    assert code == 403 and b'cannot get path \\"/metrics\\"' in body


def test_an_idle_series_is_bounded(vc):
    """Kinds a tenant makes up become series; names, namespaces and agents never do."""
    for i in range(50):
        vc.api.raw("GET", f"/api/v1/namespaces/ns{i}/configmaps/x{i}", headers={"User-Agent": f"agent-{i}"})
        vc.api.raw("GET", f"/nowhere/{i}")
    text = vc.api.raw("GET", "/metrics")[2].decode()
    assert not re.search(r"agent-|ns1|x1\"|nowhere", text)
    assert len(re.findall(r"^apiserver_request_total", text, re.M)) < 60
