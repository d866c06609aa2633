# SPDX-License-Identifier: Apache-2.0
"""A DCGM exporter's answers, in the format that its documentation shows, and its pods on a host."""
import http.server
import threading

SELECTOR = {"app": "nvidia-dcgm-exporter"}
FIELDS = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "Ratio of time the graphics engine is active.",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
}


def series(pod, gpu, activity=None, used=None, **more):
    """[(field, labels, value)] of a GPU that a pod of the host has; pod None: it is no pod's."""
    labels = {"gpu": str(gpu), "UUID": f"GPU-0000000{gpu}-aaaa", "device": f"nvidia{gpu}",
              "modelName": "NVIDIA A100-SXM4-80GB", "Hostname": "node-of-the-host", **more.pop("labels", {})}
    if pod:
        labels |= {"container": "main", "namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
    values = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": activity, "DCGM_FI_DEV_FB_USED": used, **more}
    return [(field, labels, value) for field, value in values.items() if value is not None]


class Exporter:
    """A server of what say() was given last. `broken`: what it sends in place of that; fault(): how else it fails."""

    def __init__(self):
        outer = self
        self.content, self.broken, self.reads, self.released = "", None, 0, threading.Event()
        self.fault()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.reads += 1
                body = (outer.content if outer.broken is None else outer.broken).encode()
                if outer.hang:
                    outer.released.wait(60)
                if outer.cut:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
                    return
                self.send_response(outer.status if self.path == "/metrics" else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def fault(self, status=200, content=None, cut=False, hang=False):
        """Without arguments: none."""
        self.status, self.broken, self.cut, self.hang = status, content, cut, hang

    def say(self, *groups):
        lines = []
        for field, text in FIELDS.items():
            mine = [s for group in groups for s in group if s[0] == field]
            if mine:
                lines += [f"# HELP {field} {text}", f"# TYPE {field} gauge"]
            lines += ["%s{%s} %s" % (field, ",".join(f'{k}="{v}"' for k, v in labels.items()), value)
                      for _, labels, value in mine]
        self.content = "".join(line + "\n" for line in lines)

    def config(self, namespace):
        """telemetry.dcgm of a fleet that reads it."""
        return {"enabled": True, "namespace": namespace, "port": self.port, "interval": "1s", "idleAfter": "1s"}

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def exporter_pod(node, name="exporter"):
    """On the host's network: its address is the node's, which is this machine's for simulated ones."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": SELECTOR}, "spec": {
        "nodeName": node, "hostNetwork": True, "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}], "containers": [{"name": "exporter", "image": "example.com/exporter"}]}}
