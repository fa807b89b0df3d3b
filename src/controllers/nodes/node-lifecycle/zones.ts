/**
 * Limits the rate of NoExecute taints for each zone. Many unresponsive nodes in a zone indicate a network failure, so
 * the eviction rate falls. It is zero if all zones are unresponsive.
 */
import type { Node } from '#apis/core/v1.ts'
import { createTokenBucket, type TokenBucket } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'

import type { ControllerSettings } from '../../settings.ts'

export type ZoneState = 'Initial' | 'Normal' | 'PartialDisruption' | 'FullDisruption'

/** Region and zone; nodes without labels share the empty zone. */
export function zoneOf({ metadata: { labels = {} } }: Node): string {
  const label = (name: string): string =>
    labels[`failure-domain.beta.kubernetes.io/${name}`] ?? labels[`topology.kubernetes.io/${name}`] ?? ''
  const [region, zone] = [label('region'), label('zone')]
  return region === '' && zone === '' ? '' : `${region}:\0:${zone}`
}

export interface Census {
  readonly ready: number
  readonly all: number
}

/** Fewer unready nodes are not a disruption. */
const FEWEST_LOST = 3

export function zoneState({ ready, all }: Census, threshold: number): ZoneState {
  if (ready === 0 && all > 0) return 'FullDisruption'
  const lost = all - ready
  return lost >= FEWEST_LOST && Math.fround(lost / all) >= Math.fround(threshold) ? 'PartialDisruption' : 'Normal'
}

type Rates = Pick<
  ControllerSettings,
  'node-eviction-rate' | 'secondary-node-eviction-rate' | 'large-cluster-size-threshold'
>

/** The number of nodes tainted per second. */
export function evictionRate(state: ZoneState, size: number, rates: Rates): number {
  if (state !== 'PartialDisruption') return rates['node-eviction-rate']
  return size > rates['large-cluster-size-threshold'] ? rates['secondary-node-eviction-rate'] : 0
}

/** Nodes that wait for their NoExecute taint. */
export class TaintQueue {
  readonly #clock: Clock
  /** Waiting nodes, and served ones that were not removed. */
  readonly #known = new Set<string>()
  readonly #waiting = new Set<string>()
  #rate: number
  /** Undefined: the rate is zero. */
  #bucket: TokenBucket<string> | undefined

  constructor(clock: Clock, rate: number) {
    this.#clock = clock
    this.#rate = rate
    this.#bucket = createTokenBucket(clock, { qps: rate, burst: 1 })
  }

  get size(): number {
    return this.#waiting.size
  }

  /** A served node is not queued again until it is removed. */
  add(name: string): void {
    if (this.#known.has(name)) return
    this.#known.add(name)
    this.#waiting.add(name)
  }

  remove(name: string): void {
    this.#known.delete(name)
    this.#waiting.delete(name)
  }

  has(name: string): boolean {
    return this.#waiting.has(name)
  }

  setRate(rate: number): void {
    if (rate === this.#rate) return
    const hadToWait = this.#bucket?.tryTake() !== true
    this.#rate = rate
    this.#bucket = rate > 0 ? createTokenBucket(this.#clock, { qps: rate, burst: 1 }) : undefined
    if (hadToWait) this.#bucket?.tryTake()
  }

  /** Taints due nodes. A node stays queued if that fails. */
  async serve(taint: (name: string) => Promise<boolean>): Promise<void> {
    for (const name of this.#waiting) {
      if (this.#bucket?.tryTake() !== true) return
      if (await taint(name)) this.#waiting.delete(name)
    }
  }
}

export interface Zone {
  state: ZoneState
  readonly queue: TaintQueue
}

/** A transition over all zones. */
export type ZoneTransition = 'all-lost' | 'some-back' | undefined

export class Zones {
  readonly #clock: Clock
  readonly #settings: ControllerSettings
  readonly #zones = new Map<string, Zone>()

  constructor(clock: Clock, settings: ControllerSettings) {
    this.#clock = clock
    this.#settings = settings
  }

  /** The zone of the node, created on first use. */
  of(node: Node): Zone {
    const key = zoneOf(node)
    const known = this.#zones.get(key)
    if (known !== undefined) return known
    const made: Zone = { state: 'Initial', queue: new TaintQueue(this.#clock, this.#settings['node-eviction-rate']) }
    this.#zones.set(key, made)
    return made
  }

  all(): Iterable<Zone> {
    return this.#zones.values()
  }

  /** Updates zone states and eviction rates from the counts of ready nodes. */
  count(censuses: ReadonlyMap<string, Census>): ZoneTransition {
    for (const key of this.#zones.keys()) if (!censuses.has(key)) this.#zones.delete(key)
    const counted = Array.from(this.#zones, ([key, zone]) => {
      const census = censuses.get(key) ?? { ready: 0, all: 0 }
      return { zone, census, state: zoneState(census, this.#settings['unhealthy-zone-threshold']) }
    })
    const wereLost = counted.every(({ zone }) => zone.state === 'FullDisruption')
    const areLost = counted.every(({ state }) => state === 'FullDisruption')
    if (wereLost && areLost) return undefined
    for (const { zone, census, state } of counted) {
      if (areLost) zone.queue.setRate(0)
      else if (wereLost || zone.state !== state) zone.queue.setRate(evictionRate(state, census.all, this.#settings))
      zone.state = state
    }
    if (areLost) return 'all-lost'
    return wereLost ? 'some-back' : undefined
  }
}
