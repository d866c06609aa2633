# SPDX-License-Identifier: Apache-2.0
"""Extension API servers of a tenant (APIServices with a service), beside those of a real kube-apiserver: the same server in
this process behind both, the same conditions, discovery, answers and refusals. Then what only a virtual cluster has to bound."""
import concurrent.futures
import json
import os

import pytest

from testenv import Api, eventually
from testenv.extension import SERVICES, Extension
from testenv.pki import Pki, derive_kubeconfig
from testenv.webhook import ca_bundle

NS = "extended"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def made(api, workdir, name, node=None):
    directory = os.path.join(workdir, name)
    os.makedirs(directory, exist_ok=True)
    return Extension(api, Pki(os.path.join(directory, "pki")), directory, NS, node=node)


@pytest.fixture(scope="module")
def oracle(real_host, workdir):
    """That of the host itself."""
    e = made(real_host.api.clone(), workdir, "extension-oracle", "cpu-1")
    e.kubectl = real_host.kubectl
    yield e
    e.stop()
    real_host.api.delete(f"/api/v1/namespaces/{NS}")


@pytest.fixture
def mine(tenant, workdir):
    vc = tenant("extended")
    e = made(vc.api.clone(), workdir, f"extension-{vc.namespace}")
    e.vc, e.kubectl = vc, vc.kubectl
    yield e
    e.stop()


@pytest.fixture
def pair(mine, oracle):
    """Both are served."""
    for e in (mine, oracle):
        if e._server is None:
            e.service() if not hasattr(e, "ip") else None
        if e.api.raw("GET", f"{SERVICES}/v1.{e.group}")[0] == 404:
            e.register()
        if e.api.raw("GET", f"/api/v1/namespaces/{NS}/pods/ext")[0] == 404:
            e.pod()
        if e._server is None:
            e.start()
    for e in (mine, oracle):
        e.becomes("Passed")
        eventually(lambda e=e: e.api.raw("GET", f"{e.path}/namespaces/{NS}/gauges")[0] == 200, 60, "it to be served")
        eventually(lambda e=e: version(e)["freshness"] == "Current", 120, "its discovery document", also=(AssertionError, KeyError))
        e.seen.clear()
    return mine, oracle


def group(e):
    code, _, data = e.api.raw("GET", "/apis", accept=V2)
    assert code == 200
    return next(g for g in json.loads(data)["items"] if g["metadata"]["name"] == e.group)


def version(e):
    return group(e)["versions"][0]


def text_of(e, method, path, **kw):
    code, headers, data = e.api.raw(method, path, **kw)
    return code, headers.get("Content-Type"), e.plain(data.decode())


# --- the condition ------------------------------------------------------------------------------


def test_conditions_in_the_order_they_come(mine, oracle):
    """From an APIService without anything behind it to one that is served, and away again."""
    steps = []
    for e in (mine, oracle):
        seen = []
        e.register()
        seen.append(e.becomes("ServiceNotFound"))
        e.service(ports=[{"name": "api", "port": 1}])
        seen.append(e.becomes("ServicePortError"))
        service = e.api.get(f"/api/v1/namespaces/{NS}/services/ext")
        service["spec"]["ports"] = [{"name": "api", "port": e.port.number}]
        e.api.put(f"/api/v1/namespaces/{NS}/services/ext", service)
        seen.append(e.becomes("MissingEndpoints"))
        e.pod()
        seen.append(e.becomes("FailedDiscoveryCheck"))
        seen.append(text_of(e, "GET", f"{e.path}/namespaces/{NS}/gauges"))
        seen.append(text_of(e, "GET", e.path))
        e.start()
        seen.append(e.becomes("Passed"))
        eventually(lambda e=e: e.api.raw("GET", e.path)[0] == 200, 30, "it to be served")
        steps.append(seen)
    assert steps[0] == steps[1]
    assert [s[1] for s in steps[0] if len(s) == 3 and isinstance(s[0], str)] == [
        "ServiceNotFound", "ServicePortError", "MissingEndpoints", "FailedDiscoveryCheck", "Passed"]


