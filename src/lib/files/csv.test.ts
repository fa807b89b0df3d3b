import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { readRecord, writeRecord } from './csv.ts'

// Expectations are the output of Go's own encoding/csv.

describe('readRecord() of a CSV file', () => {
  for (const [text, fields] of [
    ['a,b', ['a', 'b']],
    ['"a,b",c', ['a,b', 'c']],
    ['\n\na,b\nc', ['a', 'b']],
    ['a,', ['a', '']],
    [',', ['', '']],
    ['"a""b"', ['a"b']],
    ['"a\nb",c', ['a\nb', 'c']],
    ['a\r\nb', ['a']],
    [' ', [' ']],
    ['""', ['']],
  ] as const) {
    it(`reads ${JSON.stringify(text)}`, () => assert.deepEqual(readRecord(text), fields))
  }

  for (const [text, message] of [
    ['a"b,c', 'parse error on line 1, column 2: bare " in non-quoted-field'],
    ['"a"b', 'parse error on line 1, column 3: extraneous or missing " in quoted-field'],
    ['"abc', 'parse error on line 1, column 5: extraneous or missing " in quoted-field'],
    ['"a\nb"x', 'record on line 1; parse error on line 2, column 2: extraneous or missing " in quoted-field'],
    ['"a\nb', 'record on line 1; parse error on line 2, column 2: extraneous or missing " in quoted-field'],
    ['"a\n', 'parse error on line 1, column 4: extraneous or missing " in quoted-field'],
    ['é"x', 'parse error on line 1, column 3: bare " in non-quoted-field'],
    ['\n', 'EOF'],
  ] as const) {
    it(`rejects ${JSON.stringify(text)}`, () => assert.throws(() => readRecord(text), { message }))
  }
})

describe('writeRecord() of a CSV file', () => {
  it('writes records that readRecord() reads back', () => {
    const field = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', ' ', 'é', '\\', '.') })
    const fields = fc.array(field, { minLength: 1, maxLength: 5 }).filter((all) => all.join('') !== '')
    fc.assert(fc.property(fields, (all) => assert.deepEqual(readRecord(writeRecord(all)), all)))
  })
})
