/**
 * Processors for one container alone (policy `static`): those of guaranteed pods that ask for whole ones. All others share what
 * is left, and are told so when it changes.
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
  /** For the machine: nobody has these alone. */
  readonly reserved: ReadonlySet<number>
  /** Only whole cores are given. */
  readonly isFullCoresOnly: boolean
  /** Not even shared. */
  readonly isStrict: boolean
  readonly clock: Clock
  readonly meters: KubeletMeters
}

/** Why a pod is refused, when it is not for a lack of processors. */
export class CpuRefusal extends Error {
  override readonly name = 'CpuRefusal'
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

type SomeContainer = Container | EphemeralContainer

/** How many a container gets for its own; 0: it shares. Pure. */
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
  readonly #held = new Map<string, Map<string, ReadonlySet<number>>>()

  constructor(options: CpuManagerOptions) {
    this.#options = options
    this.#file = { path: options.path, form: CPU_STATE }
  }

  /** Rejects when what is on the disk does not fit the machine or the policy. */
  async start(): Promise<void> {
    const { policy, cpus } = this.#options
    const state = await readState(this.#file, policy)
    const known = new Set(cpus.map(({ id }) => id))
    for (const [uid, containers] of Object.entries(state?.entries ?? {})) {
      const sets = Object.entries(containers).map(([name, text]) => [name, new Set(cpuIds(text))] as const)
      if (sets.some(([, set]) => ![...set].every((id) => known.has(id)))) {
        throw restoreError(this.#file, 'it names CPUs that are not there')
      }
      this.#held.set(uid, new Map(sets))
    }
    await this.#write()
    if (this.isStatic) this.#tell()
  }

  /** What is counted of it at any time. */
  #tell(): void {
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

  /** What all share who have none of their own. */
  get shared(): ReadonlySet<number> {
    const { cpus, isStrict, reserved } = this.#options
    const taken = this.#taken
    return new Set(cpus.map(({ id }) => id).filter((id) => !taken.has(id) && !(isStrict && reserved.has(id))))
  }

  get #taken(): ReadonlySet<number> {
    return new Set(
      [...this.#held.values()].flatMap((containers) => [...containers.values()].flatMap((set) => [...set])),
    )
  }

  get #available(): ReadonlySet<number> {
    return new Set([...this.shared].filter((id) => !this.#options.reserved.has(id)))
  }

  /** Those that can be given to pods at all. */
  get allocatable(): readonly number[] {
    if (!this.isStatic) return []
    return this.#options.cpus.map(({ id }) => id).filter((id) => !this.#options.reserved.has(id))
  }

  heldBy(uid: string, container: string): ReadonlySet<number> | undefined {
    return this.#held.get(uid)?.get(container)
  }

  /** It has some for its own; without a container: one of the pod's has. */
  hasOwn(uid: string, container?: string): boolean {
    const held = this.#held.get(uid)
    return container === undefined ? held !== undefined : held?.has(container) === true
  }

  uids(): readonly string[] {
    return [...this.#held.keys()]
  }

  /** Undefined: it does not matter where. */
  hints(pod: Pod, container: SomeContainer): readonly Hint[] | undefined {
    const count = this.isStatic ? exclusiveCpus(pod, container) : 0
    if (count === 0) return undefined
    const { cpus } = this.#options
    const held = this.heldBy(pod.metadata.uid ?? '', container.name)
    if (held !== undefined && held.size !== count) return []
    const reusable = this.#reusable(pod, container.name)
    const placesOf = (ids: ReadonlySet<number>): number[][] =>
      cpus.filter(({ id }) => ids.has(id)).map(({ node }) => [node])
    return hintsFor({
      nodes: [...new Set(cpus.map(({ node }) => node))].sort((a, b) => a - b),
      count,
      all: cpus.map(({ node }) => [node]),
      available: placesOf(held ?? this.#available),
      reusable: placesOf(held === undefined ? reusable : new Set()),
    })
  }

  /** Rejects with what the pod is refused for. */
  async allocate(pod: Pod, container: SomeContainer, nodes: readonly number[] | undefined): Promise<void> {
    const { uid = '' } = pod.metadata
    const count = this.isStatic ? exclusiveCpus(pod, container) : 0
    if (count === 0 || this.heldBy(uid, container.name) !== undefined) return
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
    const ofPod = this.#held.get(uid) ?? new Map<string, ReadonlySet<number>>()
    this.#held.set(uid, ofPod.set(container.name, new Set([...first, ...rest])))
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

  /** Those of init containers that come before it and end. */
  #reusable({ spec, metadata: { uid = '' } }: Pod, container: string): Set<number> {
    const { initContainers = [], containers } = spec
    const free = new Set<number>()
    for (const each of [...initContainers, ...containers]) {
      if (each.name === container) break
      const ends = initContainers.includes(each) && each.restartPolicy !== 'Always'
      for (const id of this.heldBy(uid, each.name) ?? []) {
        if (ends) free.add(id)
        else free.delete(id)
      }
    }
    return free
  }

  /** For the container as it is now; '': it may run anywhere. */
  cpusOf(uid: string, container: string): string {
    if (!this.isStatic) return ''
    return cpuSetText(this.heldBy(uid, container) ?? this.shared)
  }

  async release(uid: string): Promise<void> {
    if (this.#held.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { policy, clock } = this.#options
    const entries = Object.fromEntries(
      Array.from(this.#held, ([uid, containers]) => [
        uid,
        Object.fromEntries(Array.from(containers, ([name, set]) => [name, cpuSetText(set)])),
      ]),
    )
    const defaultCpuSet = this.isStatic ? cpuSetText(this.shared) : ''
    await clock.during(writeState(this.#file, { policyName: policy, defaultCpuSet, entries }))
  }
}
