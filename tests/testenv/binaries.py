# SPDX-License-Identifier: Apache-2.0
"""Where the programs under test and the programs around them are. A missing one is a failure."""
import functools
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
BUILD_HOST = os.path.join(HERE, "build-host.sh")


def host_directory(programs=()):
    """The directory build-host.sh filled; SUBLET_HOST_BIN overrides it."""
    path = os.environ.get("SUBLET_HOST_BIN") or _said("--dir")
    missing = [p for p in programs if not os.path.exists(os.path.join(path, p))]
    assert not missing, f"{', '.join(missing)} not in {path}: run {os.path.relpath(BUILD_HOST)}"
    return path


def host_program(name):
    return os.path.join(host_directory((name,)), name)


def host_component(name, version=None):
    """A program of the host's control plane; SUBLET_HOST_VERSION is its version, where it is not the one of the tests."""
    version = version or os.environ.get("SUBLET_HOST_VERSION")
    return host_program(f"{name}-{version}" if version and name.startswith("kube-") else name)


@functools.cache
def host_minor():
    """Of "1.36.3" 36: the minor version of the host's control plane."""
    said = subprocess.run([host_component("kube-apiserver"), "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"v1\.(\d+)\.", said)[1])


@functools.cache
def _said(option):
    """What build-host.sh prints, asked once per session: programs with their versions, or a directory."""
    return subprocess.run([BUILD_HOST, option], capture_output=True, text=True, check=True).stdout.strip()


def node_program(name):
    """A program of a real node: `name` as build-host.sh has it, less its version."""
    return _listed_program("--node", name)


def bench_program(name):
    """A program that only tests/bench compares with; the same."""
    return _listed_program("--bench", name)


def client_program(name):
    """A program that only the suite of clients runs; the same."""
    return _listed_program("--clients", name)


def _listed_program(option, name):
    return host_program(next(n for n in _said(option).split() if n == name or n.rpartition("-")[0] == name))


def operator():
    """The operator of the tests, built from integration/operator."""
    return host_program(_said("--operator"))


def queue_program(name):
    """Of Kueue, KAI, Volcano or HAMi, which only a suite of their own builds: (path, version)."""
    found = next(n for n in _said("--queues").split() if n.startswith(name + "-"))
    return host_program(found), found[len(name) + 1:]


def module_source(module):
    """The directory of the sources of a module, as "k8s.io/api@v0.36.3"."""
    return subprocess.run([os.path.join(HERE, "gomod.sh"), module], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def sublet():
    """The program under test: SUBLET_BIN, else the one in SUBLET_BUILD or build/dev."""
    build = os.environ.get("SUBLET_BUILD") or os.path.join(TREE, "build", "dev")
    candidates = [os.environ["SUBLET_BIN"]] if os.environ.get("SUBLET_BIN") else [
        os.path.join(build, "sublet"), os.path.join(build, "cli", "sublet")]
    for path in candidates:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise AssertionError(f"no sublet program at {' or '.join(candidates)}: build it, or set SUBLET_BIN")


def release():
    """The release build of it: SUBLET_RELEASE_BIN, else the one beside the dev build."""
    build = os.environ.get("SUBLET_BUILD") or os.path.join(TREE, "build", "dev")
    path = os.environ.get("SUBLET_RELEASE_BIN") or os.path.join(
        os.path.dirname(os.path.abspath(build)), "release", "cli", "sublet")
    assert os.access(path, os.X_OK), f"no release build at {path}: run `tests/run build`, or set SUBLET_RELEASE_BIN"
    return os.path.abspath(path)


def crds(*operators):
    """Paths of the CustomResourceDefinitions of real operators; see crds.sh for their names."""
    return subprocess.run([os.path.join(HERE, "crds.sh"), *operators], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.splitlines()