# --- requests -----------------------------------------------------------------------------------


def test_requests_and_answers(pair):
    """Method, path, query, body, status, headers and body are the extension's; the user is the caller's."""
    gauges = f"/namespaces/{NS}/gauges"
    got = []
    for e in pair:
        answers = []

        def send(method, path, body=None, e=e, answers=answers, **kw):
            code, headers, data = e.api.raw(method, e.path + path, body, **kw)
            kept = {k.lower(): v for k, v in headers.items() if k.lower() in ("x-mine", "content-type", "warning", "content-length")}
            answers.append((code, kept, e.plain(data.decode())[:2000]))
        send("GET", gauges, query={"labelSelector": "a in (b,c)", "limit": "5"})
        send("GET", f"{gauges}/one", headers={"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X-Remote-Uid": "0",
                                              "X-Remote-Extra-Scopes": "all", "X-Custom": "kept"})
        send("POST", gauges, {"kind": "Gauge", "value": 1})
        send("PUT", f"{gauges}/one", {"kind": "Gauge", "value": 2})
        send("PATCH", f"{gauges}/one", b'{"value":3}', content_type="application/merge-patch+json")
        send("DELETE", f"{gauges}/one")
        send("DELETE", f"{gauges}/one", {"propagationPolicy": "Foreground"})
        send("GET", f"{gauges}/teapot")
        send("HEAD", f"{gauges}/one")
        send("GET", f"/namespaces/{NS}/gauges/a%2Fb%20c")
        send("GET", "")
        send("GET", f"{gauges}/large")
        got.append((answers, [(r["method"], r["path"], r["body"], r["headers"].get("x-custom"), r["headers"].get("content-type"))
                              for r in e.seen]))
        for r in e.seen:
            assert "authorization" not in r["headers"]
            assert "root" not in str(r["user"]) and "x-remote-extra-scopes" not in r["user"]
            assert "system:masters" in r["user"]["x-remote-group"] and "system:authenticated" in r["user"]["x-remote-group"]
    for mine, theirs in zip(got[0][0] + got[0][1], got[1][0] + got[1][1]):
        assert mine == theirs
    assert len(got[0][1]) == len(got[1][1])


def test_the_user_and_its_rights(pair, workdir):
    """RBAC decides before the extension is called; it learns who the user is, also of one who is impersonated."""
    mine = pair[0]
    k = mine.kubectl
    k("create", "serviceaccount", "watcher", "-n", NS)
    token = k("create", "token", "watcher", "-n", NS).strip()
    api = Api(derive_kubeconfig(os.path.join(workdir, "watcher.kubeconfig"), mine.vc.kubeconfig, token=token))
    path = f"{mine.path}/namespaces/{NS}/gauges"
    code, _, data = api.raw("GET", path)
    assert code == 403 and f'User "system:serviceaccount:{NS}:watcher" cannot list resource "gauges" in API group' in json.loads(data)["message"]
    assert not mine.seen
    k("create", "role", "gauges", "-n", NS, "--verb=list", f"--resource=gauges.{mine.group}")
    k("create", "rolebinding", "gauges", "-n", NS, "--role=gauges", f"--serviceaccount={NS}:watcher")
    assert api.raw("GET", path)[0] == 200
    user = mine.seen[-1]["user"]
    assert user["x-remote-user"] == [f"system:serviceaccount:{NS}:watcher"]
    assert {f"system:serviceaccounts:{NS}", "system:serviceaccounts", "system:authenticated"} <= set(user["x-remote-group"])
    assert user["x-remote-uid"] == [k.json("get", "serviceaccount", "watcher", "-n", NS)["metadata"]["uid"]]
    assert user["x-remote-extra-authentication.kubernetes.io%2fcredential-id"][0].startswith("JTI=")
    mine.api.raw("GET", path, headers={"Impersonate-User": "jane", "Impersonate-Group": "system:masters", "Impersonate-Extra-a%2Fb": "x"})
    assert mine.seen[-1]["user"]["x-remote-user"] == ["jane"]
    assert mine.seen[-1]["user"]["x-remote-extra-a%2fb"] == ["x"]
    assert not [h for h in mine.seen[-1]["headers"] if h.startswith("impersonate")]


