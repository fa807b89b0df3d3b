/**
 * A decision from beginning to end: which nodes fit, what extenders say, and, where nothing fits, what might help. It is made at
 * once but where somebody has to be waited for; what happens meanwhile may take the pod or the nodes away.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { turn } from '#lib/slices.ts'

import type { Cluster } from './cluster.ts'
import { Decider } from './decision.ts'
import { explain } from './explanation.ts'
import { type Extender, filterBy, pointsBy } from './extender.ts'
import type { Cases, Foreseen, Handle, Plugin, Search } from './framework.ts'
import { MeteredDecider } from './metering.ts'
import { UNMETERED } from './meters.ts'
import type { NodeInfo } from './node-info.ts'
import type { Nominations } from './nominations.ts'
import { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'
import { type Failure, failureFrom, failureOf } from './telling.ts'
import type { WayToNode } from './way-to-node.ts'

export interface DeliberationParts {
  readonly handle: Handle
  readonly cluster: Cluster
  readonly nominations: Nominations
  /** By name. */
  readonly profiles: ReadonlyMap<string, Profile>
  /** Who else has a say, over HTTP. */
  readonly extenders: readonly Extender[]
  readonly signal: AbortSignal
}

/** Where the pod goes, or why nowhere. `gone`: there is nothing to decide about any more. */
export type Outcome =
  | { readonly node: NodeInfo; readonly cases: Cases }
  | { readonly failure: Failure; readonly cases: Cases }
  | 'gone'

/** A decision laid open. */
export interface Consideration {
  readonly search: Search
  /** What each plugin gives the nodes that fit, in their order. */
  readonly points: ReadonlyMap<string, readonly number[]>
  /** How many there are. */
  readonly nodes: number
  /** What might help where no node fits. */
  readonly help: Promise<Foreseen> | undefined
}

interface Consulted {
  readonly profile: Profile
  readonly search: Search
  readonly decider: Decider
  readonly extenders: readonly Extender[]
}

export class Deliberation {
  readonly #parts: DeliberationParts
  readonly #way: WayToNode
  readonly #deciders: ReadonlyMap<string, Decider>

  constructor(parts: DeliberationParts, way: WayToNode) {
    this.#parts = parts
    this.#way = way
    const { cluster, nominations, handle, profiles } = parts
    const { random, clock, meter } = handle
    const view = { cluster, nominations, random, clock, meter }
    const Deciding = meter === UNMETERED ? Decider : MeteredDecider
    this.#deciders = new Map(Array.from(profiles, ([name, profile]) => [name, new Deciding(profile, view)]))
  }

  profileOf({ pod }: PodInfo): Profile | undefined {
    return this.#parts.profiles.get(pod.spec.schedulerName ?? 'default-scheduler')
  }

  /** A promise only where the decision has to wait for somebody. */
  decide(pod: PodInfo, profile: Profile): Outcome | Promise<Outcome> {
    const { cluster } = this.#parts
    if (cluster.nodes.length === 0)
      return { failure: failureOf('no nodes available to schedule pods'), cases: new Map() }
    const decider = this.#deciders.get(profile.name) as Decider
    const search = this.#search(decider, pod)
    const extenders = this.#parts.extenders.filter((one) => one.isInterestedIn(pod.pod))
    const consulted = { profile, search, decider, extenders }
    if (search.isUnfinished) return this.#takeTurns(consulted)
    if (search.feasible.length === 0) return this.#nowhere(consulted)
    if (extenders.length > 0) return this.#consult(consulted)
    return { node: decider.best(search), cases: search.cases }
  }

