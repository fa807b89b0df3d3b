/** Maintains the mirror pod of a static pod in the API server. The static pod never waits for its mirror pod. */
import { type Node, type Pod, type PodCondition, Pods, type PodStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type Backoff, createBackoff } from '#lib/backoff.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import { mergeConditions } from '../pod/pod-conditions.ts'
import { statusPatch } from '../pod/status-patch.ts'
import type { StatusSink } from '../pods/status-writer.ts'
import { ANNOTATIONS } from './manifest.ts'

const RETRY = { baseMs: 200, capMs: 30_000, jitter: 0.5 }

export interface MirrorOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
  /** Undefined until it was read; the Node owns mirror pods. */
  readonly node: () => Node | undefined
  readonly onError: (error: unknown) => void
}

export class MirrorWriter implements StatusSink {
  readonly #options: MirrorOptions
  readonly #pod: Pod
  readonly #backoff: Backoff
  /** The mirror pod on the API server, as far as known. */
  #mirror: Pod | undefined
  #isEnding = false
  #isStale = false
  #isWorking = false
  latest: PodStatus
  isGone = false

  constructor(pod: Pod, options: MirrorOptions, mirror?: Pod) {
    this.#pod = pod
    this.#options = options
    this.#mirror = mirror
    this.#backoff = createBackoff(options.random, RETRY)
    this.latest = pod.status
  }

  put(status: PodStatus): void {
    this.latest = status
    this.#work()
  }

  updateConditions(conditions: readonly PodCondition[] | undefined): void {
    this.latest = { ...this.latest, conditions: mergeConditions(conditions, this.latest.conditions) }
  }

  /** Handles an update of the mirror pod; undefined: it was deleted. */
  update(mirror: Pod | undefined): void {
    this.#mirror = mirror
    this.#work()
  }

  /** Resolves at once: a static pod does not wait for its mirror. */
  async settled(): Promise<void> {}

  /** Deletes the mirror in the background. */
  async remove(): Promise<void> {
    this.#isEnding = true
    this.#work()
  }

  #work(): void {
    this.#isStale = true
    if (!this.#isWorking) void this.#sync()
  }

  async #sync(): Promise<void> {
    const { signal, client, onError } = this.#options
    this.#isWorking = true
    while (this.#isStale && !signal.aborted && !this.isGone) {
      this.#isStale = false
      try {
        await this.#step()
        this.#backoff.reset()
      } catch (error) {
        if (signal.aborted) break
        this.#isStale = true
        onError(error)
        await sleep(client.clock, this.#backoff.next(), signal).catch(() => undefined)
      }
    }
    this.#isWorking = false
  }

  async #step(): Promise<void> {
    const mirror = this.#mirror
    if (mirror !== undefined && (this.#isEnding || !isMirrorOf(mirror, this.#pod))) {
      await this.#delete(mirror)
      this.#mirror = undefined
    }
    if (this.#isEnding) {
      this.isGone = true
      return
    }
    const { client, node, signal } = this.#options
    const { metadata: owner } = node() ?? {}
    if (owner === undefined) {
      this.#isStale = true
      return sleep(client.clock, RETRY.baseMs, signal)
    }
    this.#mirror ??= await this.#create(owner)
    const mirrored = this.#mirror
    await withCauses([causeOf(Pods, mirrored)], () => this.#writeStatus(mirrored))
  }

  async #create(owner: Node['metadata']): Promise<Pod> {
    const { client } = this.#options
    try {
      return await client.create(Pods, mirrorOf(this.#pod, owner))
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      const { namespace, name = '' } = this.#pod.metadata
      const there = await client.get(Pods, { namespace, name })
      if (isMirrorOf(there, this.#pod)) return there
      await this.#delete(there)
      throw error
    }
  }

  async #delete({ metadata: { namespace, name = '', uid = '' } }: Pod): Promise<void> {
    const { client } = this.#options
    await client
      .delete(Pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
  }

  async #writeStatus(mirror: Pod): Promise<void> {
    const { namespace, name = '', uid = '' } = mirror.metadata
    const status = this.latest
    const value = statusPatch(uid, mirror.status, status)
    if (value === undefined) return
    try {
      this.#mirror = await this.#options.client.patch(
        Pods,
        { namespace, name, subresource: 'status' },
        { type: 'strategic', value },
      )
    } catch (error) {
      if (isNotFound(error)) this.#mirror = undefined
      throw error
    }
  }
}

export function mirrorOf({ metadata, spec }: Pod, { name = '', uid = '' }: Node['metadata']): Pod {
  const { name: own = '', namespace = '', labels, annotations = {} } = metadata
  const hash = annotations[ANNOTATIONS.hash] ?? ''
  return {
    metadata: {
      name: own,
      namespace,
      ...(labels !== undefined && { labels }),
      annotations: { ...annotations, [ANNOTATIONS.mirror]: hash },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid, controller: true }],
    },
    spec,
    status: {},
  }
}

/** True if it is the current mirror of this pod and is not being deleted. Pure. */
export function isMirrorOf({ metadata: mirror }: Pod, { metadata: pod }: Pod): boolean {
  const hash = pod.annotations?.[ANNOTATIONS.hash]
  return mirror.deletionTimestamp === undefined && mirror.annotations?.[ANNOTATIONS.mirror] === hash
}
