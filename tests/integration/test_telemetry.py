# SPDX-License-Identifier: Apache-2.0
"""What DCGM exporters say of the host's GPU nodes: in the fleet's metrics and on its page, with the chart's rights alone."""
import json

import pytest

from testenv import eventually
from testenv.exporter import Exporter, exporter_pod, series
from testenv.https import JsonServer
from testenv.page import gpu_pod
from testenv.pki import Pki
from testenv.process import Port

from test_tenant import host_pod, running

TLS_ANSWER = "Client sent an HTTP request to an HTTPS server.\n"
FAMILIES = ("idle_held_gpus", "idle_held_gpu_seconds_total", "utilised_gpus", "unmeasured_gpus", "telemetry_exporters",
            "telemetry_failures_total", "telemetry_age_seconds", "telemetry_series_refused_total", "gpu_xid_errors_total")


@pytest.fixture
def exporter():
    made = Exporter()
    yield made
    made.close()


class Measured:
    """The fleet's own numbers of one tenant, the host namespace of the page."""

    def __init__(self, page):
        self.fleet, self.tenant = page.fleet, page.namespace

    def get(self, family, **labels):
        """The value of the sample with these labels, and of this tenant where they name a pool."""
        if "pool" in labels:
            labels["tenant"] = self.tenant
        return self.fleet.metrics()[f"sublet_fleet_{family}"].get(frozenset(labels.items()))

    def gpus(self):
        """(utilised, warm, unused, unmeasured) of pool a100."""
        return (self.get("utilised_gpus", pool="a100"), self.get("idle_held_gpus", pool="a100", state="warm"),
                self.get("idle_held_gpus", pool="a100", state="unused"), self.get("unmeasured_gpus", pool="a100"))

    def becomes(self, *want):
        eventually(lambda: self.gpus() == want, 60, f"utilised, warm, unused and unmeasured GPUs to be {want}")

    def failures(self, *reasons):
        """Reads that failed, for these reasons or all of them."""
        samples = {dict(k)["reason"]: v for k, v in self.fleet.metrics()["sublet_fleet_telemetry_failures_total"].items()}
        assert set(reasons) <= samples.keys()
        return sum(v for k, v in samples.items() if not reasons or k in reasons)

    def refused(self, reason):
        return self.get("telemetry_series_refused_total", reason=reason)


def run_pod(host, page, pool, name, gpus):
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    host.api.post(path, gpu_pod(pool, name, gpus))

    def running():
        pod = host.api.get(f"{path}/{name}")
        return pod if pod["status"]["phase"] == "Running" else None
    return eventually(running, 60, f"pod {name} to run")


def start(page, exporter):
    page.fleet.process.argv += ["--listen", "127.0.0.1:0"]
    page.fleet.write_config(telemetry={"dcgm": exporter.config(page.namespace)})
    page.fleet.start()
    return Measured(page)


