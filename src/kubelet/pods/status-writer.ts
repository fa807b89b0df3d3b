/**
 * Writes the status of one pod to the API server, one write at a time, always the newest status. Failed writes are
 * retried. Each names the version of the pod from which the kubelet computed the status.
 */
import { type Pod, type PodCondition, Pods, type PodStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type Backoff, createBackoff } from '#lib/backoff.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Histogram } from '#lib/metrics/metrics.ts'
import type { Random } from '#lib/random.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { podText } from '../pod/events.ts'
import { mergeConditions } from '../pod/pod-conditions.ts'
import { statusPatch } from '../pod/status-patch.ts'

/** Upstream retries all pending writes every ten seconds. */
const RETRY = { baseMs: 200, capMs: 10_000, jitter: 0.5 }

/** Destination of the status of one pod. */
export interface StatusSink {
  /** The newest status, written or not. The next status is computed from it. */
  readonly latest: PodStatus
  isGone: boolean
  /** `pod`: the version that the kubelet acted on. */
  put(status: PodStatus, pod: Pod): void
  /** Takes over conditions that other clients have written. */
  updateConditions(conditions: readonly PodCondition[] | undefined): void
  settled(): Promise<void>
  remove(pod: Pod): Promise<void>
}

export class StatusWriter implements StatusSink {
  readonly #client: ApiClient
  readonly #backoff: Backoff
  readonly #pod: Pod
  readonly #signal: AbortSignal
  readonly #onError: (error: unknown) => void
  readonly #synced: Histogram
  #wanted: PodStatus | undefined
  /** The version of the pod to which `#wanted` belongs. */
  #acted: Pod
  /** Start of the pending write. */
  #sinceMs: number | undefined
  #writing: Promise<void> | undefined
  /** The status on the server, as far as known. */
  #written: PodStatus
  latest: PodStatus
  /** The pod is gone, or another pod has its name. */
  isGone = false

  constructor(options: {
    readonly client: ApiClient
    readonly random: Random
    readonly pod: Pod
    readonly signal: AbortSignal
    readonly onError: (error: unknown) => void
    /** Time until the server has the status, in seconds. */
    readonly synced: Histogram
  }) {
    this.#client = options.client
    this.#backoff = createBackoff(options.random, RETRY)
    this.#pod = options.pod
    this.#acted = options.pod
    this.#signal = options.signal
    this.#onError = options.onError
    this.#synced = options.synced
    this.#written = options.pod.status
    this.latest = options.pod.status
  }

  /** Does not wait for the write. */
  put(status: PodStatus, pod: Pod): void {
    this.latest = status
    this.#wanted = status
    this.#acted = pod
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
  }

  updateConditions(conditions: readonly PodCondition[] | undefined): void {
    const merged = (status: PodStatus): PodStatus => ({
      ...status,
      conditions: mergeConditions(conditions, status.conditions),
    })
    this.#written = merged(this.#written)
    this.latest = merged(this.latest)
    // A pending write must not remove conditions that others have added meanwhile.
    if (this.#wanted !== undefined) this.#wanted = merged(this.#wanted)
  }

  /** Resolves when all updates so far are written or obsolete. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  /** Deletes the pod from the server after its containers have ended. */
  async remove(pod: Pod): Promise<void> {
    const { namespace, name = '', uid = '' } = this.#pod.metadata
    let isDone = false
    while (!isDone && this.#isLive) {
      isDone = await this.#try(pod, () =>
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
      const acted = this.#acted
      this.#wanted = undefined
      const value = statusPatch(uid, this.#written, status)
      if (value === undefined) continue
      const { clock } = this.#client
      this.#sinceMs ??= clock.elapsed()
      const isDone = await this.#try(acted, () =>
        this.#client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value }),
      )
      if (!isDone) {
        this.#wanted ??= status
        continue
      }
      this.#written = { ...status, conditions: mergeConditions(this.#written.conditions, status.conditions) }
      this.#synced.observe((clock.elapsed() - this.#sinceMs) / 1000)
      this.#sinceMs = undefined
    }
  }

  /** Returns true on success; waits for the back-off after a failure. */
  async #try(pod: Pod, write: () => Promise<unknown>): Promise<boolean> {
    try {
      await withCauses([causeOf(Pods, pod)], write)
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
