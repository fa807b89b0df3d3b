/** Combines the device, DRA, CPU and memory managers of a node. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { messageText } from '#cri/call-text.ts'
import type { Clock } from '#lib/clock.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import type { DeviceManager } from '../devices/device-manager.ts'
import type { ClaimManager } from '../dra/claim-manager.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { Rejection } from '../pod/admission-rules.ts'
import { mergeRunOptions, NO_RUN_OPTIONS, type RunContainerOptions } from '../pod/run-options.ts'
import { type CpuManager, CpuRefusal, exclusiveCpus } from '../topology/cpu-manager.ts'
import { ANYWHERE, decide, type Decision, type TopologyPolicy } from '../topology/hints.ts'
import { type MemoryManager, memoryRequest } from '../topology/memory-manager.ts'
import { KeyedMutex } from '../volumes/keyed-mutex.ts'
import type { ContainerManager, InfeasibleResize } from './container-manager.ts'

export interface ContainerManagerOptions {
  readonly devices: DeviceManager
  readonly claims: ClaimManager
  readonly cpus: CpuManager
  readonly memory: MemoryManager
  /** CPU quotas also apply to containers with exclusive CPUs. */
  readonly keepsCpuQuota: boolean
  readonly policy: TopologyPolicy
  /** Align the resources of each container, or of the whole pod. */
  readonly scope: 'container' | 'pod'
  /** NUMA nodes of the machine. */
  readonly nodes: readonly number[]
  readonly clock: Clock
  readonly meters: KubeletMeters
}

/** Pods are admitted one at a time, so that no two get the same resources. */
const ADMISSION = 'admission'

const TOPOLOGY: Rejection = {
  reason: 'TopologyAffinityError',
  text: 'Resources cannot be allocated with Topology locality',
}

export class NodeContainerManager implements ContainerManager {
  readonly #options: ContainerManagerOptions
  readonly #mutex = new KeyedMutex()

  constructor(options: ContainerManagerOptions) {
    this.#options = options
  }

  admit(pod: Pod): Promise<Rejection | undefined> {
    const { policy, clock, meters } = this.#options
    return this.#mutex.run(ADMISSION, async () => {
      const startMs = clock.elapsed()
      const rejection = await this.#admit(pod).catch(rejectionOf)
      if (policy !== 'none') {
        meters.family('kubelet_topology_manager_admission_requests_total').labels().inc()
        meters
          .family('kubelet_topology_manager_admission_duration_ms')
          .labels()
          .observe(clock.elapsed() - startMs)
        const errors = meters.family('kubelet_topology_manager_admission_errors_total').labels()
        if (rejection === TOPOLOGY) errors.inc()
      }
      if (rejection !== undefined) await this.#setFree(pod.metadata.uid ?? '')
      return rejection
    })
  }

  async #admit(pod: Pod): Promise<Rejection | undefined> {
    const { devices, cpus, memory, scope } = this.#options
    const whole = scope === 'pod' ? this.#decide(pod, podAsOne(pod)) : undefined
    for (const container of containersOf(pod)) {
      const decision = whole ?? this.#decide(pod, container)
      if (!decision.isAdmitted) return TOPOLOGY
      await cpus.allocate(pod, container, decision.nodes)
      await devices.allocate(pod, container, decision.nodes)
      await memory.allocate(pod, container, decision)
    }
    return undefined
  }

  #decide(pod: Pod, container: Container): Decision {
    const { devices, cpus, memory, policy, nodes } = this.#options
    if (policy === 'none') return ANYWHERE
    const hints = [...devices.hints(pod, container, nodes), cpus.hints(pod, container), ...memory.hints(pod, container)]
    return decide(policy, nodes, hints)
  }

  prepare(pod: Pod): Promise<void> {
    return this.#countClaims('PrepareResources', () => this.#options.claims.prepare(pod))
  }

  async #countClaims(operation: string, work: () => Promise<void>): Promise<void> {
    const { clock, meters } = this.#options
    const startMs = clock.elapsed()
    let isError = true
    try {
      await work()
      isError = false
    } finally {
      const durations = meters.family('dra_operations_duration_seconds').labels(operation, String(isError))
      durations.observe((clock.elapsed() - startMs) / 1000)
    }
  }

  async getResources(pod: Pod, container: Container | EphemeralContainer): Promise<RunContainerOptions> {
    const { devices, claims, cpus, memory } = this.#options
    const { uid = '' } = pod.metadata
    await memory.releaseInitMemory(pod, container)
    const own = {
      ...NO_RUN_OPTIONS,
      cdiDevices: claims.cdiDevicesOf(pod, container),
      cpus: cpus.cpusOf(uid, container.name),
      hasExclusiveCpus: this.hasExclusiveCpus(uid, container.name),
      memoryNodes: memory.nodesOf(uid, container.name),
    }
    return mergeRunOptions([await devices.getResources(pod, container), own])
  }

  refuseResize(desired: Pod, granted: Pod): InfeasibleResize | undefined {
    const { cpus, memory } = this.#options
    if (qosClassOf(desired) !== 'Guaranteed') return undefined
    const policies = [
      { resource: 'cpu', isStatic: cpus.isStatic, manager: 'CPU Manager', policy: 'static' },
      { resource: 'memory', isStatic: memory.isStatic, manager: 'Memory Manager', policy: 'Static' },
    ]
    const refusing = policies.find(({ resource, isStatic }) => isStatic && asksAnother(desired, granted, resource))
    if (refusing === undefined) return undefined
    const { resource, manager, policy } = refusing
    const text = `Resize is infeasible for Guaranteed Pods alongside ${manager} policy "${policy}"`
    return { text, label: `guaranteed_pod_${resource}_manager_static_policy` }
  }

  hasExclusiveCpus(uid: string, container?: string): boolean {
    const { cpus, keepsCpuQuota } = this.#options
    return !keepsCpuQuota && cpus.hasExclusive(uid, container)
  }

  async release(uid: string): Promise<void> {
    await this.#setFree(uid)
    await this.#countClaims('UnprepareResources', () => this.#options.claims.release(uid))
  }

  async #setFree(uid: string): Promise<void> {
    const { devices, cpus, memory } = this.#options
    await cpus.release(uid)
    await memory.release(uid)
    await devices.release(uid)
  }

  uids(): readonly string[] {
    const { devices, claims, cpus, memory } = this.#options
    return [...new Set([devices, claims, cpus, memory].flatMap((each) => [...each.uids()]))]
  }
}

