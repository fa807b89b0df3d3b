import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod, PodSpec } from '#apis/core/v1.ts'

import { contextWith, NOW, podOf, type PodPatch, textsOf, web } from './pod.suite.ts'
import { pod } from './resource.ts'

function created(patch: PodPatch): Pod {
  const object = podOf(patch)
  pod.prepareCreate?.(object, contextWith())
  return object
}

const complaints = (patch: PodPatch): string[] => textsOf(pod.validate?.(podOf(patch), contextWith()) ?? [])

describe('creation of a pod', () => {
  it('sets phase, QoS class and conditions', () => {
    const resources = { requests: { cpu: '1' } }
    const { status } = created({ spec: { containers: [web({ resources })] }, status: { phase: 'Running' } })
    assert.deepEqual(status, { phase: 'Pending', qosClass: 'Burstable' })
  })

  it('sets the condition PodScheduled to False with scheduling gates', () => {
    assert.deepEqual(created({ spec: { schedulingGates: [{ name: 'a/b' }] } }).status.conditions, [
      {
        type: 'PodScheduled',
        status: 'False',
        lastProbeTime: null,
        lastTransitionTime: NOW,
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ])
  })

  it('adds its labels to selectors of topology spread constraints with matchLabelKeys', () => {
    const spec: Partial<PodSpec> = {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'z', labelSelector: {}, matchLabelKeys: ['app', 'none'], mismatchLabelKeys: ['tier'] },
            { topologyKey: 'z', matchLabelKeys: ['app'] },
          ],
        },
      },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'z',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: {},
          matchLabelKeys: ['app'],
        },
      ],
    }
    const { affinity, topologySpreadConstraints } = created({
      metadata: { labels: { app: 'web', tier: '1' } },
      spec,
    }).spec
    const terms = affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution
    const app = { key: 'app', operator: 'In', values: ['web'] }
    assert.deepEqual(terms?.[0]?.labelSelector?.matchExpressions, [
      app,
      { key: 'tier', operator: 'NotIn', values: ['1'] },
    ])
    assert.equal(terms?.[1]?.labelSelector, undefined)
    assert.deepEqual(topologySpreadConstraints?.[0]?.labelSelector, { matchExpressions: [app] })
  })

  it('converts AppArmor annotations to fields with a warning', () => {
    const name = 'container.apparmor.security.beta.kubernetes.io/web'
    const object = created({ metadata: { annotations: { [name]: 'localhost/x' } } })
    assert.deepEqual(object.spec.containers[0]?.securityContext, {
      appArmorProfile: { type: 'Localhost', localhostProfile: 'x' },
    })
    const warning = `metadata.annotations[${name}]: deprecated since v1.30; use the "appArmorProfile" field instead`
    assert.deepEqual(pod.warnings?.(object, undefined), [warning])
    assert.deepEqual(pod.warnings?.(object, object), [])
    const profile = { securityContext: { appArmorProfile: { type: 'Unconfined' } } }
    const both = created({ metadata: { annotations: { [name]: 'unconfined' } }, spec: { containers: [web(profile)] } })
    assert.deepEqual(pod.warnings?.(both, undefined), [])
  })

  it('copies serviceAccountName to the deprecated field serviceAccount', () => {
    const object = podOf()
    object.spec.serviceAccountName = 'default'
    pod.prepareCreate?.(object, contextWith())
    assert.equal(object.spec.serviceAccount, 'default')
  })

  it('warns of a name that is no valid host name', () => {
    const [warning] = pod.warnings?.(podOf({ metadata: { name: 'a.b' } }), undefined) ?? []
    assert.equal(
      warning,
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    )
  })

  const token = { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }
  const invalid: readonly [PodPatch, string[]][] = [
    [{}, []],
    [
      { spec: { containers: [web({ image: ' nginx' })] } },
      ['spec.containers[0].image: Invalid value: " nginx": must not have leading or trailing whitespace'],
    ],
    [
      { spec: { ephemeralContainers: [web({ name: 'debug' })] } },
      ['spec.ephemeralContainers: Forbidden: cannot be set on create'],
    ],
    [
      { spec: { nodeName: 'n', schedulingGates: [{ name: 'a' }] } },
      ['spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared'],
    ],
    [
      { spec: { volumes: [token] } },
      [
        'spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
      ],
    ],
    [
      { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } }, spec: { resourceClaims: [{ name: 'a' }] } },
      [
        'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
        '[]: Forbidden: static pods do not support resource claims',
      ],
    ],
    [{ spec: { volumes: [{ name: 'v', image: {} }] } }, ['spec.volumes[0].image.reference: Required value']],
  ]
  for (const [patch, errors] of invalid) {
    it(`${errors.length === 0 ? 'accepts' : 'rejects'} a plain pod changed by ${JSON.stringify(patch)}`, () =>
      assert.deepEqual(complaints(patch), errors))
  }
})

describe('deletion of a pod', () => {
  const running: PodPatch = { spec: { nodeName: 'n' }, status: { phase: 'Running' } }
  const deletions: readonly [PodPatch, requested: number | undefined, graceSeconds: number][] = [
    [running, undefined, 30],
    [{ ...running, spec: { nodeName: 'n', terminationGracePeriodSeconds: 5 } }, undefined, 5],
    [running, 7, 7],
    [running, 0, 0],
    [{ spec: {} }, 7, 0],
    [{ ...running, status: { phase: 'Failed' } }, undefined, 0],
    [{ ...running, status: { phase: 'Succeeded' } }, undefined, 0],
  ]
  for (const [patch, requested, graceSeconds] of deletions) {
    it(`has a grace period of ${graceSeconds} seconds if ${requested ?? 'no'} seconds are requested for ${JSON.stringify(patch)}`, () => {
      assert.equal(pod.graceSeconds?.(podOf(patch), requested), graceSeconds)
    })
  }
})

describe('field selectors of pods', () => {
  it('include upstream’s fields', () => {
    const object = podOf({
      spec: { nodeName: 'n', hostNetwork: true, serviceAccountName: 'sa' },
      status: { phase: 'Running', podIPs: [{ ip: '1.2.3.4' }], nominatedNodeName: 'm' },
    })
    const fields = Object.entries(pod.fieldSelectors ?? {}).map(([name, of]) => [name, of(object)])
    assert.deepEqual(Object.fromEntries(fields), {
      'spec.nodeName': 'n',
      'spec.restartPolicy': 'Always',
      'spec.schedulerName': 'default-scheduler',
      'spec.serviceAccountName': 'sa',
      'spec.hostNetwork': 'true',
      'status.phase': 'Running',
      'status.podIP': '1.2.3.4',
      'status.podIPs': '',
      'status.nominatedNodeName': 'm',
    })
    assert.equal(pod.unknownField?.('x'), 'field label not supported: x')
  })
})
