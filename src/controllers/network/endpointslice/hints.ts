/**
 * Computes topology hints. Each endpoint serves its own zone or node, or zones get endpoints in proportion to their
 * CPUs, with at most 20 % overload. Pure.
 */
import type { Endpoint } from '#apis/discovery/v1.ts'
import { semanticEqual } from '#meta/object.ts'

/** A planned slice without its hints. */
export interface PlannedSlice {
  readonly endpoints: readonly Endpoint[]
  /** Whether the slice is written anyway. */
  readonly isChanged: boolean
}

/** Returns the endpoints of each slice with hints; the input array if the slice is unchanged. */
export type HintFunction = (slices: readonly PlannedSlice[]) => readonly (readonly Endpoint[])[]

type Hints = Endpoint['hints']

const isReady = ({ conditions }: Endpoint): boolean => conditions?.ready === true

export function hintEach(hintsOf: (endpoint: Endpoint) => Hints): HintFunction {
  return (slices) => slices.map(({ endpoints }) => hinted(endpoints, hintsOf))
}

function hinted(endpoints: readonly Endpoint[], hintsOf: (endpoint: Endpoint) => Hints): readonly Endpoint[] {
  const all = endpoints.map((endpoint) => [endpoint, hintsOf(endpoint)] as const)
  if (all.every(([{ hints }, wanted]) => semanticEqual(hints, wanted))) return endpoints
  return all.map(([endpoint, hints]) => {
    const { hints: _former, ...rest } = endpoint
    return hints === undefined ? rest : { ...rest, hints }
  })
}

/** Hints for `spec.trafficDistribution` of a Service. */
export function hintsNearby(distribution: string | undefined): (endpoint: Endpoint) => Hints {
  const isSameNode = distribution === 'PreferSameNode'
  const isNearby = isSameNode || distribution === 'PreferClose' || distribution === 'PreferSameZone'
  return (endpoint) => {
    const { zone, nodeName } = endpoint
    const hints = {
      ...(zone !== undefined && { forZones: [{ name: zone }] }),
      ...(isSameNode && nodeName !== undefined && { forNodes: [{ name: nodeName }] }),
    }
    return isNearby && isReady(endpoint) && Object.keys(hints).length > 0 ? hints : undefined
  }
}

/** The CPU share of each zone; undefined if the nodes do not allow a computation. */
export type ZoneShares = ReadonlyMap<string, number> | undefined
/** The number of endpoints for each zone. */
export type ZoneCounts = ReadonlyMap<string, number>

export type Sharing =
  | { readonly slices: readonly (readonly Endpoint[])[]; readonly counts: ZoneCounts }
  /** Why there are no hints. */
  | { readonly problem: string }

/** An endpoint gets at most 20 % more than its share. */
const FLOOR = 1 / (1 + 0.2)

interface ZoneAllocation {
  readonly minimum: number
  readonly maximum: number
  readonly desired: number
}

/** Allocates ready endpoints to zones. Slices with valid hints stay unchanged. */
export function shareOut(slices: readonly PlannedSlice[], shares: ZoneShares): Sharing {
  const total = slices.flatMap(({ endpoints }) => endpoints.filter(isReady)).length
  const allocations = allocate(total, shares)
  if (typeof allocations === 'string') return { problem: allocations }
  const counts = new Map<string, number>()
  const open = new Set(slices.filter((slice) => slice.isChanged || !fits(slice, allocations, counts)))
  const free = [...open].flatMap(({ endpoints }) => endpoints).filter(isReady)
  if (free.some(({ zone = '' }) => zone === ''))
    return { problem: 'One or more endpoints do not have a zone specified' }
  for (const { zone = '' } of free) add(counts, zone, 1)
  const zones = moved(free, allocations, counts)
  const hintsOf = (endpoint: Endpoint): Hints => {
    const name = zones.get(endpoint)
    return name === undefined ? undefined : { forZones: [{ name }] }
  }
  return {
    slices: slices.map((slice) => (open.has(slice) ? hinted(slice.endpoints, hintsOf) : slice.endpoints)),
    counts,
  }
}

