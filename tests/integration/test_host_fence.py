# SPDX-License-Identifier: Apache-2.0
"""The second fence: whoever holds the control plane's own credentials, and more rights than the chart gives them, still
writes only what the program would. Every attack is admitted in a namespace without the fence, so each can fail."""
import copy
import hashlib
import json
import os
import secrets

import pytest

from testenv import AWAY, UNSET, ApiError, eventually
from testenv.api import Api
from testenv.helm import CHART, Helm
from testenv.nodes import pool_config
from testenv.pki import derive_kubeconfig
from testenv.virtual import merge

GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
CORE = "/api/v1"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = f"{CORE}/persistentvolumes"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
HASH = "abcdefghijklmnop"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
AUTH = "nginx.ingress.kubernetes.io/auth-secret"
BACKENDS = "nginx.org/ssl-services"
RECORD = "external-dns.alpha.kubernetes.io/hostname"
RACK = "topology.example.com/rack"
with open(os.path.join(CHART, "files", "fence.json"), encoding="utf-8") as f:
    VOID = [{"name": n, "value": "void"} for n in json.load(f)["variables"]]
VALUES = {
    "namespaceCheck": False, "persistence": {"enabled": False}, "rbac": {"clusterRole": {"enabled": True}}, "quota": {"hard": {"services.loadbalancers": "9",
                                                                                        "services.nodeports": "9"}},
    "hostFence": {"allow": {"tokenVolumes": {"cloud-token": "cloud.example"}},
                  "pools": [pool_config("granted", "l4")]},
    "config": {"fleet": {"bindings": True},
               "pools": [pool_config("a100", "a100", priorityTiers={"high": "fence-bound"}, runtimeClass="fence-bound",
                                     scheduler={"name": "gpu-scheduler", "kind": "kueue", "queueTemplate": "t-{tenant}", "gang": True}),
                         pool_config("shared", "l4", kind="shared", priorityTiers={"high": "fence-unbound"}),
                         pool_config("kai", "l4", scheduler={"kind": "kai", "queueTemplate": "t-{tenant}", "gang": True}),
                         pool_config("vol", "l4", scheduler={"kind": "volcano", "queueTemplate": "v-{tenant}", "name": "vs"}),
                         {k: v for k, v in pool_config("parts", "l4", mode="kai-fraction", scheduler={
                             "kind": "kai", "queueTemplate": "t-{tenant}"}).items() if k != "resources"},
                         {"name": "dev", "mode": "dra", "nodeSelector": {"sublet.dev/pool": "dev"}, "tolerations": [
                             {"key": "sublet.dev/pool", "operator": "Equal", "value": "dev", "effect": "NoSchedule"}],
                          "deviceClasses": {"gpu.example": {"gpuEq": "1", "config": [
                              {"driver": "granted.example", "parameters": {"a": 1}}]}}}],
               "bindings": [{"pool": p, "guarantee": 4} for p in ("a100", "dev", "kai", "parts", "vol")],
               "policy": {"annotations": {"allow": [AUTH, BACKENDS, RECORD]}},
               "sync": {"toHost": {"networkPolicies": {"enabled": True, "allowedCIDRs": ["10.20.0.0/16"]},
                                   "ingresses": {"enabled": True, "classes": ["nginx"], "hosts": ["*.team.example"], "patches": [
                                       {"path": "metadata.annotations[patched.example/note]", "value": "x"},
                                       {"path": "spec.tls", "drop": True}]},
                                   "podDisruptionBudgets": {"enabled": True},
                                   "endpointSlices": {"enabled": True, "allowedCIDRs": ["10.30.0.0/16"]},
                                   "gateways": {"enabled": True, "classes": ["shared"], "hosts": ["*.team.example"]},
                                   "httpRoutes": {"enabled": True}, "tlsRoutes": {"enabled": True},
                                   "backendTLSPolicies": {"enabled": True},
                                   "resourceClaims": {"enabled": True},
                                   "serviceAccounts": {"enabled": True, "annotations": {
                                       "id.example/role": ["arn:aws:iam::1:role/team-*", "shared"]}},
                                   "storageClasses": {"enabled": True, "provisioners": {
                                       "csi.example": {"parameters": {"type": ["fast", "small-*"]}, "mountOptions": ["ro"]},
                                       "kept.example": {"reclaimPolicies": ["Retain"], "topologyKeys": [RACK]}}},
                                   "persistentVolumes": {"enabled": True, "drivers": {
                                       "csi.example": {"volumeHandles": ["fs-*", "whole"], "mountOptions": ["ro"],
                                                       "volumeAttributes": {"tier": ["fast", "small-*"]}},
                                       "other.example": {"volumeHandles": ["theirs"], "topologyKeys": [RACK]}}},
                                   "services": {"mappings": {"byName": {"default/web": "shop"}}},
                                   "pods": {"runtimeClassName": "fence-all", "priorityClassName": "fence-all",
                                            "enforceTolerations": ["dedicated=fence:NoSchedule", "edge.example/site"]},
                                   "priorityClasses": {"enabled": True, "mappings": {"byName": {"a": "fence-named"}},
                                                       "ranges": [{"upTo": 5, "class": "fence-ranged"}]}},
                        "fromHost": {"gateways": {"enabled": True, "hosts": ["*.shared.example"], "mappings": {"byName": {
                            "fence-infra/edge": "default/edge", "fence-lobby/*": "lobby/*"}}}}}}}


def values_of(fence):
    """The chart gives rights of the whole cluster with a fence only."""
    values = merge(VALUES, {"hostFence": {"enabled": fence}})
    return values if fence else merge(values, {"config": {"sync": {"toHost": {
        "storageClasses": {"enabled": False}, "persistentVolumes": {"enabled": False}}}}})


class Side:
    """A release in a namespace of its own, and its account with every right there is."""

    def __init__(self, host, helm, fence):
        self.namespace = f"team-fence-{secrets.token_hex(3)}"
        host.create_namespace(self.namespace)
        helm("install", "research", CHART, "-n", self.namespace, values=values_of(fence))
        host.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": self.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "research", "namespace": self.namespace}]})
        answer = host.api.post(f"{CORE}/namespaces/{self.namespace}/serviceaccounts/research/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        self.admin = host.api
        self.api = Api(derive_kubeconfig(os.path.join(helm.directory, f"{self.namespace}.kubeconfig"), host.kubeconfig,
                                         token=answer["status"]["token"]))

    def path(self, resource, name="", subresource="", group=CORE, namespace=None):
        parts = [f"{group}/namespaces/{namespace or self.namespace}/{resource}", name, subresource]
        return "/".join(p for p in parts if p)

    def make(self, resource, body):
        """An object that is there for later requests, as the program would have made it."""
        self.api.post(self.path(resource), body)
        return body["metadata"]["name"]


@pytest.fixture(scope="module")
def sides(real_host, gateway_api, tmp_path_factory):
    """(with the fence, without it)"""
    helm = Helm(tmp_path_factory.mktemp("fence"), real_host.kubeconfig)
    made = [("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": n}, "value": 5})
            for n in ("fence-bound", "fence-unbound", "fence-named", "fence-ranged", "fence-all")]
    made += [("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": n}, "handler": "runc"})
             for n in ("fence-bound", "fence-unbound", "fence-all")]
    for path, body in made:
        real_host.api.post(path, body)
    shown = ("fence-infra", "fence-lobby")  # whose Gateways are shown
    for namespace in shown:
        real_host.create_namespace(namespace)
    both = [Side(real_host, helm, fence) for fence in (True, False)]

    def refused():
        with pytest.raises(ApiError, match="host fence"):
            both[0].api.post(both[0].path("endpoints"), {"metadata": {"name": "x"}}, dryRun="All")
        for name in policies(real_host, both[0]):
            assert real_host.api.get(f"{POLICIES}/{name}")["status"]["observedGeneration"] == 1
        return True

    eventually(refused, 60, "the policies", also=UNSET)
    for side in both:
        eventually(lambda s=side: s.api.get(s.path("serviceaccounts", "research-pods")), 30, "the account of pods")
    yield both
    for side in both:
        helm("uninstall", "research", "-n", side.namespace)
        real_host.delete_namespace(side.namespace)
        real_host.api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{side.namespace}")
    for namespace in shown:
        real_host.delete_namespace(namespace)
    for path, body in made:
        real_host.api.delete(f"{path}/{body['metadata']['name']}")


def policies(host, side):
    names = [p["metadata"]["name"] for p in host.api.get(POLICIES)["items"]]
    return [n for n in names if n.startswith(f"research.{side.namespace}.")]


# --- what the program sends -----------------------------------------------------------------------------------

def metadata(name):
    return {"name": f"{name}-{HASH}",
            "labels": {"sublet.dev/cluster": "uid", "sublet.dev/namespace": "default", f"sublet.dev/l-{HASH}": "x"},
            "annotations": {"sublet.dev/name": name, "sublet.dev/namespace": "default", "sublet.dev/uid": "u"}}


def pod(name="train"):
    meta = metadata(name)
    return {"metadata": {**meta, "annotations": {**meta["annotations"], SAFE_TO_EVICT: "true"}}, "spec": {
        "serviceAccountName": "research-pods", "automountServiceAccountToken": False, "enableServiceLinks": False,
        "containers": [{"name": "c", "image": "busybox:1", "env": VOID}]}}


def gpu_pod():
    body = change(pod(), "spec.tolerations", [
        {"key": "sublet.dev/pool", "operator": "Equal", "value": "a100", "effect": "NoSchedule"},
        {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}])
    body["spec"]["nodeSelector"] = {"sublet.dev/pool": "a100"}
    body["spec"]["containers"] = [{"name": "c", "image": "busybox:1", "resources": {"limits": {GPU: "2"}}}]
    body["metadata"]["labels"] = {**body["metadata"]["labels"], QUEUE: "t-research"}
    return body


def service(name="web"):
    return {"metadata": metadata(name), "spec": {"ports": [{"port": 80}], "selector": {
        "sublet.dev/cluster": "uid", "sublet.dev/namespace": "default"}}}


def alias(name="shop"):
    """Under a name that config.sync.toHost.services gives."""
    body = change(service(), "metadata.name", name)
    body["metadata"]["annotations"]["sublet.dev/alias"] = name
    return body


def secret(name="key"):
    return {"metadata": metadata(name), "type": "Opaque", "data": {"a": "YQ=="}}


