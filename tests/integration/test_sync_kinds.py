# SPDX-License-Identifier: Apache-2.0
"""Kinds that sync.toHost enables: down, kept as they are wanted, their status up, and gone after their object; and
what of them never reaches the host."""
import copy
import json

import pytest

from testenv import ApiError, eventually

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
       "metadata": {"name": "things.team.example"},
       "spec": {"group": "team.example", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": {"type": "object",
                                                             "x-kubernetes-preserve-unknown-fields": True}}}]}}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NETWORKING, POLICY, TEAM = "/apis/networking.k8s.io/v1", "/apis/policy/v1", "/apis/team.example/v1"
TO_HOST = {
    "networkPolicies": {"enabled": True, "allowedCIDRs": ["10.20.0.0/16"]},
    "ingresses": {"enabled": True, "classes": ["nginx"], "hosts": ["*.team.example"]},
    "podDisruptionBudgets": {"enabled": True},
    "endpointSlices": {"enabled": True, "allowedCIDRs": ["10.30.0.0/16"]},
    "customResources": {"things.team.example": {"enabled": True, "patches": [
        {"path": "spec.secretName", "reference": {"apiVersion": "v1", "kind": "Secret"}},
        {"path": "spec.selector", "selector": {}},
        {"path": "spec.privileged", "drop": True}]}},
}
CONFIG = {"sync": {"toHost": TO_HOST}}


def ingress_rule(host="a.team.example"):
    return {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
        "service": {"name": "web", "port": {"number": 80}}}}]}}