def test_a_watch_stays_open(pair):
    for e in pair:
        client = e.api.clone()
        response = client.open("GET", f"{e.path}/namespaces/{NS}/gauges", query={"watch": "true"})
        assert response.status == 200 and json.loads(response.readline())["type"] == "ADDED"
        e.release.set()
        assert json.loads(response.readline())["type"] == "DELETED" and not response.read()
        client.close()
        e.release.clear()


def test_many_watches_and_a_server_that_hangs_hold_nothing_else_up(pair):
    mine = pair[0]
    path = f"{mine.path}/namespaces/{NS}/gauges"
    with concurrent.futures.ThreadPoolExecutor(70) as pool:
        hanging = [pool.submit(mine.api.clone().raw, "GET", f"{path}/hang") for _ in range(70)]
        eventually(lambda: len([r for r in mine.seen if r["path"].endswith("/hang")]) == 64, 60, "all that may be under way")
        refused = [f for f in hanging if f.done()]
        eventually(lambda: len([f for f in hanging if f.done()]) == 6, 30, "the others to be refused")
        refused = [f.result() for f in hanging if f.done()]
        assert {code for code, _, _ in refused} == {429} and {h["Retry-After"] for _, h, _ in refused} == {"1"}
        assert mine.api.get(f"/api/v1/namespaces/{NS}/pods")["items"]
        mine.release.set()
        assert sorted({f.result()[0] for f in hanging}) == [200, 429]
    mine.release.clear()
    assert mine.api.raw("GET", path)[0] == 200


def test_an_answer_that_breaks_off_is_no_whole_one(pair):
    for e in pair:
        client = e.api.clone()
        with pytest.raises(Exception):  # noqa: B017 - whichever way the client notices
            code, _, data = client.raw("GET", f"{e.path}/namespaces/{NS}/gauges/broken")
            json.loads(data)
        client.close()
    assert pair[0].api.raw("GET", f"{pair[0].path}/namespaces/{NS}/gauges")[0] == 200


def test_upgrades_are_refused(pair):
    mine = pair[0]
    client = mine.api.clone()
    code, _, data = client.raw("GET", f"{mine.path}/namespaces/{NS}/gauges/one/exec",
                               headers={"Connection": "Upgrade", "Upgrade": "SPDY/3.1"})
    client.close()
    assert code == 501 and "upgrades of connections are not forwarded" in json.loads(data)["message"]


# --- discovery ----------------------------------------------------------------------------------


def test_discovery(pair):
    mine, oracle = pair
    assert group(mine) == group(oracle), json.dumps([group(mine), group(oracle)], sort_keys=True)
    for form in ("application/vnd.kubernetes.protobuf", "application/yaml"):
        assert mine.api.raw("GET", "/apis", accept=V2.replace("application/json", form))[0] == 200
    for path in ("/apis/ext.example.com", mine.path):
        assert mine.api.get(path) == oracle.api.get(path)
    listed = [next(g for g in e.api.get("/apis")["groups"] if g["name"] == e.group) for e in pair]
    assert listed[0] == listed[1]
    paths = mine.api.get("/")["paths"]
    assert {"/apis/ext.example.com", mine.path} <= set(paths)
    shown = [e.kubectl("api-resources", "--api-group", e.group, "-o", "wide") for e in pair]
    assert shown[0].split() == shown[1].split()
    shown = [e.kubectl("get", "gg", "-n", NS, "-o", "json") for e in pair]
    assert json.loads(shown[0]) == json.loads(shown[1])
    assert mine.kubectl("get", f"gauges.{mine.group}", "one", "-n", NS, "-o", "jsonpath={.value}") == "7"


