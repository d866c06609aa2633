# SPDX-License-Identifier: Apache-2.0
"""Policies and requests for test_admission_policies.py. Every policy is about ConfigMaps with the label `case: NAME`, unless
its rules say otherwise; a request is (method, path below the namespace, body)."""

ANY = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]


def rules(resources, operations=("CREATE",), groups=("",), versions=("v1",), **more):
    return [{"apiGroups": list(groups), "apiVersions": list(versions), "operations": list(operations),
             "resources": list(resources), **more}]


MAPS = rules(["configmaps"], ["CREATE", "UPDATE", "DELETE"])

# Refused when the policy is written: (member, expression).
REFUSED = [
    ("expression", e) for e in [
        "foo == 1", "object.x == 1 &&\n fun(1)", "'a' == 1", "'a'.startsWith(1)", "request.nope == 1", "variables.nope", "1 + 1",
        "object.data", "'a'.matches('(')", "1.all(x, true)", "has(object)", "1 +", "(1 == 1", "1 == 1)", "true &&", "[1, 'a'] == []",
        "{'a': 1, 'b': 'c'} == {}", "'a' + 1 == 'b'", "params.x == 1", "!1", "1 ? true : false", "true ? 1 : 'a'", "1 && true",
        "timestamp('x') < timestamp('y')", "duration('x') < duration('1s')", "size(1) == 1", "for == 1", "-'a' == 1", "[1][true] == 1",
        "'abc", "\"a\\q\" == ''", "quantity('1') < quantity('2')", "request.kind.nope == ''", "99999999999999999999 == 1",
        "object.all(x, y)", "authorizer.check('x')", "1 in 1", "request.userInfo.groups.exists(g, g == 1)",
    ]
] + [("messageExpression", e) for e in ["1", "object.data.n", "authorizer.group('').resource('pods').check('get').reason()",
                                        "['a']", "true ? 'a' : 'b'", "nope"]]
