/**
 * Builds pools of the devices that drivers offer from ResourceSlices, and caches them for each node until a relevant
 * slice changes. Cached pools are immutable, because a search may be interrupted.
 */
import type { Node, NodeSelector } from '#apis/core/v1.ts'
import type { Device, ResourceSlice } from '#apis/resource/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { parseQuantity, type Quantity } from '#meta/quantity.ts'
import { fitsNodeTerm } from '#model/nodes/fit.ts'

export interface OfferedDevice {
  /** `driver/pool/device`: unique, since driver and device names contain no slash. */
  readonly id: string
  readonly device: Device
  readonly slice: ResourceSlice
  readonly pool: Pool
}

export interface Pool {
  /** `driver/pool`. */
  readonly id: string
  /** The driver has not published all slices yet, or they contradict each other: no device can be allocated. */
  readonly flaw?: 'incomplete' | 'invalid'
  /** In the order of allocation. */
  readonly devices: readonly OfferedDevice[]
  /** Devices that the node cannot use but that draw on the same counters. */
  readonly elsewhere: readonly OfferedDevice[]
  /** The capacity of each counter, by `set/counter`. */
  readonly counters: ReadonlyMap<string, Quantity>
}

type Slices = Map<string, ResourceSlice>

export class Inventory {
  /** Slices by pool and name; and slices that a single node uses, by node. */
  readonly #ofPool = new Map<string, Slices>()
  readonly #ofNode = new Map<string, Slices>()
  readonly #shared: Slices = new Map()
  readonly #known = new Map<string, { readonly node: Node; readonly pools: readonly Pool[] }>()

