import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { decodeQuery, encodeQuery, type QueryShape } from './query.ts'
import { isBadRequest } from './status.ts'

interface Options {
  name?: string
  policy?: string
  dryRun?: string[]
  watch?: boolean
  force?: boolean
  limit?: number
  seconds?: number
  since?: string
}

const shape: QueryShape<Options> = {
  name: 'string',
  policy: 'string?',
  dryRun: 'strings',
  watch: 'bool',
  force: 'bool?',
  limit: 'int',
  seconds: 'int?',
  since: 'time?',
}

describe('decodeQuery()', () => {
  for (const [query, expected] of [
    ['', {}],
    ['name=&policy=&limit=0&seconds=0', { policy: '', seconds: 0 }],
    ['name=a&name=b&unknown=1', { name: 'a' }],
    ['watch', { watch: true }],
    ['watch=0&force=FALSE', { force: false }],
    ['watch=no&force=1', { watch: true, force: true }],
    ['dryRun=All&dryRun=x', { dryRun: ['All', 'x'] }],
    ['limit=-1&seconds=%2B5', { limit: -1, seconds: 5 }],
    ['since=2026-01-02T03:04:05.5%2B01:00', { since: '2026-01-02T02:04:05Z' }],
    ['since=null', {}],
    ['__proto__=x&constructor=y', {}],
  ] as const) {
    it(`parses "${query}"`, () => assert.deepEqual(decodeQuery(shape, new URLSearchParams(query)), expected))
  }

  for (const [query, message] of [
    ['limit=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
    ['seconds=', 'strconv.ParseInt: parsing "": invalid syntax'],
    ['limit=9223372036854775808', 'strconv.ParseInt: parsing "9223372036854775808": value out of range'],
    ['since=x', 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'],
  ] as const) {
    it(`rejects "${query}" as a bad request`, () => {
      assert.throws(
        () => decodeQuery(shape, new URLSearchParams(query)),
        (error: Error) => isBadRequest(error) && error.message === message,
      )
    })
  }
})

describe('encodeQuery()', () => {
  it('omits absent values, and zeros if they mean the same', () => {
    const options: Options = { watch: false, limit: 0, name: '', force: false, seconds: 0, policy: '', dryRun: ['All'] }
    assert.equal(encodeQuery(shape, options).toString(), 'dryRun=All&force=false&policy=&seconds=0')
    assert.equal(
      encodeQuery(shape, { watch: true, limit: 500, name: 'a b' }).toString(),
      'limit=500&name=a+b&watch=true',
    )
  })

  it('writes text that decodeQuery() reads back', () => {
    const options: Options = { name: 'x=y,z', limit: 3, watch: true, force: false, dryRun: ['All'] }
    assert.deepEqual(decodeQuery(shape, encodeQuery(shape, options)), options)
  })
})
