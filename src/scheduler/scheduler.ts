/**
 * The scheduler loop: pops pods one after the other, runs the scheduling cycle, and starts the binding cycle in the
 * background. Yields to the event loop every few milliseconds.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { SeriesRecorder } from '#client/events/event-series.ts'
import { withCauses } from '#lib/causes.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import { BindingCycle } from './binding-cycle/binding-cycle.ts'
import { BindingLimiter } from './binding-cycle/binding-limiter.ts'
import { type Assignment, permit, reserve, unreserve } from './binding-cycle/run-plugins.ts'
import { PodInfo } from './cluster/pod-info.ts'
import type { PluginRefusal } from './framework/framework.ts'
import type { Profile } from './framework/profile.ts'
import { failureFrom, failureOf, type SchedulingFailure, StatusReporter } from './framework/status-reporter.ts'
import { causeOfEvent, podEvent } from './queue/cluster-events.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import { GroupCycle } from './scheduling-cycle/group-cycle.ts'
import {
  type DryRunResult,
  SchedulingCycle,
  type SchedulingCycleParts,
  type SchedulingOutcome,
} from './scheduling-cycle/scheduling-cycle.ts'

/** The time slice before the loop yields. */
const SLICE_MS = 5

export interface SchedulerParts extends SchedulingCycleParts {
  readonly queue: SchedulingQueue
  readonly recorderOf: (profile: string) => SeriesRecorder
}

