# SPDX-License-Identifier: Apache-2.0
"""Who may come in, and what they may: the same requests to Sublet and to a kube-apiserver of the same
AuthenticationConfiguration, and the answers compared."""
import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest
import yaml

from testenv import binaries
from testenv.api import Api
from testenv.host import HostCluster
from testenv.issuer import DISCOVERY, Issuer
from testenv.pki import derive_kubeconfig
from testenv.wait import eventually

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
ANONYMOUS = {"enabled": True, "conditions": [{"path": p} for p in ("/livez", "/readyz", "/healthz")]}


@pytest.fixture(scope="module")
def issuer(workdir):
    made = Issuer(os.path.join(workdir, "issuer")).start()
    yield made
    made.stop()


def jwt_config(issuer, **more):
    return {
        "issuer": {"url": issuer.url, "audiences": ["sublet", "other"], "audienceMatchPolicy": "MatchAny",
                   "certificateAuthority": issuer.ca},
        "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"},
                          "groups": {"claim": "groups", "prefix": "team:"},
                          "uid": {"claim": "uid"}},
        "claimValidationRules": [{"claim": "hd", "requiredValue": "example.com"}], **more}


@pytest.fixture(scope="module")
def email_issuer(workdir):
    made = Issuer(os.path.join(workdir, "email-issuer")).start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def authentication(issuer, email_issuer):
    by_email = {"issuer": {"url": email_issuer.url, "audiences": ["sublet"],
                           "certificateAuthority": email_issuer.ca},
                "claimMappings": {"username": {"claim": "email", "prefix": ""}}}
    return {"jwt": [jwt_config(issuer), by_email], "anonymous": ANONYMOUS}


@pytest.fixture(scope="module")
def upstream(workdir, authentication):
    """etcd, kube-apiserver and its controllers."""
    directory = os.path.join(workdir, "auth-upstream")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "authentication.yaml")
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
                        **authentication}, f)
    made = HostCluster(directory, api_args=["--authentication-config=" + path])
    # A pod of a node that does not exist goes after 40 seconds: the duration of a test must not matter.
    made.components["kube-controller-manager"].argv.append("--controllers=*,-pod-garbage-collector-controller")
    try:
        for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
            made.start_component(name)
        yield made
    finally:
        made.stop()


@pytest.fixture
def ours(tenant, authentication):
    return tenant("auth", {"authentication": authentication}, on=False)


def as_user(cluster, **credentials):
    """A client of another user; without credentials: anonymous."""
    path = os.path.join(cluster.dir, "somebody.kubeconfig")
    derive_kubeconfig(path, cluster.kubeconfig, token=credentials.get("token", "x"))
    api = Api(path)
    if "token" not in credentials:
        del api.headers["Authorization"]
    api.headers.update(credentials.get("headers", {}))
    return api


def whoami(cluster, token):
    api = as_user(cluster, token=token)
    code, _, data = api.raw("POST", WHOAMI, REVIEW)
    api.close()
    answer = json.loads(data)
    return (code, answer["status"]["userInfo"]) if code == 201 else (code, answer["message"])


# --- users of other issuers -------------------------------------------------------------------------------

GOOD = {"hd": "example.com", "uid": "42"}
NOW = int(time.time())


def of_now(claims, started=NOW):
    """The same distance from now as from when this file was read, which may be long ago."""
    return {k: v + time.time() - started if isinstance(v, float) else v + int(time.time()) - started
            if k in ("exp", "nbf", "iat") and isinstance(v, int) else v for k, v in claims.items()}


TOKENS = [  # invalid and unusual tokens
    ("plain", {}),
    ("groups", {"groups": ["a", "b"]}),
    ("one group", {"groups": "a"}),
    ("no groups", {"groups": []}),
    ("null groups", {"groups": None}),
    ("groups of numbers", {"groups": [1]}),
    ("groups an object", {"groups": {"a": 1}}),
    ("two audiences", {"aud": ["x", "other"]}),
    ("another audience", {"aud": "x"}),
    ("no audience", {"aud": None}),
    ("empty audiences", {"aud": []}),
    ("expired", {"exp": NOW - 5}),
    ("no end", {"exp": None}),
    ("an end that is a text", {"exp": "tomorrow"}),
    ("an end with a fraction", {"exp": NOW + 3600.5}),
    ("not yet", {"nbf": NOW + 3600}),
    ("nearly", {"nbf": NOW + 30}),
    ("issued in the future", {"iat": NOW + 3600}),
    ("no user", {"sub": None}),
    ("a user that is a number", {"sub": 7}),
    ("no uid", {"uid": None}),
    ("a uid that is a number", {"uid": 7}),
    ("a rule's claim is missing", {"hd": None}),
    ("a rule's claim differs", {"hd": "example.org"}),
    ("a rule's claim is a number", {"hd": 7}),
    ("an id", {"jti": "abc"}),
    ("an id that is a number", {"jti": 7}),
    ("a reserved name", {"sub": "system:admin"}),
]
HEADERS = [
    ("no algorithm", {"alg": "none"}),
    ("the public key as a secret", {"alg": "HS256"}),
    ("no key id", {"kid": None}),
    ("another algorithm of the type", {"alg": "RS512"}),
    ("an unknown key", {"kid": "other"}),
]


def same_users(ours, upstream, name, token):
    got, want = whoami(ours, token), whoami(upstream, token)
    assert got == want, f"{name}: {got}, upstream: {want}"
    return want


def test_tokens_of_an_issuer(ours, upstream, issuer):
    eventually(lambda: whoami(upstream, issuer.token(**GOOD))[0] == 201, 60, "upstream to know the issuer")
    for name, claims in TOKENS:
        same_users(ours, upstream, name, issuer.token(**{**GOOD, **of_now(claims)}))
    for name, header in HEADERS:
        same_users(ours, upstream, name, issuer.token(header=header, **GOOD))
    good = issuer.token(**GOOD)
    head, body, signature = good.split(".")
    for name, token in (("cut", good[:-8]), ("two parts", head + "." + body), ("four parts", good + ".x"),
                        ("another's signature", head + "." + body + "." + issuer.token(sub="x").split(".")[2]),
                        ("no signature", head + "." + body + "."), ("not base64", "%." + body + "." + signature),
                        ("words", "abc")):
        same_users(ours, upstream, name, token)
    assert whoami(ours, good) == (201, {"username": "oidc:u-1", "uid": "42", "groups": ["system:authenticated"]})


def test_names_by_mail(ours, upstream, email_issuer):
    mail = {"email": "a@example.com"}
    eventually(lambda: whoami(upstream, email_issuer.token(**mail))[0] == 201, 60, "upstream to know the issuer")
    for name, claims in (("silent", {}), ("verified", {"email_verified": True}),
                         ("not verified", {"email_verified": False}), ("odd", {"email_verified": "true"}),
                         ("without", {"email": None})):
        same_users(ours, upstream, name, email_issuer.token(**{**mail, **claims}))


@pytest.mark.parametrize("alg", ["RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"])
def test_algorithms(ours, issuer, alg):
    key = issuer.add_key("key-" + alg, alg)
    try:
        assert whoami(ours, issuer.token(key=key, **GOOD))[0] == 201
    finally:
        issuer.keys.remove(key)


FLOOR = 10  # seconds, between two fetches of an issuer's keys


def test_keys_are_fetched_once(ours, issuer):
    """And, for keys that are unknown, once more for each time that the floor has passed meanwhile."""
    issuer.requests.clear()
    begin = time.monotonic()
    for _ in range(3):
        assert whoami(ours, issuer.token(**GOOD))[0] == 201
    assert (issuer.requests.count("/keys"), issuer.requests.count(DISCOVERY)) == (1, 1), issuer.requests
    unknown = issuer.add_key("unknown", published=False)
    for _ in range(5):
        assert whoami(ours, issuer.token(key=unknown, **GOOD)) == (401, "Unauthorized")
    most = 1 + (time.monotonic() - begin) // FLOOR
    assert max(issuer.requests.count(path) for path in ("/keys", DISCOVERY)) <= most, issuer.requests


