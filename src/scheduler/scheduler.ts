/**
 * The scheduler: takes one pod after the other, decides where it goes, and sees to it that it gets there. Decisions are
 * made one at a time; what follows from them runs alongside. Others in the process have their turn every few milliseconds.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { SeriesRecorder } from '#client/event-series.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { turn } from '#lib/slices.ts'

import { type Choice, permit, reserve, unreserve } from './binding.ts'
import type { Cluster } from './cluster.ts'
import { Decider } from './decision.ts'
import { explain } from './explanation.ts'
import { type Extender, filterBy, pointsBy } from './extender.ts'
import type { Foreseen, Handle, Plugin, PluginRefusal, Search } from './framework.ts'
import { MeteredDecider } from './metering.ts'
import { UNMETERED } from './meters.ts'
import type { Nominations } from './nominations.ts'
import { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'
import type { QueuedPod, SchedulingQueue } from './queue.ts'
import { type Failure, failureFrom, failureOf, Teller } from './telling.ts'
import { Traffic } from './traffic.ts'
import { WayToNode } from './way-to-node.ts'

/** Then others have a turn. */
const SLICE_MS = 5

export interface SchedulerParts {
  readonly handle: Handle
  readonly cluster: Cluster
  readonly queue: SchedulingQueue
  readonly nominations: Nominations
  /** By name. */
  readonly profiles: ReadonlyMap<string, Profile>
  /** Who else has a say, over HTTP. */
  readonly extenders: readonly Extender[]
  readonly recorderOf: (profile: string) => SeriesRecorder
  readonly signal: AbortSignal
}

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

