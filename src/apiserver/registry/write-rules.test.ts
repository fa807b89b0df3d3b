import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ConfigMap, ConfigMaps } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { defineResource, type MetadataRules, type Resource, type WriteContext } from './resource.ts'
import { prepareCreate, prepareUpdate, validateCreate, validateUpdate } from './write-rules.ts'

const context: WriteContext = {
  clock: createVirtualClock(),
  random: createSeededRandom(1),
  isEnabled: () => true,
  allowPrivileged: true,
  user: { name: 'jane', uid: '', groups: [], extra: {} },
  verb: 'update',
  dryRun: false,
  objects: { get: async () => undefined, list: async () => [] },
  writer: undefined as never,
  signal: new AbortController().signal,
}

const kindWith = (metadataRules: MetadataRules, generation?: 'spec'): Resource =>
  defineResource<ConfigMap>({
    kind: ConfigMaps,
    metadataRules,
    ...(generation !== undefined && { generation }),
  })

const named = (metadata: Partial<ObjectMeta> = {}): KubeObject => ({
  metadata: { name: 'a', namespace: 'n', ...metadata },
})

/** The invalid fields, in order. */
function complaints(write: () => void): string[] {
  try {
    write()
    return []
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return (error.status.details?.causes ?? []).map(({ field = '' }) => field.replace('metadata.', ''))
  }
}

function changing(resource: Resource, metadata: Partial<ObjectMeta>, subresource = ''): string[] {
  const stored: Partial<ObjectMeta> = { uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' }
  const [next, old] = [named(metadata), named(stored)]
  return complaints(() => {
    prepareUpdate(resource, [next, old], '', context)
    void validateUpdate(resource, [next, old], { subresource, gvk: ConfigMaps }, context)
  })
}

describe('validation of the metadata of an update', () => {
  const badLabel = { labels: { 'a b': 'c' } }
  const badFinalizer = { finalizers: ['a b'] }

  it('runs for all kinds, before the rules of the kind', () => {
    const table: readonly (readonly [MetadataRules, readonly string[], readonly string[]])[] = [
      [{ update: [] }, ['labels', 'labels'], ['finalizers']],
      [{}, ['labels', 'labels', 'labels'], ['finalizers', 'finalizers[0]']],
      [{ update: ['whole'] }, ['labels', 'labels', 'labels'], ['finalizers', 'finalizers', 'finalizers[0]']],
      [
        { update: ['change', 'whole'] },
        ['labels', 'labels', 'labels', 'labels'],
        ['finalizers', 'finalizers[0]', 'finalizers', 'finalizers[0]'],
      ],
      [
        { update: ['whole', 'change'] },
        ['labels', 'labels', 'labels', 'labels'],
        ['finalizers', 'finalizers', 'finalizers[0]', 'finalizers[0]'],
      ],
    ]
    for (const [rules, labels, finalizers] of table) {
      assert.deepEqual(changing(kindWith(rules), badLabel), labels, JSON.stringify(rules))
      assert.deepEqual(changing(kindWith(rules), badFinalizer), finalizers, JSON.stringify(rules))
    }
    assert.deepEqual(changing(kindWith({}), {}), [])
  })

  it('runs separately for subresources', () => {
    const resource = { ...kindWith({ update: ['whole'], part: [] }), parts: { approval: {} } }
    assert.deepEqual(changing(resource, badLabel, 'approval'), ['labels', 'labels'])
  })

  it('applies the name rule of the kind to generateName only if the kind validates the whole update', () => {
    assert.deepEqual(changing(kindWith({}), { generateName: 'A_' }), [])
    assert.deepEqual(changing(kindWith({ update: ['whole'] }), { generateName: 'A_' }), ['generateName'])
    assert.deepEqual(changing(kindWith({}), { generateName: 'a/b' }), ['generateName'])
  })

  it('rejects a deletionTimestamp that the client sets', () => {
    const kind = kindWith({ update: [] })
    assert.deepEqual(changing(kind, { deletionTimestamp: '2026-01-01T00:00:00Z' }), ['deletionTimestamp'])
    assert.deepEqual(changing(kind, { deletionGracePeriodSeconds: 3 }), ['deletionGracePeriodSeconds'])
  })

  it('keeps deletionTimestamp and fields that the server sets', () => {
    const old = named({
      uid: 'u',
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 30,
      generation: 2,
    })
    const next = named({ generation: 9, creationTimestamp: '2020-01-01T00:00:00Z' })
    prepareUpdate(kindWith({}), [next, old], '', context)
    assert.deepEqual(next.metadata, old.metadata)
  })
})

describe('validation in steps', () => {
  const steps = 1000
  const resource: Resource = {
    ...kindWith({}),
    *validateInSteps(next, old) {
      for (let at = 0; at < steps; at++) yield
      return [fieldPath('data').invalid(next.metadata.name, old === undefined ? 'new' : 'changed')]
    },
  }

  it('yields to the event loop before it fails, and reports metadata errors first', async () => {
    let nowMs = 0
    const slow = { ...context, clock: { ...context.clock, elapsed: () => nowMs++ } }
    const ruleContext = { subresource: '', gvk: ConfigMaps }
    const [next, old] = [named({ labels: { 'a b': 'c' } }), named({ uid: 'u', resourceVersion: '7' })]
    const writes = [
      () => validateCreate(resource, next, slow, ConfigMaps),
      () => validateUpdate(resource, [next, old], ruleContext, slow),
    ]
    for (const write of writes) {
      const state = { turns: 0, isDone: false }
      const refused = Promise.resolve(write()).finally(() => (state.isDone = true))
      refused.catch(() => undefined)
      for (; !state.isDone; state.turns++) await new Promise(setImmediate)
      assert.ok(state.turns > steps / 20, `${state.turns} turns`)
      await assert.rejects(refused, /metadata\.labels: Invalid value.*data: Invalid value: "a": (?:new|changed)/)
    }
  })
})

describe('validation of the metadata of a new object', () => {
  it('requires finalizer names with a domain, except for kinds that allow plain names', () => {
    const creating = (rules: MetadataRules, finalizer: string): string[] =>
      complaints(() => validateCreate(kindWith(rules), named({ finalizers: [finalizer] }), context, ConfigMaps))
    assert.deepEqual(creating({}, 'plain'), ['finalizers[0]'])
    assert.deepEqual(creating({}, 'example.com/mine'), [])
    assert.deepEqual(creating({}, 'orphan'), [])
    assert.deepEqual(creating({ plainFinalizers: true }, 'plain'), [])
  })

  it('keeps the given generation if the kind does not count generations', () => {
    const created = (resource: Resource): number | undefined => {
      const object = named({ generation: 7 })
      prepareCreate(resource, object, context)
      return object.metadata.generation
    }
    assert.equal(created(kindWith({})), 7)
    assert.equal(created(kindWith({}, 'spec')), 1)
  })
})
