/**
 * Memory manager: with policy `Static`, guaranteed containers get memory of specific NUMA nodes, as few as possible.
 * Later containers reuse the memory of init containers.
 */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go/text.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { cpuSetText } from './cpu-topology.ts'
import type { Hint } from './hints.ts'
import type { MemoryNode } from './memory-nodes.ts'
import { memoryHints, type MemoryInput, type MemoryRequest, pickMemoryNodes } from './memory-picking.ts'
import { MEMORY_STATE, type MemoryState } from './memory-state.ts'
import {
  type Block,
  emptyMachine,
  isSameGroup,
  isSameMachine,
  type MachineState,
  MEMORY,
  type SystemReserved,
  withBlocks,
} from './memory-table.ts'
import { readState, type StateFile, writeState } from './state-file.ts'

export interface MemoryManagerOptions {
  /** `memory_manager_state`. */
  readonly path: string
  readonly policy: 'None' | 'Static'
  readonly nodes: readonly MemoryNode[]
  /** Reserved for the system: not allocated. */
  readonly reserved: SystemReserved
  readonly clock: Clock
  readonly meters: KubeletMeters
}

type AnyContainer = Container | EphemeralContainer

/** The memory allocated to a container, by type; empty: it may use any node. Pure. */
export function memoryRequest(pod: Pod, { resources }: AnyContainer): MemoryRequest {
  if (qosClassOf(pod) !== 'Guaranteed' || pod.spec.resources !== undefined) return new Map()
  const requested = Object.entries(resources?.requests ?? {}).filter(
    ([name]) => name === MEMORY || name.startsWith('hugepages-'),
  )
  const sorted = requested.toSorted(([a], [b]) => compareText(a, b))
  return new Map(sorted.map(([name, amount]) => [name, quantityValue(parseQuantity(amount))]))
}

/** The blocks of a pod, with memory reused by `container` removed from ended init containers. Pure. */
function withoutReused(
  pod: Pod,
  container: string,
  allocations: ReadonlyMap<string, readonly Block[]>,
): Map<string, readonly Block[]> {
  const left = (allocations.get(container) ?? []).map((block) => ({ block, size: block.size }))
  const next = new Map(allocations)
  for (const name of endedBefore(pod, container)) {
    const blocks = (allocations.get(name) ?? []).map((block) => {
      const user = left.find(({ block: own }) => isAlike(own, block))
      const reused = Math.min(user?.size ?? 0, block.size)
      if (user !== undefined) user.size -= reused
      return { ...block, size: block.size - reused }
    })
    if (blocks.length > 0) next.set(name, blocks)
  }
  return next
}

const isAlike = (a: Block, b: Block): boolean => a.type === b.type && isSameGroup(a.numaAffinity, b.numaAffinity)

/** Init containers that have ended when the container starts. */
function endedBefore({ spec: { initContainers = [] } }: Pod, container: string): string[] {
  const at = initContainers.findIndex(({ name }) => name === container)
  const before = at < 0 ? initContainers : initContainers.slice(0, at)
  return before.filter(({ restartPolicy }) => restartPolicy !== 'Always').map(({ name }) => name)
}

export class MemoryManager {
  readonly #options: MemoryManagerOptions
  readonly #file: StateFile<MemoryState>
  readonly #empty: MachineState
  /** By pod and container. */
  readonly #allocations = new Map<string, Map<string, readonly Block[]>>()

  constructor(options: MemoryManagerOptions) {
    this.#options = options
    this.#file = { path: options.path, form: MEMORY_STATE }
    this.#empty = options.policy === 'Static' ? emptyMachine(options.nodes, options.reserved) : {}
  }

