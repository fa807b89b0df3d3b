import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleKind } from '#kits/meta/example-kind.ts'
import { assertGrowth } from '#lib/growth.fixture.ts'

import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from '../object.ts'
import { applyConfig, type FieldRequest, trackUpdate, TypedPatchError } from './field-manager.ts'
import { fieldPaths } from './field-set.ts'

const T1 = '2026-01-01T00:00:01Z'
const T2 = '2026-01-01T00:00:02Z'

interface Widget extends KubeObject {
  readonly spec?: Record<string, unknown> | null
  readonly status?: Record<string, unknown>
}

function widget(spec?: Record<string, unknown>, metadata: ObjectMeta = {}, version = 'v1'): Widget {
  return {
    apiVersion: `example.com/${version}`,
    kind: 'Widget',
    metadata: { name: 'w', ...metadata },
    ...(spec && { spec }),
  }
}

interface By extends Partial<Omit<FieldRequest, 'live'>> {
  readonly at?: string
}

function request(live: Widget | undefined, manager: string, { at = T1, ...by }: By = {}): FieldRequest {
  return { kind: exampleKind, live, manager, subresource: '', nowMs: Date.parse(at), ...by }
}

function update(live: Widget | undefined, next: Widget, manager: string, by?: By): Widget {
  return stored(trackUpdate(request(live, manager, by), next))
}

interface ApplyBy extends By {
  readonly force?: boolean
}

function apply(
  live: Widget | undefined,
  config: Widget,
  manager: string,
  { force = false, ...by }: ApplyBy = {},
): Widget {
  const result = applyConfig(request(live, manager, by), config, force)
  assert.ok(result.ok, result.ok ? '' : result.message)
  return stored(result.object)
}

function refusal(live: Widget, config: Widget, manager: string): string {
  const result = applyConfig(request(live, manager), config, false)
  assert.ok(!result.ok)
  return result.message
}

/** As in the registry: with a uid. */
function stored(object: KubeObject): Widget {
  return { ...object, metadata: { ...object.metadata, uid: 'u' } }
}

/** Entries in short form: `Apply a 2026…: {…}`. */
function owners({ metadata }: KubeObject): Record<string, unknown> {
  const entries = metadata.managedFields ?? []
  return Object.fromEntries(entries.map((entry) => [shortly(entry), entry.fieldsV1]))
}

function shortly({ operation, manager, apiVersion, subresource, time }: ManagedFieldsEntry): string {
  const who = [operation, manager, apiVersion?.replace('example.com/', ''), subresource].filter(Boolean).join(' ')
  return `${who} ${time?.slice(17, 19) ?? '-'}`
}

const image = { 'f:spec': { 'f:image': {} } }