def test_who_uses_what_it_holds(host, page, pools, exporter):
    measured = start(page, exporter)
    pod = run_pod(host, page, pools["pools"][0], "train", 2)
    eventually(lambda: measured.gpus()[3] == 2, 60, "GPUs of which no exporter says anything")
    assert measured.gpus()[:3] == (0, 0, 0) and measured.get("telemetry_exporters", state="answering") == 0

    exporter.say(series(pod, 0, 0.75, 40000), series(pod, 1, 0.5, 40000), series(None, 2, 0, 0))
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    host.api.post(path, exporter_pod(pod["spec"]["nodeName"]))
    measured.becomes(1.25, 0, 0, 0)
    assert measured.get("telemetry_exporters", state="answering") == 1
    assert 0 <= measured.get("telemetry_age_seconds") < 60
    assert measured.failures() == 0

    # Idle with memory in use, then without; the time is counted, and the page names who it is.
    exporter.say(series(pod, 0, 0.01, 40000), series(pod, 1, 0, 40000))
    eventually(lambda: measured.gpus()[1] == 2, 60, "two GPUs held and not used")
    seconds = {"pool": "a100", "state": "warm"}
    eventually(lambda: measured.get("idle_held_gpu_seconds_total", **seconds) > 2, 60, "their time")
    seer = page.account("seer", True)
    state = json.loads(page.ask(token=seer)[2])
    row, = state["hoarders"]
    assert {k: v for k, v in row.items() if k != "since"} == {
        "tenant": page.namespace, "pod": "train", "node": pod["spec"]["nodeName"], "pool": "a100", "gpus": "2.000", "state": "warm"}
    assert row["since"] >= pod["metadata"]["creationTimestamp"]
    exporter.say(series(pod, 0, 0.01, 3), series(pod, 1, 0, 3))
    eventually(lambda: measured.gpus()[1:] == (0, 2, 0), 60, "no memory in use")

    # One of its two GPUs is not in the answer: whether it is used is not known.
    exporter.say(series(pod, 0, 0, 3))
    eventually(lambda: measured.gpus()[1:] == (0, 0, 2), 60, "an incomplete answer to be none")
    exporter.say(series(pod, 0, 1, 3), series(pod, 1, 1, 3))
    measured.becomes(2, 0, 0, 0)

    # An error of a GPU counts once for who holds it, however often the exporter repeats it; not one from before the pod.
    def errors():
        return measured.get("gpu_xid_errors_total", pool="a100")
    exporter.say(series(pod, 0, 1, 3, DCGM_FI_DEV_XID_ERRORS=31), series(pod, 1, 1, 3, DCGM_FI_DEV_XID_ERRORS=0))
    reads = exporter.reads
    eventually(lambda: exporter.reads > reads + 1, 60, "two reads")
    assert errors() == 0
    exporter.say(series(pod, 0, 1, 3, DCGM_FI_DEV_XID_ERRORS=31), series(pod, 1, 1, 3, DCGM_FI_DEV_XID_ERRORS=79))
    eventually(errors, 60, "the error")
    reads = exporter.reads
    eventually(lambda: exporter.reads > reads + 1, 60, "two reads")
    assert errors() == 1

    # Neither a page of another server, nor an answer that was cut, nor silence is a zero.
    for broken in ("<html>hello</html>", exporter.content[:-1]):
        failures = measured.failures("parse")
        exporter.broken = broken
        eventually(lambda: measured.failures("parse") > failures, 60, "an answer that is none")
        assert measured.get("telemetry_exporters", state="failing") == 1
    eventually(lambda: measured.gpus() == (0, 0, 0, 2), 60, "the last answer to be old")
    exporter.broken = None
    measured.becomes(2, 0, 0, 0)
    host.api.delete(f"{path}/train", gracePeriodSeconds=0)
    measured.becomes(0, 0, 0, 0)
    assert json.loads(page.ask(token=seer)[2])["hoarders"] == []


def test_what_an_exporter_claims_is_compared(host, page, pools, exporter):
    """Series of a pod that is not there, or is elsewhere, or was another one, count for no one."""
    measured = start(page, exporter)
    pod = run_pod(host, page, pools["pools"][0], "train", 1)
    other = next(n["metadata"]["name"] for n in host.api.get("/api/v1/nodes")["items"]
                 if n["metadata"]["name"] != pod["spec"]["nodeName"])
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    exporter.say(series(pod, 0, 1, 1))
    host.api.post(path, exporter_pod(other))
    eventually(lambda: (measured.refused("other-node") or 0) >= 2, 60, "series of a pod on another node")
    assert measured.gpus() == (0, 0, 0, 1) and measured.refused("no-pod") == 0
    host.api.delete(f"{path}/exporter", gracePeriodSeconds=0)
    eventually(lambda: measured.get("telemetry_exporters", state="answering") == 0, 60, "its end")

    host.api.post(path, exporter_pod(pod["spec"]["nodeName"], "right"))
    measured.becomes(1, 0, 0, 0)
    absent = {"metadata": {"namespace": page.namespace, "name": "absent"}}
    exporter.say(series(absent, 0, 1, 1), series(pod, 0, 1, 1, labels={"pod_uid": "of-another"}))
    eventually(lambda: (measured.refused("no-pod") or 0) >= 2 and measured.refused("other-uid") >= 2, 60,
               "series of pods that are not there")
    eventually(lambda: measured.gpus() == (0, 0, 0, 1), 60, "nothing to be known of the pod")
    exporter.say(series(pod, 0, 7, -1, labels={"pod_uid": pod["metadata"]["uid"]}))
    eventually(lambda: measured.refused("out-of-range") >= 2, 60, "values that cannot be")
    exporter.say(series(pod, 0, None, 1, DCGM_FI_DEV_GPU_UTIL=50, labels={"pod_uid": pod["metadata"]["uid"]}))
    measured.becomes(0.5, 0, 0, 0)