  /** Rejects when the checkpoint does not match the machine or the policy. */
  async start(): Promise<void> {
    const state = await readState(this.#file, this.#options.policy)
    for (const [uid, containers] of Object.entries(state?.entries ?? {})) {
      this.#allocations.set(uid, new Map(Object.entries(containers)))
    }
    if (state !== undefined) this.#check(state)
    await this.#write()
  }

  #check({ machineState, entries = {} }: MemoryState): void {
    for (const [uid, containers] of Object.entries(entries)) {
      for (const [name, blocks] of Object.entries(containers)) {
        try {
          withBlocks(this.#empty, blocks)
        } catch (cause) {
          const why = `(pod: ${uid}, container: ${name}) ${(cause as Error).message}`
          throw new Error(`start memory manager error: [memorymanager] ${why}`, { cause })
        }
      }
    }
    if (isSameMachine(machineState, this.#machine)) return
    const why = '[memorymanager] the expected machine state is different from the real one'
    throw new Error(`start memory manager error: ${why}`)
  }

  get isStatic(): boolean {
    return this.#options.policy === 'Static'
  }

  get #machine(): MachineState {
    const containers = [...this.#allocations.values()].flatMap((ofPod) => [...ofPod.values()])
    return withBlocks(this.#empty, containers.flat())
  }

  #request(pod: Pod, container: AnyContainer): MemoryRequest {
    return this.isStatic ? memoryRequest(pod, container) : new Map()
  }

  #input(pod: Pod, container: AnyContainer, request: MemoryRequest): MemoryInput {
    const allocations = this.#allocations.get(pod.metadata.uid ?? '')
    const left = endedBefore(pod, container.name).flatMap((name) => allocations?.get(name) ?? [])
    const reusable = (nodes: readonly number[], type: string): number =>
      left
        .filter((block) => block.type === type && isSameGroup(block.numaAffinity, nodes))
        .reduce((sum, { size }) => sum + size, 0)
    return { machine: this.#machine, request, reusable }
  }

  /** Hints per memory type; undefined: no preference, or impossible, which is rejected later. */
  hints(pod: Pod, container: AnyContainer): (readonly Hint[] | undefined)[] {
    const request = this.#request(pod, container)
    if (request.size === 0) return []
    const allocations = this.blocksOf(pod.metadata.uid ?? '', container.name)
    if (allocations.length > 0) {
      const isSame =
        allocations.length === request.size && allocations.every(({ type, size }) => request.get(type) === size)
      return isSame ? allocations.map(({ numaAffinity }) => [{ nodes: numaAffinity, isPreferred: true }]) : [undefined]
    }
    const hints = memoryHints(this.#input(pod, container, request))
    return hints.length === 0 ? [undefined] : Array.from(request, () => hints)
  }

  /** `hint` is the merged hint of the container. Rejects with the reason of the rejection. */
  async allocate(pod: Pod, container: AnyContainer, hint: Hint): Promise<void> {
    const request = this.#request(pod, container)
    if (request.size === 0) return
    const { meters } = this.#options
    meters.family('kubelet_memory_manager_pinning_requests_total').labels().inc()
    const { uid = '' } = pod.metadata
    if (this.blocksOf(uid, container.name).length > 0) return
    await this.#pin(pod, container, { request, hint }).catch((error: unknown) => {
      meters.family('kubelet_memory_manager_pinning_errors_total').labels().inc()
      throw error
    })
  }

  async #pin(
    pod: Pod,
    container: AnyContainer,
    { request, hint }: { readonly request: MemoryRequest; readonly hint: Hint },
  ): Promise<void> {
    const { uid = '' } = pod.metadata
    const numaAffinity = pickMemoryNodes(this.#input(pod, container, request), hint)
    const blocks = Array.from(request, ([type, size]) => ({ numaAffinity, type, size }))
    const allocations = new Map(this.#allocations.get(uid)).set(container.name, blocks)
    this.#allocations.set(uid, withoutReused(pod, container.name, allocations))
    await this.#write()
  }

  /** Frees memory of ended init containers that was not reused, before the container starts. */
  async releaseInitMemory(pod: Pod, container: AnyContainer): Promise<void> {
    const allocations = this.#allocations.get(pod.metadata.uid ?? '')
    const freed = endedBefore(pod, container.name).filter((name) => allocations?.delete(name) === true)
    if (freed.length > 0) await this.#write()
  }

  /** By memory type. */
  blocksOf(uid: string, container: string): readonly Block[] {
    return this.#allocations.get(uid)?.get(container) ?? []
  }

  /** The memory nodes of the container, such as `0-1`; '' for any. */
  nodesOf(uid: string, container: string): string {
    return cpuSetText(new Set(this.blocksOf(uid, container).flatMap(({ numaAffinity }) => numaAffinity)))
  }

  /** Memory that can be allocated to pods, by node and type. */
  get allocatable(): readonly Block[] {
    return Object.entries(this.#empty).flatMap(([id, { memoryMap }]) =>
      Object.entries(memoryMap)
        .filter(([, { allocatable }]) => allocatable > 0)
        .map(([type, { allocatable: size }]) => ({ numaAffinity: [Number(id)], type, size })),
    )
  }

  uids(): readonly string[] {
    return [...this.#allocations.keys()]
  }

  async release(uid: string): Promise<void> {
    if (this.#allocations.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { policy: policyName, clock } = this.#options
    const entries = Object.fromEntries(
      Array.from(this.#allocations, ([uid, containers]) => [uid, Object.fromEntries(containers)]),
    )
    await clock.during(writeState(this.#file, { policyName, machineState: this.#machine, entries }))
  }
}
