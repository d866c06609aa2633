# SPDX-License-Identifier: Apache-2.0
"""The audit log: line by line what kube-apiserver writes with the same policy; files; what gives way."""
import copy
import json
import os
import ssl
import threading

import pytest
import yaml

from testenv.host import HostCluster
from testenv.wait import eventually

NAMESPACE = "audited"
BASE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"

POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitManagedFields": True,
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/healthz*"]},
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": ["quiet"]}]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "Request", "verbs": ["delete", "deletecollection"]},
        {"level": "Request", "resources": [{"group": "apps", "resources": ["deployments/*"]}],
         "omitStages": ["RequestReceived"]},
        {"level": "RequestResponse", "nonResourceURLs": ["/version", "/nowhere*"]},
        {"level": "Metadata", "nonResourceURLs": ["*"], "omitStages": ["RequestReceived"]},
        {"level": "RequestResponse", "namespaces": [NAMESPACE]},
        {"level": "Metadata"},
    ],
}

CM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
LABELS = {"app": "web"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
              "spec": {"replicas": 0, "selector": {"matchLabels": LABELS},
                       "template": {"metadata": {"labels": LABELS},
                                    "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
          "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": NAMESPACE}}}
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
MERGE, JSON_PATCH, APPLY = ("application/merge-patch+json", "application/json-patch+json",
                            "application/apply-patch+yaml")
BOB = {"Impersonate-User": "bob"}
TEAM = {"Impersonate-User": "eve", "Impersonate-Group": "dev", "Impersonate-Uid": "u1",
        "Impersonate-Extra-Scopes": "view"}

