/**
 * The scheduler: takes one pod after the other, decides where it goes, and sees to it that it gets there. Decisions are
 * made one at a time; what follows from them runs alongside. Others in the process have their turn every few milliseconds.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { SeriesRecorder } from '#client/event-series.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'

import { type Choice, permit, reserve, unreserve } from './binding.ts'
import { type Consideration, Deliberation, type DeliberationParts, type Outcome } from './deliberation.ts'
import type { PluginRefusal } from './framework.ts'
import { GroupCycle } from './group-cycle.ts'
import { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'
import type { QueuedPod, SchedulingQueue } from './queue.ts'
import { type Failure, failureFrom, failureOf, Teller } from './telling.ts'
import { Traffic } from './traffic.ts'
import { WayToNode } from './way-to-node.ts'

/** Then others have a turn. */
const SLICE_MS = 5

export interface SchedulerParts extends DeliberationParts {
  readonly queue: SchedulingQueue
  readonly recorderOf: (profile: string) => SeriesRecorder
}

export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #deliberation: Deliberation
  /** Of pods that belong together; undefined: nobody looks at that. */
  readonly #groups: GroupCycle | undefined
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
    const { handle } = parts
    this.#teller = new Teller(handle, parts.recorderOf)
    this.traffic = new Traffic(handle.clock)
    this.#way = new WayToNode(parts, this.#teller, this.traffic)
    this.#deliberation = new Deliberation(parts, this.#way)
    this.#groups = handle.isEnabled('GenericWorkload') ? new GroupCycle(parts, this.#deliberation, this) : undefined
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
        this.fail(next, failureOf((error as Error).message, 'SchedulerError'))
      }
      if (this.#clock.elapsed() - begunMs < SLICE_MS) continue
      await new Promise((resolve) => setImmediate(resolve))
      begunMs = this.#clock.elapsed()
    }
    this.#isRunning = false
  }

  /** A promise only where the decision has to wait for somebody. */
  #attempt(queued: QueuedPod): Promise<void> | undefined {
    const { pod } = queued
    if (this.#groups !== undefined && pod.pod.spec.schedulingGroup !== undefined) return this.#groups.run(queued)
    const profile = this.#deliberation.profileOf(pod)
    if (profile === undefined) this.#parts.queue.done(pod.uid)
    if (profile === undefined || this.skips(queued)) return undefined
    const outcome = this.#deliberation.decide(pod, profile)
    if (outcome instanceof Promise) return outcome.then((late) => this.#act(queued, profile, late))
    this.#act(queued, profile, outcome)
    return undefined
  }

  /** Whether there is nothing to decide about a pod; then it is done. */
  skips({ pod }: QueuedPod): boolean {
    const { queue, handle } = this.#parts
    const isWanting = this.#deliberation.isWanting(pod)
    const isGoing = handle.of(Pods).get(pod.key)?.metadata.deletionTimestamp !== undefined
    const profile = this.#deliberation.profileOf(pod)
    if (isWanting && isGoing && profile !== undefined) this.#teller.skipped(profile, pod)
    if (!isWanting || isGoing) queue.done(pod.uid)
    return !isWanting || isGoing
  }

  #act(queued: QueuedPod, profile: Profile, outcome: Outcome): void {
    const { pod } = queued
    if (outcome === 'gone') this.#parts.queue.done(pod.uid)
    else if ('failure' in outcome) this.fail(queued, outcome.failure)
    else {
      this.#parts.handle.meter.decided(this.#clock.elapsed() - queued.begunMs)
      this.commit(queued, { profile, pod, ...outcome })
    }
  }

  /** What would be decided about a pod now, whether it has a place or not, and why. Changes nothing but where the next search begins. */
  consider(pod: Pod): Consideration | undefined {
    return this.#deliberation.consider(pod)
  }

  /** Sees to it that a pod gets to the node that was chosen for it. */
  commit(queued: QueuedPod, choice: Choice): void {
    const { cluster, nominations, handle } = this.#parts
    const { pod, node } = choice
    cluster.assume(pod, node.name)
    const begunMs = this.#clock.elapsed()
    const refusal = reserve(choice)
    this.#way.ran('Reserve', choice.profile, refusal, begunMs)
    if (refusal !== undefined) {
      cluster.forget(pod.uid)
      this.fail(queued, failureFrom(refusal))
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
    this.fail(queued, failureFrom(refusal))
  }

  /** It was not placed: it says why, and goes back to the queue. */
  fail(queued: QueuedPod, failure: Failure): void {
    const profile = this.#deliberation.profileOf(queued.pod) as Profile
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
}