  set(slice: ResourceSlice): void {
    const { name = '' } = slice.metadata
    const id = poolOf(slice)
    const owner = ownerOf(slice)
    put(this.#ofPool, id, slice)
    if (owner === '') this.#shared.set(name, slice)
    else put(this.#ofNode, owner, slice)
    this.#forget(id)
  }

  remove(slice: ResourceSlice): void {
    const { name = '' } = slice.metadata
    this.#forget(poolOf(slice))
    drop(this.#ofPool, poolOf(slice), name)
    drop(this.#ofNode, ownerOf(slice), name)
    this.#shared.delete(name)
  }

  /** Ordered. Skips pools whose newer generation is on other nodes. */
  poolsFor(node: Node): readonly Pool[] {
    const { name = '' } = node.metadata
    const known = this.#known.get(name)
    if (known?.node === node) return known.pools
    const pools = this.#collectPools(node)
    this.#known.set(name, { node, pools })
    return pools
  }

  #forget(pool: string): void {
    for (const slice of this.#ofPool.get(pool)?.values() ?? []) {
      const owner = ownerOf(slice)
      if (owner === '') this.#known.clear()
      else this.#known.delete(owner)
    }
  }

  #collectPools(node: Node): Pool[] {
    const visible = new Map<string, ResourceSlice[]>()
    for (const slice of [...(this.#ofNode.get(node.metadata.name ?? '')?.values() ?? []), ...this.#shared.values()]) {
      if (!isVisible(slice, node)) continue
      const others = visible.get(poolOf(slice))
      const newer = slice.spec.pool.generation - (others?.[0]?.spec.pool.generation ?? -1)
      if (newer === 0) others?.push(slice)
      else if (newer > 0) visible.set(poolOf(slice), [slice])
    }
    const pools = Array.from(visible, ([id, slices]) => this.#pool(id, slices)).filter((pool) => pool !== undefined)
    // Devices with binding conditions come last.
    return pools.sort((a, b) => Number(isSlow(a)) - Number(isSlow(b)) || compareIds(a, b))
  }

  #pool(id: string, visible: readonly ResourceSlice[]): Pool | undefined {
    const { generation, resourceSliceCount } = (visible[0] as ResourceSlice).spec.pool
    if (visible.length === resourceSliceCount) return buildPool(id, visible, [])
    const all = [...(this.#ofPool.get(id)?.values() ?? [])]
    if (all.some(({ spec }) => spec.pool.generation > generation)) return undefined
    const current = all.filter(({ spec }) => spec.pool.generation === generation)
    if (current.length !== resourceSliceCount) return flawed(id, 'incomplete')
    return buildPool(
      id,
      visible,
      current.filter((slice) => !visible.includes(slice)),
    )
  }
}

export function deviceId(driver: string, pool: string, device: string): string {
  return `${driver}/${pool}/${device}`
}

function poolOf({ spec }: ResourceSlice): string {
  return `${spec.driver}/${spec.pool.name}`
}

/** The only node that can use the slice; slices with counters concern all. */
function ownerOf({ spec }: ResourceSlice): string {
  return (spec.sharedCounters ?? []).length > 0 ? '' : (spec.nodeName ?? '')
}

function put(map: Map<string, Slices>, key: string, slice: ResourceSlice): void {
  const slices = map.get(key) ?? new Map<string, ResourceSlice>()
  map.set(key, slices.set(slice.metadata.name ?? '', slice))
}

function drop(map: Map<string, Slices>, key: string, name: string): void {
  const slices = map.get(key)
  slices?.delete(name)
  if (slices?.size === 0) map.delete(key)
}

/** The node fields that slices and devices share. */
interface NodePlacement {
  readonly nodeName?: string
  readonly allNodes?: boolean
  readonly nodeSelector?: NodeSelector
}

export function isPlacedOn({ nodeName = '', allNodes = false, nodeSelector }: NodePlacement, node: Node): boolean {
  if (nodeName !== '') return node.metadata.name === nodeName
  return allNodes || (nodeSelector !== undefined && isSelected(nodeSelector, node))
}

export function isSelected({ nodeSelectorTerms }: NodeSelector, node: Node): boolean {
  return (nodeSelectorTerms ?? []).some((term) => fitsNodeTerm(term, node))
}

/** Slices with counters are always needed: devices elsewhere may draw on them. */
function isVisible({ spec }: ResourceSlice, node: Node): boolean {
  const { sharedCounters = [], perDeviceNodeSelection = false, devices = [] } = spec
  if (sharedCounters.length > 0 || isPlacedOn(spec, node)) return true
  return perDeviceNodeSelection && devices.some((device) => isPlacedOn(device, node))
}

function buildPool(id: string, visible: readonly ResourceSlice[], rest: readonly ResourceSlice[]): Pool {
  const counters = new Map<string, Quantity>()
  const sets = new Set<string>()
  for (const { name, counters: own = {} } of visible.flatMap(({ spec }) => spec.sharedCounters ?? [])) {
    if (sets.has(name)) return flawed(id, 'invalid')
    sets.add(name)
    for (const [counter, { value }] of Object.entries(own)) counters.set(`${name}/${counter}`, parseQuantity(value))
  }
  const devices: OfferedDevice[] = []
  const elsewhere: OfferedDevice[] = []
  const pool: Pool = { id, devices, elsewhere, counters }
  const offer = (slice: ResourceSlice): OfferedDevice[] =>
    (slice.spec.devices ?? []).map((device) => ({ id: `${id}/${device.name}`, device, slice, pool }))
  devices.push(...visible.toSorted(byName).filter(hasNoCounters).flatMap(offer))
  elsewhere.push(...rest.flatMap(offer))
  const isDoubled = new Set(devices.map(({ device }) => device.name)).size < devices.length
  const isSound = [...devices, ...elsewhere].every(({ device }) => drawsOnKnown(device, sets, counters))
  return isDoubled || !isSound ? flawed(id, 'invalid') : pool
}

function flawed(id: string, flaw: NonNullable<Pool['flaw']>): Pool {
  return { id, flaw, devices: [], elsewhere: [], counters: new Map() }
}

function hasNoCounters({ spec }: ResourceSlice): boolean {
  return (spec.sharedCounters ?? []).length === 0
}

function drawsOnKnown(
  { consumesCounters = [] }: Device,
  sets: ReadonlySet<string>,
  counters: ReadonlyMap<string, Quantity>,
): boolean {
  return consumesCounters.every(
    ({ counterSet, counters: drawn = {} }) =>
      sets.has(counterSet) && Object.keys(drawn).every((counter) => counters.has(`${counterSet}/${counter}`)),
  )
}

function isSlow({ devices }: Pool): boolean {
  return devices.some(({ device }) => device.bindingConditions !== undefined)
}

function byName(a: ResourceSlice, b: ResourceSlice): number {
  return compareText(a.metadata.name ?? '', b.metadata.name ?? '')
}

/** By driver, then by name. */
function compareIds(a: Pool, b: Pool): number {
  const [driverA = '', driverB = ''] = [a.id.split('/', 1)[0], b.id.split('/', 1)[0]]
  return compareText(driverA, driverB) || compareText(a.id, b.id)
}