export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #schedulingCycle: SchedulingCycle
  /** Undefined if the gate is off. */
  readonly #groups: GroupCycle | undefined
  readonly #reporter: StatusReporter
  readonly #clock: Clock
  readonly #log: Logger
  readonly bindingLimiter: BindingLimiter
  #hasBegun = false
  #isRunning = false
  /** Background work. */
  readonly #background = new Set<Promise<void>>()
  readonly #bindingCycle: BindingCycle

  constructor(parts: SchedulerParts) {
    this.#parts = parts
    const { handle } = parts
    this.#reporter = new StatusReporter(handle, parts.recorderOf)
    this.bindingLimiter = new BindingLimiter(handle.clock)
    this.#bindingCycle = new BindingCycle(parts, this.#reporter, this.bindingLimiter)
    this.#schedulingCycle = new SchedulingCycle(parts, this.#bindingCycle)
    this.#groups = handle.isEnabled('GenericWorkload') ? new GroupCycle(parts, this.#schedulingCycle, this) : undefined
    this.#clock = handle.clock
    this.#log = handle.log
  }

  /** Starts scheduling, after the caches have synced. */
  begin(): void {
    this.#hasBegun = true
    this.wake()
  }

  /** Called when a pod can be popped. */
  wake(): void {
    if (!this.#hasBegun || this.#isRunning || this.#parts.signal.aborted) return
    this.#isRunning = true
    // The loop outlives the write whose event may have woken it.
    withCauses([], () => setImmediate(() => void this.#work()))
  }

  /** The number of running binding cycles. */
  get binding(): number {
    return this.#background.size
  }

  /** Resolves when no background work is left. */
  async settled(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  async #work(): Promise<void> {
    const { queue, signal } = this.#parts
    let begunMs = this.#clock.elapsed()
    for (;;) {
      await this.bindingLimiter.capacity()
      const next = queue.pop()
      if (next === undefined || signal.aborted) break
      try {
        const waiting = this.#attempt(next)
        if (waiting !== undefined) await waiting
      } catch (error) {
        // An exception in one pod must not stop the others.
        this.#log.error(error, 'Failed to schedule pod', { pod: next.pod.key })
        this.#parts.cluster.forget(next.pod.uid)
        this.fail(next, failureOf((error as Error).message, 'SchedulerError'))
      }
      if (this.#clock.elapsed() - begunMs < SLICE_MS) continue
      await new Promise((resolve) => setImmediate(resolve))
      begunMs = this.#clock.elapsed()
    }
    this.#isRunning = false
  }

  /** Returns a promise only if the decision must wait. */
  #attempt(queued: QueuedPod): Promise<void> | undefined {
    const { pod } = queued
    if (this.#groups !== undefined && pod.pod.spec.schedulingGroup !== undefined) return this.#groups.run(queued)
    const profile = this.#schedulingCycle.profileOf(pod)
    if (profile === undefined) this.#parts.queue.done(pod.uid)
    if (profile === undefined || this.skips(queued)) return undefined
    const outcome = this.#schedulingCycle.decide(pod, profile)
    if (outcome instanceof Promise) return outcome.then((late) => this.#act(queued, profile, late))
    this.#act(queued, profile, outcome)
    return undefined
  }

  /** Whether the pod needs no scheduling; marks it done then. */
  skips({ pod }: QueuedPod): boolean {
    const { queue, handle } = this.#parts
    const isUnscheduled = this.#schedulingCycle.isUnscheduled(pod)
    const isGoing = handle.of(Pods).get(pod.key)?.metadata.deletionTimestamp !== undefined
    const profile = this.#schedulingCycle.profileOf(pod)
    if (isUnscheduled && isGoing && profile !== undefined) this.#reporter.skipped(profile, pod)
    if (!isUnscheduled || isGoing) queue.done(pod.uid)
    return !isUnscheduled || isGoing
  }

  #act(queued: QueuedPod, profile: Profile, outcome: SchedulingOutcome): void {
    const { pod } = queued
    if (outcome === 'gone') this.#parts.queue.done(pod.uid)
    else if ('failure' in outcome) this.fail(queued, outcome.failure)
    else {
      this.#parts.handle.meter.decided(this.#clock.elapsed() - queued.begunMs)
      this.commit(queued, { profile, pod, ...outcome })
    }
  }

  /** Decides about a pod without acting, whether it has a node or not. Only the start of the next search changes. */
  dryRun(pod: Pod): DryRunResult | undefined {
    return this.#schedulingCycle.dryRun(pod)
  }

  /** Assumes the pod on the selected node, reserves, and starts the binding cycle. */
  commit(queued: QueuedPod, assignment: Assignment): void {
    const { cluster, nominations, handle } = this.#parts
    const { pod, node } = assignment
    cluster.assume(pod, node.name)
    const begunMs = this.#clock.elapsed()
    const refusal = reserve(assignment)
    this.#bindingCycle.ran('Reserve', assignment.profile, refusal, begunMs)
    if (refusal !== undefined) {
      cluster.forget(pod.uid)
      this.fail(queued, failureFrom(refusal))
      return
    }
    const reservedMs = this.#clock.elapsed()
    const permitted = permit(assignment, handle)
    const isRefused = permitted !== undefined && 'code' in permitted
    this.#bindingCycle.ran('Permit', assignment.profile, isRefused ? permitted : undefined, reservedMs)
    if (permitted !== undefined && 'code' in permitted) {
      this.runInBackground(this.#undoAssignment(queued, assignment, permitted))
      return
    }
    nominations.delete(pod.uid)
    const work = this.#bind(queued, assignment, permitted).catch((error: unknown) =>
      this.#undoAssignment(queued, assignment, { code: 'error', reasons: [(error as Error).message], plugin: '' }),
    )
    this.runInBackground(work)
  }

  /** Cancels the binding of a pod that is waiting in Permit or PreBind. Returns whether it was; the pod is requeued. */
  cancelBinding(uid: string, why: string): boolean {
    return this.#bindingCycle.cancelBinding(uid, why)
  }

  /** Only `settled` waits for this work. It must not reject. */
  runInBackground(work: Promise<void>): void {
    const tracked = work.finally(() => this.#background.delete(tracked))
    this.#background.add(tracked)
  }

  async #bind(
    queued: QueuedPod,
    assignment: Assignment,
    permitted: Promise<PluginRefusal | undefined> | undefined,
  ): Promise<void> {
    const { queue, handle } = this.#parts
    const { pod, node, profile } = assignment
    const woken = queued.wokenBy === undefined ? undefined : causeOfEvent(queued.wokenBy)
    const causes = woken === undefined ? [] : [woken]
    const refusal = await withCauses(causes, () => this.#bindingCycle.run(assignment, permitted))
    if (refusal !== undefined) {
      await this.#undoAssignment(queued, assignment, refusal)
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
    this.#reporter.placed(profile, pod, node.name)
    for (const { plugin } of profile.postBind) plugin.postBind?.(pod, node.name)
  }

  async #undoAssignment(queued: QueuedPod, assignment: Assignment, refusal: PluginRefusal): Promise<void> {
    const { cluster, queue, signal } = this.#parts
    // Aborted, not rejected: the next scheduler continues from the stored state.
    if (signal.aborted) return
    const undoing = unreserve(assignment)
    if (undoing !== undefined) await undoing
    cluster.forget(assignment.pod.uid)
    // The released resources may help any pod, including this one.
    const freed = podEvent('AssignedPod', undefined, assignment.pod.pod)
    if (freed !== undefined) queue.handleEvent(freed)
    this.fail(queued, failureFrom(refusal))
  }

  /** Reports a failed attempt and requeues the pod. */
  fail(queued: QueuedPod, failure: SchedulingFailure): void {
    const profile = this.#schedulingCycle.profileOf(queued.pod) as Profile
    const { queue, handle, nominations } = this.#parts
    const { reason, rejectors, pendings, nominate } = failure
    const result = reason === 'SchedulerError' ? 'error' : 'unschedulable'
    handle.meter.attempted({ result, profile: profile.name, tookMs: this.#clock.elapsed() - queued.begunMs })
    const current = handle.of(Pods).get(queued.pod.key)
    if (current?.metadata.uid !== queued.pod.uid || (current.spec.nodeName ?? '') !== '') {
      queue.done(queued.pod.uid)
      return
    }
    // The pod may have changed during the attempt.
    const pod = current === queued.pod.pod ? queued.pod : new PodInfo(current)
    queue.requeue(queued, { rejectors, pendings, isError: reason === 'SchedulerError' }, pod)
    if (nominate !== undefined) nominations.set(pod, nominate)
    this.#reporter.failed(profile, pod, failure)
  }
}
