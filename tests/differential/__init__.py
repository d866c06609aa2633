# SPDX-License-Identifier: Apache-2.0
"""The differential suite: the same requests to Sublet and to a real kube-apiserver, the answers compared."""
