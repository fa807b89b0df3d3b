import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { flagRows } from './flag-rows.ts'
import { oneOf } from './kinds.ts'

describe('table rows of flags', () => {
  it('contain kind, default and usage', () => {
    const flags = flagRows({
      'max-pods': 'int =110 How many pods a node takes',
      every: 'duration =1m0s The period',
      names: 'strings =a,b Names',
      quiet: 'bool Say less',
      labels: 'stringMap Labels',
    })
    const values = Object.entries(flags).map(([name, { initial, usage }]) => [name, initial, usage])
    assert.deepEqual(values, [
      ['max-pods', 110, 'How many pods a node takes'],
      ['every', 60_000, 'The period'],
      ['names', ['a', 'b'], 'Names'],
      ['quiet', false, 'Say less'],
      ['labels', new Map(), 'Labels'],
    ])
  })

  it('contain the reason why a flag is unsupported or has no effect', () => {
    const { chance, period } = flagRows({
      chance: 'float unsupported: nothing happens by chance',
      period: 'duration =2s idle: changes are seen at once',
    })
    assert.deepEqual([chance?.unsupported, chance?.initial], ['nothing happens by chance', 0])
    assert.deepEqual([period?.idle, period?.initial], ['changes are seen at once', 2000])
  })

  it('may use flag kinds that a program defines', () => {
    const own = { color: oneOf('red', 'blue') }
    const { paint } = flagRows({ paint: 'color =red Paint' }, own, { paint: { hidden: true, usage: 'The paint' } })
    assert.deepEqual([paint.initial, paint.hidden, paint.usage], ['red', true, 'The paint'])
  })

  it('are rejected if they are malformed', () => {
    assert.throws(() => flagRows({ a: 'int' }), /No row of a flag/)
    assert.throws(() => flagRows({ a: 'colour Paint' }), /No kind of flag: "colour"/)
  })
})
