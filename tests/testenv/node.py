# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes host with one real node: kubelet, containerd, runc and kube-proxy on a Machine, CoreDNS as a pod.

Nothing is simulated and nothing is pulled: images are made here and imported. Pods and Services have addresses that the
test session reaches as well, by routes to the machine.
"""
import json
import os

from . import binaries, images
from .host import HostCluster
from .machine import CNI, Machine
from .wait import UNSET, eventually

NODE = "node-1"
DOMAIN = "cluster.local"
IMAGES = "sublet.test"  # in place of a registry
TOOLS, AGNHOST, COREDNS, SUBLET, PAUSE = (f"{IMAGES}/{n}:1" for n in ("tools", "agnhost", "coredns", "sublet", "pause"))
DISKS = "disks"  # a storage class: directories of the machine, which are given to the group of the pod that uses them
DISK_COUNT = 12
# What the host's DNS knows beside the host's Services.
OUTSIDE = {"www.example.com": "192.0.2.80", "mail.corp.example": "192.0.2.25"}

COREFILE = """.:53 {
    errors
    health
    ready
    kubernetes %s in-addr.arpa {
        pods insecure
        ttl 5
        fallthrough in-addr.arpa
    }
    file /etc/coredns/outside .
    cache 5
}
"""


class NodeHost(HostCluster):
    """host.start() ... host.stop(). host.machine is where pods run; host.load(archive) imports an image."""

    ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ON_NODE = ("containerd", "kubelet", "kube-proxy")

    def __init__(self, directory):
        self.machine = Machine(NODE, os.path.join(str(directory), NODE))
        super().__init__(directory, address=self.machine.outside, services=self.machine.services)
        self.dns_address = str(self.services[10])
        self.node_dir = self.machine.dir
        self.containerd = binaries.node_program("containerd")  # a directory
        self.socket = "/run/containerd/containerd.sock"

    # --- life -----------------------------------------------------------------------------------

    def start(self):
        try:
            self.machine.start()
            super().start()
            self._start_node()
            self._start_dns()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """The machine goes last, and with it every container: the API server has its address there."""
        for name in reversed(self.ON_NODE):
            if name in self.components:
                self.components[name].kill()
        super().stop()
        self.machine.stop()

    def roll_back(self, directory):
        """As after a restore of any cluster, the agents of the node begin again; containers go on. A kubelet would wait for
        the revision that it has seen."""
        super().roll_back(directory)
        for name in self.ON_NODE[1:]:
            self.restart_component(name)

    def _start_node(self):
        for name, argv in (("containerd", self._containerd()), ("kubelet", self._kubelet()),
                           ("kube-proxy", self._kube_proxy())):
            self.components[name] = self.machine.process(name, argv, {"PATH": f"{self.containerd}:{os.environ['PATH']}"})
        self.start_component("containerd")
        self._load_images()
        self._create_disks()
        for name in self.ON_NODE[1:]:
            self.start_component(name)

    def wait_ready(self, name, timeout=180):
        if name not in self.ON_NODE:
            super().wait_ready(name, timeout)
            return
        ready = {"containerd": lambda: self.ctr("version"), "kubelet": lambda: self.node_if_ready(NODE),
                 "kube-proxy": lambda: "KUBE-SERVICES" in self.machine.run("iptables-save", "-t", "nat")}[name]

        def works():
            self.components[name].check()
            return ready()

        eventually(works, timeout, f"{name} to be ready", also=UNSET)

    # --- images ---------------------------------------------------------------------------------

    def ctr(self, *args):
        """containerd's own client, in the namespace of its images that the kubelet uses."""
        return self.machine.run(os.path.join(self.containerd, "ctr"), "-a", self.socket, "-n", "k8s.io", *args)

    def load(self, archive):
        self.ctr("image", "import", "--local", archive)

    def _load_images(self):
        path = os.path.join(self.node_dir, "image.tar")
        for name, make in ((PAUSE, images.pause), (TOOLS, images.tools), (AGNHOST, images.agnhost),
                           (COREDNS, images.coredns)):
            self.load(make().write(path, name))
        self.load(images.sublet(path, SUBLET))
        os.unlink(path)

    # --- what runs on the node ------------------------------------------------------------------

    def _file(self, name, content):
        path = os.path.join(self.node_dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))  # which is YAML, too
        return path

    def _containerd(self):
        runtime = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": binaries.node_program("runc")}}
        return [os.path.join(self.containerd, "containerd"), "--config", self._file("containerd.toml", _toml({
            "version": 3, "root": os.path.join(self.node_dir, "containerd"), "state": "/run/containerd",
            "grpc": {"address": self.socket},
            "plugins": {
                "io.containerd.cri.v1.images": {"pinned_images": {"sandbox": PAUSE}},
                # Where the session itself may not lower it, every sandbox would fail.
                "io.containerd.cri.v1.runtime": {"restrict_oom_score_adj": True,
                                                 "containerd": {"runtimes": {"runc": runtime}},
                                                 "cni": {"bin_dirs": [CNI], "conf_dir": self._network()}}}}))]

    def _network(self):
        """Every pod has a link of its own to the node, which routes: kube-proxy sees all packets, without a bridge's
        settings of the kernel."""
        ipam = {"type": "host-local", "ranges": [[{"subnet": self.machine.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
        path = self._file("cni/10-pods.conflist", {
            "cniVersion": "1.0.0", "name": "pods",
            "plugins": [{"type": "ptp", "ipMasq": False, "ipam": ipam},
                        {"type": "portmap", "capabilities": {"portMappings": True}}]})
        return os.path.dirname(path)

    def _kubelet(self):
        config = self._file("kubelet.yaml", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.machine.cgroup}", "failCgroupV1": False,
            "enforceNodeAllocatable": [], "failSwapOn": False, "protectKernelDefaults": True,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": self.pki.path("ca.crt")}},
            "authorization": {"mode": "Webhook"},
            "clusterDNS": [self.dns_address], "clusterDomain": DOMAIN,
            "resolvConf": self._file("resolv.conf", f"nameserver {self.dns_address}\nsearch corp.example\n"),
            "healthzPort": 0, "readOnlyPort": 0, "syncFrequency": "10s",
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100})
        return [os.path.join(self.bin, "kubelet"), f"--config={config}", f"--hostname-override={NODE}",
                "--kubeconfig=" + self._kubeconfig("kubelet", f"/O=system:nodes/CN=system:node:{NODE}"),
                "--root-dir=" + os.path.join(self.node_dir, "kubelet"), f"--node-ip={self.machine.address}"]

    def _kube_proxy(self):
        """It leaves the kernel's table of connections as it is, which is not the machine's own."""
        return [os.path.join(self.bin, "kube-proxy"), f"--hostname-override={NODE}", "--proxy-mode=iptables",
                "--kubeconfig=" + self._kubeconfig("kube-proxy", "/CN=system:kube-proxy"),
                f"--cluster-cidr={self.machine.pods}", "--conntrack-max-per-core=0",
                "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s"]

    def _apiserver(self, extra):
        crt, key = self.pki.issue("kubelet-client", "/O=system:masters/CN=kubelet-client")
        return super()._apiserver([f"--kubelet-client-certificate={crt}", f"--kubelet-client-key={key}",
                                   "--endpoint-reconciler-type=lease", "--enable-aggregator-routing=true", *extra])

    # --- content --------------------------------------------------------------------------------

    def _create_disks(self):
        self.api.post("/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": DISKS},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
        for i in range(DISK_COUNT):
            path = os.path.join(self.node_dir, "disks", str(i))
            os.makedirs(path)
            self.api.post("/api/v1/persistentvolumes", {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"disk-{i}"},
                "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": DISKS,
                         "local": {"path": path}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
                             {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}]}}}})

    def _start_dns(self):
        """The host's DNS as clusters have it: CoreDNS behind kube-system/kube-dns."""
        self.kubectl.apply(_dns_objects(self.dns_address, {"Corefile": COREFILE % DOMAIN, "outside": _outside_zone()}))
        self.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s")


