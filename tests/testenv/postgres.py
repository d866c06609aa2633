# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test, on a socket of the file system, as a user without privileges: it refuses root."""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile

from .process import Process
from .wait import eventually

PASSWORD = "t0p/secret of@the\"ledger"


def program(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    assert found, "PostgreSQL is not installed: tests/setup does that"
    return found[-1]


class PostgresServer:
    """server.start() ... server.kill(); server.location(name) -> the file of a connection string, with a schema of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="sublet-pg-")
        self.data = os.path.join(self.dir, "data")
        self._as = []
        password = self.write("password", PASSWORD)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (self.dir, password):
                os.chown(path, user.pw_uid, user.pw_gid)
            self._as = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        subprocess.run([*self._as, program("initdb"), "-D", self.data, "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={password}",
                        "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"], check=True, capture_output=True, cwd="/")
        self.process = Process("postgres", [*self._as, program("postgres"), "-D", self.data, "-k", self.dir, "-c", "listen_addresses=",
                                            "-c", "fsync=off"], self.dir)

    def write(self, name, content):
        path = os.path.join(self.dir, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(content)
        return path

    def start(self):
        def ready():
            if not self.process.alive:  # also one that found processes of the one before
                self.process.start()
            return subprocess.run([program("pg_isready"), "-q", "-h", self.dir], check=False).returncode == 0
        eventually(ready, 60, "the PostgreSQL server")
        return self

    def kill(self):
        """kill -9 of the server; its other processes end when they notice."""
        self.process.kill()

    def sql(self, command):
        r = subprocess.run([program("psql"), "-h", self.dir, "-U", "postgres", "-XAtc", command], text=True, capture_output=True,
                           env={**os.environ, "PGPASSWORD": PASSWORD}, timeout=60, check=False)
        assert r.returncode == 0, r.stderr
        return r.stdout.strip()

    def location(self, name, create=True):
        if create:
            self.sql(f"CREATE SCHEMA {name}")
        quoted = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        return self.write(name, f"host={self.dir} user=postgres dbname=postgres password='{quoted}' options='-c search_path={name}'\n")

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
