# SPDX-License-Identifier: Apache-2.0
"""The image: what is in it, that it runs with nothing around it, and that it serves as a pod would."""
import base64
import gzip
import hashlib
import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import tarfile

import pytest
import yaml

from testenv import UNSET, Api, binaries, eventually
from testenv.helm import CHART, Helm
from testenv.process import Port, Process

SCRIPT = os.path.join(binaries.TREE, "packaging", "image")
USER = 65532
ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"


def build(path, *args):
    subprocess.run([SCRIPT, "--binary", binaries.release(), *args, str(path)], check=True, capture_output=True)
    return path


class Image:
    """The files of the tar, and its parts found as a runtime finds them."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layer = gzip.decompress(self.blob(self.manifest["layers"][0]))

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert len(data) == descriptor["size"]
        return data


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    return build(tmp_path_factory.mktemp("image") / "sublet.tar")


@pytest.fixture(scope="module")
def image(tar):
    return Image(tar)


@pytest.fixture
def root(image, tmp_path):
    """The image's files, owned as in the image where we may."""
    path = tmp_path / "root"
    path.mkdir()
    subprocess.run(["tar", "-x", "--numeric-owner", "-C", path], input=image.layer, check=True)
    yield path
    shutil.rmtree(path)


def inside(root, *argv):
    """The command line that runs a program with that root, as the image's user where we may change it."""
    if os.geteuid() == 0:
        return [shutil.which("chroot"), f"--userspec={USER}:{USER}", str(root), *argv]
    return [shutil.which("unshare"), "--map-root-user", "chroot", str(root), *argv]


