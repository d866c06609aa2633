# SPDX-License-Identifier: Apache-2.0
"""One real host for the session; Prometheus is Debian's."""
import os
import sys

import pytest
import yaml

from testenv import binaries
from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
from testenv.prometheus import chart_rules

sys.path.append(os.path.join(binaries.TREE, "tests", "integration"))  # what its tests make


@pytest.fixture(scope="session")
def host(real_host):
    return real_host


@pytest.fixture(scope="session")
def rules(tmp_path_factory):
    """{name: (file, groups)} of both charts."""
    directory = tmp_path_factory.mktemp("rules")
    made = {}
    for name, spec in chart_rules(directory).items():
        path = directory / f"{name}.rules.yaml"
        path.write_text(yaml.safe_dump(spec), encoding="utf-8")
        made[name] = (path, spec["groups"])
    return made
