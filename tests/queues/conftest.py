# SPDX-License-Identifier: Apache-2.0
"""One real host for the session; its Kueue is the module's."""
import os
import sys

import pytest

from testenv import binaries
from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
from testenv.kueue import Kueue
from testenv.schedulers import Kai, Volcano

sys.path.append(os.path.join(binaries.TREE, "tests", "integration"))  # what its tests make


@pytest.fixture(scope="session")
def host(real_host):
    return real_host


SCHEDULERS = {"kai": Kai, "volcano": Volcano}


@pytest.fixture(scope="module", params=SCHEDULERS)
def scheduler(request, real_host, tmp_path_factory):
    made = SCHEDULERS[request.param](real_host, tmp_path_factory.mktemp(request.param)).start()
    made.kind = request.param
    yield made
    made.stop()


@pytest.fixture(scope="module")
def kueue(real_host, tmp_path_factory):
    made = Kueue(real_host, tmp_path_factory.mktemp("kueue")).start()
    yield made
    made.stop()