describe('managedFields after an update', () => {
  it('give the creator all fields except name, namespace and UID', () => {
    const created = update(undefined, widget({ image: 'a' }, { labels: { x: 'y' }, namespace: 'n' }), 'm')
    assert.deepEqual(owners(created), {
      'Update m v1 01': { 'f:metadata': { 'f:labels': { '.': {}, 'f:x': {} } }, 'f:spec': { '.': {}, 'f:image': {} } },
    })
  })

  it('treat an empty object as absent', () => {
    const empty: Widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: {} }
    assert.deepEqual(
      owners(update(empty, widget({ image: 'a' }), 'm')),
      owners(update(undefined, widget({ image: 'a' }), 'm')),
    )
  })

  it('contain the manager "unknown" if the request names none', () => {
    assert.deepEqual(Object.keys(owners(update(undefined, widget({ image: 'a' }), ''))), ['Update unknown v1 01'])
  })

  it('give changed fields to the updater, and contain no manager without fields', () => {
    const live = update(undefined, widget({ image: 'a' }), 'm')
    const next = update(live, widget({ image: 'b', paused: true }), 'n', { at: T2 })
    assert.deepEqual(owners(next), {
      'Update m v1 01': { 'f:spec': {} },
      'Update n v1 02': { 'f:spec': { 'f:image': {}, 'f:paused': {} } },
    })
    assert.deepEqual(Object.keys(owners(update(next, { ...widget() }, 'o', { at: T2 }))), [])
  })

  it('keep entries and their times if nothing changes', () => {
    const live = update(undefined, widget({ image: 'a', tags: ['x'] }), 'm')
    assert.deepEqual(update(live, live, 'n', { at: T2 }), live)
  })

  it('are kept if the client omits them, and cleared by [] and [{}]', () => {
    const live = update(undefined, widget({ image: 'a' }), 'm')
    assert.deepEqual(owners(update(live, widget({ image: 'a' }), 'n')), owners(live))
    for (const managedFields of [[], [{}]]) {
      const cleared = update(live, widget({ image: 'b' }, { managedFields }), 'n')
      assert.equal(cleared.metadata.managedFields, undefined)
      // An object without entries is not tracked until the first apply.
      assert.equal(update(cleared, widget({ image: 'c' }), 'n').metadata.managedFields, undefined)
    }
  })

  it('accept entries that the client edited, and ignore undecodable ones', () => {
    const live = update(undefined, widget({ image: 'a' }), 'm')
    const entry: ManagedFieldsEntry = {
      manager: 'x',
      operation: 'Apply',
      apiVersion: 'example.com/v1',
      fieldsType: 'FieldsV1',
      fieldsV1: image,
    }
    assert.deepEqual(owners(update(live, widget({ image: 'a' }, { managedFields: [entry] }), 'n')), {
      'Apply x v1 -': image,
    })
    const broken = [{ ...entry, fieldsType: 'FieldsV2' }]
    assert.deepEqual(owners(update(live, widget({ image: 'a' }, { managedFields: broken }), 'n')), owners(live))
  })

  it('keep their entries on a write of a subresource, and get an entry for the subresource', () => {
    const live = update(undefined, widget({ image: 'a' }), 'm')
    const next = { ...widget({ image: 'a' }, { managedFields: [] }), status: { phase: 'x' } }
    assert.deepEqual(owners(update(live, next, 'n', { subresource: 'status', at: T2 })), {
      ...owners(live),
      'Update n v1 status 02': { 'f:status': { '.': {}, 'f:phase': {} } },
    })
  })

  it('exclude fields that the update cannot set', () => {
    const kind = { ...exampleKind, filter: () => ({ mode: 'exclude', fields: fieldPaths('status') }) as const }
    const next = { ...widget({ image: 'a' }), status: { phase: 'x' } }
    assert.deepEqual(owners(update(undefined, next, 'm', { kind })), {
      'Update m v1 01': { 'f:spec': { '.': {}, 'f:image': {} } },
    })
    const live = update(undefined, { ...next, status: { phase: 'y' } }, 'm', { kind })
    assert.deepEqual(owners(update(live, next, 'n', { kind })), owners(live))
  })

  it('exclude an object with list items without keys', () => {
    const live = update(undefined, widget({ image: 'a' }), 'm')
    const next = widget({ tags: [{}] }, { managedFields: live.metadata.managedFields ?? [] })
    assert.equal(update(live, next, 'n').metadata.managedFields, undefined)
    assert.equal(update(undefined, next, 'n').metadata.managedFields, undefined)
  })

  it('merge the oldest entries if there are more than ten updaters', () => {
    let live = update(undefined, widget({ zones: {} }), 'm00')
    for (let at = 1; at <= 12; at++) {
      const zones = { ...(live.spec?.['zones'] as object), [`z${at}`]: {} }
      const time = `2026-01-01T00:00:${String(10 + at)}Z`
      live = update(live, widget({ zones }), `m${String(at).padStart(2, '0')}`, { at: time })
    }
    const names = live.metadata.managedFields?.map(shortly)
    assert.deepEqual(names?.slice(0, 2), ['Update ancient-changes v1 13', 'Update m04 v1 14'])
    assert.equal(names.length, 10)
    assert.deepEqual(live.metadata.managedFields?.[0]?.fieldsV1, {
      'f:spec': { '.': {}, 'f:zones': { '.': {}, 'f:z1': {}, 'f:z2': {}, 'f:z3': {} } },
    })
  })

  it('merge many updaters without repeated copies', () => {
    const sent = (size: number): Widget => {
      const live = update(undefined, widget({ replicas: 1 }), 'm')
      const entries = Array.from({ length: size }, (_, n) => ({
        ...live.metadata.managedFields?.[0],
        manager: `m${n}`,
        fieldsV1: { 'f:spec': { 'f:zones': { [`f:z${n}`]: {} } } },
      }))
      return widget({ replicas: 2 }, { ...live.metadata, managedFields: entries })
    }
    assertGrowth(1500, sent, (object) => update(widget({ replicas: 1 }, { uid: 'u' }), object, 'other', { at: T2 }))
  })

  it('contain each entry in its API version, and drop entries of versions that are no longer served', () => {
    const live = update(undefined, widget({ replicas: 1, image: 'a' }), 'm')
    const gone = {
      ...live.metadata.managedFields?.[0],
      manager: 'x',
      apiVersion: 'example.com/v0',
    } as ManagedFieldsEntry
    const as2 = widget(
      { size: 1, image: 'a' },
      { ...live.metadata, managedFields: [...(live.metadata.managedFields ?? []), gone] },
      'v2',
    )
    const next = update(as2, widget({ size: 2, image: 'a' }, {}, 'v2'), 'm', { at: T2 })
    assert.deepEqual(owners(next), {
      'Update m v1 01': { 'f:spec': { '.': {}, 'f:image': {} } },
      'Update m v2 02': { 'f:spec': { 'f:size': {} } },
    })
  })
})