def test_groups_keep_their_order(pair):
    """A version beside those of a group that is served here, by priority."""
    mine, oracle = pair
    for e in pair:
        e.api.post(SERVICES, {"metadata": {"name": "v9.batch"}, "spec": {
            "group": "batch", "version": "v9", "groupPriorityMinimum": 17400, "versionPriority": 1, "insecureSkipTLSVerify": True,
            "service": {"namespace": NS, "name": "none"}}})
    try:
        for e in pair:
            eventually(lambda e=e: "ServiceNotFound" in str(e.api.get(f"{SERVICES}/v9.batch").get("status")), 60, "its condition")
        assert mine.api.get("/apis/batch") == oracle.api.get("/apis/batch")
        assert [v["version"] for v in mine.api.get("/apis/batch")["versions"]] == ["v1", "v9"]
        assert mine.api.raw("GET", "/apis/batch/v9")[0] == oracle.api.raw("GET", "/apis/batch/v9")[0] == 503
        assert mine.api.raw("GET", "/apis/batch/v1")[0] == 200
    finally:
        for e in pair:
            e.api.delete(f"{SERVICES}/v9.batch")


# --- away ---------------------------------------------------------------------------------------


def test_a_server_that_is_away(pair, tmp_path):
    """Its own group answers 503 and is stale; every other answers as before; it comes back."""
    mine, oracle = pair
    got = []
    for e in pair:
        e.away()
        code, kind, text = text_of(e, "GET", f"{e.path}/namespaces/{NS}/gauges")
        assert code == 503 and "text/plain" in kind
        first = text if e.condition()[0] == "True" else None
        e.becomes("FailedDiscoveryCheck")
        eventually(lambda e=e: version(e)["freshness"] == "Stale", 120, "it to be stale")
        eventually(lambda e=e: text_of(e, "GET", e.path)[2] == "service unavailable\n", 60, "it to be out of service")
        fresh = f"--cache-dir={tmp_path}/{len(got)}"  # kubectl knows of no earlier discovery
        got.append((e.condition(), e.kubectl.run("get", "gauges", "-n", NS, fresh),
                    e.kubectl.run("api-resources", "--api-group", e.group, fresh),
                    text_of(e, "GET", f"{e.path}/namespaces/{NS}/gauges")))
        if first:
            assert first.startswith("error trying to reach service: dial tcp ADDRESS:PORT: connect: connection refused")
        assert e.api.get("/apis/apps/v1/namespaces/default/deployments")["items"] == []
        e.start()
        e.becomes("Passed")
    assert got[0] == got[1]


def test_another_certificate(pair, workdir):
    """The caBundle verifies the server, also for the condition."""
    got = []
    other = Pki(os.path.join(workdir, "extension-other"))
    for e in pair:
        def patch(e=e, **spec):
            e.api.patch(f"{SERVICES}/v1.{e.group}", {"spec": spec})
        path = f"{e.path}/namespaces/{NS}/gauges"
        patch(caBundle=ca_bundle(other))
        status, _, message = e.becomes("FailedDiscoveryCheck")
        eventually(lambda e=e, path=path: text_of(e, "GET", path)[2] == "service unavailable\n", 60, "it to be refused")
        got.append((status, message[:message.index("certificate") + len("certificate")]))
        patch(caBundle=None, insecureSkipTLSVerify=True)
        eventually(lambda e=e, path=path: e.api.raw("GET", path)[0] == 200, 60, "it to be served unverified")
        patch(caBundle=ca_bundle(e.pki), insecureSkipTLSVerify=False)
        eventually(lambda e=e, path=path: e.api.raw("GET", path)[0] == 200, 60, "it to be served")
        e.becomes("Passed")
    assert got[0] == got[1]