def test_why_an_exporter_fails(host, page, pools, exporter):
    """Each reason is counted by its name; what fails comes back, and more exporters than are read at a time are read."""
    measured = start(page, exporter)
    path = f"/api/v1/namespaces/{page.namespace}/pods"
    exporter.say(series(None, 0, 0, 0))
    seer = page.account("seer", True)

    def rows():
        return {r["node"]: r for r in json.loads(page.ask(token=seer)[2])["exporters"]}
    names = eventually(lambda: list(rows()), 60, "nodes without an exporter")
    assert {r["state"] for r in rows().values()} == {"absent"}
    absent = measured.get("telemetry_exporters", state="absent")
    assert absent == len(rows()) > 0
    host.api.post(path, exporter_pod(names[0]))
    eventually(lambda: measured.get("telemetry_exporters", state="answering") == 1, 60, "an answer")
    assert measured.get("telemetry_exporters", state="absent") == absent - 1
    eventually(lambda: names[0] not in rows(), 30, "the page to show no fault of its exporter")
    for reason, fault in (("status", {"status": 503}), ("tls", {"status": 400, "content": TLS_ANSWER}),
                          ("too-large", {"content": "#" * (5 << 20)}), ("broken", {"cut": True}), ("timeout", {"hang": True})):
        exporter.fault(**fault)
        eventually(lambda: measured.failures(reason) > 0, 60, reason)
        eventually(lambda: rows().get(names[0], {}).get("reason") == reason, 60, f"{reason} on the page")
        assert rows()[names[0]]["state"] == "failing" and rows()[names[0]]["since"]
    exporter.fault()
    for i in range(12):
        host.api.post(path, exporter_pod(names[i % len(names)], f"more-{i}"))
    eventually(lambda: measured.get("telemetry_exporters", state="answering") == 13, 60, "answers of all")
    assert measured.failures() == sum(measured.failures(r) for r in ("status", "tls", "too-large", "broken", "timeout"))


def test_off_by_default(page, exporter):
    page.fleet.process.argv += ["--listen", "127.0.0.1:0"]
    page.fleet.start()
    assert not {f"sublet_fleet_{f}" for f in FAMILIES} & page.fleet.metrics().keys()
    assert "hoarders" not in json.loads(page.ask(token=page.account("seer", True))[2])
    assert exporter.reads == 0


def test_mistakes_are_named(page, exporter):
    for key, value, want in (("selector", "a in (", "telemetry.dcgm.selector"), ("selector", "", "it selects every pod"),
                             ("idleBelow", "2", "want a number from 0 to 1"), ("path", "metrics?x", "want a path"),
                             ("namespace", "A", "telemetry.dcgm.namespace"), ("interval", "1ms", "telemetry.dcgm.interval")):
        page.fleet.write_config(telemetry={"dcgm": exporter.config(page.namespace) | {key: value}})
        page.fleet.start(wait=False)
        assert page.fleet.process.wait(60) == 2, page.fleet.process.tail()
        assert want in page.fleet.process.tail(), (key, value)


