# SPDX-License-Identifier: Apache-2.0
"""Thousands of published manifests sent to Sublet and to a real kube-apiserver (differential/published.py): every answer is
the same, or a line of the reviewed lists says why it is not. SUBLET_PUBLISHED_OF_A_KIND says how many of each kind."""
import os

import pytest

from differential import published
from differential.servers import prepare, start_pair
from differential.suite import NAMESPACE, accepted, unexpected, unused

OF_A_KIND = int(os.environ.get("SUBLET_PUBLISHED_OF_A_KIND", published.PER_KIND))
REVIEWED = "published.yaml"


@pytest.fixture(scope="module")
def run(workdir):
    """The comparison, and its differences."""
    here, there = start_pair(os.path.join(workdir, "published"))
    try:
        for api in (here.api, there.api):
            prepare(api, NAMESPACE)
        suite = published.Published(here.api, there.api, published.load(per_kind=OF_A_KIND))
        found = suite.run()
        print(f"{suite.objects} objects of {len(suite.kinds)} kinds, {suite.compared} answers compared")
        yield suite, found
    finally:
        try:
            here.close()
        finally:
            there.stop()


def test_answers_are_alike(run):
    suite, found = run
    left = unexpected(found, REVIEWED)
    assert suite.objects >= 2000 and len(suite.kinds) >= 150
    assert not left, f"{sum(map(len, left.values()))} of {suite.compared} answers differ:\n" + "\n".join(
        f"{len(ds):4} {key}\n     {ds[0].changes}" for key, ds in sorted(left.items(), key=lambda x: -len(x[1]))[:40])


def test_the_reviewed_list_is_used(run):
    left = unused(run[1], REVIEWED)
    assert not left, "no difference is explained by:\n" + "\n".join(left)


def test_the_reviewed_list_is_short():
    assert len({why for _, why in accepted(REVIEWED)}) < 10
