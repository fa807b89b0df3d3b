/**
 * Schedules the pods of a PodGroup together: each in turn, with earlier members assumed on their nodes. Permit plugins
 * decide whether enough members fit; if not, none is bound. Preemption runs once for the whole group.
 */
import type { Condition } from '#apis/meta/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import { type Assignment, reserve, runPermitPlugins, unreserve } from '../binding-cycle/run-plugins.ts'
import { Assumptions } from '../cluster/assumptions.ts'
import { groupKeyOf } from '../cluster/pod-groups.ts'
import type { Profile } from '../framework/profile.ts'
import { failureFrom, failureOf, type SchedulingFailure } from '../framework/status-reporter.ts'
import type { QueuedPod, SchedulingQueue } from '../queue/queue.ts'
import type { SchedulingCycle, SchedulingCycleParts, SchedulingOutcome } from './scheduling-cycle.ts'

const UNSCHEDULABLE = 'pod group is unschedulable'
const PREEMPTING = `${UNSCHEDULABLE}, pod group is waiting for preemption to complete`

export interface GroupCycleParts extends SchedulingCycleParts {
  readonly queue: SchedulingQueue
}

/** The scheduler's methods for decided pods. */
export interface GroupActions {
  skips(queued: QueuedPod): boolean
  commit(queued: QueuedPod, assignment: Assignment): void
  fail(queued: QueuedPod, failure: SchedulingFailure): void
  runInBackground(doing: Promise<void>): void
}

/** The result of one member. */
interface MemberResult {
  readonly queued: QueuedPod
  /** The selected node, or the nominated one. */
  readonly assignment?: Assignment
  /** Why the pod is not bound now. */
  readonly failure?: SchedulingFailure
  /** The reason for which Permit waits; undefined: approved. */
  readonly waitsFor?: string
}

interface GroupVerdict {
  readonly status: 'scheduled' | 'unschedulable' | 'preempting' | 'error'
  readonly message: string
}

export class GroupCycle {
  readonly #parts: GroupCycleParts
  readonly #schedulingCycle: SchedulingCycle
  readonly #actions: GroupActions
  /** PodGroups with conditions that are not in the informer yet. */
  readonly #assumedGroups: Assumptions<PodGroup>
  /** Serializes status writes of each group. */
  readonly #statusWrites = new Map<string, Promise<void>>()

  constructor(parts: GroupCycleParts, schedulingCycle: SchedulingCycle, actions: GroupActions) {
    this.#parts = parts
    this.#schedulingCycle = schedulingCycle
    this.#actions = actions
    this.#assumedGroups = new Assumptions(parts.handle.of(PodGroups))
  }

  /** Starts with a popped member; takes the others from the queue. */
  async run(first: QueuedPod): Promise<void> {
    const key = groupKeyOf(first.pod.pod) ?? ''
    const members = this.#collectMembers(first, key).filter((queued) => !this.#actions.skips(queued))
    const [leading] = members
    if (leading === undefined) return
    const profile = this.#schedulingCycle.profileOf(leading.pod)
    const other = members.find(({ pod }) => this.#schedulingCycle.profileOf(pod) !== profile)
    if (profile === undefined || other !== undefined) {
      const names = [other ?? leading, leading].map(({ pod }) => JSON.stringify(pod.pod.spec.schedulerName ?? ''))
      const why = `all pods in a single pod group should have the same .spec.schedulerName set, got: ${names.join(' and ')}`
      for (const queued of members) this.#actions.fail(queued, failureOf(why, 'SchedulerError'))
      return
    }
    const found: MemberResult[] = []
    const verdict = await this.#tryAll(members, profile, found)
    if (this.#parts.signal.aborted) return
    for (const [at, queued] of members.entries()) this.#submit(found[at] ?? { queued }, verdict)
    this.#writeCondition(key, verdict)
  }

  /** The members in the queue that may leave it: by priority, then by the time of their first attempt. */
  #collectMembers(first: QueuedPod, key: string): QueuedPod[] {
    const { cluster, queue } = this.#parts
    const others = cluster.groups.unscheduled(key).filter(({ uid }) => uid !== first.pod.uid)
    const members = [first, ...others.flatMap(({ uid }) => queue.popByUid(uid) ?? [])]
    return members.sort((a, b) => b.pod.priority - a.pod.priority || a.firstMs - b.firstMs)
  }

  /** Ends all assumptions before it returns. */
  async #tryAll(members: readonly QueuedPod[], profile: Profile, found: MemberResult[]): Promise<GroupVerdict> {
    let verdict: GroupVerdict = { status: 'unschedulable', message: UNSCHEDULABLE }
    let isPreempting = false
    try {
      for (const queued of members) {
        const outcome = await this.#schedulingCycle.decide(queued.pod, profile)
        const one = this.#place(queued, profile, outcome)
        found.push(one)
        if (one.failure?.reason === 'SchedulerError') {
          const message = `failed to schedule other pod from a pod group: ${one.failure.message}`
          return { status: 'error', message }
        }
        if (one.assignment === undefined) continue
        isPreempting ||= one.failure !== undefined
        if (one.waitsFor !== undefined) continue
        verdict = isPreempting ? { status: 'preempting', message: PREEMPTING } : { status: 'scheduled', message: '' }
      }
      return verdict
    } catch (error) {
      // A failing group must not block others.
      this.#parts.handle.log.error(error, 'Failed to schedule pod group', { pod: members[0]?.pod.key })
      return { status: 'error', message: (error as Error).message }
    } finally {
      for (const { assignment } of found.toReversed()) if (assignment !== undefined) this.#undoAssignment(assignment)
      for (const { pod } of members) this.#parts.cluster.forget(pod.uid)
    }
  }

