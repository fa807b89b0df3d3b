import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { splitArguments } from './builder-arguments.ts'

describe('resource arguments of kubectl', () => {
  it('consist of a type and names', () => {
    assert.deepEqual(splitArguments(['pods', 'a', 'b']), { args: ['pods', 'a', 'b'], tuples: [] })
  })

  it('combine several types with each name', () => {
    const { tuples } = splitArguments(['pods,svc', 'a', 'b'])
    const pairs = tuples.map(({ type, name }) => `${type}/${name}`)
    assert.deepEqual(pairs, ['pods/a', 'pods/b', 'svc/a', 'svc/b'])
  })

  it('may have the form type/name', () => {
    assert.deepEqual(splitArguments(['pods/a']).tuples, [{ type: 'pods', name: 'a' }])
  })

  for (const [args, message] of [
    [['pods/a', 'b'], /there is no need to specify a resource type as a separate argument/],
    [['pods/a/b'], /may not have more than one slash/],
    [['pods/'], /must have a single resource and name/],
    [['pods,svc/a'], /must have a single resource and name/],
  ] as const) {
    it(`are refused: ${args.join(' ')}`, () => {
      assert.throws(() => splitArguments(args), message)
    })
  }
})
