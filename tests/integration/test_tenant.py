# SPDX-License-Identifier: Apache-2.0
"""The main job: a tenant's workloads, made with an ordinary kubectl, run on a real host."""
import base64
import json

import pytest
import yaml

from testenv import AWAY, UNSET, Api, eventually
from testenv.nodes import pool_config

GPU = "nvidia.com/gpu"

pytestmark = pytest.mark.both_hosts


def pod(name, gpus=0, labels=None, **spec):
    container = {"name": "main", "image": "busybox:1", "command": ["sleep", "1000"]}
    if gpus:
        container["resources"] = {"limits": {GPU: str(gpus)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], **spec}}


def phase(k, name):
    return k("get", "pod", name, "-o", "jsonpath={.status.phase}")


def running(k, name, timeout=60):
    """Asks without kubectl, a process of which costs more than the answer."""
    api = Api(k.kubeconfig)
    path = f"/api/v1/namespaces/{k.namespace or 'default'}/pods/{name}"
    eventually(lambda: api.get(path)["status"].get("phase") == "Running", timeout, f"pod {name} to run", also=AWAY)
    api.close()


def host_pod(vc, name):
    """The host's pod of a virtual pod in `default`."""
    found = [p for p in vc.host_pods()
             if p["metadata"]["annotations"].get("sublet.dev/name") == name]
    assert len(found) == 1, [p["metadata"]["name"] for p in vc.host_pods()]
    return found[0]


@pytest.fixture
def vc(tenant, pools):
    return tenant("research", config=pools)


def test_a_deployment_runs_scales_rolls_and_goes(vc):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    assert len(vc.host_pods()) == 3
    for p in vc.host_pods():
        assert p["metadata"]["namespace"] == vc.namespace
        assert "ownerReferences" not in p["metadata"]
        assert len(p["metadata"]["name"]) <= 63
        assert p["spec"]["automountServiceAccountToken"] is False
    ips = {p["status"]["podIP"] for p in k.items("pods")}
    assert ips == {p["status"]["podIP"] for p in vc.host_pods()} and len(ips) == 3
    k("scale", "deployment/web", "--replicas=5")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    k("set", "image", "deployment/web", "nginx=nginx:2")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    eventually(lambda: {p["spec"]["containers"][0]["image"] for p in vc.host_pods()} == {"nginx:2"}, 60,
               "the host to run only the new image")
    k("rollout", "undo", "deployment/web")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    k("delete", "deployment", "web")
    eventually(lambda: not vc.host_pods() and not k.names("pods"), 60, "both sides to be empty")


def test_gpu_pods_land_in_their_pools(vc, host):
    k = vc.kubectl
    k.apply([pod("train", 2, {"sublet.dev/gpu-pool": "a100"}), pod("serve", 1)])
    running(k, "train")
    running(k, "serve")
    train, serve = host_pod(vc, "train"), host_pod(vc, "serve")
    assert train["spec"]["nodeSelector"]["sublet.dev/pool"] == "a100"
    assert train["spec"]["nodeName"].startswith("gpu-a100-")
    assert serve["spec"]["nodeName"].startswith("gpu-l4-")
    keys = {(t.get("key"), t.get("value")) for t in train["spec"]["tolerations"]}
    assert ("sublet.dev/pool", "a100") in keys
    assert k.json("get", "pod", "train")["spec"]["nodeName"] == train["spec"]["nodeName"]
    assert train["spec"]["nodeName"] in k.names("nodes")
    k.apply(pod("plain"))
    running(k, "plain")
    assert host_pod(vc, "plain")["spec"]["nodeName"].startswith("cpu-")


def counters(vc):
    """{sample: value} of what admission counted, and of GPU pods."""
    lines = vc.api.raw("GET", "/metrics")[2].decode().splitlines()
    return {x.rsplit(" ", 1)[0]: float(x.rsplit(" ", 1)[1]) for x in lines if x.startswith(("sublet_admission_", "sublet_gpu_"))}