def allow_tenant(page, account):
    """A Role as a tenant's process has it, on the namespace of the page."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{page.namespace}"
    page.create(f"{rbac}/roles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": account},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]})
    page.create(f"{rbac}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": page.namespace}]})


def test_a_tenants_process_reads_its_own_series(host, page, pools, exporter):
    """The host decides whose process it is; no one else's series, no UUID of a device, no name of a machine."""
    measured = start(page, exporter)
    pod = run_pod(host, page, pools["pools"][0], "train", 1)
    other = {"metadata": {"namespace": "default", "name": "train"}}
    exporter.say(series(pod, 0, 0.5, 40000), series(other, 1, 0.75, 10), series(None, 2, 0, 0))
    host.api.post(f"/api/v1/namespaces/{page.namespace}/pods", exporter_pod(pod["spec"]["nodeName"]))
    measured.becomes(0.5, 0, 0, 0)

    path, blind, own = f"/tenants/{page.namespace}/dcgm", page.account("blind", True), page.account("own", False)
    allow_tenant(page, "own")
    assert [page.ask(path, token)[0] for token in (None, "nonsense", blind)] == [401, 401, 403]
    status, _, content = page.ask("/tenants/default/dcgm", own)
    assert status == 403 and "is not the process of a tenant" in json.loads(content)["message"]
    assert page.ask("/fleet/state", own)[0] == 403
    assert [page.ask(p, own)[0] for p in ("/tenants//dcgm", "/tenants/a/b/dcgm", "/tenants/dcgm", path + "/x")] == [404] * 4
    assert page.ask(path, own, method="POST")[0] == 405

    status, headers, content = page.ask(path, own)
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in content.splitlines() if not line.startswith("#")]
    assert len(lines) == 2 and all('namespace="%s",pod="train"' % page.namespace in line for line in lines), content
    assert "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge" in content and 'modelName="NVIDIA A100-SXM4-80GB"' in content
    assert "aaaa" not in content and "node-of-the-host" not in content and 'UUID="GPU-' in content


def test_a_tenant_scrapes_its_own_gpus(host, page, pools, exporter, tenant, tmp_path):
    """/metrics/dcgm of the tenant's own API: in its names, by its RBAC, and a reason when the fleet is away."""
    measured = start(page, exporter)
    token = tmp_path / "token"
    url = f"http://127.0.0.1:{page.fleet.port('page')}"
    a = tenant("alpha", config=dict(pools, telemetry={"fleet": url, "fleetToken": str(token)}))
    # As the chart makes it: a token of the process for the fleet, whose account may create the tenant's pods.
    token.write_text(page.account("process", False))
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{a.namespace}/rolebindings"
    host.api.post(rbac, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "fleet-view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "process", "namespace": page.namespace}]})
    body = gpu_pod(pools["pools"][0], "train", 1)
    body["metadata"]["labels"] = {"sublet.dev/gpu-pool": "a100"}
    body["spec"].pop("nodeSelector"), body["spec"].pop("tolerations")
    a.kubectl.apply(body)
    running(a.kubectl, "train")
    pod = a.api.get("/api/v1/namespaces/default/pods/train")
    mine = host_pod(a, "train")
    neighbour = run_pod(host, page, pools["pools"][0], "secret", 1)
    absent = {"metadata": {"namespace": a.namespace, "name": "absent"}}
    exporter.say(series(mine, 0, 0.5, 40000), series(neighbour, 1, 0.75, 10), series(absent, 2, 1, 1))
    host.api.post(f"/api/v1/namespaces/{page.namespace}/pods", exporter_pod(mine["spec"]["nodeName"]))
    own = {"pool": "a100", "tenant": a.namespace}
    eventually(lambda: page.fleet.metrics()["sublet_fleet_utilised_gpus"].get(frozenset(own.items())) == 0.5, 60, "a sample")

    status, headers, content = a.api.raw("GET", "/metrics/dcgm")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), content
    content = content.decode()
    lines = [line for line in content.splitlines() if not line.startswith("#")]
    assert len(lines) == 2, content
    assert all('namespace="default"' in x and 'pod="train"' in x for x in lines)
    assert all(f'Hostname="{pod["spec"]["nodeName"]}"' in x and 'gpu="0"' in x and 'UUID="GPU-' in x for x in lines)
    assert "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge" in content
    for hidden in ("secret", page.namespace, a.namespace, mine["metadata"]["name"], "aaaa", "node-of-the-host", "absent"):
        assert hidden not in content, hidden

    # RBAC, as of any path.
    bob = {"Impersonate-User": "bob"}
    assert a.api.raw("GET", "/metrics/dcgm", headers=bob)[0] == 403
    a.kubectl("create", "clusterrole", "gpu-metrics", "--verb=get", "--non-resource-url=/metrics/dcgm")
    a.kubectl("create", "clusterrolebinding", "bob", "--clusterrole=gpu-metrics", "--user=bob")
    eventually(lambda: a.api.raw("GET", "/metrics/dcgm", headers=bob)[0] == 200, 30, "bob to be allowed")
    assert a.api.raw("GET", "/metrics", headers=bob)[0] == 403

    # What the fleet refuses, and a fleet that is away, are a reason, and no empty answer.
    host.api.delete(f"{rbac}/fleet-view")
    eventually(lambda: a.api.raw("GET", "/metrics/dcgm")[0] == 503, 60, "the fleet's refusal")
    assert "the fleet refuses" in a.api.raw("GET", "/metrics/dcgm")[2].decode()
    assert measured.fleet.metrics()
    page.fleet.stop()
    status, _, content = a.api.raw("GET", "/metrics/dcgm")
    told = json.loads(content)
    assert (status, told["kind"], told["reason"]) == (503, "Status", "ServiceUnavailable")
    assert "the fleet does not answer" in told["message"] and "127.0.0.1" not in told["message"]