# (name, method, path, body, content type, headers)
CASES = [
    ("create", "POST", f"{BASE}/configmaps", CM, None, {}),
    ("create again", "POST", f"{BASE}/configmaps", CM, None, {}),
    ("create what is invalid", "POST", f"{BASE}/configmaps", {**CM, "metadata": {"name": "A_"}}, None, {}),
    ("create what cannot be read", "POST", f"{BASE}/configmaps", b"{", "application/json", {}),
    ("create in a form nobody reads", "POST", f"{BASE}/configmaps", b"a", "text/csv", {}),
    ("create by generateName, dry run", "POST", f"{BASE}/configmaps?dryRun=All",
     {**CM, "metadata": {"generateName": "g-"}}, None, {}),
    ("get", "GET", f"{BASE}/configmaps/a", None, None, {}),
    ("get what is not there", "GET", f"{BASE}/configmaps/none", None, None, {}),
    ("get what nobody audits", "GET", f"{BASE}/configmaps/quiet", None, None, {}),
    ("list one", "GET", f"{BASE}/configmaps?fieldSelector=metadata.name%3Da", None, None, {}),
    ("list for people", "GET", f"{BASE}/configmaps?fieldSelector=metadata.name%3Da", None, None,
     {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}),
    ("watch", "GET", f"{BASE}/configmaps?watch=1&timeoutSeconds=1", None, None, {}),
    ("watch one", "GET", f"{BASE}/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da", None,
     None, {}),
    ("update", "PUT", f"{BASE}/configmaps/a", {**CM, "data": {"x": "2"}}, None, {}),
    ("update by another name", "PUT", f"{BASE}/configmaps/b", CM, None, {}),
    ("merge patch", "PATCH", f"{BASE}/configmaps/a", {"data": {"y": "1"}}, MERGE, {}),
    ("json patch", "PATCH", f"{BASE}/configmaps/a",
     [{"op": "add", "path": "/data/z", "value": "3"}], JSON_PATCH, {}),
    ("json patch that fails", "PATCH", f"{BASE}/configmaps/a",
     [{"op": "test", "path": "/data/z", "value": "4"}], JSON_PATCH, {}),
    ("create a secret", "POST", f"{BASE}/secrets",
     {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}}, None, {}),
    ("create a deployment", "POST", f"{APPS}/deployments", DEPLOYMENT, None, {}),
    ("scale it", "PUT", f"{APPS}/deployments/web/scale",
     {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": NAMESPACE},
      "spec": {"replicas": 0}}, None, {}),
    ("get its status", "GET", f"{APPS}/deployments/web/status", None, None, {}),
    ("review", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", REVIEW, None, {}),
    ("forbidden", "GET", f"{BASE}/configmaps/a", None, None, BOB),
    ("forbidden list everywhere", "GET", "/api/v1/pods", None, None, BOB),
    ("somebody else", "GET", f"{BASE}/configmaps/a", None, None, TEAM),
    ("a path", "GET", "/version", None, None, {}),
    ("a path as somebody", "GET", "/version", None, None, BOB),
    ("a path nobody may read", "GET", "/metrics", None, None, BOB),
    ("a path there is not", "GET", "/nowhere/x?y=z", None, None, {}),
    ("discovery", "GET", "/apis", None, None, {}),
    ("a kind there is not", "GET", f"{BASE}/gadgets", None, None, {}),
    ("a method there is not", "PUT", f"{BASE}/configmaps", CM, None, {}),
    ("a wrong token", "GET", f"{BASE}/configmaps/a", None, None, {"Authorization": "Bearer wrong"}),
    ("forwarded", "GET", f"{BASE}/configmaps/a", None, None,
     {"X-Forwarded-For": "10.1.2.3, nonsense, 2001:db8::1", "X-Real-Ip": "10.9.9.9"}),
    ("a long agent", "GET", f"{BASE}/configmaps/a", None, None, {"User-Agent": "x" * 2000}),
    ("an agent of no code", "GET", f"{BASE}/configmaps/a", None, None, {"User-Agent": "caf\xe9 \xff"}),
    ("head", "HEAD", f"{BASE}/configmaps/a", None, None, {}),
    ("options", "OPTIONS", f"{BASE}/configmaps/a", None, None, {}),
    ("a method of its own", "BREW", f"{BASE}/configmaps/a", None, None, {}),
    ("a method of its own on a path", "BREW", "/version", None, None, {}),
    ("post to a path", "POST", "/nowhere/y", {"a": 1}, None, {}),
    ("a path with escapes", "GET", f"{BASE}/configmaps/%61?x=%zz&y=a%20b;c", None, None, {}),
    ("a path with slashes", "GET", f"{BASE}//configmaps/a/", None, None, {}),
    ("a name that is none", "GET", f"{BASE}/configmaps/a%2Fb", None, None, {}),
    ("a version there is not", "GET", f"/apis/apps/v9/namespaces/{NAMESPACE}/deployments", None, None, {}),
    ("options that are wrong", "GET", f"{BASE}/configmaps?limit=x", None, None, {}),
    ("yaml", "GET", f"{BASE}/configmaps/a", None, None, {"Accept": "application/yaml"}),
    ("metadata alone", "GET", f"{BASE}/configmaps/a", None, None,
     {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}),
    ("apply", "PATCH", f"{BASE}/configmaps/ap?fieldManager=m", {**CM, "metadata": {"name": "ap"}}, APPLY, {}),
    ("apply again", "PATCH", f"{BASE}/configmaps/ap?fieldManager=m", {**CM, "metadata": {"name": "ap"}}, APPLY, {}),
    ("apply without a manager", "PATCH", f"{BASE}/configmaps/ap", {**CM, "metadata": {"name": "ap"}}, APPLY, {}),
    ("patch in a form nobody reads", "PATCH", f"{BASE}/configmaps/a", {}, "text/csv", {}),
    ("patch nothing", "PATCH", f"{BASE}/configmaps/a", {}, MERGE, {}),
    ("patch the scale", "PATCH", f"{APPS}/deployments/web/scale", {"spec": {"replicas": 0}}, MERGE, {}),
    ("update a status", "PUT", f"{APPS}/deployments/web/status", DEPLOYMENT, None, {}),
    ("the namespace", "GET", BASE, None, None, {}),
    ("a cluster's kind", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view", None, None, {}),
    ("evict nobody", "POST", f"{BASE}/pods/none/eviction", {"metadata": {"name": "none"}}, None, {}),
    ("forbidden log", "GET", f"{BASE}/pods/none/log?follow=1", None, None, BOB),
    ("forbidden exec", "POST", f"{BASE}/pods/none/exec?command=a&stdout=1", None, None, BOB),
    ("forbidden proxy", "GET", f"{BASE}/services/none/proxy/a/b?c=d", None, None, BOB),
    ("forbidden watch", "GET", f"{BASE}/configmaps?watch=1", None, None, BOB),
    ("watch with options that are wrong", "GET", f"{BASE}/configmaps?watch=1&resourceVersionMatch=Exact", None, None, {}),
    ("watch of a kind there is not", "GET", f"{BASE}/gadgets?watch=1", None, None, {}),
    ("forbidden method of its own", "BREW", "/metrics", None, None, BOB),
    ("watch by path", "GET", f"/api/v1/watch/namespaces/{NAMESPACE}/configmaps?timeoutSeconds=1", None, None, {}),
    ("dry delete", "DELETE", f"{BASE}/configmaps/a?dryRun=All", None, None, {}),
    ("impersonate nobody", "GET", f"{BASE}/configmaps/a", None, None, {"Impersonate-Group": "dev"}),
    ("delete with options", "DELETE", f"{BASE}/configmaps/a", OPTIONS, None, {}),
    ("delete what is not there", "DELETE", f"{BASE}/configmaps/a", None, None, {}),
    ("delete many", "DELETE", f"{BASE}/secrets?fieldSelector=metadata.name%3Ds", None, None, {}),
    ("delete a deployment", "DELETE", f"{APPS}/deployments/web?propagationPolicy=Orphan", None, None, {}),
]

LAST = {"get what nobody audits": None, "a wrong token": "ResponseStarted"}  # the others: ResponseComplete

VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "requestReceivedTimestamp", "stageTimestamp",
            "lastTransitionTime", "lastUpdateTime"}


