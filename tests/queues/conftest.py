# SPDX-License-Identifier: Apache-2.0
"""One real host for the session; its Kueue is the module's."""
import os
import sys

import pytest

from testenv import binaries
from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name

sys.path.append(os.path.join(binaries.TREE, "tests", "integration"))  # what its tests make


@pytest.fixture(scope="session")
def host(real_host):
    return real_host
