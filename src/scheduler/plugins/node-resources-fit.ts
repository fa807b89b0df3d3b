/** NodeResourcesFit: rejects nodes without enough free resources, and by default prefers the least allocated node. */
import { Nodes } from '#apis/core/v1.ts'
import { type DeviceClass, DeviceClasses } from '#apis/resource/v1.ts'
import { podRequests } from '#model/pod-resources.ts'
import { DEVICE_CLASS_PREFIX } from '#model/quota/pods.ts'

import { amountOf, type Amounts } from '../cluster/amounts.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { devicesOf } from '../devices/devices.ts'
import {
  type ClusterEventWithHint,
  definePlugin,
  type Handle,
  type PluginFactory,
  type Refusal,
  type Verdict,
} from '../framework/framework.ts'
import { allocationOf, type ResourceWeight, type Strategy, strategyScore } from '../framework/resource-scores.ts'

export interface NodeResourcesFitArgs {
  readonly ignoredResources?: readonly string[]
  readonly ignoredResourceGroups?: readonly string[]
  readonly scoringStrategy?: Strategy
}

const DEFAULT: Strategy = {
  type: 'LeastAllocated',
  resources: [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ],
}

export const nodeResourcesFit: PluginFactory = definePlugin({
  name: 'NodeResourcesFit',
  create(
    handle: Handle,
    { ignoredResources = [], ignoredResourceGroups = [], scoringStrategy = DEFAULT }: NodeResourcesFitArgs,
  ) {
    const isIgnored = (name: string): boolean =>
      ignoredResources.includes(name) ||
      (name.includes('/') && ignoredResourceGroups.includes(name.split('/', 1)[0] ?? ''))
    const isBacked = handle.isEnabled('DRAExtendedResource') ? deviceBackedResources(handle) : undefined
    const resources: readonly ResourceWeight[] = scoringStrategy.resources ?? DEFAULT.resources ?? []
    return {
      eventsToRegister: [
        { resource: 'AssignedPod', actions: ['delete', 'scaled-down'] },
        { resource: 'TargetPod', actions: ['scaled-down'] },
        { resource: Nodes, actions: ['add', 'allocatable'] },
        ...(isBacked === undefined ? [] : [CLASS_WAKE]),
      ],
      filter: (pod, node) =>
        insufficientResources(
          pod,
          node,
          (name) => isIgnored(name) || (isBacked?.(name) === true && !hasAny(node, name)),
        ),
      score: (pod, node) => strategyScore(scoringStrategy, resources, allocationOf(resources, pod, node, 'likely')),
    }
  },
})

/** Whether devices may back a resource. A change invalidates all cached results. */
function deviceBackedResources(handle: Handle): (name: string) => boolean {
  const devices = devicesOf(handle)
  const changed = (): void => handle.cluster.touchNodes()
  const updated = (now: DeviceClass, old: DeviceClass): void => {
    if (now.spec.extendedResourceName !== old.spec.extendedResourceName) changed()
  }
  handle.of(DeviceClasses).listen({ added: changed, updated, deleted: changed })
  return (name) => devices.classFor(name) !== undefined
}

const CLASS_WAKE: ClusterEventWithHint = {
  resource: DeviceClasses,
  actions: ['add', 'update'],
  queueingHint(pod, now, old) {
    const [{ metadata, spec }, before] = [now as DeviceClass, old as DeviceClass | undefined]
    const requests = podRequests(pod)
    if (before === undefined && requests.has(`${DEVICE_CLASS_PREFIX}${metadata.name}`)) return true
    const { extendedResourceName: name } = spec
    return name !== undefined && name !== before?.spec.extendedResourceName && requests.has(name)
  },
}

function hasAny({ allocatable }: NodeInfo, name: string): boolean {
  return amountOf(allocatable, name) > 0
}

/** All insufficient resources. Unresolvable if even the empty node has too little. */
function insufficientResources(pod: PodInfo, node: NodeInfo, isIgnored: (name: string) => boolean): Verdict {
  const reasons: string[] = []
  if (node.pods.size + 1 > node.maxPods) reasons.push('Too many pods')
  let isHopeless = false
  for (const name of namesIn(pod.requests)) {
    const wanted = amountOf(pod.requests, name)
    if (wanted === 0 || (name.includes('/') && isIgnored(name))) continue
    const all = amountOf(node.allocatable, name)
    if (wanted <= all - amountOf(node.requested, name)) continue
    reasons.push(`Insufficient ${name}`)
    if (wanted > all) isHopeless = true
  }
  if (reasons.length === 0) return undefined
  const refusal: Refusal = { code: isHopeless ? 'unresolvable' : 'unschedulable', reasons }
  return refusal
}

const PLAIN = ['cpu', 'memory', 'ephemeral-storage']

function namesIn({ others }: Amounts): readonly string[] {
  return others === undefined ? PLAIN : [...PLAIN, ...others.keys()]
}
