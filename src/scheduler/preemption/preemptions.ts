/**
 * Deletes preemption victims in the background, after it has set their DisruptionTarget condition. The preemptor is not
 * retried until its last victim is being deleted.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { referenceTo } from '#client/events/event-recorder.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { disruptionTarget } from '#model/disruption-target.ts'

import type { PodInfo } from '../cluster/pod-info.ts'
import type { Candidate, Handle } from '../framework/framework.ts'

export class Preemptions {
  readonly #handle: Handle
  /** By preemptor: the remaining victim, once all others are deleted. */
  readonly #underway = new Map<string, PodInfo | undefined>()

  constructor(handle: Handle) {
    this.#handle = handle
  }

  isUnderway(uid: string): boolean {
    if (!this.#underway.has(uid)) return false
    const last = this.#underway.get(uid)
    if (last === undefined) return true
    // The deletion event may arrive before the response.
    const current = this.#handle.of(Pods).get(last.key)
    return current?.metadata.uid === last.uid && current.metadata.deletionTimestamp === undefined
  }

  /** Never rejects: the next attempt of the pod retries. Resolves with the error. */
  async preempt(pod: PodInfo, { node, victims }: Candidate): Promise<Error | undefined> {
    const { clock, meter, log, activate } = this.#handle
    const staying = victims.filter(({ isTerminating }) => !isTerminating)
    const last = staying.at(-1)
    if (last === undefined) return undefined
    meter.preemptionChosen(victims.length)
    const begunMs = clock.elapsed()
    this.#underway.set(pod.uid, undefined)
    let failure = await this.#clearLowerNominations(pod, node)
    try {
      await Promise.all(staying.slice(0, -1).map((victim) => this.#evict(victim, pod, node)))
      this.#underway.set(pod.uid, last)
      await this.#evict(last, pod, node)
    } catch (error) {
      failure = error as Error
      log.info('Failed to preempt pod', { pod: pod.key, node, error })
    }
    this.#underway.delete(pod.uid)
    if (failure !== undefined) activate([pod.uid])
    meter.preemptionDone(failure === undefined ? 'success' : 'error', clock.elapsed() - begunMs)
    return failure
  }

  /** Clears the nominations of lower-priority pods on the node. Errors do not stop the preemption. */
  async #clearLowerNominations(pod: PodInfo, node: string): Promise<Error | undefined> {
    const lesser = this.#handle.nominations.on(node).filter(({ priority }) => priority < pod.priority)
    const nominated = lesser.filter(({ pod: { status } }) => (status.nominatedNodeName ?? '') !== '')
    const clearing = withCauses([causeOf(Pods, pod.pod)], () =>
      nominated.map(({ pod: { metadata } }) => this.#patch(metadata, { nominatedNodeName: null })),
    )
    const results = await Promise.allSettled(clearing)
    return results.find((result) => result.status === 'rejected')?.reason as Error | undefined
  }

  async #evict(victim: PodInfo, pod: PodInfo, node: string): Promise<void> {
    const { record, cancelBinding } = this.#handle
    let note = `Preempted by pod ${pod.uid} on node ${node}`
    if (cancelBinding(victim.uid, 'preempted')) note += ' (in kube-scheduler memory).'
    else if (!(await withCauses([causeOf(Pods, pod.pod)], () => this.#delete(victim.pod, pod.pod)))) return
    const related = referenceTo(pod.pod)
    record(referenceTo(victim.pod), { type: 'Normal', reason: 'Preempted', action: 'Preempting', note, related })
  }

  /** Returns whether the victim existed. */
  async #delete(victim: Pod, { spec }: Pod): Promise<boolean> {
    const { namespace, name = '', uid = '' } = victim.metadata
    const why = disruptionCondition(victim, spec.schedulerName ?? '', this.#handle.clock.now())
    try {
      if (why !== undefined) await this.#patch(victim.metadata, why)
      await this.#handle.client.delete(Pods, { namespace, name }, { preconditions: { uid } })
      return true
    } catch (error) {
      // Deleted, or replaced by another pod of the same name.
      if (isNotFound(error) || isConflict(error)) return false
      throw error
    }
  }

  async #patch({ namespace, name = '', uid }: Pod['metadata'], status: object): Promise<void> {
    const value = { metadata: { uid }, status }
    await this.#handle.client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value })
  }
}

/** Undefined: the condition is already set. */
function disruptionCondition(victim: Pod, scheduler: string, nowMs: number): object | undefined {
  const { metadata, status } = victim
  const message = `${scheduler}: preempting to accommodate a higher priority pod`
  const reason = 'PreemptionByScheduler'
  const old = status.conditions?.find(({ type }) => type === 'DisruptionTarget')
  if (old?.status === 'True' && old.reason === reason && old.message === message) return undefined
  const { generation } = metadata
  const why = { reason, message, ...(generation !== undefined && { observedGeneration: generation }) }
  return disruptionTarget(victim, why, nowMs)
}
