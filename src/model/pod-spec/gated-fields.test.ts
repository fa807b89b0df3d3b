import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec, PodTemplateSpec } from '#apis/core/v1.ts'
import { deepCopy } from '#meta/object.ts'

import { dropDisabledPodFields, dropDisabledTemplateFields } from './gated-fields.ts'
import { web } from './pod-spec.suite.ts'

const bare: PodSpec = { containers: [web()] }

/** The gate, a spec with its field, and one without. */
const fields: readonly [gate: string, having: Partial<PodSpec>, without: Partial<PodSpec>][] = [
  ['PodLevelResources', { resources: { requests: { cpu: '1' } } }, {}],
  [
    'MatchLabelKeysInPodTopologySpread',
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'X', matchLabelKeys: ['a'] }] },
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'X' }] },
  ],
  [
    'ClusterTrustBundleProjection',
    { volumes: [{ name: 'v', projected: { sources: [{ clusterTrustBundle: { path: 'p' } }] } }] },
    { volumes: [{ name: 'v', projected: { sources: [{}] } }] },
  ],
  [
    'PodCertificateRequest',
    { volumes: [{ name: 'v', projected: { sources: [{ podCertificate: {} }] } }] },
    { volumes: [{ name: 'v', projected: { sources: [{}] } }] },
  ],
  ['GenericWorkload', { schedulingGroup: { podGroupName: 'g' } }, {}],
  [
    'ContainerRestartRules',
    { containers: [web({ restartPolicy: 'Never' })], initContainers: [web({ restartPolicy: 'Always' })] },
    { initContainers: [web({ restartPolicy: 'Always' })] },
  ],
  ['HostnameOverride', { hostnameOverride: 'h' }, {}],
  [
    'EnvFiles',
    {
      containers: [web({ env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }] })],
    },
    { containers: [web({ env: [{ name: 'A', valueFrom: {} }] })] },
  ],
  ['ContainerStopSignals', { containers: [web({ lifecycle: { stopSignal: 'SIGTERM' } })] }, {}],
]

describe('fields of a pod behind feature gates', () => {
  for (const [gate, having, without] of fields) {
    it(`are dropped if ${gate} is off, unless the old pod has them`, () => {
      const spec = (): PodSpec => deepCopy({ ...bare, ...having })
      const off = { isEnabled: (name: string) => name !== gate, allowPrivileged: true }
      const dropped = spec()
      dropDisabledPodFields(dropped, bare, off)
      assert.deepEqual(dropped, { ...bare, ...without })
      const kept = spec()
      dropDisabledPodFields(kept, spec(), off)
      assert.deepEqual(kept, spec())
      const enabled = spec()
      dropDisabledPodFields(enabled, undefined, { ...off, isEnabled: () => true })
      assert.deepEqual(enabled, spec())
    })
  }

  it('are dropped from pod templates as well', () => {
    const template: PodTemplateSpec = { metadata: {}, spec: { ...bare, hostnameOverride: 'h' } }
    dropDisabledTemplateFields(template, undefined, { isEnabled: () => false, allowPrivileged: true })
    assert.equal(template.spec.hostnameOverride, undefined)
    dropDisabledTemplateFields(undefined, undefined, { isEnabled: () => false, allowPrivileged: true })
  })
})
