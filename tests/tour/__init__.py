# SPDX-License-Identifier: Apache-2.0
"""`tests/demo teams`: ten teams on one GPU cluster, shown and checked."""
