/**
 * Brings the status of one pod to the API server: always the newest, one write at a time. What could not be written is
 * tried again until it is, or until the pod is not there any more.
 */
import { type Pod, type PodCondition, Pods, type PodStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type Backoff, createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Histogram } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { podText } from '../kubelet-notes.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { conditionsKnown } from '../pod-conditions.ts'
import { statusPatch } from '../status-patch.ts'

/** However long the server was away: upstream's tries all again every ten seconds. */
const RETRY = { baseMs: 200, capMs: 10_000, jitter: 0.5 }

/** Where the status of one pod goes. */
export interface StatusDoor {
  /** The newest, whether the API server knows it or not: what is said next goes on from it. */
  readonly said: PodStatus
  isGone: boolean
  put(status: PodStatus): void
  /** What the API server has now: those of others are taken over. */
  hear(conditions: readonly PodCondition[] | undefined): void
  settled(): Promise<void>
  remove(): Promise<void>
}

export class StatusWriter implements StatusDoor {
  readonly #client: ApiClient
  readonly #backoff: Backoff
  readonly #pod: Pod
  readonly #signal: AbortSignal
  readonly #onError: (error: unknown) => void
  readonly #synced: Histogram
  #wanted: PodStatus | undefined
  /** Since when there is something to be written. */
  #sinceMs: number | undefined
  #writing: Promise<void> | undefined
  /** What the server has, as far as is known. */
  #written: PodStatus
  said: PodStatus
  /** The pod has gone, or another has come under its name. */
  isGone = false

  constructor(options: {
    readonly client: ApiClient
    readonly random: Random
    readonly pod: Pod
    readonly signal: AbortSignal
    readonly onError: (error: unknown) => void
    /** How long it took until the server knew, in seconds. */
    readonly synced: Histogram
  }) {
    this.#client = options.client
    this.#backoff = createBackoff(options.random, RETRY)
    this.#pod = options.pod
    this.#signal = options.signal
    this.#onError = options.onError
    this.#synced = options.synced
    this.#written = options.pod.status
    this.said = options.pod.status
  }

  /** Nobody waits for it. */
  put(status: PodStatus): void {
    this.said = status
    this.#wanted = status
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
  }

  hear(conditions: readonly PodCondition[] | undefined): void {
    const heard = (status: PodStatus): PodStatus => ({
      ...status,
      conditions: conditionsKnown(conditions, status.conditions),
    })
    this.#written = heard(this.#written)
    this.said = heard(this.said)
    // What waits to be written must not take away what others have written meanwhile.
    if (this.#wanted !== undefined) this.#wanted = heard(this.#wanted)
  }

  /** Resolves when everything put so far is written, or is never going to be. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  /** Takes the pod out of the server, which has waited for its containers to end. */
  async remove(): Promise<void> {
    const { namespace, name = '', uid = '' } = this.#pod.metadata
    let isDone = false
    while (!isDone && this.#isLive) {
      isDone = await this.#try(() =>
        this.#client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } }),
      )
    }
  }

  get #isLive(): boolean {
    return !this.isGone && !this.#signal.aborted
  }

  async #write(): Promise<void> {
    const { namespace, name = '', uid = '' } = this.#pod.metadata
    while (this.#wanted !== undefined && this.#isLive) {
      const status = this.#wanted
      this.#wanted = undefined
      const value = statusPatch(uid, this.#written, status)
      if (value === undefined) continue
      const { clock } = this.#client
      this.#sinceMs ??= clock.elapsed()
      const isDone = await this.#try(() =>
        this.#client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value }),
      )
      if (!isDone) {
        this.#wanted ??= status
        continue
      }
      this.#written = { ...status, conditions: conditionsKnown(this.#written.conditions, status.conditions) }
      this.#synced.observe((clock.elapsed() - this.#sinceMs) / 1000)
      this.#sinceMs = undefined
    }
  }

  /** Whether it succeeded; after a failure there was a pause. */
  async #try(write: () => Promise<unknown>): Promise<boolean> {
    try {
      await write()
      this.#backoff.reset()
      return true
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) this.isGone = true
      if (!this.#isLive) return false
      this.#onError(error)
      await sleep(this.#client.clock, this.#backoff.next(), this.#signal).catch(() => undefined)
      return false
    }
  }
}

interface WriterHost {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
  readonly log: Logger
  readonly meters: KubeletMeters
}

/** Creates the writer of one pod of a node. */
export function statusWriterOf({ client, random, signal, log, meters }: WriterHost, pod: Pod): StatusWriter {
  const onError = (error: unknown): void => log.error(error, 'Failed to update status for pod', { pod: podText(pod) })
  const synced = meters.family('kubelet_pod_status_sync_duration_seconds').labels()
  return new StatusWriter({ client, random, pod, signal, onError, synced })
}
