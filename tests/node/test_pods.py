# SPDX-License-Identifier: Apache-2.0
"""A tenant's pods as a real kubelet runs them: streams, Services, tokens, downward API, volumes that change."""
import base64
import http.client
import json
import re

import pytest

from testenv.node import AGNHOST, TOOLS
from testenv.wait import eventually

from places import SOON, pod

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


# --- streams ----------------------------------------------------------------------------------------------

def test_logs(place):
    place.start("talks", {"command": ["sh", "-c", "echo wrong >&2; echo one; echo two; exec sleep 1000"]})
    eventually(lambda: sorted(place.kubectl("logs", "talks").splitlines()) == ["one", "two", "wrong"], 30, "its lines")
    assert len(place.kubectl("logs", "talks", "--tail=1").splitlines()) == 1
    follow = place.kubectl("logs", "-f", "talks", "--timestamps", "--limit-bytes=20")
    assert re.match(r"\d{4}-\d\d-\d\dT", follow)
    place.create("pods", pod("ends", {"command": ["sh", "-c", "echo said; exit 3"]}, restartPolicy="Never"))
    eventually(lambda: place.get("pods", "ends")["status"]["phase"] == "Failed", 60, "its end")
    assert place.kubectl("logs", "ends") == "said\n"
    state = place.get("pods", "ends")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == 3 and state["reason"] == "Error"


def test_logs_of_a_container_before(place):
    place.start("again", {"command": ["sh", "-c", "[ -e /d/f ] && exec sleep 1000; echo first; touch /d/f; exit 1"],
                          "volumeMounts": [{"name": "d", "mountPath": "/d"}]}, volumes=[{"name": "d", "emptyDir": {}}])
    eventually(lambda: place.get("pods", "again")["status"]["containerStatuses"][0]["restartCount"] == 1, 60, "its restart")
    assert place.kubectl("logs", "again", "--previous") == "first\n"


def test_exec(place):
    place.start("shell", {"env": [{"name": "A", "value": "b c"}]})
    assert place.sh("shell", 'echo "$A"; hostname; id -u') == "b c\nshell\n0"
    out = place.kubectl("exec", "-i", "shell", "--", "sh", "-c", "cat; echo done", stdin="given\n" * 20000)
    assert out == "given\n" * 20000 + "done\n"
    code, _, err = place.kubectl.run("exec", "shell", "--", "sh", "-c", "echo wrong >&2; exit 7")
    assert code == 7 and err.startswith("wrong\n")


def test_cp(place, tmp_path):
    place.start("files")
    data = bytes(range(256)) * 4096
    (tmp_path / "up").write_bytes(data)
    place.kubectl("cp", str(tmp_path / "up"), "files:/tmp/there")
    assert place.sh("files", "wc -c < /tmp/there") == str(len(data))
    place.kubectl("cp", "files:/tmp/there", str(tmp_path / "down"))
    assert (tmp_path / "down").read_bytes() == data


def test_links_of_a_proxied_page(place):
    """A proxy of the API writes its own path before the links of a page; it is the tenant's path, in which nothing is the host's."""
    page = '<html><a href="/next">x</a></html>'
    place.start("page", {"command": ["sh", "-c", f"mkdir /www && echo '{page}' > /www/index.html && exec httpd -f -p 8080 -h /www"]})
    place.service("page")
    for path in ("pods/page:8080", "pods/http:page:8080", "services/page:80", "services/http:page:http"):
        path = f"/api/v1/namespaces/{place.namespace}/{path}/proxy"
        for headers in ({}, {"Accept": "text/html", "Accept-Encoding": "gzip"}):
            def shown(path=path, headers=headers):
                code, _, body = place.cluster.api.raw("GET", path + "/", headers=headers)
                assert code == 200, body
                return body.decode()
            assert eventually(shown, 30, path) == f'<html><a href="{path}/next">x</a></html>\n'


def test_port_forward(place):
    place.serve("web")
    with place.kubectl.forwarded("pod/web", 8080) as port:
        for message in ("short", "x" * 300000):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/echo?msg={message}")
            assert connection.getresponse().read().decode() == message
            connection.close()


def test_attach(place):
    place.start("listens", {"stdin": True, "command": ["sh", "-c", 'read x; echo "got $x"; exec sleep 1000']})
    place.kubectl.run("attach", "-i", "listens", stdin="word\n", timeout=60)
    eventually(lambda: place.kubectl("logs", "listens") == "got word\n", 30, "what it was given")


def test_debug_container(place):
    place.start("bare", {"image": AGNHOST, "command": None})
    place.kubectl("debug", "bare", f"--image={TOOLS}", "--profile=baseline",
                  "--image-pull-policy=Never", "--container=look", "--target=main", "--", "sh", "-c", "echo here; exec sleep 1000")
    eventually(lambda: "running" in place.get("pods", "bare")["status"]["ephemeralContainerStatuses"][0]["state"], 60,
               "the debug container", also=(KeyError, IndexError))
    assert place.kubectl("logs", "bare", "-c", "look") == "here\n"
    assert "agnhost" in place.sh("bare", "ps", container="look"), "it shares the processes of its target"


