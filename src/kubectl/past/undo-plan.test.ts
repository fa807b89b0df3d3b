import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'

import type { AnyObject } from '../session/rest.ts'
import { planUndo, type UndoQuestion, type UndoStep } from './undo-plan.ts'

function kind(name: string, group = ''): ServedKind {
  return { kind: name, plural: `${name.toLowerCase()}s`, group, version: 'v1', namespaced: true } as ServedKind
}

const CONFIG_MAP = kind('ConfigMap')
const DEPLOYMENT = kind('Deployment', 'apps')
const SECRET = kind('Secret')

const SINCE = Date.parse('2026-11-18T03:00:00Z')

function object(
  fields: Readonly<Record<string, unknown>> = {},
  metadata: Readonly<Record<string, unknown>> = {},
): AnyObject {
  return { metadata: { name: 'a', resourceVersion: '1', ...metadata }, ...fields }
}

/** An entry of managedFields: the seconds are those after `SINCE`. */
function managed(manager: string, seconds: number, fieldsV1: object, subresource?: string): object {
  const time = new Date(SINCE + seconds * 1000).toISOString()
  return { manager, operation: 'Update', time, fieldsV1, ...(subresource !== undefined && { subresource }) }
}

function step(question: Partial<UndoQuestion>): UndoStep | undefined {
  return planUndo({ kind: CONFIG_MAP, before: undefined, now: undefined, sinceMs: SINCE, ...question })
}

function changeOf(question: Partial<UndoQuestion>): AnyObject {
  const planned = step(question)
  assert.equal(planned?.action, 'change')
  return planned?.action === 'change' ? planned.object : object()
}

describe('planUndo', () => {
  it('leaves equal objects, status and values of controllers alone', () => {
    const annotated = (revision: string): Readonly<Record<string, unknown>> => ({
      annotations: { 'deployment.kubernetes.io/revision': revision },
    })
    const rows: [ServedKind, AnyObject, AnyObject][] = [
      [CONFIG_MAP, object({ data: { a: '1' } }), object({ data: { a: '1' } }, { resourceVersion: '2', uid: 'x' })],
      [DEPLOYMENT, object({ spec: {}, status: { replicas: 1 } }), object({ spec: {}, status: { replicas: 2 } })],
      [DEPLOYMENT, object({ spec: {} }, annotated('1')), object({ spec: {} }, annotated('2'))],
      [kind('PersistentVolumeClaim'), object({ spec: {} }), object({ spec: { volumeName: 'pv-1' } })],
    ]
    for (const [of, before, now] of rows) assert.equal(step({ kind: of, before, now }), undefined)
    assert.equal(step({}), undefined)
  })

  it('brings fields, labels and annotations back and keeps the rest', () => {
    const before = object(
      { spec: { replicas: 1 }, status: { replicas: 1 } },
      { labels: { app: 'web' }, annotations: { team: 'a', 'deployment.kubernetes.io/revision': '1' } },
    )
    const now = object(
      { spec: { replicas: 3, paused: true }, status: { replicas: 3 } },
      {
        resourceVersion: '9',
        uid: 'u',
        labels: { app: 'web', extra: 'yes' },
        annotations: { 'deployment.kubernetes.io/revision': '2' },
      },
    )
    const planned = step({ kind: DEPLOYMENT, before, now })
    assert.equal(planned?.note, 'spec.replicas, spec.paused, metadata.labels.extra and 1 more')
    assert.deepEqual(changeOf({ kind: DEPLOYMENT, before, now }), {
      apiVersion: undefined,
      kind: undefined,
      spec: { replicas: 1 },
      status: { replicas: 3 },
      metadata: {
        name: 'a',
        resourceVersion: '9',
        uid: 'u',
        labels: { app: 'web' },
        annotations: { 'deployment.kubernetes.io/revision': '2', team: 'a' },
      },
    })
  })

  it('keeps values that the server has assigned', () => {
    const before = object({ spec: { clusterIP: '10.0.0.1', ports: [80] } })
    const now = object({ spec: { clusterIP: '10.0.0.2', ports: [81] } }, { uid: 'new' })
    const { spec } = changeOf({ kind: kind('Service'), before, now })
    assert.deepEqual(spec, { clusterIP: '10.0.0.2', ports: [80] })
  })

  it('keeps the replicas of an autoscaler', () => {
    const scale = {
      manager: 'kube-controller-manager',
      operation: 'Update',
      fieldsV1: { 'f:spec': { 'f:replicas': {} } },
    }
    const managedFields = [{ ...scale, subresource: 'scale' }]
    const before = object({ spec: { replicas: 1, paused: true } })
    const now = object({ spec: { replicas: 4 } }, { managedFields })
    const planned = step({ kind: DEPLOYMENT, before, now, by: 'kubectl-scale' })
    assert.equal(planned, undefined)
    assert.deepEqual(changeOf({ kind: DEPLOYMENT, before, now })['spec'], { replicas: 4, paused: true })
    assert.equal(step({ kind: DEPLOYMENT, before: object({ spec: { replicas: 1 } }), now }), undefined)
  })

  it('creates deleted objects without values of the old one', () => {
    const before = object(
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        spec: { volumeName: 'pv-1', size: 1 },
        status: { phase: 'Bound' },
      },
      { namespace: 'n', uid: 'u', creationTimestamp: 't', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    )
    const planned = step({ kind: kind('PersistentVolumeClaim'), before })
    assert.deepEqual(planned, {
      action: 'create',
      note: 'new uid; data in the volume is not restored',
      object: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        spec: { size: 1 },
        metadata: { namespace: 'n', name: 'a' },
      },
    })
  })

  it('creates unfinished Jobs again, with a new selector', () => {
    const labels = { app: 'x', 'batch.kubernetes.io/controller-uid': 'u', 'controller-uid': 'u', 'job-name': 'a' }
    const before = object({ spec: { selector: {}, template: { metadata: { labels } } } }, { labels })
    const planned = step({ kind: kind('Job', 'batch'), before })
    assert.equal(planned?.action, 'create')
    assert.deepEqual(planned?.action === 'create' && planned.object['spec'], {
      template: { metadata: { labels: { app: 'x' } } },
    })
    const finished = object({ spec: {}, status: { conditions: [{ type: 'Complete', status: 'True' }] } })
    assert.deepEqual(step({ kind: kind('Job', 'batch'), before: finished }), {
      action: 'refuse',
      note: 'it had finished, and would run again',
    })
  })

  it('deletes new objects, unless that loses more than the object', () => {
    const now = object()
    assert.deepEqual(step({ now }), { action: 'delete', object: now, note: '' })
    for (const name of ['Secret', 'PersistentVolumeClaim', 'Namespace']) {
      assert.equal(step({ kind: kind(name), now })?.action, 'refuse', name)
    }
    assert.equal(step({ now: object({}, { deletionTimestamp: 't' }) }), undefined)
  })

  it('leaves objects of controllers to them', () => {
    const owned = { ownerReferences: [{ kind: 'ReplicaSet', name: 'web', controller: true }] }
    const skipped = { action: 'skip', note: 'its controller replicaset/web decides about it' }
    assert.deepEqual(step({ before: object({ data: {} }, owned) }), skipped)
    assert.deepEqual(step({ now: object({ data: {} }, owned) }), skipped)
    assert.equal(step({ before: object({}, { name: 'kube-root-ca.crt' }) })?.action, 'skip')
    assert.equal(step({ kind: kind('ServiceAccount'), now: object({}, { name: 'default' }) })?.action, 'skip')
  })

  it('refuses what the past of a Secret does not have', () => {
    const secret = (fields: object, version: string): AnyObject =>
      object({ data: { key: '' }, ...fields }, { resourceVersion: version })
    const rows: [Partial<UndoQuestion>, string][] = [
      [{ before: secret({}, '1') }, 'it was deleted, and the past does not have its values'],
      [
        { before: secret({}, '1'), now: secret({ data: { key: 'eA==' } }, '2') },
        'it was written, and the past does not have its values',
      ],
    ]
    for (const [question, note] of rows)
      assert.deepEqual(step({ kind: SECRET, ...question }), { action: 'refuse', note })
    assert.equal(
      step({ kind: SECRET, before: secret({}, '1'), now: secret({ data: { key: 'eA==' } }, '1') }),
      undefined,
    )
  })

  it('keeps the values of a Secret whose labels it brings back', () => {
    const before = object({ data: { key: '' } }, { labels: { a: '1' } })
    const now = object({ data: { key: 'eA==' } }, { labels: {} })
    const restored = changeOf({ kind: SECRET, before, now })
    assert.deepEqual([restored['data'], restored.metadata.labels], [{ key: 'eA==' }, { a: '1' }])
  })

  it('refuses an object that is being deleted', () => {
    const now = object({ data: { a: '2' } }, { deletionTimestamp: 't' })
    assert.deepEqual(step({ before: object({ data: { a: '1' } }), now }), {
      action: 'refuse',
      note: 'it is being deleted',
    })
  })
})

