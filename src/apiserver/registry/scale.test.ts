import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Deployment, Deployments } from '#apis/apps/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Admission, Attributes } from './admission.ts'
import type { ScaleRules } from './resource.ts'
import { admitScales, SCALE, type Scale, scaleForWrite, scaleOf, withScale } from './scale.ts'

const rules: ScaleRules<KubeObject> = {
  replicas: (object) => (object as Deployment).spec.replicas ?? 0,
  setReplicas(object, replicas) {
    ;(object as Deployment).spec.replicas = replicas
  },
  statusReplicas: () => 2,
  selector: () => 'app=x',
}

const entry = {
  manager: 'maker',
  operation: 'Update',
  apiVersion: 'apps/v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': { 'f:replicas': {}, 'f:paused': {} } },
}

function workload(replicas = 3): KubeObject {
  return {
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    metadata: {
      name: 'web',
      namespace: 'ns',
      uid: 'u',
      resourceVersion: '7',
      generation: 4,
      labels: { a: 'b' },
      managedFields: [entry],
    },
    spec: { replicas, paused: true },
  } as unknown as KubeObject
}

describe('Scale of a workload', () => {
  it('contains the name, the replicas and the selector', () => {
    assert.deepEqual(scaleOf(rules, workload()), {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'web', namespace: 'ns', uid: 'u', resourceVersion: '7' },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app=x' },
    })
    assert.deepEqual(scaleOf({ ...rules, selector: () => '' }, workload(0)).spec, {})
    assert.deepEqual(scaleOf({ ...rules, selector: () => '' }, workload()).status, { replicas: 2 })
  })

  it('has managedFields entries of replicas with the paths of a Scale', () => {
    const { metadata } = scaleForWrite(rules, workload(), Deployments)
    assert.deepEqual(metadata.managedFields, [
      { ...entry, apiVersion: 'autoscaling/v1', fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
    ])
  })

  it('is written to a copy of the workload', () => {
    const before = workload()
    const scale = scaleForWrite(rules, before, Deployments)
    const taker = {
      manager: 'hpa',
      operation: 'Update' as const,
      apiVersion: 'autoscaling/v1',
      subresource: 'scale',
      fieldsType: 'FieldsV1' as const,
      fieldsV1: { 'f:spec': { 'f:replicas': {} } },
    }
    const next = withScale(
      rules,
      before,
      { ...scale, spec: { replicas: 5 }, metadata: { ...scale.metadata, managedFields: [taker] } },
      Deployments,
    )
    assert.deepEqual(before, workload())
    assert.equal((next as Deployment).spec.replicas, 5)
    assert.deepEqual(next.metadata.managedFields, [
      { ...taker, apiVersion: 'apps/v1' },
      { ...entry, fieldsV1: { 'f:spec': { 'f:paused': {} } } },
    ])
  })

  it('gets no managedFields if the workload has none', () => {
    const bare = workload()
    delete bare.metadata.managedFields
    const scale = scaleForWrite(rules, bare, Deployments)
    assert.equal(scale.metadata.managedFields, undefined)
    assert.equal(withScale(rules, bare, { ...scale, spec: {} }, Deployments).metadata.managedFields, undefined)
  })
})

describe('admission of a Scale', () => {
  const attributesOf = (object: KubeObject, oldObject: KubeObject): Attributes =>
    ({
      operation: 'UPDATE',
      kind: Deployments,
      subresource: 'scale',
      objectKind: Deployments,
      object,
      oldObject,
    }) as never

  it('passes the Scale to plugins and applies their changes of replicas', async () => {
    const seen: Attributes[] = []
    const admission: Admission = {
      mutate(attributes) {
        seen.push(attributes)
        ;(attributes.object as Scale).spec = { replicas: 9 }
        return Promise.resolve()
      },
      validate(attributes) {
        seen.push(attributes)
        return Promise.resolve()
      },
    }
    const [object, old] = [workload(4), workload(3)]
    const scales = admitScales(rules, admission)
    await scales.mutate(attributesOf(object, old))
    assert.equal((object as Deployment).spec.replicas, 9)
    await scales.validate(attributesOf(object, old))
    assert.deepEqual(
      seen.map(({ objectKind, object: shown, oldObject }) => [
        objectKind,
        shown?.kind,
        (shown as Scale).spec?.replicas,
        (oldObject as Scale).spec?.replicas,
      ]),
      [
        [SCALE, 'Scale', 9, 3],
        [SCALE, 'Scale', 9, 3],
      ],
    )
    assert.equal((old as Deployment).spec.replicas, 3)
  })
})