def test_a_new_key_is_found(ours, issuer):
    """After the floor between two fetches."""
    assert whoami(ours, issuer.token(**GOOD))[0] == 201
    key = issuer.add_key("second")
    try:
        eventually(lambda: whoami(ours, issuer.token(key=key, **GOOD))[0] == 201, 30, "the second key")
    finally:
        issuer.keys.remove(key)


def test_an_issuer_that_is_down(ours, issuer):
    issuer.stop()
    try:
        assert whoami(ours, issuer.token(**GOOD)) == (401, "Unauthorized")
        assert ours.api.get("/api/v1/namespaces/default")
    finally:
        issuer.start()
    eventually(lambda: whoami(ours, issuer.token(**GOOD))[0] == 201, 30, "the user, once the issuer is back")


def give_up_once_fetched(cluster, issuer):
    """One request whose client leaves once its issuer got the request."""
    issuer.requests.clear()
    slow = as_user(cluster, token=issuer.token(**GOOD))

    def ask_it():
        with contextlib.suppress(OSError, http.client.HTTPException):
            slow.raw("POST", WHOAMI, REVIEW)

    asking = threading.Thread(target=ask_it)
    asking.start()
    eventually(lambda: issuer.requests, 60, "the issuer to be asked")
    slow._conn.sock.shutdown(socket.SHUT_RDWR)  # pylint: disable=protected-access
    asking.join()


def test_a_slow_issuer_holds_up_nobody_else(ours, issuer):
    """One request waits; others are answered, and one that gave up does no harm."""
    issuer.delay.set()
    give_up_once_fetched(ours, issuer)
    assert issuer.requests == [DISCOVERY]
    for _ in range(20):
        assert ours.api.get("/api/v1/namespaces/default")
    issuer.delay.clear()
    eventually(lambda: whoami(ours, issuer.token(**GOOD))[0] == 201, 30, "the user")


def test_closing_while_keys_are_fetched(ours, issuer):
    issuer.delay.set()
    give_up_once_fetched(ours, issuer)
    ours.stop()
    issuer.delay.clear()


def test_documents_that_are_wrong(ours, issuer):
    """An issuer that says it is another, and answers without end."""
    good = issuer.token(**GOOD)
    issuer.answers[DISCOVERY] = (200, json.dumps({"issuer": "https://example.com",
                                                  "jwks_uri": issuer.url + "/keys"}).encode())
    try:
        assert whoami(ours, good) == (401, "Unauthorized")
        issuer.answers = {"/keys": (200, b"[" + b" " * (2 << 20))}
        eventually(lambda: "issuer did not match" in ours.process.tail(), 60, "the log")
        eventually(lambda: whoami(ours, good)[0] == 401 and "too large" in ours.process.tail(), 30,
                   "the large answer to be refused")
    finally:
        issuer.answers = {}
    eventually(lambda: whoami(ours, good)[0] == 201, 30, "the user")


def test_reviews_of_such_tokens(ours, upstream, issuer):
    """TokenReview knows them as well."""
    eventually(lambda: whoami(upstream, issuer.token(**GOOD))[0] == 201, 60, "upstream to know the issuer")
    for name, token in (("good", issuer.token(groups=["a"], **GOOD)), ("bad", issuer.token(aud="x", **GOOD))):
        answers = []
        for cluster in (ours, upstream):
            answer = cluster.api.post("/apis/authentication.k8s.io/v1/tokenreviews", {
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
            status = answer["status"]
            status.pop("audiences", None)  # they are called by their issuers
            status["error"] = bool(status.get("error"))  # words hold times
            answers.append(status)
        assert answers[0] == answers[1], name


CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def csr(directory, name, subject, signer, usages, **spec):
    """A signing request for a new key; returns (object, path of the key)."""
    key = os.path.join(directory, f"{name}.key")
    args = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-subj", subject]
    names = spec.pop("names", None)
    if names:
        args += ["-addext", "subjectAltName=" + names]
    pem = subprocess.run(args, capture_output=True, check=True).stdout
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64.b64encode(pem).decode(), "signerName": "kubernetes.io/" + signer,
                     "usages": usages, **spec}}, key


def approve(api, name, kind="Approved"):
    while True:  # a controller may approve it before us, or between our reading and writing
        made = api.get(f"{CSRS}/{name}")
        if kind in [c["type"] for c in made["status"].get("conditions", [])]:
            return 200, None, b""
        made["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "Test", "message": "so be it"}]}
        answer = api.raw("PUT", f"{CSRS}/{name}/approval", made)
        if answer[0] != 409:
            return answer


def certificate(api, name):
    """The certificate of an approved request, or the condition that says why there is none."""
    def done():
        status = api.get(f"{CSRS}/{name}").get("status", {})
        failed = [c for c in status.get("conditions", []) if c["type"] == "Failed"]
        return status.get("certificate") or failed
    return eventually(done, 30, f"an answer to {name}")


def sign_in(cluster, name):
    """A client with a certificate of the cluster, by the API's own way."""
    request, key = csr(cluster.dir, name, f"/CN={name}", "kube-apiserver-client",
                       ["client auth", "digital signature"])
    cluster.api.post(CSRS, request)
    assert approve(cluster.api, name)[0] == 200
    path = os.path.join(cluster.dir, f"{name}.crt")
    with open(path, "wb") as f:
        f.write(base64.b64decode(certificate(cluster.api, name)))
    config = os.path.join(cluster.dir, f"{name}.kubeconfig")
    return Api(derive_kubeconfig(config, cluster.kubeconfig, cert=path, key=key))


# --- anonymous -----------------------------------------------------------------------------------------

def test_anonymous_only_where_configured(ours, upstream):
    for path in ("/livez", "/readyz", "/healthz", "/livez/ping", "/version", "/api", "/api/v1/pods", "/livez/",
                 "/%6civez", "/nothing"):
        for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}, {"Authorization": "x"},
                        {"Authorization": "Bearer x"}, {"Impersonate-User": "a"}):
            answers = []
            for cluster in (ours, upstream):
                api = as_user(cluster, headers=headers)
                code, _, data = api.raw("GET", path)
                api.close()
                text = data.decode()
                answers.append((code, json.loads(text).get("message") if text[:1] == "{" else text[:20]))
            assert answers[0] == answers[1], f"{path} {headers}"


def test_nobody_at_all(tenant):
    vc = tenant("closed", {"authentication": {"anonymous": {"enabled": False}}}, on=False)
    api = as_user(vc)
    assert api.raw("GET", "/readyz")[0] == 401
    assert api.raw("GET", "/version")[0] == 401
    api.close()


