# SPDX-License-Identifier: Apache-2.0
"""The scenario in the idiom of the `kubernetes` package: typed models, informer, dynamic client, streams."""
import base64
import json
import os
import socket
import threading

import yaml
from kubernetes import client, config, dynamic, watch
from kubernetes.client import exceptions
from kubernetes.dynamic import exceptions as dynamic_exceptions
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from kubernetes.stream import portforward, stream
from kubernetes.stream.ws_client import ERROR_CHANNEL

from objects import CRD_GROUP, crd, deployment, pod
from script import NAMESPACE, Script, eventually

script = Script()
step = script.step


class World:
    """The client under test: one per kind of credentials."""

    def __init__(self):
        self.admin = config.new_client_from_config()
        self.core = client.CoreV1Api(self.admin)
        self.apps = client.AppsV1Api(self.admin)
        self.custom = client.CustomObjectsApi(self.admin)
        self.token = None

    def plain(self, obj):
        return self.admin.sanitize_for_serialization(obj)


def config_map(name, data=None, **meta):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **meta), data=data)


def refused(fn, *args, **kw):
    """What the client raises, with the Status in it."""
    try:
        fn(*args, **kw)
    except exceptions.ApiException as e:
        return {"type": type(e).__name__, "code": e.status, "reason": e.reason, "status": json.loads(e.body)}
    return "succeeded"


# --- the server ---------------------------------------------------------------------------------------

@step
def version(w):
    v = client.VersionApi(w.admin).get_code()
    return [v.major, v.minor, v.platform]


@step
def discovery_of_core(w):
    return {r.name: [r.kind, r.namespaced, sorted(r.verbs), sorted(r.short_names or []), sorted(r.categories or [])]
            for r in w.core.get_api_resources().resources}


@step
def discovery_of_groups(w):
    return {g.name: [v.version for v in g.versions] for g in client.ApisApi(w.admin).get_api_versions().groups}


@step
def discovery_of_apps(w):
    return {r.name: [r.kind, sorted(r.verbs)] for r in w.apps.get_api_resources().resources}


# --- objects ------------------------------------------------------------------------------------------

@step
def namespace(w):
    made = w.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    eventually(lambda: w.core.list_namespaced_service_account(NAMESPACE, field_selector="metadata.name=default").items,
               "the default service account")
    eventually(lambda: w.core.list_namespaced_config_map(NAMESPACE).items, "the certificates of the cluster")
    return w.plain(made)


@step
def create(w):
    return w.plain(w.core.create_namespaced_config_map(NAMESPACE, config_map("one", {"a": "1"}, labels={"n": "1"})))


@step
def create_again(w):
    return refused(w.core.create_namespaced_config_map, NAMESPACE, config_map("one"))


@step
def create_with_a_generated_name(w):
    made = w.core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="made-")))
    w.core.delete_namespaced_config_map(made.metadata.name, NAMESPACE)
    return [made.metadata.name[:5], len(made.metadata.name)]


@step
def get(w):
    return w.plain(w.core.read_namespaced_config_map("one", NAMESPACE))


@step
def get_unknown(w):
    return refused(w.core.read_namespaced_config_map, "none", NAMESPACE)


@step
def list_in_pages(w):
    for i in range(7):
        w.core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{i}", labels={"page": str(i % 2)}))
    pages, more = [], None
    while True:
        answer = w.core.list_namespaced_config_map(NAMESPACE, limit=3, _continue=more)
        pages.append([[o.metadata.name for o in answer.items], answer.metadata.remaining_item_count])
        more = answer.metadata._continue
        if not more:
            return pages


@step
def list_with_a_broken_continue(w):
    return refused(w.core.list_namespaced_config_map, NAMESPACE, limit=3, _continue="nonsense")


@step
def selectors(w):
    def names(**selector):
        return [o.metadata.name for o in w.core.list_namespaced_config_map(NAMESPACE, **selector).items]
    return [names(label_selector="page=1"), names(label_selector="page in (0,1),page!=1"), names(label_selector="!page"),
            names(field_selector="metadata.name=page-3"), names(field_selector="metadata.name!=page-3,metadata.namespace=" + NAMESPACE),
            refused(w.core.list_namespaced_config_map, NAMESPACE, label_selector="=x"),
            refused(w.core.list_namespaced_config_map, NAMESPACE, field_selector="data.a=1")]


