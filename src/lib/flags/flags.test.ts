import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { defineFlags, flag, FlagError, parseFlags, requireFlags } from './flags.ts'
import { bool, customKind, duration, float, float32, int, int32, oneOf, string, uint } from './kinds.ts'
import { cidr, cidrs, ip, ips, stringArray, stringMap, strings } from './list-kinds.ts'

const set = defineFlags({
  generic: {
    num: flag(int, 5, 'A number', { shorthand: 'n' }),
    interactive: flag(bool, false, 'Keep stdin open', { shorthand: 'i' }),
    tty: flag(bool, false, 'Use a terminal', { shorthand: 't' }),
    all: flag(bool, true, 'All of them'),
    output: flag(string, 'json', 'Output `format`', { shorthand: 'o' }),
    'dry-run': flag(string, 'none', 'Only pretend', { alone: 'unchanged' }),
    timeout: flag(duration, 90_000, 'How long'),
    qps: flag(float32, 20.5, 'QPS'),
    ratio: flag(float, 0, 'Ratio'),
    old: flag(string, '', 'Old', { deprecated: 'use --new instead' }),
    short: flag(string, '', 'Short', { shorthand: 's', shorthandDeprecated: 'use --short' }),
  },
  lists: {
    labels: flag(strings, ['a', 'b c'], 'Labels'),
    arg: flag(stringArray, [], 'Arguments'),
    map: flag(stringMap, new Map([['z', '0']]), 'Map'),
    'bind-address': flag(ip, '0.0.0.0', 'Address'),
    range: flag(cidr, '10.0.0.0/24', 'Range'),
    ranges: flag(cidrs, [], 'Ranges'),
    ips: flag(ips, [], 'Addresses'),
    i32: flag(int32, 0, 'Small'),
    u: flag(uint, 0, 'Positive'),
    format: flag(oneOf('text', 'json'), 'text', 'Format'),
    even: flag(customKind('even', parseEven, String), 0, 'Even'),
  },
})

function parseEven(text: string): number {
  if (Number(text) % 2 !== 0) throw new Error('must be even')
  return Number(text)
}

/** The given flags as pflag's String() shows them, so that rows can be compared with pflag 1.0.9's own output. */
function parsed(args: readonly string[]): Record<string, string> {
  const { values, changed } = parseFlags(set, args)
  const given = [...changed].map((name): [string, string] => {
    const kind = set.byName.get(name)?.kind
    return [name, kind?.print(values[name as keyof typeof values]) ?? '']
  })
  return Object.fromEntries(given)
}