describe('server-side apply', () => {
  it('creates an object', () => {
    const live = apply(undefined, widget({ image: 'a', tags: ['x'] }), 'a')
    assert.deepEqual(live.spec, { image: 'a', tags: ['x'] })
    assert.deepEqual(owners(live), { 'Apply a v1 01': { 'f:spec': { 'f:image': {}, 'f:tags': { 'v:"x"': {} } } } })
  })

  it('changes nothing, not even a time, if the same configuration is applied again', () => {
    const live = apply(undefined, widget({ image: 'a' }), 'a')
    assert.deepEqual(apply(live, widget({ image: 'a' }), 'a', { at: T2 }), live)
  })

  it('shares ownership of fields with equal values, without a new time', () => {
    const live = apply(undefined, widget({ image: 'a' }), 'a')
    assert.deepEqual(owners(apply(live, widget({ image: 'a' }), 'b', { at: T2 })), {
      'Apply a v1 01': image,
      'Apply b v1 -': image,
    })
  })

  it("rejects changes of other managers' fields, and names these managers", () => {
    const applied = apply(undefined, widget({ image: 'a', paused: true }), 'a')
    assert.equal(
      refusal(applied, widget({ image: 'b' }), 'b'),
      'Apply failed with 1 conflict: conflict with "a": .spec.image',
    )
    const updated = update(applied, widget({ image: 'b', paused: true }), 'u"', { subresource: 'scale' })
    assert.equal(
      refusal(updated, widget({ image: 'c' }), 'b'),
      'Apply failed with 1 conflict: conflict with "u\\"" with subresource "scale" using example.com/v1: .spec.image',
    )
    const result = applyConfig(request(updated, 'b'), widget({ image: 'c', paused: false }), false)
    assert.ok(!result.ok)
    assert.equal(
      result.message,
      'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.paused\nconflicts with "u\\"" with subresource "scale" using example.com/v1:\n- .spec.image',
    )
    assert.deepEqual(result.causes[0], {
      reason: 'FieldManagerConflict',
      message: 'conflict with "a"',
      field: '.spec.paused',
    })
  })

  it('takes fields of other managers if force is set', () => {
    const live = apply(undefined, widget({ image: 'a', paused: true }), 'a')
    const forced = apply(live, widget({ image: 'b' }), 'b', { force: true, at: T2 })
    assert.equal(forced.spec?.['image'], 'b')
    assert.deepEqual(owners(forced), { 'Apply a v1 01': { 'f:spec': { 'f:paused': {} } }, 'Apply b v1 02': image })
  })

  it('removes omitted fields, unless another manager owns them', () => {
    const both = apply(undefined, widget({ image: 'a', tags: ['x', 'y'], zones: { p: { weight: 1 } } }), 'a')
    const live = apply(both, widget({ tags: ['y'], zones: { p: { name: 'n' } } }), 'b')
    const next = apply(live, widget({ paused: true }), 'a', { at: T2 })
    assert.deepEqual(next.spec, { tags: ['y'], zones: { p: { name: 'n' } }, paused: true })
  })

  it('removes a whole list item, unless another manager owns the item', () => {
    const ports = [{ port: 1, name: 'a' }, { port: 2 }]
    const applied = apply(undefined, widget({ ports }), 'a')
    const fewer = widget({ ports: [{ port: 2 }] })
    assert.deepEqual(apply(applied, fewer, 'a', { at: T2 }).spec, { ports: [{ port: 2 }] })
    const touched = update(applied, widget({ ports: [{ port: 1, name: 'b' }, { port: 2 }] }), 'u')
    assert.deepEqual(apply(touched, fewer, 'a').spec, { ports: [{ port: 2 }] })
    const shared = apply(applied, widget({ ports: [{ port: 1, options: { a: 'x' } }] }), 'b')
    const kept = [{ port: 1, options: { a: 'x' } }, { port: 2 }]
    assert.deepEqual(apply(shared, fewer, 'a').spec, { ports: kept })
  })

  it('tracks atomic lists as a whole and untyped fields by entry', () => {
    const spec = { selector: { a: 'b' }, steps: ['x'], free: { a: { b: [1] } }, open: { new: { x: 1 }, known: 'k' } }
    assert.deepEqual(owners(apply(undefined, widget(spec), 'a')), {
      'Apply a v1 01': {
        'f:spec': {
          'f:free': { 'f:a': { '.': {}, 'f:b': {} } },
          'f:open': { 'f:known': {}, 'f:new': { '.': {}, 'f:x': {} } },
          'f:selector': {},
          'f:steps': {},
        },
      },
    })
  })

  it('assigns fields that were set before the first apply to the manager before-first-apply', () => {
    const live = stored(widget({ image: 'a', paused: true }))
    assert.equal(
      refusal(live, widget({ image: 'b' }), 'a'),
      'Apply failed with 1 conflict: conflict with "before-first-apply" using example.com/v1: .spec.image',
    )
    assert.deepEqual(owners(apply(live, widget({ image: 'a' }), 'a', { at: T2 })), {
      'Apply a v1 -': image,
      'Update before-first-apply v1 02': { 'f:spec': { '.': {}, 'f:image': {}, 'f:paused': {} } },
    })
  })

  it('treats one manager as the same in all API versions', () => {
    const live = apply(undefined, widget({ replicas: 1, image: 'a' }), 'a')
    const as2 = widget({ size: 1, image: 'a' }, live.metadata, 'v2')
    const next = apply(as2, widget({ size: 2 }, {}, 'v2'), 'a', { at: T2 })
    assert.deepEqual(next.spec, { size: 2 })
    assert.deepEqual(owners(next), { 'Apply a v2 02': { 'f:spec': { 'f:size': {} } } })
  })

  const FAULTS: readonly [spec: Record<string, unknown>, text: string][] = [
    [{ zork: 1 }, '.spec.zork: field not declared in schema'],
    [
      { image: 1, paused: 'x' },
      'errors:\n  .spec.image: expected string, got &value.valueUnstructured{Value:1}\n  .spec.paused: expected boolean, got &{x}',
    ],
    [{ tags: ['a', 'a'] }, '.spec.tags: duplicate entries for key [="a"]'],
  ]
  for (const [spec, text] of FAULTS) {
    it(`rejects ${JSON.stringify(spec)}`, () => {
      const message = `failed to create typed patch object (/w; example.com/v1, Kind=Widget): ${text}`
      assert.throws(() => applyConfig(request(undefined, 'a'), widget(spec), true), {
        name: 'TypedPatchError',
        message,
      })
    })
  }

  it('rejects an invalid stored object and undecodable managedFields entries', () => {
    const misfit = stored(widget({ tags: [{}] }))
    assert.throws(
      () => applyConfig(request(misfit, 'a'), widget({}), true),
      /^TypedPatchError: failed to create manager for existing fields: failed to convert new object \(\/w; example.com\/v1, Kind=Widget\) to smd typed: .spec.tags: element 0/,
    )
    const unreadable = stored(widget({}, { managedFields: [{ manager: 'x' }] }))
    const message = 'failed to decode managed fields: operation must be `Apply` or `Update`'
    assert.throws(() => applyConfig(request(unreadable, 'a'), widget({}), true), new TypedPatchError(message))
  })
})
