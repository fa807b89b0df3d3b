import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { exampleKind, exampleType } from '#kits/meta/example-kind.ts'

import type { KubeObject } from '../object.ts'
import { compareTyped } from './compare.ts'
import { applyConfig, applyInSteps, type ApplyResult, trackUpdate } from './field-manager.ts'
import { EMPTY_SET, type FieldSet, isEmptySet, union } from './field-set.ts'
import { decodeManaged, managerOf } from './managed-fields.ts'
import { fieldSetOf } from './walk.ts'

const name = fc.constantFrom('a', 'b', '__proto__', 'constructor', '')
const text = fc.constantFrom('1', '2')
const spec = fc.record(
  {
    replicas: fc.nat(2),
    image: text,
    ports: fc.uniqueArray(fc.record({ port: fc.nat(2), name: text }, { requiredKeys: ['port'] }), {
      selector: (each) => each.port,
    }),
    tags: fc.uniqueArray(fc.constantFrom('x', 'y', 'z')),
    steps: fc.array(text, { maxLength: 2 }),
    selector: fc.dictionary(name, text, { maxKeys: 2 }),
    zones: fc.dictionary(name, fc.record({ weight: fc.nat(2), name: text }, { requiredKeys: [] }), { maxKeys: 2 }),
    free: fc.dictionary(name, fc.oneof(text, fc.dictionary(name, text, { maxKeys: 2 })), { maxKeys: 2 }),
    constructor: text,
  },
  { requiredKeys: [] },
)

function widget(content: object): KubeObject {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: {}, spec: content } as KubeObject
}

const object = spec.map(widget)

/** An object with a history: created, then changed by forced applies of several managers. */
const live = fc
  .record({ first: object, steps: fc.array(fc.record({ manager: text, config: object }), { maxLength: 3 }) })
  .map(({ first, steps }): KubeObject => {
    const created = trackUpdate(request(undefined, 'creator'), first)
    const start: KubeObject = { ...created, metadata: { uid: 'u', ...created.metadata } }
    return steps.reduce((at, { manager, config }) => applied(applyConfig(request(at, manager), config, true)), start)
  })

function request(at: KubeObject | undefined, manager: string, nowMs = 0) {
  return { kind: exampleKind, live: at, manager, subresource: '', nowMs }
}

function applied(result: ApplyResult): KubeObject {
  assert.ok(result.ok)
  return result.object
}

function owned({ metadata }: KubeObject, isOne: (manager: string) => boolean): FieldSet {
  const { managers } = decodeManaged(metadata.managedFields ?? [])
  const sets = [...managers].filter(([id]) => isOne(managerOf(id).manager)).map(([, { set }]) => set)
  return sets.reduce(union, EMPTY_SET)
}

/** An object without managedFields, with sorted lists. */
function content(object: KubeObject): unknown {
  const { metadata: _, ...rest } = object
  return JSON.parse(JSON.stringify(rest), (_key: string, value: unknown): unknown =>
    Array.isArray(value) ? value.map((item) => JSON.stringify(item)).sort() : value,
  )
}

describe('server-side apply of any objects', () => {
  it('yields to the event loop between its steps', () => {
    const once = applied(applyConfig(request(undefined, 'm'), widget({ image: '1', tags: ['x'] }), true))
    const steps = applyInSteps(request({ ...once, metadata: { uid: 'u', ...once.metadata } }, 'm'), widget({}), true)
    let taken = 0
    while (steps.next().done === false) taken++
    assert.ok(taken > 10, `${taken} steps`)
  })

  it('is idempotent, to the last byte', () => {
    fc.assert(
      fc.property(live, object, (at, config) => {
        const once = applied(applyConfig(request(at, 'm', 1000), config, true))
        const twice = applied(applyConfig(request(once, 'm', 2000), config, true))
        assert.equal(JSON.stringify(twice), JSON.stringify(once))
      }),
    )
  })

  it('conflicts exactly if it changes a field of another manager', () => {
    fc.assert(
      fc.property(live, object, (at, config) => {
        const others = owned(at, () => true)
        const result = applyConfig(request(at, 'm'), config, false)
        const forced = applied(applyConfig(request(at, 'm'), config, true))
        const lost = !isSubset(
          others,
          owned(forced, (manager) => manager !== 'm'),
        )
        assert.equal(result.ok, !lost)
      }),
    )
  })

  it('owns every field it applies, and the object contains them', () => {
    fc.assert(
      fc.property(live, object, (at, config) => {
        const result = applied(applyConfig(request(at, 'm'), config, true))
        const fields = fieldSetOf(exampleType, { spec: (config as { spec?: unknown }).spec })
        assert.deepEqual(
          owned(result, (manager) => manager === 'm'),
          fields,
        )
        assert.ok(isSubset(fields, union(fieldSetOf(exampleType, result), fields)))
      }),
    )
  })

  it('commutes for disjoint configurations', () => {
    fc.assert(
      fc.property(spec, fc.infiniteStream(fc.boolean()), (all, coins) => {
        const isLeft = Object.fromEntries(Object.keys(all).map((key) => [key, coins.next().value as boolean]))
        const half = (side: boolean): KubeObject =>
          widget(Object.fromEntries(Object.entries(all).filter(([key]) => isLeft[key] === side)))
        const [left, right] = [half(true), half(false)]
        const apply = (at: KubeObject | undefined, manager: string, config: KubeObject) =>
          applied(applyConfig(request(at, manager), config, false))
        const [ab, ba] = [
          apply(apply(undefined, 'a', left), 'b', right),
          apply(apply(undefined, 'b', right), 'a', left),
        ]
        assert.deepEqual(content(ab), content(ba))
        for (const who of ['a', 'b']) {
          assert.deepEqual(
            owned(ab, (manager) => manager === who),
            owned(ba, (manager) => manager === who),
          )
        }
      }),
    )
  })

  it('with an empty configuration removes only fields without other owners', () => {
    fc.assert(
      fc.property(live, object, (at, config) => {
        const forced = applied(applyConfig(request(at, 'm'), config, true))
        const left = applied(applyConfig(request(forced, 'm'), widget({}), true))
        const others = owned(forced, (manager) => manager !== 'm')
        assert.ok(
          isSubset(
            others,
            owned(left, () => true),
          ),
        )
      }),
    )
  })
})

describe('update of any objects', () => {
  it('changes no owners if it changes no field', () => {
    fc.assert(
      fc.property(live, (at) => {
        assert.equal(JSON.stringify(trackUpdate(request(at, 'm', 5000), at)), JSON.stringify(at))
      }),
    )
  })

  it('removes ownership of deleted fields, and gives new fields to the updater', () => {
    fc.assert(
      fc.property(live, object, (at, next) => {
        const result = trackUpdate(request(at, 'm'), next)
        const there = namedParents(compareTyped(exampleType, {}, next).added)
        assert.ok(
          isSubset(
            owned(result, () => true),
            there,
          ),
        )
      }),
    )
  })
})

function isSubset(a: FieldSet, b: FieldSet): boolean {
  if (!a.members.isSubsetOf(b.members)) return false
  return [...a.children].every(
    ([element, child]) => isSubset(child, b.children.get(element) ?? EMPTY_SET) || isEmptySet(child),
  )
}

/** Every prefix of a path: non-empty structs and lists can be owned themselves. */
function namedParents(set: FieldSet): FieldSet {
  const children = [...set.children].map(([element, child]) => [element, namedParents(child)] as const)
  return { members: set.members.union(new Set(set.children.keys())), children: new Map(children) }
}