def test_what_the_page_shows_is_taken(tenant):
    """docs/users.md."""
    with open(os.path.join(binaries.TREE, "docs", "users.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.M | re.S)
    shown = [yaml.safe_load(b) for b in blocks]
    assert [sorted(x["authentication"]) for x in shown] == [["jwt"], ["anonymous"]]
    vc = tenant("shown", {"authentication": {**shown[0]["authentication"], **shown[1]["authentication"]}}, on=False)
    api = as_user(vc)
    assert [api.raw("GET", p)[0] for p in ("/livez", "/readyz", "/version")] == [200, 200, 401]
    api.close()


def test_expressions_are_refused_at_start(tenant):
    vc = tenant("expressions", {"authentication": {"jwt": [{
        "issuer": {"url": "https://a.example", "audiences": ["a"]},
        "claimMappings": {"username": {"expression": "claims.sub"}}}]}}, on=False, start=False)
    r = subprocess.run(vc.process.argv, capture_output=True, text=True, check=False, env=vc.process.env)
    assert r.returncode == 2 and "authentication.jwt[0].claimMappings.username.expression: CEL" in r.stderr, r.stderr


def test_anonymous_by_default(tenant):
    vc = tenant("open", on=False)
    api = as_user(vc)
    assert api.raw("GET", "/readyz")[0] == 200
    assert api.raw("GET", "/version")[0] == 200
    assert api.raw("GET", "/api")[0] == 403
    api.close()


# --- reviews and their answers, side by side ---------------------------------------------------------------

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


def rule(verbs, groups=None, resources=None, names=None, urls=None):
    keys = {"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names,
            "nonResourceURLs": urls}
    return {k: v.split(",") if v != "" or k == "apiGroups" else [] for k, v in keys.items() if v is not None}


def role(name, *rules, cluster=True, **more):
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole" if cluster else "Role",
            "metadata": {"name": name, **more.pop("metadata", {})}, "rules": list(rules), **more}


def binding(name, ref, *subjects, cluster=True, ref_cluster=True):
    made = []
    for s in subjects:
        kind, _, who = s.partition(":")
        ns, _, account = who.rpartition("/")
        made.append({"kind": kind, "name": account, **({"namespace": ns} if ns else {"apiGroup": GROUP})})
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding" if cluster else "RoleBinding",
            "metadata": {"name": name}, "subjects": made,
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole" if ref_cluster else "Role", "name": ref}}


WORLD = [
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}}),
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "two"}}),
    (RBAC + "/clusterroles", role("reader", rule("get,list,watch", "", "pods,pods/log"))),
    (RBAC + "/clusterroles", role("named", rule("*", "", "configmaps", names="a,b"),
                                  rule("update,patch", "apps", "*/scale"))),
    (RBAC + "/clusterroles", role("urls", rule("get,post", urls="/metrics,/logs/*,/x*"))),
    (RBAC + "/clusterroles", role("odd", rule("get", "", "pods/,*/status,/"), rule("*", "*", "nodes"))),
    (RBAC + "/clusterroles", role("labelled", rule("list", "", "secrets"), metadata={"labels": {"agg": "yes"}})),
    (RBAC + "/clusterroles", role("gathered", aggregationRule={"clusterRoleSelectors": [
        {"matchLabels": {"agg": "yes"}}]})),
    (RBAC + "/namespaces/one/roles", role("local", rule("get,create", "", "secrets"), cluster=False)),
    (RBAC + "/clusterrolebindings", binding("reader", "reader", "User:ann")),
    (RBAC + "/clusterrolebindings", binding("named", "named", "User:ann", "Group:team")),
    (RBAC + "/clusterrolebindings", binding("urls", "urls", "User:ann", "Group:team")),
    (RBAC + "/clusterrolebindings", binding("odd", "odd", "User:odd")),
    (RBAC + "/clusterrolebindings", binding("missing", "nothing", "User:lost")),
    (RBAC + "/clusterrolebindings", binding("missing2", "nothing2", "User:lost")),
    (RBAC + "/clusterrolebindings", binding("gathered", "gathered", "User:gil")),
    (RBAC + "/namespaces/one/rolebindings", binding("local", "local", "User:bob", "ServiceAccount:one/app",
                                                    cluster=False, ref_cluster=False)),
    (RBAC + "/namespaces/one/rolebindings", binding("lost", "gone", "User:bob", cluster=False, ref_cluster=False)),
    (RBAC + "/namespaces/two/rolebindings", binding("reader", "reader", "User:bob", cluster=False)),
    (RBAC + "/clusterroles", role("granter", rule("create,update,bind", GROUP, "clusterroles,clusterrolebindings"),
                                  rule("create,update,patch", GROUP, "roles,rolebindings"),
                                  rule("get", "", "pods,configmaps"), rule("get", urls="/metrics"))),
    (RBAC + "/clusterroles", role("binder", rule("create", GROUP, "rolebindings"),
                                  rule("bind", GROUP, "clusterroles", names="reader"))),
    (RBAC + "/clusterrolebindings", binding("granter", "granter", "User:gus")),
    (RBAC + "/clusterrolebindings", binding("binder", "binder", "User:bea")),
    (RBAC + "/clusterroles", role("old-ways", rule("impersonate", "", "users,groups", names="ann,team,system:masters"),
                                  rule("impersonate", "", "serviceaccounts"),
                                  rule("impersonate", "authentication.k8s.io", "uids", names="7"),
                                  rule("impersonate", "authentication.k8s.io", "userextras/scopes", names="view"))),
    (RBAC + "/clusterrolebindings", binding("old-ways", "old-ways", "User:ivy")),
    (RBAC + "/clusterroles", role(
        "new-ways", rule("impersonate:user-info", "authentication.k8s.io", "users,groups", names="ann,team,system:masters"),
        rule("impersonate:user-info", "authentication.k8s.io", "uids,userextras/example.org/scopes"),
        rule("impersonate-on:user-info:list,impersonate-on:user-info:create", "*", "*"),
        rule("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts"),
        rule("impersonate-on:serviceaccount:create", "*", "*"),
        rule("impersonate:arbitrary-node", "authentication.k8s.io", "nodes", names="n1"),
        rule("impersonate-on:arbitrary-node:create", "*", "*"))),
    (RBAC + "/clusterrolebindings", binding("new-ways", "new-ways", "User:ned")),
]


