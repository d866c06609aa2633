# SPDX-License-Identifier: Apache-2.0
"""What the machine itself gives: the same bytes from a file server without a thought (nghttpd, one
thread, same TLS and HTTP/2), and rows of that size in SQLite, synced in batches, without an API."""
import os
import shutil
import sqlite3
import ssl
import subprocess
import time

from load import Load
from testenv.process import Port
from testenv.wait import eventually


class FileServer:
    """nghttpd over a directory; .load(path, ...) as a target has it. None when it is not installed."""

    def __init__(self, directory, pki):
        self.dir = os.path.join(directory, "files")
        os.makedirs(self.dir, exist_ok=True)
        crt, key = pki.issue("files", "/CN=files", hosts=("127.0.0.1",))
        self.port = Port()
        number = self.port.number
        self.port.close()  # nghttpd sets no SO_REUSEADDR toward a bound port
        self.url = f"https://127.0.0.1:{number}"
        self.process = subprocess.Popen(
            ["nghttpd", "--no-content-length", "-d", self.dir, "-a", "127.0.0.1", str(number), key, crt],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: ssl.get_server_certificate(("127.0.0.1", number)), 30, "nghttpd")

    @classmethod
    def start(cls, directory, pki):
        return cls(directory, pki) if shutil.which("nghttpd") else None

    def put(self, name, data):
        with open(os.path.join(self.dir, name), "wb") as f:
            f.write(data)
        return "/" + name

    def load(self, path, n, connections=4, streams=8):
        return Load(self.url, [path], n, connections, streams, directory=os.path.dirname(self.dir))

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def sqlite_rows(directory, row, n=4000, batch=32):
    """Rows per second, in transactions of `batch`, each synced to the disk."""
    path = os.path.join(directory, "raw.db")
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE version(revision INTEGER PRIMARY KEY, name TEXT, bytes BLOB)")
        begin = time.monotonic()
        for start in range(0, n, batch):
            db.execute("BEGIN")
            db.executemany("INSERT INTO version(name, bytes) VALUES(?, ?)",
                           [(f"object-{i}", row) for i in range(start, start + batch)])
            db.execute("COMMIT")
        return n / (time.monotonic() - begin)
    finally:
        db.close()
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
