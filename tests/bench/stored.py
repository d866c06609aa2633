#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a stored object costs in the memory of the process, beyond the bytes of its JSON.

`/usr/bin/python3 tests/bench/stored.py [OBJECTS]`, with SUBLET_BIN the release program. An object of 1 KB is one whose
JSON as stored and as a GET answers it (uid, timestamps, managedFields and all) has 1,024 bytes. The figure is the slope
of private memory: what a tenth of the objects leaves is the start, so that what the first request of a process costs is
not an object's. It is read RESTED seconds after the last request, while the events of the creates are still in the
history, and once more after a restart. The same for objects with 1 KB of data, as bench.py creates them.
Nothing is asserted: figures are for people.
"""
import os
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from load import Target, config_map  # noqa: E402
from measure import memory_mb  # noqa: E402
from testenv import VirtualCluster  # noqa: E402

OBJECTS = 15000
RESTED = int(os.environ.get("R", "120"))
KB = 1024


def private(vc):
    """Bytes, once the process has rested."""
    vc._close()
    time.sleep(RESTED)
    return memory_mb(vc.pid)["private"] * 1024 * KB


def stored_bytes(vc, path):
    return len(vc.api.raw("GET", f"{path}/size")[2])


def per_object(directory, name, n, stored=None, data=None):
    """(bytes of the JSON, private bytes per object, the same after a restart) of n ConfigMaps."""
    vc = VirtualCluster(name, directory).start()
    try:
        path = Target(name, vc.api, vc.api.server.geturl(), vc.dir)
        load, path = path, path.namespace("stored")
        if stored:
            vc.api.post(path, config_map("size", 1))
            data = stored - stored_bytes(vc, path) + 1
            vc.api.delete(f"{path}/size")
        vc.api.post(path, config_map("size", data))
        size = stored_bytes(vc, path)
        memory = []
        for part in (n // 10, n - n // 10):
            load.load(path, part, body=config_map(size=data))
            memory.append(private(vc))
        vc.restart()
        memory.append(private(vc))
        first = memory[0]
        print(memory)
        return size, (memory[1] - first) / (n - n // 10), (memory[2] - first) / (n - n // 10)
    finally:
        vc.kill()


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS
    with tempfile.TemporaryDirectory(prefix="sublet-stored-") as directory:
        for name, options in (("as-stored", {"stored": KB}), ("of-data", {"data": KB})):
            print(name, per_object(directory, name, n, **options), flush=True)


if __name__ == "__main__":
    main()
