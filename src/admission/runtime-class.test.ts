import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusal } from '#kits/admission/sample-write.ts'

import { runtimeClass } from './runtime-class.ts'

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('RuntimeClass', () => {
  const kata = {
    metadata: { name: 'kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '250m' } },
    scheduling: {
      nodeSelector: { runtime: 'kata' },
      tolerations: [{ key: 'kata', operator: 'Exists', effect: 'NoSchedule' }],
    },
  }
  const world = { 'runtimeclasses.node.k8s.io': [kata, { metadata: { name: 'runc' }, handler: 'runc' }] }
  const refusalOf = (spec: object): Promise<string | undefined> =>
    refusal(runtimeClass, { resource: 'pods', object: pod(spec), world })

  it('copies overhead, node selector and tolerations to the pod, without redundant tolerations', async () => {
    const narrow = { key: 'kata', operator: 'Equal', value: 'x', effect: 'NoSchedule' }
    const other = { key: 'other', operator: 'Exists' }
    const object = pod({ runtimeClassName: 'kata', nodeSelector: { a: 'b' }, tolerations: [narrow, other] })
    const { spec } = (await admit(runtimeClass, { resource: 'pods', object, world })) as Pod
    assert.deepEqual(spec.overhead, { cpu: '250m' })
    assert.deepEqual(spec.nodeSelector, { a: 'b', runtime: 'kata' })
    assert.deepEqual(spec.tolerations, [other, { key: 'kata', operator: 'Exists', effect: 'NoSchedule' }])
  })

  it('rejects a pod whose overhead or node selector conflicts with its RuntimeClass', async () => {
    assert.equal(
      await refusalOf({ runtimeClassName: 'x' }),
      'pods "p" is forbidden: pod rejected: RuntimeClass "x" not found',
    )
    assert.equal(
      await refusalOf({ runtimeClassName: 'kata', nodeSelector: { runtime: 'runc' } }),
      'pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = runc',
    )
    assert.equal(
      await refusalOf({ runtimeClassName: 'kata', overhead: { cpu: '1' } }),
      "pods \"p\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    )
    const unexplained =
      'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'
    assert.equal(await refusalOf({ overhead: { cpu: '1' } }), unexplained)
    assert.equal(await refusalOf({ runtimeClassName: 'runc', overhead: { cpu: '1' } }), unexplained)
    assert.equal(await refusalOf({ runtimeClassName: 'kata', overhead: { cpu: '0.25' } }), undefined)
    assert.equal(await refusalOf({ runtimeClassName: 'runc' }), undefined)
    assert.equal(await refusalOf({}), undefined)
  })

  const seconds = (tolerationSeconds?: number): object => ({
    key: 'k',
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds,
  })
  it('keeps the toleration with the longer tolerationSeconds', async () => {
    const scheduling = { tolerations: [seconds(10)] }
    const of = { 'runtimeclasses.node.k8s.io': [{ metadata: { name: 'r' }, handler: 'r', scheduling }] }
    for (const [own, expected] of [
      [seconds(5), [seconds(10)]],
      [seconds(20), [seconds(20)]],
      [seconds(10), [seconds(10)]],
    ] as const) {
      const object = pod({ runtimeClassName: 'r', tolerations: [own] })
      const { spec } = (await admit(runtimeClass, { resource: 'pods', object, world: of })) as Pod
      assert.deepEqual(spec.tolerations, expected)
    }
  })
})