# --- of a virtual cluster alone -----------------------------------------------------------------


def test_only_own_services_are_called(mine):
    """No address that the tenant chooses: no Service without a selector, none of ExternalName, not the API's own."""
    services = f"/api/v1/namespaces/{NS}/services"
    mine.api.post(services, {"metadata": {"name": "free"}, "spec": {"ports": [{"port": 443}]}})
    mine.api.post("/apis/discovery.k8s.io/v1/namespaces/" + NS + "/endpointslices", {
        "metadata": {"name": "free", "labels": {"kubernetes.io/service-name": "free"}}, "addressType": "IPv4",
        "ports": [{"name": "", "port": 443}], "endpoints": [{"addresses": ["10.1.2.3"]}]})
    mine.api.post(services, {"metadata": {"name": "named"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    own = mine.api.get("/api/v1/namespaces/default/services/kubernetes")["spec"]["ports"][0]["port"]
    foreign = "FailedDiscoveryCheck", "does not select pods of this virtual cluster"
    nowhere = "EndpointsNotFound", 'cannot find endpointslices for service/kubernetes in "default"'
    for name, namespace, port, (reason, words) in (
            ("free", NS, 443, foreign), ("named", NS, 443, foreign), ("kubernetes", "default", own, nowhere)):
        mine.register(service={"namespace": namespace, "name": name, "port": port})
        status, _, message = mine.becomes(reason)
        assert status == "False" and words in message
        assert text_of(mine, "GET", f"{mine.path}/gauges")[2] == "service unavailable\n"
        mine.api.delete(f"{SERVICES}/v1.{mine.group}")
        eventually(lambda: mine.api.raw("GET", mine.path)[0] == 404, 30, "it to be gone")


def test_what_is_served_here_is_served_here(pair):
    """An APIService never shadows a built-in kind or a CRD of the tenant."""
    mine = pair[0]
    mine.api.raw("PATCH", f"{SERVICES}/v1.apps", {"spec": {"service": {"namespace": NS, "name": "ext", "port": mine.port.number},
                                                           "insecureSkipTLSVerify": True}},
                 content_type="application/merge-patch+json")
    assert mine.api.get("/apis/apps/v1/deployments")["kind"] == "DeploymentList"
    assert not mine.seen


def test_it_outlives_a_restart(pair):
    mine = pair[0]
    mine.vc.restart(kill=True)
    api = mine.vc.api.clone()
    eventually(lambda: api.raw("GET", f"{mine.path}/namespaces/{NS}/gauges")[0] == 200, 60, "it to be served", also=(OSError,))
    mine.api.close()


def test_namespaces_end_beside_a_server_that_is_away(pair):
    """What a server that is away has in a namespace is unknown: the namespace says so, as upstream's, and ends when it is back."""
    mine = pair[0]
    mine.api.post("/api/v1/namespaces", {"metadata": {"name": "ending"}})
    mine.away()
    mine.becomes("FailedDiscoveryCheck")
    mine.api.delete("/api/v1/namespaces/ending")

    def failure():
        conditions = mine.api.get("/api/v1/namespaces/ending")["status"].get("conditions", [])
        return next((c for c in conditions if c["type"] == "NamespaceDeletionDiscoveryFailure" and c["status"] == "True"), None)
    found = eventually(failure, 60, "the condition")
    assert found["reason"] == "DiscoveryFailed" and f"{mine.group}/v1" in found["message"]
    mine.start()
    eventually(lambda: mine.api.raw("GET", "/api/v1/namespaces/ending")[0] == 404, 120, "the namespace to end")
    deleted = [r for r in mine.seen if r["method"] == "DELETE" and "/namespaces/ending/" in r["path"]]
    assert not deleted  # it has no deletecollection, and lists nothing there
