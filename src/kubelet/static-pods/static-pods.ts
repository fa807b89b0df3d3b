/**
 * Runs static pods: passes them to the pod workers and maintains a mirror pod for each. A second pod with the same name
 * waits until the first is gone.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf, timeOf } from '#meta/time.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { PodWorkers } from '../pods/pod-workers.ts'
import { ANNOTATIONS, type ManifestSource } from './manifest.ts'
import { type MirrorOptions, MirrorWriter } from './mirror-writer.ts'

export interface StaticPodsOptions extends MirrorOptions {
  readonly workers: Pick<PodWorkers, 'updatePod'>
}

const nameOf = ({ metadata: { namespace, name } }: Pod): string => `${namespace}/${name}`
const uidOf = ({ metadata: { uid = '' } }: Pod): string => uid

export class StaticPods {
  readonly #options: StaticPodsOptions
  readonly #bySource = new Map<ManifestSource['kind'], readonly Pod[]>()
  /** Pods of the workers by name; they may be ending. */
  readonly #running = new Map<string, { readonly pod: Pod; isLeaving: boolean }>()
  readonly #writers = new Map<string, MirrorWriter>()
  /** Mirror pods on the API server, by name. */
  readonly #mirrors = new Map<string, Pod>()

  constructor(options: StaticPodsOptions) {
    this.#options = options
  }

  /** Sets all pods of a source. */
  found(kind: ManifestSource['kind'], pods: readonly Pod[]): void {
    this.#bySource.set(kind, pods)
    this.#settle()
  }

  /** A worker has removed the pod. */
  #gone(pod: Pod): void {
    this.#writers.delete(uidOf(pod))
    this.#running.delete(nameOf(pod))
    this.#settle()
  }

  /** Handles an event about a mirror pod; returns true if it was one, since workers must not run mirrors. */
  handleEvent({ type, object }: ObjectEvent<Pod>): boolean {
    if (object.metadata.annotations?.[ANNOTATIONS.mirror] === undefined) return false
    const name = nameOf(object)
    if (type === 'DELETED') this.#mirrors.delete(name)
    else this.#mirrors.set(name, object)
    const running = this.#running.get(name)
    if (running !== undefined) this.#writers.get(uidOf(running.pod))?.update(this.#mirrors.get(name))
    else if (type !== 'DELETED' && this.#hasSources) this.#removeOrphan(object)
    return true
  }

  /** Handles a list of all pods and returns those that are no mirrors. Missing mirrors count as deleted. */
  handleList(all: readonly Pod[]): Pod[] {
    const others = all.filter((object) => !this.handleEvent({ type: 'ADDED', object }))
    const there = new Set(all.map(nameOf))
    for (const [name, object] of this.#mirrors) if (!there.has(name)) this.handleEvent({ type: 'DELETED', object })
    return others
  }

  has(uid: string): boolean {
    return [...this.#running.values()].some(({ pod }) => uidOf(pod) === uid)
  }

  /** Until a source was read, the owner of a mirror is unknown. */
  get #hasSources(): boolean {
    return this.#bySource.size > 0
  }

  #settle(): void {
    const wanted = new Map([...this.#bySource.values()].flat().map((pod) => [nameOf(pod), pod]))
    for (const [name, running] of this.#running) {
      if (running.isLeaving || (uidOf(wanted.get(name) ?? running.pod) === uidOf(running.pod) && wanted.has(name)))
        continue
      running.isLeaving = true
      this.#options.workers.updatePod({ type: 'MODIFIED', object: this.#leaving(running.pod) })
    }
    for (const [name, pod] of wanted) if (!this.#running.has(name)) this.#run(this.#seen(pod))
    for (const [name, mirror] of this.#mirrors) if (!this.#running.has(name)) this.#removeOrphan(mirror)
  }

  #run(pod: Pod): void {
    const name = nameOf(pod)
    const writer = new MirrorWriter(pod, this.#options, this.#mirrors.get(name))
    this.#running.set(name, { pod, isLeaving: false })
    this.#writers.set(uidOf(pod), writer)
    this.#options.workers.updatePod({ type: 'ADDED', object: pod }, { writer, gone: () => this.#gone(pod) })
  }

  #seen(pod: Pod): Pod {
    const { metadata } = pod
    const seen = microTimeOf(this.#options.client.clock.now())
    return { ...pod, metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATIONS.seen]: seen } } }
  }

  /** The pod gets its full grace period. */
  #leaving(pod: Pod): Pod {
    const deletionTimestamp = timeOf(this.#options.client.clock.now())
    const deletionGracePeriodSeconds = pod.spec.terminationGracePeriodSeconds ?? 30
    return { ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds } }
  }

  #removeOrphan({ metadata: { namespace, name = '', uid = '' } }: Pod): void {
    const { client, onError, signal } = this.#options
    client
      .delete(Pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } })
      .catch((error: unknown) => {
        if (!isNotFound(error) && !signal.aborted) onError(error)
      })
  }
}
