# SPDX-License-Identifier: Apache-2.0
"""The images that Kubernetes' tests start, under the names that e2e.test itself lists, made here."""
import json
import os
import subprocess

from testenv import binaries, images
from testenv.node import IMAGES

VARIABLE = "KUBE_TEST_REPO_LIST"
REGISTRY = f"{IMAGES}/e2e"
# Users and groups that a test expects in agnhost's image.
ACCOUNTS = {"etc/passwd": images.ACCOUNTS["etc/passwd"] + "user-defined-in-image:x:1000:1000::/:/bin/sh\n",
            "etc/group": images.ACCOUNTS["etc/group"] + "user-defined-in-image:x:1000:\n"
                         "group-defined-in-image:x:50000:user-defined-in-image\n"}


def load(host, directory):
    """Imports them into the node; returns the file that makes e2e.test look for them."""
    os.makedirs(directory, exist_ok=True)
    repositories = os.path.join(directory, "repositories.yaml")
    with open(repositories, "w", encoding="utf-8") as f:
        json.dump({"promoterE2eRegistry": REGISTRY, "gcRegistry": REGISTRY}, f)
    listed = subprocess.run([binaries.host_program("e2e.test"), "--list-images"], capture_output=True, text=True, check=True,
                            env={**os.environ, VARIABLE: repositories}).stdout.split()
    archive = os.path.join(directory, "image.tar")
    for name, make in MADE.items():
        wanted = [image for image in listed if image.startswith(f"{REGISTRY}/{name}:")]
        assert wanted, f"e2e.test lists no {name}"
        host.load(make(host).write(archive, *wanted))
    os.unlink(archive)
    return repositories


def _agnhost(host):
    crt, key = host.pki.issue("porter", "/CN=localhost", hosts=("localhost",))
    return images.agnhost({**ACCOUNTS, "localhost.crt": crt, "localhost.key": key,
                           "agnhost-2": binaries.host_program("agnhost")})


def _site(**pages):
    """A web server with some pages, in place of nginx and others."""
    return images.Image({f"www/{name.replace('_', '.')}": text for name, text in pages.items()},
                        cmd=("httpd", "-f", "-p", "80", "-h", "/www"))


MADE = {"agnhost": _agnhost,
        "nginx": lambda _: _site(index_html="<html><body>Welcome to nginx!</body></html>\n"),
        "nautilus": lambda _: _site(data_json='{"image": "nautilus.jpg"}\n'),
        "busybox": lambda _: images.tools(),  # whose shell keeps variables with any name
        "glibc-dns-testing": lambda _: images.tools(),
        "pause": lambda _: images.pause()}
