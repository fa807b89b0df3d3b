/**
 * Decisions that are timed: how long each point took, whom it asked how often, and, now and then, how long a plugin took. The
 * decisions themselves know nothing of it.
 */
import type { Clock } from '#lib/clock.ts'

import { Decider, type DeciderParts } from './decision.ts'
import { extendsPoint } from './extension-points.ts'
import type { Meter, PluginRefusal, RefusalCode, Search, Verdict } from './framework.ts'
import type { NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'
import type { Enabled, Profile } from './profile.ts'

/** Plugins are timed for one pod in so many. */
const SAMPLE_EVERY = 100

const STATUSES: Readonly<Record<RefusalCode, string>> = {
  unschedulable: 'Unschedulable',
  unresolvable: 'UnschedulableAndUnresolvable',
  pending: 'Pending',
  error: 'Error',
  // Nobody hears of it: it is asked again.
  busy: 'Wait',
}

/** What upstream calls the outcome. */
export function statusOf(verdict: Verdict): string {
  return verdict === undefined ? 'Success' : STATUSES[verdict.code]
}

export interface Metering {
  readonly clock: Clock
  readonly meter: Meter
}

export class MeteredDecider extends Decider {
  readonly #metered: Profile
  readonly #clock: Clock
  readonly #meter: Meter
  #preparingMs = 0
  #untilSample = 1

  constructor(profile: Profile, parts: DeciderParts & Metering) {
    super(profile, parts)
    this.#metered = profile
    this.#clock = parts.clock
    this.#meter = parts.meter
  }

  override prepare(pod: PodInfo): ReturnType<Decider['prepare']> {
    const begunMs = this.#clock.elapsed()
    const prepared = super.prepare(pod)
    this.#preparingMs = this.#clock.elapsed() - begunMs
    const refusal = 'plugin' in prepared ? prepared : undefined
    this.#ran('PreFilter', statusOf(refusal), this.#preparingMs)
    const asked = 'plugin' in prepared ? [prepared.plugin] : prepared.cases.keys()
    for (const plugin of asked) this.#count('PreFilter', plugin, 1)
    return prepared
  }

  override search(pod: PodInfo, only?: string): Search {
    const begunMs = this.#clock.elapsed()
    const search = super.search(pod, only)
    if (search.refused !== undefined) return search
    this.#ran('Filter', 'Success', this.#clock.elapsed() - begunMs - this.#preparingMs)
    this.#countFilters(search)
    if (--this.#untilSample === 0) this.#sample(search)
    return search
  }

  override pointsByPlugin(pod: PodInfo, nodes: readonly NodeInfo[]): Map<string, number[]> {
    const begunMs = this.#clock.elapsed()
    const points = super.pointsByPlugin(pod, nodes)
    this.#ran('Score', 'Success', this.#clock.elapsed() - begunMs)
    for (const plugin of points.keys()) {
      if (extendsPoint(plugin, 'preScore')) this.#count('PreScore', plugin, 1)
      this.#count('Score', plugin, nodes.length)
    }
    return points
  }

  /** Each is asked about the nodes that nobody before it has refused. */
  #countFilters({ cases, refusals, looked }: Search): void {
    const refused = new Map<string, number>()
    let last = ''
    let inRow = 0
    const note = (): unknown => inRow > 0 && refused.set(last, (refused.get(last) ?? 0) + inRow)
    // Most in a row are refused by the same.
    for (const { plugin } of refusals.values()) {
      if (plugin === last) inRow++
      else {
        note()
        last = plugin
        inRow = 1
      }
    }
    note()
    let left = looked
    for (const { name, plugin } of this.#metered.filter) {
      if (plugin.filter === undefined && cases.get(name)?.filter === undefined) continue
      this.#count('Filter', name, left)
      left -= refused.get(name) ?? 0
    }
  }

  /** How long each takes, for the pod or for one node. They are asked again, which changes nothing: nothing stands in the way of the decision. */
  #sample({ pod, cases, feasible }: Search): void {
    this.#untilSample = SAMPLE_EVERY
    const [node] = feasible
    if (node === undefined) return
    for (const { name, plugin } of this.#metered.preFilter)
      this.#time('PreFilter', name, () => statusIn(plugin.preFilter?.(pod)))
    for (const { name, plugin } of this.#metered.filter) {
      const own = cases.get(name)
      if (plugin.filter !== undefined) this.#time('Filter', name, () => statusOf(plugin.filter?.(pod, node)))
      else if (own?.filter !== undefined) this.#time('Filter', name, () => statusOf(own.filter?.(node)))
    }
    for (const { name, plugin } of this.#metered.score) {
      const scorer = this.#time('PreScore', name, () => plugin.preScore?.(pod, feasible))
      if (plugin.score !== undefined) this.#time('Score', name, () => plugin.score?.(pod, node))
      else if (scorer !== undefined) this.#time('Score', name, () => scorer.score(node))
    }
  }

  /** A text that is returned is the status. */
  #time<R>(point: string, plugin: string, call: () => R): R {
    const begunMs = this.#clock.elapsed()
    const found = call()
    const status = typeof found === 'string' ? found : 'Success'
    this.#meter.pluginRan(point, plugin, status, this.#clock.elapsed() - begunMs)
    return found
  }

  #ran(point: string, status: string, tookMs: number): void {
    this.#meter.ran(point, status, this.#metered.name, tookMs)
  }

  #count(point: string, plugin: string, times: number): void {
    this.#meter.evaluated(plugin, point, this.#metered.name, times)
  }
}

/** The same, with those timed that come after the decision. */
export function meteredProfile(profile: Profile, { clock, meter }: Metering): Profile {
  const timed = <A extends readonly unknown[], R>(
    point: string,
    plugin: string,
    call: ((...args: A) => R) | undefined,
  ): ((...args: A) => R) | undefined => {
    if (call === undefined) return undefined
    return (...args) => {
      const begunMs = clock.elapsed()
      const observe = (found: unknown): void =>
        meter.pluginRan(point, plugin, statusIn(found), clock.elapsed() - begunMs)
      const result = call(...args)
      if (result instanceof Promise) void result.then(observe, () => undefined)
      else observe(result)
      return result
    }
  }
  const at = <E extends Enabled>(list: readonly E[], point: string, member: keyof Enabled['plugin']): E[] =>
    list.map((one) => {
      const { plugin, name } = one
      const call = plugin[member] as ((...args: readonly unknown[]) => unknown) | undefined
      if (call === undefined) return one
      // A fresh object: one that others inherit from is slow, everywhere.
      return { ...one, plugin: { ...plugin, [member]: timed(point, name, call.bind(plugin)) } }
    })
  return {
    ...profile,
    postFilter: at(profile.postFilter, 'PostFilter', 'postFilter'),
    permit: at(profile.permit, 'Permit', 'permit'),
    bind: at(profile.bind, 'Bind', 'bind'),
    postBind: at(profile.postBind, 'PostBind', 'postBind'),
  }
}

/** Of whatever a plugin returns. */
function statusIn(found: unknown): string {
  const code = (found as Partial<PluginRefusal> | undefined)?.code
  return code === undefined ? 'Success' : STATUSES[code]
}
