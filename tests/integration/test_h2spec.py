# SPDX-License-Identifier: Apache-2.0
"""All of h2spec (RFC 7540 and 7541, the strict cases too) over TLS: nothing fails, nothing is skipped."""
import re
import subprocess

from testenv import binaries

H2SPEC = "h2spec-2.2.1"  # as tests/testenv/build-host.sh names it


def test_every_section(tenant):
    vc = tenant("h2spec", on=False)
    # /version is readable for anybody and long enough for the cases about windows.
    done = subprocess.run(
        [binaries.host_program(H2SPEC), "--tls", "--insecure", "--host", "127.0.0.1",
         "--port", str(vc.port), "--path", "/version", "--strict", "--timeout", "10"],
        capture_output=True, text=True, timeout=600, check=False)
    tally = re.search(r"^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed$", done.stdout, re.M)
    failures = done.stdout.partition("Failures:")[2]
    assert tally, done.stdout[-2000:] + done.stderr[-2000:]
    total, passed, skipped, failed = map(int, tally.groups())
    assert (failed, skipped) == (0, 0) and passed == total >= 146, tally[0] + failures
