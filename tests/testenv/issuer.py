# SPDX-License-Identifier: Apache-2.0
"""An OpenID Connect issuer on https://127.0.0.1, whose keys and answers a test can change."""
import base64
import json
import os
import subprocess
import threading
import time

from .https import JsonServer
from .pki import Pki
from .process import Port

CURVES = {"ES256": ("prime256v1", "P-256", 32), "ES384": ("secp384r1", "P-384", 48),
          "ES512": ("secp521r1", "P-521", 66)}
DISCOVERY = "/.well-known/openid-configuration"


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _openssl(*args, stdin=None):
    r = subprocess.run(["openssl", *args], input=stdin, capture_output=True, check=False)
    assert r.returncode == 0, f"openssl {' '.join(args)}: {r.stderr.decode()}"
    return r.stdout


def _integers(der):
    """The two integers of an ECDSA signature in DER."""
    at = 2 if der[1] < 0x80 else 3
    out = []
    for _ in range(2):
        assert der[at] == 2
        n = der[at + 1]
        out.append(int.from_bytes(der[at + 2:at + 2 + n], "big"))
        at += 2 + n
    return out


class SigningKey:
    """One private key; `alg` decides its type (RS*, PS*: RSA; ES*: a curve)."""

    def __init__(self, directory, name, alg="RS256"):
        self.id, self.alg = name, alg
        self.path = os.path.join(directory, f"{name}.pem")
        if alg[0] == "E":
            _openssl("ecparam", "-genkey", "-noout", "-name", CURVES[alg][0], "-out", self.path)
        else:
            _openssl("genrsa", "-out", self.path, "2048")

    def jwk(self):
        if self.alg[0] == "E":
            _, curve, size = CURVES[self.alg]
            point = _openssl("ec", "-in", self.path, "-pubout", "-outform", "DER")[-2 * size:]
            more = {"kty": "EC", "crv": curve, "x": b64url(point[:size]), "y": b64url(point[size:])}
        else:
            modulus = _openssl("rsa", "-in", self.path, "-noout", "-modulus").decode()
            n = bytes.fromhex(modulus.strip().partition("=")[2])
            more = {"kty": "RSA", "n": b64url(n), "e": "AQAB"}
        return {"use": "sig", "kid": self.id, "alg": self.alg, **more}

    def sign(self, data):
        digest = "-sha" + self.alg[2:]
        pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
        sig = _openssl("dgst", digest, "-sign", self.path, *(pss if self.alg[0] == "P" else []),
                       stdin=data)
        if self.alg[0] != "E":
            return sig
        size = CURVES[self.alg][2]
        return b"".join(x.to_bytes(size, "big") for x in _integers(sig))


class Issuer:
    """start(), stop(); tokens by token(). `requests` holds the requested paths."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.dir = directory
        self.pki = Pki(os.path.join(directory, "pki"))
        self.cert = self.pki.issue("issuer", "/CN=issuer", hosts=("127.0.0.1",))
        self.port = Port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.keys = [SigningKey(directory, "first")]
        self.requests = []
        self.delay = threading.Event()  # set: answers wait until it is cleared
        self.answers = {}  # path -> (status, bytes) instead of the right one
        self._server = None

    @property
    def ca(self):
        with open(self.pki.path("ca.crt"), encoding="ascii") as f:
            return f.read()

    def add_key(self, name, alg="RS256", published=True):
        key = SigningKey(self.dir, name, alg)
        if published:
            self.keys.append(key)
        return key

    def start(self):
        self._server = JsonServer(self.cert, self.port, self._request)
        return self

    def stop(self):
        self.delay.clear()
        if self._server:
            self._server.stop()
            self._server = None

    def _request(self, path):
        self.requests.append(path)
        while self.delay.is_set():
            time.sleep(0.02)
        return self.answer(path)

    def answer(self, path):
        if path in self.answers:
            return self.answers[path]
        if path == DISCOVERY:
            return 200, json.dumps({"issuer": self.url, "jwks_uri": self.url + "/keys"}).encode()
        if path == "/keys":
            return 200, json.dumps({"keys": [k.jwk() for k in self.keys]}).encode()
        return 404, b"{}"

    def token(self, key=None, header=None, **claims):
        """Signed claims over good ones; a claim that is None is left out."""
        key = key or self.keys[0]
        now = int(time.time())
        body = {"iss": self.url, "aud": "sublet", "sub": "u-1", "exp": now + 600, "iat": now, **claims}
        body = {k: v for k, v in body.items() if v is not None}
        head = {"alg": key.alg, "kid": key.id, **(header or {})}
        head = {k: v for k, v in head.items() if v is not None}
        text = ".".join(b64url(json.dumps(x).encode()) for x in (head, body))
        return text + "." + b64url(key.sign(text.encode()))