export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #deciders: ReadonlyMap<string, Decider>
  readonly #teller: Teller
  readonly #clock: Clock
  readonly #log: Logger
  readonly traffic: Traffic
  #hasBegun = false
  #isRunning = false
  /** What runs alongside. */
  readonly #underway = new Set<Promise<void>>()
  readonly #way: WayToNode

  constructor(parts: SchedulerParts) {
    this.#parts = parts
    const { cluster, nominations, handle, profiles } = parts
    const { random, clock, meter } = handle
    const view = { cluster, nominations, random, clock, meter }
    const Deciding = meter === UNMETERED ? Decider : MeteredDecider
    this.#deciders = new Map(Array.from(profiles, ([name, profile]) => [name, new Deciding(profile, view)]))
    this.#teller = new Teller(handle, parts.recorderOf)
    this.traffic = new Traffic(handle.clock)
    this.#way = new WayToNode(parts, this.#teller, this.traffic)
    this.#clock = handle.clock
    this.#log = handle.log
  }

  /** What there is has been seen: before that nobody could decide. */
  begin(): void {
    this.#hasBegun = true
    this.wake()
  }

  /** There is somebody in the queue. */
  wake(): void {
    if (!this.#hasBegun || this.#isRunning || this.#parts.signal.aborted) return
    this.#isRunning = true
    setImmediate(() => void this.#work())
  }

  /** How many are on their way to their nodes. */
  get binding(): number {
    return this.#underway.size
  }

  /** Resolves when nothing runs alongside any more. */
  async settled(): Promise<void> {
    while (this.#underway.size > 0) await Promise.all(this.#underway)
  }

  async #work(): Promise<void> {
    const { queue, signal } = this.#parts
    let begunMs = this.#clock.elapsed()
    for (;;) {
      await this.traffic.room()
      const next = queue.pop()
      if (next === undefined || signal.aborted) break
      try {
        const waiting = this.#attempt(next)
        if (waiting !== undefined) await waiting
      } catch (error) {
        // One pod that nobody can think about keeps no other from its node.
        this.#log.error(error, 'A pod could not be decided about', { pod: next.pod.key })
        this.#parts.cluster.forget(next.pod.uid)
        this.#fail(next, failureOf((error as Error).message, 'SchedulerError'))
      }
      if (this.#clock.elapsed() - begunMs < SLICE_MS) continue
      await new Promise((resolve) => setImmediate(resolve))
      begunMs = this.#clock.elapsed()
    }
    this.#isRunning = false
  }

  /** A promise only where the decision has to wait for somebody. */
  #attempt(queued: QueuedPod): Promise<void> | undefined {
    const { queue, cluster, handle } = this.#parts
    const { pod } = queued
    const profile = this.#profileOf(pod)
    const current = handle.of(Pods).get(pod.key)
    if (profile === undefined || current?.metadata.uid !== pod.uid || cluster.placed(pod.uid) !== undefined) {
      queue.done(pod.uid)
      return undefined
    }
    if (current.metadata.deletionTimestamp !== undefined) {
      this.#teller.skipped(profile, pod)
      queue.done(pod.uid)
      return undefined
    }
    if (cluster.nodes.length === 0) {
      this.#fail(queued, failureOf('no nodes available to schedule pods'))
      return undefined
    }
    const decider = this.#deciders.get(profile.name) as Decider
    const search = this.#search(decider, pod)
    const extenders = this.#parts.extenders.filter((one) => one.isInterestedIn(pod.pod))
    if (search.isUnfinished) return this.#takeTurns(queued, { profile, search, decider, extenders })
    if (search.feasible.length === 0) return this.#nowhere(queued, profile, { search, decider })
    if (extenders.length > 0) return this.#consult(queued, { profile, search, decider, extenders })
    const node = decider.best(search)
    handle.meter.decided(this.#clock.elapsed() - queued.begunMs)
    this.#commit(queued, { profile, pod, node, cases: search.cases })
    return undefined
  }

  /** What would be decided about a pod now, whether it has a place or not, and why. Changes nothing but where the next search begins. */
  consider(pod: Pod): Consideration | undefined {
    const { cluster } = this.#parts
    const info = new PodInfo(pod)
    const profile = this.#profileOf(info)
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

  /** Somebody needs long to find out which nodes fit: others have their turn in between. */
  async #takeTurns(queued: QueuedPod, consulted: Consulted): Promise<void> {
    const { search, decider } = consulted
    while (search.isUnfinished) {
      await turn()
      if (this.#parts.signal.aborted) return
      decider.resume(search)
    }
    return this.#consult(queued, consulted)
  }

  /** What happens meanwhile may take the pod or the nodes away. */
  async #consult(queued: QueuedPod, { profile, search, decider, extenders }: Consulted): Promise<void> {
    const { cluster, queue, handle } = this.#parts
    const { pod } = queued
    const refused = await filterBy(extenders, search, this.#log)
    const extra = search.feasible.length > 1 ? await pointsBy(extenders, search, this.#log) : undefined
    if (handle.of(Pods).get(pod.key)?.metadata.uid !== pod.uid || cluster.placed(pod.uid) !== undefined) {
      queue.done(pod.uid)
      return
    }
    const feasible = search.feasible.filter(({ name }) => cluster.node(name) !== undefined)
    if (refused !== undefined) this.#fail(queued, failureFrom(refused))
    else if (feasible.length === 0) await this.#nowhere(queued, profile, { search, decider })
    else {
      const node = decider.best({ pod, feasible }, extra)
      handle.meter.decided(this.#clock.elapsed() - queued.begunMs)
      this.#commit(queued, { profile, pod, node, cases: search.cases })
    }
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

  async #nowhere(
    queued: QueuedPod,
    profile: Profile,
    { search, decider }: { search: Search; decider: Decider },
  ): Promise<void> {
    const refusals = search.refused === undefined ? [...search.refusals.values()] : [search.refused]
    const broken = refusals.find(({ code }) => code === 'error')
    if (broken !== undefined) {
      this.#fail(queued, failureFrom(broken))
      return
    }
    await decider.settle(search)
    const begunMs = this.#clock.elapsed()
    const { reasons, nominate, isBroken } = await helpFor(profile, (plugin) => plugin.postFilter?.(search, decider))
    const code = isBroken === true ? 'error' : 'unschedulable'
    this.#way.ran('PostFilter', profile, reasons.length === 0 ? undefined : { code, reasons }, begunMs)
    this.#fail(queued, {
      reason: 'Unschedulable',
      message: explain(search, this.#parts.cluster.nodes.length, reasons),
      rejectors: new Set([...refusals.map(({ plugin }) => plugin), ...search.narrowedBy]),
      pendings: new Set(refusals.filter(({ code }) => code === 'pending').map(({ plugin }) => plugin)),
      nominate,
    })
  }

  #commit(queued: QueuedPod, choice: Choice): void {
    const { cluster, nominations, handle } = this.#parts
    const { pod, node } = choice
    cluster.assume(pod, node.name)
    const begunMs = this.#clock.elapsed()
    const refusal = reserve(choice)
    this.#way.ran('Reserve', choice.profile, refusal, begunMs)
    if (refusal !== undefined) {
      cluster.forget(pod.uid)
      this.#fail(queued, failureFrom(refusal))
      return
    }
    const reservedMs = this.#clock.elapsed()
    const permitted = permit(choice, handle)
    const isRefused = permitted !== undefined && 'code' in permitted
    this.#way.ran('Permit', choice.profile, isRefused ? permitted : undefined, reservedMs)
    if (permitted !== undefined && 'code' in permitted) {
      this.alongside(this.#takeBack(queued, choice, permitted))
      return
    }
    nominations.delete(pod.uid)
    const doing = this.#bind(queued, choice, permitted).catch((error: unknown) =>
      this.#takeBack(queued, choice, { code: 'error', reasons: [(error as Error).message], plugin: '' }),
    )
    this.alongside(doing)
  }

  /** Whether a pod that is on its way to its node could still be held up; it goes back to the queue. */
  holdUp(uid: string, why: string): boolean {
    return this.#way.holdUp(uid, why)
  }

  /** Nobody waits for it but `settled`. It must not fail. */
  alongside(doing: Promise<void>): void {
    const tracked = doing.finally(() => this.#underway.delete(tracked))
    this.#underway.add(tracked)
  }

  async #bind(
    queued: QueuedPod,
    choice: Choice,
    permitted: Promise<PluginRefusal | undefined> | undefined,
  ): Promise<void> {
    const { queue, handle } = this.#parts
    const { pod, node, profile } = choice
    const refusal = await this.#way.take(choice, permitted)
    if (refusal !== undefined) {
      await this.#takeBack(queued, choice, refusal)
      return
    }
    queue.done(pod.uid)
    handle.meter.attempted({
      result: 'scheduled',
      profile: profile.name,
      tookMs: this.#clock.elapsed() - queued.begunMs,
    })
    if (queued.isFlushed) handle.meter.scheduledAfterFlush()
    handle.meter.scheduled(queued.attempts, this.#clock.now() - queued.firstMs)
    this.#teller.placed(profile, pod, node.name)
    for (const { plugin } of profile.postBind) plugin.postBind?.(pod, node.name)
  }

  async #takeBack(queued: QueuedPod, choice: Choice, refusal: PluginRefusal): Promise<void> {
    const { cluster, queue, signal } = this.#parts
    // It was cut short, not refused: whoever schedules next sees how far it came.
    if (signal.aborted) return
    const undoing = unreserve(choice)
    if (undoing !== undefined) await undoing
    cluster.forget(choice.pod.uid)
    // Its room is free again, for itself as well.
    queue.tell({ about: 'AssignedPod', actions: ['delete'], now: undefined, old: choice.pod.pod })
    this.#fail(queued, failureFrom(refusal))
  }

  #fail(queued: QueuedPod, failure: Failure): void {
    const profile = this.#profileOf(queued.pod) as Profile
    const { queue, handle, nominations } = this.#parts
    const { reason, rejectors, pendings, nominate } = failure
    const result = reason === 'SchedulerError' ? 'error' : 'unschedulable'
    handle.meter.attempted({ result, profile: profile.name, tookMs: this.#clock.elapsed() - queued.begunMs })
    const current = handle.of(Pods).get(queued.pod.key)
    if (current?.metadata.uid !== queued.pod.uid || (current.spec.nodeName ?? '') !== '') {
      queue.done(queued.pod.uid)
      return
    }
    // Changes that came while it was in flight.
    const pod = current === queued.pod.pod ? queued.pod : new PodInfo(current)
    queue.putBack(queued, { rejectors, pendings, isError: reason === 'SchedulerError' }, pod)
    if (nominate !== undefined) nominations.set(pod, nominate)
    this.#teller.failed(profile, pod, failure)
  }

  #profileOf({ pod }: PodInfo): Profile | undefined {
    return this.#parts.profiles.get(pod.spec.schedulerName ?? 'default-scheduler')
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