def claim(name="data"):
    return {"metadata": metadata(name), "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                                                 "resources": {"requests": {"storage": "1Gi"}}}}


def config_map(name="settings"):
    return {"metadata": metadata(name), "data": {"a": "b"}}


def change(body, path, value):
    """body with what stands at the path ("spec.containers.0.image") replaced, or removed for None."""
    body = copy.deepcopy(body)
    *outer, last = path.split(".")
    at = body
    for key in outer:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    last = int(last) if isinstance(at, list) else last
    if value is None:
        del at[last]
    else:
        at[last] = value
    return body


def marked(what, key, value):
    """A pod with devices, and a label or an annotation."""
    body = gpu_pod()
    body["metadata"][what] = {**body["metadata"].get(what, {}), key: value}
    return body


# --- creates ---------------------------------------------------------------------------------------------------

def container(key, value):
    return change(pod(), f"spec.containers.0.{key}", value + VOID if key == "env" else value)


def beside(what, value):
    """A pod with devices and another container, which has none."""
    return change(gpu_pod(), f"spec.{what}", (gpu_pod()["spec"][what] if what == "containers" else []) + [
        {"name": "d", "image": "busybox:1", "env": value}])


def security(key, value):
    return container("securityContext", {key: value})


def volume(volume_name="v", **source):
    return change(pod(), "spec.volumes", [{"name": volume_name, **source}])


def tokens(**more):
    return {"sources": [{"serviceAccountToken": {"path": "t", **more}}]}


def with_label(key):
    out = metadata("train")
    out["labels"][key] = "x"
    return change(pod(), "metadata", out)


def without(what, key, body=None):
    body = copy.deepcopy(body or pod())
    del body["metadata"][what][key]
    return body


POD = {
    "a node": (change(pod(), "spec.nodeName", "gpu-a100-1"), "spec.nodeName: is the scheduler's to set"),
    "an account": (change(pod(), "spec.serviceAccountName", "research"), "spec.serviceAccountName: is not the account"),
    "the default account": (change(pod(), "spec.serviceAccountName", None), "spec.serviceAccountName: is not the account"),
    "its token": (change(pod(), "spec.automountServiceAccountToken", True), "spec.automountServiceAccountToken: must be"),
    "a taint of every pod with another value": (change(pod(), "spec.tolerations", [
        {"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]), "spec.tolerations: a toleration that no"),
    "all values of a taint of every pod": (change(pod(), "spec.tolerations", [
        {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]), "spec.tolerations: a toleration that no"),
    "every taint": (change(pod(), "spec.tolerations", [{"operator": "Exists"}]), "spec.tolerations: a toleration that no"),
    "a taint of an unbound pool": (change(pod(), "spec.tolerations", [
        {"key": "sublet.dev/pool", "operator": "Equal", "value": "shared", "effect": "NoSchedule"}]), "spec.tolerations: a"),
    "a taint of its pool, without a device": (change(pod(), "spec.tolerations", [
        {"key": "sublet.dev/pool", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}]), "spec.tolerations: a"),
    "nodes of no pool": (change(gpu_pod(), "spec.nodeSelector", None), "spec.nodeSelector: not that of a bound pool"),
    "nodes of an unbound pool": (change(gpu_pod(), "spec.nodeSelector", {"sublet.dev/pool": "shared"}),
                                 "spec.nodeSelector: not that of a bound pool"),
    "every GPU of the node": (container("env", [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
                              "env: a variable that hands out devices"),
    "a GPU by a reference": (container("env", [{"name": "AMD_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {
        "name": f"there-{HASH}", "key": "a"}}}]), "env: a variable that hands out devices"),
    "a GPU beside its own": (change(gpu_pod(), "spec.containers.0.env", [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
                             "env: a variable that hands out devices"),
    "what the image says": (change(pod(), "spec.containers.0.env", None), "env: a container without devices"),
    "what an image beside it says": (beside("containers", VOID[1:]), "env: a container without devices"),
    "what an image before it says": (beside("initContainers", VOID[:1] * len(VOID)), "env: a container without devices"),
    "a gone node for ever": (change(pod(), "spec.tolerations", [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]), "spec.tolerations: a toler"),
    "a scheduler": (change(pod(), "spec.schedulerName", "mine"), "spec.schedulerName: a scheduler that no bound pool has"),
    "a runtime class": (change(pod(), "spec.runtimeClassName", "fence-unbound"), "spec.runtimeClassName: a class that no"),
    "a priority": (change(pod(), "spec.priorityClassName", "fence-unbound"), "spec.priorityClassName: a class that no bound"),
    "the node's network": (change(pod(), "spec.hostNetwork", True), "pod: only "),
    "the node's processes": (change(pod(), "spec.hostPID", True), "pod: only "),
    "the node's IPC": (change(pod(), "spec.hostIPC", True), "pod: only "),
    "another's claim": (change(gpu_pod(), "spec.resourceClaims", [{"name": "r", "resourceClaimName": "theirs"}]),
                        "spec.resourceClaims: names a claim that is not this virtual cluster's"),
    "a claim of a template": (change(gpu_pod(), "spec.resourceClaims", [{"name": "r", "resourceClaimTemplateName": f"t-{HASH}"}]),
                              "spec.resourceClaims: names a claim that is not this virtual cluster's"),
    "a scheduling gate": (change(pod(), "spec.schedulingGates", [{"name": "a.example/b"}]), "spec.schedulingGates: a gate"),
    "another's queue": (marked("labels", "kueue.x-k8s.io/queue-name", "theirs"), "metadata.labels: not the queue"),
    "a pod that KAI does not count": (marked("labels", "app", "kai-resource-reservation"), "metadata.labels: app is the value"),
    "a group of a queue": (marked("labels", "kueue.x-k8s.io/pod-group-name", "theirs"),
                           "metadata.labels: not a group of this virtual cluster"),
    "another's group": (marked("labels", "kueue.x-k8s.io/pod-group-name", f"g-0123456789-{HASH}"),
                        "metadata.labels: not a group of this virtual cluster"),
    "the hash of a role": (marked("annotations", "kueue.x-k8s.io/role-hash", "0a"),
                           "metadata.annotations: a value that its group has not"),
    "a group of none": (marked("annotations", "kueue.x-k8s.io/pod-group-total-count", "0"),
                        "metadata.annotations: a value that its group has not"),
    "a group that retries": (marked("annotations", "kueue.x-k8s.io/retriable-in-group", "true"),
                             "metadata.annotations: only the end of a group is said"),
    "a group that admits fast": (marked("annotations", "kueue.x-k8s.io/pod-group-fast-admission", "true"),
                                 "metadata.annotations: a key that is neither"),
    "a priority of a queue": (marked("labels", "kueue.x-k8s.io/priority-class", "high"),
                              "metadata.labels: a key that is neither"),
    "a parent that suspends": (marked("annotations", "kueue.x-k8s.io/pod-suspending-parent", "x"),
                               "metadata.annotations: a key that is neither"),
    "a sysctl": (change(pod(), "spec.securityContext", {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
                 "spec.securityContext.sysctls: is not allowed"),
    "a pull secret": (change(pod(), "spec.imagePullSecrets", [{"name": "registry"}]), "pod: names an object that is not"),
    "other namespaces": (change(pod(), "spec.affinity", {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
                                                            "namespaceSelector": {}}]}}), "spec.affinity: a term that looks"),
    "other namespaces, preferred": (change(pod(), "spec.affinity", {"podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname", "namespaces": ["kube-system"]}}]}}), "spec.affinity: a term that looks"),
    "a directory of the node": (volume(hostPath={"path": "/"}), "volume: only "),
    "a CSI driver": (volume(csi={"driver": "secrets-store.csi.k8s.io"}), "volume: only "),
    "a file server": (volume(nfs={"server": "10.0.0.1", "path": "/"}), "volume: only "),
    "another volume": (volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:x", "lun": 0}),
                       "volume: only "),
    "a volume of its own": (volume(ephemeral={"volumeClaimTemplate": {"spec": claim()["spec"]}}), "volume: only "),
    "a token volume": (volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
                       "volume.projected.sources[]: only configMap, downwardAPI, secret are sent"),
    "a token of another audience": (volume("cloud-token", projected=tokens(audience="host.example")), "volume.projected"),
    "a token without an audience": (volume("cloud-token", projected=tokens()), "volume.projected"),
    "a token and a Secret": (volume("cloud-token", projected={"sources": [
        *tokens(audience="cloud.example")["sources"], {"secret": {"name": f"s-{HASH}"}}]}), "volume.projected"),
    "such a token under another name": (volume(projected=tokens(audience="cloud.example")), "volume.projected"),
    "a directory under its name": (volume("cloud-token", hostPath={"path": "/"}), "volume: only "),
    "the control plane's kubeconfig": (volume(secret={"secretName": "research-kubeconfig"}), "volume: names an object that"),
    "a release of Helm": (volume(projected={"sources": [{"secret": {"name": "sh.helm.release.v1.research.v1"}}]}),
                          "volume: names an object that is not this virtual cluster's"),
    "the control plane's store": (volume(persistentVolumeClaim={"claimName": "data-research-0"}), "volume: names an object"),
    "a Secret as variables": (container("envFrom", [{"secretRef": {"name": "research-kubeconfig"}}]),
                              "container: names an object that is not this virtual cluster's"),
    "a Secret as a variable": (container("env", [{"name": "A", "valueFrom": {"secretKeyRef": {
        "name": "research-kubeconfig", "key": "value"}}}]), "container: names an object that is not this virtual cluster's"),
    "privileged": (security("privileged", True), "container.securityContext: only "),
    "the node's proc": (change(change(pod(), "spec.hostUsers", False), "spec.containers.0.securityContext",
                               {"procMount": "Unmasked"}), "container.securityContext: only "),
    "a capability": (security("capabilities", {"add": ["SYS_ADMIN"]}), "securityContext.capabilities.add: only AUDIT_WRITE"),
    "no seccomp": (security("seccompProfile", {"type": "Unconfined"}), "seccompProfile and appArmorProfile can only be"),
    "no AppArmor": (security("appArmorProfile", {"type": "Unconfined"}), "seccompProfile and appArmorProfile can only be"),
    "a profile of the node": (security("seccompProfile", {"type": "Localhost", "localhostProfile": "x"}),
                              "container.securityContext.seccompProfile: only type are sent"),
    "an SELinux type": (security("seLinuxOptions", {"type": "spc_t"}), "securityContext.seLinuxOptions.type: is not"),
    "a port of the node": (container("ports", [{"containerPort": 80, "hostPort": 80}]), "container.ports[]: only "),
    "a probe of elsewhere": (container("livenessProbe", {"httpGet": {"port": 80, "host": "169.254.169.254"}}),
                             "container.livenessProbe.httpGet: only "),
    "a hook of elsewhere": (container("lifecycle", {"preStop": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}),
                            "container.lifecycle.preStop.tcpSocket: only "),
    "mounts that spread": (change(volume(emptyDir={}), "spec.containers.0", {
        "name": "c", "image": "i", "env": VOID, "securityContext": {"privileged": False}, "volumeMounts": [
            {"name": "v", "mountPath": "/v", "mountPropagation": "HostToContainer"}]}), "container"),
    "a device of no pool": (container("resources", {"limits": {"example.com/fpga": "1"}}), "resources: a device that no"),
    "a claimed device on nodes of no pool": (change(change(pod(), "spec.resourceClaims", [
        {"name": "r", "resourceClaimName": f"r-{HASH}"}]), "spec.containers.0.resources", {"claims": [{"name": "r"}]}),
                                             "spec.nodeSelector: not that of a bound pool"),
    "a name": (change(pod(), "metadata.name", "train"), "metadata.name: is not the name of an object"),
    "a name like ours": (change(pod(), "metadata.name", "train-abcdefghijklmno1"), "metadata.name: is not the name of an"),
    "a name of a verdict": (change(pod(), "metadata.name", "verdict-abcdefghij.x"), "metadata.name: is not the name of"),
    "no cluster": (without("labels", "sublet.dev/cluster"), "metadata.labels: sublet.dev/cluster and"),
    "no namespace": (without("labels", "sublet.dev/namespace"), "metadata.labels: sublet.dev/cluster and"),
    "no owner": (without("annotations", "sublet.dev/uid"), "metadata.annotations: sublet.dev/name, sublet.dev/namespace and"),
    "a label hosts obey": (with_label("sidecar.istio.io/inject"), "metadata.labels: a key that is neither listed nor hashed"),
    "the control plane's label": (with_label("sublet.dev/control-plane"), "metadata.labels: a key that is neither listed"),
    "an annotation hosts obey": (change(pod(), "metadata.annotations", {
        **metadata("train")["annotations"], "k8s.v1.cni.cncf.io/networks": "kube-system/x"}), "metadata.annotations: a key"),
    "a node to be kept": (change(pod(), "metadata.annotations", {
        **metadata("train")["annotations"], SAFE_TO_EVICT: "false"}), f"metadata.annotations: {SAFE_TO_EVICT} keeps a node"),
    "an owner": (change(pod(), "metadata.ownerReferences", [
        {"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "x"}]), "metadata.ownerReferences: are not sent"),
    "a finalizer": (change(pod(), "metadata.finalizers", ["a.example/b"]), "metadata.finalizers: are not sent"),
    "a generated name": (change(pod(), "metadata.generateName", "x-"), "metadata.generateName: is not sent"),
}
SERVICE = {
    "another's name": (change(service(), "spec", {"type": "ExternalName", "externalName": "kube-dns.kube-system.svc"}),
                       "spec.type: ExternalName is not sent"),
    "an address": (change(service(), "spec.externalIPs", ["10.1.1.1"]), "spec.externalIPs: are not sent"),
    "a balancer": (change(change(service(), "spec.type", "LoadBalancer"), "spec.loadBalancerClass", "a.example/b"),
                   "spec: loadBalancerIP and loadBalancerClass"),
    "a balancer's address": (change(change(service(), "spec.type", "LoadBalancer"), "spec.loadBalancerIP", "1.1.1.1"),
                             "spec: loadBalancerIP and loadBalancerClass"),
    "too many ranges": (change(change(service(), "spec.type", "LoadBalancer"), "spec.loadBalancerSourceRanges",
                               [f"10.{i}.0.0/16" for i in range(65)]), "spec.loadBalancerSourceRanges: too many"),
    "others' pods": (change(service(), "spec.selector", {"app": "x"}), "spec.selector: is not narrowed to this virtual"),
    "a Service's name": (change(service(), "metadata.name", "kubernetes"), "metadata.name: is not the name of an object"),
    "a name that no mapping gives": (alias("store"), "metadata.name: is not the name of an object"),
    "a mapped name without its mark": (change(service(), "metadata.name", "shop"), "metadata.annotations: sublet.dev/alias"),
    "a mark of another name": (change(alias(), "metadata.annotations", {
        **metadata("web")["annotations"], "sublet.dev/alias": "store"}), "metadata.annotations: sublet.dev/alias"),
    "the mark of a mapped name": (change(alias(), "metadata.name", f"web-{HASH}"), "metadata.annotations: sublet.dev/alias"),
    "a mapped name on every node": (change(alias(), "spec.type", "NodePort"), "spec: a Service under a mapped name"),
    "a mapped name outside": (change(alias(), "spec.type", "LoadBalancer"), "spec: a Service under a mapped name"),
    "a mapped name for anything": (change(alias(), "spec.selector", None), "spec: a Service under a mapped name"),
    "a mapped name for others' pods": (change(alias(), "spec.selector", {"app": "x"}), "spec.selector: is not narrowed"),
}
SECRET = {
    "a type controllers obey": (change(secret(), "type", "bootstrap.kubernetes.io/token"), "type: only Opaque, "),
    "a release": (change(secret(), "type", "helm.sh/release.v1"), "type: only Opaque, "),
    "a Secret's name": (change(secret(), "metadata.name", "sh.helm.release.v1.research.v9"), "metadata.name: is not the"),
}
CLAIM = {
    "a volume": (change(claim(), "spec.volumeName", "pv"), "spec.volumeName: is the host's to set"),
    "a choice of volumes": (change(claim(), "spec.selector", {"matchLabels": {"a": "b"}}), "spec.selector: is not sent"),
    "no class": (change(claim(), "spec.storageClassName", ""), "spec.storageClassName: a class that is not offered"),
    "a snapshot": (change(claim(), "spec.dataSource", {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot",
                                                       "name": "x"}), "only a PersistentVolumeClaim may be a source"),
    "another's claim": (change(claim(), "spec.dataSource", {"kind": "PersistentVolumeClaim", "name": "data-research-0"}),
                        "claim: names an object that is not this virtual cluster's"),
    "attributes": (change(claim(), "spec.volumeAttributesClassName", "fast"),
                   "spec.volumeAttributesClassName: is not sent"),
}
CREATES = [pytest.param(resource, body, message, id=f"{resource}: {name}")
           for resource, cases in (("pods", POD), ("services", SERVICE), ("secrets", SECRET),
                                   ("persistentvolumeclaims", CLAIM)) for name, (body, message) in cases.items()]


def refused(side, message, request):
    """The fence says no, and says why."""
    with pytest.raises(ApiError) as e:
        request(side)
    said = str(e.value)
    assert e.value.code == 403 and "ValidatingAdmissionPolicy" in said, said
    assert f"Sublet host fence: {message}" in said or (message in said and "Sublet host fence: " in said), said


@pytest.mark.parametrize("resource,body,message", CREATES)
def test_creates_that_the_program_never_sends(sides, resource, body, message):
    fenced, open_ = sides

    def create(side):
        return side.api.post(side.path(resource), body, dryRun="All")

    assert create(open_)["metadata"]["name"]
    refused(fenced, message, create)


GOOD = {"pods": pod, "services": service, "secrets": secret, "persistentvolumeclaims": claim, "configmaps": config_map}


@pytest.mark.parametrize("resource", GOOD)
def test_what_the_program_sends_passes(sides, resource):
    fenced, _ = sides
    assert fenced.api.post(fenced.path(resource), GOOD[resource](), dryRun="All")


def test_ranges_of_a_balancer_pass(sides):
    fenced, _ = sides
    body = change(service(), "spec.type", "LoadBalancer")
    body["spec"]["loadBalancerSourceRanges"] = [f"10.{i}.0.0/16" for i in range(64)]
    assert fenced.api.post(fenced.path("services"), body, dryRun="All")


def test_what_bound_pools_have_passes(sides):
    fenced, _ = sides
    body = gpu_pod()
    body["spec"].update({"schedulerName": "gpu-scheduler", "runtimeClassName": "fence-bound",
                         "priorityClassName": "fence-bound"})
    body["spec"]["initContainers"] = [{"name": "i", "image": "busybox:1", "env": VOID}]
    assert fenced.api.post(fenced.path("pods"), body, dryRun="All")
    # what Kueue's webhook adds to it before it is judged
    body["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
    body["metadata"]["finalizers"] = ["kueue.x-k8s.io/managed"]
    body["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert fenced.api.post(fenced.path("pods"), body, dryRun="All")
    # of config.sync.toHost.priorityClasses and of pods
    for mapped in ("fence-named", "fence-ranged", "fence-all"):
        assert fenced.api.post(fenced.path("pods"), change(pod(), "spec.priorityClassName", mapped), dryRun="All")
    assert fenced.api.post(fenced.path("pods"), change(pod(), "spec.runtimeClassName", "fence-all"), dryRun="All")
    # of config.sync.toHost.pods.enforceTolerations, of every pod
    assert fenced.api.post(fenced.path("pods"), change(pod(), "spec.tolerations", [
        {"key": "dedicated", "operator": "Equal", "value": "fence", "effect": "NoSchedule"},
        {"key": "edge.example/site", "operator": "Exists"}]), dryRun="All")
    copied = change(claim(), "spec.dataSource", {"kind": "PersistentVolumeClaim", "name": f"other-{HASH}"})
    assert fenced.api.post(fenced.path("persistentvolumeclaims"), copied, dryRun="All")
    claimed = change(pod(), "spec.resourceClaims", [{"name": "r", "resourceClaimName": f"r-{HASH}"}])
    claimed["spec"].update({"nodeSelector": {"sublet.dev/pool": "dev"}, "tolerations": [
        {"key": "sublet.dev/pool", "operator": "Equal", "value": "dev", "effect": "NoSchedule"}]})
    claimed["spec"]["containers"][0]["resources"] = {"claims": [{"name": "r", "request": "x"}]}
    assert fenced.api.post(fenced.path("pods"), claimed, dryRun="All")
    # under a ServiceAccount of the tenant's, with the volume that the host adds
    name = fenced.make("serviceaccounts", change(account({"id.example/role": "shared"})[2], "metadata.name", f"own-{HASH}"))
    own = change(volume("cloud-token", projected=tokens(audience="cloud.example")), "spec.serviceAccountName", name)
    assert fenced.api.post(fenced.path("pods"), own, dryRun="All")
    verdict = change(pod(), "metadata.name", "verdict-abcdefghij")
    assert fenced.api.post(fenced.path("pods"), verdict, dryRun="All")
    refused(fenced, "metadata.name: is not the name", lambda s: s.api.post(s.path("pods"), verdict))


def test_a_pod_is_and_stays_in_its_queue(sides):
    """What a stolen token may not: a pod of the pool that passes by its queue, moves to another one, or opens its own gate."""
    fenced, _ = sides
    body = gpu_pod()
    del body["metadata"]["labels"][QUEUE]
    refused(fenced, "metadata.labels: not the queue of its pool",
            lambda s: s.api.post(s.path("pods"), body, dryRun="All"))
    body = change(gpu_pod(), "spec.schedulingGates", [{"name": "kueue.x-k8s.io/admission"}])
    body["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
    path = fenced.path("pods", fenced.make("pods", change(body, "metadata.name", f"queued-{HASH}")))
    for label in ({QUEUE: "theirs"}, {QUEUE: None}, {"kueue.x-k8s.io/managed": None}):
        refused(fenced, "metadata.labels: a pod stays in its queue",
                lambda s, x=label: s.api.patch(path, {"metadata": {"labels": x}}, dryRun="All"))
    refused(fenced, "spec.schedulingGates: its queue opens them",
            lambda s: s.api.patch(path, {"spec": {"schedulingGates": []}}, dryRun="All"))
    refused(fenced, "metadata.labels: a queue takes pods alone", lambda s: s.api.post(
        s.path("configmaps"), change(config_map(), "metadata.labels", {**config_map()["metadata"]["labels"], QUEUE: "t-research"}), dryRun="All"))


SCHEDULERS = {"kai": ("labels", "kai.scheduler/queue", "t-research", "kai-scheduler"),
              "vol": ("annotations", "scheduling.volcano.sh/queue-name", "v-research", "vs")}


@pytest.mark.parametrize("pool", SCHEDULERS)
def test_a_pod_is_in_the_queue_of_its_scheduler(sides, real_host, pool):
    """By its pool's key and scheduler, neither of which it may leave; another scheduler would pass by the queue."""
    fenced, _ = sides
    what, key, queue, scheduler = SCHEDULERS[pool]

    def body(value=queue, name=scheduler):
        made = change(gpu_pod(), "spec.nodeSelector", {"sublet.dev/pool": pool})
        made["spec"]["tolerations"][0]["value"] = pool
        made["spec"]["schedulerName"] = name
        del made["metadata"]["labels"][QUEUE]
        if value:
            made["metadata"][what] = {**made["metadata"].get(what, {}), key: value}
        return made

    def post(made):
        return lambda s: s.api.post(s.path("pods"), made, dryRun="All")

    post(body())(fenced)
    refused(fenced, f"metadata.{what}: ", post(body("theirs")))  # by two policies, of which either may answer
    refused(fenced, f"metadata.{what}: a scheduler with queues, and none of a bound pool", post(body(None)))
    refused(fenced, f"metadata.{what}: not the queue of its pool", post(body(None, "default-scheduler")))
    refused(fenced, f"metadata.{what}: a scheduler with queues, and none of a bound pool",
            post(change(pod(), "spec.schedulerName", scheduler)))  # without devices
    refused(fenced, "spec.schedulerName: not the scheduler of its pool", post(body(name="default-scheduler")))
    path = fenced.path("pods", fenced.make("pods", change(body(), "metadata.name", f"{pool}-{HASH}")))
    refused(fenced, f"metadata.{what}: a pod stays in its queue",
            lambda s: s.api.patch(path, {"metadata": {what: {key: None}}}, dryRun="All"))
    # what the scheduler adds stays when the program writes again, and is never the program's to add
    other = {"metadata": {"annotations": {"pod-group-name": "g"}}}
    refused(fenced, "metadata.annotations: a pod stays in its group", lambda s: s.api.patch(path, other, dryRun="All"))
    real_host.api.patch(path, other)
    fenced.api.patch(path, {"metadata": {"annotations": {"sublet.dev/name": "x"}}}, dryRun="All")
    if pool == "kai":  # what its webhook sets in a pod without a class
        real_host.api.post(RUNTIMES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
        post(change(body(), "spec.runtimeClassName", "nvidia"))(fenced)
        real_host.api.delete(f"{RUNTIMES}/nvidia")


def part_pod(**notes):
    """As the program sends a pod with a part of a GPU; a note of None is left out."""
    made = change(gpu_pod(), "spec.nodeSelector", {"sublet.dev/pool": "parts"})
    made["spec"]["tolerations"][0]["value"] = "parts"
    made["spec"]["schedulerName"] = "kai-scheduler"
    del made["metadata"]["labels"][QUEUE]
    made["metadata"]["labels"]["kai.scheduler/queue"] = "t-research"
    container = made["spec"]["containers"][0]
    del container["resources"]
    container["env"] = [e for e in VOID if e["name"] != "NVIDIA_VISIBLE_DEVICES"] + [device(f"{HASH}-shared-gpu-0")]
    keys = {"gpu-fraction": "0.25", "gpu-fraction-container-name": container["name"],
            "runai/shared-gpu-configmap": f"{HASH}-shared-gpu", **notes}
    made["metadata"]["annotations"] = {**made["metadata"]["annotations"], **{k: v for k, v in keys.items() if v is not None}}
    return made


def device(name):
    return {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": name, "key": "NVIDIA_VISIBLE_DEVICES"}}}


def test_a_part_of_a_gpu(sides):
    """Annotations are the request: they have the one spelling, never change, and are of a container in the pool of parts."""
    fenced, _ = sides

    def post(made, resource="pods"):
        return lambda s: s.api.post(s.path(resource), made, dryRun="All")

    post(part_pod())(fenced)
    injected = part_pod()  # what KAI's webhook adds
    injected["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": f"{HASH}-shared-gpu-0-evar", "optional": False}}]
    injected["spec"]["containers"][0]["env"].append({"name": "GPU_PORTION", "valueFrom": {"configMapKeyRef": {
        "name": f"{HASH}-shared-gpu-0", "key": "GPU_PORTION"}}})
    injected["spec"].setdefault("volumes", []).append({"name": "v", "configMap": {"name": f"{HASH}-shared-gpu-0"}})
    post(injected)(fenced)
    for value in ("1", "0.5", "0.00", "0.001", "5e-1"):
        refused(fenced, "metadata.annotations: gpu-fraction has a value that is not sent", post(part_pod(**{"gpu-fraction": value})))
    refused(fenced, "metadata.annotations: runai/shared-gpu-configmap has a value",
            post(part_pod(**{"runai/shared-gpu-configmap": "theirs"})))
    for key in ("gpu-memory", "gpu-fraction-num-devices", "mps", "received-resource-type"):
        refused(fenced, "metadata.annotations: a key that is neither", post(part_pod(**{key: "1"})))
    elsewhere = part_pod(**{"gpu-fraction-container-name": "x"})
    elsewhere["spec"]["containers"][0]["env"] = VOID
    refused(fenced, "metadata.annotations: a part of a GPU is of one container", post(elsewhere))
    refused(fenced, "spec.tolerations: a toleration that no bound pool has", post(part_pod(**{"gpu-fraction": None})))  # no device
    other = part_pod()
    other["spec"]["containers"][0]["env"][-1] = device(f"data-{HASH}")  # a ConfigMap of the tenant's
    refused(fenced, "env: a variable that hands out devices", post(other))
    refused(fenced, "spec.nodeSelector: not that of a pool of parts", post(change(part_pod(), "spec.nodeSelector", {"sublet.dev/pool": "kai"})))
    unqueued = part_pod()
    del unqueued["metadata"]["labels"]["kai.scheduler/queue"]
    refused(fenced, "metadata.labels: ", post(unqueued))  # by two rules, of which either may answer
    refused(fenced, "metadata.annotations: a part of a GPU is for pods", post(change(config_map(), "metadata.annotations", {
        **config_map()["metadata"]["annotations"], "gpu-fraction": "0.25"}), "configmaps"))
    path = fenced.path("pods", fenced.make("pods", change(part_pod(), "metadata.name", f"part-{HASH}")))
    for value in ("0.01", None):
        refused(fenced, "metadata.annotations: gpu-fraction of a pod never changes",
                lambda s, x=value: s.api.patch(path, {"metadata": {"annotations": {"gpu-fraction": x}}}, dryRun="All"))


GROUP = "pod-group-name"
GROUPS = "/apis/scheduling.run.ai/v2alpha2"
DEFINITION = {"metadata": {"name": "podgroups.scheduling.run.ai"}, "spec": {
    "group": "scheduling.run.ai", "scope": "Namespaced", "names": {"plural": "podgroups", "kind": "PodGroup"},
    "versions": [{"name": "v2alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def group_name(namespace):
    return f"g-{hashlib.sha256(namespace.encode()).hexdigest()[:10]}-{HASH}"


def test_a_pod_is_in_a_group_of_its_namespace(sides):
    """KAI looks for a group in all namespaces: a stolen token cannot join that of another virtual cluster, nor leave its own."""
    fenced, _ = sides

    def body(group, **notes):
        made = change(gpu_pod(), "spec.nodeSelector", {"sublet.dev/pool": "kai"})
        made["spec"]["tolerations"][0]["value"] = "kai"
        made["spec"]["schedulerName"] = "kai-scheduler"
        del made["metadata"]["labels"][QUEUE]
        made["metadata"]["labels"]["kai.scheduler/queue"] = "t-research"
        made["metadata"]["annotations"] = {**made["metadata"]["annotations"], GROUP: group, **notes}
        return made

    def post(made, resource="pods"):
        return lambda s: s.api.post(s.path(resource), made, dryRun="All")

    own, skip = group_name(fenced.namespace), {"kai.scheduler/skip-podgrouper": "true"}
    post(body(own, **skip))(fenced)
    for theirs in (group_name("team-other"), "train", own + "x", ""):
        refused(fenced, "metadata.annotations: not a group of this virtual cluster", post(body(theirs)))
    refused(fenced, "metadata.annotations: a value that its group has not", post(body(own, **{"kai.scheduler/skip-podgrouper": "no"})))
    refused(fenced, "metadata.annotations: a key that is neither", post(body(own, **{"kai.scheduler/preemptibility": "x"})))
    refused(fenced, "metadata.annotations: a group takes pods alone",
            post(change(config_map(), "metadata.annotations", {**config_map()["metadata"]["annotations"], GROUP: own}), "configmaps"))
    path = fenced.path("pods", fenced.make("pods", change(body(own), "metadata.name", f"grouped-{HASH}")))
    for other in (group_name("team-other"), own[:-1] + "q", None):
        refused(fenced, "metadata.annotations: a pod stays in its group",
                lambda s, o=other: s.api.patch(path, {"metadata": {"annotations": {GROUP: o}}}, dryRun="All"))


def test_groups_of_pods(sides, real_host):
    """PodGroups have a name of the namespace's, the queue of a bound pool, a size, and nothing else."""
    fenced, _ = sides
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    path = f"{GROUPS}/namespaces/{fenced.namespace}/podgroups"
    name = group_name(fenced.namespace)

    def body(rename=name, **spec):
        meta = metadata("train")
        meta["name"] = rename
        return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta,
                "spec": {"minMember": 3, "queue": "t-research", **spec}}

    real_host.api.post(definitions, DEFINITION)
    try:
        eventually(lambda: fenced.admin.post(path, body(), dryRun="All"), 60, "PodGroups", also=(404, *AWAY))
        for made, why in ((body(group_name("team-other")), "metadata.name: not a group of this virtual cluster"),
                          (body(queue="theirs"), "spec.queue: not the queue of a bound pool"),
                          (body(priorityClassName="fence-unbound"), "spec.priorityClassName: a class that no bound pool has"),
                          (body(preemptibility="non-preemptible"), "spec: a field that is not sent")):
            refused(fenced, why, lambda s, m=made: s.api.post(path, m, dryRun="All"))
        fenced.api.post(path, body())
        one = f"{path}/{name}"
        real_host.api.patch(one, {"spec": {"markUnschedulable": True}})
        fenced.api.patch(one, {"spec": {"minMember": 2}})
        refused(fenced, "spec: a field that is not sent", lambda s: s.api.patch(one, {"spec": {"markUnschedulable": False}}))
        fenced.api.delete(one)
    finally:
        real_host.api.delete(f"{definitions}/{DEFINITION['metadata']['name']}")


def test_services_under_mapped_names(sides):
    """Made and changed under the names of the configuration, deleted under former ones as well; another's Service is not touched."""
    fenced, _ = sides
    name = fenced.make("services", alias())
    fenced.api.patch(fenced.path("services", name), {"spec": {"ports": [{"port": 81}]}})
    fenced.api.delete(fenced.path("services", name))
    refused(fenced, "metadata.name: is not the name", lambda s: s.make("services", alias("store")))
    fenced.admin.post(fenced.path("services"), alias("store"))
    fenced.api.delete(fenced.path("services", "store"))
    for theirs in ("shop", "store"):
        fenced.admin.post(fenced.path("services"), {"metadata": {"name": theirs}, "spec": {"ports": [{"port": 80}]}})
        refused(fenced, "metadata.", lambda s, n=theirs: s.api.delete(s.path("services", n)))
        refused(fenced, "", lambda s, n=theirs: s.api.patch(s.path("services", n), {"metadata": alias(n)["metadata"]}))
        fenced.admin.delete(fenced.path("services", theirs))


def storage_class(side, ours=True, name="fast", rename=None, notes=None, **over):
    meta = metadata(name)
    meta["name"] = rename or meta["name"]
    meta["labels"]["sublet.dev/host-namespace"] = side.namespace if ours else "team-other"
    meta["annotations"].update(notes or {})
    return {"metadata": meta, "provisioner": "csi.example", "parameters": {"type": "fast"}, **over}


CLASSES = {
    "a class": ({"mountOptions": ["ro"]}, None),
    "a small one": ({"parameters": {"type": "small-a"}}, None),
    "one that keeps": ({"provisioner": "kept.example", "parameters": {}, "reclaimPolicy": "Retain"}, None),
    "of another tenant": ({"ours": False}, "metadata.labels: sublet.dev/host-namespace"),
    "of another name": ({"rename": "fast"}, "metadata.name: is not the name"),
    "of another provisioner": ({"provisioner": "other.example"}, "a provisioner, a parameter"),
    "of another type": ({"parameters": {"type": "huge"}}, "a provisioner, a parameter"),
    "with a Secret of others": ({"parameters": {"csi.storage.k8s.io/provisioner-secret-name": "s"}}, "a provisioner, a parameter"),
    "of another's type": ({"provisioner": "kept.example", "reclaimPolicy": "Retain"}, "a provisioner, a parameter"),
    "with an option": ({"mountOptions": ["suid"]}, "a provisioner, a parameter"),
    "that keeps": ({"reclaimPolicy": "Retain"}, "a provisioner, a parameter"),
    "in a zone": ({"allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a"]}]}]}, None),
    "on a node": ({"allowedTopologies": [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["n"]}]}]},
                  "a provisioner, a parameter"),
    "in a rack of its driver": ({"provisioner": "kept.example", "parameters": {}, "reclaimPolicy": "Retain",
                                 "allowedTopologies": [{"matchLabelExpressions": [{"key": RACK, "values": ["a"]}]}]}, None),
    "in a rack of another's": ({"allowedTopologies": [{"matchLabelExpressions": [{"key": RACK, "values": ["a"]}]}]},
                               "a provisioner, a parameter"),
    "the default": ({"notes": {"storageclass.kubernetes.io/is-default-class": "true"}}, "metadata.annotations: "),
}


@pytest.mark.parametrize("over,message", CLASSES.values(), ids=CLASSES.keys())
def test_storage_classes(sides, over, message):
    def create(side):
        return side.api.post(STORAGE, storage_class(side, **over), dryRun="All")

    if message:
        refused(sides[0], message, create)
    else:
        assert create(sides[0])
    assert create(sides[1])


def test_storage_classes_that_are_there(sides, real_host):
    """Of the whole cluster: neither another virtual cluster's nor the host's is changed or deleted."""
    fenced, open_ = sides
    bodies = {"own": storage_class(fenced, name="own"), "other": storage_class(fenced, ours=False, name="other"),
              "host": {"metadata": {"name": "fence-host"}, "provisioner": "csi.example"}}
    names = {key: real_host.api.post(STORAGE, body)["metadata"]["name"] for key, body in bodies.items()}
    try:
        for key, name in names.items():
            path = f"{STORAGE}/{name}"
            ours = {"metadata": {"labels": {"sublet.dev/host-namespace": fenced.namespace, "sublet.dev/cluster": "uid"}}}
            for send in (lambda s, p=path: s.api.patch(p, {"allowVolumeExpansion": True}, dryRun="All"),
                         lambda s, p=path: s.api.patch(p, ours, dryRun="All"),
                         lambda s, p=path: s.api.delete(p, dryRun="All")):
                assert send(open_)
                if key == "own":
                    assert send(fenced)
                else:
                    refused(fenced, "", send)
    finally:
        for name in names.values():
            real_host.api.delete(f"{STORAGE}/{name}")


def persistent_volume(side, ours=True, name="data", rename=None, notes=None, csi=None, drop=(), **over):
    meta = storage_class(side, ours, name, rename, notes)["metadata"]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
            "csi": {"driver": "csi.example", "volumeHandle": "fs-1", **(csi or {})},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": side.namespace, "name": f"c-{HASH}"}, **over}
    return {"metadata": meta, "spec": {k: v for k, v in spec.items() if k not in drop}}


def affinity(**term):
    return {"required": {"nodeSelectorTerms": [term]}}


NOT_LISTED = "spec: a driver, a handle, an attribute, an option"
BY = {"operator": "In", "values": ["a"]}
OTHERS_SECRET = {"namespace": "team-other", "name": f"s-{HASH}"}
PERSISTENT_VOLUMES = {
    "a volume": ({"csi": {"volumeHandle": "whole", "fsType": "ext4", "volumeAttributes": {"tier": "small-a"}},
                  "mountOptions": ["ro"], "persistentVolumeReclaimPolicy": "Retain"}, None),
    "in a zone": ({"nodeAffinity": affinity(matchExpressions=[{"key": "topology.kubernetes.io/zone", **BY}])}, None),
    "in a rack of its driver": ({"csi": {"driver": "other.example", "volumeHandle": "theirs"},
                                 "nodeAffinity": affinity(matchExpressions=[{"key": RACK, **BY}])}, None),
    "in a rack of another's": ({"nodeAffinity": affinity(matchExpressions=[{"key": RACK, **BY}])}, NOT_LISTED),
    "of another tenant": ({"ours": False}, "metadata.labels: sublet.dev/host-namespace"),
    "of another name": ({"rename": "data"}, "metadata.name: is not the name"),
    "of another driver": ({"csi": {"driver": "third.example"}}, NOT_LISTED),
    "of another's handle": ({"csi": {"volumeHandle": "theirs"}}, NOT_LISTED),
    "of a longer handle": ({"csi": {"volumeHandle": "fs-1/x"}}, NOT_LISTED),
    "of a handle that is a directory above": ({"csi": {"volumeHandle": "fs-.."}}, NOT_LISTED),
    "of no handle": ({"csi": {"volumeHandle": "fs-"}}, NOT_LISTED),
    "of another tier": ({"csi": {"volumeAttributes": {"tier": "slow"}}}, NOT_LISTED),
    "with an attribute": ({"csi": {"volumeAttributes": {"server": "x"}}}, NOT_LISTED),
    "with an option": ({"mountOptions": ["suid"]}, NOT_LISTED),
    "of a directory": ({"drop": ["csi"], "hostPath": {"path": "/"}}, "spec: only volumes of CSI drivers"),
    "of a server": ({"drop": ["csi"], "nfs": {"server": "s", "path": "/"}}, "spec: only volumes of CSI drivers"),
    "of no claim": ({"drop": ["claimRef"]}, "spec.claimRef: names a claim"),
    "of another's claim": ({"claimRef": {"namespace": "team-other", "name": f"c-{HASH}"}}, "spec.claimRef: names a claim"),
    "of a claim of the admin's": ({"claimRef": {"namespace": "", "name": "c"}}, "spec.claimRef: names a claim"),
    "that is deleted": ({"persistentVolumeReclaimPolicy": "Delete"}, "spec.persistentVolumeReclaimPolicy: can only"),
    "of a class": ({"storageClassName": "standard"}, "spec.storageClassName: is not sent"),
    "of a program": ({"csi": {"fsType": "../x"}}, "spec.csi.fsType: is not sent"),
    "with another's Secret": ({"csi": {"nodeStageSecretRef": OTHERS_SECRET}}, "spec.csi: names a Secret"),
    "with a Secret of the admin's": ({"csi": {"controllerExpandSecretRef": {"namespace": "kube-system", "name": "s"}}},
                                     "spec.csi: names a Secret"),
    "on a node": ({"nodeAffinity": affinity(matchExpressions=[{"key": "kubernetes.io/hostname", **BY}])}, NOT_LISTED),
    "on a node by name": ({"nodeAffinity": affinity(matchFields=[{"key": "metadata.name", **BY}])}, "spec.nodeAffinity"),
    "by a provisioner": ({"notes": {"pv.kubernetes.io/provisioned-by": "csi.example"}}, "metadata.annotations: "),
}


@pytest.mark.parametrize("over,message", PERSISTENT_VOLUMES.values(), ids=PERSISTENT_VOLUMES.keys())
def test_persistent_volumes(sides, over, message):
    def create(side):
        return side.api.post(VOLUMES, persistent_volume(side, **over), dryRun="All")

    if message:
        refused(sides[0], message, create)
    else:
        assert create(sides[0])
    if over.get("claimRef", {}).get("namespace") != "":
        assert create(sides[1])


def test_persistent_volumes_that_are_there(sides, real_host):
    """Neither another virtual cluster's nor the host's is bound, changed or deleted."""
    fenced, open_ = sides
    admins = persistent_volume(fenced)["spec"]
    bodies = {"own": persistent_volume(fenced, name="own"), "other": persistent_volume(fenced, ours=False, name="other"),
              "host": {"metadata": {"name": f"fence-{fenced.namespace}"}, "spec": {**admins, "claimRef": None}}}
    names = {key: real_host.api.post(VOLUMES, body)["metadata"]["name"] for key, body in bodies.items()}
    try:
        for key, name in names.items():
            path = f"{VOLUMES}/{name}"
            ours = {"metadata": {"labels": {"sublet.dev/host-namespace": fenced.namespace, "sublet.dev/cluster": "uid"}}}
            claimed = {"spec": {"claimRef": {"namespace": fenced.namespace, "name": f"d-{HASH}"}}}
            for send in (lambda s, p=path: s.api.patch(p, {"spec": {"mountOptions": ["ro"]}}, dryRun="All"),
                         lambda s, p=path: s.api.patch(p, claimed, dryRun="All"),
                         lambda s, p=path: s.api.patch(p, ours, dryRun="All"),
                         lambda s, p=path: s.api.delete(p, dryRun="All")):
                assert send(open_)
                if key == "own":
                    assert send(fenced)
                else:
                    refused(fenced, "", send)
    finally:
        for name in names.values():
            real_host.api.delete(f"{VOLUMES}/{name}")


def test_a_claim_of_a_volume(sides):
    """By a volume of a virtual cluster alone, and without a class: what else has that class must not be bound."""
    fenced, open_ = sides

    def create(side, volume, class_name):
        body = change(change(claim(), "spec.volumeName", volume), "spec.storageClassName", class_name)
        return side.api.post(side.path("persistentvolumeclaims"), body, dryRun="All")

    assert create(fenced, f"v-{HASH}", "")
    for volume, class_name in (("pvc-1", ""), ("pvc-1", "standard"), (f"v-{HASH}", "standard")):
        refused(fenced, "spec.volumeName: is the host's to set", lambda s, v=volume, c=class_name: create(s, v, c))
        assert create(open_, volume, class_name)


def test_others_are_not_judged(sides, real_host):
    """The policies are about one account: the host's own controllers and admins work on."""
    fenced, _ = sides
    assert real_host.api.post(fenced.path("pods"), change(pod(), "spec.nodeName", "gpu-a100-1"), dryRun="All")
    assert fenced.api.post(f"{CORE}/namespaces/{fenced.namespace}/pods", pod(), dryRun="All")


# --- updates and deletes ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def objects(sides):
    """An object of each kind on both sides."""
    for side in sides:
        for resource, body in GOOD.items():
            side.make(resource, body("there"))
        side.admin.post(side.path("secrets"), {"metadata": {"name": "registry"}, "data": {"a": "YQ=="}})
        side.admin.post(side.path("persistentvolumeclaims"), {**claim(), "metadata": {"name": "data-research-0"}})
    return f"there-{HASH}"


DEBUG = {"name": "d", "image": "i", "env": VOID, "securityContext": {"privileged": True}}
PATCHES = {
    "a debug container": ("pods", "ephemeralcontainers", {"spec": {"ephemeralContainers": [DEBUG]}},
                          "container.securityContext: only "),
    "a debug container that sees GPUs": ("pods", "ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "d", "image": "i"}]}}, "env: a container without devices"),
    "an address": ("pods", "status", {"status": {"podIP": "10.0.0.9"}}, "status: only conditions of readiness gates"),
    "a condition": ("pods", "status", {"status": {"conditions": [{"type": "a.example/b", "status": "True"}]}},
                    "status.conditions: a type that is no readiness gate"),
    "readiness": ("pods", "status", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
                  "status.conditions: a type that is no readiness gate"),
    "a toleration": ("pods", "", [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}],
                     "spec.tolerations: a toleration"),
    "no cluster": ("pods", "", {"metadata": {"labels": {"sublet.dev/cluster": None}}}, "metadata.labels: sublet.dev/cluster"),
    "another cluster": ("pods", "", {"metadata": {"labels": {"sublet.dev/cluster": "other"}}},
                        "metadata.labels: sublet.dev/cluster never changes"),
    "a finalizer": ("pods", "", {"metadata": {"finalizers": ["a.example/b"]}}, "metadata.finalizers: are not sent"),
    "an owner": ("configmaps", "", {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "x"}]}}, "metadata.ownerReferences: are not sent"),
    "a label": ("pods", "", {"metadata": {"labels": {"a.example/b": "c"}}}, "metadata.labels: a key that is neither"),
    "an annotation": ("services", "", {"metadata": {"annotations": {"service.beta.kubernetes.io/x": "y"}}},
                      "metadata.annotations: a key that is neither"),
    "no finalizer": ("persistentvolumeclaims", "", {"metadata": {"finalizers": None}}, "metadata.finalizers: are not sent"),
    "a name elsewhere": ("services", "", {"spec": {"type": "ExternalName", "externalName": "a.example", "clusterIP": None,
                                                   "clusterIPs": None}}, "spec.type: ExternalName is not sent"),
    "addresses": ("services", "", {"spec": {"externalIPs": ["10.1.1.1"]}}, "spec.externalIPs: are not sent"),
    "others' pods": ("services", "", {"spec": {"selector": {"sublet.dev/cluster": None}}}, "spec.selector: is not narrowed"),
}


@pytest.mark.parametrize("resource,subresource,patch,message", PATCHES.values(), ids=PATCHES.keys())
def test_updates_that_the_program_never_sends(sides, objects, resource, subresource, patch, message):
    fenced, open_ = sides

    def send(side):
        kind = "json" if isinstance(patch, list) else "strategic-merge" if subresource else "merge"
        return side.api.patch(side.path(resource, objects, subresource), patch, dryRun="All", kind=kind)

    assert send(open_)["metadata"]["name"] == objects
    refused(fenced, message, send)


def test_an_unbound_claim_gets_no_volume_by_an_update(sides):
    """The host takes spec.volumeName once while there is none: that is how its controller binds."""
    fenced, open_ = sides
    body = change(claim("unbound"), "spec.storageClassName", "nobody-provisions-this")
    for side in sides:
        side.make("persistentvolumeclaims", body)

    def bind(side, name="pv"):
        return side.api.patch(side.path("persistentvolumeclaims", body["metadata"]["name"]),
                              {"spec": {"volumeName": name}}, dryRun="All", kind="merge")

    assert bind(open_)["spec"]["volumeName"] == "pv"
    refused(fenced, "spec.volumeName: is the host's to set", bind)
    assert bind(fenced, None)["metadata"]["name"] == body["metadata"]["name"]


# What the account does not own, and kinds that are none of its business: (method, resource, name, body, message; empty
# where two rules refuse it).
# --- what config.sync.toHost adds -----------------------------------------------------------------------------

NETWORKING, POLICY = "/apis/networking.k8s.io/v1", "/apis/policy/v1"
OWN = {"matchLabels": {"sublet.dev/cluster": "uid", "sublet.dev/namespace": "default"}}


def network_policy(**spec):
    return NETWORKING, "networkpolicies", {"metadata": metadata("np"), "spec": {"podSelector": OWN, **spec}}


def ingress(**spec):
    return NETWORKING, "ingresses", {"metadata": metadata("in"), "spec": {
        "ingressClassName": "nginx", "rules": [{"host": "a.team.example"}], **spec}}


def endpoint_slice(address="10.30.0.7", service=f"db-{HASH}", **endpoint):
    meta = metadata("s")
    meta["labels"] = {**meta["labels"], "kubernetes.io/service-name": service}
    return "/apis/discovery.k8s.io/v1", "endpointslices", {
        "metadata": meta, "addressType": "IPv4", "endpoints": [{"addresses": [address], **endpoint}]}


GATEWAY = "/apis/gateway.networking.k8s.io/v1"


def of_gateway_api(kind, name, spec):
    return GATEWAY, f"{kind.lower()}s", {"apiVersion": GATEWAY[len("/apis/"):], "kind": kind, "metadata": metadata(name),
                                         "spec": spec}


def gateway(listener=None, without=(), **spec):
    whole = {"name": "l", "hostname": "a.team.example", "port": 443, "protocol": "HTTPS",
             "tls": {"certificateRefs": [{"name": f"cert-{HASH}"}]}, **(listener or {})}
    return of_gateway_api("Gateway", "g", {"gatewayClassName": "shared", "listeners": [
        {k: v for k, v in whole.items() if k not in without}], **spec})


def route(kind="HTTPRoute", parent=None, backend=None, **rule):
    return of_gateway_api(kind, "r", {
        "hostnames": ["a.team.example"], "parentRefs": [{"name": f"gw-{HASH}", **(parent or {})}],
        "rules": [{"backendRefs": [{"name": f"svc-{HASH}", "port": 80, **(backend or {})}], **rule}]})


def shared_route(parent, hosts=("a.shared.example",), kind="HTTPRoute"):
    path, plural, body = route(kind, parent)
    body["spec"]["hostnames"] = list(hosts)
    if not hosts:
        del body["spec"]["hostnames"]
    return path, plural, body


def mirror(**backend):
    return [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": f"m-{HASH}", "port": 80, **backend}}}]


def backend_tls(target=None, authority=None, **spec):
    return (GATEWAY, "backendtlspolicies", {
        "apiVersion": GATEWAY[len("/apis/"):], "kind": "BackendTLSPolicy", "metadata": metadata("b"), "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": f"svc-{HASH}", **(target or {})}],
            "validation": {"hostname": "a.team.example", "caCertificateRefs": [
                {"group": "", "kind": "ConfigMap", "name": f"ca-{HASH}", **(authority or {})}]}, **spec}})


