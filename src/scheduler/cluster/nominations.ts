/** Records the nominated pods of each node, until the pods are placed. */
import type { PodInfo } from './pod-info.ts'

/** Shared, because this is requested for every visited node. */
const NO_PODS: readonly PodInfo[] = []

export class Nominations {
  readonly #onNode = new Map<string, Map<string, PodInfo>>()
  readonly #nodeOf = new Map<string, string>()

  /** No pod is nominated. */
  get isEmpty(): boolean {
    return this.#nodeOf.size === 0
  }

  /** An empty name removes the nomination. */
  set(pod: PodInfo, node: string): void {
    this.delete(pod.uid)
    if (node === '') return
    this.#nodeOf.set(pod.uid, node)
    const there = this.#onNode.get(node)
    if (there === undefined) this.#onNode.set(node, new Map([[pod.uid, pod]]))
    else there.set(pod.uid, pod)
  }

  delete(uid: string): void {
    const node = this.#nodeOf.get(uid)
    if (node === undefined) return
    this.#nodeOf.delete(uid)
    const there = this.#onNode.get(node)
    there?.delete(uid)
    if (there?.size === 0) this.#onNode.delete(node)
  }

  nodeOf(uid: string): string | undefined {
    return this.#nodeOf.get(uid)
  }

  /** Nominated pods of at least the same priority, without the pod itself. */
  before(pod: PodInfo, node: string): readonly PodInfo[] {
    const there = this.#onNode.get(node)
    if (there === undefined) return NO_PODS
    return [...there.values()].filter(({ uid, priority }) => uid !== pod.uid && priority >= pod.priority)
  }

  /** All nominated pods of the node. */
  on(node: string): readonly PodInfo[] {
    return [...(this.#onNode.get(node)?.values() ?? [])]
  }
}