@step
def dry_run(w):
    made = w.core.create_namespaced_config_map(NAMESPACE, config_map("dry", {"a": "b"}), dry_run="All")
    return [made.data, refused(w.core.read_namespaced_config_map, "dry", NAMESPACE),
            refused(w.core.create_namespaced_config_map, NAMESPACE, config_map("dry"), dry_run="Some")]


# --- watches ------------------------------------------------------------------------------------------

@step
def watch_from_a_revision(w):
    begin = w.core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    made = w.core.create_namespaced_config_map(NAMESPACE, config_map("seen", {"a": "1"}, labels={"watched": "1"}))
    made.data = {"a": "2"}
    w.core.replace_namespaced_config_map("seen", NAMESPACE, made)
    w.core.patch_namespaced_config_map("seen", NAMESPACE, {"metadata": {"labels": {"watched": None}}})
    w.core.delete_namespaced_config_map("seen", NAMESPACE)
    seen = {}
    for selector, events in ((None, 4), ("watched=1", 3)):
        watching, got = watch.Watch(), []
        for e in watching.stream(w.core.list_namespaced_config_map, NAMESPACE, resource_version=begin,
                                 timeout_seconds=20, **({"label_selector": selector} if selector else {})):
            got.append([e["type"], e["object"].metadata.name, e["object"].data])
            if len(got) == events:
                watching.stop()
        seen[str(selector)] = got
    return seen


@step
def watch_with_bookmarks(w):
    """The initial events, ended by the annotated bookmark."""
    watching, got = watch.Watch(), []
    for e in watching.stream(w.core.list_namespaced_config_map, NAMESPACE, timeout_seconds=20, allow_watch_bookmarks=True,
                             send_initial_events=True, resource_version_match="NotOlderThan", field_selector="metadata.name=one"):
        meta = e["raw_object"]["metadata"]
        got.append([e["type"], e["raw_object"]["kind"], meta.get("name"), meta.get("annotations")])
        if e["type"] == "BOOKMARK":
            watching.stop()
    return got


@step
def watch_ends_in_time(w):
    rv = w.core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    return [e["type"] for e in watch.Watch().stream(w.core.list_namespaced_config_map, NAMESPACE, resource_version=rv,
                                                    timeout_seconds=1)]


@step
def watch_from_the_future(w):
    return refused(w.core.list_namespaced_config_map, NAMESPACE, resource_version="999999999", resource_version_match="Exact",
                   limit=1)["code"]


@step
def informer(w):
    """A cache that follows, and lists again each second."""
    events, synced = [], threading.Event()
    i = SharedInformer(w.core.list_namespaced_config_map, namespace=NAMESPACE, resync_period=1, label_selector="cached=1")
    for kind in ("ADDED", "DELETED"):
        i.add_event_handler(kind, lambda o, kind=kind: events.append([kind, o.metadata.name]))
    i.add_event_handler("MODIFIED", lambda o: synced.set() if (o.data or {}).get("v") == "2" else None)
    w.core.create_namespaced_config_map(NAMESPACE, config_map("cached-0", labels={"cached": "1"}))
    i.start()
    try:
        eventually(lambda: i.cache.list_keys() == [f"{NAMESPACE}/cached-0"], "the first list")
        w.core.create_namespaced_config_map(NAMESPACE, config_map("cached-1", labels={"cached": "1"}))
        eventually(lambda: len(i.cache.list()) == 2, "the second object")
        w.core.patch_namespaced_config_map("cached-1", NAMESPACE, {"data": {"v": "2"}})
        eventually(synced.is_set, "the change")
        synced.clear()
        eventually(synced.is_set, "another list, which shows it again")
        w.core.delete_namespaced_config_map("cached-0", NAMESPACE)
        eventually(lambda: i.cache.list_keys() == [f"{NAMESPACE}/cached-1"], "the deletion")
    finally:
        i.stop()
    return events


# --- changes ------------------------------------------------------------------------------------------

@step
def replace(w):
    read = w.core.read_namespaced_config_map("one", NAMESPACE)
    read.data = {"a": "2"}
    done = w.core.replace_namespaced_config_map("one", NAMESPACE, read, field_manager="replacer")
    read.data = {"a": "3"}
    return [w.plain(done), refused(w.core.replace_namespaced_config_map, "one", NAMESPACE, read)]


