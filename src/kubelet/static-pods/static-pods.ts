/**
 * The pods that a kubelet runs from manifests of its own. What sources say is turned into news for the workers of pods; each has a
 * mirror in the API server, and mirrors of nobody are taken away. Of two pods with one name the second waits until the first
 * has gone.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf, timeOf } from '#meta/time.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { StatusDoor } from '../pods/status-writer.ts'
import { ANNOTATIONS, type ManifestSource } from './manifest.ts'
import { type MirrorOptions, MirrorWriter } from './mirror-writer.ts'

export interface StaticPodsOptions extends MirrorOptions {
  /** Brings news to the workers. */
  readonly learn: (event: ObjectEvent<Pod>) => void
}

const nameOf = ({ metadata: { namespace, name } }: Pod): string => `${namespace}/${name}`
const uidOf = ({ metadata: { uid = '' } }: Pod): string => uid

export class StaticPods {
  readonly #options: StaticPodsOptions
  readonly #bySource = new Map<ManifestSource['kind'], readonly Pod[]>()
  /** Those that workers have, by name; they may be on their way out. */
  readonly #running = new Map<string, { readonly pod: Pod; isLeaving: boolean }>()
  readonly #writers = new Map<string, MirrorWriter>()
  /** As the API server has them, by name. */
  readonly #mirrors = new Map<string, Pod>()

  constructor(options: StaticPodsOptions) {
    this.#options = options
  }

  /** All that a source wants. */
  found(kind: ManifestSource['kind'], pods: readonly Pod[]): void {
    this.#bySource.set(kind, pods)
    this.#settle()
  }

  /** A worker is done with one. */
  gone(uid: string): void {
    this.#writers.delete(uid)
    for (const [name, { pod }] of this.#running) if (uidOf(pod) === uid) this.#running.delete(name)
    this.#settle()
  }

  /** News of mirrors; true when it was about one, which no worker may run. */
  hears({ type, object }: ObjectEvent<Pod>): boolean {
    if (object.metadata.annotations?.[ANNOTATIONS.mirror] === undefined) return false
    const name = nameOf(object)
    if (type === 'DELETED') this.#mirrors.delete(name)
    else this.#mirrors.set(name, object)
    const running = this.#running.get(name)
    if (running !== undefined) this.#writers.get(uidOf(running.pod))?.learn(this.#mirrors.get(name))
    else if (type !== 'DELETED' && this.#hasLooked) this.#removeOrphan(object)
    return true
  }

  /** All mirrors that there are. Those that are not among them have gone. */
  hearsAll(all: readonly Pod[]): Pod[] {
    const others = all.filter((object) => !this.hears({ type: 'ADDED', object }))
    const there = new Set(all.map(nameOf))
    for (const [name, object] of this.#mirrors) if (!there.has(name)) this.hears({ type: 'DELETED', object })
    return others
  }

  /** Who is told how a pod is: its mirror; undefined when it is not one of these. */
  writerFor(pod: Pod): StatusDoor | undefined {
    if (this.#running.get(nameOf(pod))?.pod.metadata.uid !== uidOf(pod)) return undefined
    const writer = new MirrorWriter(pod, this.#options, this.#mirrors.get(nameOf(pod)))
    this.#writers.set(uidOf(pod), writer)
    return writer
  }

  has(uid: string): boolean {
    return [...this.#running.values()].some(({ pod }) => uidOf(pod) === uid)
  }

  /** Before that, nobody knows whose a mirror is. */
  get #hasLooked(): boolean {
    return this.#bySource.size > 0
  }

  #settle(): void {
    const wanted = new Map([...this.#bySource.values()].flat().map((pod) => [nameOf(pod), pod]))
    for (const [name, running] of this.#running) {
      if (running.isLeaving || (uidOf(wanted.get(name) ?? running.pod) === uidOf(running.pod) && wanted.has(name)))
        continue
      running.isLeaving = true
      this.#options.learn({ type: 'MODIFIED', object: this.#leaving(running.pod) })
    }
    for (const [name, pod] of wanted) {
      if (this.#running.has(name)) continue
      const seen = this.#seen(pod)
      this.#running.set(name, { pod: seen, isLeaving: false })
      this.#options.learn({ type: 'ADDED', object: seen })
    }
    for (const [name, mirror] of this.#mirrors) if (!this.#running.has(name)) this.#removeOrphan(mirror)
  }

  #seen(pod: Pod): Pod {
    const { metadata } = pod
    const seen = microTimeOf(this.#options.client.clock.now())
    return { ...pod, metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATIONS.seen]: seen } } }
  }

  /** It is given the time that it asked for. */
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
