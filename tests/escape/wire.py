# SPDX-License-Identifier: Apache-2.0
"""As much of protobuf as a pod takes: numbers of fields and what stands in them.

A message is a dict of field number to int, str, dict or a list of these. k8s.io/api/core/v1/generated.proto has the numbers.
"""


def _varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def encode(message):
    out = b""
    for number, values in message.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, (bool, int)):
                out += _varint(int(number) << 3) + _varint(int(value))
                continue
            data = encode(value) if isinstance(value, dict) else value.encode() if isinstance(value, str) else value
            out += _varint(int(number) << 3 | 2) + _varint(len(data)) + data
    return out


def protobuf_pod(namespace, name, spec):
    """A Pod in its envelope; `spec` are further fields of PodSpec by number."""
    spec = {2: {1: "c", 2: "example.com/i:1"}, **{int(k): v for k, v in spec.items()}}
    pod = {1: {1: name, 3: namespace}, 2: spec}
    return b"k8s\0" + encode({1: {1: "v1", 2: "Pod"}, 2: encode(pod)})