@step
def patch_json(w):
    def change(op):
        return w.core.patch_namespaced_config_map("one", NAMESPACE, op, field_manager="json")
    changed = change([{"op": "test", "path": "/data/a", "value": "2"}, {"op": "add", "path": "/data/b", "value": "x"}])
    return [w.plain(changed), refused(change, [{"op": "test", "path": "/data/a", "value": "9"}]),
            refused(change, [{"op": "remove", "path": "/data/none"}])]


@step
def patch_merge(w):
    return w.plain(w.core.patch_namespaced_config_map("one", NAMESPACE, {"data": {"b": None, "c": "y"}},
                                                      _content_type="application/merge-patch+json", field_manager="merge"))


@step
def patch_strategic(w):
    """A container is found by its name, and `$patch` takes one out."""
    w.apps.create_namespaced_deployment(NAMESPACE, deployment("patched", 0))
    def change(containers):
        d = w.apps.patch_namespaced_deployment("patched", NAMESPACE, {"spec": {"template": {"spec": {"containers": containers}}}},
                                               _content_type="application/strategic-merge-patch+json")
        return [[c.name, c.image] for c in d.spec.template.spec.containers]
    return [change([{"name": "side", "image": "example.com/side:1"}]), change([{"name": "main", "image": "example.com/x:2"}]),
            change([{"name": "side", "$patch": "delete"}])]


@step
def patch_apply(w):
    """Two managers, a conflict between them, and force."""
    def apply(manager, data, **kw):
        return w.core.patch_namespaced_config_map("applied", NAMESPACE, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}, field_manager=manager,
            _content_type="application/apply-patch+yaml", **kw)
    first = w.plain(apply("first", {"a": "1", "b": "1"}))
    conflict = refused(apply, "second", {"a": "2", "c": "1"})
    forced = w.plain(apply("second", {"a": "2", "c": "1"}, force=True))
    left = w.plain(apply("first", {"b": "1"}))
    return [first, conflict, forced, left, refused(apply, "", {"a": "1"})]


@step
def status_and_scale(w):
    w.apps.create_namespaced_deployment(NAMESPACE, deployment("web", 1))
    def ready():
        d = w.apps.read_namespaced_deployment_status("web", NAMESPACE)
        return d if d.status.observed_generation == d.metadata.generation and \
            (d.status.available_replicas or 0) == d.spec.replicas else None
    first = eventually(ready, "the deployment to be available")
    scale = w.apps.read_namespaced_deployment_scale("web", NAMESPACE)
    scale.spec.replicas = 2
    scaled = w.apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    second = eventually(ready, "the second replica")
    patched = w.apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 1}})
    third = eventually(ready, "one replica less")
    return [w.plain(first.spec), [[d.status.replicas, d.status.available_replicas, d.metadata.generation] for d in (first, second, third)],
            sorted((c.type, c.status, c.reason) for c in third.status.conditions), w.plain(scaled), w.plain(patched)["spec"]]


@step
def status_is_apart(w):
    """The spec is not written by the status endpoint, nor the status by the other."""
    d = w.apps.read_namespaced_deployment("web", NAMESPACE)
    d.spec.replicas = 9
    d.status.conditions = [client.V1DeploymentCondition(type="Ours", status="True", reason="R", message="m")]
    written = w.apps.patch_namespaced_deployment_status("web", NAMESPACE, {
        "spec": {"replicas": 9}, "status": {"conditions": [{"type": "Ours", "status": "True", "reason": "R", "message": "m"}]}})
    return [written.spec.replicas, "Ours" in [c.type for c in written.status.conditions]]


# --- deletion -----------------------------------------------------------------------------------------

@step
def delete_with_preconditions(w):
    made = w.core.create_namespaced_config_map(NAMESPACE, config_map("guarded"))
    def delete(**kw):
        return w.core.delete_namespaced_config_map("guarded", NAMESPACE, body=client.V1DeleteOptions(
            preconditions=client.V1Preconditions(**kw)))
    return [refused(delete, uid="00000000-0000-0000-0000-000000000000"), refused(delete, resource_version="1"),
            w.plain(delete(uid=made.metadata.uid, resource_version=made.metadata.resource_version)), refused(delete)]


