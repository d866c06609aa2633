# SPDX-License-Identifier: Apache-2.0
"""The file of a store whose process has stopped, through SQLite."""
import contextlib
import os
import sqlite3

EMPTY_LOG = bytes(32)  # a log with its header alone


@contextlib.contextmanager
def stored(directory, name="state.db"):
    """SQLite removes the log with the last connection; a store whose log is gone has lost it. So it stays."""
    path = os.path.join(directory, name)
    log = os.path.exists(path + "-wal")
    db = sqlite3.connect(path)
    try:
        with db:
            yield db
    finally:
        db.close()
        if log and not os.path.exists(path + "-wal"):
            with open(path + "-wal", "wb") as f:
                f.write(EMPTY_LOG)
