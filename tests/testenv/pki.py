# SPDX-License-Identifier: Apache-2.0
"""The certificates of a host cluster, made by the openssl command (P-256: 10 ms each)."""
import base64
import os
import subprocess

import yaml


def _openssl(*args, stdin=None):
    r = subprocess.run(["openssl", *args], input=stdin, capture_output=True, check=False)
    assert r.returncode == 0, f"openssl {' '.join(args)}: {r.stderr.decode()}"
    return r.stdout


class Pki:
    """One CA in `directory`: ca.crt, ca.key, and every pair that was issued as NAME.crt, NAME.key."""

    def __init__(self, directory):
        self.dir = directory
        os.makedirs(directory, exist_ok=True)
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.path("ca.key"), "-out", self.path("ca.crt"),
                 "-subj", "/CN=host-ca", "-days", "30")

    def path(self, name):
        return os.path.join(self.dir, name)

    def key(self, name):
        """A signing key pair without a certificate: NAME.key and NAME.pub."""
        _openssl("ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", self.path(name + ".key"))
        _openssl("ec", "-in", self.path(name + ".key"), "-pubout", "-out", self.path(name + ".pub"))

    def issue(self, name, subject, hosts=()):
        """A certificate signed by the CA; with `hosts` it is a server's. Returns (crt, key) paths."""
        crt, key, ext = (self.path(f"{name}.{e}") for e in ("crt", "key", "ext"))
        csr = _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-keyout", key, "-subj", subject)
        usage = "serverAuth" if hosts else "clientAuth"
        names = ",".join(("IP:" if h[0].isdigit() else "DNS:") + h for h in hosts)
        with open(ext, "w", encoding="ascii") as f:
            f.write(f"extendedKeyUsage={usage}\n")
            if names:
                f.write(f"subjectAltName={names}\n")
        _openssl("x509", "-req", "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"),
                 "-set_serial", "0x" + os.urandom(8).hex(), "-days", "30", "-out", crt,
                 "-extfile", ext, stdin=csr)
        return crt, key


def _b64(path):
    with open(path, "rb") as f:
        return base64.b64encode(f.read()).decode()


def write_kubeconfig(path, server, ca, *, cert=None, key=None, token=None):
    """A kubeconfig file with everything inline; returns its path."""
    return _write(path, {"server": server, "certificate-authority-data": _b64(ca)}, cert, key, token)


def derive_kubeconfig(path, admin, *, cert=None, key=None, token=None):
    """A kubeconfig file for another user of the cluster of the kubeconfig `admin`; returns its path."""
    with open(admin, encoding="utf-8") as f:
        cluster = yaml.safe_load(f)["clusters"][0]["cluster"]
    return _write(path, cluster, cert, key, token)


def sec1_kubeconfig(path, admin):
    """The same kubeconfig with its EC key as SEC 1 has it, where a client reads no PKCS #8; returns its path."""
    with open(admin, encoding="utf-8") as f:
        config = yaml.safe_load(f)
    user = config["users"][0]["user"]
    user["client-key-data"] = base64.b64encode(_openssl("ec", stdin=base64.b64decode(user["client-key-data"]))).decode()
    return _save(path, config)


def _write(path, cluster, cert, key, token):
    user = {"token": token} if token else {"client-certificate-data": _b64(cert),
                                           "client-key-data": _b64(key)}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": "default", "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
    }
    return _save(path, config)


def _save(path, config):
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(config, f)
    os.chmod(path, 0o600)
    return path
