/** Tracks which Services use topology hints, and the CPU share of each zone. */
import type { Node } from '#apis/core/v1.ts'
import type { Endpoint } from '#apis/discovery/v1.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'

import { ZONE_LABEL } from '../service-pods.ts'
import { hintEach, isOverloaded, type PlannedSlice, shareOut, type ZoneCounts, type ZoneShares } from './hints.ts'

const LEFT_OUT = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']
const NO_HINTS = hintEach(() => undefined)

/** One address family of one Service. */
export interface Share {
  readonly service: string
  readonly family: string
}

export class Topology {
  #shares: ZoneShares
  readonly #counts = new Map<string, Map<string, ZoneCounts>>()
  /** Services with an event that hints are enabled. */
  readonly #enabled = new Set<string>()
  /** The messages already recorded for Services without hints. */
  readonly #recordedMessages = new Map<string, Set<string>>()

  constructor(nodes: Iterable<Node>) {
    this.#shares = sharesOf(nodes)
  }

  /** Returns the Services that became overloaded. */
  setNodes(nodes: Iterable<Node>): string[] {
    this.#shares = sharesOf(nodes)
    const isWrong = (families: ReadonlyMap<string, ZoneCounts>): boolean =>
      [...families.values()].some((counts) => isOverloaded(counts, this.#shares))
    return [...this.#counts].filter(([, families]) => isWrong(families)).map(([service]) => service)
  }

  /** Slices with hints, or without if they are impossible, and the event to record. */
  hint(
    share: Share,
    slices: readonly PlannedSlice[],
  ): { readonly slices: readonly (readonly Endpoint[])[]; readonly note?: EventNote } {
    const shared = shareOut(slices, this.#shares)
    const { service, family } = share
    const messages = this.#recordedMessages.get(service) ?? new Set<string>()
    this.#recordedMessages.delete(service)
    if ('problem' in shared) {
      const note = noteOf('Disabled', shared.problem, family)
      // Records when slices change, or for a new message.
      const isRecorded = slices.some(({ isChanged }) => isChanged) || !messages.has(note.message)
      this.forget(share)
      this.#recordedMessages.set(service, messages.add(note.message))
      return { slices: NO_HINTS(slices), ...(isRecorded && { note }) }
    }
    const families = this.#counts.get(service) ?? new Map<string, ZoneCounts>()
    this.#counts.set(service, families.set(family, shared.counts))
    if (this.#enabled.has(service)) return shared
    this.#enabled.add(service)
    return { ...shared, note: noteOf('Enabled', 'Topology Aware Hints has been enabled', family) }
  }

  /** For a Service that no longer wants hints: the event, if it had them. */
  withdraw(share: Share): EventNote | undefined {
    const note = this.#enabled.has(share.service)
      ? noteOf('Disabled', 'Topology Aware Hints has been disabled', share.family)
      : undefined
    this.forget(share)
    return note
  }

  /** All families if none is given. */
  forget({ service, family }: { readonly service: string; readonly family?: string }): void {
    this.#enabled.delete(service)
    this.#recordedMessages.delete(service)
    const families = this.#counts.get(service)
    if (family === undefined || (families?.delete(family) === true && families.size === 0)) this.#counts.delete(service)
  }
}

function noteOf(what: 'Enabled' | 'Disabled', text: string, family: string): EventNote {
  const type = what === 'Enabled' ? 'Normal' : 'Warning'
  return { type, reason: `TopologyAwareHints${what}`, message: `${text}, addressType: ${family}` }
}

export function isNodeReady({ status }: Node): boolean {
  return status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
}

/** Undefined if a node lacks zone or CPU, or if there are fewer than two zones. */
function sharesOf(nodes: Iterable<Node>): ZoneShares {
  const cpus = new Map<string, number>()
  for (const node of nodes) {
    const { labels = {} } = node.metadata
    if (LEFT_OUT.some((label) => label in labels) || !isNodeReady(node)) continue
    const cpu = quantityMilliValue(parseQuantity(node.status.allocatable?.['cpu'] ?? '0'))
    const { [ZONE_LABEL]: zone = '' } = labels
    if (zone === '' || cpu === 0) return undefined
    cpus.set(zone, (cpus.get(zone) ?? 0) + cpu)
  }
  const total = [...cpus.values()].reduce((sum, cpu) => sum + cpu, 0)
  return cpus.size < 2 ? undefined : new Map(Array.from(cpus, ([zone, cpu]) => [zone, cpu / total]))
}
