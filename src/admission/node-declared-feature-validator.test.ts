import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { refusal } from '#kits/admission/sample-write.ts'

import { createNodeDeclaredFeatureValidator } from './node-declared-feature-validator.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('NodeDeclaredFeatureValidator', () => {
  const plugin = createNodeDeclaredFeatureValidator({ isEnabled })
  const world = {
    nodes: [
      { metadata: { name: 'old' }, status: {} },
      { metadata: { name: 'new' }, status: { declaredFeatures: ['InPlacePodLevelResourcesVerticalScaling'] } },
    ],
  }
  const refusalOf = (next: object, old: object): Promise<string | undefined> =>
    refusal(plugin, { resource: 'pods', subresource: 'resize', object: pod(next), oldObject: pod(old), world })
  const cpu = (amount: string): object => ({ requests: { cpu: amount } })

  it('rejects a pod update that requires a feature the node does not declare', async () => {
    assert.equal(await refusalOf({ nodeName: 'old' }, { nodeName: 'old' }), undefined)
    assert.equal(await refusalOf({ resources: cpu('2') }, { resources: cpu('1') }), undefined)
    assert.equal(
      await refusalOf({ nodeName: 'new', resources: cpu('2') }, { nodeName: 'new', resources: cpu('1') }),
      undefined,
    )
    assert.equal(
      await refusalOf({ nodeName: 'old', resources: cpu('2') }, { nodeName: 'old', resources: cpu('1') }),
      'pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "old"',
    )
    const init = (amount: string, restartPolicy?: string): object => ({
      nodeName: 'new',
      initContainers: [{ name: 'i', resources: cpu(amount), restartPolicy }],
    })
    assert.equal(await refusalOf(init('2', 'Always'), init('1', 'Always')), undefined)
    assert.equal(
      await refusalOf(init('2'), init('1')),
      'pods "p" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "new"',
    )
    assert.equal(
      await refusalOf({ nodeName: 'gone', resources: cpu('2') }, { nodeName: 'gone' }),
      'pods "p" is forbidden: node "gone" not found',
    )
  })
})
