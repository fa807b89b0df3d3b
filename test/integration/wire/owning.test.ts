/**
 * Tests field ownership (managedFields) after a write: subresources, and structs whose members are owned separately.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Json, PATCHES, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
})
after(() => wire.stop())

/** The fields that the manager owns. */
function fieldsOf(object: Json, manager: string): Json {
  const entry = object.metadata.managedFields.find((one: Json) => one.manager === manager)
  return entry?.fieldsV1
}

const merge = (path: string, body: unknown): Promise<Json> =>
  wire.must('PATCH', `${path}?fieldManager=part`, body, { headers: PATCHES.merge })
const TEMPLATE = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }

describe('managedFields of a write to status', () => {
  it('contain annotations of a Deployment, but no labels and no spec', async () => {
    const path = `/apis/apps/v1/namespaces/${ns}/deployments`
    await wire.must('POST', path, {
      metadata: { name: 'd' },
      spec: { selector: { matchLabels: { a: 'b' } }, template: TEMPLATE },
    })
    const sent = {
      metadata: { labels: { l: '1' }, annotations: { n: '1' } },
      spec: { replicas: 3 },
      status: { replicas: 1 },
    }
    const object = await merge(`${path}/d/status`, sent)
    assert.deepEqual(fieldsOf(object, 'part'), {
      'f:metadata': { 'f:annotations': { '.': {}, 'f:n': {} } },
      'f:status': { 'f:replicas': {} },
    })
    assert.deepEqual([object.metadata.labels, object.metadata.annotations], [undefined, { n: '1' }])
  })

  it('do not contain the deletionTimestamp of a pod', async () => {
    const path = `/api/v1/namespaces/${ns}/pods`
    await wire.must('POST', path, { metadata: { name: 'p' }, spec: TEMPLATE.spec })
    const sent = {
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', labels: { l: '1' } },
      status: { message: 'm' },
    }
    const object = await merge(`${path}/p/status`, sent)
    assert.equal(object.metadata.deletionTimestamp, undefined)
    assert.deepEqual(fieldsOf(object, 'part'), {
      'f:metadata': { 'f:labels': { '.': {}, 'f:l': {} } },
      'f:status': { 'f:message': {} },
    })
  })

  it('contain only the status of a FlowSchema', async () => {
    const path = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas'
    await wire.must('POST', path, {
      metadata: { name: ns },
      spec: { priorityLevelConfiguration: { name: 'exempt' }, matchingPrecedence: 9000 },
    })
    const condition = {
      type: 'Mine',
      status: 'True',
      reason: 'R',
      message: 'm',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const sent = { metadata: { labels: { l: '1' } }, status: { conditions: [condition] } }
    const object = await merge(`${path}/${ns}/status`, sent)
    assert.deepEqual(Object.keys(fieldsOf(object, 'part')), ['f:status'])
    assert.equal(object.metadata.labels, undefined)
    await wire.must('DELETE', `${path}/${ns}`)
  })
})

describe('managedFields of claimRef in a PersistentVolume', () => {
  it('list its members, although the same struct is atomic in other fields', async () => {
    const object = await wire.must('POST', '/api/v1/persistentvolumes?fieldManager=part', {
      metadata: { name: ns },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { name: 'c', namespace: ns },
      },
    })
    assert.deepEqual(fieldsOf(object, 'part')['f:spec']['f:claimRef'], { '.': {}, 'f:name': {}, 'f:namespace': {} })
    const config = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: ns },
      spec: { claimRef: { uid: 'u' } },
    }
    const path = `/api/v1/persistentvolumes/${ns}`
    const applied = await wire.must('PATCH', `${path}?fieldManager=m`, config, { headers: PATCHES.apply })
    assert.deepEqual(applied.spec.claimRef, { namespace: ns, name: 'c', uid: 'u' })
    assert.deepEqual(fieldsOf(applied, 'm'), { 'f:spec': { 'f:claimRef': { 'f:uid': {} } } })
    await wire.must('DELETE', path)
  })
})
