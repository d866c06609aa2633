# SPDX-License-Identifier: Apache-2.0
"""Policies and requests for test_admission_policies.py. Every policy is about ConfigMaps with the label `case: NAME`, unless
its rules say otherwise; a request is (method, path below the namespace, body)."""

ANY = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]


def rules(resources, operations=("CREATE",), groups=("",), versions=("v1",), **more):
    return [{"apiGroups": list(groups), "apiVersions": list(versions), "operations": list(operations),
             "resources": list(resources), **more}]


MAPS = rules(["configmaps"], ["CREATE", "UPDATE", "DELETE"])

# Printed as the message of a refusal; what fails is the error in it. `object` is the ConfigMap of show() below.
SHOWN = [
    "1 + 2 * 3 - 4 / 2 % 3", "7 / 0", "5 % 0", "9223372036854775807 + 1", "-9223372036854775807 - 2", "1u - 2u", "2.5 * 2.0",
    "1.0 / 0.0", "dyn(1) == 1.0", "dyn(1u) == 1", "1.0", "0.1 + 0.2", "1e21", "1e-7", "123456789.125", "'a' + 'b'",
    "'\\u00e9\\x41\\101'", "r'\\n'", "b'ab'", "size('h\\u00e9llo')", "[1, 2] + [3]", "{'b': 1, 'a': [true, false]}",
    "[1, 2, 3][1]", "[1, 2, 3][3]", "{'a': 1}['b']", "{'a': 1}.b", "2 in [1, 2]", "'x' in {'x': 1}", "true ? 'y' : 'n'",
    "int('12')", "int(object.data.bad)", "int(3.9)", "uint(size('') - 1)", "double('1.5')", "string(1.5)", "string(true)", "bool('true')", "bool(object.data.bad)",
    "type(1) == int", "duration('1h30m')", "duration('1h') + duration('30m') > duration('80m')", "duration('90s').getMinutes()",
    "timestamp('2024-02-29T12:30:15.250Z')", "timestamp('2024-02-29T12:30:15Z').getDayOfMonth()",
    "timestamp('2024-02-29T12:30:15Z').getDayOfWeek()", "timestamp('2024-02-29T12:30:15.25Z').getMilliseconds()",
    "timestamp('2024-02-29T00:00:00Z') + duration('24h')", "timestamp(object.data.n)",
    "timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-29T00:00:00Z')",
    # the object
    "object.data.n", "object.data.none", "has(object.data.none)", "has(object.none.deeper)", "object.metadata.labels['case']",
    "object.metadata.labels.all(k, k != '')", "object.data.map(k, k).size()", "object.data.exists(k, object.data[k] == '5')",
    "object.data.filter(k, k == 'n')", "object.data.exists_one(k, k == 'n')", "object.data.all(k, v, v != '')",
    "object.data.n + 1", "object.data.n > 1", "object.data.n.size() > 0", "object == null", "oldObject == null", "oldObject.data",
    "object.?data.?none.orValue('absent')", "object.?data.?n.hasValue()", "object[?'data'][?'n'].value()",
    "optional.none().value()", "optional.of(1).optMap(x, x + 1).value()", "[?object.?data.?none, ?optional.of('x')].size()",
    "object.data.n.all(x, true)", "object.kind + object.apiVersion", "request.operation", "request.kind.kind", "request.resource.resource",
    "request.name", "request.namespace", "request.dryRun", "has(request.subResource)", "request.userInfo.groups.size() > 0",
    "request.options.kind", "request.options.dryRun", "has(request.options.fieldManager)", "namespaceObject.metadata.name", "namespaceObject.metadata.labels['policies']",
    "namespaceObject.status.phase", "namespaceObject.metadata.labels.size() > 0",
    # strings
    "'tacocat'.indexOf('c', 3)", "'tacocat'.lastIndexOf('a')", "'tacocat'.charAt(2)", "'tacocat'.substring(2, 4)",
    "'tacocat'.substring(9)", "'ABC'.lowerAscii()", "' a '.trim()", "'a,b,c'.split(',', 2)", "''.split(',')", "'abc'.split('')",
    "['a', 'b'].join('-')", "'hello'.replace('l', 'L', 1)", "'abc'.replace('', '-')", "'abc'.matches('^[a-c]+$')",
    "'abc'.matches(object.data.bad)", "'a1b22'.find('[0-9]+')", "'a1b22'.findAll('[0-9]+')", "'a1b22'.findAll('[0-9]+', 1)",
    "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b')", "strings.quote('a\"b\\n')",
    "'%s|%d|%.2f|%x|%b'.format(['a', 3, 1.5, 255, 5])",
    # lists, sets
    "[3, 1, 2].sum()", "[3, 1, 2].min()", "[3, 1, 2].max()", "[1, 2].isSorted()", "[].max() == 1", "[1, 2, 1].indexOf(1)",
    "[1, 2, 1].lastIndexOf(1)", "[1, 2, 3].slice(1, 2)", "[[1], [2]].flatten()", "[1, 1, 2].distinct()", "[1, 2].reverse()",
    "[2, 1].sort()", "['bb', 'a'].sortBy(x, x.size())", "lists.range(3)", "sets.contains([1, 2], [1])",
    "sets.equivalent([1, 2], [2, 1])", "sets.intersects([1], [2])", "[1, 2].map(x, x > 1, x * 2)", "[1, 2].transformList(i, v, i * v)",
    "['a', 'b'].transformMapEntry(i, v, {v: i})", "{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, k != 'a', {v: k})",
    "[1, 2].transformMapEntry(i, v, {'a': v})", "[1, 2].transformMapEntry(i, v, dyn(v))",
    # time zones
    "timestamp('2026-07-01T22:30:15.123Z').getHours('Europe/Berlin')", "timestamp('2026-01-01T22:30:00Z').getHours('Europe/Berlin')",
    "timestamp('2026-12-31T22:30:00Z').getFullYear('+02:00')", "timestamp('2026-01-01T00:30:00Z').getMinutes('-01:15')",
    "timestamp('2026-01-01T00:30:00Z').getDayOfYear('01:00')", "timestamp('2026-01-01T00:30:00Z').getDate('UTC')",
    "timestamp('2026-01-01T00:30:00Z').getDate('')", "timestamp('2026-01-01T00:30:00Z').getDate('Nowhere/Town')",
    "timestamp('2026-01-01T00:30:00Z').getDate('x:00')", "timestamp('2026-01-01T00:30:00Z').getMilliseconds('Asia/Kathmandu')",
    "timestamp('2026-01-01T00:30:00Z').getDayOfWeek('America/Los_Angeles')", "duration('90m').getHours()",
    "{'a': 1}.transformMap(k, v, v + 1)", "[1, 2].exists(i, v, i == 0 && v == 1)",
    # Kubernetes
    "quantity('1.5Gi').isGreaterThan(quantity('1Gi'))", "quantity('1').add(quantity('2')).asInteger()", "sign(quantity('x'))",
    "quantity('1500m').asInteger()", "quantity('1500m').asApproximateFloat()", "isQuantity('5q')", "sign(quantity('-1'))",
    "quantity('2').compareTo(quantity('2000m'))", "isIP('1.2.3.4')", "isIP('1.2.3.256')", "ip('::1').family()",
    "ip('127.0.0.1').isLoopback()", "ip('x').family()", "cidr('10.0.0.0/8').containsIP('10.2.3.4')", "isCIDR('10.0.0.0')",
    "cidr('10.0.0.0/8').containsCIDR('10.2.0.0/16')", "cidr('10.0.0.0/8').prefixLength()", "ip('1.2.3.4') == ip('1.2.3.4')",
    "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
    "authorizer.serviceAccount('default', 'nobody').group('').resource('pods').check('get').allowed()",
    "authorizer.requestResource.check('create').allowed()", "authorizer.path('/healthz').check('get').allowed()",
    "ip('8.8.8.8').isGlobalUnicast()", "ip('224.0.1.1').isGlobalUnicast()", "ip('fe80::1').isGlobalUnicast()", "ip('10.0.0.1').isGlobalUnicast()",
    "string(cidr('10.1.2.3/8').masked())", "cidr('fd00:1:2::3/33').masked() == cidr('fd00:1::/33')", "string(cidr('192.168.1.9/24').masked())",
    "string(cidr('y').ip())", "string(cidr('y/8').ip())", "string(cidr('1.2.3.4/x').ip())", "string(cidr('1.2.3.4/33').ip())", "cidr('10.0.0.0/8').containsIP('x')",
    # formats
    "format.dns1123Label().validate('a.b').orValue(['good'])", "format.dns1123Label().validate('ab').hasValue()", "format.dns1123Subdomain().validate('a.b').hasValue()",
    "format.dns1035Label().validate('1a').orValue(['good'])", "format.qualifiedName().validate('a/b/c').orValue(['good'])", "format.dns1123LabelPrefix().validate('ab-').hasValue()",
    "format.dns1123SubdomainPrefix().validate('a.b-').hasValue()", "format.dns1035LabelPrefix().validate('A-').orValue(['good'])", "format.labelValue().validate('-').orValue(['good'])",
    "format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", "format.uuid().validate('x').orValue(['good'])", "format.byte().validate('YWJj').hasValue()",
    "format.byte().validate('*').orValue(['good'])", "format.date().validate('2020-01-02').hasValue()", "format.date().validate('2020-13-02').orValue(['good'])",
    "format.datetime().validate('2020-01-02T03:04:05Z').hasValue()", "format.datetime().validate('x').orValue(['good'])", "format.uri().validate('x').orValue(['good'])",
    "format.uri().validate('https://a.b/c').hasValue()", "format.named('uuid').hasValue()", "format.named('nope').hasValue()",
    "format.named('dns1123Label').value() == format.dns1123Label()", "format.named('dns1035Label').value().validate('a').hasValue()",
    # URLs
    "isURL('https://a.b')", "isURL('a.b')", "isURL('/a')", "isURL('')", "isURL('http://a b/')", "url('HTTPS://A.b:80/c/d?e=f#g').getScheme()",
    "url('https://A.b:80/c/d?e=f#g').getHost()", "url('https://A.b:80/c/d?e=f#g').getHostname()", "url('https://A.b:80/c').getPort()",
    "url('https://a.b/c').getPort()", "url('https://[::1]:80/c').getHost()", "url('https://[::1]:80/c').getHostname()", "url('https://[::1]/c').getPort()",
    "url('https://a.b/c%20d/\u00e9 f').getEscapedPath()", "url('https://a.b/c(d)').getEscapedPath()", "url('/a/b?c').getEscapedPath()",
    "url('mailto:a@b').getEscapedPath()", "url('https://u:p@a.b/c#d').getHost()", "url('https://a.b/?x=1&y=%20&x=2&z').getQuery()['x']",
    "url('https://a.b/?x=1&y=%20+&x=2&z').getQuery()['y']", "url('https://a.b/?x=1&z').getQuery()['z']", "url('https://a.b/?x=1;y=2').getQuery()",
    "url('x').getHost()", "url('').getHost()", "url('http://a:b/').getHost()", "url('http://a%zz/').getHost()", "url('http://a/%zz').getHost()",
    "url(':a').getHost()", "url('http://[::1/').getHost()", "url('http://a^b/').getHost()", "url('http://u ser@a/').getHost()",
    "url('https://a.b') == url('https://a.b')", "url('https://a.b') == url('https://a.c')", "url('https://a%41.b/').getHost()",
    # versions
    "isSemver('1.2.3')", "isSemver('v1.2.3')", "isSemver('v1.2', true)", "semver('1.2.3-a.1+b').major()", "semver('v01.02', true).minor()",
    "semver('1.2.3').patch()", "semver('1.2.3').isLessThan(semver('1.2.10'))", "semver('1.0.0-a').compareTo(semver('1.0.0'))",
    "semver('1.0.0-a.b').compareTo(semver('1.0.0-a.1'))", "semver('1.0.0-a').isGreaterThan(semver('1.0.0-a.1'))", "semver('1.0.0+a') == semver('1.0.0+b')",
    "semver('').major()", "semver('1.2').major()", "semver('1.x.3').major()", "semver('01.2.3').major()", "semver('1.2.3-').major()",
    "semver('1.2.3-01').major()", "semver('1.2.3+').major()", "semver('1.2.3+a_b').major()", "semver('1.2.3-a_b').major()", "semver('1.2-a', true).major()",
    "semver('1..3').major()", "semver('99999999999999999999.1.1').major()", "semver('v000.1.007', true).patch()",
    # errors and short circuits
    "1 / 0 > 1 || true", "1 / 0 > 1 && false", "1 / 0 > 1 || false", "true || object.none", "[1, 0].all(x, 1 / x > 0)",
    "[0, 1].exists(x, 1 / x > 0)", "[0, 0].exists(x, 1 / x > 5)", "dyn('a') > 1", "dyn('a') + 1", "!dyn('a')", "dyn(1) ? 1 : 2",
    "dyn([1]) == [1.0]", "dyn({'a': 1}) == {'a': 1.0}", "variables.five + 1", "variables.twice", "variables.broken",
]

