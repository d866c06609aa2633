# SPDX-License-Identifier: Apache-2.0
"""The suite against real processes; everything it uses is in testenv."""
from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name
