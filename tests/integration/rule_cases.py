# SPDX-License-Identifier: Apache-2.0
"""Rules of custom resources: schemas with x-kubernetes-validations, values they judge, and schemas that are refused."""


def rule(text, **more):
    return {"rule": text, **more}


def typed(kind, *rules, **more):
    return {"type": kind, **more, **({"x-kubernetes-validations": list(rules)} if rules else {})}


def obj(properties, *rules, **more):
    return typed("object", *rules, properties=properties, **more)


def listed(items, *rules, **more):
    return typed("array", *rules, items=items, **more)


STR, INT, NUM, BOOL = typed("string"), typed("integer"), typed("number"), typed("boolean")
KEEP = {"x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True}
ITEM = obj({"k": STR, "v": INT}, required=["k"])
MAP_LIST = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
SHORT = typed("string", maxLength=20)
RANGE = obj({"min": INT, "max": INT}, rule("self.min <= self.max", message="min must not exceed max"))

def bounded(schema):
    """The schema with a bound wherever it has none: a kube-apiserver refuses rules that may cost too much."""
    if not isinstance(schema, dict):
        return schema
    bound = {"string": ("maxLength", 40), "array": ("maxItems", 9)}.get(schema.get("type"))
    bound = ("maxProperties", 9) if "additionalProperties" in schema else bound
    schema = {k: {n: bounded(s) for n, s in v.items()} if k == "properties" else v if k == "default" else bounded(v) for k, v in schema.items()}
    return {**(dict([bound]) if bound else {}), **schema}


# name: (schema of spec.NAME, values to create it with, (previous value, value) pairs to update it)
CASES = {
    "plain": (obj({"n": INT}, rule("self.n > 3")), [{"n": 4}, {"n": 3}, {}], []),
    "message": (RANGE, [{"min": 1, "max": 2}, {"min": 3, "max": 2}], []),
    "blanks": (obj({"n": INT}, rule(" self.n > 3 ", message="  too small ")), [{"n": 1}], []),
    "scalar": (typed("integer", rule("self > 3", message="small")), [4, 3], []),
    "text": (typed("string", rule("self.startsWith('a')")), ["ab", "ba", ""], []),
    "several": (obj({"n": INT}, rule("self.n > 3"), rule("self.n % 2 == 0", message="odd"), rule("true")), [{"n": 1}, {"n": 4}], []),
    "numbers": (obj({"a": NUM, "b": INT}, rule("self.a < 2.5"), rule("self.a < self.b")), [{"a": 2, "b": 3}, {"a": 3, "b": 1}, {"a": 2.5, "b": 9}], []),
    "missing": (obj({"n": INT, "m": STR}, rule("!has(self.n) || self.m == 'x'")), [{}, {"n": 1}, {"n": 1, "m": "x"}], []),
    "nullable": (obj({"n": {"type": "integer", "nullable": True}}, rule("!has(self.n)")), [{"n": None}, {"n": 1}, {}], []),
    "overload": (obj({"x": EITHER}, rule("self.x < 5")), [{"x": 4}, {"x": 6}, {"x": "a"}], []),
    "either": (obj({"x": EITHER}, rule("type(self.x) == int ? self.x < 5 : self.x.endsWith('%')")), [{"x": 4}, {"x": "6%"}, {"x": "a"}, {"x": 7}], []),
    "key": (obj({"m": typed("object", additionalProperties=INT)}, rule("self.m['a'] == 1")), [{"m": {"a": 1}}, {"m": {"b": 1}}, {"m": {"a": 2}}], []),
    "divided": (obj({"n": INT}, rule("10 / self.n > 1")), [{"n": 0}, {"n": 5}], []),
    "range": (listed(INT, rule("self.all(x, x > 0)"), rule("size(self) < 3"), rule("self[1] > 0")), [[1, 2], [0, 1], [1, 2, 3], [1]], []),
    "items": (listed(obj({"n": INT}, rule("self.n > 0", message="positive")), maxItems=9), [[{"n": 1}, {"n": 0}, {"n": -1}], []], []),
    "values": (typed("object", additionalProperties=typed("string", rule("self != 'x'"))), [{"a": "x", "b.c": "x", "d": "y"}], []),
    "map": (typed("object", rule("self.all(k, k.startsWith('a'))"), rule("'a' in self"), additionalProperties=STR), [{"a": "1"}, {"b": "1"}], []),
    "nested": (obj({"a": obj({"b": typed("string", rule("self == 'x'"))}, rule("self.b != 'y'"))}), [{"a": {"b": "x"}}, {"a": {"b": "y"}}], []),
    "escaped": (obj({"a-b": STR, "c.d": STR, "e/f": STR, "g__h": STR, "namespace": STR, "_i": STR}, rule(
        "self.a__dash__b == '1' && self.c__dot__d == '1' && self.e__slash__f == '1' && self.g__underscores__h == '1' && "
        "self.__namespace__ == '1' && self._i == '1'")),
        [dict.fromkeys(["a-b", "c.d", "e/f", "g__h", "namespace", "_i"], "1"), {"a-b": "2"}], []),
    "keywords": (obj({"m": obj({"namespace": STR, "for": STR})}, rule("!has(self.m.namespace) || self.m.namespace == 'a'"),
                     rule("self.m.for == 'b' || self.m.__for__ == 'c'")), [{"m": {"namespace": "a", "for": "b"}}, {"m": {"namespace": "b", "for": "x"}}], []),
    "hidden": (obj({"a b": typed("string", rule("self == 'x'"))}), [{"a b": "x"}, {"a b": "y"}], []),
    "keeps": (obj({"a": STR}, rule("self.a == 'x'"), **KEEP), [{"a": "x", "more": 1}, {"a": "y", "more": 1}], []),
    "bytes": (obj({"b": typed("string", format="byte")}, rule("self.b == b'abc'")), [{"b": "YWJj"}, {"b": "YWJk"}], []),
    "times": (obj({"t": typed("string", format="date-time"), "d": typed("string", format="date"), "p": typed("string", format="duration")}, rule(
        "(!has(self.t) || self.t < timestamp('2020-01-01T00:00:00Z')) && (!has(self.d) || self.d.getFullYear() == 2019) && "
        "(!has(self.p) || self.p > duration('5m'))")),
        [{"t": "2019-01-01T00:00:00Z"}, {"t": "2021-01-01T00:00:00Z"}, {"d": "2019-02-03"}, {"d": "2020-02-03"}, {"p": "6m"}, {"p": "1s"}], []),
    "quantity": (obj({"q": STR}, rule("quantity(self.q).isLessThan(quantity('1Gi'))")), [{"q": "5Mi"}, {"q": "2Gi"}, {"q": "x"}], []),
    "address": (obj({"i": STR, "c": STR}, rule("isIP(self.i) && ip(self.i).family() == 4"), rule("cidr(self.c).containsIP(self.i)")),
                [{"i": "10.1.2.3", "c": "10.0.0.0/8"}, {"i": "::1", "c": "10.0.0.0/8"}, {"i": "x", "c": "10.0.0.0/8"}], []),
    "patterns": (obj({"s": STR}, rule("self.s.matches('^[a-z]+$')"), rule("self.s.find('[b-d]') == 'b'")), [{"s": "abc"}, {"s": "A"}], []),
    "optional": (obj({"o": obj({"n": INT})}, rule("self.?o.?n.orValue(5) == 5")), [{}, {"o": {}}, {"o": {"n": 4}}], []),
    "evaluated": (obj({"n": INT}, rule("self.n > 3", messageExpression="'n is ' + (self.n < 2 ? 'low' : 'not high')")), [{"n": 1}, {"n": 4}], []),
    "fallback": (obj({"n": INT, "s": typed("string", maxLength=7000)}, rule("self.n > 3", message="fallback", messageExpression="self.s")),
                 [{"n": 1, "s": "told"}, {"n": 1}, {"n": 1, "s": "a\nb"}, {"n": 1, "s": "  "}, {"n": 1, "s": "x" * 6000}], []),
    "no-message": (obj({"n": INT, "s": STR}, rule("self.n > 3", messageExpression="self.s")), [{"n": 1}], []),
    "forbidden": (typed("integer", rule("self > 3", reason="FieldValueForbidden", message="no")), [1], []),
    "required": (obj({"a": STR}, rule("has(self.a)", reason="FieldValueRequired", message="a is missing", fieldPath=".a")), [{}, {"a": "x"}], []),
    "duplicate": (typed("integer", rule("self > 3", reason="FieldValueDuplicate", message="again")), [1], []),
    "duplicates": (listed(STR, rule("self.all(x, self.exists_one(y, x == y))", reason="FieldValueDuplicate"), maxItems=9), [["a", "a"], ["a", "b"]], []),
    "invalid": (typed("string", rule("self == 'a'", reason="FieldValueInvalid")), ["b"], []),
    "path": (obj({"a": obj({"b.c": STR, "m": typed("object", additionalProperties=STR)})},
                 rule("self.a.m.size() == 0", fieldPath=".a['b.c']"), rule("false", fieldPath=".a.m['x y']"), rule("false", fieldPath=".a.m.k")),
             [{"a": {"m": {"x": "y"}}}], []),
    "fixed": (typed("string", rule("self == oldSelf", message="immutable")), ["a"], [("a", "a"), ("a", "b")]),
    "once": (obj({"s": STR, "n": INT}, rule("!has(oldSelf.s) || has(self.s) && self.s == oldSelf.s", message="s stays")), [{"s": "a"}],
             [({"s": "a"}, {"s": "b"}), ({"s": "a"}, {"n": 1}), ({"n": 1}, {"s": "a"}), (None, {"s": "a"})]),
    "grows": (typed("integer", rule("self >= oldSelf", messageExpression="'%d is less than %d'.format([self, oldSelf])")), [1], [(3, 2), (3, 4)]),
    "optional-old": (typed("integer", rule("oldSelf.hasValue() ? self > oldSelf.value() : self == 1", optionalOldSelf=True, message="grow from 1",
                                           messageExpression="oldSelf.hasValue() ? 'changed' : 'new'")), [1, 2], [(1, 2), (1, 1)]),
    "keyed": (listed(obj({"k": STR, "v": INT}, rule("self.v >= oldSelf.v", message="grows"), required=["k"]), **MAP_LIST), [],
              [([{"k": "a", "v": 1}, {"k": "b", "v": 5}], [{"k": "b", "v": 4}, {"k": "a", "v": 2}, {"k": "c", "v": 0}])]),
    "members": (typed("object", additionalProperties=typed("integer", rule("self == oldSelf"))), [], [({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4})]),
    "list-map": (listed(ITEM, rule("self == oldSelf", message="same items"), rule("(oldSelf + self).size() < 4"), **MAP_LIST), [],
                 [([{"k": "a", "v": 1}, {"k": "b"}], [{"k": "b"}, {"k": "a", "v": 1}]), ([{"k": "a", "v": 1}], [{"k": "a", "v": 2}]),
                  ([{"k": "a"}, {"k": "b"}], [{"k": "c"}, {"k": "d"}])]),
    "set": (listed(STR, rule("self == oldSelf"), rule("oldSelf + self == oldSelf"), **{"x-kubernetes-list-type": "set"}), [],
            [(["a", "b"], ["b", "a"]), (["a", "b"], ["a"]), (["a"], ["a", "c"])]),
    "atomic": (listed(STR, rule("self == oldSelf")), [], [(["a", "b"], ["b", "a"]), (["a"], ["a"])]),
    "objects": (obj({"a": STR, "b": obj({"c": INT})}, rule("self == oldSelf"), **KEEP), [],
                [({"a": "x", "z": 1}, {"z": 1, "a": "x"}), ({"a": "x", "z": 1}, {"a": "x", "z": 2}), ({"b": {"c": 1}}, {"b": {"c": 2}})]),
    "embedded": ({"type": "object", "x-kubernetes-embedded-resource": True, **KEEP, "x-kubernetes-validations": [
        rule("self.kind == 'Pod' && self.metadata.name.startsWith('a')")]},
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ab"}}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}], []),
    "unknown": (obj({"u": {**KEEP}, "s": STR}, rule("self.s == 'a'")), [{"u": {"x": 1}, "s": "a"}, {"u": [1], "s": "b"}], []),
    "sized": (obj({"l": listed(SHORT, maxItems=5)}, rule("self.l.map(x, size(x)).sum() < 10")), [{"l": ["abc"]}, {"l": ["abcdef", "ghijk"]}], []),
    "sorted": (listed(INT, rule("self.isSorted()"), rule("self.min() > 0")), [[1, 2], [2, 1], [0]], []),
    "joined": (listed(STR, rule("self.join(',').size() < 6"), rule("self.filter(x, x.startsWith('a')).size() == 1")), [["a", "b"], ["abc", "abcd"]], []),
    "formatted": (obj({"n": INT, "s": STR}, rule("self.n > 3", messageExpression="'%s has %d'.format([self.s, self.n])")), [{"n": 1, "s": "x"}], []),
    "variables": (listed(INT, rule("self.exists(i, v, i == v)")), [[0], [1, 2]], []),
    "boolean": (obj({"b": BOOL, "s": STR}, rule("self.b ? has(self.s) : !has(self.s)")), [{"b": True, "s": "x"}, {"b": True}, {"b": False, "s": "x"}], []),
    "dear": (listed(INT, rule("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"), maxItems=60), [[1] * 60, [1]], []),
    "blocked": (obj({"n": INT, "e": typed("string", enum=["a"]), "i": typed("integer", minimum=5)}, rule("self.n > 3", message="small"), required=["n"]),
                [{}, {"n": 1, "e": "b"}, {"n": 1, "i": 3}, {"n": "x"}], []),
}

# (name, what a previous value was stored with before its rules were added, values to update it to)
RATCHETS = [
    ("same", {"a": "bad"}, {"a": "bad"}), ("changed", {"a": "bad"}, {"a": "worse"}), ("mended", {"a": "bad"}, {"a": "good"}),
    ("beside", {"a": "bad", "b": "x"}, {"a": "bad", "b": "y"}), ("list", {"l": ["bad", "bad"]}, {"l": ["bad", "bad"]}),
    ("list-more", {"l": ["bad"]}, {"l": ["bad", "bad"]}), ("keyed", {"k": [{"k": "a", "v": 0}, {"k": "b", "v": 0}]},
                                                           {"k": [{"k": "b", "v": 0}, {"k": "a", "v": -1}]}),
    ("map", {"m": {"x": "bad"}}, {"m": {"x": "bad", "y": "bad"}}), ("whole", {"a": "bad", "n": 1}, {"a": "bad", "n": 2}),
    ("transition", {"t": "a"}, {"t": "a"}), ("error", {"e": {}}, {"e": {}}), ("deep", {"d": {"e": {"f": "bad"}}}, {"d": {"e": {"f": "bad", "g": "x"}}}),
]
GOOD = typed("string", rule("self != 'bad' && self != 'worse'", message="bad"))
RATCHETED = {
    "a": GOOD, "b": STR, "n": INT, "l": listed(GOOD), "k": listed(obj({"k": STR, "v": typed("integer", rule("self > 0"))}, required=["k"]), **MAP_LIST),
    "m": typed("object", additionalProperties=GOOD), "t": typed("string", rule("oldSelf != 'a'")), "e": obj({"x": STR}, rule("self.x == ''")),
    "d": obj({"e": obj({"f": GOOD, "g": STR}, rule("self.f != 'bad'", message="outer"))}),
}

# Schemas of `spec` that a CRD is refused with, or installs with.
SCHEMAS = {
    "good": obj({"n": INT}, rule("self.n > 0")), "syntax": obj({"n": INT}, rule("self.n >")), "field": obj({"n": INT}, rule("self.m > 0")),
    "nested": obj({"n": obj({"x": INT})}, rule("self.n.y == 1")), "int": obj({"n": INT}, rule("self.n")), "name": obj({"n": INT}, rule("foo")),
    "types": obj({"n": INT}, rule("self.n == 'a'")), "function": obj({"n": INT}, rule("fun(self.n)")), "pattern": typed("string", rule("self.matches('(')")),
    "empty": obj({"n": INT}, rule(" ")), "message": obj({"n": INT}, rule("true", message=" ")), "lines": obj({"n": INT}, rule("true", message="a\nb")),
    "long-rule": obj({"n": INT}, rule("true\n&& true")), "long-rule-message": obj({"n": INT}, rule("true\n&& true", message="m")),
    "expression": obj({"n": INT}, rule("true", messageExpression="self.n")), "expression-name": obj({"n": INT}, rule("true", messageExpression="x")),
    "expression-blank": obj({"n": INT}, rule("true", messageExpression=" ")), "reason": obj({"n": INT}, rule("true", reason="Nope")),
    "path": obj({"n": INT}, rule("true", fieldPath=".m")), "path-blank": obj({"n": INT}, rule("true", fieldPath=" ")),
    "path-list": obj({"l": listed(INT)}, rule("true", fieldPath=".l[0]")), "path-plain": obj({"n": INT}, rule("true", fieldPath="n")),
    "path-good": obj({"a b": INT}, rule("true", fieldPath="['a b']")), "path-open": obj({"n": INT}, rule("true", fieldPath="['n'")),
    "atomic": listed(typed("string", rule("self == oldSelf"))), "set": listed(typed("string", rule("self == oldSelf")), **{"x-kubernetes-list-type": "set"}),
    "deep": listed(obj({"m": typed("object", additionalProperties=listed(obj({"s": typed("string", rule("oldSelf == self"))})))})),
    "map": listed(obj({"k": STR, "v": typed("string", rule("self == oldSelf"))}, required=["k"]), **MAP_LIST),
    "optional-unused": obj({"n": INT}, rule("true", optionalOldSelf=True)), "optional-type": obj({"n": INT}, rule("oldSelf.n == 1", optionalOldSelf=True)),
    "untyped": {**KEEP, "x-kubernetes-validations": [rule("true")]}, "hidden": obj({"u": {**KEEP}}, rule("self.u == 1")),
    "unescaped": obj({"a-b": INT}, rule("self.a-1 == 1")), "several": obj({"n": INT, "m": typed("string", rule("self.x"))}, rule("self.n"), rule("self.z")),
    "quoted": obj({"n": STR}, rule("self.n < '<&>' && 1")), "numbers": obj({"n": INT, "d": NUM}, rule("self.n + self.d > 1")),
    "maps": typed("object", rule("self.x == 1"), additionalProperties=INT), "map-types": typed("object", rule("self['x'] == 'a'"), additionalProperties=INT),
    "null": obj({"n": obj({})}, rule("self.n == null")), "scalar-null": obj({"n": INT}, rule("self.n == null")),
    "default": obj({"s": typed("string", rule("self == 'a'"), default="b")}), "default-good": obj({"s": typed("string", rule("self == 'a'"), default="a")}),
    "object-list": obj({"n": INT}, rule("self.all(x, true)")), "index": obj({"n": INT}, rule("self['n'] == 1")), "authorizer": obj({"n": INT}, rule("authorizer == 1")),
    "nested-rules": {"type": "object", "allOf": [{"x-kubernetes-validations": [rule("true")]}]}, "oldest": typed("string", rule("oldSelf == 'a' || self == 1")),
}
