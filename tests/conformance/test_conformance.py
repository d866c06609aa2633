# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own conformance tests, one by one; see README.md."""
import ladder


def test_conformance(name, outcomes):
    ran, reason = ladder.find(outcomes, name)
    assert ran, f"e2e.test did not run it: {name}"
    assert reason is None, f"{name}\n{reason[:2000]}"
