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
  ['equal values', { image: 'a', tags: ['x'] }, { tags: ['x'], image: 'a' }, {}],
  ['a changed value', { image: 'a' }, { image: 'b' }, { modified: ['.image'] }],
  ['an added value', {}, { image: 'b' }, { added: ['.image'] }],
  ['a removed value', { image: 'a' }, {}, { removed: ['.image'] }],
  ['a number in two notations', { replicas: 1 }, { replicas: 1n }, {}],
  ['an added map with all its entries', {}, { zones: { a: {} } }, { added: ['.zones', '.zones.a'] }],
  [
    'an entry of a map',
    { zones: { a: { weight: 1 } } },
    { zones: { a: { name: 'x' } } },
    { added: ['.zones.a.name'], removed: ['.zones.a.weight'] },
  ],
  ['null and empty as different', { zones: null }, { zones: {} }, { modified: ['.zones'] }],
  ['null and a filled map by the contents', { zones: null }, { zones: { a: {} } }, { added: ['.zones.a'] }],
  [
    'members of a set',
    { tags: ['a', 'b'] },
    { tags: ['c', 'b'] },
    { added: ['.tags[="c"]'], removed: ['.tags[="a"]'] },
  ],
  ['the order of a set', { tags: ['a', 'b'] }, { tags: ['b', 'a'] }, {}],
  ['an atomic list', { steps: ['a', 'b'] }, { steps: ['b', 'a'] }, { modified: ['.steps'] }],
  ['an atomic map', { selector: { a: '1' } }, { selector: { a: '2' } }, { modified: ['.selector'] }],
  [
    'items by their keys, with defaults',
    { ports: [{ port: 1, name: 'a' }] },
    { ports: [{ port: 1, name: 'b', protocol: 'TCP' }] },
    { added: ['.ports[port=1,protocol="TCP"].protocol'], modified: ['.ports[port=1,protocol="TCP"].name'] },
  ],
  [
    'an added item',
    { ports: [] },
    { ports: [{ port: 1 }] },
    { added: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'] },
  ],
  ['a repeated item as one', { tags: ['a', 'a'] }, { tags: ['a', 'a', 'a'] }, { modified: ['.tags[="a"]'] }],
  [
    'an item that is no longer repeated',
    { ports: [{ port: 1 }, { port: 1, name: 'x' }] },
    { ports: [{ port: 1 }] },
    {
      added: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'],
      removed: ['.ports[port=1,protocol="TCP"]'],
    },
  ],
  [
    'an item that is repeated now',
    { ports: [{ port: 1 }] },
    { ports: [{ port: 1 }, { port: 1, name: 'x' }] },
    {
      added: ['.ports[port=1,protocol="TCP"]'],
      removed: ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'],
    },
  ],
  [
    'untyped maps, entry by entry',
    { free: { a: { b: 1 } } },
    { free: { a: { b: 2, c: 3 } } },
    { added: ['.free.a.c'], modified: ['.free.a.b'] },
  ],
  ['untyped lists as a whole', { free: { a: [1] } }, { free: { a: [2] } }, { modified: ['.free.a'] }],
  ['untyped values that become maps', { free: 1 }, { free: { a: 1 } }, { added: ['.free.a'], modified: ['.free'] }],
  ['untyped maps that become values', { free: { a: 1 } }, { free: [1] }, { modified: ['.free'], removed: ['.free.a'] }],
  [
    'fields the schema does not know',
    { open: { x: { y: 1 } } },
    { open: { x: { y: 2 } } },
    { modified: ['.open.x.y'] },
  ],
]

describe('compareTyped', () => {
  for (const [what, before, after, { added = [], modified = [], removed = [] }] of TABLE) {
    it(`compares ${what}`, () => {
      const changes = compareTyped(exampleType, { spec: before }, { spec: after })
      assert.deepEqual(
        [paths(changes.added), paths(changes.modified), paths(changes.removed)],
        [added, modified, removed],
      )
    })
  }

  it('treats no key specially', () => {
    const before = JSON.parse('{"spec":{"zones":{"__proto__":{"weight":1}}}}') as unknown
    const changes = compareTyped(exampleType, before, { spec: { zones: { constructor: {} } } })
    assert.deepEqual(paths(changes.added), ['.zones.constructor'])
    assert.deepEqual(paths(changes.removed), ['.zones.__proto__', '.zones.__proto__.weight'])
  })

  it('throws for an item without a path element', () => {
    assert.throws(() => compareTyped(exampleType, {}, { spec: { tags: [{}] } }), ItemFault)
  })
})