def plain(value):
    """An event without what no two servers agree on."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def normal(event):
    e = plain(copy.deepcopy(event))
    # A certificate's fingerprint is reported as an extra of its user; ours has none yet.
    e["user"].pop("extra", None)
    notes = e.get("annotations", {})
    for key in list(notes):
        if "latency" in key:  # only where it took long
            del notes[key]
    # Two bindings allow it; which of them upstream finds first is chance.
    if e["requestURI"] == "/version":
        notes.pop("authorization.k8s.io/reason", None)
    # What upstream's decoder makes of these is an accident of its internal versions.
    asked = e.get("requestObject")
    if isinstance(asked, dict) and asked.get("kind") == "DeleteOptions":
        asked.pop("apiVersion")
    if isinstance(asked, dict) and asked.get("kind") == "Scale":
        asked.pop("status", None)
        asked["spec"] = {k: v for k, v in asked["spec"].items() if v}
    name = e.get("responseObject", {}).get("metadata", {}).get("name", "")
    if name.startswith("g-"):
        e["responseObject"]["metadata"]["name"] = "g-"
    if e["requestURI"] == "/version":
        e.pop("responseObject", None)  # whose build it is
    if "columnDefinitions" in e.get("responseObject", {}):
        for column in e["responseObject"]["columnDefinitions"]:
            column.pop("description")
        for row in e["responseObject"]["rows"]:
            row["cells"][-1] = "age"
    return e


def ask(api, n, case):
    _, method, path, body, kind, headers = case
    client = api.clone()
    try:
        if "Authorization" in headers:  # else the certificate would do
            client = without_certificate(api)
        return client.raw(method, path, body, content_type=kind,
                          headers={"Audit-ID": f"case-{n}", "User-Agent": "tests", **headers})[0]
    finally:
        client.close()


def without_certificate(api):
    client = api.clone()
    client.tls = ssl.create_default_context()
    client.tls.check_hostname = False
    client.tls.verify_mode = ssl.CERT_NONE
    return client


def read_log(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def by_case(path):
    """case -> its events, once each is complete that anybody audits: the last may be written before others."""
    def complete():
        found = {}
        for e in read_log(path):
            found.setdefault(e["auditID"], []).append(e)
        for n, case in enumerate(CASES):
            last = LAST.get(case[0], "ResponseComplete")
            if last and last not in [e["stage"] for e in found.get(f"case-{n}", [])]:
                return None
        return found
    return eventually(complete, 60, f"the last events in {path}")


def run_cases(api, path):
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return [ask(api, n, case) for n, case in enumerate(CASES)], by_case(path)


@pytest.fixture(scope="module")
def oracle(workdir):
    """kube-apiserver alone, with our policy: its admin's Api and its log."""
    directory = os.path.join(workdir, "audit-host")
    os.makedirs(directory)
    policy, log = os.path.join(directory, "policy.yaml"), os.path.join(directory, "audit.log")
    with open(policy, "w", encoding="utf-8") as f:
        yaml.safe_dump(POLICY, f)
    cluster = HostCluster(directory, api_args=[f"--audit-policy-file={policy}", f"--audit-log-path={log}"])
    try:
        for name in ("etcd", "kube-apiserver"):
            cluster.start_component(name)
        eventually(lambda: cluster.api.get("/api/v1/namespaces/default"), 60, "the default namespace")
        yield cluster.api, log
    finally:
        cluster.stop()


def audited(tenant, tmp_path, policy=None, **options):
    log = str(tmp_path / "audit.log")
    config = {"audit": {"policy": yaml.safe_dump(policy or POLICY), "path": log, **options}}
    return tenant("audited", config=config, on=False), log