def test_refused_at_apply_with_the_reason(vc):
    k, before = vc.kubectl, counters(vc)

    def counted(sample):
        return counters(vc)[sample] - before.get(sample, 0)
    too_many = k.fails("create", "-f", "-", stdin=json.dumps(pod("wide", 5, {"sublet.dev/gpu-pool": "a100"})))
    assert 'pods "wide" is forbidden: guardrail max-gpus-per-pod: requested nvidia.com/gpu=5, ' \
           'pool "a100" allows' in too_many
    assert counted('sublet_admission_rejections_total{reason="guardrail"}') == 1
    made, refused = 0, ""
    for i in range(12):
        code, _, err = k.run("create", "-f", "-", stdin=json.dumps(pod(f"q{i}", 1)))
        made += code == 0
        refused = err or refused
    assert made == 8
    assert counted('sublet_admission_rejections_total{reason="quota"}') == 4
    assert counted('sublet_gpu_pods_created_total{pool="shared"}') == 8
    assert counters(vc)['sublet_gpu_queue_oldest_seconds{pool="shared"}'] == 0
    assert "exceeded quota: gpu/shared, requested: gpu=1, used: gpu=8, limited: gpu=8" in refused
    k("delete", "pod", "q0", "--now")
    eventually(lambda: k.run("create", "-f", "-", stdin=json.dumps(pod("again", 1)))[0] == 0, 30,
               "the quota to be given back")


