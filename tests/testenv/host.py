# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane on free ports of 127.0.0.1, with simulated nodes.

Real: etcd, kube-apiserver, kube-controller-manager, kube-scheduler. Simulated, by kwok: what a
kubelet would report. Containers therefore never run here; everything up to that point is Kubernetes.
"""
import datetime
import http.client
import ipaddress
import json
import os
import shutil
import ssl

from . import binaries, nodes
from .api import Api, ApiError
from .kubectl import Kubectl
from .pki import Pki, derive_kubeconfig, write_kubeconfig
from .process import GO, Port, Process, stop_all
from .wait import AWAY, eventually

SERVICE_CIDR = "10.96.0.0/16"
POD_CIDR = "10.128.0.1/12"
START_TIMEOUT = 180


class HostApi(Api):
    """A client of a host that is not the subject: a read that a starved server gave up after its minute (504) is made again."""

    READS = 3

    def request(self, method, path, body=None, **kw):
        for left in reversed(range(self.READS if method == "GET" else 1)):
            try:
                return super().request(method, path, body, **kw)
            except ApiError as e:
                if e.code != 504 or not left:
                    raise


class HostCluster:
    """host.start() ... host.stop(); each component is a Process in host.components[name].

    Components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.
    `durable` makes etcd sync its log and every component collect its garbage as often as in production; `api_args` are
    added to kube-apiserver's. `address` is where it serves, which pods that really run must reach. `version` is that of
    the control plane, `gates` are features that all of it has on.
    """

    ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    def __init__(self, directory, durable=False, api_args=(), address="127.0.0.1", services=SERVICE_CIDR, version=None, gates=()):
        self.dir = str(directory)
        self.address = address
        self.services = ipaddress.ip_network(services)
        os.makedirs(self.dir, exist_ok=True)
        self.bin = binaries.host_directory(("kubectl", "stages.yaml"))
        self.ports = {n: Port() for n in self.ORDER + ("etcd-peer",)}
        self.url = f"https://{address}:{self.ports['kube-apiserver']}"
        self.pki = self._make_pki()
        self.kubeconfig = self._kubeconfig("admin", "/O=system:masters/CN=admin")
        argv = {
            "etcd": lambda: self._etcd(durable),
            "kube-apiserver": lambda: self._apiserver(api_args),
            "kube-controller-manager": self._controller_manager,
            "kube-scheduler": self._scheduler,
            "kwok": self._kwok,
        }
        features = ["--feature-gates=" + ",".join(f"{g}=true" for g in gates)] if gates else []
        self.components = {n: Process(n, [binaries.host_component(n, version)] + argv[n]() + (features if n.startswith("kube-") else []),
                                      self.dir, env={} if durable else GO)
                           for n in self.ORDER}
        self.kubectl = Kubectl(os.path.join(self.bin, "kubectl"), self.kubeconfig, self.dir)
        self.api = HostApi(self.kubeconfig)

    # --- life -----------------------------------------------------------------------------------

    def start(self):
        """Starts everything and waits until the control plane serves and its controllers work."""
        try:
            for name in ("etcd", "kube-apiserver"):
                self.start_component(name)
            for name in self.ORDER[2:]:
                self.components[name].start()
            for name in self.ORDER[2:]:
                self.wait_ready(name)
            eventually(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"),
                       START_TIMEOUT, "the default service account of the host")
            self._create_storage_class()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Ends every component and removes its data; the logs stay."""
        self._remove_volumes()
        self.api.close()
        for name in reversed(self.ORDER):
            stop_all([self.components[name]])
        for port in self.ports.values():
            port.close()
        shutil.rmtree(os.path.join(self.dir, "etcd-data"), ignore_errors=True)

    def start_component(self, name):
        """Starts one component (after stop, kill) and waits until it is ready."""
        self.components[name].start()
        self.wait_ready(name)

    def stop_component(self, name, timeout=5):
        """SIGTERM, then SIGKILL: with watches open kube-apiserver would take a minute to end by itself."""
        self.api.close()
        stop_all([self.components[name]], timeout)

    def kill_component(self, name):
        self.api.close()
        self.components[name].kill()

    def pause_component(self, name):
        """SIGSTOP: its connections stay open and nothing answers."""
        self.components[name].pause()

    def resume_component(self, name):
        self.components[name].resume()

    def restart_component(self, name, kill=False):
        """Stops (or kills) and starts one component on the same port; waits until it is ready."""
        (self.kill_component if kill else self.stop_component)(name)
        self.start_component(name)

    def copy_state(self, directory):
        """Copies etcd's data as a backup of the host would have it; the host goes on."""
        self.stop_component("etcd")
        shutil.copytree(os.path.join(self.dir, "etcd-data"), directory)
        self.start_component("etcd")
        self.wait_ready("kube-apiserver")

    def roll_back(self, directory):
        """Restores the host to an earlier state: every component ends and begins again on the copy. Revisions go back."""
        data = os.path.join(self.dir, "etcd-data")
        for name in reversed(self.ORDER):
            self.stop_component(name)
        shutil.rmtree(data)
        shutil.copytree(directory, data)
        for name in self.ORDER:
            self.start_component(name)

    def wait_ready(self, name, timeout=START_TIMEOUT):
        """Waits for the component's own readiness answer; raises at once when the process has ended."""
        process = self.components[name]
        scheme, path = {"etcd": ("http", "/readyz"), "kube-apiserver": ("https", "/readyz"),
                        "kwok": ("http", "/healthz")}.get(name, ("https", "/healthz"))

        def ready():
            process.check()
            address = self.address if name == "kube-apiserver" else "127.0.0.1"
            return _answers_ok(scheme, address, self.ports[name].number, path)

        eventually(ready, timeout, f"{name} to be ready", also=AWAY)

    # --- content --------------------------------------------------------------------------------

    def add_gpu_node(self, name, pool, **kw):
        """Adds a simulated GPU machine and waits until it is Ready; see nodes.gpu_node."""
        return self.add_node(nodes.gpu_node(name, pool, **kw))

    def add_cpu_node(self, name, **kw):
        """Adds a simulated machine without GPUs; see nodes.cpu_node."""
        return self.add_node(nodes.cpu_node(name, **kw))

    def add_node(self, node):
        self.api.post("/api/v1/nodes", node)
        return eventually(lambda: self.node_if_ready(node["metadata"]["name"]), 60,
                          f"node {node['metadata']['name']} to be Ready")

    def node_if_ready(self, name):
        node = self.api.get(f"/api/v1/nodes/{name}")
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
        untaken = [t for t in node["spec"].get("taints", []) if t["key"] == "node.kubernetes.io/not-ready"]
        return node if conditions.get("Ready") == "True" and not untaken else None

    def remove_node(self, name):
        self.api.delete(f"/api/v1/nodes/{name}")

    def create_namespace(self, name, labels=None):
        """Creates a namespace and waits for what the controllers put into it."""
        self.api.post("/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
        eventually(lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), 60,
                   f"the service account of namespace {name}")

    def delete_namespace(self, name):
        """Requests the deletion of a namespace; does not wait."""
        try:
            self.api.delete(f"/api/v1/namespaces/{name}")
        except ApiError as e:
            if e.code not in (404, 409):
                raise

    def user_kubeconfig(self, user, groups=()):
        """A kubeconfig of a user with a client certificate; RBAC decides what it may."""
        subject = "".join(f"/O={g}" for g in groups) + f"/CN={user}"
        return self._kubeconfig("user-" + user.replace(":", "-"), subject)

    def service_account_kubeconfig(self, namespace, name):
        """Creates a service account and returns a kubeconfig that holds a token of it."""
        return derive_kubeconfig(os.path.join(self.dir, f"{namespace}-{name}.kubeconfig"),
                                 self.kubeconfig, token=self.api.create_service_account(namespace, name))

    # --- how each component is called -------------------------------------------------------------

    def _etcd(self, durable):
        client = f"http://127.0.0.1:{self.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        argv = ["--name=host", "--data-dir=" + os.path.join(self.dir, "etcd-data"),
                "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
                "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
                "--initial-cluster=host=" + peer, "--log-level=warn"]
        return argv if durable else argv + ["--unsafe-no-fsync"]

    def _apiserver(self, extra):
        crt, key = self.pki.issue("server", "/CN=kube-apiserver", hosts=(
            self.address, str(self.services[1]), "localhost", "kubernetes", "kubernetes.default",
            "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"))
        proxy_crt, proxy_key = self.pki.issue("front-proxy", "/CN=front-proxy")
        return [f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}",
                f"--secure-port={self.ports['kube-apiserver']}", f"--bind-address={self.address}",
                f"--advertise-address={self.address}", "--endpoint-reconciler-type=none",
                f"--tls-cert-file={crt}", f"--tls-private-key-file={key}",
                "--client-ca-file=" + self.pki.path("ca.crt"),
                "--requestheader-client-ca-file=" + self.pki.path("ca.crt"),
                "--requestheader-allowed-names=front-proxy",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                f"--proxy-client-cert-file={proxy_crt}", f"--proxy-client-key-file={proxy_key}",
                "--service-account-key-file=" + self.pki.path("sa.pub"),
                "--service-account-signing-key-file=" + self.pki.path("sa.key"),
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-cluster-ip-range={self.services}",
                "--kubelet-preferred-address-types=InternalIP",
                "--authorization-mode=Node,RBAC", "--allow-privileged=true", *self._policies(), *extra]

    @staticmethod
    def _policies():
        """What serves MutatingAdmissionPolicies, as from 1.36 on by itself: tests inject sidecars by them."""
        return [] if binaries.host_minor() >= 36 else [
            "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"]

    def _controller_manager(self):
        config = self._kubeconfig("controller-manager", "/CN=system:kube-controller-manager")
        return ["--kubeconfig=" + config, "--authentication-kubeconfig=" + config,
                "--authorization-kubeconfig=" + config,
                "--service-account-private-key-file=" + self.pki.path("sa.key"),
                "--root-ca-file=" + self.pki.path("ca.crt"),
                "--cluster-signing-cert-file=" + self.pki.path("ca.crt"),
                "--cluster-signing-key-file=" + self.pki.path("ca.key"),
                "--use-service-account-credentials", "--leader-elect=false",
                "--enable-hostpath-provisioner", "--node-monitor-grace-period=2m",
                "--resource-quota-sync-period=30s",  # a recount beside its cache may lose a pod until the next one
                "--kube-api-qps=100", "--kube-api-burst=200", "--bind-address=127.0.0.1",
                "--cert-dir=" + os.path.join(self.dir, "controller-manager"),
                f"--secure-port={self.ports['kube-controller-manager']}"]

    def _scheduler(self):
        config = self._kubeconfig("scheduler", "/CN=system:kube-scheduler")
        return ["--kubeconfig=" + config, "--authentication-kubeconfig=" + config,
                "--authorization-kubeconfig=" + config, "--leader-elect=false",
                "--bind-address=127.0.0.1", "--cert-dir=" + os.path.join(self.dir, "scheduler"),
                f"--secure-port={self.ports['kube-scheduler']}"]

    def _stages(self):
        """kwok's stages, where pods that may end do: kwok's own rule looks for a Job as owner, and pods of
        a virtual cluster have no owner on the host."""
        with open(os.path.join(self.bin, "stages.yaml"), encoding="utf-8") as f:
            text = f.read()
        owned = """    - key: '.metadata.ownerReferences.[].kind'
      operator: 'In'
      values:
      - 'Job'
"""
        assert text.count(owned) == 1, "kwok's stage for Jobs is not as it was"
        path = os.path.join(self.dir, "stages.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(owned, """    - key: '.spec.restartPolicy'
      operator: 'In'
      values:
      - 'Never'
      - 'OnFailure'
"""))
        return path

    def _containers(self):
        """What kwok answers for a container, in place of a kubelet: its log is a file of ours, exec runs the
        command here, a forwarded port gives back what it gets."""
        self.container_log = os.path.join(self.dir, "container.log")
        with open(self.container_log, "w", encoding="utf-8"):
            pass
        specs = {"ClusterLogs": {"logs": [{"logsFile": self.container_log, "follow": True}]},
                 "ClusterAttach": {"attaches": [{"logsFile": self.container_log}]},
                 "ClusterExec": {"execs": [{"local": {"workDir": self.dir}}]},
                 "ClusterPortForward": {"forwards": [{"command": ["/bin/cat"]}]}}
        path = os.path.join(self.dir, "containers.yaml")
        with open(path, "w", encoding="utf-8") as f:
            for kind, spec in specs.items():
                json.dump({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind,
                           "metadata": {"name": "all"}, "spec": spec}, f)
                f.write("\n---\n")
        return path

    def write_log(self, text):
        """Appends lines to what every container of this host says, as a container runtime keeps them."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        with open(self.container_log, "a", encoding="utf-8") as f:
            f.writelines(f"{now} stdout F {line}\n" for line in text.splitlines())

    def clear_log(self):
        with open(self.container_log, "w", encoding="utf-8"):
            pass

    def _kwok(self):
        return ["--kubeconfig=" + self.kubeconfig, "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                "--config=" + self._stages(), "--config=" + self._containers(), "--cidr=" + POD_CIDR,
                "--node-ip=127.0.0.1", f"--node-port={self.ports['kwok']}",
                "--node-lease-duration-seconds=40", "--v=WARN",
                f"--server-address=127.0.0.1:{self.ports['kwok']}"]

    # --- parts ----------------------------------------------------------------------------------

    def _make_pki(self):
        pki = Pki(os.path.join(self.dir, "pki"))
        pki.key("sa")
        return pki

    def _kubeconfig(self, name, subject):
        crt, key = self.pki.issue(name, subject)
        return write_kubeconfig(os.path.join(self.dir, f"{name}.kubeconfig"), self.url,
                                self.pki.path("ca.crt"), cert=crt, key=key)

    def _create_storage_class(self):
        """Claims of class "standard", the default, are provisioned by the controller manager itself."""
        self.api.post("/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete"})

    def _remove_volumes(self):
        """The provisioner makes directories outside of ours, and names them in the volumes."""
        if not self.components["kube-apiserver"].alive:
            return
        try:
            for pv in self.api.get("/api/v1/persistentvolumes")["items"]:
                path = pv["spec"].get("hostPath", {}).get("path", "")
                if path.startswith("/tmp/hostpath_pv/"):
                    shutil.rmtree(path, ignore_errors=True)
        except (OSError, ApiError, http.client.HTTPException):
            pass


def _answers_ok(scheme, address, port, path):
    if scheme == "https":
        conn = http.client.HTTPSConnection(address, port, timeout=30,
                                           context=ssl._create_unverified_context())
    else:
        conn = http.client.HTTPConnection(address, port, timeout=30)
    try:
        conn.request("GET", path)
        response = conn.getresponse()
        response.read()
        return response.status == 200
    except OSError:
        return False
    finally:
        conn.close()