# Refused when the policy is written: (member, expression).
REFUSED = [
    ("expression", e) for e in [
        "[1, ?optional.none()].size() == 1", "[dyn(true), null].size() == 2", "{'a': 1, 'b': dyn(2)}.size() == 2",
        "[object.data.n, 'a'].size() == 2", "[1, ?optional.of(2)].size() == 1",
        "foo == 1", "object.x == 1 &&\n fun(1)", "'a' == 1", "'a'.startsWith(1)", "request.nope == 1", "variables.nope", "1 + 1",
        "object.data", "'a'.matches('(')", "1.all(x, true)", "has(object)", "1 +", "(1 == 1", "1 == 1)", "true &&", "[1, 'a'] == []",
        "{'a': 1, 'b': 'c'} == {}", "'a' + 1 == 'b'", "params.x == 1", "!1", "1 ? true : false", "true ? 1 : 'a'", "1 && true",
        "timestamp('x') < timestamp('y')", "duration('x') < duration('1s')", "size(1) == 1", "for == 1", "-'a' == 1", "[1][true] == 1",
        "'abc", "\"a\\q\" == ''", "quantity('1') < quantity('2')", "request.kind.nope == ''", "99999999999999999999 == 1",
        "[1].exists(i, i, true)", "[1].transformMapEntry(i, v, v) == {}", "{'a': 1}.transformMapEntry(i, v, 'x') == {}",
        "timestamp('2026-01-01T00:00:00Z').getHours(1) == 1",
        "object.all(x, y)", "authorizer.check('x')", "1 in 1", "request.userInfo.groups.exists(g, g == 1)",
    ]
] + [("messageExpression", e) for e in ["1", "object.data.n", "authorizer.group('').resource('pods').check('get').reason()",
                                        "['a']", "true ? 'a' : 'b'", "nope"]]
