import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec } from '#apis/core/v1.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { defaultPodSpec } from './defaults.ts'
import { podOptions } from './options.ts'
import { complaintsAbout, defaultRules, web } from './pod-spec.suite.ts'
import { validatePodSpec } from './pod-spec.ts'

describe('validation of a pod spec', () => {
  it('accepts one container with a name and an image', () => {
    assert.deepEqual(complaintsAbout({}), [])
  })

  it('rejects privileged containers if the server forbids them', () => {
    const patch = { containers: [web({ securityContext: { privileged: true } })] }
    assert.deepEqual(complaintsAbout(patch, { ...defaultRules, allowPrivileged: false }), [
      'spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy',
    ])
  })

  it('handles any number of errors', () => {
    const env = Array.from({ length: 150_000 }, () => ({ name: '' }))
    const items = Array.from({ length: 150_000 }, () => ({ key: '', path: 'x' }))
    const patch = { containers: [web({ env })], volumes: [{ name: 'v', configMap: { name: 'c', items } }] }
    assert.equal(complaintsAbout(patch).length, 300_000)
  })

  it('takes linear time for long lists', () => {
    const many = (make: (at: number) => unknown): never[] =>
      Array.from({ length: 30_000 }, (_, at) => make(at)) as never[]
    const constraint = { maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} }
    const texts = complaintsAbout({
      containers: [web({ resources: { claims: many((at) => ({ name: `c${at}` })) } })],
      resourceClaims: many((at) => ({ name: `c${at}`, resourceClaimName: 'x' })),
      topologySpreadConstraints: many((at) => ({ ...constraint, topologyKey: `k${at}` })),
    })
    assert.deepEqual(texts, [])
  })

  it('derives the name of an ephemeral claim from the pod, and rejects a second volume with that claim', () => {
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const spec: PodSpec = {
      containers: [web()],
      volumes: [
        { name: 'a', ephemeral: { volumeClaimTemplate: { metadata: {}, spec: claim } } },
        { name: 'b', persistentVolumeClaim: { claimName: 'pod-a' } },
      ],
    }
    defaultPodSpec(spec)
    const texts = validatePodSpec(spec, fieldPath('spec'), podOptions(defaultRules), { name: 'pod' }).map(
      fieldErrorText,
    )
    assert.deepEqual(texts, [
      'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "pod-a": must not reference a PVC that gets created for an ephemeral volume',
    ])
  })
})
