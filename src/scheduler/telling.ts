/** What became of a pod, told: by events, in its condition, and by the node it is nominated for. What cannot be told is told next time. */
import { type Pod, type PodCondition, Pods } from '#apis/core/v1.ts'
import { referenceTo } from '#client/event-recorder.ts'
import type { SeriesRecorder } from '#client/event-series.ts'
import { timeOf } from '#meta/time.ts'

import type { Handle, PluginRefusal } from './framework.ts'
import type { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'

/** Why a pod was not placed, as its condition says it. */
export interface Failure {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
  readonly rejectors: ReadonlySet<string>
  readonly pendings: ReadonlySet<string>
  /** Where room is made for it; empty: it is not nominated any more. */
  readonly nominate?: string | undefined
}

const NOBODY: ReadonlySet<string> = new Set()

/** Nobody refused it. */
export function failureOf(message: string, reason: Failure['reason'] = 'Unschedulable'): Failure {
  return { reason, message, rejectors: NOBODY, pendings: NOBODY, nominate: '' }
}

/** Of the one node that was chosen already, or of no plugin where something broke. */
export function failureFrom({ code, reasons, plugin }: PluginRefusal): Failure {
  if (code === 'error') return failureOf(reasons.join(', '), 'SchedulerError')
  return {
    reason: 'Unschedulable',
    message: `0/1 nodes are available: ${reasons.map((reason) => `1 ${reason}`).join(', ')}.`,
    rejectors: new Set([plugin]),
    pendings: code === 'pending' ? new Set([plugin]) : NOBODY,
    nominate: '',
  }
}

export class Teller {
  readonly #handle: Handle
  /** By the name of the profile. */
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

  failed(profile: Profile, { pod }: PodInfo, failure: Failure): void {
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

  /** It is on its way to this node. */
  async nominated({ pod }: PodInfo, node: string): Promise<void> {
    if (pod.status.nominatedNodeName !== node) await this.#patch(pod, { nominatedNodeName: node })
  }

  #warn(profile: Profile, pod: Pod, note: string): void {
    this.#record(profile, pod, { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', note })
  }

  #record({ name }: Profile, pod: Pod, note: Parameters<SeriesRecorder['record']>[1]): void {
    this.#recorderOf(name).record(referenceTo(pod), note)
  }

  async #patch({ metadata: { namespace, name = '', uid } }: Pod, status: object): Promise<void> {
    const { client, log } = this.#handle
    try {
      const value = { metadata: { uid }, status }
      await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value })
    } catch (error) {
      log.info('A pod could not be told why it waits', { pod: `${namespace}/${name}`, error })
    }
  }
}

/** Undefined: it says so already. */
function conditionOf({ metadata, status }: Pod, { reason, message }: Failure, now: string): PodCondition | undefined {
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
