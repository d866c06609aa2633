# SPDX-License-Identifier: Apache-2.0
"""What has happened to others and takes more than requests: certificates, and a host that is not the host.

The others are in cases/advisories.yaml.
"""
import os
import socket
import ssl
import subprocess
import threading

from testenv.pki import Pki, write_kubeconfig
from testenv.process import Port
from testenv.virtual import VirtualCluster
from testenv.wait import eventually

NAMES = 60
MOST = 512 << 20  # bytes; what was sent is many times that


def served_certificate(port, name):
    """The certificate that is shown to a client that names a server."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", int(str(port))), 30) as s, \
            context.wrap_socket(s, server_hostname=name) as tls:
        tls.sendall(f"GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        tls.recv(64)
        return tls.getpeercert(binary_form=True)


def test_names_asked_for_are_not_certified(field):
    """GHSA-m4hf-6vgr-75r2 (CVE-2023-32187), k3s: every server name of a client joins the certificate, without end."""
    port = field.clusters["attacker"].port
    before = served_certificate(port, "localhost")
    for i in range(NAMES):
        assert served_certificate(port, f"n{i}.{'x' * 40}.example.com") == before
    text = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-ext", "subjectAltName"], input=before,
                          capture_output=True, check=True).stdout.decode()
    assert "example.com" not in text, text


class Endless:
    """A host that answers every request with a document that does not end."""

    def __init__(self, directory):
        pki = Pki(directory)
        cert, key = pki.issue("host", "/CN=host", hosts=("127.0.0.1", "localhost"))
        self.port = Port()
        self.kubeconfig = os.path.join(directory, "kubeconfig")
        write_kubeconfig(self.kubeconfig, f"https://127.0.0.1:{self.port}", pki.path("ca.crt"), token="x")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", int(str(self.port))), reuse_port=True)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(s,), daemon=True).start()

    def answer(self, s):
        try:
            with self.context.wrap_socket(s, server_side=True) as tls:
                tls.recv(4096)
                tls.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"items\":[\"")
                while True:
                    tls.sendall(b"x" * 65536)
                    self.sent += 65536
        except OSError:
            pass

    def close(self):
        self.listener.close()
        self.port.close()


def test_answers_of_a_host_have_a_bound(workdir):
    """CVE-2025-32777, Volcano: an answer without an end takes all the memory of its reader."""
    directory = os.path.join(workdir, "endless")
    os.makedirs(directory)
    host = Endless(directory)
    vc = VirtualCluster("bounded", directory, config={"host": {"namespace": "team", "kubeconfig": host.kubeconfig}})
    try:
        vc.start()
        eventually(lambda: host.sent > 64 << 20, 60, "the host to have sent a lot")
        assert vc.api.raw("GET", "/readyz")[0] in (200, 500)
        assert vc.api.raw("GET", "/api/v1/namespaces")[0] == 200
        assert vc.rss() < MOST
    finally:
        vc.close()
        host.close()