  #place(queued: QueuedPod, profile: Profile, outcome: SchedulingOutcome): MemberResult {
    const { cluster, nominations } = this.#parts
    const { pod } = queued
    if (outcome === 'gone') return { queued, failure: failureOf(`pod ${pod.key} is gone`) }
    const failure = 'failure' in outcome ? outcome.failure : undefined
    const node = 'node' in outcome ? outcome.node : cluster.node(outcome.failure.nominate ?? '')
    if (node === undefined) return { queued, ...(failure !== undefined && { failure }) }
    const assignment = { profile, pod, node, cycleState: outcome.cycleState }
    cluster.assume(pod, node.name)
    nominations.delete(pod.uid)
    const refusal = reserve(assignment)
    if (refusal !== undefined) {
      cluster.forget(pod.uid)
      return { queued, failure: failureFrom(refusal) }
    }
    const permission = runPermitPlugins(assignment)
    if (permission !== undefined && 'code' in permission) {
      this.#undoAssignment(assignment)
      return { queued, failure: failureFrom(permission) }
    }
    return {
      queued,
      assignment,
      ...(failure !== undefined && { failure }),
      ...(permission !== undefined && { waitsFor: permission.reason }),
    }
  }

  #undoAssignment(assignment: Assignment): void {
    const { cluster, nominations } = this.#parts
    const { pod } = assignment
    // Nothing has been written yet, so this needs no wait.
    void unreserve(assignment)
    cluster.forget(pod.uid)
    const { nominatedNodeName = '' } = pod.pod.status
    if (nominatedNodeName !== '') nominations.set(pod, nominatedNodeName)
  }

  #submit({ queued, assignment, failure, waitsFor = '' }: MemberResult, { status, message }: GroupVerdict): void {
    const actions = this.#actions
    if (!this.#schedulingCycle.isUnscheduled(queued.pod)) {
      this.#parts.queue.done(queued.pod.uid)
      return
    }
    if (status === 'error') {
      actions.fail(queued, failure?.reason === 'SchedulerError' ? failure : failureOf(message, 'SchedulerError'))
      return
    }
    if (assignment === undefined) {
      actions.fail(queued, failure ?? failureOf(message))
      return
    }
    if (status === 'preempting') {
      actions.fail(queued, failure ?? { ...failureOf(message), nominate: assignment.node.name })
      return
    }
    if (status === 'scheduled' && failure === undefined) {
      actions.commit(queued, assignment)
      return
    }
    actions.fail(queued, failureOf([UNSCHEDULABLE, waitsFor].filter((one) => one !== '').join(', ')))
  }

  /** Writes the group's condition. A group once scheduled stays so, whatever happens to later pods. */
  #writeCondition(key: string, verdict: GroupVerdict): void {
    const { clock, of } = this.#parts.handle
    const stored = of(PodGroups).get(key)
    const group = this.#assumedGroups.get(key)
    const condition = group === undefined ? undefined : conditionOf(group, verdict, timeOf(clock.now()))
    if (stored === undefined || condition === undefined) return
    const others = (stored.status.conditions ?? []).filter(({ type }) => type !== condition.type)
    this.#assumedGroups.assume({ ...stored, status: { ...stored.status, conditions: [...others, condition] } }, stored)
    const before = this.#statusWrites.get(key) ?? Promise.resolve()
    const statusWrites = before
      .then(() => this.#patch(stored, condition))
      .finally(() => this.#statusWrites.get(key) === statusWrites && this.#statusWrites.delete(key))
    this.#statusWrites.set(key, statusWrites)
    this.#actions.runInBackground(statusWrites)
  }

  async #patch(group: PodGroup, condition: Condition): Promise<void> {
    const { client, log } = this.#parts.handle
    const { namespace, name = '' } = group.metadata
    try {
      const value = { status: { conditions: [condition] } }
      const where = { namespace, name, subresource: 'status' }
      await withCauses([causeOf(PodGroups, group)], () => client.patch(PodGroups, where, { type: 'strategic', value }))
    } catch (error) {
      // The next cycle writes it again.
      this.#assumedGroups.forget(keyOf(namespace, name))
      log.info('Failed to update PodGroup status', { podGroup: keyOf(namespace, name), error })
    }
  }
}

const REASONS = {
  scheduled: 'Scheduled',
  unschedulable: 'Unschedulable',
  preempting: 'Unschedulable',
  error: 'SchedulerError',
} as const

/** Undefined: the condition is already the same or better. */
function conditionOf(group: PodGroup, { status, message }: GroupVerdict, now: string): Condition | undefined {
  const old = group.status.conditions?.find(({ type }) => type === 'PodGroupScheduled')
  const is = status === 'scheduled' ? 'True' : 'False'
  if (old?.status === 'True' && is !== 'True') return undefined
  const { generation = 0 } = group.metadata
  const fresh: Condition = {
    type: 'PodGroupScheduled',
    status: is,
    ...(generation > 0 && { observedGeneration: generation }),
    lastTransitionTime: old?.status === is ? old.lastTransitionTime : now,
    reason: REASONS[status],
    message,
  }
  return semanticEqual(old, fresh) ? undefined : fresh
}