@step
def delete_with_propagation(w):
    """The ReplicaSet of a Deployment: left behind as an orphan, or deleted before its owner."""
    seen = {}
    for policy in ("Orphan", "Foreground", "Background"):
        name = policy.lower()
        w.apps.create_namespaced_deployment(NAMESPACE, deployment(name, 0))
        def sets(name=name):
            return w.apps.list_namespaced_replica_set(NAMESPACE, label_selector=f"app={name}").items
        eventually(sets, "the replica set")
        answer = w.apps.delete_namespaced_deployment(name, NAMESPACE, propagation_policy=policy)
        eventually(lambda name=name: not w.apps.list_namespaced_deployment(NAMESPACE, field_selector=f"metadata.name={name}").items,
                   "the deployment to be gone")
        if policy == "Orphan":
            left = [len(s.metadata.owner_references or []) for s in sets()]
        else:
            eventually(lambda sets=sets: not sets(), "the replica set to be gone")
            left = []
        meta = w.plain(answer).get("metadata", {})
        seen[policy] = [meta.get("finalizers"), meta.get("deletionGracePeriodSeconds"), left]
    return [seen, refused(w.apps.delete_namespaced_deployment, "web", NAMESPACE, propagation_policy="Sideways")]


@step
def delete_with_a_finalizer(w):
    w.core.create_namespaced_config_map(NAMESPACE, config_map("held", finalizers=["example.com/held"]))
    w.core.delete_namespaced_config_map("held", NAMESPACE)
    held = w.core.read_namespaced_config_map("held", NAMESPACE)
    more = refused(w.core.patch_namespaced_config_map, "held", NAMESPACE, {"metadata": {"finalizers": ["example.com/held", "example.com/x"]}})
    w.core.patch_namespaced_config_map("held", NAMESPACE, [{"op": "remove", "path": "/metadata/finalizers"}])
    return [w.plain(held), more, refused(w.core.read_namespaced_config_map, "held", NAMESPACE)["code"]]


@step
def delete_collection(w):
    w.core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page=1")
    return [o.metadata.name for o in w.core.list_namespaced_config_map(NAMESPACE, label_selector="page").items]


# --- kinds of its own ---------------------------------------------------------------------------------

@step
def custom_resource_definition(w):
    api = client.ApiextensionsV1Api(w.admin)
    api.create_custom_resource_definition(crd("Gadget"))
    def established():
        made = api.read_custom_resource_definition(f"gadgets.{CRD_GROUP}")
        return made if any(c.type == "Established" and c.status == "True" for c in made.status.conditions or []) else None
    made = eventually(established, "the CRD to be established")
    eventually(lambda: CRD_GROUP in [g.name for g in client.ApisApi(w.admin).get_api_versions().groups], "discovery")
    return [sorted((c.type, c.status, c.reason, c.message) for c in made.status.conditions), w.plain(made.status.accepted_names),
            made.status.stored_versions, w.plain(made.spec)]


GADGETS = (CRD_GROUP, "v1", NAMESPACE, "gadgets")


@step
def custom_objects(w):
    body = {"apiVersion": f"{CRD_GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 3, "unknown": 1},
            "status": {"phase": "Sent"}}
    made = eventually(lambda: create_served(w, body), "the kind to be served")
    status = w.custom.patch_namespaced_custom_object_status(*GADGETS, "g", {"status": {"phase": "Ready"}, "spec": {"size": 9}})
    scale = w.custom.get_namespaced_custom_object_scale(*GADGETS, "g")
    scaled = w.custom.patch_namespaced_custom_object_scale(*GADGETS, "g", {"spec": {"replicas": 4}})
    listed = w.custom.list_namespaced_custom_object(*GADGETS, label_selector="x!=y")
    return [made, status, scale, scaled["spec"], [[listed["kind"], listed["apiVersion"]], [o["spec"] for o in listed["items"]]]]


def create_served(w, body):
    try:
        return w.custom.create_namespaced_custom_object(*GADGETS, body)
    except exceptions.NotFoundException:
        return None


@step
def watch_from_an_old_revision(w):
    try:
        for e in watch.Watch().stream(w.core.list_namespaced_config_map, NAMESPACE, resource_version="1", timeout_seconds=5):
            return e["type"]
    except exceptions.ApiException as e:
        return [e.status, e.reason]
    return "ended"


@step
def custom_objects_that_are_invalid(w):
    def create(spec, **kw):
        return w.custom.create_namespaced_custom_object(*GADGETS, {
            "apiVersion": f"{CRD_GROUP}/v1", "kind": "Gadget", "metadata": {"name": "bad"}, "spec": spec}, **kw)
    return [refused(create, {"size": 0}), refused(create, {"size": "x"}), refused(create, {"size": 1, "mode": "odd"}), refused(create, {}),
            refused(create, {"size": 1, "unknown": 1}, field_validation="Strict")]