@pytest.fixture(scope="module")
def module_tenant(workdir, authentication):
    from testenv.virtual import VirtualCluster
    made = VirtualCluster("auth-pair", os.path.join(workdir, "auth-pair"), None, None,
                          {"authentication": authentication}).start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pair(module_tenant, upstream):
    """(ours, upstream), with the same roles."""
    for cluster in (module_tenant, upstream):
        for path, body in WORLD:
            cluster.api.post(path, body)
        for ns in ("one", "two"):
            eventually(lambda: cluster.api.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default"), 60, "accounts")
        eventually(lambda: cluster.api.get(RBAC + "/clusterroles/gathered").get("rules"), 60, "aggregation")
        # Upstream's authorizer reads caches: the last of each kind has to be in them.
        may(cluster, "ned", "impersonate:serviceaccount", "serviceaccounts", group="authentication.k8s.io")
        may(cluster, "gil", "list", "secrets")
        may(cluster, "bob", "get", "secrets", namespace="one")
        may(cluster, "bob", "get", "pods", namespace="two")
    return module_tenant, upstream


def may(cluster, user, verb, what, **more):
    """Waits until a user may do it."""
    def allowed():
        return cluster.api.post(AUTHZ + "/subjectaccessreviews", sar(user=user, resourceAttributes=resource(
            verb, what, **more)))["status"]["allowed"]
    eventually(allowed, 60, f"{user} to be allowed to {verb} {what}")


VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generation")


CREDENTIAL = "authentication.kubernetes.io/credential-id"


def steady(text):
    """Upstream looks at bindings in an order of its own, and prints a review's metadata with times in it."""
    text = re.sub(r"\[(\w+role\.rbac[^]]*)\]", lambda m: f"[{sorted(m[1].split(', '))}]", text)
    text = re.sub(r'"system:(discovery|public-info-viewer)"', '"system:either"', text)
    return re.sub(r"Invalid value: \{.*\}: must be empty", "Invalid value: metadata: must be empty", text)


def plain(node):
    """Without what no two clusters share; lists of rules in one order."""
    if isinstance(node, list):
        return [plain(x) for x in node]
    if not isinstance(node, dict):
        return node
    out = {k: plain(v) for k, v in node.items()}
    for key in ("reason", "message", "evaluationError"):
        if isinstance(out.get(key), str):
            out[key] = steady(out[key])
    if CREDENTIAL in out:
        out[CREDENTIAL] = [x.split("=")[0] for x in out[CREDENTIAL]]
    if isinstance(out.get("metadata"), dict):
        out["metadata"] = {k: v for k, v in out["metadata"].items() if k not in VOLATILE}
    for key in ("resourceRules", "nonResourceRules"):
        if isinstance(out.get(key), list):
            out[key] = sorted(out[key], key=lambda r: json.dumps(r, sort_keys=True))
    return out


def ask(cluster, method, path, body=None, user=None, headers=None, query=None):
    """The answer to admin, or to a user that admin impersonates: (code, body)."""
    h = dict(headers or {})
    if user:
        h["Impersonate-User"] = user
    code, _, data = cluster.api.raw(method, path, body, query=query, headers=h, content_type=h.pop("Content-Type", None))
    text = data.decode()
    return code, plain(json.loads(text)) if text[:1] == "{" else text


def same(pair, *args, **kw):
    got, want = (ask(c, *args, **kw) for c in pair)
    return None if got == want else f"{args} {kw}\n  ours {got}\n  want {want}"


def all_same(differences):
    different = [d for d in differences if d]
    assert not different, "\n".join(different)


def sar(kind="SubjectAccessReview", **spec):
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


def resource(verb, what, group="", **more):
    plural, _, sub = what.partition("/")
    out = {"verb": verb, "group": group, "resource": plural, **more}
    return {**out, "subresource": sub} if sub else out


QUESTIONS = [
    resource("get", "pods"), resource("get", "pods", namespace="one"), resource("get", "pods/log", namespace="one"),
    resource("get", "pods/exec"), resource("delete", "pods"), resource("*", "pods"), resource("get", "*"),
    resource("get", "pods", group="*"), resource("get", "pods", group="apps"), resource("get", "configmaps"),
    resource("get", "configmaps", name="a"), resource("get", "configmaps", name="c"),
    resource("create", "configmaps", name="a"), resource("create", "configmaps"), resource("list", "configmaps"),
    resource("list", "configmaps", name="b"), resource("deletecollection", "configmaps"),
    resource("update", "deployments/scale", group="apps"), resource("update", "deployments", group="apps"),
    resource("update", "*/scale", group="apps"), resource("get", "secrets", namespace="one"),
    resource("create", "secrets", namespace="one"), resource("get", "secrets", namespace="two"),
    resource("list", "secrets"), resource("get", "nodes", group="x"), resource("get", "pods/status"),
    resource("get", ""), {"namespace": "one", "verb": "get"}, {},
    {"verb": "update", "group": "apps", "resource": "*/scale"}, {"verb": "get", "group": "", "resource": "pods/log"},
]
URLS = [{"verb": v, "path": p} for v in ("get", "post", "put", "*") for p in (
    "/metrics", "/metrics/", "/logs", "/logs/", "/logs/a/b", "/x", "/xyz", "/healthz", "/version", "/api", "*", "")]
USERS = [{"user": "ann"}, {"user": "bob"}, {"user": "gil"}, {"user": "odd"}, {"user": "lost"}, {"user": "nobody"},
         {"groups": ["team"]}, {"user": "x", "groups": ["system:masters"]}, {"user": "x", "groups": ["system:authenticated"]},
         {"user": "system:serviceaccount:one:app"}, {"user": "system:anonymous", "groups": ["system:unauthenticated"]},
         {"user": "ann", "uid": "1", "extra": {"a": ["b"]}}]


@pytest.mark.parametrize("who", USERS, ids=lambda u: "+".join([u.get("user", "")] + u.get("groups", [])))
def test_access_reviews(pair, who):
    path = AUTHZ + "/subjectaccessreviews"
    all_same([same(pair, "POST", path, sar(resourceAttributes=q, **who)) for q in QUESTIONS])
    all_same([same(pair, "POST", path, sar(nonResourceAttributes=q, **who)) for q in URLS])


SELECTORS = [
    {"rawSelector": "metadata.name=x"}, {"rawSelector": "a=b,c!=d"}, {"rawSelector": "x in (a"}, {"rawSelector": ""},
    {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
    {"requirements": [{"key": "a", "operator": "In", "values": []}]},
    {"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
    {"requirements": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
    {"requirements": [{"key": "a", "operator": "Exists"}]},
    {"requirements": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
    {"requirements": [{"key": "", "operator": "In", "values": ["b"]}]},
    {"requirements": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
    {"requirements": [{"key": "a", "operator": ""}]},
    {"requirements": [{"key": "!", "operator": "In", "values": ["b"]}]},
    {"requirements": []}, {},
    {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
]


def test_access_reviews_with_selectors(pair):
    path = AUTHZ + "/subjectaccessreviews"
    all_same([same(pair, "POST", path, sar(user="ann", resourceAttributes=resource("list", "pods", **{kind: s})))
              for s in SELECTORS for kind in ("fieldSelector", "labelSelector")])


def test_malformed_reviews(pair):
    bodies = [
        sar(), sar(user="ann"), sar(resourceAttributes=QUESTIONS[0]),
        sar(user="ann", resourceAttributes=QUESTIONS[0], nonResourceAttributes=URLS[0]),
        {**sar(user="ann", resourceAttributes=QUESTIONS[0]), "metadata": {"name": "x"}},
        {**sar(user="ann", resourceAttributes=QUESTIONS[0]), "metadata": {"namespace": "x"}},
        {**sar(user="ann", resourceAttributes=QUESTIONS[0]), "metadata": {"labels": {"a": "b"}}},
        {**sar(user="ann", resourceAttributes=QUESTIONS[0]), "status": {"allowed": True, "reason": "x"}},
        sar(user="ann", groups=["", "a"], resourceAttributes=QUESTIONS[0]),
    ]
    all_same([same(pair, "POST", AUTHZ + "/subjectaccessreviews", b) for b in bodies])
    local = "/namespaces/one/localsubjectaccessreviews"
    kind = "LocalSubjectAccessReview"
    bodies = [
        sar(kind, user="bob", resourceAttributes=resource("get", "secrets", namespace="one")),
        sar(kind, user="bob", resourceAttributes=resource("get", "secrets", namespace="two")),
        sar(kind, user="bob", resourceAttributes=resource("get", "secrets")),
        sar(kind, user="bob", nonResourceAttributes=URLS[0]), sar(kind, user="bob"), sar(kind),
        {**sar(kind, user="bob", resourceAttributes=resource("get", "secrets", namespace="one")),
         "metadata": {"namespace": "two"}},
        {**sar(kind, user="bob", resourceAttributes=resource("get", "secrets", namespace="one")),
         "metadata": {"namespace": "one"}},
    ]
    all_same([same(pair, "POST", AUTHZ + local, b) for b in bodies])
    kind = "SelfSubjectAccessReview"
    bodies = [sar(kind), sar(kind, resourceAttributes=QUESTIONS[0], nonResourceAttributes=URLS[0])]
    bodies += [sar(kind, resourceAttributes=q) for q in QUESTIONS[:8]] + [sar(kind, nonResourceAttributes=q) for q in URLS[:8]]
    all_same([same(pair, "POST", AUTHZ + "/selfsubjectaccessreviews", b, user=u) for b in bodies for u in ("ann", "lost")])


@pytest.mark.parametrize("user", ["ann", "bob", "gil", "odd", "lost", "nobody", "system:serviceaccount:one:app",
                                  "system:admin", None])
def test_rules_reviews(pair, user):
    for ns in ("one", "two", "none", ""):
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": ns}}
        all_same([same(pair, "POST", AUTHZ + "/selfsubjectrulesreviews", body, user=user)])
    all_same([same(pair, "POST", AUTHZ + "/selfsubjectrulesreviews",
                   {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}, user=user)])


REQUESTS = [  # what a user may do, by doing it
    ("ann", "GET", "/api/v1/pods"), ("ann", "GET", "/api/v1/namespaces/one/pods/x"),
    ("ann", "GET", "/api/v1/namespaces/one/configmaps"),
    ("ann", "GET", "/api/v1/namespaces/one/configmaps?fieldSelector=metadata.name%3Da"),
    ("ann", "GET", "/api/v1/namespaces/one/configmaps?fieldSelector=metadata.name%3Dc"),
    ("ann", "GET", "/api/v1/namespaces/one/configmaps?fieldSelector=metadata.name!%3Da"),
    ("ann", "DELETE", "/api/v1/namespaces/one/configmaps?fieldSelector=metadata.name%3Da"),
    ("ann", "DELETE", "/api/v1/namespaces/one/configmaps"), ("ann", "GET", "/api/v1/namespaces/one/configmaps/a"),
    ("ann", "GET", "/api/v1/namespaces/one/configmaps/c"), ("ann", "DELETE", "/api/v1/namespaces/one/configmaps/b"),
    ("ann", "GET", "/logs/x"), ("ann", "GET", "/xy"), ("ann", "PUT", "/xy"), ("ann", "GET", "/apis"),
    ("ann", "GET", "/apis/nothing.example.com/v1/things"), ("ann", "GET", "/apis/apps/v1/deployments"),
    ("lost", "GET", "/api/v1/pods"), ("lost", "GET", "/api/v1/namespaces/one/pods"), ("lost", "GET", "/nothing"),
    ("bob", "GET", "/api/v1/namespaces/one/secrets/x"), ("bob", "GET", "/api/v1/namespaces/one/pods"),
    ("bob", "GET", "/api/v1/namespaces/two/pods"), ("bob", "GET", "/api/v1/namespaces/one"),
    ("bob", "PATCH", "/api/v1/namespaces/one/secrets/x"), ("bob", "GET", "/api/v1/watch/namespaces/one/pods"),
    ("system:serviceaccount:one:app", "GET", "/api/v1/namespaces/one/secrets/x"),
    ("system:anonymous", "GET", "/apis"), ("system:anonymous", "GET", "/api/v1/pods"),
]


def test_requests_of_users(pair):
    all_same([same(pair, method, path, {} if method in ("PUT", "PATCH") else None, user=user)
              for user, method, path in REQUESTS])


GRANTS = [
    ("gus", "/clusterroles", role("g1", rule("get", "", "pods"))),
    ("gus", "/clusterroles", role("g2", rule("get,list", "", "pods"), rule("get", "", "secrets", names="x"),
                                  rule("get", urls="/metrics,/logs"))),
    ("gus", "/clusterroles", role("g3", rule("*", "*", "*"))),
    ("gus", "/clusterroles", role("g4", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})),
    ("gus", "/namespaces/one/roles", role("g5", rule("get", "", "configmaps", names="z"), cluster=False)),
    ("gus", "/namespaces/one/roles", role("g6", rule("delete", "", "configmaps"), cluster=False)),
    ("gus", "/clusterrolebindings", binding("g7", "cluster-admin", "User:gus")),
    ("gus", "/namespaces/one/rolebindings", binding("g8", "reader", "User:gus", cluster=False)),
    ("gus", "/namespaces/one/rolebindings", binding("g9", "absent", "User:gus", cluster=False, ref_cluster=False)),
    ("gus", "/namespaces/one/rolebindings", binding("g10", "local", "User:gus", cluster=False, ref_cluster=False)),
    ("bea", "/namespaces/one/rolebindings", binding("b1", "reader", "User:bea", cluster=False)),
    ("bea", "/namespaces/one/rolebindings", binding("b2", "named", "User:bea", cluster=False)),
    ("bea", "/namespaces/one/rolebindings", binding("b3", "absent", "User:bea", cluster=False)),
    ("bea", "/clusterrolebindings", binding("b4", "reader", "User:bea")),
    ("nobody", "/clusterroles", role("n1")),
]


def test_nobody_grants_what_they_do_not_hold(pair):
    all_same([same(pair, "POST", RBAC + path, body, user=user) for user, path, body in GRANTS])
    all_same([same(pair, "PATCH", RBAC + "/clusterroles/g1", user="gus", headers=MERGE, body={"rules": [rule("*", "", "pods")]})])


MERGE = {"Content-Type": "application/merge-patch+json"}
CHANGES = [  # eve may change roles and bindings, and holds nothing herself
    ("/clusterroles/gathered", {"metadata": {"labels": {"a": "b"}}}), ("/clusterroles/gathered", {"aggregationRule": None}),
    ("/clusterroles/reader", {"metadata": {"labels": {"agg": "yes"}}}), ("/clusterroles/reader", {"metadata": {"finalizers": ["a.b/c"]}}),
    ("/clusterroles/reader", {"metadata": {"finalizers": None}}), ("/clusterroles/reader", {}),
    ("/clusterroles/reader", {"metadata": {"annotations": {"a": "b"}}}), ("/clusterroles/named-x", {"rules": [rule("get", "", "secrets")]}),
    ("/clusterrolebindings/reader", {"metadata": {"labels": {"a": "b"}}}), ("/clusterrolebindings/reader", {"subjects": []}),
    ("/clusterrolebindings/missing", {"metadata": {"labels": {"a": "b"}}}), ("/clusterrolebindings/reader", {"roleRef": {"name": "other"}}),
]


def test_a_label_may_be_a_grant(pair):
    """What is not the garbage collector's counts: a label puts a role's rules into another. `escalate` by name is of the path's."""
    for cluster in pair:
        cluster.api.post(RBAC + "/clusterroles", role(
            "changer", rule("create,update,patch", GROUP, "clusterroles,clusterrolebindings"),
            rule("escalate", GROUP, "clusterroles", names="named-x")))
        cluster.api.post(RBAC + "/clusterrolebindings", binding("changer", "changer", "User:eve"))
        may(cluster, "eve", "patch", "clusterroles", group=GROUP)
    named = role("named-x", rule("get", "", "secrets"))
    all_same([same(pair, "PATCH", RBAC + path, body, user="eve", headers=MERGE) for path, body in CHANGES]
             + [same(pair, "POST", RBAC + "/clusterroles", named, user="eve"),
                same(pair, "POST", RBAC + "/clusterroles", role("odd", rule("get", "a\"b", "<>&,\1")), user="eve"),
                same(pair, "PATCH", RBAC + "/clusterroles/named-x", named, user="eve", query={"fieldManager": "x"},
                     headers={"Content-Type": "application/apply-patch+yaml"}),
                same(pair, "PATCH", RBAC + "/clusterrolebindings/reader", {"roleRef": {"name": "other"}}, headers=MERGE)])
    assert ask(pair[0], "PATCH", RBAC + CHANGES[0][0], CHANGES[0][1], user="eve", headers=MERGE)[0] == 403


ACTS = [  # who, and whom they act for
    ("ivy", {"Impersonate-User": "ann"}), ("ivy", {"Impersonate-User": "bob"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Group": "team"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Group": "other"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Uid": "7"}), ("ivy", {"Impersonate-User": "ann", "Impersonate-Uid": "8"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Extra-Scopes": "view"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Extra-Scopes": "edit"}),
    ("ivy", {"Impersonate-User": "ann", "Impersonate-Extra-Example.org%2Fscopes": "view"}),
    ("ivy", {"Impersonate-User": "system:serviceaccount:one:app"}), ("ivy", {"Impersonate-User": "system:serviceaccount:one"}),
    ("ivy", {"Impersonate-User": "system:serviceaccount:One:app"}), ("ivy", {"Impersonate-User": "system:node:n1"}),
    ("ivy", {"Impersonate-Group": "team"}), ("ivy", {"Impersonate-Uid": "7"}), ("ivy", {"Impersonate-Extra-A": "b"}),
    ("ivy", {"Impersonate-User": ""}), ("ivy", {"Impersonate-Other": "x"}),
    ("ned", {"Impersonate-User": "ann"}), ("ned", {"Impersonate-User": "bob"}),
    ("ned", {"Impersonate-User": "ann", "Impersonate-Group": "team"}),
    ("ned", {"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}),
    ("ned", {"Impersonate-User": "ann", "Impersonate-Uid": "7"}),
    ("ned", {"Impersonate-User": "ann", "Impersonate-Extra-Example.org%2Fscopes": "view"}),
    ("ned", {"Impersonate-User": "ann", "Impersonate-Extra-Scopes": "view"}),
    ("ned", {"Impersonate-User": "system:serviceaccount:one:app"}),
    ("ned", {"Impersonate-User": "system:serviceaccount:one:app", "Impersonate-Group": "team"}),
    ("ned", {"Impersonate-User": "system:node:n1"}), ("ned", {"Impersonate-User": "system:node:n2"}),
    ("ned", {"Impersonate-User": "system:anonymous"}), ("nobody", {"Impersonate-User": "ann"}),
    ("nobody", {"Impersonate-User": 'a"b\\c'}), ("ivy", {"Impersonate-User": 'a"b\\c'}),
    ("ivy", {"Impersonate-Extra-B": "2", "Impersonate-Extra-A": "1"}),
]


@pytest.fixture(scope="module")
def people(pair):
    """Clients with certificates of their own, on both servers: admin acting for them would be another case."""
    made = {}
    for name in ("ivy", "ned", "nobody"):
        made[name] = [sign_in(cluster, name) for cluster in pair]
    yield made
    for apis in made.values():
        for api in apis:
            api.close()


def acts_that_differ(people):
    different = []
    for who, headers in ACTS:
        for method, path, body in (("POST", WHOAMI, REVIEW), ("GET", "/api/v1/namespaces/one/pods", None)):
            answers = []
            for api in people[who]:
                code, _, data = api.raw(method, path, body, headers=headers)
                answers.append((code, plain(json.loads(data))))
            if method == "GET" and answers[0][0] == answers[1][0] == 200:
                continue
            if answers[0] != answers[1]:
                different.append(f"{who} {headers} {method}\n  ours {answers[0]}\n  want {answers[1]}")
    return different


def test_acting_for_others(people):
    """kube-apiserver remembers for a while which mode served a user last, and a refusal is in the words of a mode: what
    it forgot in the middle of the acts is no difference."""
    different = acts_that_differ(people)
    if different and all("'code': 403" in d and " forbidden: " in d for d in different):
        different = acts_that_differ(people)
    all_same(different)


def test_many_groups(pair):
    """Directories put people into hundreds; whoever acts for them passes all on."""
    for api in (c.api for c in pair):
        names = [f"team-{i}" for i in range(300)]
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        body = json.dumps(REVIEW)
        conn = http.client.HTTPSConnection(api.server.hostname, api.server.port, context=api.tls)
        conn.putrequest("POST", path)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Impersonate-User", "ann")]:
            conn.putheader(name, value)
        for i, name in enumerate(names):
            conn.putheader("Impersonate-Group", name)
            conn.putheader("Impersonate-Extra-Scopes", str(i))
        conn.endheaders(body.encode())
        user = json.loads(conn.getresponse().read())["status"]["userInfo"]
        conn.close()
        assert user["groups"] == names + ["system:authenticated"] and len(user["extra"]["scopes"]) == 300


def protocols(token, *more):
    return ", ".join(["base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("="), *more])


UPGRADE = {"Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


def test_tokens_of_browsers(pair):
    """A WebSocket's token stands among its subprotocols, and nowhere else."""
    tokens = [c.api.create_service_account("two", "browser") for c in pair]
    different = []
    for headers, of in ((UPGRADE, lambda t: protocols(t, "v4.channel.k8s.io")), (UPGRADE, protocols), ({}, lambda t: protocols(t, "x")),
                        (UPGRADE, lambda t: "x, " + protocols(t) + ", " + protocols(t)), (UPGRADE, lambda t: protocols("abc", "x")),
                        (UPGRADE, lambda t: protocols("", "x")), (UPGRADE, lambda t: "x, base64url.bearer.authorization.k8s.io.%")):
        answers = []
        for cluster, token in zip(pair, tokens):
            api = as_user(cluster, headers={**headers, "Sec-WebSocket-Protocol": of(token)})
            code, _, data = api.raw("GET", "/api/v1/namespaces/two/pods/none/exec?command=x&stdout=1")
            api.close()
            answers.append((code, json.loads(data)["message"]))
        if answers[0] != answers[1]:
            different.append(f"{of('T')} {headers}\n  ours {answers[0]}\n  want {answers[1]}")
    all_same(different)
    assert 'User "system:serviceaccount:two:browser"' in browser_asks(pair[0], tokens[0])


def browser_asks(cluster, token):
    api = as_user(cluster, headers={**UPGRADE, "Sec-WebSocket-Protocol": protocols(token, "v4.channel.k8s.io")})
    try:
        return json.loads(api.raw("GET", "/api/v1/namespaces/two/pods/none/exec?command=x&stdout=1")[2])["message"]
    finally:
        api.close()


# --- tokens of service accounts ------------------------------------------------------------------------------

def token_request(**spec):
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def bound(kind, name, version="v1", **more):
    return {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, **more}}


def claims_of(token):
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def shape(node):
    """Of claims: uids, ids and times are another's."""
    if isinstance(node, dict):
        return {k: type(v).__name__ if k in ("uid", "jti", "iat", "exp", "nbf", "iss", "warnafter") else shape(v)
                for k, v in node.items()}
    return node


@pytest.fixture(scope="module")
def bound_objects(pair):
    """An account, a pod on a node that exists and one on a node that does not, a Secret, a node."""
    for cluster in pair:
        base = "/api/v1/namespaces/two"
        cluster.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        for name in ("app", "other"):
            cluster.api.post(base + "/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount",
                                                         "metadata": {"name": name}})
        for pod, node in (("here", "n1"), ("away", "n9"), ("nowhere", None)):
            spec = {"serviceAccountName": "app", "containers": [{"name": "c", "image": "i"}]}
            cluster.api.post(base + "/pods", {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
                "spec": {**spec, **({"nodeName": node} if node else {})}})
        cluster.api.post(base + "/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    return pair


TOKEN_PATH = "/api/v1/namespaces/two/serviceaccounts/app/token"
TOKEN_REQUESTS = [
    {}, {"audiences": ["a", "b"]}, {"audiences": []}, {"audiences": [""]}, {"expirationSeconds": 600}, {"expirationSeconds": 599},
    {"expirationSeconds": 0}, {"expirationSeconds": -1}, {"expirationSeconds": 1 << 32}, {"expirationSeconds": (1 << 32) + 1},
    {"expirationSeconds": 3607},
    {"expirationSeconds": 3607, "audiences": ["x"], **bound("Pod", "here")},
    bound("Pod", "here"), bound("Pod", "away"), bound("Pod", "nowhere"), bound("Pod", "absent"), bound("Pod", "here", uid="x"),
    bound("Secret", "s"), bound("Secret", "absent"), bound("Node", "n1"), bound("Node", "n9"), bound("Node", "n1", uid="x"),
    bound("ConfigMap", "x"), bound("Pod", "here", version="apps/v1"), bound("Pod", "here", version=""), {"boundObjectRef": {}},
    {"boundObjectRef": None},
]


def test_token_requests(bound_objects):
    different = []
    for spec in TOKEN_REQUESTS:
        answers = []
        for cluster in bound_objects:
            body = json.loads(json.dumps(token_request(**spec)))
            code, headers, data = cluster.api.raw("POST", TOKEN_PATH, body)
            answer = json.loads(data)
            if code == 201:
                claims = claims_of(answer["status"].pop("token"))
                life = claims["exp"] - claims["iat"], claims.get("kubernetes.io", {}).get("warnafter", claims["iat"]) - claims["iat"]
                own = claims["iss"]
                text = json.dumps([shape(claims), plain(answer), life]).replace(own, "ISSUER")
                answer = json.loads(text)
                answer[1]["status"].pop("expirationTimestamp")
            answers.append((code, answer, headers.get("Warning")))
        if answers[0] != answers[1]:
            different.append(f"{spec}\n  ours {answers[0]}\n  want {answers[1]}")
    bodies = [
        ("/api/v1/namespaces/two/serviceaccounts/absent/token", token_request()),
        (TOKEN_PATH, {**token_request(), "metadata": {"name": "other"}}),
        (TOKEN_PATH, {**token_request(), "metadata": {"namespace": "one"}}),
        (TOKEN_PATH, {**token_request(), "metadata": {"uid": "x"}}),
        (TOKEN_PATH, {"apiVersion": "v1", "kind": "ConfigMap"}),
    ]
    for path, body in bodies:
        got, want = (ask(c, "POST", path, body) for c in bound_objects)
        for answer in (got, want):
            if answer[0] == 201:
                answer[1].pop("status"), answer[1].pop("spec")
            else:
                answer[1]["message"] = answer[1]["message"].split(" (")[0]
        if got != want:
            different.append(f"{path} {body}\n  ours {got}\n  want {want}")
    all_same(different)


def new_token(cluster, spec):
    answer = cluster.api.post(TOKEN_PATH, token_request(**spec))
    return answer["status"]["token"]


def reviewed(cluster, token, audiences):
    """The status of a TokenReview; ids and issuers are their own."""
    spec = {"token": token, **({"audiences": audiences} if audiences is not None else {})}
    code, _, data = cluster.api.raw("POST", AUTHN + "/tokenreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec})
    answer = json.loads(data)
    if code != 201:
        return code, answer.get("message")
    status = shape(answer["status"])
    extra = status.get("user", {}).get("extra", {})
    for key in extra:
        if key.endswith("-uid") or key.endswith("credential-id"):
            extra[key] = extra[key][0].split("=")[0] if "=" in extra[key][0] else "uid"
    text = json.dumps(status)
    for issuer in ("https://kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc"):
        text = text.replace(issuer, "ISSUER")
    return code, json.loads(text)


def test_token_reviews(bound_objects):
    different = []
    for spec in ({}, {"audiences": ["a", "b"]}, bound("Pod", "here"), bound("Pod", "away"), bound("Secret", "s"), bound("Node", "n1")):
        for audiences in (None, [], ["a"], ["b", "a"], ["z"]):
            got, want = (reviewed(c, new_token(c, spec), audiences) for c in bound_objects)
            if got != want:
                different.append(f"{spec} {audiences}\n  ours {got}\n  want {want}")
    for end in ("\n", " ", " x"):
        got, want = (reviewed(c, new_token(c, {}) + end, None) for c in bound_objects)
        if got != want:
            different.append(f"then {end!r}\n  ours {got}\n  want {want}")
    for token in ("x", "a.b.c", "", "eyJhbGciOiJub25lIn0.e30."):
        got, want = (reviewed(c, token, None) for c in bound_objects)
        if got != want:
            different.append(f"{token}\n  ours {got}\n  want {want}")
    all_same(different)


def test_a_review_says_where_the_pod_is(bound_objects):
    """A pod's token is made before the pod has a node; upstream's kubelet asks for one later, and its claims have the node."""
    ours, _ = bound_objects
    token = new_token(ours, bound("Pod", "nowhere"))
    extra = "authentication.kubernetes.io/node-"

    def node_of(user):
        return [user["extra"].get(extra + key) for key in ("name", "uid")]

    def review():
        return ours.api.post(AUTHN + "/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                                                       "spec": {"token": token}})["status"]["user"]
    assert node_of(review()) == [None, None]
    ours.api.post("/api/v1/namespaces/two/pods/nowhere/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "nowhere"}, "target": {"kind": "Node", "name": "n1"}})
    uid = ours.api.get("/api/v1/nodes/n1")["metadata"]["uid"]
    assert node_of(review()) == [["n1"], [uid]]
    assert node_of(whoami(ours, token)[1]) == [["n1"], [uid]]


def test_nothing_new_where_all_goes(pair):
    """A token, an eviction or a binding is a thing created, too: not in a namespace that is terminating or missing."""
    finalizers = {"finalizers": ["example.org/held"]}
    for cluster in pair:
        api = cluster.api
        api.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
        eventually(lambda: api.get("/api/v1/namespaces/going/serviceaccounts/default"), 60, "its account")
        api.post("/api/v1/namespaces/going/serviceaccounts", {"metadata": {"name": "held", **finalizers}})
        api.post("/api/v1/namespaces/going/pods", {"metadata": {"name": "p", **finalizers}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        api.request("DELETE", "/api/v1/namespaces/going")
    review = sar("LocalSubjectAccessReview", user="ann", resourceAttributes={"verb": "get", "resource": "pods", "namespace": "going"})
    try:
        all_same([same(pair, "POST", f"/api/v1/namespaces/{ns}/{path}", body) for ns in ("going", "nowhere") for path, body in (
            ("serviceaccounts/held/token", token_request()), ("serviceaccounts/none/token", token_request()),
            ("pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
            ("pods/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}))]
            + [same(pair, "POST", AUTHZ + "/namespaces/going/localsubjectaccessreviews", review)])
    finally:
        for cluster in pair:
            for path in ("serviceaccounts/held", "pods/p"):
                ask(cluster, "PATCH", f"/api/v1/namespaces/going/{path}", {"metadata": {"finalizers": None}}, headers=MERGE)


def test_tokens_end_with_what_they_are_bound_to(bound_objects):
    base = "/api/v1/namespaces/two"
    for path, body, ref in (
            ("/secrets", {"kind": "Secret"}, ("Secret", "brief")),
            ("/pods", {"kind": "Pod", "spec": {"serviceAccountName": "app", "containers": [{"name": "c", "image": "i"}]}},
             ("Pod", "brief"))):
        answers = []
        for cluster in bound_objects:
            cluster.api.post(base + path, {"apiVersion": "v1", "metadata": {"name": "brief"}, **body})
            token = new_token(cluster, bound(*ref))
            before = reviewed(cluster, token, None)[1].get("authenticated")
            cluster.api.delete(f"{base}{path}/brief", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
            cluster.api.post(base + path, {"apiVersion": "v1", "metadata": {"name": "brief"}, **body})
            again = reviewed(cluster, token, None)[1].get("error")
            cluster.api.delete(f"{base}{path}/brief", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
            answers.append((before, again, reviewed(cluster, token, None), whoami(cluster, token)[0]))
        # Upstream remembers a good token for ten seconds: what comes after is ours alone.
        assert answers[0][0] is answers[1][0] is True
        kind = ref[0].lower()
        assert re.fullmatch(rf"\[invalid bearer token, {kind} UID \(\S+\) does not match service account {kind} ref "
                            r"claim \(\S+\)\]", answers[0][1])
        assert answers[0][2][1]["error"] == "[invalid bearer token, service account token has been invalidated]"
        assert answers[0][3] == 401


def test_discovery_of_the_issuer(pair):
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        answers = []
        for cluster in pair:
            code, headers, data = cluster.api.raw("GET", path)
            body = json.loads(data)
            if "keys" in body:
                body = [sorted(set(k) - {"x", "y", "n", "e"}) for k in body["keys"]]
            else:
                body = sorted(body)
            answers.append((code, headers["Content-Type"], headers["Cache-Control"], body))
        assert answers[0] == answers[1], path
        assert [ask(c, "GET", path, user="ann")[0] for c in pair] == [403, 403]
        assert [ask(c, "GET", path, user="ann", headers={"Impersonate-Group": "system:serviceaccounts"})[0]
                for c in pair] == [200, 200]


# --- signing requests --------------------------------------------------------------------------------------------

NODE = "/O=system:nodes/CN=system:node:n1"
REQUESTED = [  # subject, signer, usages, more
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth"], {}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth", "digital signature", "key encipherment"], {"expirationSeconds": 600}),
    ("/O=team/CN=a", "kube-apiserver-client", ["digital signature"], {}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth", "server auth"], {}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth", "no such usage"], {}),
    ("/O=team/CN=a", "kube-apiserver-client", [], {}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth", "client auth"], {}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth"], {"expirationSeconds": 599}),
    ("/O=team/CN=a", "kube-apiserver-client", ["client auth"], {"expirationSeconds": 1 << 31}),
    ("/O=team/CN=a", "legacy-unknown", ["client auth"], {}),
    ("/O=team/CN=a", "nobody-knows", ["client auth"], {}),
    ("/O=system:masters/CN=a", "kube-apiserver-client", ["client auth"], {}),
    (NODE, "kube-apiserver-client-kubelet", ["client auth", "digital signature"], {}),
    (NODE, "kube-apiserver-client-kubelet", ["client auth"], {}),
    (NODE, "kube-apiserver-client-kubelet", ["client auth", "digital signature"], {"names": "DNS:a"}),
    ("/O=team/CN=system:node:n1", "kube-apiserver-client-kubelet", ["client auth", "digital signature"], {}),
    ("/O=system:nodes/CN=n1", "kube-apiserver-client-kubelet", ["client auth", "digital signature"], {}),
    (NODE, "kubelet-serving", ["server auth", "digital signature"], {"names": "DNS:n1,IP:10.0.0.1"}),
    (NODE, "kubelet-serving", ["server auth", "digital signature"], {}),
    (NODE, "kubelet-serving", ["server auth", "digital signature"], {"names": "DNS:n1,email:a@b"}),
    (NODE, "kubelet-serving", ["server auth", "client auth", "digital signature"], {"names": "DNS:n1"}),
]


def described(pem):
    """What a certificate says of itself, times relative."""
    text = subprocess.run(["openssl", "x509", "-noout", "-subject", "-ext",
                           "keyUsage,extendedKeyUsage,basicConstraints,subjectAltName", "-dates"],
                          input=pem, capture_output=True, check=True).stdout.decode()
    lines = [x.strip() for x in text.splitlines()]
    dates = {x.partition("=")[0]: x.partition("=")[2] for x in lines if x.startswith("not")}
    parse = [time.mktime(time.strptime(dates[k], "%b %d %H:%M:%S %Y GMT")) for k in ("notBefore", "notAfter")]
    return [x for x in lines if not x.startswith("not")], round((parse[1] - parse[0]) / 10)


def test_signing_requests(pair):
    different = []
    for i, (subject, signer, usages, more) in enumerate(REQUESTED):
        name = f"req-{i}"
        body, _ = csr(pair[0].dir, name, subject, signer, usages, **dict(more))
        answers = []
        for cluster in pair:
            code, made = ask(cluster, "POST", CSRS, body)
            if code != 201:
                answers.append((code, made.get("message"), made.get("details", {}).get("causes")))
                continue
            made["spec"].pop("extra", None), made["spec"].pop("uid", None)
            approved = approve(cluster.api, name)[0]
            if "legacy-unknown" == signer or "nobody" in signer:
                answers.append((code, made, approved))
                continue
            signed = certificate(cluster.api, name)
            if isinstance(signed, str):
                lines, life = described(base64.b64decode(signed))
                signed = lines, life if "expirationSeconds" in more else None  # else it ends with its CA
            else:
                signed = [(c["reason"], c["message"]) for c in signed]
            answers.append((code, made, approved, signed))
        if answers[0] != answers[1]:
            different.append(f"{subject} {signer} {usages} {more}\n  ours {answers[0]}\n  want {answers[1]}")
    all_same(different)


def test_a_request_proves_its_key(pair):
    """Whoever signs it: a signer of one's own relies on the API for it. Causes are in other words here and there."""
    for signer in ("kube-apiserver-client", "../example.com/own"):
        body, _ = csr(pair[0].dir, "proof", "/O=a/CN=b/CN=c", signer, ["client auth"])
        body["spec"]["signerName"] = body["spec"]["signerName"].replace("kubernetes.io/../", "")
        lines = base64.b64decode(body["spec"]["request"]).decode().split("\n")
        der = base64.b64decode("".join(lines[1:-2]))
        for bad in (der[:-3] + bytes([der[-3] ^ 1]) + der[-2:], der[:-5], b"xx", b""):
            pem = "\n".join(lines[:1] + [base64.b64encode(bad).decode(), lines[-2], ""])
            wrong = {**body, "spec": {**body["spec"], "request": base64.b64encode(pem.encode()).decode()}}
            answers = [ask(c, "POST", CSRS, wrong) for c in pair]
            found = [(code, [(x["reason"], x["field"]) for x in (got.get("details") or {}).get("causes") or [{}]]) for code, got in answers]
            assert found[0] == found[1] == (422, [("FieldValueInvalid", "spec.request")]), (signer, bad, answers)
        assert [ask(c, "POST", CSRS, body)[0] for c in pair] == [201, 201]
        for c in pair:
            c.api.request("DELETE", CSRS + "/proof")


def test_approval(pair):
    """Who may approve, what approval may say, and what it may not change."""
    body, _ = csr(pair[0].dir, "appr", "/CN=a", "kube-apiserver-client", ["client auth"])
    for cluster in pair:
        cluster.api.post(CSRS, body)
        cluster.api.post(RBAC + "/clusterroles", role(
            "approver", rule("get", "certificates.k8s.io", "certificatesigningrequests"),
            rule("update", "certificates.k8s.io", "certificatesigningrequests/approval")))
        cluster.api.post(RBAC + "/clusterrolebindings", binding("approver", "approver", "User:ann"))
        may(cluster, "ann", "update", "certificatesigningrequests/approval", group="certificates.k8s.io")
    path = CSRS + "/appr/approval"

    def put(conditions, user=None, **spec):
        answers = []
        for cluster in pair:
            made = cluster.api.get(CSRS + "/appr")
            made["status"] = {"conditions": conditions}
            made["spec"].update(spec)
            code, answer = ask(cluster, "PUT", path, made, user=user)
            answer.get("spec", {}).pop("extra", None)
            for c in answer.get("status", {}).get("conditions", []) if isinstance(answer.get("status"), dict) else []:
                c.pop("lastUpdateTime", None), c.pop("lastTransitionTime", None)
            answers.append((code, answer))
        return None if answers[0] == answers[1] else f"{conditions} {user} {spec}\n  ours {answers[0]}\n  want {answers[1]}"

    yes = {"type": "Approved", "status": "True", "reason": "R", "message": "M"}
    no = {"type": "Denied", "status": "True"}
    all_same([put([yes], user="ann"), put([yes], user="bob"), put([{**yes, "status": "False"}]), put([{**yes, "status": "X"}]),
              put([{"type": "Odd", "status": "X"}]), put([{"type": "Approved"}]),
              put([{"type": "", "status": "True"}]), put([yes, yes]), put([yes, no]), put([{"type": "Odd", "status": "Unknown"}]),
              put([no]), put([yes]), put([]), put([no], groups=["x"], usages=["any"])])


# --- certificates end ---------------------------------------------------------------------------------------------

def serial(cluster):
    """Of the serving certificate that a new connection gets."""
    pem = ssl.get_server_certificate(("127.0.0.1", cluster.port.number))
    return subprocess.run(["openssl", "x509", "-noout", "-serial"], input=pem.encode(), capture_output=True,
                          check=True).stdout


def test_certificates_are_renewed(tenant):
    """In the process: new handshakes get the renewed certificate, a connection and its watch go on."""
    vc = tenant("renewed", {"listen": {"certificateLifetime": "30s"}}, on=False)
    account = vc.service_account_kubeconfig("default", "watcher")
    vc.kubectl("create", "clusterrolebinding", "watcher", "--clusterrole=cluster-admin",
               "--serviceaccount=default:watcher")
    first, config = serial(vc), open(vc.kubeconfig, encoding="utf-8").read()
    old = Api(vc.kubeconfig)
    api = Api(account, timeout=180)
    stream = api.open("GET", "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1")

    eventually(lambda: serial(vc) != first, 60, "another serving certificate")
    eventually(lambda: open(vc.kubeconfig, encoding="utf-8").read() != config, 60, "another kubeconfig")
    Api(vc.kubeconfig).post("/api/v1/namespaces/default/configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}})
    names = (json.loads(line)["object"]["metadata"].get("name") for line in stream)
    assert "after" in names
    api.close()

    metrics = Api(vc.kubeconfig).raw("GET", "/metrics")[2].decode()
    for name in ("ca", "serving", "kubeconfig"):
        line = [x for x in metrics.splitlines()
                if x.startswith(f'sublet_certificate_expiration_timestamp_seconds{{certificate="{name}"}}')]
        left = float(line[0].split()[-1]) - time.time()
        assert (0 < left <= 31) if name != "ca" else left > 9 * 365 * 86400, line
    for name in ("serving", "kubeconfig"):
        assert f"certificate renewed certificate={name}" in vc.process.tail(1000)

    # An expired certificate identifies no user, even on a connection that was opened while it was good as well.
    eventually(lambda: old.raw("GET", "/api/v1/namespaces")[0] == 401, 60, "the first kubeconfig to end")
    old.close()
