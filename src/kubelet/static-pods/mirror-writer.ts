/**
 * The image of a static pod in the API server: made when it is not there, made anew when it is another's or somebody deletes it,
 * told how the pod is, and gone with it. The pod itself never waits for it.
 */
import { type Node, type Pod, type PodCondition, Pods, type PodStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type Backoff, createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import { conditionsKnown } from '../pod-conditions.ts'
import type { StatusDoor } from '../pods/status-writer.ts'
import { statusPatch } from '../status-patch.ts'
import { ANNOTATIONS } from './manifest.ts'

const RETRY = { baseMs: 200, capMs: 30_000, jitter: 0.5 }

export interface MirrorOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
  /** Undefined until it was read: mirrors belong to it. */
  readonly node: () => Node | undefined
  readonly onError: (error: unknown) => void
}

export class MirrorWriter implements StatusDoor {
  readonly #options: MirrorOptions
  readonly #pod: Pod
  readonly #backoff: Backoff
  /** As the API server has it, as far as is known. */
  #mirror: Pod | undefined
  #isEnding = false
  #isStale = false
  #isWorking = false
  said: PodStatus
  isGone = false

  constructor(pod: Pod, options: MirrorOptions, mirror?: Pod) {
    this.#pod = pod
    this.#options = options
    this.#mirror = mirror
    this.#backoff = createBackoff(options.random, RETRY)
    this.said = pod.status
  }

  put(status: PodStatus): void {
    this.said = status
    this.#work()
  }

  hear(conditions: readonly PodCondition[] | undefined): void {
    this.said = { ...this.said, conditions: conditionsKnown(conditions, this.said.conditions) }
  }

  /** News of it; undefined: there is none any more. */
  learn(mirror: Pod | undefined): void {
    this.#mirror = mirror
    this.#work()
  }

  /** Nobody waits for mirrors: the pod has ended whether anybody is told or not. */
  async settled(): Promise<void> {}

  /** It is taken away by and by. */
  async remove(): Promise<void> {
    this.#isEnding = true
    this.#work()
  }

  #work(): void {
    this.#isStale = true
    if (!this.#isWorking) void this.#catchUp()
  }

  async #catchUp(): Promise<void> {
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
    await this.#tell(this.#mirror)
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

  async #tell(mirror: Pod): Promise<void> {
    const { namespace, name = '', uid = '' } = mirror.metadata
    const status = this.said
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

/** Pure. */
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

/** Whether it is the image of just this pod, and is to stay. Pure. */
export function isMirrorOf({ metadata: mirror }: Pod, { metadata: pod }: Pod): boolean {
  const hash = pod.annotations?.[ANNOTATIONS.hash]
  return mirror.deletionTimestamp === undefined && mirror.annotations?.[ANNOTATIONS.mirror] === hash
}
