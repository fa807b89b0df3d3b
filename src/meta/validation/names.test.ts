import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as names from './names.ts'

const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const dns1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const envVar =
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
const configKey =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

type Case = [value: string, ...complaints: string[]]

const tables: [string, names.Check, Case[]][] = [
  [
    'dns1123Label()',
    names.dns1123Label,
    [
      ['a'],
      ['0-9'],
      ['x'.repeat(63)],
      ['x'.repeat(64), 'must be no more than 63 characters'],
      ['a.b', 'must not contain dots'],
      ['', label],
      ['A', label],
      ['-a', label],
      ['a\n', label],
    ],
  ],
  [
    'dns1123Subdomain()',
    names.dns1123Subdomain,
    [['a.b-c.d'], ['a..b', subdomain], ['x'.repeat(254), 'must be no more than 253 characters'], ['é', subdomain]],
  ],
  ['dns1035Label()', names.dns1035Label, [['a-1'], ['1a', dns1035]]],
  [
    'qualifiedName()',
    names.qualifiedName,
    [
      ['a'],
      ['A.b_c-1'],
      ['example.com/A'],
      ['', 'name part must be non-empty', `name part ${nameRule}`],
      ['/a', 'prefix part must be non-empty'],
      ['a/', 'name part must be non-empty', `name part ${nameRule}`],
      ['A/b', `prefix part ${subdomain}`],
      [`${'x'.repeat(254)}/b`, 'prefix part must be no more than 253 bytes'],
      ['x'.repeat(64), 'name part must be no more than 63 bytes'],
      [
        'a/b/c',
        `a valid label key ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
      ],
    ],
  ],
  ['labelValue()', names.labelValue, [[''], ['a.B_c'], ['x'.repeat(64), 'must be no more than 63 bytes']]],
  ['envVarName()', names.envVarName, [['A_b.c-1'], ['1', envVar], ['..', "must not be '..'"]]],
  [
    'relaxedEnvVarName()',
    names.relaxedEnvVarName,
    [
      ['1 a?'],
      ['', 'environment variable name must be non-empty'],
      ['a=', "a valid environment variable name must consist only of printable ASCII characters other than '='"],
    ],
  ],
  [
    'configMapKey()',
    names.configMapKey,
    [
      ['key.name'],
      ['a/b', configKey],
      ['.', "must not be '.'"],
      ['..a', "must not start with '..'"],
      ['x'.repeat(254), 'must be no more than 253 characters'],
    ],
  ],
  [
    'pathSegmentName()',
    names.pathSegmentName,
    [['a:b'], ['.', "may not be '.'"], ['a/%', "may not contain '/'", "may not contain '%'"]],
  ],
  [
    'portName()',
    names.portName,
    [
      ['http-1'],
      [
        '',
        'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'must contain at least one letter (a-z)',
      ],
      ['80', 'must contain at least one letter (a-z)'],
      ['a--b', 'must not contain consecutive hyphens'],
      ['-a', 'must not begin or end with a hyphen'],
      ['abcdefghijklmnop', 'must be no more than 15 characters'],
    ],
  ],
  [
    'decimalInteger()',
    names.decimalInteger,
    [['0'], ['-5'], ['', 'must be non-empty'], ['-0', 'must be a valid decimal integer in canonical form']],
  ],
]

for (const [title, check, cases] of tables) {
  describe(title, () => {
    for (const [value, ...complaints] of cases) {
      const verdict = complaints.length === 0 ? 'accepts' : 'refuses'
      it(`${verdict} "${value.slice(0, 20)}"`, () => assert.deepEqual(check(value), complaints))
    }
  })
}

describe('validation of names and numbers', () => {
  it('accepts valid and rejects invalid examples', () => {
    const pairs: [names.Check, string, string][] = [
      [names.cIdentifier, '_a1', '1a'],
      [names.wildcardDns1123Subdomain, '*.a.b', '*.*.a'],
      [names.dns1123SubdomainWithUnderscore, '_a.b_c', 'a__'],
      [names.percent, '10%', '10'],
      [names.httpHeaderName, 'X-A', 'X_A'],
      [names.conditionReason, 'A:B', 'A:'],
    ]
    for (const [check, good, bad] of pairs) {
      assert.deepEqual(check(good), [])
      assert.match(check(bad)[0] as string, /regex used for validation is/)
    }
  })

  it('checks the bounds of numbers', () => {
    assert.deepEqual(names.portNumber(65_535), [])
    assert.deepEqual(names.portNumber(0), ['must be between 1 and 65535, inclusive'])
    assert.deepEqual(names.userId(-1), ['must be between 0 and 2147483647, inclusive'])
  })

  it('allows a dash at the end of generateName', () => {
    for (const [base, good] of [
      ['web-', true],
      ['web--', true],
      ['A-', true],
      ['web', true],
      ['-', false],
      ['Web-x', false],
      ['bé-', false],
      ['é-', false],
    ] as const) {
      assert.equal(names.nameIsSubdomain(base, true).length === 0, good, base)
    }
    assert.notDeepEqual(names.nameIsLabel('web-', false), [])
    assert.deepEqual(names.nameIsPathSegment('..', true), [])
  })

  it('checks very long texts quickly and correctly', () => {
    const long = 'a'.repeat(1_000_000)
    assert.equal(names.dns1123Subdomain(`${long}!`).length, 2)
    assert.equal(names.qualifiedName(`${'a.'.repeat(500_000)}!`).length, 2)
  })
})
