import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createDefaultTolerationSeconds } from './default-toleration-seconds.ts'
import { sampleWrite } from './kit/sample-write.ts'
import { createNodeDeclaredFeatureValidator } from './node-declared-feature-validator.ts'
import { createPodTopologyLabels } from './pod-topology-labels.ts'
import { createPriority } from './priority.ts'
import { runtimeClass } from './runtime-class.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('plugins with nothing to say', () => {
  it('answer without a promise, so that the chain need not wait', () => {
    const { attributes } = sampleWrite({ resource: 'pods', object: pod(), oldObject: pod() })
    const { attributes: created } = sampleWrite({ resource: 'pods', object: pod() })
    assert.equal(createPriority({ isEnabled }).mutate!(attributes), undefined)
    assert.equal(createNodeDeclaredFeatureValidator({ isEnabled }).validate!(attributes), undefined)
    assert.equal(runtimeClass.mutate!(created), undefined)
    assert.equal(runtimeClass.validate!(created), undefined)
    assert.equal(createPodTopologyLabels({ isEnabled }).mutate!(created), undefined)
    assert.equal(createDefaultTolerationSeconds().mutate!(created), undefined)
  })
})
