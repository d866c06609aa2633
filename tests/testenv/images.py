# SPDX-License-Identifier: Apache-2.0
"""Images without a registry: docker archives of one layer, which containerd imports."""
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

from . import binaries

BUSYBOX = "/bin/busybox"
ACCOUNTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
            "etc/group": "root:x:0:\nnogroup:x:65534:\n"}


class Image:
    """An image of busybox and of `files`: {path in it: absolute path of a file here, or content}."""

    def __init__(self, files=None, entrypoint=(), cmd=(), env=(), user=""):
        self.layer = _layer({**ACCOUNTS, **(files or {})})
        self.config = {"Entrypoint": list(entrypoint), "Cmd": list(cmd), "User": user, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/", *env]}

    def write(self, path, *names):
        """As one archive, under all of the names."""
        diff = hashlib.sha256(self.layer).hexdigest()
        config = json.dumps({"architecture": _architecture(), "os": "linux", "config": self.config, "history": [{}],
                             "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]}}).encode()
        config_name = hashlib.sha256(config).hexdigest() + ".json"
        layer_name = f"{diff}/layer.tar"
        manifest = json.dumps([{"Config": config_name, "RepoTags": list(names), "Layers": [layer_name]}]).encode()
        with tarfile.open(path, "w") as tar:
            for name, data in ((config_name, config), (layer_name, self.layer), ("manifest.json", manifest)):
                _add(tar, name, data)
        return path


def busybox():
    """A shell and its tools; a container of it without a command ends at once."""
    return Image(cmd=("/bin/sh",))


# Beside busybox, with the libraries they map: the C library's resolver, and what Kubernetes' tests call.
PROGRAMS = ("getent", "dig", "curl", "nc.openbsd", "bash")


def _tools():
    paths = {name: shutil.which(name) for name in PROGRAMS}
    assert all(paths.values()), f"{PROGRAMS}: tests/setup installs them"
    files = {f"usr/local/bin/{name.partition('.')[0]}": path for name, path in paths.items()}
    files.update({library.lstrip("/"): library for path in paths.values() for library in _libraries(path)})
    # busybox's shell would run its own commands of these names.
    return {**files, "bin/sh": paths["bash"], "etc/nsswitch.conf": "hosts: files dns\n"}


def tools():
    return Image(_tools(), cmd=("/bin/sh",))


def pause():
    """What holds a pod's namespaces: it reaps orphaned processes of containers."""
    return Image(entrypoint=("/bin/sh", "-c", "trap '' CHLD; exec sleep 2147483647"))


def agnhost(files=None):
    """Kubernetes' own test server: netexec, inclusterclient, webhook and many others."""
    program = binaries.host_program("agnhost")
    return Image({**_tools(), "agnhost": program, **(files or {})}, entrypoint=("/agnhost",), cmd=("pause",))


def coredns():
    return Image({"coredns": binaries.node_program("coredns")}, entrypoint=("/coredns",))


def sublet(path, name):
    """The program under test, as packaging/image makes it of the release build."""
    subprocess.run([os.path.join(binaries.TREE, "packaging", "image"), "--binary", binaries.release(), "--tag", name, path],
                   capture_output=True, check=True)
    return path


def _libraries(program):
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [word for line in out.splitlines() for word in line.split() if word.startswith("/")]


def _architecture():
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def _layer(files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name in ("bin", "dev", "etc", "proc", "sys", "usr", "usr/bin", "root"):
            _add(tar, name, kind=tarfile.DIRTYPE)
        _add(tar, "tmp", kind=tarfile.DIRTYPE, mode=0o1777)
        _add(tar, "bin/busybox", _read(BUSYBOX))
        for applet in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
            if f"bin/{applet}" not in ("bin/busybox", *files):
                _add(tar, f"bin/{applet}", kind=tarfile.SYMTYPE, to="/bin/busybox")
        for name, content in files.items():
            _add(tar, name, _read(content) if content.startswith("/") else content.encode())
    return raw.getvalue()


def _read(path):
    with open(path, "rb") as f:
        return f.read()


def _add(tar, name, data=b"", kind=tarfile.REGTYPE, mode=0o755, to=""):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, len(data), to
    tar.addfile(info, io.BytesIO(data))
