/** What a node sets aside for its pods, from all who have something to give. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'

import type { Rejection } from '../admission-rules.ts'
import { messageText } from '../cri/call-text.ts'
import type { DeviceManager } from '../devices/device-manager.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { ClaimManager } from '../resource-claims/claim-manager.ts'
import { type CpuManager, CpuRefusal, exclusiveCpus } from '../topology/cpu-manager.ts'
import { type Decision, decide, type TopologyPolicy } from '../topology/hints.ts'
import { Turns } from '../volumes/turns.ts'
import { type ContainerGrant, mergeGrants, NO_GRANT, type PodGrants } from './container-grant.ts'

export interface NodeGrantsOptions {
  readonly devices: DeviceManager
  readonly claims: ClaimManager
  readonly cpus: CpuManager
  readonly policy: TopologyPolicy
  /** Of what all that is near to each other is to be. */
  readonly scope: 'container' | 'pod'
  /** Nodes of memory of the machine. */
  readonly nodes: readonly number[]
  readonly clock: Clock
  readonly meters: KubeletMeters
}

/** Pods are admitted one after the other: none sees what another is about to get. */
const ADMISSION = 'admission'

const TOPOLOGY: Rejection = {
  reason: 'TopologyAffinityError',
  text: 'Resources cannot be allocated with Topology locality',
}

export class NodeGrants implements PodGrants {
  readonly #options: NodeGrantsOptions
  readonly #turns = new Turns()

  constructor(options: NodeGrantsOptions) {
    this.#options = options
  }

  admit(pod: Pod): Promise<Rejection | undefined> {
    const { policy, clock, meters } = this.#options
    return this.#turns.take(ADMISSION, async () => {
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
    const { devices, cpus, scope } = this.#options
    const whole = scope === 'pod' ? this.#decide(pod, podAsOne(pod)) : undefined
    for (const container of containersOf(pod)) {
      const { nodes, isAdmitted } = whole ?? this.#decide(pod, container)
      if (!isAdmitted) return TOPOLOGY
      await cpus.allocate(pod, container, nodes)
      await devices.allocate(pod, container, nodes)
    }
    return undefined
  }

  #decide(pod: Pod, container: Container): Decision {
    const { devices, cpus, policy, nodes } = this.#options
    if (policy === 'none') return { nodes: undefined, isAdmitted: true }
    return decide(policy, nodes, [cpus.hints(pod, container), ...devices.hints(pod, container, nodes)])
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

  async grantOf(pod: Pod, container: Container | EphemeralContainer): Promise<ContainerGrant> {
    const { devices, claims, cpus } = this.#options
    const own = {
      ...NO_GRANT,
      cdiDevices: claims.cdiDevicesOf(pod, container),
      cpus: cpus.cpusOf(pod.metadata.uid ?? '', container.name),
    }
    return mergeGrants([await devices.grantOf(pod, container), own])
  }

  async release(uid: string): Promise<void> {
    await this.#setFree(uid)
    await this.#countClaims('UnprepareResources', () => this.#options.claims.release(uid))
  }

  async #setFree(uid: string): Promise<void> {
    const { devices, cpus } = this.#options
    await cpus.release(uid)
    await devices.release(uid)
  }

  uids(): readonly string[] {
    const { devices, claims, cpus } = this.#options
    return [...new Set([...devices.uids(), ...claims.uids(), ...cpus.uids()])]
  }
}

function rejectionOf(error: unknown): Rejection {
  if (error instanceof CpuRefusal) return { reason: error.reason, text: error.message }
  const text = `Allocate failed due to ${messageText(error)}, which is unexpected`
  return { reason: 'UnexpectedAdmissionError', text }
}

/** Those that are given something, in the order in which they start. */
const containersOf = ({ spec: { initContainers = [], containers } }: Pod): Container[] => [
  ...initContainers,
  ...containers,
]

/** All that a pod needs at once: its containers and sidecars together, or more while it is initialised. Pure. */
export function podAsOne(pod: Pod): Container {
  const { initContainers = [], containers } = pod.spec
  const amounts = (container: Container): Map<string, number> => {
    const limits = Object.entries(container.resources?.limits ?? {})
    const counted = limits.flatMap(([name, text]): [string, number][] =>
      /^\d+$/.test(text) ? [[name, Number(text)]] : [],
    )
    return new Map([...counted, ['cpu', exclusiveCpus(pod, container)]])
  }
  const add = (to: Map<string, number>, more: ReadonlyMap<string, number>): Map<string, number> => {
    const sums = new Map(to)
    for (const [name, count] of more) sums.set(name, (sums.get(name) ?? 0) + count)
    return sums
  }
  let kept = new Map<string, number>()
  let most = new Map<string, number>()
  const note = (sums: ReadonlyMap<string, number>): void => {
    for (const [name, count] of sums) most.set(name, Math.max(most.get(name) ?? 0, count))
  }
  for (const container of initContainers) {
    note(add(kept, amounts(container)))
    if (container.restartPolicy === 'Always') kept = add(kept, amounts(container))
  }
  note(containers.map(amounts).reduce(add, kept))
  most = new Map([...most].filter(([, count]) => count > 0))
  const limits = Object.fromEntries([...most].map(([name, count]) => [name, String(count)]))
  return { name: '', resources: { limits, requests: limits } }
}
