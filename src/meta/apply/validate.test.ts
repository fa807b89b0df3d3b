import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleType, field, list, scalar, struct } from '#kits/meta/example-kind.ts'

import { validateTyped } from './validate.ts'

const TABLE: readonly [spec: unknown, faults: string[]][] = [
  [{ image: 'a', replicas: 1, paused: true, ports: [{ port: 1 }], free: [{}], open: { x: 1 } }, []],
  [{ image: null, zones: null, tags: null, steps: [null] }, []],
  [{ zork: 1, zork2: 2 }, ['.spec.zork: field not declared in schema']],
  [{ image: 1 }, ['.spec.image: expected string, got &value.valueUnstructured{Value:1}']],
  [
    { image: ['a', 1.5, null] },
    ['.spec.image: expected string, got &value.valueUnstructured{Value:[]interface {}{"a", 1.5, interface {}(nil)}}'],
  ],
  [
    { image: { b: true, a: {} } },
    [
      '.spec.image: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":map[string]interface {}{}, "b":true}}',
    ],
  ],
  [{ replicas: 'a' }, ['.spec.replicas: expected numeric (int or float), got string']],
  [{ replicas: {} }, ['.spec.replicas: expected numeric (int or float), got map[string]interface {}']],
  [{ paused: 'yes' }, ['.spec.paused: expected boolean, got &{yes}']],
  [{ zones: 'x' }, ['.spec.zones: expected map, got &{x}']],
  [{ zones: { a: [1] } }, ['.spec.zones.a: expected map, got &{[1]}']],
  [{ tags: { b: 1, a: null } }, ['.spec.tags: expected list, got &{map[a:<nil> b:1]}']],
  [{ steps: ['a', 1] }, ['.spec.steps[1]: expected string, got &value.valueUnstructured{Value:1}']],
  [{ tags: ['a', 'a'] }, ['.spec.tags: duplicate entries for key [="a"]']],
  [{ tags: [{}] }, [".spec.tags: element 0: associative list without keys has an element that's a map type"]],
  [{ tags: ['a', []] }, ['.spec.tags: element 1: not supported: associative list with lists as elements']],
  [{ tags: [null] }, [".spec.tags: element 0: associative list without keys has an element that's an explicit null"]],
  [{ ports: [null] }, ['.spec.ports: element 0: associative list with keys may not have a null element']],
  [{ ports: ['a'] }, ['.spec.ports: element 0: associative list with keys may not have non-map elements']],
  [
    { ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] },
    ['.spec.ports: duplicate entries for key [port=1,protocol="TCP"]'],
  ],
  [
    { ports: [{ port: 1, name: 2 }] },
    ['.spec.ports[port=1,protocol="TCP"].name: expected string, got &value.valueUnstructured{Value:2}'],
  ],
  [
    { image: 1, paused: 1 },
    ['.spec.image: expected string, got &value.valueUnstructured{Value:1}', '.spec.paused: expected boolean, got &{1}'],
  ],
]

describe('validation of an applied configuration', () => {
  for (const [spec, faults] of TABLE) {
    it(`reports ${JSON.stringify(faults)} for ${JSON.stringify(spec)}`, () => {
      assert.deepEqual(validateTyped(exampleType, { spec }), faults)
    })
  }

  it('accepts duplicate list items in stored objects', () => {
    assert.deepEqual(validateTyped(exampleType, { spec: { tags: ['a', 'a'] } }, { allowDuplicates: true }), [])
  })

  it('rejects a list item without any key', () => {
    const items = struct([field('a', scalar('string')), field('b', scalar('string'))])
    const schema = struct([field('l', list(items), { listType: 'map', mapKeys: ['b', 'a'] })])
    assert.deepEqual(validateTyped({ schema }, { l: [{}] }), [
      '.l: element 0: associative list with keys has an element that omits all key fields ["b" "a"] (and doesn\'t have default values for any key fields)',
    ])
  })

  it('accepts any scalar for quantities and times, and any value for untyped fields', () => {
    const schema = struct([
      field('q', scalar('quantity')),
      field('t', scalar('time')),
      field('x', scalar('int-or-string')),
    ])
    assert.deepEqual(validateTyped({ schema }, { q: 1, t: 2, x: {} }), [])
    assert.deepEqual(validateTyped({ schema }, { q: { a: 1 } }), ['.q: expected any scalar, got &{map[a:1]}'])
    assert.deepEqual(validateTyped({ schema: struct([field('e', struct([]))]) }, { e: { a: 1 } }), [])
  })

  it('reports errors of the object itself', () => {
    assert.deepEqual(validateTyped(exampleType, 'x'), ['expected map, got &{x}'])
  })
})
