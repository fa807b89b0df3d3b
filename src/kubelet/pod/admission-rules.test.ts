import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node, Pod, PodSpec } from '#apis/core/v1.ts'
import { toleratesNumbers } from '#model/nodes/fit.ts'

import type { NodeTraits } from './admission-rules.ts'
import { AllocatedResources } from './pod-admission.ts'
import { sysctlFault } from './sysctls.ts'

const NODE = {
  metadata: { name: 'n', labels: { disk: 'ssd' } },
  spec: { taints: [{ key: 'gone', effect: 'NoExecute' }] },
  status: { allocatable: { cpu: '2', memory: '4Gi', pods: '3' } },
} as unknown as Node

const TOLERATES = [{ key: 'gone', operator: 'Exists' }]

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u1', ...metadata },
  spec: { containers: [{ name: 'c', image: 'i', resources: {} }], tolerations: TOLERATES, ...spec },
  status: {},
})

const of = (pod: Pod, traits: NodeTraits = {}): string | undefined => {
  const rejection = new AllocatedResources().admit(pod, NODE, false, traits)
  return rejection === undefined ? undefined : `${rejection.reason}: ${rejection.text}`
}

test('kubelet admission rejects pods that the node cannot run, with upstream’s reasons and texts', () => {
  const cases: [Pod, NodeTraits, string | undefined][] = [
    [podOf(), {}, undefined],
    [
      podOf({ nodeSelector: { disk: 'hdd' } }),
      {},
      "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ],
    [podOf({ nodeName: 'm' }), {}, "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name"],
    [
      podOf({ tolerations: [] }),
      {},
      "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    ],
    [podOf({ tolerations: [] }, { annotations: { 'kubernetes.io/config.source': 'file' } }), {}, undefined],
    [
      podOf({ os: { name: 'windows' } }),
      {},
      "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    ],
    [
      podOf({}, { labels: { 'kubernetes.io/os': 'windows' } }),
      {},
      "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    ],
    [
      podOf({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
      {},
      'SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted',
    ],
    [
      podOf({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
      { allowedSysctls: ['kernel.msg*'] },
      undefined,
    ],
    [
      podOf({ securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
      { hasAppArmor: false },
      'AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host',
    ],
    [podOf({ securityContext: { appArmorProfile: { type: 'Unconfined' } } }), { hasAppArmor: false }, undefined],
    [
      podOf({ securityContext: { supplementalGroupsPolicy: 'Strict' } }),
      {},
      'SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node',
    ],
    [podOf(), { isShuttingDown: true }, 'NodeShutdown: Pod was rejected as the node is shutting down.'],
  ]
  for (const [pod, traits, expected] of cases) assert.equal(of(pod, traits), expected)
})

test('kubelet admission rejects BestEffort pods under memory pressure, and all but critical pods under other pressure', () => {
  const burstable = podOf({ containers: [{ name: 'c', image: 'i', resources: { requests: { memory: '1Mi' } } }] })
  const critical = podOf({ priority: 2_000_001_000 })
  const tolerant = podOf({
    tolerations: [...TOLERATES, { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }],
  })
  const memory = { pressures: ['MemoryPressure'] }
  const disk = { pressures: ['DiskPressure'] }
  assert.equal(of(podOf(), memory), 'Evicted: The node had condition: [MemoryPressure]. ')
  assert.deepEqual(
    [of(burstable, memory), of(critical, memory), of(tolerant, memory)],
    [undefined, undefined, undefined],
  )
  assert.equal(of(burstable, disk), 'Evicted: The node had condition: [DiskPressure]. ')
  assert.equal(of(critical, disk), undefined)
})

test('kubelet admission rejects a pod whose host port another pod uses', () => {
  const charges = new AllocatedResources()
  const withPort = (uid: string, hostPort: number, hostIP?: string): Pod =>
    podOf(
      {
        containers: [
          {
            name: 'c',
            image: 'i',
            resources: {},
            ports: [{ containerPort: 80, hostPort, ...(hostIP !== undefined && { hostIP }) }],
          },
        ],
      },
      { uid },
    )
  const first = withPort('u1', 8080)
  assert.equal(charges.admit(first, NODE, false), undefined)
  assert.equal(charges.admit(withPort('u2', 8080, '10.0.0.1'), NODE, false)?.reason, 'NodePorts')
  assert.equal(charges.admit(withPort('u3', 8081), NODE, false), undefined)
  charges.release(first)
  assert.equal(charges.admit(withPort('u2', 8080, '10.0.0.1'), NODE, false), undefined)
  assert.equal(charges.admit(withPort('u4', 1), NODE, false), undefined)
  const text = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
  assert.deepEqual(charges.admit(withPort('u5', 2), NODE, false), { reason: 'OutOfpods', text })
})

test('kubelet admission rejects a sysctl of a namespace that is shared with the node', () => {
  assert.equal(sysctlFault('net/ipv4/tcp_syncookies', {}), undefined)
  assert.equal(
    sysctlFault('net.ipv4.tcp_syncookies', { hostNetwork: true }),
    '"net.ipv4.tcp_syncookies" not allowed with host net enabled',
  )
  assert.equal(
    sysctlFault('kernel.shm_rmid_forced', { hostIPC: true }),
    '"kernel.shm_rmid_forced" not allowed with host ipc enabled',
  )
})

test('kubelet admission compares numeric tolerations only with the feature gate', () => {
  const taints = [{ key: 'load', value: '5', effect: 'NoExecute' }]
  const node = { ...NODE, spec: { taints } } as Node
  const pod = podOf({ tolerations: [{ key: 'load', operator: 'Lt', value: '10', effect: 'NoExecute' }] })
  const reason = (traits: NodeTraits): string | undefined =>
    new AllocatedResources().admit(pod, node, false, traits)?.reason
  assert.equal(reason({}), 'TaintToleration')
  assert.equal(reason({ isTolerated: toleratesNumbers }), undefined)
})
