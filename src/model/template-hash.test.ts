import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodTemplateSpec } from '#apis/core/v1.ts'

import { defaultPodTemplate } from './pod-spec/defaults.ts'
import { templateHash } from './template-hash.ts'

function templateOf(app: string, image: string): PodTemplateSpec {
  const template = {
    metadata: { labels: { app } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image, resources: {} }] },
  }
  defaultPodTemplate(template)
  return template
}

describe('hash of a pod template', () => {
  it('equals the hash of upstream', () => {
    assert.equal(templateHash(templateOf('web', 'img:1')), '56fcd86c8f')
    assert.equal(templateHash(templateOf('d', 'img:1')), '64bcf7567')
  })

  it('changes with collisionCount', () => {
    assert.notEqual(templateHash(templateOf('web', 'img:1'), 1), templateHash(templateOf('web', 'img:1')))
  })
})