def test_events_are_those_of_kube_apiserver(oracle, tenant, tmp_path):
    api, theirs = oracle
    vc, ours = audited(tenant, tmp_path)
    codes, want = run_cases(api, theirs)
    mine, got = run_cases(vc.api, ours)
    different = []
    for n, case in enumerate(CASES):
        if mine[n] != codes[n]:
            different.append(f"{case[0]}: code {mine[n]}, not {codes[n]}")
        w = [normal(e) for e in want.get(f"case-{n}", [])]
        g = [normal(e) for e in got.get(f"case-{n}", [])]
        if w != g:
            different.append(f"{case[0]}:\n  want {json.dumps(w, sort_keys=True)}\n  got  {json.dumps(g, sort_keys=True)}")
    assert not different, f"{len(different)} of {len(CASES)} differ:\n" + "\n".join(different)


def test_an_audit_id_is_answered(tenant, tmp_path):
    vc, _ = audited(tenant, tmp_path)
    assert vc.api.raw("GET", "/version", headers={"Audit-ID": "mine"})[1]["Audit-Id"] == "mine"
    made = vc.api.raw("GET", "/version")[1]["Audit-Id"]
    assert len(made) == 36 and made != vc.api.raw("GET", "/version")[1]["Audit-Id"]


def test_files_are_put_aside(tenant, tmp_path):
    everything = {**POLICY, "rules": [{"level": "RequestResponse"}]}
    vc, log = audited(tenant, tmp_path, policy=everything, maxSize="64Ki", maxBackups=2)

    def written():
        """None while the file is put aside, and before there is the next one."""
        try:
            s = os.stat(log)
        except FileNotFoundError:
            return None
        return s.st_ino, s.st_size

    for _ in range(60):  # one after the other: a file is rotated once in a millisecond, or goes on growing
        before = eventually(written, 60, "the file", interval=0.001)
        vc.api.get("/api/v1/namespaces")
        eventually(lambda b=before: written() not in (None, b), 60, "the event", interval=0.001)
    vc.stop()
    names = sorted(os.listdir(tmp_path))
    assert len(names) == 3 and "audit.log" in names, names
    for name in names:
        path = tmp_path / name
        assert path.stat().st_size <= 64 << 10
        assert path.stat().st_mode & 0o777 == 0o600
        read_log(path)


def test_nothing_is_written_without_a_policy(tenant, tmp_path):
    log = tmp_path / "audit.log"
    tenant("quiet", config={"audit": {"path": str(log)}}, on=False).api.get("/api/v1/namespaces")
    assert not log.exists()


def test_a_policy_that_says_nothing_is_an_error(tenant, tmp_path):
    bad = {**POLICY, "rules": [{"level": "Everything"}]}
    vc = tenant("bad", config={"audit": {"policy": yaml.safe_dump(bad), "path": str(tmp_path / "a")}},
                on=False, start=False)
    vc.process.start()
    assert vc.process.wait() == 1
    assert "audit policy: rules[0].level: want one of None, Metadata, Request, RequestResponse" in vc.process.tail()


@pytest.mark.parametrize("when_full", ["drop", "refuse"])
def test_a_disk_that_stands_still_holds_up_nobody(tenant, tmp_path, when_full):
    """The output is a pipe without a reader: 16 MiB later events go, or requests; what runs is answered."""
    everything = {**POLICY, "rules": [{"level": "RequestResponse", "verbs": ["get", "create"]}]}
    config = {"audit": {"policy": yaml.safe_dump(everything), "path": "-", "whenFull": when_full}}
    vc = tenant("slow", config=config, on=False, start=False)
    read, write = os.pipe()
    vc.process.start(stdout=write)
    os.close(write)
    ready = os.read(read, 4096)
    while b"ready" not in ready:
        more = os.read(read, 4096)
        assert more, vc.process.tail()
        ready += more
    api = vc.api
    big = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"x": "y" * 500_000}}
    api.post("/api/v1/namespaces/default/configmaps", big)
    codes = [api.raw("GET", "/api/v1/namespaces/default/configmaps/big")[0] for _ in range(60)]
    if when_full == "drop":
        assert codes == [200] * 60
    else:
        assert codes[0] == 200 and codes[-1] == 500, codes
        code, _, body = api.raw("GET", "/api/v1/namespaces/default/configmaps/big")
        assert json.loads(body)["message"] == "Internal error occurred: failed to store audit event"
    text = api.raw("GET", "/api/v1/namespaces/default/configmaps", headers={})[0]
    assert text == 200  # a list is not audited here
    drain = threading.Thread(target=swallow, args=(read,))
    drain.start()
    vc.stop()
    drain.join()


def swallow(fd):
    while os.read(fd, 1 << 20):
        pass
    os.close(fd)
