/**
 * Wraps scheduling decisions with metrics: the time of each extension point, the calls of each plugin and, for a sample
 * of pods, plugin times.
 */
import type { Clock } from '#lib/clock.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { extendsPoint } from '../framework/extension-points.ts'
import type { Meter, PluginRefusal, RefusalCode, Search, Verdict } from '../framework/framework.ts'
import type { EnabledPlugin, Profile } from '../framework/profile.ts'
import { Decider, type DeciderParts } from './decision.ts'

/** Plugin times are sampled for one pod in this many. */
const SAMPLE_EVERY = 100

const STATUSES: Readonly<Record<RefusalCode, string>> = {
  unschedulable: 'Unschedulable',
  unresolvable: 'UnschedulableAndUnresolvable',
  pending: 'Pending',
  error: 'Error',
  // Not counted: the filter runs again.
  busy: 'Wait',
}

/** Upstream's name of the status. */
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
    const ranPlugins = 'plugin' in prepared ? [prepared.plugin] : prepared.cycleState.keys()
    for (const plugin of ranPlugins) this.#count('PreFilter', plugin, 1)
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

  override scoresByPlugin(pod: PodInfo, nodes: readonly NodeInfo[]): Map<string, number[]> {
    const begunMs = this.#clock.elapsed()
    const scores = super.scoresByPlugin(pod, nodes)
    this.#ran('Score', 'Success', this.#clock.elapsed() - begunMs)
    for (const plugin of scores.keys()) {
      if (extendsPoint(plugin, 'preScore')) this.#count('PreScore', plugin, 1)
      this.#count('Score', plugin, nodes.length)
    }
    return scores
  }

  /** Each plugin runs for the nodes that no earlier plugin rejected. */
  #countFilters({ cycleState, refusals, visited }: Search): void {
    const refused = new Map<string, number>()
    let last = ''
    let inRow = 0
    const note = (): unknown => inRow > 0 && refused.set(last, (refused.get(last) ?? 0) + inRow)
    // Neighbouring nodes are mostly rejected by the same plugin.
    for (const { plugin } of refusals.values()) {
      if (plugin === last) inRow++
      else {
        note()
        last = plugin
        inRow = 1
      }
    }
    note()
    let left = visited
    for (const { name, plugin } of this.#metered.filter) {
      if (plugin.filter === undefined && cycleState.get(name)?.filter === undefined) continue
      this.#count('Filter', name, left)
      left -= refused.get(name) ?? 0
    }
  }

  /** Measures each plugin for the pod or one node. Runs the plugin again: filters and scores have no side effects. */
  #sample({ pod, cycleState, feasible }: Search): void {
    this.#untilSample = SAMPLE_EVERY
    const [node] = feasible
    if (node === undefined) return
    for (const { name, plugin } of this.#metered.preFilter)
      this.#time('PreFilter', name, () => statusIn(plugin.preFilter?.(pod)))
    for (const { name, plugin } of this.#metered.filter) {
      const own = cycleState.get(name)
      if (plugin.filter !== undefined) this.#time('Filter', name, () => statusOf(plugin.filter?.(pod, node)))
      else if (own?.filter !== undefined) this.#time('Filter', name, () => statusOf(own.filter?.(node)))
    }
    for (const { name, plugin } of this.#metered.score) {
      const scorer = this.#time('PreScore', name, () => plugin.preScore?.(pod, feasible))
      if (plugin.score !== undefined) this.#time('Score', name, () => plugin.score?.(pod, node))
      else if (scorer !== undefined) this.#time('Score', name, () => scorer.score(node))
    }
  }

  /** A returned string is the status. */
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

/** Also measures the plugins of the binding cycle. */
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
  const at = <E extends EnabledPlugin>(list: readonly E[], point: string, member: keyof EnabledPlugin['plugin']): E[] =>
    list.map((one) => {
      const { plugin, name } = one
      const call = plugin[member] as ((...args: readonly unknown[]) => unknown) | undefined
      if (call === undefined) return one
      // A copy: prototype inheritance would slow down every call.
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

/** The status of any plugin result. */
function statusIn(found: unknown): string {
  const code = (found as Partial<PluginRefusal> | undefined)?.code
  return code === undefined ? 'Success' : STATUSES[code]
}
