# SPDX-License-Identifier: Apache-2.0
"""`python3 -m testenv` (in tests/): the test host in the foreground, to try things by hand; ^C ends it."""
import signal
import sys
import tempfile

from .host import HostCluster


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="sublet-host-") as directory:
        host = HostCluster(directory).start()
        try:
            for i in (1, 2):
                host.add_gpu_node(f"gpu-a100-{i}", pool="a100", model="a100")
                host.add_gpu_node(f"gpu-l4-{i}", pool="shared", model="l4")
                host.add_cpu_node(f"cpu-{i}")
            print(f"export KUBECONFIG={host.kubeconfig} PATH={host.bin}:$PATH", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            pass
        finally:
            host.stop()


if __name__ == "__main__":
    main()
