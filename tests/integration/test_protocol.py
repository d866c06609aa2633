# SPDX-License-Identifier: Apache-2.0
"""Small print of the protocol beside a real API server: forms of discovery, health checks, the API's own Service."""
import json

import pytest

from testenv import eventually

PROTOBUF = "application/vnd.kubernetes.protobuf"
AGGREGATED = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# Messages as {number: (name, what it holds)}: str, bool, a message, or a list of one of them.
META = {1: ("name", str)}
ADDRESS = {1: ("clientCIDR", str), 2: ("serverAddress", str)}
VERSION = {1: ("groupVersion", str), 2: ("version", str)}
GROUP = {1: ("name", str), 2: ("versions", [VERSION]), 3: ("preferredVersion", VERSION)}
RESOURCE = {1: ("name", str), 2: ("namespaced", bool), 3: ("kind", str), 4: ("verbs", {1: ("verbs", [str])}),
            5: ("shortNames", [str]), 6: ("singularName", str), 7: ("categories", [str]), 8: ("group", str),
            9: ("version", str), 10: ("storageVersionHash", str)}
REF = {1: ("group", str), 2: ("version", str), 3: ("kind", str)}
SUB = {1: ("subresource", str), 2: ("responseKind", REF), 3: ("acceptedTypes", [REF]), 4: ("verbs", [str])}
KIND = {1: ("resource", str), 2: ("responseKind", REF), 3: ("scope", str), 4: ("singularResource", str),
        5: ("verbs", [str]), 6: ("shortNames", [str]), 7: ("categories", [str]), 8: ("subresources", [SUB])}
SERVED = {1: ("version", str), 2: ("resources", [KIND]), 3: ("freshness", str)}
MESSAGES = {
    "APIVersions": {1: ("versions", [str]), 2: ("serverAddressByClientCIDRs", [ADDRESS])},
    "APIGroupList": {1: ("groups", [GROUP])},
    "APIGroup": GROUP,
    "APIResourceList": {1: ("groupVersion", str), 2: ("resources", [RESOURCE])},
    "APIGroupDiscoveryList": {2: ("items", [{1: ("metadata", META), 2: ("versions", [SERVED])}])},
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            n, at = varint(data, at)
            assert at + n <= len(data)
            yield key >> 3, data[at:at + n]
            at += n
        else:
            assert key & 7 == 0, "a wire type that is not in discovery"
            value, at = varint(data, at)
            yield key >> 3, value


def decode(message, data):
    out = {}
    for number, value in fields(data):
        if number not in message:
            continue
        name, kind = message[number]
        one = kind[0] if isinstance(kind, list) else kind
        value = value.decode() if one is str else bool(value) if one is bool else decode(one, value)
        if name == "verbs" and isinstance(value, dict):
            value = value.get("verbs", [])
        if isinstance(kind, list):
            out.setdefault(name, []).append(value)
        else:
            out[name] = value
    return out


def body_of(data):
    assert data[:4] == b"k8s\0"
    envelope = dict(fields(data[4:]))
    names = {k: v.decode() for k, v in fields(envelope[1])}
    return names.get(1, ""), names[2], decode(MESSAGES[names[2]], envelope[2])


def dense(value):
    """Without empty values, which protobuf does not distinguish from absent ones."""
    if isinstance(value, dict):
        value = {k: dense(v) for k, v in value.items()}
        return {k: v for k, v in value.items() if v not in ("", None, False, {}, [])}
    return [dense(v) for v in value] if isinstance(value, list) else value


def fetch(api, path, accept):
    code, headers, data = api.raw("GET", path, accept=accept)
    assert code == 200, (path, accept, code)
    assert headers["Content-Type"] == accept.split(",")[0], path
    return data, headers


@pytest.fixture
def vc(tenant):
    return tenant("protocol")


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"])
def test_discovery_in_protobuf(vc, real_host, path):
    def tell(api):
        version, kind, message = body_of(fetch(api, path, PROTOBUF)[0])
        document = json.loads(fetch(api, path, "application/json")[0])
        assert (document.pop("apiVersion", ""), document.pop("kind")) == (version, kind) or path in ("/api", "/api/v1")
        assert dense(message) == dense(document)
        return version, kind, message
    # Groups of other tests may still be terminating on the host between two requests.
    ours, theirs = (eventually(lambda a=api: tell(a), 60, "the same in both forms") for api in (vc.api, real_host.api))
    assert ours[:2] == theirs[:2]
    if path not in ("/api", "/apis"):  # an address, and groups that other tests have made
        assert dense(ours[2]) == dense(theirs[2])


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_in_every_form(vc, real_host, path):
    def tell(api):
        data, headers = fetch(api, path, PROTOBUF + AGGREGATED)
        version, kind, message = body_of(data)
        assert (version, kind) == ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
        text, same = fetch(api, path, "application/json" + AGGREGATED)
        assert dense(message)["items"] == dense(json.loads(text))["items"]
        assert headers["ETag"] == same["ETag"] == fetch(api, path, "application/yaml" + AGGREGATED)[1]["ETag"]
        assert api.raw("GET", path, accept=PROTOBUF + AGGREGATED, headers={"If-None-Match": headers["ETag"]})[0] == 304
        beta = PROTOBUF + AGGREGATED.replace("v=v2", "v=v2beta1")
        assert api.raw("GET", path, accept=beta)[0] == 406
        return {g.get("metadata", {}).get("name", ""): g for g in dense(message)["items"]}
    groups = [eventually(lambda a=api: tell(a), 60, "the same in every form") for api in (vc.api, real_host.api)]
    for name in {"", "apps", "batch"} & set(groups[1]):
        assert groups[0][name] == groups[1][name]


OWN_CHECKS = ("[+]host-sync ok", "[+]lease ok")


def test_health_checks_answer_alike(vc, real_host):
    for path in ("/healthz", "/livez", "/readyz", "/livez/", "/livez/ping", "/livez/ping?verbose", "/readyz/nothing",
                 "/healthz/ping/x", "/readyz?exclude=nothing", "/readyz?verbos"):
        answers = []
        for api in (vc.api, real_host.api):
            code, headers, data = api.raw("GET", path)
            answers.append((code, headers["Content-Type"], headers["Cache-Control"], headers.get("X-Content-Type-Options"), data))
        assert answers[0] == answers[1], path
    for which in ("healthz", "livez", "readyz"):
        ours, real = (api.raw("GET", f"/{which}?verbose=1")[2].decode().splitlines() for api in (vc.api, real_host.api))
        assert "[+]etcd ok" in real and [x for x in ours if x not in OWN_CHECKS] == real, which
        for line in real[:-1]:
            path = f"/{which}/{line[3:-3]}"
            assert [api.raw("GET", path)[::2] for api in (vc.api, real_host.api)] == [(200, b"ok")] * 2, path
    for api in (vc.api, real_host.api):
        lines = api.raw("GET", "/readyz?verbose&exclude=b&exclude=ping&exclude=a&exclude=b")[2].decode().splitlines()
        assert lines[0] == "[+]ping excluded: ok" and lines[-1] == "readyz check passed"
        assert lines[-2] == 'warn: some health checks cannot be excluded: no matches for "a","b"'
        assert api.raw("GET", "/version")[2].startswith(b'{\n  "major": "1",\n  "minor": "36",\n')


OWN = ("services", "endpoints", "endpointslices.discovery.k8s.io")


def own(k):
    return [json.dumps({n: v for n, v in k.json("get", r, "kubernetes", "-n", "default").items() if n != "metadata"},
                       sort_keys=True) for r in OWN]


@pytest.mark.both_hosts
def test_the_apis_own_service_comes_back(tenant, host):
    vc = tenant("own", start=False)
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "own"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]}})
    vc.start()
    k = vc.kubectl
    ip = host.api.get(f"/api/v1/namespaces/{vc.namespace}/services/own")["spec"]["clusterIP"]
    eventually(lambda: all(f'"{ip}"' in text for text in own(k)), 30, "the API's own Service, with the host's address")
    before = own(k)

    def again():
        return all("kubernetes" in k.names(r, "-n", "default") for r in OWN) and own(k) == before

    for r in OWN:
        k("delete", r, "kubernetes", "-n", "default", "--wait=false", "--ignore-not-found")
        eventually(again, 30, f"{r} to come back")
    k("patch", "endpoints", "kubernetes", "-n", "default", "--type=merge", "-p", '{"subsets":null}')
    k("patch", "endpointslice", "kubernetes", "-n", "default", "--type=merge", "-p", '{"endpoints":[],"ports":[]}')
    k("patch", "service", "kubernetes", "-n", "default", "--type=merge", "-p", '{"spec":{"selector":{"a":"b"}}}')
    eventually(again, 30, "what was changed to come back")




