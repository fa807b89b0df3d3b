import assert from 'node:assert/strict'
import { test } from 'node:test'

import { findPemBlocks } from './pem-blocks.ts'

function found(text: string): string[] {
  return [...findPemBlocks(text)].map(
    ({ label, hasHeaders, bytes }) => `${label}${hasHeaders ? '+' : ''}:${bytes.toString()}`,
  )
}

const block = (label: string, body: string): string => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`

test('the PEM parser of certificate requests finds blocks among other text', () => {
  assert.deepEqual(found(`hello\n${block('A', 'YWJj')}more\n${block('B C', 'eHl6')}`), ['A:abc', 'B C:xyz'])
  assert.deepEqual(found(block('A', 'YW\nJj').replaceAll('\n', ' \r\n')), ['A:abc'])
  assert.deepEqual(found('-----BEGIN A-----\n-----END A-----'), ['A:'])
})

test('the PEM parser of certificate requests skips and reports headers', () => {
  assert.deepEqual(found(block('A', 'Proc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nYWJj')), ['A+:abc'])
})

test('the PEM parser of certificate requests ignores malformed blocks', () => {
  const table = [
    '',
    'x-----BEGIN A-----\nYWJj\n-----END A-----\n',
    '-----BEGIN A\nYWJj\n-----END A-----\n',
    '-----BEGIN A-----\nYWJj\n',
    '-----BEGIN A-----\nYWJj\n-----END B-----\n',
    '-----BEGIN A-----\nYWJ\n-----END A-----\n',
    '-----BEGIN A-----\nY?Jj\n-----END A-----\n',
    '-----BEGIN -----',
  ]
  for (const text of table) assert.deepEqual(found(text), [], text)
  for (const text of table.slice(1, 3)) assert.deepEqual(found(`${text}${block('Z', 'YWJj')}`), ['Z:abc'], text)
})