@step
def dynamic_client(w):
    """Discovery decides where a kind is; its answers are typed by their code."""
    d = dynamic.DynamicClient(w.admin)
    gadgets = d.resources.get(api_version=f"{CRD_GROUP}/v1", kind="Gadget")
    applied = d.server_side_apply(gadgets, body={"apiVersion": f"{CRD_GROUP}/v1", "kind": "Gadget", "metadata": {"name": "h"},
                                                 "spec": {"size": 1}}, name="h", namespace=NAMESPACE, field_manager="dynamic")
    names = [o.metadata.name for o in gadgets.get(namespace=NAMESPACE).items]
    gadgets.delete(name="h", namespace=NAMESPACE)
    try:
        gadgets.get(name="h", namespace=NAMESPACE)
        gone = "there"
    except dynamic_exceptions.NotFoundError as e:
        gone = type(e).__name__
    return [applied.to_dict(), gadgets.namespaced, sorted(gadgets.verbs), sorted(gadgets.subresources), names, gone]


# --- errors, users ------------------------------------------------------------------------------------

@step
def invalid(w):
    bad = deployment("bad", -1)
    bad["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    bad["spec"]["template"]["spec"]["containers"][0]["name"] = "Not A Name"
    return [refused(w.apps.create_namespaced_deployment, NAMESPACE, bad),
            refused(w.core.create_namespaced_config_map, NAMESPACE, config_map("Not A Name")),
            refused(w.core.create_namespaced_config_map, "no-such-namespace", config_map("x"))]


@step
def token_request(w):
    w.core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="reader")))
    answer = w.core.create_namespaced_service_account_token("reader", NAMESPACE, client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)))
    w.token = answer.status.token
    claims = json.loads(base64.urlsafe_b64decode(w.token.split(".")[1] + "=="))
    return [answer.spec.expiration_seconds, claims["sub"], claims["exp"] - claims["iat"], sorted(claims), sorted(claims["kubernetes.io"]),
            refused(w.core.create_namespaced_service_account_token, "reader", NAMESPACE, {"spec": {"expirationSeconds": 5}})]