describe('planUndo of one manager', () => {
  const before = object({ data: { a: '1', b: '1' } })
  const ann = managed('ann', 5, { 'f:data': { 'f:a': {} } })
  const question = (data: object, ...managedFields: object[]): Partial<UndoQuestion> => ({
    by: 'ann',
    before,
    now: object({ data }, { managedFields }),
  })

  it('undoes its changes', () => {
    const old = managed('bob', -60, { 'f:data': { 'f:a': {}, 'f:b': {} } })
    const status = managed('controller', 9, { 'f:data': { 'f:a': {} } }, 'status')
    assert.equal(step(question({ a: '2', b: '1' }, old, ann, status))?.action, 'change')
  })

  it('leaves objects alone that it has not changed since', () => {
    const old = managed('ann', -60, { 'f:data': { 'f:a': {} } })
    assert.equal(step(question({ a: '2', b: '1' }, old, managed('bob', 5, { 'f:data': { 'f:a': {} } }))), undefined)
    assert.equal(
      step({ by: 'ann', now: object({}, { managedFields: [managed('bob', 5, { 'f:data': {} })] }) }),
      undefined,
    )
  })

  it('refuses objects that another manager changed as well', () => {
    const bob = managed('bob', 9, { 'f:data': { 'f:b': {} } })
    assert.deepEqual(step(question({ a: '2', b: '2' }, ann, bob)), {
      action: 'refuse',
      note: 'bob changed it at 2026-11-18T03:00:09Z (data.b)',
    })
  })

  it('counts a change without a time as a new one', () => {
    const bob = { manager: 'bob', subresource: 'scale', fieldsV1: { 'f:data': { 'f:b': {} } } }
    assert.deepEqual(step(question({ a: '2', b: '2' }, ann, bob)), {
      action: 'refuse',
      note: 'bob changed it (data.b)',
    })
  })

  it('refuses deleted objects, because the manager is unknown', () => {
    assert.equal(step({ by: 'ann', before })?.action, 'refuse')
  })

  it('deletes objects that only it has written', () => {
    const now = object({ data: { a: '1' } }, { managedFields: [ann] })
    assert.equal(step({ by: 'ann', now })?.action, 'delete')
    const shared = object({ data: {} }, { managedFields: [ann, managed('bob', 9, { 'f:data': { 'f:b': {} } })] })
    assert.equal(step({ by: 'ann', now: shared })?.action, 'refuse')
  })
})