def test_a_fleet_without_its_ca(tenant, tmp_path):
    """While the configured CA is no CA, nothing is sent; once it is, the next request succeeds."""
    pki, ca, paths = Pki(str(tmp_path / "pki")), tmp_path / "ca.crt", []
    port = Port()

    def answer(path):
        paths.append(path)
        return 200, b""
    server = JsonServer(pki.issue("fleet", "/CN=fleet", ["127.0.0.1"]), port, answer)
    (tmp_path / "token").write_text("secret")
    telemetry = {"fleet": f"https://127.0.0.1:{port.number}", "fleetCA": str(ca), "fleetToken": str(tmp_path / "token")}
    a = tenant("alpha", config={"telemetry": telemetry})

    def reads(outcome):
        content = a.api.raw("GET", "/metrics")[2].decode()
        line, = (x for x in content.splitlines() if x.startswith("sublet_telemetry_reads_total{outcome=\"%s\"}" % outcome))
        return int(line.split()[-1])
    try:
        assert reads("bad-ca") == 0
        for content in (None, "", "no certificate\n"):
            if content is not None:
                ca.write_text(content)
            status, _, body = a.api.raw("GET", "/metrics/dcgm")
            assert status == 503 and "the CA of the fleet cannot be read: see telemetry.fleetCA" in body.decode()
            assert str(ca) not in body.decode()
        assert reads("bad-ca") == 3 and str(ca) in a.process.tail() and not paths
        # Another CA than that of the server's certificate.
        other = Pki(str(tmp_path / "other"))
        ca.write_text(open(other.path("ca.crt"), encoding="utf-8").read())
        assert a.api.raw("GET", "/metrics/dcgm")[0] == 503 and reads("tls") == 1 and not paths
        ca.write_text(open(pki.path("ca.crt"), encoding="utf-8").read())
        eventually(lambda: a.api.raw("GET", "/metrics/dcgm")[0] == 200, 30, "an answer of the fleet")
        assert paths and set(paths) == {f"/tenants/{a.namespace}/dcgm"} and reads("answered") >= 1
    finally:
        server.stop()
