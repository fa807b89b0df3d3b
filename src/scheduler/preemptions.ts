/**
 * Room being made for pods: their victims are told why, and deleted, while others are scheduled. A pod for which that is
 * under way is not thought of until the last of its victims has begun to go.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { referenceTo } from '#client/event-recorder.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { disruptionTarget } from '#model/disruption-target.ts'

import type { Candidate, Handle } from './framework.ts'
import type { PodInfo } from './pod-info.ts'

export class Preemptions {
  readonly #handle: Handle
  /** By the pod that room is made for: the victim that is left, once all others have been sent away. */
  readonly #underway = new Map<string, PodInfo | undefined>()

  constructor(handle: Handle) {
    this.#handle = handle
  }

  isUnderway(uid: string): boolean {
    if (!this.#underway.has(uid)) return false
    const last = this.#underway.get(uid)
    if (last === undefined) return true
    // News of its end may come before the answer to our request.
    const current = this.#handle.of(Pods).get(last.key)
    return current?.metadata.uid === last.uid && current.metadata.deletionTimestamp === undefined
  }

  /** Never fails: what could not be done is tried again with the pod. Resolves with what went wrong. */
  async make(pod: PodInfo, { node, victims }: Candidate): Promise<Error | undefined> {
    const { clock, meter, log, activate } = this.#handle
    const staying = victims.filter(({ isTerminating }) => !isTerminating)
    const last = staying.at(-1)
    if (last === undefined) return undefined
    meter.preemptionChosen(victims.length)
    const begunMs = clock.elapsed()
    this.#underway.set(pod.uid, undefined)
    let failure = await this.#clearLesser(pod, node)
    try {
      await Promise.all(staying.slice(0, -1).map((victim) => this.#sendAway(victim, pod, node)))
      this.#underway.set(pod.uid, last)
      await this.#sendAway(last, pod, node)
    } catch (error) {
      failure = error as Error
      log.info('Room could not be made for a pod', { pod: pod.key, node, error })
    }
    this.#underway.delete(pod.uid)
    if (failure !== undefined) activate([pod.uid])
    meter.preemptionDone(failure === undefined ? 'success' : 'error', clock.elapsed() - begunMs)
    return failure
  }

  /** Less important pods that were promised the same room look elsewhere. What goes wrong holds nobody up. */
  async #clearLesser(pod: PodInfo, node: string): Promise<Error | undefined> {
    const lesser = this.#handle.nominations.on(node).filter(({ priority }) => priority < pod.priority)
    const nominated = lesser.filter(({ pod: { status } }) => (status.nominatedNodeName ?? '') !== '')
    const clearing = nominated.map(({ pod: { metadata } }) => this.#patch(metadata, { nominatedNodeName: null }))
    const results = await Promise.allSettled(clearing)
    return results.find((result) => result.status === 'rejected')?.reason as Error | undefined
  }

  async #sendAway(victim: PodInfo, pod: PodInfo, node: string): Promise<void> {
    const { record, holdUp } = this.#handle
    let note = `Preempted by pod ${pod.uid} on node ${node}`
    if (holdUp(victim.uid, 'preempted')) note += ' (in kube-scheduler memory).'
    else if (!(await this.#delete(victim.pod, pod.pod))) return
    const related = referenceTo(pod.pod)
    record(referenceTo(victim.pod), { type: 'Normal', reason: 'Preempted', action: 'Preempting', note, related })
  }

  /** Whether it was there. */
  async #delete(victim: Pod, { spec }: Pod): Promise<boolean> {
    const { namespace, name = '', uid = '' } = victim.metadata
    const why = toldWhy(victim, spec.schedulerName ?? '', this.#handle.clock.now())
    try {
      if (why !== undefined) await this.#patch(victim.metadata, why)
      await this.#handle.client.delete(Pods, { namespace, name }, { preconditions: { uid } })
      return true
    } catch (error) {
      // Gone, or gone and come again as another.
      if (isNotFound(error) || isConflict(error)) return false
      throw error
    }
  }

  async #patch({ namespace, name = '', uid }: Pod['metadata'], status: object): Promise<void> {
    const value = { metadata: { uid }, status }
    await this.#handle.client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value })
  }
}

/** Undefined: it has been told already. */
function toldWhy(victim: Pod, scheduler: string, nowMs: number): object | undefined {
  const { metadata, status } = victim
  const message = `${scheduler}: preempting to accommodate a higher priority pod`
  const reason = 'PreemptionByScheduler'
  const old = status.conditions?.find(({ type }) => type === 'DisruptionTarget')
  if (old?.status === 'True' && old.reason === reason && old.message === message) return undefined
  const { generation } = metadata
  const why = { reason, message, ...(generation !== undefined && { observedGeneration: generation }) }
  return disruptionTarget(victim, why, nowMs)
}