def test_what_would_escape_is_refused(vc):
    k = vc.kubectl
    for name, spec, words in [
        ("a", {"hostNetwork": True}, "host"),
        ("b", {"nodeName": "cpu-9"}, "nodeName"),
        ("c", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, "hostPath"),
        ("d", {"tolerations": [{"key": "sublet.dev/pool", "value": "a100"}]}, "toleration"),
        ("n", {"nodeSelector": {"sublet.dev/pool": "a100"}}, "sublet.dev/pool"),
        ("e", {"containers": [{"name": "m", "image": "x", "securityContext": {"privileged": True}}]},
         "privileged"),
        ("f", {"containers": [{"name": "m", "image": "x", "env": [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]}, "NVIDIA_VISIBLE_DEVICES"),
        ("g", {"schedulerName": "other"}, "scheduler"),
    ]:
        body = pod(name)
        body["spec"].update(spec)
        err = k.fails("create", "-f", "-", stdin=json.dumps(body))
        assert "forbidden" in err.lower() and words in err, (name, err)
    assert not vc.host_pods()


def test_a_shown_node_is_asked_for_by_name(vc, host):
    """The host's scheduler decides, inside the fence; what is dropped is said."""
    k = vc.kubectl
    body = pod("here")
    body["spec"].update({"nodeName": "cpu-2", "tolerations": [{"operator": "Exists"}]})
    _, _, err = k.run("create", "-f", "-", stdin=json.dumps(body))
    assert "Warning: spec.tolerations[0]: [Exists, all keys] has no effect" in err
    body = pod("there")
    body["spec"].update({"nodeName": "gpu-l4-1"})
    k("create", "-f", "-", stdin=json.dumps(body))
    running(k, "here")
    spec = host_pod(vc, "here")["spec"]
    assert spec["nodeName"] == "cpu-2"
    assert all(t["key"] in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
               for t in spec["tolerations"])
    eventually(lambda: host_pod(vc, "there"), 30, "the other host pod")
    term = host_pod(vc, "there")["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["gpu-l4-1"]}]
    assert {"key": "sublet.dev/pool", "operator": "DoesNotExist"} in term["matchExpressions"]
    assert "nodeName" not in host_pod(vc, "there")["spec"]


def test_a_pod_gets_what_it_refers_to(vc, host):
    k = vc.kubectl
    k("create", "configmap", "settings", "--from-literal=mode=fast")
    k("create", "secret", "generic", "key", "--from-literal=token=abc")
    k("create", "secret", "docker-registry", "pull", "--docker-username=u", "--docker-password=p")
    body = pod("app")
    body["spec"]["imagePullSecrets"] = [{"name": "pull"}]
    body["spec"]["containers"][0].update({
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
                {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}]})
    body["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "settings"}}]
    k.apply(body)
    running(k, "app")
    p = host_pod(vc, "app")
    maps = {m["metadata"]["name"]: m for m in vc.host_objects("/api/v1", "configmaps")}
    secrets = {s["metadata"]["name"]: s for s in vc.host_objects("/api/v1", "secrets")}
    container = p["spec"]["containers"][0]
    assert maps[container["envFrom"][0]["configMapRef"]["name"]]["data"] == {"mode": "fast"}
    env = {e["name"]: e for e in container["env"]}
    ref = env["TOKEN"]["valueFrom"]["secretKeyRef"]["name"]
    assert base64.b64decode(secrets[ref]["data"]["token"]) == b"abc"
    assert env["ME"]["value"] == "app"
    assert p["spec"]["imagePullSecrets"][0]["name"] in secrets
    projected = [v for v in p["spec"]["volumes"] if v["name"].startswith("kube-api-access")][0]
    sources = projected["projected"]["sources"]
    assert not any("serviceAccountToken" in s for s in sources)
    token_secret = next(s["secret"]["name"] for s in sources if "secret" in s)
    assert base64.b64decode(next(iter(secrets[token_secret]["data"].values()))).count(b".") == 2
    k("patch", "configmap", "settings", "-p", '{"data":{"mode":"slow"}}')
    name = container["envFrom"][0]["configMapRef"]["name"]
    eventually(lambda: [m["data"] for m in vc.host_objects("/api/v1", "configmaps")
                        if m["metadata"]["name"] == name] == [{"mode": "slow"}], 30, "the change to go down")
    k("delete", "pod", "app", "--now")
    eventually(lambda: name not in {m["metadata"]["name"] for m in vc.host_objects("/api/v1", "configmaps")},
               30, "what nobody refers to any more to go")


def test_a_pod_without_a_node_counts_the_nodes_that_are_shown(tenant, host):
    k = tenant("few", config={"pools": [pool_config("a100", "a100", kind="dedicated")],
                              "bindings": [{"pool": "a100", "guarantee": "8"}]}).kubectl
    body = pod("huge")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4000"}}
    k.apply(body)
    shown = eventually(lambda: k.names("nodes") if len(k.names("nodes")) == 4 else None, 30, "the nodes")

    def message():
        conditions = k.json("get", "pod", "huge")["status"].get("conditions", [])
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c.get("message")), None)

    said = eventually(message, 60, "the scheduler's word")
    everywhere = host.kubectl.names("nodes")
    assert len(shown) < len(everywhere)
    assert said.startswith("0/4 nodes are available: 2 Insufficient cpu, 2 node(s) didn't match"), said
    assert "preemption" not in said and f"/{len(everywhere)} " not in said, said
    eventually(lambda: said in k("get", "events", "--field-selector=reason=FailedScheduling"), 30, "the event")
    k("delete", "pod", "huge", "--now")


def test_a_service_is_the_hosts(vc, host):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx", "--replicas=2")
    k("expose", "deployment", "web", "--port=80")
    ip = k("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}")
    services = vc.host_objects("/api/v1", "services")
    mine = [s for s in services if s["metadata"]["annotations"]["sublet.dev/name"] == "web"]
    assert len(mine) == 1 and mine[0]["spec"]["clusterIP"] == ip
    k("rollout", "status", "deployment/web", "--timeout=180s")
    eventually(lambda: sum(len(s.get("addresses", [])) for s in
                           k.json("get", "endpoints", "web").get("subsets", [])) == 2, 30, "two endpoints")
    eventually(lambda: sum(len(s["endpoints"] or []) for s in k.items(
        "endpointslices", "-l", "kubernetes.io/service-name=web")) == 2, 30, "two endpoints in slices")
    host_name = mine[0]["metadata"]["name"]
    eventually(lambda: sum(len(s.get("endpoints") or []) for s in host.api.get(
        f"/apis/discovery.k8s.io/v1/namespaces/{vc.namespace}/endpointslices?labelSelector="
        f"kubernetes.io/service-name%3D{host_name}")["items"]) == 2, 30, "the host's service to find its pods")
    k("delete", "svc", "web")
    eventually(lambda: "web" not in [s["metadata"]["annotations"]["sublet.dev/name"]
                                     for s in vc.host_objects("/api/v1", "services")], 30, "it to go")


def test_a_named_balancer_is_the_tenants_own(vc):
    k = vc.kubectl
    k.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb"},
             "spec": {"type": "LoadBalancer", "loadBalancerClass": "example.com/own",
                      "selector": {"app": "x"}, "ports": [{"port": 80}]}})
    made = k.json("get", "svc", "lb")
    mine = [s for s in vc.host_objects("/api/v1", "services")
            if s["metadata"]["annotations"]["sublet.dev/name"] == "lb"]
    assert [s["spec"]["type"] for s in mine] == ["NodePort"] and "loadBalancerClass" not in mine[0]["spec"]
    assert made["spec"]["ports"][0]["nodePort"] == mine[0]["spec"]["ports"][0]["nodePort"]
    k("patch", "svc", "lb", "--subresource=status", "--type=merge", "-p",
      json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}))
    k("label", "svc", "lb", "seen=yes")
    k("create", "service", "clusterip", "after", "--tcp=80")
    eventually(lambda: [s for s in vc.host_objects("/api/v1", "services")
                        if s["metadata"]["annotations"]["sublet.dev/name"] == "after"], 30, "the next Service")
    assert [i["ip"] for i in k.json("get", "svc", "lb")["status"]["loadBalancer"]["ingress"]] == ["203.0.113.1"]