def test_the_layout_holds_together(image):
    assert json.loads(image.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    for name, data in image.files.items():
        if name.startswith("blobs/sha256/"):
            assert name.rsplit("/", 1)[1] == hashlib.sha256(data).hexdigest()
    assert image.config["rootfs"] == {"type": "layers", "diff_ids": [
        "sha256:" + hashlib.sha256(image.layer).hexdigest()]}
    assert image.config["config"]["Entrypoint"] == ["/usr/bin/sublet"]
    assert image.config["config"]["User"] == f"{USER}:{USER}"
    docker = json.loads(image.files["manifest.json"])[0]
    assert docker["Config"].endswith(image.manifest["config"]["digest"][7:])
    assert docker["Layers"][0].endswith(image.manifest["layers"][0]["digest"][7:])
    values = yaml.safe_load(open(os.path.join(CHART, "values.yaml"), encoding="utf-8"))
    version = yaml.safe_load(open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8"))["appVersion"]
    name = image.index["manifests"][0]["annotations"]["io.containerd.image.name"]
    assert name == docker["RepoTags"][0] == f"{values['image']['repository']}:{version}"


def test_same_inputs_same_bytes_and_small(tar, tmp_path):
    again = build(tmp_path / "again.tar")
    assert tar.read_bytes() == again.read_bytes()
    assert tar.stat().st_size < 25_000_000
    other = Image(build(tmp_path / "other.tar", "--tag", "registry.example:5000/team/sublet:x"))
    assert json.loads(other.files["manifest.json"])[0]["RepoTags"] == ["registry.example:5000/team/sublet:x"]


def test_there_is_nothing_but_the_program(image, tmp_path):
    path = tmp_path / "layer.tar"
    path.write_bytes(image.layer)
    with tarfile.open(path) as tar:
        members = list(tar)
    assert [m.name for m in members if m.isfile() and m.name.startswith(("usr/bin", "bin", "sbin", "usr/sbin"))] == [
        "usr/bin/sublet"]
    for m in members:
        assert not m.mode & 0o6022, (m.name, oct(m.mode))
        assert (m.uid, m.mtime) == ((USER if m.name == "data" else 0), 0), m.name
    programs = [m.name for m in members if m.isfile() and m.mode & 0o111]
    assert all(p == "usr/bin/sublet" or ".so" in p for p in programs), programs
    names = {m.name for m in members}
    libraries = [p for p in programs if ".so" in p]
    assert libraries and not [n for n in names if n.endswith((".pem", ".crt", ".key"))]
    for package in ("libc6", "libssl3", "libsqlite3-0", "tzdata"):
        assert f"usr/share/doc/{package}/copyright" in names and f"var/lib/dpkg/status.d/{package}" in names


def test_it_runs_with_nothing_around_it(root):
    r = subprocess.run(inside(root, "/usr/bin/sublet", "version"), capture_output=True, text=True, env={}, check=False)
    assert r.returncode == 0 and r.stdout.startswith("sublet "), r.stderr
    r = subprocess.run(inside(root, "/usr/bin/sublet", "serve"), capture_output=True, text=True, check=False,
                       env={"SUBLET_HOST_NAMESPACE": "x"}, timeout=180)
    assert r.returncode == 1 and "not in a pod" in r.stderr


class Pod:
    """The image as a kubelet runs it: its root, the service account's files, the Service variables."""

    def __init__(self, root, host, namespace, config):
        self.root, self.host, self.namespace, self.port = root, host, namespace, Port()
        (root / "etc/sublet/config.yaml").write_text(config)
        (root / ACCOUNT).mkdir(parents=True)
        admin = yaml.safe_load(open(host.kubeconfig, encoding="utf-8"))
        ca = base64.b64decode(admin["clusters"][0]["cluster"]["certificate-authority-data"])
        (root / ACCOUNT / "ca.crt").write_bytes(ca)
        (root / ACCOUNT / "namespace").write_text(namespace)
        self.process = Process("sublet-pod", inside(root, "/usr/bin/sublet", "serve", "--config",
                                                    "/etc/sublet/config.yaml"), str(root.parent),
                               env={"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                                    "KUBERNETES_SERVICE_PORT": str(host.api.server.port),
                                    "SUBLET_LISTEN_ADDRESS": f"127.0.0.1:{self.port}"})

    def token(self, holder):
        """A token that is good as long as the Secret `holder` of the host is there."""
        base = f"/api/v1/namespaces/{self.namespace}"
        made = self.host.api.post(f"{base}/secrets", {"apiVersion": "v1", "kind": "Secret",
                                                      "metadata": {"name": holder}})
        spec = {"expirationSeconds": 3600, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Secret", "name": holder, "uid": made["metadata"]["uid"]}}
        return self.host.api.post(f"{base}/serviceaccounts/research/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})["status"]["token"]

    def use(self, token):
        """As a kubelet does it: the file is replaced, never written over."""
        new = self.root / ACCOUNT / "token.new"
        new.write_text(token)
        new.chmod(0o644)
        new.rename(self.root / ACCOUNT / "token")

    def published(self):
        """The tenant's kubeconfig as the host has it."""
        secret = self.host.api.get(f"/api/v1/namespaces/{self.namespace}/secrets/research-kubeconfig")
        return yaml.safe_load(base64.b64decode(secret["data"]["value"]))


@pytest.fixture
def pod(root, host, tmp_path):
    namespace = f"team-image-{secrets.token_hex(3)}"
    host.create_namespace(namespace, {"pod-security.kubernetes.io/enforce": "baseline"})
    helm = Helm(tmp_path, host.kubeconfig)
    helm("install", "research", CHART, "-n", namespace, values={})
    config = host.api.get(f"/api/v1/namespaces/{namespace}/configmaps/research")["data"]["config.yaml"]
    made = Pod(root, host, namespace, config)
    try:
        yield made
    finally:
        made.process.stop()
        host.delete_namespace(namespace)


def test_it_serves_as_a_pod(pod, host, tmp_path):
    first = pod.token("first")
    pod.use(first)
    pod.process.start()
    config = eventually(pod.published, 60, "the kubeconfig on the host", also=UNSET)
    cluster = config["clusters"][0]["cluster"]
    name = f"research.{pod.namespace}.svc"
    assert cluster["server"] == f"https://{name}"

    # Probes carry no credentials; clients know the API by the Service's name.
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())

    def probe(path):
        connection = http.client.HTTPSConnection("127.0.0.1", pod.port.number, timeout=60)
        plain = socket.create_connection(("127.0.0.1", pod.port.number), timeout=60)
        connection.sock = tls.wrap_socket(plain, server_hostname=name)
        connection.request("GET", path)
        return connection.getresponse().status

    eventually(lambda: probe("/readyz") == 200, 30, "/readyz")
    assert probe("/livez") == 200 and probe("/api/v1/namespaces") in (401, 403)

    cluster["server"] = f"https://127.0.0.1:{pod.port}"
    path = tmp_path / "tenant.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    tenant = Api(str(path))
    run(tenant, pod, "before")

    # The kubelet renews the token; the previous one ends with the object it was bound to.
    pod.use(pod.token("second"))
    host.api.delete(f"/api/v1/namespaces/{pod.namespace}/secrets/first")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": first}}
    eventually(lambda: not host.api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"].get(
        "authenticated"), 60, "the first token to be void")
    run(tenant, pod, "after")
    tenant.close()

    copy = subprocess.run(inside(pod.root, "/usr/bin/sublet", "backup"), capture_output=True, check=False)
    assert copy.returncode == 0 and copy.stdout.startswith(b"SQLite format 3\0"), copy.stderr
    assert pod.process.stop() == 0


def run(tenant, pod, name):
    tenant.post("/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}})
    eventually(lambda: tenant.get(f"/api/v1/namespaces/default/pods/{name}")["status"].get("phase") == "Running", 90,
               f"pod {name} to run")
    on_host = pod.host.api.get(f"/api/v1/namespaces/{pod.namespace}/pods")["items"]
    assert name in [p["metadata"]["annotations"].get("sublet.dev/name") for p in on_host
                    if "annotations" in p["metadata"]]
