# SPDX-License-Identifier: Apache-2.0
"""Fixtures and hooks are found by name."""
from testenv.fixtures import *  # noqa: F401,F403
