/** Indexes the members of each PodGroup (`spec.schedulingGroup`), and those that have a node. */
import type { Pod } from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'

import type { PodInfo } from './pod-info.ts'

interface Members {
  readonly all: Map<string, PodInfo>
  /** Members with a node, including assumed ones; a subset of `all`. */
  readonly scheduled: Set<string>
}

/** The key of the pod's PodGroup; undefined: none. */
export function groupKeyOf({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): string | undefined {
  const name = spec.schedulingGroup?.podGroupName
  return name === undefined ? undefined : keyOf(metadata.namespace, name)
}

export class PodGroupMembers {
  readonly #groups = new Map<string, Members>()

  /** Adds or replaces a member. */
  add(pod: PodInfo): void {
    const key = groupKeyOf(pod.pod)
    if (key === undefined) return
    const group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, { all: new Map([[pod.uid, pod]]), scheduled: new Set() })
    else group.all.set(pod.uid, pod)
  }

  remove(pod: Pod): void {
    const key = groupKeyOf(pod) ?? ''
    const group = this.#groups.get(key)
    if (group === undefined) return
    group.all.delete(pod.metadata.uid ?? '')
    group.scheduled.delete(pod.metadata.uid ?? '')
    if (group.all.size === 0) this.#groups.delete(key)
  }

  /** The pod got a node, or lost it. */
  placed({ pod, uid }: PodInfo, by: 1 | -1): void {
    const group = pod.spec.schedulingGroup === undefined ? undefined : this.#groups.get(groupKeyOf(pod) ?? '')
    if (group === undefined || !group.all.has(uid)) return
    if (by === 1) group.scheduled.add(uid)
    else group.scheduled.delete(uid)
  }

  sizeOf(key: string): number {
    return this.#groups.get(key)?.all.size ?? 0
  }

  scheduledCount(key: string): number {
    return this.#groups.get(key)?.scheduled.size ?? 0
  }

  scheduled(key: string): Iterable<string> {
    return this.#groups.get(key)?.scheduled ?? []
  }

  /** Members without a node, whether in the queue or not. */
  unscheduled(key: string): PodInfo[] {
    const group = this.#groups.get(key)
    return group === undefined ? [] : [...group.all.values()].filter(({ uid }) => !group.scheduled.has(uid))
  }
}