def frontend(**ref):
    return {"frontend": {"default": {"validation": {"caCertificateRefs": [
        {"group": "", "kind": "ConfigMap", "name": f"ca-{HASH}", **ref}]}}}}


def device_claim(pool="dev", driver="granted.example", alternative="gpu.example", **over):
    meta = metadata("c")
    meta["labels"]["sublet.dev/pool"] = pool
    return "/apis/resource.k8s.io/v1", "resourceclaims", {"metadata": meta, "spec": {"devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example", **over}},
                     {"name": "f", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.example"},
                                                      {"name": "b", "deviceClassName": alternative}]}],
        "config": [{"opaque": {"driver": driver, "parameters": {"a": 1}}}]}}}


def identity(annotations):
    meta = metadata("a")
    return {**meta, "annotations": {**meta["annotations"], **annotations}}


def annotated(one, key, value="x"):
    root, plural, body = one
    return root, plural, {**body, "metadata": {**body["metadata"], "annotations": {**body["metadata"]["annotations"], key: value}}}


def account(annotations=None, **over):
    return CORE, "serviceaccounts", {"automountServiceAccountToken": False, "metadata": identity(annotations or {}), **over}


SYNCED = {
    "a claim of devices": (device_claim(count=2), None),
    "a claim of another pool": (device_claim("a100"), "spec.devices: a device class"),
    "a class of no pool": (device_claim(deviceClassName="foreign.example"), "spec.devices: a device class"),
    "such a class as an alternative": (device_claim(alternative="foreign.example"), "spec.devices: a device class"),
    "parameters of another driver": (device_claim(driver="foreign.example"), "spec.devices: a device class"),
    "every device": (device_claim(allocationMode="All"), "spec.devices: allocationMode"),
    "taints of devices": (device_claim(tolerations=[{"operator": "Exists"}]), "spec.devices: tolerations"),
    "a Gateway": (gateway(tls=frontend()), None),
    "another class of Gateway": (gateway(gatewayClassName="other"), "spec.gatewayClassName"),
    "a listener of others": (gateway({"hostname": "bank.example"}), "spec.listeners: a host"),
    "a listener for all": (gateway(without=["hostname"]), "spec.listeners: a host"),
    "a certificate of others": (gateway({"tls": {"certificateRefs": [{"name": "cert"}]}}), "spec.listeners: names"),
    "a certificate elsewhere": (gateway({"tls": {"certificateRefs": [{"name": f"c-{HASH}", "namespace": "other"}]}}),
                                "spec.listeners: names"),
    "an authority of others": (gateway(tls=frontend(name="ca")), "spec.tls: names"),
    "routes of all": (gateway({"allowedRoutes": {"namespaces": {"from": "All"}}}), "spec.listeners: only routes"),
    "an address": (gateway(addresses=[{"value": "192.0.2.1"}]), "spec: addresses"),
    "infrastructure": (gateway(infrastructure={"annotations": {"a": "b"}}), "spec: addresses and infra"),
    "a route": (route(filters=mirror()), None),
    "a route of TLS": (route("TLSRoute"), None),
    **{f"an annotation of a {what}'s that names {whose}": (annotated(made, AUTH, name), why)
       for what, made in (("Gateway", gateway()), ("route", route()), ("TLS route", route("TLSRoute")), ("policy", backend_tls()))
       for whose, name, why in (("its own", f"s-{HASH}", None), ("the host's", "research-kubeconfig", "metadata.annotations: names"),
                                ("another namespace's", f"kube-system/s-{HASH}", "metadata.annotations: names"))},
    "a route to a Gateway of others": (route(parent={"name": "gw"}), "spec.parentRefs"),
    "a route to a Gateway of the host": (shared_route({"name": "edge", "namespace": "fence-infra"}), None),
    "a route to one of a mapped namespace": (shared_route({"namespace": "fence-lobby"}, kind="TLSRoute"), None),
    "a route to one that is not shown": (shared_route({"name": "other", "namespace": "fence-infra"}), "spec.parentRefs"),
    "such a route for every host": (shared_route({"name": "edge", "namespace": "fence-infra"}, []), "spec.hostnames"),
    "such a route for hosts of others": (shared_route({"name": "edge", "namespace": "fence-infra"}, [
        "a.shared.example", "a.team.example"]), "spec.hostnames"),
    "such a route for every name below": (shared_route({"name": "edge", "namespace": "fence-infra"}, ["*.shared.example"]),
                                          "spec.hostnames"),
    "such a route for many hosts": (shared_route({"namespace": "fence-lobby"}, ["*.a.shared.example"]), "spec.hostnames"),
    "a route to a Gateway elsewhere": (route(parent={"namespace": "other"}), "spec.parentRefs"),
    "a route to a Service": (route(parent={"group": "", "kind": "Service"}), "spec.parentRefs"),
    "a backend of others": (route(backend={"name": "svc"}), "spec.rules: names a backend"),
    "a backend elsewhere": (route("TLSRoute", backend={"namespace": "other"}), "spec.rules: names a backend"),
    "a mirror to others": (route(filters=mirror(name="svc")), "spec.rules: a filter"),
    "a backend's mirror elsewhere": (route(backend={"filters": mirror(namespace="other")}), "spec.rules: a filter"),
    "an extension of others": (route(filters=[{"type": "ExtensionRef", "extensionRef": {
        "group": "g.example", "kind": "K", "name": "k"}}]), "spec.rules: a filter"),
    "a policy of TLS": (backend_tls(), None),
    "a policy for others' Service": (backend_tls({"name": "svc"}), "spec.targetRefs"),
    "a policy for a Gateway": (backend_tls({"group": "gateway.networking.k8s.io", "kind": "Gateway"}), "spec.targetRefs"),
    "a policy of another authority": (backend_tls(authority={"name": "ca"}), "spec.validation"),
    "a policy with options": (backend_tls(options={"a.example/b": "c"}), "spec.options"),
    "an account": (account({"id.example/role": "arn:aws:iam::1:role/team-a"}), None),
    "an account of one role": (account({"id.example/role": "shared"}), None),
    "an account without a role": (account(), None),
    "an account of another role": (account({"id.example/role": "arn:aws:iam::1:role/admin"}), "metadata.annotations: a value"),
    "a role below a team's": (account({"id.example/role": "arn:aws:iam::1:role/team-a/admin"}), "metadata.annotations: a value"),
    "no name of a role": (account({"id.example/role": "arn:aws:iam::1:role/team-"}), "metadata.annotations: a value"),
    "another identity": (account({"eks.amazonaws.com/role-arn": "shared"}), "metadata.annotations: a "),
    "an account with a token": (account(automountServiceAccountToken=True), "automountServiceAccountToken: must be false"),
    "an account that says nothing of its token": (account(automountServiceAccountToken=None), "automountServiceAccountToken"),
    "an account with a Secret": (account(secrets=[{"name": "s"}]), "secrets and imagePullSecrets"),
    "an account with the registry's Secret": (account(imagePullSecrets=[{"name": "s"}]), "secrets and imagePullSecrets"),
    "an account of another name": ((CORE, "serviceaccounts", {"automountServiceAccountToken": False, "metadata": {
        **metadata("a"), "name": "a"}}), "metadata.name"),
    "a role of another kind": ((CORE, "configmaps", {"metadata": identity({"id.example/role": "shared"})}),
                               "metadata.annotations: a key"),
    "a slice": (endpoint_slice(), None),
    "a slice of another Service": (endpoint_slice(service="kubernetes"), "service-name"),
    "a slice of another address": (endpoint_slice("10.96.0.1"), "endpoints: an address"),
    "a slice on a node": (endpoint_slice(nodeName="cpu-1"), "endpoints: nodes"),
    "a budget": ((POLICY, "poddisruptionbudgets", {"metadata": metadata("b"), "spec": {"selector": OWN}}), None),
    "a policy": (network_policy(ingress=[{"from": [{"podSelector": OWN}, {"ipBlock": {"cidr": "10.20.1.0/24"}}]}],
                                egress=[]), None),
    "an Ingress": (ingress(tls=[{"hosts": ["*.team.example"]}]), None),
    "an annotation of the admin's": (annotated(ingress(), "patched.example/note"), None),
    "a Secret of the tenant's": (annotated(ingress(), AUTH, f"s-{HASH}"), None),
    "a Secret of another namespace": (annotated(ingress(), AUTH, f"kube-system/s-{HASH}"), "metadata.annotations: names"),
    "a Secret of the host's": (annotated(ingress(), AUTH, "research-kubeconfig"), "metadata.annotations: names"),
    "Services of the tenant's": (annotated(ingress(), BACKENDS, f"a-{HASH},b-{HASH}"), None),
    "a Service of the host's among them": (annotated(ingress(), BACKENDS, f"a-{HASH},kube-dns"), "metadata.annotations: a list names"),
    **{f"host names of a {one[1]}, {which}": (annotated(one, RECORD, hosts), why)
       for one in (ingress(), (CORE, "services", service()), (CORE, "pods", pod()))
       for which, hosts, why in (("of the lists", "a.team.example, b.shared.example", None),
                                 ("of others", "bank.example", "metadata.annotations: a host name"),
                                 ("some of others", "a.team.example,bank.example", "metadata.annotations: a host name"))},
    "an annotation of no one's": (annotated(ingress(), "other.example/note"), "metadata.annotations: a key"),
    "a budget of another name": ((POLICY, "poddisruptionbudgets", {"metadata": {**metadata("b"), "name": "b"}, "spec": {
        "selector": OWN}}), "metadata.name"),
    "a policy for all pods": (network_policy(podSelector={}), "spec.podSelector: is not narrowed"),
    "from everywhere": (network_policy(ingress=[{}]), "spec.ingress: reaches beyond"),
    "to everywhere": (network_policy(egress=[{"to": [{"podSelector": OWN}]}, {"ports": [{"port": 1}]}]),
                      "spec.egress: reaches beyond"),
    "from other namespaces": (network_policy(ingress=[{"from": [{"namespaceSelector": {}, "podSelector": OWN}]}]),
                              "spec.ingress: reaches beyond"),
    "from others' pods": (network_policy(ingress=[{"from": [{"podSelector": {}}]}]), "spec.ingress: reaches beyond"),
    "to a wide range": (network_policy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
                        "spec.egress: reaches beyond"),
    "another host": (ingress(rules=[{"host": "bank.example"}]), "spec.rules: a host"),
    "a deeper host": (ingress(rules=[{"host": "a.b.team.example"}]), "spec.rules: a host"),
    "every host": (ingress(rules=[{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
        "service": {"name": "s", "port": {"number": 80}}}}]}}]), "spec.rules: a host"),
    "another certificate": (ingress(tls=[{"hosts": ["bank.example"]}]), "spec.tls: a host"),
    "another class": (ingress(ingressClassName="other"), "spec.ingressClassName"),
    "a default backend": (ingress(defaultBackend={"service": {"name": "s", "port": {"number": 80}}}),
                          "spec.defaultBackend"),
}


