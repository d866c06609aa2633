# SPDX-License-Identifier: Apache-2.0
"""The memory of a process under load: lists of much more than it may take, and more requests than it can bear.

The release build, since a sanitizer's memory says nothing; what is asserted is memory, never a time.
"""
import gzip
import io
import threading

import pytest
from testenv import binaries
from testenv.virtual import VirtualCluster
from testenv.wait import eventually

MIB = 1 << 20
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
WIDGETS = "/apis/memory.test/v1/namespaces/default/widgets"


@pytest.fixture
def release_tenant(workdir):
    """A tenant without a host that runs the release build."""
    made = []

    def make(name, config=None):
        vc = VirtualCluster(name, workdir, config=config)
        vc.process.argv[0] = binaries.release()
        made.append(vc)
        return vc.start()

    yield make
    for vc in made:
        vc.close()


def parallel(functions):
    """Runs them all at once; returns what each returned, raises what one raised."""
    results, failures = [None] * len(functions), []

    def run(i):
        try:
            results[i] = functions[i]()
        except BaseException as e:  # pylint: disable=broad-except
            failures.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
    return results


def config_map(name, size):
    line = f"{name}: the quick brown fox <jumps> over\n"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": (line * (size // len(line) + 1))[:size]}}


def fill(vc, total, size, body=config_map, path=CONFIGMAPS):
    """Creates objects of `size` bytes until there are `total`."""
    def some(part):
        api = vc.api.clone()
        for i in range(part, total // size, 4):
            code, _, text = api.raw("POST", path, body=body(f"m{i:05}", size))
            assert code == 201, text
        api.close()

    parallel([lambda p=p: some(p) for p in range(4)])


def status_kb(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))


def peak(pid):
    return status_kb(pid, "VmHWM") * 1024


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def read_through(api, path, accept, packed=False):
    """Reads an answer without keeping it; returns its size, unpacked."""
    response = api.open("GET", path, headers={"Accept": accept, **({"Accept-Encoding": "gzip"} if packed else {})})
    assert response.status == 200
    assert (response.headers.get("Content-Encoding") == "gzip") == packed
    source, n = (gzip.GzipFile(fileobj=io.BufferedReader(response)) if packed else response), 0
    while True:
        piece = source.read(1 << 16)
        if not piece:
            return n
        n += len(piece)


def test_lists_larger_than_their_memory(release_tenant):
    vc = release_tenant("lists")
    fill(vc, 90 * MIB, 60_000)
    live = int(float(metric(vc, "sublet_store_live_bytes")))
    assert live > 90 * MIB
    before = status_kb(vc.pid, "VmRSS") * 1024
    forget_peak(vc.pid)

    def kubectl():
        return vc.kubectl("get", "cm", "-A").count("\n")

    def list_as(path, accept, packed=False):
        api = vc.api.clone()
        try:
            return read_through(api, path, accept, packed)
        finally:
            api.close()

    sizes = parallel([
        kubectl,
        kubectl,
        lambda: list_as(CONFIGMAPS, "application/yaml"),
        lambda: list_as(CONFIGMAPS, PROTOBUF),
        lambda: list_as(CONFIGMAPS + "?pretty=1", "application/json"),
        lambda: list_as(CONFIGMAPS + "?includeObject=Object", TABLE),
        lambda: list_as(CONFIGMAPS, "application/json"),
        lambda: list_as(CONFIGMAPS, "application/json", packed=True),
    ])
    assert min(sizes[:2]) > 90 * MIB // 60_000
    assert min(sizes[2:]) > 90 * MIB
    assert sizes[6] == sizes[7]
    assert peak(vc.pid) < before + 64 * MIB


def widget(name, size):
    return {"apiVersion": "memory.test/v1", "kind": "Widget", "metadata": {"name": name},
            "spec": {"text": "w" * size}}


def test_lists_of_custom_resources_with_defaults(release_tenant):
    vc = release_tenant("widgets")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "text": {"type": "string"}, "size": {"type": "integer", "default": 7}}}}}
    vc.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.memory.test"},
        "spec": {"group": "memory.test", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                 "versions": [{"name": v, "served": True, "storage": v == "v1", "schema": {"openAPIV3Schema": schema}}
                              for v in ("v1", "v2")]}})
    eventually(lambda: vc.api.raw("GET", WIDGETS)[0] == 200, 30, "the custom resource")
    fill(vc, 60 * MIB, 200_000, body=widget, path=WIDGETS)
    before = status_kb(vc.pid, "VmRSS") * 1024
    forget_peak(vc.pid)
    sizes = parallel([lambda p=p, a=a: read_through(vc.api.clone(), p, a) for p in (WIDGETS, WIDGETS.replace("v1", "v2"))
                      for a in ("application/json", "application/yaml")])
    assert min(sizes) > 60 * MIB
    assert peak(vc.pid) < before + 64 * MIB


def metric(vc, name):
    for line in vc.api.raw("GET", "/metrics")[2].decode().splitlines():
        if line.startswith(name + " "):
            return line.split()[-1]
    return "0"


def test_overload_is_refused_not_fatal(release_tenant):
    limit = 192 * MIB
    vc = release_tenant("overload", {"limits": {"memory": str(limit)}})
    fill(vc, 40 * MIB, 200_000)
    codes = []

    def write(i):
        api = vc.api.clone()
        for k in range(6):
            name = f"big{i}-{k}"
            # A tree of many small nodes: what a body may grow to.
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                    "data": {f"k{j}": "v" for j in range(20_000)}}
            code, headers, _ = api.raw("POST", CONFIGMAPS, body=body)
            assert code != 429 or headers["Retry-After"]
            codes.append(code)
        api.close()

    def read():
        api = vc.api.clone()
        for _ in range(3):
            response = api.open("GET", CONFIGMAPS, headers={"Accept": "application/yaml"})
            codes.append(response.status)
            while response.read(1 << 16):
                pass
        api.close()

    parallel([lambda i=i: write(i) for i in range(24)] + [read] * 8)
    vc.process.check()
    assert 429 in codes and set(codes) <= {200, 201, 429}
    assert peak(vc.pid) < limit * 5 // 4  # of the container this limit is made for
    assert float(metric(vc, 'sublet_requests_refused_total{reason="memory"}')) > 0

    # It gets out again: deletes pass, and then there is room for writes.
    assert vc.api.raw("GET", CONFIGMAPS + "/m00000")[0] == 200
    assert vc.api.raw("DELETE", CONFIGMAPS + "/m00000")[0] == 200
    # More than may wait for the disk at once is a 429 of its own, and goes on from there.
    eventually(lambda: vc.api.raw("DELETE", CONFIGMAPS)[0] == 200, 60, "all are deleted")
    eventually(lambda: vc.api.raw("POST", CONFIGMAPS, body=config_map("more", 100))[0] == 201, 60, "a write is taken")
    vc.process.check()
