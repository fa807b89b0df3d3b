/**
 * CPU manager: with policy `static`, containers of guaranteed pods that request whole CPUs get exclusive CPUs. All
 * other containers share the remaining CPUs.
 */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { pickCpus } from './cpu-picking.ts'
import { CPU_STATE, type CpuState } from './cpu-state.ts'
import { type Cpu, cpuIds, cpuSetText } from './cpu-topology.ts'
import { type Hint, hintsFor } from './hints.ts'
import { readState, restoreError, type StateFile, writeState } from './state-file.ts'

export interface CpuManagerOptions {
  /** `cpu_manager_state`. */
  readonly path: string
  readonly policy: 'none' | 'static'
  readonly cpus: readonly Cpu[]
  /** Reserved for the system: never exclusive. */
  readonly reserved: ReadonlySet<number>
  /** Allocate whole cores only (`full-pcpus-only`). */
  readonly isFullCoresOnly: boolean
  /** Reserved CPUs are not even shared (`strict-cpu-reservation`). */
  readonly isStrict: boolean
  readonly clock: Clock
  readonly meters: KubeletMeters
}

/** A rejection with its own reason. */
export class CpuRefusal extends Error {
  override readonly name = 'CpuRefusal'
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

type SomeContainer = Container | EphemeralContainer

/** The number of exclusive CPUs of a container; 0: it uses the shared pool. Pure. */
export function exclusiveCpus(pod: Pod, { resources }: SomeContainer): number {
  if (qosClassOf(pod) !== 'Guaranteed' || pod.spec.resources !== undefined) return 0
  const { cpu } = resources?.requests ?? {}
  if (cpu === undefined) return 0
  const quantity = parseQuantity(cpu)
  const whole = quantityValue(quantity)
  return whole * 1000 === quantityMilliValue(quantity) ? whole : 0
}

export class CpuManager {
  readonly #options: CpuManagerOptions
  readonly #file: StateFile<CpuState>
  /** By pod and container. */
  readonly #allocations = new Map<string, Map<string, ReadonlySet<number>>>()

  constructor(options: CpuManagerOptions) {
    this.#options = options
    this.#file = { path: options.path, form: CPU_STATE }
  }