@pytest.mark.parametrize("object_,message", SYNCED.values(), ids=SYNCED.keys())
def test_kinds_of_sync_to_host(sides, object_, message):
    group, resource, body = object_

    def create(side):
        return side.api.post(side.path(resource, group=group), body, dryRun="All")

    kept = create(sides[1])
    if '"tolerations"' in json.dumps(body) and '"tolerations"' not in json.dumps(kept):
        message = None  # the host's gate for taints of devices is off: nothing of them arrives
    if message:
        refused(sides[0], message, create)
    else:
        assert create(sides[0])


NOT_OURS = {
    "its configuration": ("PATCH", "configmaps", "research", {"data": {"config.yaml": "x"}}, "metadata.name: is not"),
    "a Secret": ("PATCH", "secrets", "registry", {"data": {"a": "Yg=="}}, "metadata.name: is not the name"),
    "a release of Helm": ("PATCH", "secrets", "sh.helm.release.v1.research.v1", {"data": {"release": "YQ=="}},
                          ""),
    "a release of Helm, deleted": ("DELETE", "secrets", "sh.helm.release.v1.research.v1", None, "metadata.name: is not the"),
    "its store, deleted": ("DELETE", "persistentvolumeclaims", "data-research-0", None, "metadata.name: is not the name"),
    "its own pod, deleted": ("DELETE", "pods", "research-0", None, "metadata.name: is not the name"),
    "its Service": ("PATCH", "services", "research", {"metadata": {"labels": {"a": "b"}}}, ""),
    "endpoints": ("POST", "endpoints", "", {"metadata": {"name": "x"}}, "only pods, services, "),
    "an account": ("POST", "serviceaccounts", "", {"metadata": {"name": "x"}, "automountServiceAccountToken": False},
                   "metadata.name: is not the name"),
    "a token": ("POST", "serviceaccounts/default/token", "", {"spec": {"expirationSeconds": 600}}, "only pods, services, "),
    "an eviction": ("POST", f"pods/there-{HASH}/eviction", "", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"there-{HASH}"}}, "only pods, services, "),
    "a status": ("PATCH", f"pods/there-{HASH}/status", "", {"status": {"message": "x"}}, "status: only conditions of readiness gates"),
    "the quota": ("PATCH", "resourcequotas", "research", {"spec": {"hard": {"pods": "9999"}}}, "only pods, services, "),
    "the account of pods": ("PATCH", "serviceaccounts", "research-pods", {"metadata": {"annotations": {
        "id.example/role": "shared"}}}, "metadata.name: is not the name"),
}


