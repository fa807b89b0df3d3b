import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ContainerStatus, Pod, PodStatus } from '#apis/core/v1.ts'
import { prepareUpdate } from '#apiserver/registry/write-rules.ts'

import { contextWith, podOf, type PodPatch, textsOf, web } from './pod.suite.ts'
import { pod } from './resource.ts'
import { podStatus } from './status.ts'

const context = contextWith()

function container(name: string, state: ContainerStatus['state']): ContainerStatus {
  return { name, state, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' }
}

const ended = (exitCode: number): ContainerStatus['state'] => ({
  terminated: { exitCode, startedAt: null, finishedAt: null },
})

function updated(next: PodStatus, old: PodPatch = {}): { object: Pod; errors: string[] } {
  const before = podOf(old)
  const object = podOf({ ...old, status: next })
  prepareUpdate(pod, [object, before], 'status', context)
  return { object, errors: textsOf(podStatus.validateUpdate?.(object, before, context) ?? []) }
}

describe('status update of a pod', () => {
  it('ignores changes of spec and owners, and keeps the QoS class and generations if the client omits them', () => {
    const condition = { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null }
    const old = podOf({
      spec: { hostname: 'old' },
      status: { qosClass: 'Burstable', observedGeneration: 3, conditions: [{ ...condition, observedGeneration: 2 }] },
    })
    const next = podOf({
      metadata: {
        labels: { a: 'b' },
        deletionTimestamp: '2026-01-01T00:00:00Z',
        ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u' }],
      },
      spec: { hostname: 'new' },
      status: { phase: 'Running', conditions: [condition] },
    })
    prepareUpdate(pod, [next, old], 'status', context)
    assert.equal(next.spec.hostname, 'old')
    assert.equal(next.metadata.ownerReferences, undefined)
    assert.equal(next.metadata.deletionTimestamp, undefined)
    // Unlike other kinds, the status update of a pod may change labels.
    assert.deepEqual(next.metadata.labels, { a: 'b' })
    assert.deepEqual(next.status, {
      phase: 'Running',
      qosClass: 'Burstable',
      observedGeneration: 3,
      conditions: [{ ...condition, observedGeneration: 2 }],
    })
  })

  it('keeps podIP and the first of podIPs equal', () => {
    assert.deepEqual(updated({ podIP: '1.1.1.1' }).object.status.podIPs, [{ ip: '1.1.1.1' }])
    assert.equal(updated({ podIPs: [{ ip: '1.1.1.1' }, { ip: '::1' }] }).object.status.podIP, '1.1.1.1')
    const both = updated({ podIP: '2.2.2.2', podIPs: [{ ip: '1.1.1.1' }, { ip: '::1' }] })
    assert.deepEqual(both.object.status.podIPs, [{ ip: '2.2.2.2' }])
  })

  it('drops fields of disabled feature gates', () => {
    const statuses = [{ resourceClaimName: 'c', resources: {} }]
    const { object } = updated({ nodeAllocatableResourceClaimStatuses: statuses })
    assert.deepEqual(object.status, {})
  })

  it('rejects a restart of containers that must not restart', () => {
    const spec = {
      restartPolicy: 'OnFailure',
      containers: [web(), web({ name: 'side' })],
      initContainers: [web({ name: 'init' })],
    }
    const old: PodStatus = {
      containerStatuses: [container('web', ended(0)), container('side', ended(1))],
      initContainerStatuses: [container('init', ended(0))],
      ephemeralContainerStatuses: [container('debug', ended(1))],
    }
    const running = { running: { startedAt: null } }
    const next: PodStatus = {
      containerStatuses: [container('web', running), container('side', running)],
      initContainerStatuses: [container('init', running)],
      ephemeralContainerStatuses: [container('debug', running)],
    }
    const refusal = 'Forbidden: may not be transitioned to non-terminated state'
    assert.deepEqual(updated(next, { spec, status: old }).errors, [
      `status.containerStatuses[0].state: ${refusal}`,
      `status.initContainerStatuses[0].state: ${refusal}`,
      `status.ephemeralContainerStatuses[0].state: ${refusal}`,
    ])
    const rules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }]
    const restartable = { ...spec, containers: [web({ restartPolicy: 'Never', restartPolicyRules: rules })] }
    assert.equal(updated(next, { spec: restartable, status: old }).errors.length, 1)
  })

  const cases: readonly [PodStatus, string[], PodPatch?][] = [
    [
      {
        conditions: [
          { type: 'bad key', observedGeneration: -1, status: 'True', lastProbeTime: null, lastTransitionTime: null },
        ],
      },
      [
        'status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer',
        "status.conditions[0].Type: Invalid value: \"bad key\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
    [
      { nominatedNodeName: 'm' },
      ['status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node'],
      { spec: { nodeName: 'n' } },
    ],
    [
      { qosClass: 'Guaranteed' },
      ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
      { status: { qosClass: 'Burstable' } },
    ],
    [
      { podIPs: [{ ip: '1.1.1.1' }, { ip: '2.2.2.2' }] },
      [
        'status.podIPs: Invalid value: [{"ip":"1.1.1.1"},{"ip":"2.2.2.2"}]: may specify no more than one IP for each IP family',
      ],
    ],
    [
      { hostIP: '1.1.1.1', hostIPs: [{ ip: 'x' }] },
      [
        'status.hostIPs[0].ip: Invalid value: "x": must be equal to `hostIP`',
        'status.hostIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      ],
    ],
    [
      { containerStatuses: [{ ...container('web', {}), user: { linux: { uid: -1, gid: 0 } } }] },
      ['status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive'],
    ],
    [
      {
        containerStatuses: [
          {
            ...container('web', {}),
            allocatedResourcesStatus: [
              {
                name: 'claim:x',
                resources: [
                  { resourceID: 'a', health: 'Fine', message: '' },
                  { resourceID: 'a', health: 'Healthy' },
                ],
              },
            ],
          },
        ],
      },
      [
        "status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: \"claim:x\": must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
        'status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "Fine": supported values: "Healthy", "Unhealthy", "Unknown"',
        'status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].message: Required value: must be non-empty if specified',
        'status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID: Duplicate value: "a"',
      ],
    ],
    [
      { resourceClaimStatuses: [{ name: 'gpu' }, { name: 'gpu' }] },
      [
        'status.resourceClaimStatuses[0].name: Invalid value: "gpu": must match the name of an entry in `spec.resourceClaims`',
        'status.resourceClaimStatuses[1].name: Invalid value: "gpu": must match the name of an entry in `spec.resourceClaims`',
        'status.resourceClaimStatuses[1].name: Duplicate value: "gpu"',
      ],
    ],
    [
      {
        extendedResourceClaimStatus: {
          requestMappings: [{ containerName: 'db', resourceName: 'x', requestName: 'r' }],
          resourceClaimName: '',
        },
      },
      [
        'status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "db": must match the name of an entry in spec.initContainers.name or spec.containers.name',
        'status.extendedResourceClaimStatus.resourceClaimName: Required value',
      ],
    ],
  ]
  for (const [next, errors, old] of cases) {
    it(`${errors.length === 0 ? 'accepts' : 'rejects'} ${JSON.stringify(next).slice(0, 60)}`, () => {
      assert.deepEqual(updated(next, old).errors, errors)
    })
  }

  it('warns of non-canonical IP addresses', () => {
    const old = podOf({ status: { podIPs: [{ ip: '01.1.1.1' }] } })
    assert.deepEqual(podStatus.warnings?.(old, old), [
      'status.podIPs[0].ip: non-standard IP address "01.1.1.1" is invalid: use "1.1.1.1"',
    ])
  })
})
