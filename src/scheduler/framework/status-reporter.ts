/**
 * Reports scheduling results: events, the PodScheduled condition and the nominated node. A failed write is retried by
 * the next attempt.
 */
import { type Pod, type PodCondition, Pods } from '#apis/core/v1.ts'
import { referenceTo } from '#client/events/event-recorder.ts'
import type { SeriesRecorder } from '#client/events/event-series.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { timeOf } from '#meta/time.ts'

import type { PodInfo } from '../cluster/pod-info.ts'
import type { Handle, PluginRefusal } from './framework.ts'
import type { Profile } from './profile.ts'

/** Why a pod was not scheduled, as in its condition. */
export interface SchedulingFailure {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
  readonly rejectors: ReadonlySet<string>
  readonly pendings: ReadonlySet<string>
  /** The node to nominate; empty: clears the nomination. */
  readonly nominate?: string | undefined
}

const NO_PLUGINS: ReadonlySet<string> = new Set()

/** Without a rejecting plugin. */
export function failureOf(message: string, reason: SchedulingFailure['reason'] = 'Unschedulable'): SchedulingFailure {
  return { reason, message, rejectors: NO_PLUGINS, pendings: NO_PLUGINS, nominate: '' }
}

/** From the rejection of the selected node, or from an error. */
export function failureFrom({ code, reasons, plugin }: PluginRefusal): SchedulingFailure {
  if (code === 'error') return failureOf(reasons.join(', '), 'SchedulerError')
  return {
    reason: 'Unschedulable',
    message: `0/1 nodes are available: ${reasons.map((reason) => `1 ${reason}`).join(', ')}.`,
    rejectors: new Set([plugin]),
    pendings: code === 'pending' ? new Set([plugin]) : NO_PLUGINS,
    nominate: '',
  }
}

export class StatusReporter {
  readonly #handle: Handle
  /** By profile name. */
  readonly #recorderOf: (profile: string) => SeriesRecorder

  constructor(handle: Handle, recorderOf: (profile: string) => SeriesRecorder) {
    this.#handle = handle
    this.#recorderOf = recorderOf
  }

  placed(profile: Profile, { pod, key }: PodInfo, node: string): void {
    const note = `Successfully assigned ${key} to ${node}`
    this.#record(profile, pod, { type: 'Normal', reason: 'Scheduled', action: 'Binding', note })
  }

  skipped(profile: Profile, { pod, key }: PodInfo): void {
    this.#warn(profile, pod, `skip schedule deleting pod: ${key}`)
  }

  failed(profile: Profile, { pod }: PodInfo, failure: SchedulingFailure): void {
    this.#warn(profile, pod, failure.message)
    const { nominate } = failure
    const condition = conditionOf(pod, failure, timeOf(this.#handle.clock.now()))
    const isNominated = nominate !== undefined && nominate !== (pod.status.nominatedNodeName ?? '')
    if (condition === undefined && !isNominated) return
    void this.#patch(pod, {
      ...(condition !== undefined && { conditions: [condition] }),
      ...(isNominated && { nominatedNodeName: nominate }),
    })
  }

  /** Nominates the pod for its assigned node. */
  async nominated({ pod }: PodInfo, node: string): Promise<void> {
    if (pod.status.nominatedNodeName !== node) await this.#patch(pod, { nominatedNodeName: node })
  }

  #warn(profile: Profile, pod: Pod, note: string): void {
    this.#record(profile, pod, { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', note })
  }

  #record({ name }: Profile, pod: Pod, note: Parameters<SeriesRecorder['record']>[1]): void {
    this.#recorderOf(name).record(referenceTo(pod), note)
  }

  async #patch(pod: Pod, status: object): Promise<void> {
    const { client, log } = this.#handle
    const { namespace, name = '', uid } = pod.metadata
    try {
      const value = { metadata: { uid }, status }
      const where = { namespace, name, subresource: 'status' }
      await withCauses([causeOf(Pods, pod)], () => client.patch(Pods, where, { type: 'strategic', value }))
    } catch (error) {
      log.info('Failed to update pod status', { pod: `${namespace}/${name}`, error })
    }
  }
}

/** Undefined: the condition is already set. */
function conditionOf(
  { metadata, status }: Pod,
  { reason, message }: SchedulingFailure,
  now: string,
): PodCondition | undefined {
  const old = status.conditions?.find(({ type }) => type === 'PodScheduled')
  const generation = metadata.generation ?? 0
  const isSame = old?.status === 'False' && old.reason === reason && old.message === message
  if (isSame && (old.observedGeneration ?? 0) === generation) return undefined
  return {
    type: 'PodScheduled',
    ...(generation > 0 && { observedGeneration: generation }),
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: old?.status === 'False' ? old.lastTransitionTime : now,
    reason,
    message,
  }
}
