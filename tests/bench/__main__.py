# SPDX-License-Identifier: Apache-2.0
"""So that the folder is the command: `/usr/bin/python3 tests/bench`."""
import bench

bench.main()
