#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a stored object costs in the memory of the process.

`/usr/bin/python3 tests/bench/stored.py [OBJECTS [REST]]`, with SUBLET_BIN the release program. "An object of 1 KB" is one whose
JSON as stored, which is what a GET answers (uid, timestamps, managedFields and all), has 1,024 bytes. Beside it, the
ConfigMap with 1 KB of data that bench.py creates, which is half as large again as stored. The figure is the slope of
private memory from a tenth of the objects to all of them, so that what the first requests of a process cost is not an
object's; read REST seconds (60) after the last request, with the events of the creates still in the history, and once
more after a restart. Nothing is asserted: figures are for people.
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
RESTED = 60    # seconds: the store is quiet after 30
KB = 1024


def stored_bytes(api, path, data):
    """Of a new ConfigMap with so much data."""
    name = api.post(path, config_map(size=data))["metadata"]["name"]
    return len(api.raw("GET", f"{path}/{name}")[2])


def private(vc, rest):
    """Bytes, once the process has rested."""
    vc.close_api()
    time.sleep(rest)
    return memory_mb(vc.pid)["private"] * KB * KB


def measure(directory, n, rest, data=None):
    """(bytes of the JSON, private bytes per object, the same after a restart); without `data`, of objects of 1 KB."""
    vc = VirtualCluster("stored", directory).start()
    try:
        target = Target("stored", vc.api, vc.api.server.geturl(), vc.dir)
        path = target.namespace("stored")
        data = data or KB + 1 - stored_bytes(vc.api, path, 1)
        size = stored_bytes(vc.api, path, data)
        memory = []
        first = n // 10
        for part in (first, n - first):
            target.load(path, part, body=config_map(size=data))
            memory.append(private(vc, rest))
        vc.restart()
        memory.append(private(vc, rest))
        return size, *((m - memory[0]) / (n - first) for m in memory[1:])
    finally:
        vc.close()


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS
    rest = int(sys.argv[2]) if len(sys.argv) > 2 else RESTED
    print(f"{n} ConfigMaps, bytes of each{'as JSON':>14}{'private':>10}{'after a restart':>18}")
    with tempfile.TemporaryDirectory(prefix="sublet-stored-") as directory:
        for what, data in (("1 KB as stored", None), ("1 KB of data", KB)):
            size, private_bytes, restarted = measure(directory, n, rest, data)
            print(f"  {what:27}{size:14}{private_bytes:10.0f}{restarted:18.0f}", flush=True)


if __name__ == "__main__":
    main()