def test_the_api_is_found_by_its_endpoints(tenant, host):
    vc = tenant("found", start=False)
    host.api.post(f"/api/v1/namespaces/{vc.namespace}/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "found"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]}})
    ip = host.api.get(f"/api/v1/namespaces/{vc.namespace}/services/found")["spec"]["clusterIP"]
    vc.start()
    k = vc.kubectl
    eventually(lambda: ip in k("get", "endpoints", "kubernetes", "-o", "json"), 30, "the Endpoints")
    subset, = k.json("get", "endpoints", "kubernetes")["subsets"]
    assert subset == {"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}

    def slices():
        return k.items("endpointslices", "-l", "kubernetes.io/service-name=kubernetes")
    eventually(lambda: [s["endpoints"][0]["addresses"] for s in slices()] == [[ip]], 30, "the slice", also=UNSET)
    one, = slices()
    assert one["ports"] == subset["ports"]
    before = [one["metadata"]["resourceVersion"], k.json("get", "endpoints", "kubernetes")["metadata"]["resourceVersion"]]
    vc.restart()
    k("get", "endpoints", "kubernetes")
    eventually(lambda: vc.kubectl("get", "ns", "default"), 30, "an answer")
    one, = k.items("endpointslices", "-l", "kubernetes.io/service-name=kubernetes")
    assert before == [one["metadata"]["resourceVersion"],
                      k.json("get", "endpoints", "kubernetes")["metadata"]["resourceVersion"]]


def test_the_runtime_classes_of_the_pools_may_be_named(tenant, pools):
    pools = json.loads(json.dumps(pools))
    pools["pools"][1]["runtimeClass"] = "accelerated"
    vc = tenant("classes", config=pools)
    k = vc.kubectl
    eventually(lambda: "accelerated" in k("get", "runtimeclass", "-o", "name"), 30, "the pool's class")
    k.apply(pod("named", runtimeClassName="accelerated"))
    assert 'RuntimeClass "other" not found' in k.fails("apply", "-f", "-", stdin=json.dumps(
        pod("unknown", runtimeClassName="other")))
    pools["pools"][1]["runtimeClass"] = "newer"
    vc.write_config({"pools": pools["pools"]})
    vc.restart()
    eventually(lambda: k("get", "runtimeclass", "-o", "name").split() ==
               ["runtimeclass.node.k8s.io/newer"], 30, "the classes to follow the pools")


def test_a_stateful_set_keeps_its_claims(vc):
    k = vc.kubectl
    k.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
        "serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [
            {"name": "db", "image": "busybox:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})
    k("rollout", "status", "statefulset/db", "--timeout=180s")
    assert sorted(k.names("pods")) == ["db-0", "db-1"]
    claims = {c["metadata"]["name"]: c for c in k.items("pvc")}
    assert sorted(claims) == ["data-db-0", "data-db-1"]
    eventually(lambda: all(c["status"]["phase"] == "Bound" for c in k.items("pvc")), 60, "bound claims")
    k("delete", "statefulset", "db")
    eventually(lambda: not vc.host_pods(), 60, "the pods to go")
    assert len(k.items("pvc")) == 2


def test_a_job_completes(vc):
    k = vc.kubectl
    k("create", "job", "once", "--image=busybox:1", "--", "true")
    k("wait", "--for=condition=complete", "job/once", "--timeout=180s")
    assert k.json("get", "job", "once")["status"]["succeeded"] == 1
    k("delete", "job", "once")
    eventually(lambda: not k.names("pods") and not vc.host_pods(), 60, "its pod to go")


def grant_resize(vc, host, name):
    """Says for the host's node what its containers got: that a kubelet does is how one sees that it can resize."""
    p = host_pod(vc, name)
    statuses = [{**s, "resources": s.get("resources") or {}} for s in p["status"]["containerStatuses"]]
    host.api.patch(f"/api/v1/namespaces/{vc.namespace}/pods/{p['metadata']['name']}/status",
                   {"status": {"containerStatuses": statuses}})
    eventually(lambda: "resources" in vc.kubectl.json("get", "pod", name)["status"]["containerStatuses"][0], 30,
               "the node's word to come up", also=UNSET)


def test_a_resize_reaches_the_host(vc, host):
    k = vc.kubectl
    worker = pod("worker", initContainers=[{"name": "side", "image": "busybox:1", "restartPolicy": "Always",
                                            "resources": {"requests": {"cpu": "50m"}}}])
    worker["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    k.apply(worker)
    running(k, "worker")
    grant_resize(vc, host, "worker")
    resize = ["patch", "pod", "worker", "--subresource=resize", "-p"]
    k(*resize, json.dumps({"spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "2Gi"}}}],
        "initContainers": [{"name": "side", "resources": {"requests": {"cpu": "60m"}}}]}}))

    def amounts():
        spec = host_pod(vc, "worker")["spec"]
        return [c["resources"] for c in spec["containers"] + spec["initContainers"]]
    wanted = [{"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}, {"requests": {"cpu": "60m"}}]
    eventually(lambda: amounts() == wanted, 30, "the host to have the new amounts")
    host.kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {
        "name": "small", "namespace": vc.namespace}, "spec": {"hard": {"requests.cpu": "300m"}}})
    eventually(lambda: host.kubectl.json("get", "quota", "small", "-n", vc.namespace)["status"]["used"]
               ["requests.cpu"] == "260m", 30, "the host's quota to count", also=UNSET)
    k(*resize, json.dumps({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}))
    eventually(lambda: "the host cluster refuses it: " in k("get", "events") and "exceeded quota" in k("get", "events"),
               30, "the host's reason to come up")
    assert amounts() == wanted and phase(k, "worker") == "Running"
    host.kubectl("delete", "quota", "small", "-n", vc.namespace)
    eventually(lambda: amounts()[0]["requests"]["cpu"] == "2", 60, "the resize to be tried again")


def test_events_come_up_in_the_tenants_words(vc):
    k = vc.kubectl
    k.apply(pod("watched"))
    running(k, "watched")
    eventually(lambda: "Scheduled" in k("get", "events"), 30, "the scheduler's event")
    text = k("get", "events", "-o", "json")
    assert vc.namespace not in text and host_pod(vc, "watched")["metadata"]["name"] not in text


def test_deletion_in_both_directions(vc, host):
    k = vc.kubectl
    k("create", "deployment", "web", "--image=nginx", "--replicas=1")
    k("rollout", "status", "deployment/web", "--timeout=180s")
    first = vc.host_pods()[0]
    host.api.delete(f"/api/v1/namespaces/{vc.namespace}/pods/{first['metadata']['name']}")
    eventually(lambda: [p for p in vc.host_pods() if p["metadata"]["uid"] != first["metadata"]["uid"] and
                        p["status"].get("phase") == "Running"], 60, "a replacement")
    k("create", "namespace", "tmp")
    k.within("tmp").apply(pod("t"))
    running(k.within("tmp"), "t")
    k("delete", "namespace", "tmp", "--timeout=180s")
    eventually(lambda: len(vc.host_pods()) == 1, 60, "the host to follow")


def test_the_kubeconfig_is_published(vc, host):
    def published():
        s = host.api.get(f"/api/v1/namespaces/{vc.namespace}/secrets/research-kubeconfig")
        return {key: base64.b64decode(value).decode() for key, value in s["data"].items()}

    eventually(lambda: "https://127.0.0.1:" in published()["value"], 30, "the Secret")
    data = published()
    config = yaml.safe_load(data["value"])
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert data == {"value": data["value"], "config": data["value"], **{
        key: base64.b64decode(part).decode() for key, part in {
            "certificate-authority": cluster["certificate-authority-data"],
            "client-certificate": user["client-certificate-data"], "client-key": user["client-key-data"]}.items()}}
    assert data["client-key"].startswith("-----BEGIN") and data["certificate-authority"].startswith("-----BEGIN CERT")


def test_the_host_may_go_away(vc, host):
    k = vc.kubectl
    k.apply(pod("before"))
    running(k, "before")
    host.stop_component("kube-apiserver")
    try:
        k.apply(pod("meanwhile"))
        k("delete", "pod", "before", "--wait=false")
    finally:
        host.start_component("kube-apiserver")
        host.wait_ready("kube-apiserver")
    running(k, "meanwhile", 120)
    eventually(lambda: "before" not in k.names("pods"), 60, "the deletion to be done")
    eventually(lambda: len(vc.host_pods()) == 1, 60, "one pod on the host")