def _outside_zone():
    """A root zone: every name that is not in it does not exist."""
    lines = [". 60 IN SOA ns.example. admin.example. 1 60 60 60 60", ". 60 IN NS ns.example."]
    for name, ip in OUTSIDE.items():
        lines += [f"{name}. 60 IN A {ip}", f"{'.'.join(reversed(ip.split('.')))}.in-addr.arpa. 60 IN PTR {name}."]
    return "\n".join(lines) + "\n"


def _dns_objects(address, files):
    labels = {"k8s-app": "kube-dns"}
    meta = {"name": "coredns", "namespace": "kube-system"}
    rules = [{"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
             {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]
    container = {"name": "coredns", "image": COREDNS, "args": ["-conf", "/etc/coredns/Corefile"],
                 "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}]}
    spec = {"serviceAccountName": "coredns", "dnsPolicy": "Default", "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": "coredns"}}]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "coredns"}, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "coredns"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coredns"},
         "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": files},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
         "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
         "spec": {"clusterIP": address, "selector": labels, "ports": [
             {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]}}]


def _toml(value, path=()):
    """Tables of tables, as containerd's configuration is; keys quoted, for they have dots."""
    plain = {k: v for k, v in value.items() if not isinstance(v, dict)}
    text = f"[{'.'.join(path)}]\n" if path else ""
    text += "".join(f"{k} = {str(v).lower() if isinstance(v, bool) else repr(v)}\n" for k, v in plain.items())
    return text + "".join(_toml(v, (*path, f'"{k}"')) for k, v in value.items() if isinstance(v, dict))
