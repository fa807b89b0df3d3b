import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import { podOptions, podTemplateOptions } from './options.ts'
import { web } from './pod-spec.suite.ts'
import type { PodOptions, PodRules } from './rules.ts'

const none: PodRules = { isEnabled: () => false, allowPrivileged: true }
const all: PodRules = { isEnabled: () => true, allowPrivileged: true }

/** The old object, and the option that lets it keep a field. */
const kept: readonly [option: keyof PodOptions, spec: Partial<PodSpec>, metadata?: ObjectMeta][] = [
  [
    'envFiles',
    {
      containers: [web({ env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }] })],
    },
  ],
  ['restartRules', { containers: [web({ restartPolicy: 'Never' })] }],
  ['restartRules', { initContainers: [web({ restartPolicy: 'OnFailure' })] }],
  ['restartAllContainers', { containers: [web({ restartPolicyRules: [{ action: 'RestartAllContainers' }] })] }],
  ['restartAllContainers', { initContainers: [web({ restartPolicy: 'Always', restartPolicyRules: [{}] })] }],
  ['tolerationComparisons', { tolerations: [{ key: 'a', operator: 'Lt' }] }],
  ['userNamespacesOnHostNetwork', { hostUsers: false, hostNetwork: true }],
  [
    'userNamespacesWithDevices',
    { hostUsers: false, containers: [web({ volumeDevices: [{ name: 'a', devicePath: '/d' }] })] },
  ],
  ['indivisibleHugePages', { containers: [web({ resources: { limits: { 'hugepages-2Mi': '3Mi' } } })] }],
  [
    'invalidAffinityValues',
    {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'z', labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['!'] }] } },
          ],
        },
      },
    },
  ],
  [
    'invalidNodeAffinityValues',
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['!'] }] }],
          },
        },
      },
    },
  ],
  [
    'invalidSpreadSelector',
    {
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'X', labelSelector: { matchLabels: { 'a b': '' } } },
      ],
    },
  ],
  [
    'nonLocalTokenPaths',
    { volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: '../t' } }] } }] },
  ],
  ['sharedSysctls', { hostIPC: true, securityContext: { sysctls: [{ name: 'fs.mqueue.x', value: '1' }] } }],
  [
    'restartingInitResize',
    { initContainers: [web({ resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] })] },
  ],
]

describe('podOptions() for the validation of an update', () => {
  for (const [option, spec] of kept) {
    it(`sets option ${option} only if the old object already has a value that needs the option`, () => {
      const old = { metadata: {}, spec: { containers: [web()], ...spec } }
      assert.equal(podOptions(none)[option], false)
      assert.equal(podOptions(none, { metadata: {}, spec: { containers: [web()] } })[option], false)
      assert.equal(podOptions(none, old)[option], true)
    })
  }

  it('allows an invalid pod-deletion-cost annotation if the old object has one', () => {
    const old = (cost: string): Parameters<typeof podOptions>[1] => ({
      metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } },
      spec: { containers: [] },
    })
    assert.equal(podOptions(all, old('+1')).invalidDeletionCost, true)
    assert.equal(podOptions(all, old('-7')).invalidDeletionCost, false)
    assert.equal(podOptions(none).invalidDeletionCost, true)
  })

  it('uses looser rules for topology spread if the old object breaks the current ones', () => {
    const old = (matchLabels: Record<string, string>): Parameters<typeof podOptions>[1] => ({
      metadata: {},
      spec: {
        containers: [],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'z',
            whenUnsatisfiable: 'X',
            matchLabelKeys: ['a'],
            labelSelector: { matchLabels, matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }] },
          },
        ],
      },
    })
    assert.equal(podOptions(all).mergedSpreadKeys, true)
    assert.equal(podOptions(all, old({})).mergedSpreadKeys, true)
    assert.equal(podOptions(all, old({ a: '1' })).mergedSpreadKeys, false)
    assert.equal(podOptions(none).mergedSpreadKeys, false)
  })

  it('allows any seLinuxChangePolicy if the old object has one', () => {
    const old = { metadata: {}, spec: { containers: [], securityContext: { seLinuxChangePolicy: 'Recursive' } } }
    assert.equal(podOptions(none).onlyRecursiveSELinux, true)
    assert.equal(podOptions(none, old).onlyRecursiveSELinux, false)
    assert.equal(podOptions(all).onlyRecursiveSELinux, false)
  })

  it('distinguishes pods from pod templates', () => {
    assert.equal(podOptions(all).isPod, true)
    assert.equal(podTemplateOptions(all).isPod, false)
  })
})
