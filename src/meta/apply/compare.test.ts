import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleType } from '#kits/meta/example-kind.ts'

import { ItemFault } from './atom.ts'
import { compareTyped } from './compare.ts'
import { type FieldSet, pathsOf } from './field-set.ts'
import { printPath } from './path-element.ts'

function paths(set: FieldSet): string[] {
  return [...pathsOf(set)].map((path) => printPath(path).replace('.spec', ''))
}

interface Changes {
  readonly added?: string[]
  readonly modified?: string[]
  readonly removed?: string[]
}

type Spec = Record<string, unknown>
type Case = readonly [what: string, before: Spec, after: Spec, changes: Changes]

const TABLE: readonly Case[] = [
  ['no change in equal values', { image: 'a', tags: ['x'] }, { tags: ['x'], image: 'a' }, {}],
  ['a changed value', { image: 'a' }, { image: 'b' }, { modified: ['.image'] }],
  ['an added value', {}, { image: 'b' }, { added: ['.image'] }],
  ['a removed value', { image: 'a' }, {}, { removed: ['.image'] }],
  ['no change in a number of two types', { replicas: 1 }, { replicas: 1n }, {}],
  ['an added map and all its entries', {}, { zones: { a: {} } }, { added: ['.zones', '.zones.a'] }],
  [
    'added and removed fields in an entry of a map',
    { zones: { a: { weight: 1 } } },
    { zones: { a: { name: 'x' } } },
    { added: ['.zones.a.name'], removed: ['.zones.a.weight'] },
  ],
  ['a change from null to an empty map', { zones: null }, { zones: {} }, { modified: ['.zones'] }],
  ['added entries in a change from null to a map', { zones: null }, { zones: { a: {} } }, { added: ['.zones.a'] }],
  [
    'added and removed members of a set',
    { tags: ['a', 'b'] },
    { tags: ['c', 'b'] },
    { added: ['.tags[="c"]'], removed: ['.tags[="a"]'] },
  ],
  ['no change in the order of a set', { tags: ['a', 'b'] }, { tags: ['b', 'a'] }, {}],
  ['a change of an atomic list as a whole', { steps: ['a', 'b'] }, { steps: ['b', 'a'] }, { modified: ['.steps'] }],
  [
    'a change of an atomic map as a whole',
    { selector: { a: '1' } },
    { selector: { a: '2' } },
    { modified: ['.selector'] },
  ],
  [
    'changes in list items with the same keys, including default keys',
    { ports: [{ port: 1, name: 'a' }] },
    { ports: [{ port: 1, name: 'b', protocol: 'TCP' }] },
    { added: ['.ports[port=1,protocol="TCP"].protocol'], modified: ['.ports[port=1,protocol="TCP"].name'] },
  ],
  [
    'an added list item',
    { ports: [] },
    { ports: [{ port: 1 }] },
    { added: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'] },
  ],
  ['a repeated list item as one', { tags: ['a', 'a'] }, { tags: ['a', 'a', 'a'] }, { modified: ['.tags[="a"]'] }],
  [
    'a change of a list item that is no longer repeated',
    { ports: [{ port: 1 }, { port: 1, name: 'x' }] },
    { ports: [{ port: 1 }] },
    {
      added: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'],
      removed: ['.ports[port=1,protocol="TCP"]'],
    },
  ],
  [
    'a change of a list item that is repeated now',
    { ports: [{ port: 1 }] },
    { ports: [{ port: 1 }, { port: 1, name: 'x' }] },
    {
      added: ['.ports[port=1,protocol="TCP"]'],
      removed: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'],
    },
  ],
  [
    'changes of untyped maps, entry by entry',
    { free: { a: { b: 1 } } },
    { free: { a: { b: 2, c: 3 } } },
    { added: ['.free.a.c'], modified: ['.free.a.b'] },
  ],
  ['a change of an untyped list as a whole', { free: { a: [1] } }, { free: { a: [2] } }, { modified: ['.free.a'] }],
  [
    'a change of an untyped value to a map',
    { free: 1 },
    { free: { a: 1 } },
    { added: ['.free.a'], modified: ['.free'] },
  ],
  [
    'a change of an untyped map to a scalar',
    { free: { a: 1 } },
    { free: [1] },
    { modified: ['.free'], removed: ['.free.a'] },
  ],
  [
    'changes of fields that the schema does not contain',
    { open: { x: { y: 1 } } },
    { open: { x: { y: 2 } } },
    { modified: ['.open.x.y'] },
  ],
]

describe('comparison of two typed values for managedFields', () => {
  for (const [what, before, after, { added = [], modified = [], removed = [] }] of TABLE) {
    it(`finds ${what}`, () => {
      const changes = compareTyped(exampleType, { spec: before }, { spec: after })
      assert.deepEqual(
        [paths(changes.added), paths(changes.modified), paths(changes.removed)],
        [added, modified, removed],
      )
    })
  }

  it('treats keys such as __proto__ like others', () => {
    const before = JSON.parse('{"spec":{"zones":{"__proto__":{"weight":1}}}}') as unknown
    const changes = compareTyped(exampleType, before, { spec: { zones: { constructor: {} } } })
    assert.deepEqual(paths(changes.added), ['.zones.constructor'])
    assert.deepEqual(paths(changes.removed), ['.zones.__proto__', '.zones.__proto__.weight'])
  })

  it('throws for a list item without keys', () => {
    assert.throws(() => compareTyped(exampleType, {}, { spec: { tags: [{}] } }), ItemFault)
  })
})
