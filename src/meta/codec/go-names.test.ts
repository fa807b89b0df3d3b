import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { goFieldName, unqualified } from './go-names.ts'

describe('Go names', () => {
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
    it(`maps the field ${name} to ${expected}`, () => assert.equal(goFieldName(name), expected))
  }

  it('are shown without their package', () => {
    assert.equal(unqualified('v1.PodSpec'), 'PodSpec')
    assert.equal(unqualified('string'), 'string')
  })
})
