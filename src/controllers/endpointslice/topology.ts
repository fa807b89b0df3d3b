/** What Services have got of the zones that their endpoints are shared out among, and what there is of zones. */
import type { Node } from '#apis/core/v1.ts'
import type { Endpoint } from '#apis/discovery/v1.ts'
import type { EventNote } from '#client/event-recorder.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'

import { ZONE_LABEL } from '../service-pods.ts'
import { type Filled, hintEach, isOverloaded, shareOut, type ZoneCounts, type ZoneShares } from './hints.ts'

const LEFT_OUT = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']
const NO_HINTS = hintEach(() => undefined)

/** One family of addresses of one Service. */
export interface Share {
  readonly service: string
  readonly family: string
}

export class Topology {
  #shares: ZoneShares
  readonly #counts = new Map<string, Map<string, ZoneCounts>>()
  /** Services that were told that they have hints. */
  readonly #enabled = new Set<string>()
  /** What Services without hints were told about that. */
  readonly #told = new Map<string, Set<string>>()

  constructor(nodes: Iterable<Node>) {
    this.#shares = sharesOf(nodes)
  }

  /** The Services for which things are not right any more. */
  setNodes(nodes: Iterable<Node>): string[] {
    this.#shares = sharesOf(nodes)
    const isWrong = (families: ReadonlyMap<string, ZoneCounts>): boolean =>
      [...families.values()].some((counts) => isOverloaded(counts, this.#shares))
    return [...this.#counts].filter(([, families]) => isWrong(families)).map(([service]) => service)
  }

  /** Slices with hints, or with none where they cannot be; and what is to be told of it. */
  hint(
    share: Share,
    slices: readonly Filled[],
  ): { readonly slices: readonly (readonly Endpoint[])[]; readonly note?: EventNote } {
    const shared = shareOut(slices, this.#shares)
    const { service, family } = share
    const told = this.#told.get(service) ?? new Set<string>()
    this.#told.delete(service)
    if ('problem' in shared) {
      const note = noteOf('Disabled', shared.problem, family)
      // Whenever something changes, but not because of what was written here.
      const isNews = slices.some(({ isChanged }) => isChanged) || !told.has(note.message)
      this.forget(share)
      this.#told.set(service, told.add(note.message))
      return { slices: NO_HINTS(slices), ...(isNews && { note }) }
    }
    const families = this.#counts.get(service) ?? new Map<string, ZoneCounts>()
    this.#counts.set(service, families.set(family, shared.counts))
    if (this.#enabled.has(service)) return shared
    this.#enabled.add(service)
    return { ...shared, note: noteOf('Enabled', 'Topology Aware Hints has been enabled', family) }
  }

  /** For a Service that does not want them: what is to be told if it did before. */
  withdraw(share: Share): EventNote | undefined {
    const note = this.#enabled.has(share.service)
      ? noteOf('Disabled', 'Topology Aware Hints has been disabled', share.family)
      : undefined
    this.forget(share)
    return note
  }

  /** Of all families, when none is named. */
  forget({ service, family }: { readonly service: string; readonly family?: string }): void {
    this.#enabled.delete(service)
    this.#told.delete(service)
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

/** Nothing, if it cannot be said of a node, or if there are not at least two zones. */
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
