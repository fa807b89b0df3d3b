/**
 * Pods of a group are decided about together: each in turn, with those before it taken to be where they were put, and only when
 * all are through does any of them go. Whether those that found a place are enough is for those to say who permit; when they are
 * not, nobody goes. Room that others have to make is made for the group as a whole.
 */
import type { Condition } from '#apis/meta/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import { Assumptions } from './assumptions.ts'
import { askPermission, type Choice, reserve, unreserve } from './binding.ts'
import type { Deliberation, DeliberationParts, Outcome } from './deliberation.ts'
import { groupKeyOf } from './pod-groups.ts'
import type { Profile } from './profile.ts'
import type { QueuedPod, SchedulingQueue } from './queue.ts'
import { type Failure, failureFrom, failureOf } from './telling.ts'

const UNSCHEDULABLE = 'pod group is unschedulable'
const PREEMPTING = `${UNSCHEDULABLE}, pod group is waiting for preemption to complete`

export interface GroupCycleParts extends DeliberationParts {
  readonly queue: SchedulingQueue
}

/** What the scheduler does with a pod that was decided about. */
export interface Acting {
  skips(queued: QueuedPod): boolean
  commit(queued: QueuedPod, choice: Choice): void
  fail(queued: QueuedPod, failure: Failure): void
  alongside(doing: Promise<void>): void
}

/** What came of one pod. */
interface Found {
  readonly queued: QueuedPod
  /** Where it goes, or would go once others have made room. */
  readonly choice?: Choice
  /** Why it does not go there now. */
  readonly failure?: Failure
  /** What those said who permit: nothing, or what they wait for. */
  readonly waitsFor?: string
}

interface GroupVerdict {
  readonly status: 'scheduled' | 'unschedulable' | 'preempting' | 'error'
  readonly message: string
}

export class GroupCycle {
  readonly #parts: GroupCycleParts
  readonly #deliberation: Deliberation
  readonly #acting: Acting
  /** As they are once they have been told. */
  readonly #told: Assumptions<PodGroup>
  /** One after the other for each. */
  readonly #telling = new Map<string, Promise<void>>()

  constructor(parts: GroupCycleParts, deliberation: Deliberation, acting: Acting) {
    this.#parts = parts
    this.#deliberation = deliberation
    this.#acting = acting
    this.#told = new Assumptions(parts.handle.of(PodGroups))
  }

  /** With the first of them, who was popped from the queue; the others are taken from it. */
  async run(first: QueuedPod): Promise<void> {
    const key = groupKeyOf(first.pod.pod) ?? ''
    const members = this.#gather(first, key).filter((queued) => !this.#acting.skips(queued))
    const [leading] = members
    if (leading === undefined) return
    const profile = this.#deliberation.profileOf(leading.pod)
    const other = members.find(({ pod }) => this.#deliberation.profileOf(pod) !== profile)
    if (profile === undefined || other !== undefined) {
      const names = [other ?? leading, leading].map(({ pod }) => JSON.stringify(pod.pod.spec.schedulerName ?? ''))
      const why = `all pods in a single pod group should have the same .spec.schedulerName set, got: ${names.join(' and ')}`
      for (const queued of members) this.#acting.fail(queued, failureOf(why, 'SchedulerError'))
      return
    }
    const found: Found[] = []
    const verdict = await this.#tryAll(members, profile, found)
    if (this.#parts.signal.aborted) return
    for (const [at, queued] of members.entries()) this.#submit(found[at] ?? { queued }, verdict)
    this.#tell(key, verdict)
  }

  /** Those of the group that are in the queue and may leave it, the most important first, then who was first thought of. */
  #gather(first: QueuedPod, key: string): QueuedPod[] {
    const { cluster, queue } = this.#parts
    const others = cluster.groups.unscheduled(key).filter(({ uid }) => uid !== first.pod.uid)
    const members = [first, ...others.flatMap(({ uid }) => queue.popThis(uid) ?? [])]
    return members.sort((a, b) => b.pod.priority - a.pod.priority || a.firstMs - b.firstMs)
  }

  /** Afterwards nobody is anywhere any more. */
  async #tryAll(members: readonly QueuedPod[], profile: Profile, found: Found[]): Promise<GroupVerdict> {
    let verdict: GroupVerdict = { status: 'unschedulable', message: UNSCHEDULABLE }
    let isPreempting = false
    try {
      for (const queued of members) {
        const outcome = await this.#deliberation.decide(queued.pod, profile)
        const one = this.#place(queued, profile, outcome)
        found.push(one)
        if (one.failure?.reason === 'SchedulerError') {
          const message = `failed to schedule other pod from a pod group: ${one.failure.message}`
          return { status: 'error', message }
        }
        if (one.choice === undefined) continue
        isPreempting ||= one.failure !== undefined
        if (one.waitsFor !== undefined) continue
        verdict = isPreempting ? { status: 'preempting', message: PREEMPTING } : { status: 'scheduled', message: '' }
      }
      return verdict
    } catch (error) {
      // Whoever breaks keeps no other group from its nodes.
      this.#parts.handle.log.error(error, 'A group of pods could not be decided about', { pod: members[0]?.pod.key })
      return { status: 'error', message: (error as Error).message }
    } finally {
      for (const { choice } of found.toReversed()) if (choice !== undefined) this.#takeBack(choice)
      for (const { pod } of members) this.#parts.cluster.forget(pod.uid)
    }
  }