# --- Services ---------------------------------------------------------------------------------------------

def deployment(name, replicas, *args):
    labels = {"app": name}
    container = {"name": "main", "image": AGNHOST, "args": list(args) or ["netexec", "--http-port=8080"],
                 "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **SOON}}}}


def test_a_deployment_behind_a_service(place):
    place.kubectl.apply(deployment("web", 2))
    address = place.service("web")["spec"]["clusterIP"]
    place.kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    pods = {p["metadata"]["name"] for p in place.kubectl.items("pods", "-l", "app=web")}
    place.start("client")

    ask = f"for i in 1 2 3 4 5 6 7 8; do curl -sS -m 5 http://{address}/hostname; echo; done | sort -u"
    place.soon("client", ask, "\n".join(sorted(pods)), "both of its pods by the Service")
    place.kubectl("scale", "deployment/web", "--replicas=1")
    place.soon("client", ask, lambda out: out in pods, "the one pod that is left")


def test_a_probe_that_fails_takes_a_pod_out(place):
    probe = {"exec": {"command": ["test", "-e", "/tmp/good"]}, "periodSeconds": 1}
    place.start("moody", {"readinessProbe": probe}, wait=False)
    eventually(lambda: place.get("pods", "moody")["status"].get("phase") == "Running", 60, "the pod to run")
    assert place.get("pods", "moody")["status"]["containerStatuses"][0]["ready"] is False
    place.service("moody")
    place.sh("moody", "touch /tmp/good")
    place.ready("moody")
    eventually(lambda: place.get("endpointslices", "", "/apis/discovery.k8s.io/v1")["items"][0]["endpoints"][0][
        "conditions"]["ready"], 30, "its endpoint", also=(KeyError, IndexError, TypeError))


# --- what a pod knows -------------------------------------------------------------------------------------

def test_in_cluster_config(place):
    """By the variables, the token and the CA that the kubelet gives, as every client library does it."""
    place.start("client")
    assert place.sh("client", f"cat {MOUNT}/namespace") == place.namespace
    token = place.sh("client", f"cat {MOUNT}/token")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{place.namespace}:default"
    assert claims["kubernetes.io"]["pod"]["name"] == "client"
    place.serve("inside", "inclusterclient", "--poll-interval=1")  # client-go's own, which calls /healthz with its token
    said = eventually(lambda: (lambda text: text if text.count("calling /healthz") > 2 else None)(
        place.kubectl("logs", "inside")), 60, "its third call")
    assert "authz_header=" in said and "failed" not in said and "empty" not in said, said


def test_the_token_is_good_for_the_tenants_api(place, research):
    place.start("client")
    token = place.sh("client", f"cat {MOUNT}/token")
    review = research.api.post("/apis/authentication.k8s.io/v1/tokenreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    assert review["status"]["authenticated"] and review["status"]["user"]["username"].endswith(":default")


def test_downward_api(place):
    place.kubectl.apply({"apiVersion": "v1", "kind": "Pod",
                         "metadata": {"name": "knows", "labels": {"app": "a", "team/x": "blue"}, "annotations": {"note": "b c"}},
                         "spec": pod("x", {
                             "env": [field("NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace"),
                                     field("UID", "metadata.uid"), field("LABEL", "metadata.labels['team/x']"),
                                     field("NOTE", "metadata.annotations['note']"), field("POD_IP", "status.podIP"),
                                     field("HOST_IP", "status.hostIP"), field("NODE", "spec.nodeName"),
                                     field("ACCOUNT", "spec.serviceAccountName"),
                                     {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}}],
                             "resources": {"requests": {"cpu": "7m"}},
                             "volumeMounts": [{"name": "info", "mountPath": "/info"}]},
                             volumes=[{"name": "info", "downwardAPI": {"items": [
                                 {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                                 {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}])["spec"]})
    shown = place.ready("knows")
    said = dict(line.split("=", 1) for line in place.sh("knows", "env").splitlines() if "=" in line)
    assert said["NAME"] == "knows" and said["NAMESPACE"] == place.namespace and said["UID"] == shown["metadata"]["uid"]
    assert said["LABEL"] == "blue" and said["NOTE"] == "b c" and said["ACCOUNT"] == "default" and said["CPU"] == "7"
    assert said["POD_IP"] == shown["status"]["podIP"] and said["HOST_IP"] == shown["status"]["hostIP"]
    assert said["NODE"] == shown["spec"]["nodeName"] and said["HOSTNAME"] == "knows"
    assert place.sh("knows", "cat /info/labels").splitlines() == ['app="a"', 'team/x="blue"']
    assert place.sh("knows", "cat /info/name") == "knows"
    place.kubectl("label", "pod", "knows", "later=z")
    place.soon("knows", "cat /info/labels", lambda out: 'later="z"' in out, "the label in the file", 150)


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_volumes_follow_their_objects(place, kind):
    def value(text):
        return {"data": {"key": text}} if kind == "ConfigMap" else {"data": {"key": base64.b64encode(text.encode()).decode()}}

    source = {"configMap": {"name": "source"}} if kind == "ConfigMap" else {"secret": {"secretName": "source"}}
    reference = "configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef"
    place.apply(kind, "source", **value("one"))
    place.start("reads", {"volumeMounts": [{"name": "v", "mountPath": "/v"}],
                          "env": [{"name": "KEY", "valueFrom": {reference: {"name": "source", "key": "key"}}}]},
                volumes=[{"name": "v", **source}])
    assert place.sh("reads", "cat /v/key; echo; echo $KEY") == "one\none"
    place.apply(kind, "source", **value("two"))
    place.soon("reads", "cat /v/key", "two", "the change in the volume", 150)
    assert place.sh("reads", "echo $KEY") == "one"


def test_a_pod_waits_for_its_configmap(place):
    place.start("waits", {"envFrom": [{"configMapRef": {"name": "later"}}]}, wait=False)
    eventually(lambda: place.get("pods", "waits")["spec"].get("nodeName") or
               place.get("pods", "waits")["status"].get("conditions"), 60, "it to be seen")
    place.apply("ConfigMap", "later", data={"A": "b"})
    place.ready("waits")
    assert place.sh("waits", "echo $A") == "b"


def test_a_claim_keeps_its_data(place):
    place.apply("PersistentVolumeClaim", "disk", spec={"accessModes": ["ReadWriteOnce"],
                                                       "resources": {"requests": {"storage": "1Gi"}}})
    mounted = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]
    place.start("writes", mounted, volumes=volumes)
    place.sh("writes", "echo kept > /d/f")
    place.kubectl("delete", "pod", "writes")
    place.start("reads", mounted, volumes=volumes)
    assert place.sh("reads", "cat /d/f") == "kept"


def test_a_job_completes(place):
    place.kubectl("create", "job", "sums", f"--image={TOOLS}", "--", "sh", "-c", "echo $((6 * 7))")
    place.kubectl("wait", "job/sums", "--for=condition=Complete", "--timeout=90s")
    assert place.kubectl("logs", "job/sums") == "42\n"


def test_a_readiness_gate(place):
    """A controller of the tenant sets the condition; the host's kubelet finds the pod ready, and its Service has an endpoint."""
    gate = "checks.example/passed"

    def is_ready():
        conditions = {c["type"]: c["status"] for c in place.get("pods", "gated")["status"].get("conditions", [])}
        return conditions.get("Ready")

    def endpoints():
        slices = place.cluster.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{place.namespace}/endpointslices",
                                       labelSelector="kubernetes.io/service-name=gated")["items"]
        return [e["conditions"]["ready"] for s in slices for e in s.get("endpoints") or []]

    def set_gate(status):
        place.cluster.api.patch(f"/api/v1/namespaces/{place.namespace}/pods/gated/status", {
            "status": {"conditions": [{"type": gate, "status": status}]}}, kind="strategic-merge")

    place.serve("gated", wait=False, readinessGates=[{"conditionType": gate}])
    ip = place.service("gated")["spec"]["clusterIP"]
    place.start("asks")
    fetch = f"curl -sS -m 2 http://{ip}/hostname"
    eventually(lambda: "running" in place.get("pods", "gated")["status"]["containerStatuses"][0]["state"], 60,
               "its container", also=(KeyError, IndexError))
    eventually(lambda: is_ready() == "False" and endpoints() == [False], 60, "the pod to be seen, not ready")
    assert place.kubectl.run("exec", "asks", "--", "sh", "-c", fetch)[0] != 0
    set_gate("True")
    eventually(lambda: is_ready() == "True" and endpoints() == [True], 60, "the pod to be ready")
    place.soon("asks", fetch, "gated", "an answer of its Service")
    set_gate("False")
    eventually(lambda: is_ready() == "False" and endpoints() == [False], 60, "the gate to close")


def test_graceful_end(place):
    """preStop runs, then SIGTERM, and the pod is gone when its container is."""
    place.start("polite", {"command": ["sh", "-c", "trap 'echo term > /d/term; exit 0' TERM; while :; do sleep 1; done"],
                           "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo stop > /d/stop"]}}},
                           "volumeMounts": [{"name": "d", "mountPath": "/d"}]},
                volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}], terminationGracePeriodSeconds=30,
                wait=False)
    place.apply("PersistentVolumeClaim", "disk", spec={"accessModes": ["ReadWriteOnce"],
                                                       "resources": {"requests": {"storage": "1Gi"}}})
    place.ready("polite")
    place.kubectl("delete", "pod", "polite", "--timeout=60s")
    place.start("reads", {"volumeMounts": [{"name": "d", "mountPath": "/d"}]},
                volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
    assert place.sh("reads", "cat /d/stop /d/term") == "stop\nterm"
