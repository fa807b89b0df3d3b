/** Expressions whose results are recorded from cel-go in Kubernetes' environment, by area. None has variables. */
const AREAS: Readonly<Record<string, string>> = {
  arithmetic: `
    1 + 2 * 3 - 4
    7 / 2
    -7 / 2
    -7 % 3
    1 / 0
    1 % 0
    9223372036854775807 + 1
    -9223372036854775807 - 2
    9223372036854775807 * 2
    1u + 2u
    1u - 2u
    1.5 + 2.25
    1.0 / 0.0
    1 + 1.0
    1u + 1
    -(-9223372036854775807 - 1)`,
  comparison: `
    1 == 1.0
    1 < 1.5
    2u > 1
    'a' < 'b'
    b'a' < b'b'
    true > false
    [1, 2] == [1, 2]
    [1, 2] == [2, 1]
    {'a': 1} == {'a': 1}
    {'a': 1} == {'a': 1.0}
    null == null
    1 == null
    1 == 'a'
    1 < 'a'
    [1] < [2]
    dyn(1) == dyn('a')
    timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')
    duration('1h') > duration('59m')`,
  logic: `
    true || 1 / 0 == 1
    1 / 0 == 1 || true
    false && 1 / 0 == 1
    1 / 0 == 1 && true
    true ? 1 : 2
    true ? 1 : 'a'
    false ? 1 / 0 : 3
    !true
    !!false
    !1`,
  lists: `
    [1, 2, 3][1]
    [1, 2, 3][3]
    [1, 2, 3][-1]
    [1] + [2, 3]
    2 in [1, 2]
    'a' in ['b']
    size([1, 2, 3])
    [].size()
    [1, 2, 3].all(x, x > 0)
    [1, 2, 3].exists(x, x == 2)
    [1, 2, 2].exists_one(x, x == 2)
    [1, 2, 3].filter(x, x % 2 == 1)
    [1, 2, 3].map(x, x * x)
    [1, 2, 3].map(x, x > 1, x * 10)
    [1, 2, 0].all(x, 4 / x > 0)
    [3, 1, 2].isSorted()
    [1, 2, 3].sum()
    [1.5, 2.5].sum()
    ['b', 'a'].min()
    [3, 1, 2].max()
    [].max()
    [1, 2, 1].indexOf(1)
    [1, 2, 1].lastIndexOf(1)
    [[1, 2], [3]].map(x, x.size())
    [1, 2, 3, 4].slice(1, 3)
    [1, [2, [3]]].flatten()
    [2, 1].sort()
    [3, 1, 2].sortBy(x, -x)
    [1, 1, 2].distinct()
    lists.range(4)`,
  maps: `
    {'a': 1}['a']
    {'a': 1}['b']
    {'a': 1}.a
    {'a': 1}.b
    has({'a': 1}.a)
    has({'a': 1}.b)
    'a' in {'a': 1}
    size({'a': 1, 'b': 2})
    {'a': 1, 'a': 2}
    {1: 'a', 2u: 'b', true: 'c'}
    {1.5: 'a'}
    {'a': 1}.all(k, k == 'a')
    {'a': 1, 'b': 2}.exists(k, k == 'b')
    {'a': 1}.map(k, k + 'x')
    {'a': {'b': 1}}.a.b
    {'a': 1}.transformMap(k, v, v + 1)
    {'a': 1}.transformList(k, v, k)
    {'a': 1}[?'b'].orValue(3)`,
  strings: `
    'a' + 'b'
    'hello'.contains('ell')
    'hello'.startsWith('he')
    'hello'.endsWith('lo')
    'hello'.matches('^h.*o$')
    'hello'.matches('(')
    'hello'.find('l+')
    'a1b22'.findAll('[0-9]+')
    'a1b22'.findAll('[0-9]+', 1)
    'hello'.size()
    'äöü'.size()
    'hello'.charAt(1)
    'hello'.charAt(9)
    'hello'.indexOf('l')
    'hello'.lastIndexOf('l')
    'hello'.replace('l', 'L')
    'hello'.replace('l', 'L', 1)
    'a,b,c'.split(',')
    'a,b,c'.split(',', 2)
    ['a', 'b'].join('-')
    ['a', 1].join('-')
    'hello'.substring(1, 3)
    'hello'.substring(3, 1)
    '  x '.trim()
    'Hello'.lowerAscii()
    'Hello'.upperAscii()
    '%s has %d and %.2f'.format(['x', 3, 1.5])
    '%x %o %b'.format([255, 8, 5])
    '%q'.format(['x'])
    '%d'.format(['x'])
    strings.quote('a"b')
    "\\u00e9\\n\\t"
    r'\\d'`,
  conversions: `
    int('12')
    int('x')
    int(1.9)
    int(1e30)
    int(2u)
    uint(-1)
    uint('3')
    double('1.5')
    double(3)
    string(1.5)
    string(true)
    string(b'abc')
    string(duration('90s'))
    string(timestamp('2026-01-01T00:00:00Z'))
    bytes('abc')
    bool('true')
    bool('maybe')
    type(1)
    type([])
    type(type(1))
    dyn(1) + 1
    int(timestamp('1970-01-01T00:01:00Z'))`,
  times: `
    timestamp('2026-02-28T12:30:45Z').getFullYear()
    timestamp('2026-02-28T12:30:45Z').getMonth()
    timestamp('2026-02-28T12:30:45Z').getDayOfWeek()
    timestamp('2026-02-28T12:30:45Z').getHours('Asia/Tokyo')
    timestamp('2026-02-28T12:30:45Z').getHours('Nowhere')
    timestamp('2026-02-28T12:30:45Z') + duration('24h')
    timestamp('2026-03-01T00:00:00Z') - timestamp('2026-02-28T00:00:00Z')
    timestamp('yesterday')
    duration('1h30m').getMinutes()
    duration('1x')
    duration('-1.5s')
    duration('10000000h')`,
  kubernetes: `
    quantity('1.5Gi').isGreaterThan(quantity('1G'))
    quantity('100m').asApproximateFloat()
    quantity('1k').asInteger()
    quantity('1.5').asInteger()
    quantity('x')
    isQuantity('1Mi')
    quantity('1').add(quantity('500m')).compareTo(quantity('1500m'))
    quantity('2').sub(1).sign()
    url('https://example.com:80/a?b=c').getHostname()
    url('https://example.com:80/a?b=c').getPort()
    url('https://example.com:80/a?b=c').getQuery()
    url('no url')
    isURL('https://example.com/')
    ip('10.0.0.1').family()
    ip('::1').isLoopback()
    ip('300.0.0.1')
    isIP('fe80::1')
    ip.isCanonical('::0:1')
    cidr('10.0.0.0/8').containsIP('10.1.2.3')
    cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))
    cidr('10.0.0.0/8').prefixLength()
    cidr('10.0.0.1/33')
    isCIDR('10.0.0.0/8')
    semver('1.2.3').isLessThan(semver('1.3.0'))
    semver('1.2').major()
    isSemver('1.2.3-rc.1')
    semver('v1.2', true).minor()
    format.dns1123Label().validate('Not_A_Label')
    format.dns1123Label().validate('label').hasValue()
    format.named('uuid').hasValue()`,
  optionals: `
    optional.of(1).value()
    optional.none().value()
    optional.none().orValue(2)
    optional.of(1).hasValue()
    optional.ofNonZeroValue(0).hasValue()
    optional.of(2).optMap(x, x * 2).value()
    {'a': 1}.?a.value()
    {'a': 1}.?b.hasValue()
    [1, 2][?5].orValue(9)
    {?'a': optional.of(1), ?'b': optional.none()}
    [?optional.of(1), ?optional.none()]`,
  mistakes: `
    1 +
    (1
    [1, 2
    {'a': }
    x
    x.y
    foo(1)
    'a'.nosuch()
    size()
    size(1)
    [1].all(1, true)
    [1].exists(x)
    1 in 2
    'a' - 'b'
    'a' && true
    1 ? 2 : 3
    has(1)
    'abc
    0x
    1..2
    @`,
}

export const EXPRESSIONS: readonly string[] = Object.values(AREAS).flatMap((area) =>
  area
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== ''),
)