@pytest.mark.parametrize("method,resource,name,body,message", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_what_is_not_the_programs(sides, objects, method, resource, name, body, message):
    fenced, open_ = sides
    for side in sides:
        if name == "research-0":
            eventually(lambda s=side: s.admin.get(s.path("pods", "research-0")), 60, "the control plane's pod")

    def send(side):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return side.api.request(method, side.path(resource, name), body or {"dryRun": ["All"]}, content_type=kind,
                                query={"dryRun": "All"})

    assert send(open_)
    refused(fenced, message, send)


def test_what_is_cluster_scoped_or_elsewhere(sides):
    """With every right there is, the account writes in its namespace alone."""
    for path, body in ((f"{CORE}/namespaces/default/configmaps", config_map()),
                       (f"{CORE}/namespaces", {"metadata": {"name": "x"}}),
                       ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                           "metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin",
                                                                  "apiGroup": "rbac.authorization.k8s.io"}})):
        def create(side, path=path, body=body):
            return side.api.post(path, body, dryRun="All")

        assert create(sides[1])
        refused(sides[0], "", create)


def test_the_kubeconfigs_secret_is_the_programs(sides):
    fenced, _ = sides
    body = {"metadata": {"name": "research-kubeconfig", "labels": {"app.kubernetes.io/managed-by": "sublet"}},
            "data": {"value": "YQ=="}}
    fenced.api.post(fenced.path("secrets"), body)
    fenced.api.patch(fenced.path("secrets", "research-kubeconfig"), {"data": {"value": "Yg=="}})
    refused(fenced, "metadata.finalizers: are not sent", lambda s: s.api.patch(
        s.path("secrets", "research-kubeconfig"), {"metadata": {"finalizers": ["a.example/b"]}}))
    refused(fenced, "metadata.name: is not the name", lambda s: s.api.delete(s.path("secrets", "research-kubeconfig")))


