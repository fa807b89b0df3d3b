import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { hasFormat, isCheckedFormat } from './formats.ts'

/** By format: valid and invalid texts. */
const table: readonly (readonly [format: string, good: readonly string[], bad: readonly string[]])[] = [
  [
    'date-time',
    ['2024-01-02T03:04:05Z', '2024-01-02t03:04:05.678+01:00'],
    ['x', '2024-01-02', '2024-01-02T24:00:00Z', '2024-02-30T00:00:00Z'],
  ],
  ['date', ['2024-02-29'], ['2023-02-29', '24-1-1', '']],
  ['duration', ['1h30m', '0', '22 ns', '3 days', '1w'], ['x', '', '5 parsecs', '99999999999999999999s']],
  ['ipv4', ['10.0.0.1', '010.0.0.1', '::ffff:1.2.3.4'], ['10.0.0', '::1', '1.2.3.256']],
  ['ipv6', ['::1', 'fe80::1', '::ffff:1.2.3.4'], ['1.2.3.4', 'fe80::1%eth0', ':::']],
  ['cidr', ['10.0.0.0/8', '::/0'], ['10.0.0.0', '10.0.0.0/33']],
  [
    'mac',
    ['00:00:5e:00:53:01', '02-00-5e-10-00-00-00-01', '0000.5e00.5301', '00005e005301'],
    ['00:00:5e:00:53', '00:00-5e:00:53:01'],
  ],
  ['uuid', ['0E85A4FC-7EE5-4F13-9C3B-7D6F3A1E4E5B', '0e85a4fc7ee54f139c3b7d6f3a1e4e5b'], ['0e85a4fc', '']],
  ['uuid3', ['bcd02e22-68f0-3046-a512-327cca9def8f'], ['bcd02e22-68f0-4046-a512-327cca9def8f']],
  ['uuid4', ['025b0d74-00a2-4048-bf57-227c5111bb34'], ['025b0d74-00a2-4048-1f57-227c5111bb34']],
  ['uuid5', ['886313e1-3b8a-5372-9b90-0c9aee199e5d'], ['886313e1-3b8a-4372-9b90-0c9aee199e5d']],
  [
    'uri',
    ['https://ex.io/a?b', '/path', 'mailto:x', 'http://[::1]:80/', 'http://u:p@h'],
    ['', 'x', 'a b', 'http://a b/', 'http://h:x/', 'http://[::1', '/%zz', 'http://h:1:2/', 'http://[1.2.3.4]/'],
  ],
  [
    'email',
    ['a@b.c', 'Jane <jane@ex.io>', '"a b"@c', 'a@[1.2.3.4]', 'a@b (x)', 'g: a@b;'],
    ['a (x)@b', 'g: a@b, c@d;', 'a', 'a@', '@b', 'a@b c', 'a..b@c', '<a@b'],
  ],
  ['hostname', ['a', 'ex.io', '1.ex.london', 'a-b'], ['-a', 'a_b', 'ex.i', `${'a'.repeat(64)}.io`]],
  ['byte', ['aGk=', 'aGkh', 'aA=='], ['', 'aGk', 'a===', 'a-b_']],
  ['isbn', ['0321751043', '978-0321751041'], ['0321751044', '978-0321751042']],
  ['isbn10', ['0-8044-2957-X'], ['0-8044-2957-0']],
  ['isbn13', ['978 0321751041'], ['0321751043']],
  ['creditcard', ['4111 1111 1111 1111'], ['4111 1111 1111 1112', '1234']],
  ['ssn', ['111-11-1111'], ['111111111', '111-11-111']],
  ['hexcolor', ['#FFF', '012345'], ['#FFFF', 'red']],
  ['rgbcolor', ['rgb(0, 128,255)'], ['rgb(0,0)', 'rgb(0,0,256)']],
  ['bsonobjectid', ['507f1f77bcf86cd799439011'], ['507f1f77']],
  ['password', ['', 'anything'], []],
  ['k8s-short-name', ['a-1'], ['A', 'a.b', 'x'.repeat(64)]],
  ['k8s-long-name', ['a.b-c'], ['A.b', '.a']],
]

describe('formats in CustomResourceDefinition schemas', () => {
  for (const [format, good, bad] of table) {
    it(`accept the same values as upstream for type ${format}`, () => {
      assert.ok(isCheckedFormat(format, 'string'))
      for (const text of good) assert.ok(hasFormat(format, text), `${text} is a ${format}`)
      for (const text of bad) assert.ok(!hasFormat(format, text), `${text} is no ${format}`)
    })
  }

  it('are checked only if they are known and match the type', () => {
    assert.deepEqual(
      [
        isCheckedFormat('foo', 'string'),
        isCheckedFormat('int32', 'integer'),
        isCheckedFormat('int32', 'string'),
        isCheckedFormat('double', 'number'),
        isCheckedFormat('date', 'integer'),
        isCheckedFormat('date', 'array'),
      ],
      [false, true, false, true, false, false],
    )
  })

  it('are checked quickly for hostile texts', () => {
    const hostile = [`${'a-'.repeat(200_000)}!`, `${'9'.repeat(1_000_000)}s`, '1.'.repeat(200_000), '('.repeat(300_000)]
    for (const [format] of table) for (const text of hostile) hasFormat(format, text)
  })
})
