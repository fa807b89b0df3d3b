/**
 * The scheduling cycle of one pod: filters, extenders, scoring, and PostFilter if no node fits. It is synchronous,
 * except for extenders, slow plugins and PostFilter; while those run, the pod or nodes may disappear.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'

import type { BindingCycle } from '../binding-cycle/binding-cycle.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { Nominations } from '../cluster/nominations.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import { Decider } from '../decision/decision.ts'
import { type Extender, extenderScores, filterBy } from '../decision/extender.ts'
import { MeteredDecider } from '../decision/metering.ts'
import { UNMETERED } from '../decision/meters.ts'
import { explain } from '../framework/explanation.ts'
import type { CycleState, Handle, Plugin, PostFilterPreview, Search } from '../framework/framework.ts'
import type { Profile } from '../framework/profile.ts'
import { failureFrom, failureOf, type SchedulingFailure } from '../framework/status-reporter.ts'

export interface SchedulingCycleParts {
  readonly handle: Handle
  readonly cluster: Cluster
  readonly nominations: Nominations
  /** By name. */
  readonly profiles: ReadonlyMap<string, Profile>
  /** HTTP extenders, in order. */
  readonly extenders: readonly Extender[]
  readonly signal: AbortSignal
}

/** The selected node, or why there is none. `gone`: the pod no longer needs a node. */
export type SchedulingOutcome =
  | { readonly node: NodeInfo; readonly cycleState: CycleState }
  | { readonly failure: SchedulingFailure; readonly cycleState: CycleState }
  | 'gone'

/** The details of a decision that was not carried out. */
export interface DryRunResult {
  readonly search: Search
  /** The weighted scores of each plugin, in the order of the feasible nodes. */
  readonly scores: ReadonlyMap<string, readonly number[]>
  /** The number of nodes in the cluster. */
  readonly nodes: number
  /** The result of PostFilter plugins if no node fits. */
  readonly postFilter: Promise<PostFilterPreview> | undefined
}

interface CycleContext {
  readonly profile: Profile
  readonly search: Search
  readonly decider: Decider
  readonly extenders: readonly Extender[]
}

export class SchedulingCycle {
  readonly #parts: SchedulingCycleParts
  readonly #bindingCycle: BindingCycle
  readonly #deciders: ReadonlyMap<string, Decider>

  constructor(parts: SchedulingCycleParts, bindingCycle: BindingCycle) {
    this.#parts = parts
    this.#bindingCycle = bindingCycle
    const { cluster, nominations, handle, profiles } = parts
    const { random, clock, meter } = handle
    const view = { cluster, nominations, random, clock, meter }
    const DeciderClass = meter === UNMETERED ? Decider : MeteredDecider
    this.#deciders = new Map(Array.from(profiles, ([name, profile]) => [name, new DeciderClass(profile, view)]))
  }

  profileOf({ pod }: PodInfo): Profile | undefined {
    return this.#parts.profiles.get(pod.spec.schedulerName ?? 'default-scheduler')
  }

  /** Returns a promise only if the decision must wait. */
  decide(pod: PodInfo, profile: Profile): SchedulingOutcome | Promise<SchedulingOutcome> {
    const { cluster } = this.#parts
    if (cluster.nodes.length === 0)
      return { failure: failureOf('no nodes available to schedule pods'), cycleState: new Map() }
    const decider = this.#deciders.get(profile.name) as Decider
    const search = this.#search(decider, pod)
    const extenders = this.#parts.extenders.filter((one) => one.isInterestedIn(pod.pod))
    const context = { profile, search, decider, extenders }
    if (search.isUnfinished) return this.#finishSearch(context)
    if (search.feasible.length === 0) return this.#runPostFilter(context)
    if (extenders.length > 0) return this.#runExtenders(context)
    return { node: decider.best(search), cycleState: search.cycleState }
  }