def test_the_reported_demand_is_the_programs(sides):
    """Numbers of GPUs under one name, and nothing else; without fleet.bindings not even that."""
    fenced, open_ = sides
    body = {"metadata": {"name": "sublet-gpu-demand", "labels": {"app.kubernetes.io/managed-by": "sublet"}}, "data": {"a100": "3"}}
    fenced.api.post(fenced.path("configmaps"), body)
    open_.api.post(open_.path("configmaps"), body)

    def patch(body):
        return lambda s: s.api.patch(s.path("configmaps", "sublet-gpu-demand"), body)
    patch({"data": {"a100": "4", "l4": "0"}})(fenced)
    many = {f"pool-{i}": "1" for i in range(65)}
    for data in ({"data": {"a100": "all"}}, {"data": {"a100": "-1"}}, {"data": {"x": "99999999999"}}, {"binaryData": {"bytes": "AAAA"}},
                 {"data": many}):
        refused(fenced, "data: a number of GPUs", patch(data))
        patch(data)(open_)
    marks = {"annotations": {"sublet.dev/cluster-uid": "1-2-3", "sublet.dev/epoch": "e"}, "labels": {"app.kubernetes.io/instance": "research"}}
    patch({"metadata": marks, "data": {f"pool-{i}": "1" for i in range(62)}})(fenced)
    for message, change in (("metadata.labels: say whose", {"metadata": {"labels": {"app.kubernetes.io/part-of": "x"}}}),
                            ("metadata.annotations: say whose", {"metadata": {"annotations": {"sublet.dev/note": "x"}}}),
                            ("metadata.annotations: say whose", {"metadata": {"annotations": {"sublet.dev/epoch": "x" * 254}}}),
                            ("immutable: what is reported", {"immutable": True})):
        refused(fenced, message, patch(change))
        patch(change)(open_)
    refused(fenced, "metadata.finalizers: are not sent", patch({"metadata": {"finalizers": ["a.example/b"]}}))
    refused(fenced, "metadata.name: is not the name", lambda s: s.api.post(
        s.path("configmaps"), {**body, "metadata": {"name": "sublet-gpu-demand-x"}}))