  #place(queued: QueuedPod, profile: Profile, outcome: Outcome): Found {
    const { cluster, nominations } = this.#parts
    const { pod } = queued
    if (outcome === 'gone') return { queued, failure: failureOf(`pod ${pod.key} is gone`) }
    const failure = 'failure' in outcome ? outcome.failure : undefined
    const node = 'node' in outcome ? outcome.node : cluster.node(outcome.failure.nominate ?? '')
    if (node === undefined) return { queued, ...(failure !== undefined && { failure }) }
    const choice = { profile, pod, node, cases: outcome.cases }
    cluster.assume(pod, node.name)
    nominations.delete(pod.uid)
    const refusal = reserve(choice)
    if (refusal !== undefined) {
      cluster.forget(pod.uid)
      return { queued, failure: failureFrom(refusal) }
    }
    const permission = askPermission(choice)
    if (permission !== undefined && 'code' in permission) {
      this.#takeBack(choice)
      return { queued, failure: failureFrom(permission) }
    }
    return {
      queued,
      choice,
      ...(failure !== undefined && { failure }),
      ...(permission !== undefined && { waitsFor: permission.reason }),
    }
  }

  #takeBack(choice: Choice): void {
    const { cluster, nominations } = this.#parts
    const { pod } = choice
    // Nothing has been written: it takes no time.
    void unreserve(choice)
    cluster.forget(pod.uid)
    const { nominatedNodeName = '' } = pod.pod.status
    if (nominatedNodeName !== '') nominations.set(pod, nominatedNodeName)
  }

  #submit({ queued, choice, failure, waitsFor = '' }: Found, { status, message }: GroupVerdict): void {
    const acting = this.#acting
    if (!this.#deliberation.isWanting(queued.pod)) {
      this.#parts.queue.done(queued.pod.uid)
      return
    }
    if (status === 'error') {
      acting.fail(queued, failure?.reason === 'SchedulerError' ? failure : failureOf(message, 'SchedulerError'))
      return
    }
    if (choice === undefined) {
      acting.fail(queued, failure ?? failureOf(message))
      return
    }
    if (status === 'preempting') {
      acting.fail(queued, failure ?? { ...failureOf(message), nominate: choice.node.name })
      return
    }
    if (status === 'scheduled' && failure === undefined) {
      acting.commit(queued, choice)
      return
    }
    acting.fail(queued, failureOf([UNSCHEDULABLE, waitsFor].filter((one) => one !== '').join(', ')))
  }

  /** The group's condition. What was scheduled once stays so, whatever becomes of further pods. */
  #tell(key: string, verdict: GroupVerdict): void {
    const { clock, of } = this.#parts.handle
    const stored = of(PodGroups).get(key)
    const group = this.#told.get(key)
    const condition = group === undefined ? undefined : conditionOf(group, verdict, timeOf(clock.now()))
    if (stored === undefined || condition === undefined) return
    const others = (stored.status.conditions ?? []).filter(({ type }) => type !== condition.type)
    this.#told.assume({ ...stored, status: { ...stored.status, conditions: [...others, condition] } }, stored)
    const before = this.#telling.get(key) ?? Promise.resolve()
    const telling = before
      .then(() => this.#patch(stored, condition))
      .finally(() => this.#telling.get(key) === telling && this.#telling.delete(key))
    this.#telling.set(key, telling)
    this.#acting.alongside(telling)
  }

  async #patch({ metadata: { namespace, name = '' } }: PodGroup, condition: Condition): Promise<void> {
    const { client, log } = this.#parts.handle
    try {
      const value = { status: { conditions: [condition] } }
      await client.patch(PodGroups, { namespace, name, subresource: 'status' }, { type: 'strategic', value })
    } catch (error) {
      // It is told next time.
      this.#told.forget(keyOf(namespace, name))
      log.info('A group of pods could not be told what became of it', { podGroup: keyOf(namespace, name), error })
    }
  }
}

const REASONS = {
  scheduled: 'Scheduled',
  unschedulable: 'Unschedulable',
  preempting: 'Unschedulable',
  error: 'SchedulerError',
} as const

/** Undefined: it says so already, or better. */
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
