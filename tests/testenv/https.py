# SPDX-License-Identifier: Apache-2.0
"""HTTPS servers in this process, for what stands in for a service."""
import http.server
import ssl
import threading


class TlsServer(http.server.ThreadingHTTPServer):
    """Listens at (ip, port) from its creation until stop(). trusted: a file of the CAs whose clients alone are let in."""
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, cert, at, handler, trusted=None):
        super().__init__(at, handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*cert)
        if trusted:
            context.load_verify_locations(trusted)
            context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients that end a call early are part of the tests

    def stop(self):
        self.shutdown()
        self.server_close()


class JsonServer:
    """Answers GET with JSON, until stop(). answer(path) -> (status, bytes), from any thread."""

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

        self._server = TlsServer(cert, ("127.0.0.1", port.number), Handler)

    def stop(self):
        self._server.stop()