  /** Decides about a pod without acting, whether it has a node or not. Only the start of the next search changes. */
  dryRun(pod: Pod): DryRunResult | undefined {
    const { cluster } = this.#parts
    const info = new PodInfo(pod)
    const profile = this.profileOf(info)
    const decider = this.#deciders.get(profile?.name ?? '')
    if (profile === undefined || decider === undefined) return undefined
    return cluster.without(info.uid, () => {
      const search = this.#search(decider, info)
      while (search.isUnfinished) decider.resume(search)
      const { feasible } = search
      const postFilter =
        feasible.length > 0
          ? undefined
          : runPostFilters(
              profile,
              (plugin) => plugin.previewPostFilter?.(search, decider) ?? plugin.postFilter?.(search, decider),
            )
      return { search, scores: decider.scoresByPlugin(info, feasible), nodes: cluster.nodes.length, postFilter }
    })
  }

  /** Whether the pod still exists and has no node. */
  isUnscheduled({ key, uid }: PodInfo): boolean {
    const { handle, cluster } = this.#parts
    return handle.of(Pods).get(key)?.metadata.uid === uid && cluster.placed(uid) === undefined
  }

  /** Resumes a search with a slow plugin until it is finished, and yields to the event loop in between. */
  async #finishSearch(context: CycleContext): Promise<SchedulingOutcome> {
    const { search, decider } = context
    while (search.isUnfinished) {
      await yieldToEventLoop()
      if (this.#parts.signal.aborted) return 'gone'
      decider.resume(search)
    }
    return this.#runExtenders(context)
  }

  async #runExtenders(context: CycleContext): Promise<SchedulingOutcome> {
    const { search, decider, extenders } = context
    const { cluster, handle } = this.#parts
    const { pod, cycleState } = search
    const refused = await filterBy(extenders, search, handle.log)
    const extra = search.feasible.length > 1 ? await extenderScores(extenders, search, handle.log) : undefined
    if (!this.isUnscheduled(pod)) return 'gone'
    const feasible = search.feasible.filter(({ name }) => cluster.node(name) !== undefined)
    if (refused !== undefined) return { failure: failureFrom(refused), cycleState }
    if (feasible.length === 0) return this.#runPostFilter(context)
    return { node: decider.best({ pod, feasible }, extra), cycleState }
  }

  /** Tries the nominated node first. */
  #search(decider: Decider, pod: PodInfo): Search {
    const nominated = pod.pod.status.nominatedNodeName ?? ''
    if (nominated !== '' && this.#parts.cluster.node(nominated) !== undefined) {
      const search = decider.search(pod, nominated)
      if (search.feasible.length > 0) return search
    }
    return decider.search(pod)
  }

  async #runPostFilter({ profile, search, decider }: CycleContext): Promise<SchedulingOutcome> {
    const { cycleState } = search
    const refusals = search.refused === undefined ? [...search.refusals.values()] : [search.refused]
    const broken = refusals.find(({ code }) => code === 'error')
    if (broken !== undefined) return { failure: failureFrom(broken), cycleState }
    await decider.settle(search)
    const { cluster, handle } = this.#parts
    const begunMs = handle.clock.elapsed()
    const { reasons, nominate, isBroken } = await runPostFilters(profile, (plugin) =>
      plugin.postFilter?.(search, decider),
    )
    const code = isBroken === true ? 'error' : 'unschedulable'
    this.#bindingCycle.ran('PostFilter', profile, reasons.length === 0 ? undefined : { code, reasons }, begunMs)
    const failure: SchedulingFailure = {
      reason: 'Unschedulable',
      message: explain(search, cluster.nodes.length, reasons),
      rejectors: new Set([...refusals.map(({ plugin }) => plugin), ...search.narrowedBy]),
      pendings: new Set(refusals.filter((one) => one.code === 'pending').map(({ plugin }) => plugin)),
      nominate,
    }
    return { failure, cycleState }
  }
}

/** Runs PostFilter plugins in order until one succeeds. */
async function runPostFilters(
  profile: Profile,
  run: (plugin: Plugin) => PostFilterPreview | Promise<PostFilterPreview> | undefined,
): Promise<PostFilterPreview> {
  const reasons: string[] = []
  let nominate: string | undefined
  for (const { plugin } of profile.postFilter) {
    const result = await run(plugin)
    if (result === undefined) continue
    if (result.reasons.length === 0 || result.isBroken === true) return result
    reasons.push(...result.reasons)
    nominate = result.nominate ?? nominate
  }
  return { reasons, ...(nominate !== undefined && { nominate }) }
}
