# SPDX-License-Identifier: Apache-2.0
"""Changes of objects, drawn from a seed: what a client may get wrong, and what it may well want.

A change is (path, value) with the path a tuple of names and indices; REMOVE takes the member away. Changes are
drawn from one object and made to others of the same form, so that two servers get the same of their own objects.
"""
import copy

REMOVE = object()

TEXTS = ["", "a", "b", "valid-name", "Not_Valid!", "a/b", "a.b.c", "a.b/c-d", "-a", "x" * 64, "x" * 300, "UPPER", "1.2.3.4",
         "fd00::1", "10.0.0.0/8", "80", "http", "/p", "../p", "https://a.b/c", "a b", "ü", "None", "Always", "Exists",
         "In", "TCP", "v1", "*", "*.a.b", "true", "0.5", "50%"]
NUMBERS = [0, 1, 2, -1, 3, 10, 53, 100, 101, 1000, 3600, 65535, 65536, 2147483647, -2147483648]
QUANTITIES = ["0", "1", "-1", "1.5", "100m", "1Gi", "3", "0.0001", "1e3"]
TIMES = ["2026-01-02T03:04:05Z", "2020-01-01T00:00:00.000001Z", None]
MIXED = [0, 1, -1, 80, 70000, "http", "50%", "150%", "-5%", "", "UPPER", "a_b"]
BYTES = ["", "YQ==", "LS0tLS1CRUdJTg=="]


def change(obj, changes):
    """A copy with the changes made; those whose place is gone by an earlier one are left out."""
    obj = copy.deepcopy(obj)
    for path, value in changes:
        _set(obj, path, value)
    return obj


def reaches(obj, path):
    """Whether a change at path does the same to this object as to the one it was drawn from."""
    for key in path[:-1]:
        if not isinstance(key, int):
            obj = obj.get(key) if isinstance(obj, dict) else None
        elif isinstance(obj, list) and key < len(obj):
            obj = obj[key]
        else:
            return False
    return True


def _set(obj, path, value):
    for key, following in zip(path, path[1:]):
        if isinstance(key, int) != isinstance(obj, list):
            return
        if isinstance(obj, list):
            if key >= len(obj):
                return
        elif obj.get(key) is None:
            if value is REMOVE:
                return
            obj[key] = [] if isinstance(following, int) else {}
        obj = obj[key]
        if not isinstance(obj, (dict, list)):
            return
    last = path[-1]
    if isinstance(obj, list) and isinstance(last, int):
        if value is REMOVE:
            del obj[last:last + 1]
        elif last >= len(obj):
            obj.append(copy.deepcopy(value))
        else:
            obj[last] = copy.deepcopy(value)
    elif isinstance(obj, dict) and not isinstance(last, int):
        if value is REMOVE:
            obj.pop(last, None)
        else:
            obj[last] = copy.deepcopy(value)


class Mutator:
    """mutator.draw(object, shape) -> changes; `below` limits them to a member ("spec", "status")."""

    def __init__(self, random, skip=()):
        self.random = random
        self.skip = set(skip)

    def draw(self, obj, shape, below=()):
        places = [p for p in self._places(obj, shape, ()) if p[0][:len(below)] == tuple(below)]
        if not places:
            return []
        out = []
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3))):
            out.append(self._one(*self.random.choice(places)))
        return out

    def _places(self, value, shape, path):
        """(path, value, shape) of everything that is there or could be."""
        if shape is None or path in self.skip:
            return
        if path and path != ("metadata",):
            yield path, value, shape
        if isinstance(value, dict):
            names = set(value) | set(shape.fields())
            for name in sorted(names):
                if path or name not in ("apiVersion", "kind"):
                    yield from self._places(value.get(name), shape.below(name), path + (name,))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                yield from self._places(item, shape.below(i), path + (i,))

    def _one(self, path, value, shape):
        pick = self.random.random()
        if value is None:
            return path, self.value(shape)
        if pick < 0.2:
            return path, REMOVE
        if isinstance(value, list) and value:
            if pick < 0.4:
                return path + (len(value),), copy.deepcopy(self.random.choice(value))
            if pick < 0.6:
                return path + (len(value),), self.value(shape.below(0))
            if pick < 0.7:
                return path, list(reversed(value))
        if isinstance(value, dict) and shape.type == "map" and pick < 0.6:
            return path + (self.random.choice(TEXTS[1:]),), self.value(shape.below("x"))
        if pick < 0.25:
            return path, {} if isinstance(value, dict) else [] if isinstance(value, list) else self.value(shape)
        return path, self.value(shape)

    def value(self, shape, depth=0):
        """A value of the shape's type, most often a likely one."""
        r = self.random
        kind = shape.type if shape else "any"
        if kind == "string":
            known = shape.schema.get("enum")
            return r.choice(known) if known and r.random() < 0.7 else r.choice(TEXTS)
        simple = {"integer": NUMBERS, "number": [0, 1, 0.5], "boolean": [True, False], "quantity": QUANTITIES,
                  "time": TIMES, "bytes": BYTES, "int-or-string": MIXED, "any": [{}, {"a": "b"}]}
        if kind in simple:
            return r.choice(simple[kind])
        if depth > 4:
            return {} if kind in ("object", "map") else []
        if kind == "array":
            return [self.value(shape.below(0), depth + 1) for _ in range(r.choice((0, 1, 1, 2)))]
        if kind == "map":
            return {r.choice(TEXTS[1:]): self.value(shape.below("x"), depth + 1) for _ in range(r.choice((0, 1, 2)))}
        fields, required = shape.fields(), shape.schema.get("required", [])
        return {n: self.value(s, depth + 1) for n, s in fields.items() if n != "managedFields"
                and r.random() < (0.9 if n in required else 0.8 / len(fields))}
