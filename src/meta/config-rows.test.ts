import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ConfigTable, defineConfig, readConfig } from './config-kind.ts'
import { type Complete, optionLabel, parseRow, rangeError, withValueAt } from './config-rows.ts'

const STRUCTS = {
  'v1.Thing': {
    count: 'int32 =3 0.. --count',
    share: '*int32 =50 1..100',
    every: 'v1.Duration =10s --every idle: nothing happens',
    limit: '*v1.Duration =5s',
    words: '[]string =a,b',
    name: 'string',
    part: 'v1.Part',
    more: '*v1.Part',
    parts: '[]v1.Part',
  },
  'v1.Part': { kept: '*bool =true --part:kept unsupported: parts are always on', labels: 'map[string]string' },
} as const

const THING: ConfigTable<Complete<typeof STRUCTS, 'v1.Thing'>> = defineConfig(
  ['Thing', 'v1.Thing'],
  ['test/v1'],
  STRUCTS,
)

describe('table of configuration fields', () => {
  it('sets defaults, also in structs and lists of structs, but not behind absent pointers', () => {
    assert.deepEqual(THING.withDefaults({ every: '0s', limit: '0s', parts: [{}] }), {
      count: 3,
      share: 50,
      every: '10s',
      limit: '0s',
      words: ['a', 'b'],
      part: { kept: true },
      parts: [{ kept: true }],
    })
    assert.deepEqual(THING.withDefaults({ more: {} }).more, { kept: true })
  })

  it("decodes files strictly, with Go's types in errors", () => {
    const read = (rest: string) => readConfig(`{apiVersion: test/v1, kind: Thing, ${rest}}`, [THING]).value
    assert.equal((read('name: x') as { name?: string }).name, 'x')
    assert.throws(() => read('other: 1'), { message: 'strict decoding error: unknown field "other"' })
    assert.throws(() => read('parts: [{kept: 1}]'), {
      message: 'json: cannot unmarshal number into Go struct field Part.parts.kept of type bool',
    })
  })

  it('lists fields by path', () => {
    const option = THING.options.find(({ path }) => path === 'part.kept')
    assert.deepEqual([option?.flag, option?.flagKind, option?.unsupported], ['part', 'kept', 'parts are always on'])
    assert.deepEqual(withValueAt({ part: { kept: true }, count: 1 }, 'part.kept', false), {
      part: { kept: false },
      count: 1,
    })
  })

  it('checks ranges of numbers', () => {
    const errors = (values: object) => THING.options.map((option) => rangeError(option, values)).filter(Boolean)
    assert.deepEqual(errors({ count: 0, share: 100 }), [])
    assert.deepEqual(errors({ count: -1, share: 101 }), [
      'count (--count) -1 must not be a negative number',
      'share 101 must be between 1 and 100, inclusive',
    ])
  })

  it('rejects malformed rows', () => {
    assert.throws(() => parseRow('int32 = 3'), /No row/)
    assert.equal(optionLabel({ ...parseRow('string'), path: 'name' }), 'name')
  })
})