# root, plural, apiVersion, kind, spec, changed spec, a change on the host and where it is seen, status on the host
KINDS = {
    "policy": (NETWORKING, "networkpolicies", "NetworkPolicy",
               {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]},
               {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"], "ingress": []},
               {"ingress": [{}]}, None),
    "ingress": (NETWORKING, "ingresses", "Ingress", {"rules": [ingress_rule()]},
                {"rules": [ingress_rule(), ingress_rule("b.team.example")]},
                {"rules": [ingress_rule("stolen.example")]},
                {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}),
    "budget": (POLICY, "poddisruptionbudgets", "PodDisruptionBudget",
               {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
               {"minAvailable": 5, "selector": {"matchLabels": {"app": "web"}}},
               {"minAvailable": 7}, None),
    "custom": (TEAM, "things", "Thing",
               {"size": 1, "deep": [{"a": {"b": [1, 2]}}], "secretName": "s", "privileged": True,
                "selector": {"matchLabels": {"app": "web"}}},
               {"size": 2, "deep": [{"a": {"b": [1]}}], "secretName": "s", "selector": {"matchLabels": {"app": "web"}}},
               {"size": 5}, {"phase": "Ready", "items": [{"n": 1}]}),
}


@pytest.fixture(scope="module")
def things(real_host):
    """A custom resource that the host has; the tenant gets its definition by itself."""
    real_host.api.post(CRDS, CRD)
    eventually(lambda: real_host.api.get(f"{TEAM}/things"), 60, "the host to serve things", also=[429])
    yield
    real_host.api.delete(f"{CRDS}/things.team.example")


@pytest.fixture
def vc(tenant, things):
    made = tenant("research", config=CONFIG)
    made.api.post(CRDS, CRD)
    eventually(lambda: made.api.get(f"{TEAM}/things"), 30, "the tenant to serve things", also=[429])
    return made


class Kind:
    """One kind in a tenant and on its host."""

    def __init__(self, vc, key, name="x"):
        self.vc, self.name = vc, name
        self.root, self.plural, self.kind, self.spec, self.changed, self.drift, self.status = KINDS[key]
        self.path = f"{self.root}/namespaces/default/{self.plural}"

    def create(self, spec=None, **metadata):
        return self.vc.api.post(self.path, {
            "apiVersion": self.root[len("/apis/"):], "kind": self.kind, "metadata": {"name": self.name, **metadata},
            "spec": self.spec if spec is None else spec})

    def get(self):
        return self.vc.api.get(f"{self.path}/{self.name}")

    def on_host(self):
        found = [o for o in self.vc.host_objects(self.root, self.plural)
                 if o["metadata"]["annotations"]["sublet.dev/name"] == self.name]
        return found[0] if found else None

    def host_path(self):
        return f"{self.root}/namespaces/{self.vc.namespace}/{self.plural}/{self.on_host()['metadata']['name']}"

    def arrives(self):
        return eventually(self.on_host, 60, f"{self.plural} on the host")

    def is_as(self, want, what):
        """Waits until the host's spec is equal, but for what the host adds."""
        eventually(lambda: covers(self.on_host()["spec"], want), 60, what)


def covers(now, want):
    if isinstance(want, dict):
        return isinstance(now, dict) and all(k in now and covers(now[k], v) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(now, list) and len(now) == len(want) and all(map(covers, now, want))
    return now == want


def own_labels(vc, host):
    labels = host["metadata"]["labels"]
    return {"sublet.dev/cluster": labels["sublet.dev/cluster"], "sublet.dev/namespace": "default"}


@pytest.mark.parametrize("key", list(KINDS))
def test_life(vc, host, key):
    kind = Kind(vc, key)
    virtual = kind.create(labels={"app": "mine"}, annotations={"nginx.ingress.kubernetes.io/server-snippet": "x"})
    first = kind.arrives()
    meta = first["metadata"]
    assert meta["annotations"]["sublet.dev/uid"] == virtual["metadata"]["uid"]
    assert meta["name"] != "x" and "app" not in meta["labels"] and "ownerReferences" not in meta
    assert not any("snippet" in k for k in meta["annotations"])
    assert "privileged" not in first["spec"]

    # A change of the tenant's, then one on the host while this process is away: both end as the tenant has it.
    eventually(lambda: kind.vc.api.put(f"{kind.path}/x", {**kind.get(), "spec": kind.changed}), 60,
               "the write beside those of its status")
    wanted = eventually(lambda: kind.on_host()["spec"] != first["spec"] and kind.on_host()["spec"], 60, "the change")
    vc.stop()
    host.api.patch(kind.host_path(), {"spec": kind.drift})
    assert kind.on_host()["spec"] != wanted
    vc.start()
    eventually(lambda: kind.on_host()["spec"] == wanted, 60, "the host's change to be put right")
    assert kind.on_host()["metadata"]["uid"] == meta["uid"]

    if kind.status:
        host.api.patch(f"{kind.host_path()}/status", {"status": kind.status})
        eventually(lambda: covers(kind.get().get("status"), kind.status), 60, "the status")

    host.api.delete(kind.host_path())
    eventually(lambda: kind.on_host() and kind.on_host()["metadata"]["uid"] != meta["uid"], 60, "it again on the host")
    vc.kill()
    vc.start()
    vc.api.delete(f"{kind.path}/x")
    eventually(lambda: not kind.on_host(), 60, f"no {kind.plural} on the host")


@pytest.mark.parametrize("key", ["ingress", "custom"])
def test_events_of_the_host_come_up(vc, host, key):
    kind = Kind(vc, key)
    virtual = kind.create()
    meta = kind.arrives()["metadata"]
    involved = {"apiVersion": kind.root[len("/apis/"):], "kind": kind.kind, "namespace": vc.namespace}

    def tell(name, uid):
        host.api.post(f"/api/v1/namespaces/{vc.namespace}/events", {
            "metadata": {"name": f"{name}.{uid[:8]}"}, "involvedObject": {**involved, "name": name, "uid": uid},
            "reason": "Told", "type": "Normal", "message": f"about {name}", "source": {"component": "c"}})

    def told():
        return [e for e in vc.api.get("/api/v1/namespaces/default/events")["items"] if e["reason"] == "Told"]

    tell(meta["name"], "11111111-2222-3333-4444-555555555555")  # of another object of this name
    tell(meta["name"], meta["uid"])
    event = eventually(told, 60, "the Event")[0]
    assert event["message"] == "about x" and event["involvedObject"]["uid"] == virtual["metadata"]["uid"]
    assert len(told()) == 1


@pytest.mark.parametrize("key", ["policy", "custom"])
def test_a_foreign_object_of_its_name_stays(vc, host, key):
    kind = Kind(vc, key)
    kind.create()
    foreign = copy.deepcopy(kind.arrives())
    vc.api.delete(f"{kind.path}/x")
    eventually(lambda: not kind.on_host(), 60, "it gone")
    path = f"{kind.root}/namespaces/{vc.namespace}/{kind.plural}"
    made = host.api.post(path, {"apiVersion": kind.root[len("/apis/"):], "kind": kind.kind,
                                "metadata": {"name": foreign["metadata"]["name"]}, "spec": {"podSelector": {}}})
    kind.create()

    def said():
        events = vc.api.get("/api/v1/namespaces/default/events")["items"]
        return [e for e in events if e["involvedObject"].get("kind") == kind.kind and e["reason"] == "SyncError"]

    eventually(said, 60, "an Event about the name")
    assert foreign["metadata"]["name"] not in said()[0]["message"]
    vc.api.delete(f"{kind.path}/x")
    eventually(lambda: host.api.get(f"{path}/{made['metadata']['name']}")["metadata"]["uid"] ==
               made["metadata"]["uid"], 10, "the foreign object, as it was")


@pytest.mark.parametrize("spec, changed, least", [({"maxUnavailable": 1}, {"maxUnavailable": 2}, (2, 1)),
                                                  ({"minAvailable": "30%"}, {"minAvailable": "60%"}, (1, 2))])
def test_a_budget_lets_the_host_drain(vc, host, spec, changed, least):
    """The host's own controller judges the copy: its pods have no controller there."""
    budget, deployments = Kind(vc, "budget"), "/apis/apps/v1/namespaces/default/deployments"
    label = {"app": "web"}
    vc.api.post(deployments, {"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": label}, "template": {
            "metadata": {"labels": label}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    budget.create({**spec, "selector": {"matchLabels": label}})

    def allowed():
        return budget.on_host().get("status", {}).get("disruptionsAllowed")

    def ready():
        return [p for p in vc.host_pods() if any(c["type"] == "Ready" and c["status"] == "True"
                                                 for c in p["status"].get("conditions", []))]

    budget.arrives()
    budget.is_as({"minAvailable": least[0]}, "what the tenant's controller counted")
    eventually(lambda: len(ready()) == 3 and allowed() == 3 - least[0], 60, "evictions that the host permits")
    # As the tenant wrote it, the host would permit nothing: it expects no pods.
    verbatim = f"{POLICY}/namespaces/{vc.namespace}/poddisruptionbudgets"
    host.api.post(verbatim, {"metadata": {"name": "verbatim"}, "spec": {**budget.on_host()["spec"], "minAvailable": None, **spec}})
    status = eventually(lambda: host.api.get(f"{verbatim}/verbatim").get("status", {}).get("observedGeneration") and
                        host.api.get(f"{verbatim}/verbatim")["status"], 60, "the host's judgement")
    assert (status["currentHealthy"], status["expectedPods"], status["disruptionsAllowed"]) == (3, 0, 0)
    host.api.delete(f"{verbatim}/verbatim")
    eventually(lambda: vc.api.put(f"{budget.path}/x", {**budget.get(), "spec": {**changed, "selector": {"matchLabels": label}}}),
               60, "the change")
    budget.is_as({"minAvailable": least[1]}, "what it counts now")
    eventually(lambda: len(ready()) == 3 and allowed() == 3 - least[1], 60, "the evictions of now")
    vc.api.patch(f"{deployments}/web/scale", {"spec": {"replicas": 1}})
    budget.is_as({"minAvailable": 0 if "maxUnavailable" in changed else 1}, "the scale")
    vc.api.patch(f"{deployments}/web/scale", {"spec": {"replicas": 3}})
    budget.is_as({"minAvailable": least[1]}, "the scale again")
    eventually(lambda: len(ready()) == 3 and allowed() == 3 - least[1], 60, "the evictions again")

    def evict(pod):
        path = f"/api/v1/namespaces/{vc.namespace}/pods/{pod['metadata']['name']}/eviction"
        host.api.post(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}})

    evict(ready()[0])
    eventually(lambda: vc.api.put(f"{budget.path}/x", {**budget.get(), "spec": {"maxUnavailable": 0, "selector": {"matchLabels": label}}}),
               60, "a budget that permits none")
    budget.is_as({"minAvailable": 3}, "all of them")
    eventually(lambda: len(ready()) == 3 and allowed() == 0, 60, "a successor, and no further eviction")
    with pytest.raises(ApiError) as e:
        evict(ready()[0])
    assert e.value.code == 429


def refused(call, *parts):
    with pytest.raises(ApiError) as e:
        call()
    assert e.value.code == 403, e.value
    for part in parts:
        assert part in str(e.value), e.value


def test_what_may_not_go_down_is_refused(vc):
    policy, ingress = Kind(vc, "policy"), Kind(vc, "ingress")
    refused(lambda: policy.create({"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}),
            "spec.egress", "sync.toHost.networkPolicies.allowedCIDRs")
    refused(lambda: ingress.create({"rules": [ingress_rule("bank.example")]}), "spec.rules[0].host",
            "sync.toHost.ingresses.hosts")
    refused(lambda: ingress.create({"ingressClassName": "other", "rules": [ingress_rule()]}), "spec.ingressClassName")
    refused(lambda: ingress.create({"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}),
            "spec.defaultBackend")
    assert not policy.on_host() and not ingress.on_host()
    ingress.create()
    refused(lambda: vc.api.patch(f"{ingress.path}/x", {"spec": {"rules": [ingress_rule("bank.example")]}}), "host")
    assert ingress.arrives()["spec"]["rules"][0]["host"] == "a.team.example"


def test_a_policy_reaches_this_tenant_only(vc):
    policy = Kind(vc, "policy")
    policy.create({"podSelector": {}, "ingress": [{}], "egress": [
        {"to": [{"namespaceSelector": {"matchLabels": {"tier": "web"}}}]}], "policyTypes": ["Ingress", "Egress"]})
    spec = policy.arrives()["spec"]
    own = own_labels(vc, policy.on_host())
    everyone = {"podSelector": {"matchLabels": {"sublet.dev/cluster": own["sublet.dev/cluster"]}}}
    assert spec["podSelector"] == {"matchLabels": own}
    assert spec["ingress"] == [{"from": [everyone, {"ipBlock": {"cidr": "10.20.0.0/16"}}]}]
    # no namespace is selected: nothing matches; then one is labelled
    assert "DoesNotExist" in str(spec["egress"])
    vc.kubectl("create", "namespace", "web")
    vc.kubectl("label", "namespace", "web", "tier=web")
    eventually(lambda: policy.on_host()["spec"]["egress"] == [{"to": [{"podSelector": {"matchLabels": {
        **everyone["podSelector"]["matchLabels"], "sublet.dev/namespace": "web"}}}]}], 60, "the namespace by its label")


@pytest.mark.parametrize("key", ["ingress", "custom"])
def test_secrets_it_names_go_down_with_it(vc, key):
    kind = Kind(vc, key)
    spec = {**kind.spec, "tls": [{"hosts": ["a.team.example"], "secretName": "s"}]} if key == "ingress" else kind.spec
    vc.kubectl("create", "secret", "generic", "s", "--from-literal=tls.crt=x")

    def secret():
        return next((o for o in vc.host_objects("/api/v1", "secrets")
                     if o["metadata"]["annotations"]["sublet.dev/name"] == "s"), None)

    kind.create(spec)
    host = kind.arrives()
    found = eventually(secret, 60, "the Secret on the host")["metadata"]["name"]
    assert found in (host["spec"].get("secretName"), *[t["secretName"] for t in host["spec"].get("tls", [])])
    vc.restart()
    kind.arrives()
    assert secret()["metadata"]["name"] == found
    vc.api.delete(f"{kind.path}/x")
    eventually(lambda: not secret() and not kind.on_host(), 60, "neither on the host")


def test_annotations_that_name_objects(tenant, host, things):
    """They name the host's object, which goes down with the Ingress; no listed key, no annotation."""
    nginx = "nginx.ingress.kubernetes.io/"
    vc = tenant("research", config={"sync": {"toHost": TO_HOST}, "policy": {"annotations": {"allow": [
        f"{nginx}auth-secret", f"{nginx}auth-tls-secret", f"{nginx}custom-headers", "alb.ingress.kubernetes.io/"]}}})
    kind = Kind(vc, "ingress")
    for name in ("users", "authority", "unlisted"):
        vc.kubectl("create", "secret", "generic", name, "--from-literal=a=x")
    vc.kubectl("create", "configmap", "headers", "--from-literal=X-Frame-Options=DENY")

    def named(plural):
        return {o["metadata"]["annotations"]["sublet.dev/name"]: o["metadata"]["name"]
                for o in vc.host_objects("/api/v1", plural)}

    written = {f"{nginx}auth-secret": "users", f"{nginx}auth-tls-secret": "default/authority",
               f"{nginx}custom-headers": "headers", f"{nginx}proxy-ssl-secret": "unlisted",
               "alb.ingress.kubernetes.io/actions.web": json.dumps({"type": "forward", "forwardConfig": {
                   "targetGroups": [{"serviceName": "blue", "servicePort": 80}]}})}
    kind.create(annotations=written)
    kind.arrives()
    assert kind.get()["metadata"]["annotations"] == written
    down = eventually(lambda: {"users", "authority"} <= set(named("secrets")) and "headers" in named("configmaps") and
                      named("secrets"), 60, "what it names on the host")
    assert "unlisted" not in down
    found = kind.on_host()
    notes, web = found["metadata"]["annotations"], found["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
    assert notes[f"{nginx}auth-secret"] == down["users"]
    assert notes[f"{nginx}auth-tls-secret"] == f"{vc.namespace}/{down['authority']}"
    assert notes[f"{nginx}custom-headers"] == named("configmaps")["headers"]
    assert f"{nginx}proxy-ssl-secret" not in notes
    action = json.loads(notes[f"alb.ingress.kubernetes.io/actions.{web}"])
    assert action["forwardConfig"]["targetGroups"][0]["serviceName"].startswith("blue-")

    # What the host says of them comes up in the tenant's words.
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/events", {
        "metadata": {"generateName": "e"}, "type": "Warning", "reason": "NoUsers",
        "message": f"secret {vc.namespace}/{down['users']} has no key auth", "involvedObject": {
            "kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "name": found["metadata"]["name"],
            "namespace": vc.namespace, "uid": found["metadata"]["uid"]}})
    event = eventually(lambda: next((e for e in vc.api.get("/api/v1/namespaces/default/events")["items"]
                                     if e["reason"] == "NoUsers"), None), 60, "the Event of the host")
    assert down["users"] not in event["message"] and "users" in event["message"]

    # Of a Service they would not be translated.
    behind = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "behind", "annotations": {
        "alb.ingress.kubernetes.io/auth-idp-oidc": '{"secretName": "users"}'}}, "spec": {"ports": [{"port": 80}]}}
    refused(lambda: vc.api.post("/api/v1/namespaces/default/services", behind),
            "metadata.annotations[alb.ingress.kubernetes.io/auth-idp-oidc]: names objects")
    headless = {**behind, "spec": {**behind["spec"], "clusterIP": "None"}}
    refused(lambda: vc.api.post("/api/v1/namespaces/default/services", headless), "auth-idp-oidc]: names objects")
    vc.api.post("/api/v1/namespaces/default/services", {**behind, "metadata": {"name": "behind"}})
    refused(lambda: vc.api.patch("/api/v1/namespaces/default/services/behind", {"metadata": {
        "annotations": behind["metadata"]["annotations"]}}), "auth-idp-oidc]: names objects")

    for value in ("kube-system/users", f"{vc.namespace}/{down['users']}", "..", "", "a" * 200000):
        refused(lambda v=value: vc.api.patch(f"{kind.path}/x", {"metadata": {"annotations": {f"{nginx}auth-secret": v}}}),
                f"metadata.annotations[{nginx}auth-secret]")
    vc.restart()
    kind.arrives()
    vc.api.patch(f"{kind.path}/x", {"metadata": {"annotations": {f"{nginx}auth-secret": None}}})
    eventually(lambda: "users" not in named("secrets") and f"{nginx}auth-secret" not in
               kind.on_host()["metadata"]["annotations"], 60, "neither the name nor the Secret on the host")
    assert "authority" in named("secrets")


def test_annotations_of_a_custom_resource(tenant, things):
    """By the same table: a Secret it names goes down with it, and what the table refuses is refused."""
    vc = tenant("research", config={"sync": {"toHost": TO_HOST},
                                    "policy": {"annotations": {"allow": ["nginx.org/", "konghq.com/"]}}})
    vc.api.post(CRDS, CRD)
    eventually(lambda: vc.api.get(f"{TEAM}/things"), 30, "the tenant to serve things", also=[429])
    vc.kubectl("create", "secret", "generic", "users", "--from-literal=a=x")
    kind = Kind(vc, "custom")
    kind.create({"size": 1}, annotations={"nginx.org/basic-auth-secret": "users", "konghq.com/tags": "a"})
    notes = kind.arrives()["metadata"]["annotations"]
    secret = eventually(lambda: next((o["metadata"]["name"] for o in vc.host_objects("/api/v1", "secrets")
                                      if o["metadata"]["annotations"]["sublet.dev/name"] == "users"), None), 60, "the Secret")
    assert (notes["nginx.org/basic-auth-secret"], notes["konghq.com/tags"]) == (secret, "a")
    for key, value, why in (("nginx.org/basic-auth-secret", "kube-system/s", "a namespace other than its own"),
                            ("nginx.org/server-snippets", "return 200;", "lists its prefix only"),
                            ("konghq.com/plugins", "victim:p", "lists its prefix only"),
                            ("konghq.com/host-aliases", "bank.example", "sync.toHost.ingresses.hosts")):
        refused(lambda k=key, v=value: vc.api.patch(f"{kind.path}/x", {"metadata": {"annotations": {k: v}}}),
                f"metadata.annotations[{key}]", why)


def test_slices_of_services_without_a_selector(vc):
    discovery, services = "/apis/discovery.k8s.io/v1", "/api/v1/namespaces/default/services"
    path = f"{discovery}/namespaces/default/endpointslices"
    ports = [{"name": "", "port": 5432}]

    def on_host():
        return vc.host_objects(discovery, "endpointslices")

    def body(address, name="db-1", service="db"):
        return {"metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}}, "addressType": "IPv4",
                "ports": ports, "endpoints": [{"addresses": [address]}]}

    vc.api.post(services, {"metadata": {"name": "db"}, "spec": {"ports": [{"port": 5432}]}})
    vc.api.post(services, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}})
    refused(lambda: vc.api.post(path, body("10.96.0.1")), "endpoints[0].addresses[0]", "endpointSlices.allowedCIDRs")
    vc.api.post(path, body("10.30.0.7"))
    vc.api.post(path, body("10.96.0.1", "web-1", "web"))  # the host has slices of its own for this one
    slice_ = eventually(on_host, 60, "the slice on the host")[0]
    host_service = next(o for o in vc.host_objects("/api/v1", "services")
                        if o["metadata"]["annotations"]["sublet.dev/name"] == "db")
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == host_service["metadata"]["name"]
    assert "selector" not in host_service["spec"] and slice_["ports"][0]["port"] == 5432
    refused(lambda: vc.api.patch(f"{path}/db-1", {"endpoints": [{"addresses": ["10.31.0.1"]}]}), "10.31.0.1")
    vc.api.patch(f"{path}/db-1", {"endpoints": [{"addresses": ["10.30.0.8"]}]})
    eventually(lambda: on_host()[0]["endpoints"][0]["addresses"] == ["10.30.0.8"], 60, "the address")
    vc.restart()
    vc.api.patch(f"{services}/db", {"spec": {"selector": {"app": "db"}}})
    eventually(lambda: not on_host(), 60, "no slice beside those of the host")
    vc.api.patch(f"{services}/db", {"spec": {"selector": None}})
    eventually(on_host, 60, "the slice again")
    vc.api.delete(f"{services}/db")
    eventually(lambda: not on_host(), 60, "no slice without its Service")


def test_what_is_not_enabled_stays_with_the_tenant(tenant, host):
    vc = tenant("plain")
    policy, budget = Kind(vc, "policy"), Kind(vc, "budget")
    said = vc.kubectl.run("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "x"},
        "spec": policy.spec}))[2]
    assert "no effect yet" in said
    budget.create()
    vc.kubectl("create", "secret", "generic", "s")
    vc.kubectl("run", "p", "--image=i")
    eventually(vc.host_pods, 60, "a pod on the host")
    assert not policy.on_host() and not budget.on_host()


