/**
 * Memory of certain nodes for guaranteed containers (policy `Static`): what each asks for is set aside, of as few nodes as will do, and
 * its pages come from there alone. What init containers leave is used by those after them.
 */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go-text.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { cpuSetText } from './cpu-topology.ts'
import type { Hint } from './hints.ts'
import type { MemoryNode } from './memory-nodes.ts'
import { type MemoryAsk, memoryHints, type MemoryQuestion, pickMemoryNodes } from './memory-picking.ts'
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
  /** For the machine: nobody is given it. */
  readonly reserved: SystemReserved
  readonly clock: Clock
  readonly meters: KubeletMeters
}

type SomeContainer = Container | EphemeralContainer

/** What a container asks for that is set aside for it; nothing: it takes memory wherever there is some. Pure. */
export function memoryAsk(pod: Pod, { resources }: SomeContainer): MemoryAsk {
  if (qosClassOf(pod) !== 'Guaranteed' || pod.spec.resources !== undefined) return new Map()
  const asked = Object.entries(resources?.requests ?? {}).filter(
    ([name]) => name === MEMORY || name.startsWith('hugepages-'),
  )
  const sorted = asked.toSorted(([a], [b]) => compareText(a, b))
  return new Map(sorted.map(([name, amount]) => [name, quantityValue(parseQuantity(amount))]))
}

/** What of a pod's blocks is another's once init containers have ended that came before it: what it gets comes off theirs. Pure. */
function withoutReused(
  pod: Pod,
  container: string,
  held: ReadonlyMap<string, readonly Block[]>,
): Map<string, readonly Block[]> {
  const left = (held.get(container) ?? []).map((block) => ({ block, size: block.size }))
  const next = new Map(held)
  for (const name of endedBefore(pod, container)) {
    const blocks = (held.get(name) ?? []).map((block) => {
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

/** Init containers that have ended when that one starts. */
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
  readonly #held = new Map<string, Map<string, readonly Block[]>>()

  constructor(options: MemoryManagerOptions) {
    this.#options = options
    this.#file = { path: options.path, form: MEMORY_STATE }
    this.#empty = options.policy === 'Static' ? emptyMachine(options.nodes, options.reserved) : {}
  }

  /** Rejects when what is on the disk does not fit the machine or the policy. */
  async start(): Promise<void> {
    const state = await readState(this.#file, this.#options.policy)
    for (const [uid, containers] of Object.entries(state?.entries ?? {})) {
      this.#held.set(uid, new Map(Object.entries(containers)))
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
    const containers = [...this.#held.values()].flatMap((ofPod) => [...ofPod.values()])
    return withBlocks(this.#empty, containers.flat())
  }

  #ask(pod: Pod, container: SomeContainer): MemoryAsk {
    return this.isStatic ? memoryAsk(pod, container) : new Map()
  }

  #question(pod: Pod, container: SomeContainer, ask: MemoryAsk): MemoryQuestion {
    const held = this.#held.get(pod.metadata.uid ?? '')
    const left = endedBefore(pod, container.name).flatMap((name) => held?.get(name) ?? [])
    const reusable = (nodes: readonly number[], type: string): number =>
      left
        .filter((block) => block.type === type && isSameGroup(block.numaAffinity, nodes))
        .reduce((sum, { size }) => sum + size, 0)
    return { machine: this.#machine, ask, reusable }
  }

  /** Of each kind of memory that it asks for; undefined: it does not matter where, or there is nowhere and the pod is refused later. */
  hints(pod: Pod, container: SomeContainer): (readonly Hint[] | undefined)[] {
    const ask = this.#ask(pod, container)
    if (ask.size === 0) return []
    const held = this.blocksOf(pod.metadata.uid ?? '', container.name)
    if (held.length > 0) {
      const isSame = held.length === ask.size && held.every(({ type, size }) => ask.get(type) === size)
      return isSame ? held.map(({ numaAffinity }) => [{ nodes: numaAffinity, isPreferred: true }]) : [undefined]
    }
    const hints = memoryHints(this.#question(pod, container, ask))
    return hints.length === 0 ? [undefined] : Array.from(ask, () => hints)
  }

  /** `wish`: of all that the container is given, together. Rejects with what the pod is refused for. */
  async allocate(pod: Pod, container: SomeContainer, wish: Hint): Promise<void> {
    const ask = this.#ask(pod, container)
    if (ask.size === 0) return
    const { meters } = this.#options
    meters.family('kubelet_memory_manager_pinning_requests_total').labels().inc()
    const { uid = '' } = pod.metadata
    if (this.blocksOf(uid, container.name).length > 0) return
    await this.#pin(pod, container, { ask, wish }).catch((error: unknown) => {
      meters.family('kubelet_memory_manager_pinning_errors_total').labels().inc()
      throw error
    })
  }

  async #pin(
    pod: Pod,
    container: SomeContainer,
    { ask, wish }: { readonly ask: MemoryAsk; readonly wish: Hint },
  ): Promise<void> {
    const { uid = '' } = pod.metadata
    const numaAffinity = pickMemoryNodes(this.#question(pod, container, ask), wish)
    const blocks = Array.from(ask, ([type, size]) => ({ numaAffinity, type, size }))
    const held = new Map(this.#held.get(uid)).set(container.name, blocks)
    this.#held.set(uid, withoutReused(pod, container.name, held))
    await this.#write()
  }

  /** It is about to run: what init containers before it had and nobody took over is free. */
  async leaveTo(pod: Pod, container: SomeContainer): Promise<void> {
    const held = this.#held.get(pod.metadata.uid ?? '')
    const freed = endedBefore(pod, container.name).filter((name) => held?.delete(name) === true)
    if (freed.length > 0) await this.#write()
  }

  /** By kind of memory. */
  blocksOf(uid: string, container: string): readonly Block[] {
    return this.#held.get(uid)?.get(container) ?? []
  }

  /** Nodes from which the container has its memory, `0-1`; '': any. */
  nodesOf(uid: string, container: string): string {
    return cpuSetText(new Set(this.blocksOf(uid, container).flatMap(({ numaAffinity }) => numaAffinity)))
  }

  /** What can be given to pods at all, by node and kind. */
  get allocatable(): readonly Block[] {
    return Object.entries(this.#empty).flatMap(([id, { memoryMap }]) =>
      Object.entries(memoryMap)
        .filter(([, { allocatable }]) => allocatable > 0)
        .map(([type, { allocatable: size }]) => ({ numaAffinity: [Number(id)], type, size })),
    )
  }

  uids(): readonly string[] {
    return [...this.#held.keys()]
  }

  async release(uid: string): Promise<void> {
    if (this.#held.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { policy: policyName, clock } = this.#options
    const entries = Object.fromEntries(
      Array.from(this.#held, ([uid, containers]) => [uid, Object.fromEntries(containers)]),
    )
    await clock.during(writeState(this.#file, { policyName, machineState: this.#machine, entries }))
  }
}
