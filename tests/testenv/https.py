# SPDX-License-Identifier: Apache-2.0
"""An HTTPS server in this process that answers GET with JSON, for what stands in for a service."""
import http.server
import ssl
import threading


class JsonServer:
    """Listens from its creation until stop(). answer(path) -> (status, bytes), from any thread."""

    def __init__(self, cert, port, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*cert)
        self._server = Server(("127.0.0.1", port.number), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                  do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