@pytest.mark.both_hosts
def test_a_claim_in_use_stays_until_its_pod_is_gone(tenant, pools):
    k = tenant("inuse", config=pools).kubectl
    k.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    k.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": {
        "containers": [{"name": "c", "image": "busybox:1", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}],
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}})
    eventually(lambda: k.json("get", "pod", "user")["status"]["phase"] == "Running", 60, "the pod to run")
    assert "kubernetes.io/pvc-protection" in k.json("get", "pvc", "data")["metadata"]["finalizers"]
    k("delete", "pvc", "data", "--wait=false")
    assert k.json("get", "pvc", "data")["metadata"]["deletionTimestamp"]
    assert "Terminating" in k("get", "pvc", "data")
    k("delete", "pod", "user", "--grace-period=1")
    eventually(lambda: not k.names("pvc") and not k.names("pv"), 60, "the claim and its volume to go")


@pytest.mark.both_hosts
def test_a_volume_is_released_before_it_goes(tenant, pools):
    """Upstream's manager lets go of no volume that is Bound, and its binder does not run here."""
    k = tenant("released", config={**pools, "controllers": "external"}).kubectl
    k.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    eventually(lambda: [v["status"].get("phase") for v in k.items("pv")] == ["Bound"], 60, "the volume")
    k("delete", "pvc", "data", "--wait=false")
    k("patch", "pvc", "data", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    eventually(lambda: "deletionTimestamp" in k.items("pv")[0]["metadata"], 60, "the volume to be deleted")
    volume, = k.items("pv")
    assert volume["status"]["phase"] == "Released"
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_a_new_node_is_not_ready(vc, real_host):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "newcomer"}}
    told = [api.post("/api/v1/nodes", node, dryRun="All")["spec"]["taints"] for api in (vc.api, real_host.api)]
    assert told[0] == told[1] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]

    def taints():
        return vc.api.get("/api/v1/nodes/newcomer")["spec"].get("taints", [])

    def says(**conditions):
        vc.api.patch("/api/v1/nodes/newcomer/status", {"status": {"conditions": [
            {"type": t, "status": s} for t, s in conditions.items()]}})

    vc.api.post("/api/v1/nodes", {**node, "status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert [t["key"] for t in taints()] == ["node.kubernetes.io/not-ready"]
    says(Ready="True")
    eventually(lambda: not taints(), 30, "the taint to go")
    says(Ready="Unknown", DiskPressure="True")
    eventually(lambda: sorted(t["key"] for t in taints()) == [
        "node.kubernetes.io/disk-pressure", "node.kubernetes.io/unreachable"], 30, "the taints of its conditions")
    vc.api.delete("/api/v1/nodes/newcomer")