def patched(*patches):
    return {"policy": {"storageClasses": ["fast"]}, "sync": {"toHost": {
        "ingresses": {"patches": list(patches)},
        "services": {"patches": [{"path": "metadata.annotations[lb.example/scheme]", "value": "internal"}]},
        "persistentVolumeClaims": {"patches": [{"path": "metadata.annotations[backup.example/plan]", "value": "daily"}]}}}}


def test_patches_of_the_admin(vc, host):
    """What the admin changes in host objects of built-in kinds: whatever the tenant wrote, kept, and gone with the patch."""
    issuer = {"path": "metadata.annotations[issuer.example/name]", "value": "internal"}
    vc.stop()
    vc.write_config(patched(issuer, {"path": "spec.ingressClassName", "value": "behind"}, {"path": "spec.tls", "drop": True}))
    vc.start()
    kind = Kind(vc, "ingress")
    kind.create({**kind.spec, "tls": [{"hosts": ["a.team.example"], "secretName": "s"}]},
                annotations={"issuer.example/name": "of-the-tenant", "sublet.dev/uid": "forged"})
    vc.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    vc.api.post("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}})

    def note(key, plural="ingresses", root=NETWORKING):
        found = [o["metadata"] for o in vc.host_objects(root, plural) if o["metadata"]["name"].startswith(("x-", "web-", "c-"))]
        return found[0]["annotations"].get(key) if found else None

    def is_patched():
        spec = (kind.on_host() or {"spec": {}})["spec"]
        return spec.get("ingressClassName") == "behind" and "tls" not in spec and note("issuer.example/name") == "internal"

    eventually(is_patched, 60, "the patches")
    eventually(lambda: note("lb.example/scheme", "services", "/api/v1") == "internal", 60, "the Service's annotation")
    eventually(lambda: note("backup.example/plan", "persistentvolumeclaims", "/api/v1") == "daily", 60, "the claim's")
    own = kind.get()
    assert note("sublet.dev/uid") == own["metadata"]["uid"]
    assert own["spec"]["tls"] and own["metadata"]["annotations"]["issuer.example/name"] == "of-the-tenant"
    assert own["spec"].get("ingressClassName") is None

    # Changed by the tenant, and on the host while this process is away.
    vc.api.patch(f"{kind.path}/x", {"spec": kind.changed})
    eventually(lambda: len(kind.on_host()["spec"]["rules"]) == 2, 60, "the change")
    assert is_patched()
    vc.stop()
    host.api.patch(kind.host_path(), {"spec": {"ingressClassName": "stolen"}, "metadata": {"annotations": {
        "issuer.example/name": None, "others.example/note": "stays"}}})
    vc.start()
    eventually(is_patched, 60, "the host's change to be put right")
    assert note("others.example/note") == "stays"
    uid = kind.on_host()["metadata"]["uid"]
    host.api.delete(kind.host_path())
    eventually(lambda: kind.on_host() and kind.on_host()["metadata"]["uid"] != uid and is_patched(), 60, "it again")

    # Without the patches the objects are the tenant's again.
    vc.kill()
    vc.write_config({"sync": {"toHost": {"ingresses": {"patches": []}, "services": None}}})
    vc.start()
    eventually(lambda: kind.on_host()["spec"].get("ingressClassName") == "nginx" and kind.on_host()["spec"].get("tls") and
               note("issuer.example/name") is None, 60, "no patch")
    eventually(lambda: note("lb.example/scheme", "services", "/api/v1") is None, 60, "no annotation of the Service")
    vc.api.delete(f"{kind.path}/x")
    eventually(lambda: not kind.on_host(), 60, "no Ingress")