function add(counts: Map<string, number>, zone: string, count: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + count)
}

function allocate(total: number, shares: ZoneShares): ReadonlyMap<string, ZoneAllocation> | string {
  if (shares === undefined)
    return 'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes'
  const sizes = `(${total} endpoints, ${shares.size} zones)`
  if (shares.size > total) return `Insufficient number of endpoints ${sizes}`
  const zones = Array.from(shares, ([zone, share]) => {
    const minimum = Math.ceil(share * total * FLOOR)
    return { zone, minimum, desired: Math.max(share * total, minimum) }
  })
  const spare = total - zones.reduce((sum, { minimum }) => sum + minimum, 0)
  if (spare < 0)
    return `Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ${sizes}`
  return new Map(zones.map(({ zone, ...one }) => [zone, { ...one, maximum: one.minimum + spare }]))
}

/** Whether the slice's hints leave enough endpoints for other zones; counts them if so. */
function fits(
  { endpoints }: PlannedSlice,
  allocations: ReadonlyMap<string, ZoneAllocation>,
  counts: Map<string, number>,
): boolean {
  const own = new Map<string, number>()
  for (const { hints } of endpoints.filter(isReady)) {
    const zones = hints?.forZones ?? []
    if (zones.length === 0) return false
    for (const { name } of zones) add(own, name, 1)
  }
  const isTooMany = ([zone, count]: [string, number]): boolean =>
    count + (counts.get(zone) ?? 0) > (allocations.get(zone)?.maximum ?? -1)
  if ([...own].some(isTooMany)) return false
  for (const [zone, count] of own) add(counts, zone, count)
  return true
}

/** The zone of each endpoint: its own, or another if its own has too many. Updates `counts`. */
function moved(
  endpoints: readonly Endpoint[],
  allocations: ReadonlyMap<string, ZoneAllocation>,
  counts: Map<string, number>,
): Map<Endpoint, string> {
  const { giving, receiving } = movesBetween(allocations, counts)
  const zones = new Map<Endpoint, string>()
  for (const endpoint of endpoints) {
    const { zone: own = '' } = endpoint
    const to = (giving.get(own) ?? 0) > 0 ? [...receiving].find(([, count]) => count > 0)?.[0] : undefined
    zones.set(endpoint, to ?? own)
    if (to === undefined) continue
    for (const balance of [giving, counts]) add(balance, own, -1)
    add(receiving, to, -1)
    add(counts, to, 1)
  }
  return zones
}

/** The number of endpoints that each zone gives to others, to the zone in greatest need first. */
function movesBetween(
  allocations: ReadonlyMap<string, ZoneAllocation>,
  counts: ZoneCounts,
): { readonly giving: Map<string, number>; readonly receiving: Map<string, number> } {
  const spare = Array.from(allocations, ([zone, { desired }]) => [zone, (counts.get(zone) ?? 0) - desired] as const)
  const have = new Map(spare.filter(([, count]) => count > 0))
  const need = new Map(spare.filter(([, count]) => count < 0).map(([zone, count]) => [zone, -count]))
  const [giving, receiving] = [new Map<string, number>(), new Map<string, number>()]
  for (;;) {
    const [[from, give], [to, take]] = [mostOf(have), mostOf(need)]
    if (Math.max(give, take) < 1 || Math.min(give, take) < 0.5) return { giving, receiving }
    for (const [open, moves, zone] of [
      [have, giving, from],
      [need, receiving, to],
    ] as const) {
      add(open, zone, -1)
      add(moves, zone, 1)
    }
  }
}

function mostOf(zones: ZoneCounts): readonly [zone: string, count: number] {
  return [...zones].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0] as [string, number])
}

/** Whether a zone has fewer endpoints than its minimum. */
export function isOverloaded(counts: ZoneCounts, shares: ZoneShares): boolean {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (shares === undefined) return counts.size > 0
  return [...shares].some(([zone, share]) => (counts.get(zone) ?? -1) < Math.ceil(total * share * FLOOR))
}