def test_the_lease_is_the_programs_and_no_other(sides):
    fenced, open_ = sides

    def path(side, name=""):
        return side.path("leases", name, group="/apis/coordination.k8s.io/v1")

    def create(side, name="other"):
        return side.api.post(path(side), {"metadata": {"name": name}, "spec": {"holderIdentity": "x"}}, dryRun="All")

    assert create(open_)
    refused(fenced, "only pods, services, ", create)
    assert create(fenced, "research")
    fenced.api.post(path(fenced), {"metadata": {"name": "research"}, "spec": {"holderIdentity": "x"}})
    fenced.api.patch(path(fenced, "research"), {"spec": {"holderIdentity": "y"}})
    refused(fenced, "only pods, services, ", lambda s: s.api.delete(path(s, "research")))


def test_updates_are_judged_by_what_changed(sides, real_host):
    """What webhooks, schedulers and admins put there since is theirs, and stays."""
    fenced, _ = sides
    name = fenced.make("pods", pod("touched"))
    path = fenced.path("pods", name)
    uid = real_host.api.get(f"{CORE}/namespaces/{fenced.namespace}")["metadata"]["uid"]
    real_host.api.patch(path, {"metadata": {
        "labels": {"admin.example/x": "y"}, "annotations": {"admin.example/x": "y"}, "finalizers": ["admin.example/x"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": fenced.namespace, "uid": uid}]}})
    now = real_host.api.get(path)["spec"].get("tolerations", [])
    real_host.api.patch(path, {"spec": {"tolerations": now + [{"key": "admin.example/x", "operator": "Exists"}]}})
    eventually(lambda: real_host.api.get(path)["spec"].get("nodeName"), 60, "the scheduler")
    fenced.api.patch(path, {"metadata": {"labels": {f"sublet.dev/l-{HASH}": "z"}}})
    fenced.api.patch(path, {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}, kind="strategic-merge")
    fenced.api.patch(fenced.path("pods", name, "ephemeralcontainers"), {
        "spec": {"ephemeralContainers": [{"name": "look", "image": "i", "env": VOID}]}}, kind="strategic-merge")
    waits = fenced.make("pods", change(pod("waits"), "spec.nodeSelector", {"rack": "none"}))
    fenced.api.patch(fenced.path("pods", waits, "resize"), {  # simulated kubelets report no resources of running pods
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}}, kind="strategic-merge")
    gates = [{"conditionType": "a.example/b"}, {"conditionType": "Initialized"}]
    gated = fenced.path("pods", fenced.make("pods", change(pod("gated"), "spec.readinessGates", gates)), "status")
    fenced.api.patch(gated, {"status": {"conditions": [{"type": "a.example/b", "status": "True"}]}}, kind="strategic-merge")
    refused(fenced, "status.conditions: a type that", lambda s: s.api.patch(
        gated, {"status": {"conditions": [{"type": "Initialized", "status": "Unknown"}]}}, kind="strategic-merge"))
    refused(fenced, "status.conditions: ", lambda s: s.api.patch(gated, {"status": {"conditions": None}}))
    refused(fenced, "metadata.labels: a key", lambda s: s.api.patch(path, {"metadata": {"labels": {"admin.example/x": "z"}}}))
    real_host.api.patch(path, {"metadata": {"finalizers": None}})
    fenced.api.delete(path)


def test_the_expressions_fit_the_types(sides, real_host):
    """kube-controller-manager checks them against the schemas of what they match."""
    fenced, open_ = sides
    assert len(policies(real_host, fenced)) == 19 and not policies(real_host, open_)
    for name in policies(real_host, fenced):
        policy = real_host.api.get(f"{POLICIES}/{name}")
        assert not policy["status"].get("typeChecking", {}).get("expressionWarnings"), policy["status"]
        assert policy["spec"]["failurePolicy"] == "Fail"