  /** What would be decided about a pod now, whether it has a place or not, and why. Changes nothing but where the next search begins. */
  consider(pod: Pod): Consideration | undefined {
    const { cluster } = this.#parts
    const info = new PodInfo(pod)
    const profile = this.profileOf(info)
    const decider = this.#deciders.get(profile?.name ?? '')
    if (profile === undefined || decider === undefined) return undefined
    return cluster.without(info.uid, () => {
      const search = this.#search(decider, info)
      while (search.isUnfinished) decider.resume(search)
      const { feasible } = search
      const help =
        feasible.length > 0
          ? undefined
          : helpFor(profile, (plugin) => plugin.foresee?.(search, decider) ?? plugin.postFilter?.(search, decider))
      return { search, points: decider.pointsByPlugin(info, feasible), nodes: cluster.nodes.length, help }
    })
  }

  /** Whether it still wants a place. */
  isWanting({ key, uid }: PodInfo): boolean {
    const { handle, cluster } = this.#parts
    return handle.of(Pods).get(key)?.metadata.uid === uid && cluster.placed(uid) === undefined
  }

  /** Somebody needs long to find out which nodes fit: others have their turn in between. */
  async #takeTurns(consulted: Consulted): Promise<Outcome> {
    const { search, decider } = consulted
    while (search.isUnfinished) {
      await turn()
      if (this.#parts.signal.aborted) return 'gone'
      decider.resume(search)
    }
    return this.#consult(consulted)
  }

  async #consult(consulted: Consulted): Promise<Outcome> {
    const { search, decider, extenders } = consulted
    const { cluster, handle } = this.#parts
    const { pod, cases } = search
    const refused = await filterBy(extenders, search, handle.log)
    const extra = search.feasible.length > 1 ? await pointsBy(extenders, search, handle.log) : undefined
    if (!this.isWanting(pod)) return 'gone'
    const feasible = search.feasible.filter(({ name }) => cluster.node(name) !== undefined)
    if (refused !== undefined) return { failure: failureFrom(refused), cases }
    if (feasible.length === 0) return this.#nowhere(consulted)
    return { node: decider.best({ pod, feasible }, extra), cases }
  }

  /** Where room was made for it is looked at first. */
  #search(decider: Decider, pod: PodInfo): Search {
    const nominated = pod.pod.status.nominatedNodeName ?? ''
    if (nominated !== '' && this.#parts.cluster.node(nominated) !== undefined) {
      const search = decider.search(pod, nominated)
      if (search.feasible.length > 0) return search
    }
    return decider.search(pod)
  }

  async #nowhere({ profile, search, decider }: Consulted): Promise<Outcome> {
    const { cases } = search
    const refusals = search.refused === undefined ? [...search.refusals.values()] : [search.refused]
    const broken = refusals.find(({ code }) => code === 'error')
    if (broken !== undefined) return { failure: failureFrom(broken), cases }
    await decider.settle(search)
    const { cluster, handle } = this.#parts
    const begunMs = handle.clock.elapsed()
    const { reasons, nominate, isBroken } = await helpFor(profile, (plugin) => plugin.postFilter?.(search, decider))
    const code = isBroken === true ? 'error' : 'unschedulable'
    this.#way.ran('PostFilter', profile, reasons.length === 0 ? undefined : { code, reasons }, begunMs)
    const failure: Failure = {
      reason: 'Unschedulable',
      message: explain(search, cluster.nodes.length, reasons),
      rejectors: new Set([...refusals.map(({ plugin }) => plugin), ...search.narrowedBy]),
      pendings: new Set(refusals.filter((one) => one.code === 'pending').map(({ plugin }) => plugin)),
      nominate,
    }
    return { failure, cases }
  }
}

/** What might help, in order, until something does. */
async function helpFor(
  profile: Profile,
  ask: (plugin: Plugin) => Foreseen | Promise<Foreseen> | undefined,
): Promise<Foreseen> {
  const reasons: string[] = []
  let nominate: string | undefined
  for (const { plugin } of profile.postFilter) {
    const result = await ask(plugin)
    if (result === undefined) continue
    if (result.reasons.length === 0 || result.isBroken === true) return result
    reasons.push(...result.reasons)
    nominate = result.nominate ?? nominate
  }
  return { reasons, ...(nominate !== undefined && { nominate }) }
}