function rejectionOf(error: unknown): Rejection {
  if (error instanceof CpuRefusal) return { reason: error.reason, text: error.message }
  const text = `Allocate failed due to ${messageText(error)}, which is unexpected`
  return { reason: 'UnexpectedAdmissionError', text }
}

/** True if the requested amount of a container changes. */
function asksAnother(desired: Pod, granted: Pod, resource: string): boolean {
  const amounts = (pod: Pod): string =>
    JSON.stringify(
      containersOf(pod).map(({ resources }) =>
        quantityMilliValue(parseQuantity(resources?.requests?.[resource] ?? '0')),
      ),
    )
  return amounts(desired) !== amounts(granted)
}

/** Containers with allocations, in start order. */
const containersOf = ({ spec: { initContainers = [], containers } }: Pod): Container[] => [
  ...initContainers,
  ...containers,
]

/** The peak resources of a pod: containers and sidecars together, or an init container if it needs more. Pure. */
export function podAsOne(pod: Pod): Container {
  const { initContainers = [], containers } = pod.spec
  const amounts = (container: Container): Map<string, number> => {
    const limits = Object.entries(container.resources?.limits ?? {})
    const counted = limits.flatMap(([name, text]): [string, number][] =>
      /^\d+$/.test(text) ? [[name, Number(text)]] : [],
    )
    return new Map([...counted, ['cpu', exclusiveCpus(pod, container)], ...memoryRequest(pod, container)])
  }
  const add = (to: Map<string, number>, more: ReadonlyMap<string, number>): Map<string, number> => {
    const sums = new Map(to)
    for (const [name, count] of more) sums.set(name, (sums.get(name) ?? 0) + count)
    return sums
  }
  let kept = new Map<string, number>()
  let most = new Map<string, number>()
  const raiseTo = (sums: ReadonlyMap<string, number>): void => {
    for (const [name, count] of sums) most.set(name, Math.max(most.get(name) ?? 0, count))
  }
  for (const container of initContainers) {
    raiseTo(add(kept, amounts(container)))
    if (container.restartPolicy === 'Always') kept = add(kept, amounts(container))
  }
  raiseTo(containers.map(amounts).reduce(add, kept))
  most = new Map([...most].filter(([, count]) => count > 0))
  const limits = Object.fromEntries([...most].map(([name, count]) => [name, String(count)]))
  return { name: '', resources: { limits, requests: limits } }
}
