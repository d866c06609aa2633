# SPDX-License-Identifier: Apache-2.0
"""A proxy before a host's API that holds some requests back, or loses their answers."""
import contextlib
import http.client
import http.server
import os
import ssl
import threading

import yaml

from .api import Api


class HeldHost:
    """From its creation until close(); clients use .kubeconfig. held(method, path): such a request waits until release() and
    is then forwarded; `n_held` counts them. lost(method, path): such a request is executed, and the connection breaks in its
    answer; `lost_codes` are those that the host gave."""

    def __init__(self, host, kubeconfig, directory, *, held=lambda *_: False, lost=lambda *_: False):
        outer, self._target, self._held, self._lost = self, Api(kubeconfig), held, lost
        self._released, self.n_held, self.lost_codes = threading.Event(), 0, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    outer._forward(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # clients may leave

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*host.pki.issue("held", "/CN=held", hosts=("127.0.0.1",)))
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.kubeconfig = self._write_kubeconfig(kubeconfig, directory)

    def _write_kubeconfig(self, kubeconfig, directory):
        path = os.path.join(directory, "held.kubeconfig")
        with open(kubeconfig, encoding="utf-8") as f:
            config = yaml.safe_load(f)
        for c in config["clusters"]:
            c["cluster"]["server"] = f"https://127.0.0.1:{self._server.server_address[1]}"
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(config, f)
        return path

    def _forward(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self._held(handler.command, handler.path):
            self.n_held += 1
            self._released.wait()
        server = self._target.server
        up = http.client.HTTPSConnection(server.hostname, server.port, context=self._target.tls)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "connection")}
            up.request(handler.command, handler.path, body or None, headers)
            answer = up.getresponse()
            if self._lost(handler.command, handler.path):
                self.lost_codes.append(answer.status)
                handler.close_connection = True
                handler.wfile.write(b"HTTP/1.1 ")  # a client that got nothing at all might send it again by itself
                return
            self._answer(handler, answer)
        finally:
            up.close()

    @staticmethod
    def _answer(handler, answer):
        """As it comes, chunk by chunk: it may be a watch."""
        handler.send_response(answer.status)
        for name in ("Content-Type", "Retry-After"):
            if answer.headers.get(name):
                handler.send_header(name, answer.headers[name])
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while piece := answer.read1(65536):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    def release(self):
        self._released.set()

    def close(self):
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._target.close()
