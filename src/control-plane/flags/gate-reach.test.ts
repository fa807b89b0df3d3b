import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { ELSEWHERE, findGates, FIXED, REFUSED, WORKING } from './gate-reach.ts'
import { FEATURE_GATES } from './gates.ts'

/** Where a gate that works is looked at: everything but the tables of gates, and tests. */
function sources(): string {
  const root = join(import.meta.dirname, '../..')
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.test|\.suite|\.fixture)\.ts$/.test(name) && !/flags[/\\]gate/.test(name))
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n')
}

describe('feature gates', () => {
  it('that can be changed are each in one table, and no others are', () => {
    const free = Object.entries(FEATURE_GATES).filter(([, { locked }]) => locked !== true)
    const listed = [...WORKING, ...ELSEWHERE, ...Object.keys(FIXED), ...Object.keys(REFUSED)]
    assert.deepEqual(listed.toSorted(), free.map(([name]) => name).toSorted())
  })

  it('that are said to work are looked at', () => {
    const text = sources()
    for (const gate of WORKING) assert.match(text, new RegExp(`\\b${gate}\\b`), gate)
  })

  it('are told of when they change nothing, and refused when that would be a loss', () => {
    const asked = new Map([
      ['CBORServingAndStorage', true],
      ['OpenAPIEnums', true],
      ['KubeletSeparateDiskGC', false],
      ['StorageVersionHash', false],
      ['KMSv1', true],
    ])
    assert.deepEqual(findGates(asked), {
      errors: ['--feature-gates=KMSv1=true is not supported: plugins of KMS v1 are not there; use KMS v2'],
      notes: ['--feature-gates=CBORServingAndStorage=true has no effect: CBOR is neither served nor stored'],
    })
    assert.deepEqual(findGates(new Map()), { errors: [], notes: [] })
  })

  it('that all change at once are told of too', () => {
    const { notes } = findGates(new Map([['AllAlpha', true]]))
    assert.ok(notes.some((note) => note.startsWith('--feature-gates=ShardedListAndWatch=true has no effect')))
  })
})