@step
def service_account(w):
    """A kubeconfig with a token, and what its user may."""
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as f:
        loaded = yaml.safe_load(f)
    loaded["users"][0]["user"] = {"token": w.token}
    core = client.CoreV1Api(config.new_client_from_config_dict(loaded))
    rbac = client.RbacAuthorizationV1Api(w.admin)
    before = refused(core.list_namespaced_config_map, NAMESPACE)
    rbac.create_namespaced_role(NAMESPACE, {"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]})
    rbac.create_namespaced_role_binding(NAMESPACE, {"metadata": {"name": "reader"}, "subjects": [
        {"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}})
    eventually(lambda: refused(core.list_namespaced_config_map, NAMESPACE) == "succeeded", "the role")
    loaded["users"][0]["user"] = {"token": "nonsense"}
    other = client.CoreV1Api(config.new_client_from_config_dict(loaded))
    who = client.AuthenticationV1Api(core.api_client).create_self_subject_review({}).status.user_info
    return [before, refused(core.delete_namespaced_config_map, "one", NAMESPACE), refused(core.list_namespaced_secret, NAMESPACE),
            refused(core.list_node), refused(other.list_node), who.username, sorted(who.groups)]


@step
def impersonation(w):
    as_user = config.new_client_from_config()
    as_user.set_default_header("Impersonate-User", "jane")
    as_user.set_default_header("Impersonate-Group", "readers")
    who = client.AuthenticationV1Api(as_user).create_self_subject_review({}).status.user_info
    return [w.plain(who), refused(client.CoreV1Api(as_user).list_namespaced_config_map, NAMESPACE)]


@step
def access_reviews(w):
    as_reader = config.new_client_from_config()
    as_reader.set_default_header("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:reader")
    api = client.AuthorizationV1Api(as_reader)
    def may(**attributes):
        s = api.create_self_subject_access_review({"spec": {"resourceAttributes": {"namespace": NAMESPACE, **attributes}}}).status
        return [s.allowed, s.denied, s.reason]
    rules = api.create_self_subject_rules_review({"spec": {"namespace": NAMESPACE}}).status
    return [may(verb="get", resource="configmaps"), may(verb="delete", resource="configmaps"), may(verb="get", resource="pods", subresource="log"),
            sorted([r.verbs, r.resources] for r in rules.resource_rules if r.resources), rules.incomplete,
            refused(api.create_self_subject_access_review, {"spec": {}})]


@step
def events(w):
    one = w.core.read_namespaced_config_map("one", NAMESPACE)
    ref = {"kind": "ConfigMap", "apiVersion": "v1", "name": "one", "namespace": NAMESPACE, "uid": one.metadata.uid}
    api = client.EventsV1Api(w.admin)
    api.create_namespaced_event(NAMESPACE, {
        "metadata": {"name": "seen.1"}, "eventTime": "2026-01-02T03:04:05.000006Z", "action": "Look", "reason": "Seen", "type": "Normal",
        "note": "a look", "regarding": ref, "reportingController": "example.com/client", "reportingInstance": "client-1"})
    legacy = w.core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=one,reason=Seen").items
    bad = {"metadata": {"name": "bad"}, "eventTime": "2026-01-02T03:04:05.000006Z", "regarding": ref}
    return [w.plain(legacy), refused(api.create_namespaced_event, NAMESPACE, bad)]


@step
def leader_election(w):
    led = threading.Event()
    client.Configuration.set_default(w.admin.configuration)
    lock = LeaseLock("leader", NAMESPACE, "candidate-1")
    election = electionconfig.Config(lock, lease_duration=15, renew_deadline=10, retry_period=2, onstarted_leading=led.set, onstopped_leading=None)
    threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True).start()
    assert led.wait(60)
    lease = client.CoordinationV1Api(w.admin).read_namespaced_lease("leader", NAMESPACE)
    return w.plain(lease.spec)


# --- pods ---------------------------------------------------------------------------------------------

@step
def pod_runs(w):
    w.core.create_namespaced_pod(NAMESPACE, pod("runs"))
    def running():
        p = w.core.read_namespaced_pod("runs", NAMESPACE)
        return p if p.status.phase == "Running" else None
    p = eventually(running, "the pod to run")
    return [p.status.qos_class, sorted([c.type, c.status] for c in p.status.conditions), [[c.name, c.ready, c.restart_count, c.image] for c in p.status.container_statuses],
            p.spec.restart_policy, p.spec.service_account_name, p.spec.scheduler_name, [w.plain(t) for t in p.spec.tolerations or []]]


@step
def logs(w):
    return [w.core.read_namespaced_pod_log("runs", NAMESPACE, container="main"),
            w.core.read_namespaced_pod_log("runs", NAMESPACE, container="main", tail_lines=1),
            refused(w.core.read_namespaced_pod_log, "runs", NAMESPACE, container="none")["code"]]


@step
def exec_over_websocket(w):
    def run(*command):
        s = stream(w.core.connect_get_namespaced_pod_exec, "runs", NAMESPACE, container="main", command=list(command),
                   stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False)
        s.run_forever(timeout=60)
        return [s.read_stdout(timeout=0), s.read_stderr(timeout=0), s.read_channel(ERROR_CHANNEL)]
    return [run("/bin/echo", "hello"), run("/bin/sh", "-c", "echo no >&2; exit 3")]


@step
def port_forward(w):
    forwarded = portforward(w.core.connect_get_namespaced_pod_portforward, "runs", NAMESPACE, ports="8080")
    s = forwarded.socket(8080)
    s.setblocking(True)
    s.settimeout(60)
    sent, got = b"0123456789" * 5000, b""
    threading.Thread(target=s.sendall, args=(sent,), daemon=True).start()
    while len(got) < len(sent):
        got += s.recv(65536)
    s.shutdown(socket.SHUT_RDWR)
    return [got == sent, forwarded.error(8080)]


@step
def eviction(w):
    evicted = w.core.create_namespaced_pod_eviction("runs", NAMESPACE, {"metadata": {"name": "runs"}, "deleteOptions": {"gracePeriodSeconds": 0}})
    eventually(lambda: not w.core.list_namespaced_pod(NAMESPACE, field_selector="metadata.name=runs").items, "the pod to be gone")
    return w.plain(evicted)


@step
def end_of_the_namespace(w):
    w.core.delete_namespace(NAMESPACE)
    client.ApiextensionsV1Api(w.admin).delete_custom_resource_definition(f"gadgets.{CRD_GROUP}")
    eventually(lambda: not w.core.list_namespace(field_selector=f"metadata.name={NAMESPACE}").items, "the namespace to be gone")
    return refused(w.core.read_namespace, NAMESPACE)


script.run(World())