  /** Rejects when the checkpoint does not match the machine or the policy. */
  async start(): Promise<void> {
    const { policy, cpus } = this.#options
    const state = await readState(this.#file, policy)
    const known = new Set(cpus.map(({ id }) => id))
    for (const [uid, containers] of Object.entries(state?.entries ?? {})) {
      const sets = Object.entries(containers).map(([name, text]) => [name, new Set(cpuIds(text))] as const)
      if (sets.some(([, set]) => ![...set].every((id) => known.has(id)))) {
        throw restoreError(this.#file, 'it contains CPUs that do not exist')
      }
      this.#allocations.set(uid, new Map(sets))
    }
    await this.#write()
    if (this.isStatic) this.#registerMetrics()
  }

  /** Registers the metrics. */
  #registerMetrics(): void {
    const { meters, cpus } = this.#options
    meters.collect('kubelet_cpu_manager_shared_pool_size_millicores', (emit) => emit(this.shared.size * 1000))
    meters.collect('kubelet_cpu_manager_exclusive_cpu_allocation_count', (emit) => emit(this.#taken.size))
    meters.collect('kubelet_cpu_manager_allocation_per_numa', (emit) => {
      const taken = this.#taken
      const nodes = Map.groupBy(cpus, ({ node }) => node)
      for (const [node, own] of nodes) emit(own.filter(({ id }) => taken.has(id)).length, String(node))
    })
  }

  get isStatic(): boolean {
    return this.#options.policy === 'static'
  }

  /** The shared pool. */
  get shared(): ReadonlySet<number> {
    const { cpus, isStrict, reserved } = this.#options
    const taken = this.#taken
    return new Set(cpus.map(({ id }) => id).filter((id) => !taken.has(id) && !(isStrict && reserved.has(id))))
  }

  get #taken(): ReadonlySet<number> {
    return new Set(
      [...this.#allocations.values()].flatMap((containers) => [...containers.values()].flatMap((set) => [...set])),
    )
  }

  get #available(): ReadonlySet<number> {
    return new Set([...this.shared].filter((id) => !this.#options.reserved.has(id)))
  }

  /** CPUs that can be allocated to pods. */
  get allocatable(): readonly number[] {
    if (!this.isStatic) return []
    return this.#options.cpus.map(({ id }) => id).filter((id) => !this.#options.reserved.has(id))
  }

  exclusiveCpusOf(uid: string, container: string): ReadonlySet<number> | undefined {
    return this.#allocations.get(uid)?.get(container)
  }

  /** True if it has exclusive CPUs; without `container`: if any container of the pod has. */
  hasExclusive(uid: string, container?: string): boolean {
    const allocations = this.#allocations.get(uid)
    return container === undefined ? allocations !== undefined : allocations?.has(container) === true
  }

  uids(): readonly string[] {
    return [...this.#allocations.keys()]
  }

  /** Undefined: no preference. */
  hints(pod: Pod, container: SomeContainer): readonly Hint[] | undefined {
    const count = this.isStatic ? exclusiveCpus(pod, container) : 0
    if (count === 0) return undefined
    const { cpus } = this.#options
    const allocations = this.exclusiveCpusOf(pod.metadata.uid ?? '', container.name)
    if (allocations !== undefined && allocations.size !== count) return []
    const reusable = this.#reusable(pod, container.name)
    const nodesOfUnits = (ids: ReadonlySet<number>): number[][] =>
      cpus.filter(({ id }) => ids.has(id)).map(({ node }) => [node])
    return hintsFor({
      nodes: [...new Set(cpus.map(({ node }) => node))].sort((a, b) => a - b),
      count,
      all: cpus.map(({ node }) => [node]),
      available: nodesOfUnits(allocations ?? this.#available),
      reusable: nodesOfUnits(allocations === undefined ? reusable : new Set()),
    })
  }

  /** Rejects with the reason of the rejection. */
  async allocate(pod: Pod, container: SomeContainer, nodes: readonly number[] | undefined): Promise<void> {
    const { uid = '' } = pod.metadata
    const count = this.isStatic ? exclusiveCpus(pod, container) : 0
    if (count === 0 || this.exclusiveCpusOf(uid, container.name) !== undefined) return
    const { meters } = this.#options
    meters.family('kubelet_cpu_manager_pinning_requests_total').labels().inc()
    await this.#pin(pod, container, { count, nodes }).catch((error: unknown) => {
      meters.family('kubelet_cpu_manager_pinning_errors_total').labels().inc()
      throw error
    })
  }

  async #pin(
    pod: Pod,
    container: SomeContainer,
    { count, nodes }: { readonly count: number; readonly nodes: readonly number[] | undefined },
  ): Promise<void> {
    const { uid = '' } = pod.metadata
    this.#checkCores(count)
    const { cpus } = this.#options
    const available = new Set([...this.#available, ...this.#reusable(pod, container.name)])
    const near = new Set(cpus.filter(({ id, node }) => available.has(id) && nodes?.includes(node)).map(({ id }) => id))
    const first = pickCpus(cpus, near, Math.min(count, near.size))
    const others = new Set([...available].filter((id) => !first.has(id)))
    const rest = pickCpus(cpus, others, count - first.size)
    const ofPod = this.#allocations.get(uid) ?? new Map<string, ReadonlySet<number>>()
    this.#allocations.set(uid, ofPod.set(container.name, new Set([...first, ...rest])))
    await this.#write()
  }

  #checkCores(count: number): void {
    const { cpus, isFullCoresOnly, reserved } = this.#options
    if (!isFullCoresOnly) return
    const perCore = Math.max(1, Math.trunc(cpus.length / new Set(cpus.map(({ core }) => core)).size))
    const why = (text: string): CpuRefusal => new CpuRefusal('SMTAlignmentError', `SMT Alignment Error: ${text}`)
    if (count % perCore !== 0) throw why(`requested ${count} cpus not multiple cpus per core = ${perCore}`)
    const kept = new Set(cpus.filter(({ id }) => reserved.has(id)).map(({ core }) => core))
    const free = this.shared
    const whole = cpus.filter(({ id, core }) => free.has(id) && !kept.has(core)).length
    if (count > whole) {
      throw why(
        `not enough free physical CPUs: available physical CPUs = ${whole}, requested CPUs = ${count}, CPUs per core = ${perCore}`,
      )
    }
  }

  /** CPUs of earlier init containers that will have ended. */
  #reusable({ spec, metadata: { uid = '' } }: Pod, container: string): Set<number> {
    const { initContainers = [], containers } = spec
    const free = new Set<number>()
    for (const each of [...initContainers, ...containers]) {
      if (each.name === container) break
      const ends = initContainers.includes(each) && each.restartPolicy !== 'Always'
      for (const id of this.exclusiveCpusOf(uid, each.name) ?? []) {
        if (ends) free.add(id)
        else free.delete(id)
      }
    }
    return free
  }

  /** The present cpuset of the container; '' for any CPU. */
  cpusOf(uid: string, container: string): string {
    if (!this.isStatic) return ''
    return cpuSetText(this.exclusiveCpusOf(uid, container) ?? this.shared)
  }

  async release(uid: string): Promise<void> {
    if (this.#allocations.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { policy, clock } = this.#options
    const entries = Object.fromEntries(
      Array.from(this.#allocations, ([uid, containers]) => [
        uid,
        Object.fromEntries(Array.from(containers, ([name, set]) => [name, cpuSetText(set)])),
      ]),
    )
    const defaultCpuSet = this.isStatic ? cpuSetText(this.shared) : ''
    await clock.during(writeState(this.#file, { policyName: policy, defaultCpuSet, entries }))
  }
}
