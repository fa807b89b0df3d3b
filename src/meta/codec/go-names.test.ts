import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { goFieldName, unqualified } from './go-names.ts'

describe('Go names of fields and types', () => {
  for (const [name, expected] of [
    ['replicas', 'Replicas'],
    ['uid', 'UID'],
    ['apiVersion', 'APIVersion'],
    ['podIPs', 'PodIPs'],
    ['ipFamilies', 'IPFamilies'],
    ['metadata', 'ObjectMeta'],
    ['identity', 'Identity'],
    ['seLinuxOptions', 'SELinuxOptions'],
    ['$ref', 'Ref'],
    ['x-kubernetes-map-type', 'XKubernetesMapType'],
  ] as const) {
    it(`contain ${expected} for the field ${name}`, () => assert.equal(goFieldName(name), expected))
  }

  it('are printed without their package', () => {
    assert.equal(unqualified('v1.PodSpec'), 'PodSpec')
    assert.equal(unqualified('string'), 'string')
  })
})