describe('parseFlags', () => {
  const accepted: readonly [readonly string[], Record<string, string>][] = [
    [['-n=7'], { num: '7' }],
    [['-n7'], { num: '7' }],
    [['-n', '7'], { num: '7' }],
    [['--num=7'], { num: '7' }],
    [['--num', '7'], { num: '7' }],
    [['--num', '-7'], { num: '-7' }],
    [['-n0x10'], { num: '16' }],
    [['-it'], { interactive: 'true', tty: 'true' }],
    [['-itn7'], { interactive: 'true', tty: 'true', num: '7' }],
    [['-i=false', '-t'], { interactive: 'false', tty: 'true' }],
    [['-oyaml'], { output: 'yaml' }],
    [['-o=yaml'], { output: 'yaml' }],
    [['-o', ''], { output: '' }],
    [['--output=a=b'], { output: 'a=b' }],
    [['--all=false'], { all: 'false' }],
    [['--all'], { all: 'true' }],
    [['--dry-run'], { 'dry-run': 'unchanged' }],
    [['--dry-run=client'], { 'dry-run': 'client' }],
    [['--dry_run=client'], { 'dry-run': 'client' }],
    [['--bind_address=127.0.0.1'], { 'bind-address': '127.0.0.1' }],
    [['--timeout=1h30m'], { timeout: '1h30m0s' }],
    [['--short=1', '--short=2x'], { short: '2x' }],
    [['--labels=a,b', '--labels', '"c,d"'], { labels: '[a,b,"c,d"]' }],
    [['--labels='], { labels: '[]' }],
    [['--arg=a,b', '--arg=c'], { arg: '["a,b",c]' }],
    [['--map=a=1,b=2', '--map=c=x'], { map: '[a=1,b=2,c=x]' }],
    [['--map=a=1,b'], { map: '["a=1,b"]' }],
    [['--map=__proto__=1'], { map: '[__proto__=1]' }],
    [['--bind-address=::ffff:1.2.3.4'], { 'bind-address': '1.2.3.4' }],
    [['--bind-address=FE80:0::1'], { 'bind-address': 'fe80::1' }],
    [['--range=10.1.2.3/8'], { range: '10.0.0.0/8' }],
    [['--range=10.0.0.0/08'], { range: '10.0.0.0/8' }],
    [['--ranges=10.1.2.3/8,fd00::1/64'], { ranges: '[10.0.0.0/8,fd00::/64]' }],
    [['--ips=1.2.3.4,::1', '--ips', '"::2"'], { ips: '[1.2.3.4,::1,::2]' }],
    [['--qps=1.5', '--ratio=1e6'], { qps: '1.5', ratio: '1e+06' }],
    [['--format=json', '--even=4'], { format: 'json', even: '4' }],
  ]
  for (const [args, expected] of accepted) {
    it(`accepts ${JSON.stringify(args)}`, () => assert.deepEqual(parsed(args), expected))
  }

  const refused: readonly [readonly string[], string][] = [
    [['--nope'], 'unknown flag: --nope'],
    [['--nope=1'], 'unknown flag: --nope'],
    [['--__proto__'], 'unknown flag: --__proto__'],
    [['-x'], "unknown shorthand flag: 'x' in -x"],
    [['-ix'], "unknown shorthand flag: 'x' in -x"],
    [['-itxn'], "unknown shorthand flag: 'x' in -xn"],
    [['--num'], 'flag needs an argument: --num'],
    [['-n'], "flag needs an argument: 'n' in -n"],
    [['-in'], "flag needs an argument: 'n' in -n"],
    [['-n=x'], 'invalid argument "x" for "-n, --num" flag: strconv.ParseInt: parsing "x": invalid syntax'],
    [['--num='], 'invalid argument "" for "-n, --num" flag: strconv.ParseInt: parsing "": invalid syntax'],
    [['-n='], 'invalid argument "=" for "-n, --num" flag: strconv.ParseInt: parsing "=": invalid syntax'],
    [
      ['--num=99999999999999999999'],
      'invalid argument "99999999999999999999" for "-n, --num" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range',
    ],
    [
      ['-i=maybe'],
      'invalid argument "maybe" for "-i, --interactive" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    [['--timeout=5'], 'invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"'],
    [['---x'], 'bad flag syntax: ---x'],
    [['--=x'], 'bad flag syntax: --=x'],
    [
      ['--labels=a"b'],
      'invalid argument "a\\"b" for "--labels" flag: parse error on line 1, column 2: bare " in non-quoted-field',
    ],
    [['--labels=\n'], 'invalid argument "\\n" for "--labels" flag: EOF'],
    [['--map=x'], 'invalid argument "x" for "--map" flag: x must be formatted as key=value'],
    [['--map=a=1,b=2,c'], 'invalid argument "a=1,b=2,c" for "--map" flag: c must be formatted as key=value'],
    [['--bind-address=1.2.3'], 'invalid argument "1.2.3" for "--bind-address" flag: failed to parse IP: "1.2.3"'],
    [
      ['--bind-address=01.2.3.4'],
      'invalid argument "01.2.3.4" for "--bind-address" flag: failed to parse IP: "01.2.3.4"',
    ],
    [['--range=x'], 'invalid argument "x" for "--range" flag: invalid CIDR address: x'],
    [['--range=10.0.0.0/33'], 'invalid argument "10.0.0.0/33" for "--range" flag: invalid CIDR address: 10.0.0.0/33'],
    [['--ranges=x/1'], 'invalid argument "x/1" for "--ranges" flag: invalid string being converted to CIDR: x/1'],
    [['--ips=x'], 'invalid argument "x" for "--ips" flag: invalid string being converted to IP address: x'],
    [
      ['--i32=2147483648'],
      'invalid argument "2147483648" for "--i32" flag: strconv.ParseInt: parsing "2147483648": value out of range',
    ],
    [['--u=-1'], 'invalid argument "-1" for "--u" flag: strconv.ParseUint: parsing "-1": invalid syntax'],
    [['--qps=x'], 'invalid argument "x" for "--qps" flag: strconv.ParseFloat: parsing "x": invalid syntax'],
    [
      ['--qps=1e39'],
      'invalid argument "1e39" for "--qps" flag: strconv.ParseFloat: parsing "1e39": value out of range',
    ],
    [['--format=xml'], 'invalid argument "xml" for "--format" flag: must be one of "text", "json"'],
    [['--even=3'], 'invalid argument "3" for "--even" flag: must be even'],
    [['--short=x', '-s'], "flag needs an argument: 's' in -s"],
  ]
  for (const [args, message] of refused) {
    it(`rejects ${JSON.stringify(args)}`, () => {
      assert.throws(
        () => parseFlags(set, args),
        (error) => error instanceof FlagError && error.message === message,
      )
    })
  }

  it('returns defaults for flags that were not given', () => {
    const { values, changed } = parseFlags(set, [])
    const num: number = values.num
    const labels: readonly string[] = values.labels
    const format: 'text' | 'json' = values.format
    assert.deepEqual([num, labels, format, values.timeout], [5, ['a', 'b c'], 'text', 90_000])
    assert.equal(changed.size, 0)
  })

  it('replaces a list default by the first value given', () => {
    assert.deepEqual(parseFlags(set, ['--labels=x', '--labels=y']).values.labels, ['x', 'y'])
    assert.deepEqual([...parseFlags(set, ['--map=a=1']).values.map], [['a', '1']])
  })

  it('reports a flag as given even if its value is the default', () => {
    assert.ok(parseFlags(set, ['--num=5']).changed.has('num'))
  })

  it('collects arguments between flags and everything after --', () => {
    const { args, argsBeforeDash, values } = parseFlags(set, ['a', '-n7', 'b', '-', '--', '-i', 'c'])
    assert.deepEqual([args, argsBeforeDash, values.num, values.interactive], [['a', 'b', '-', '-i', 'c'], 3, 7, false])
  })

  it('stops at the first argument if flags must come first', () => {
    const { args, values } = parseFlags(set, ['-i', 'get', '--nope', '--', 'x'], { interspersed: false })
    assert.deepEqual([args, values.interactive], [['get', '--nope', '--', 'x'], true])
  })

  it('prints a warning for deprecated flags and shorthands', () => {
    assert.deepEqual(parseFlags(set, ['--old=1', '-s1', '--short=2']).warnings, [
      'Flag --old has been deprecated, use --new instead',
      'Flag shorthand -s has been deprecated, use --short',
    ])
  })

  it('accepts any string in both forms of a flag', () => {
    const anything = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(anything, (text) => {
        assert.equal(parseFlags(set, [`--output=${text}`]).values.output, text)
        assert.equal(parseFlags(set, ['--output', text]).values.output, text)
        assert.deepEqual(parseFlags(set, ['--', text]).args, [text])
      }),
    )
  })
})

describe('defineFlags', () => {
  it('rejects ambiguous flag definitions', () => {
    const any = flag(bool, false, '')
    assert.throws(() => defineFlags({ a: { 'x-y': any }, b: { x_y: any } }), /flag redefined: x_y/)
    const short = flag(bool, false, '', { shorthand: 'x' })
    assert.throws(() => defineFlags({ a: { one: short, two: short } }), /unable to redefine 'x' shorthand/)
    assert.throws(() => defineFlags({ a: { one: flag(bool, false, '', { shorthand: 'xy' }) } }), /more than one ASCII/)
  })
})

describe('requireFlags', () => {
  const needy = defineFlags({
    generic: {
      token: flag(string, '', 'Token', { required: true }),
      ca: flag(string, '', 'CA', { required: true }),
      user: flag(string, '', 'User'),
    },
  })

  it('names all missing flags in order', () => {
    assert.throws(() => requireFlags(needy, parseFlags(needy, [])), {
      message: 'required flag(s) "ca", "token" not set',
    })
  })

  it('accepts empty values of required flags', () => {
    requireFlags(needy, parseFlags(needy, ['--token=', '--ca=']))
  })
})
