/**
 * Counts open watches by resource, namespace and name, to estimate how many watchers a write notifies. Of all
 * selectors, only `spec.nodeName` of pods is considered.
 */
import type { RequestInfo } from '#auth/request-info.ts'

export interface WatchCounts {
  /** Returns a function to call once when the watch has ended. */
  open(info: RequestInfo): () => void
  /** The number of watches that a write of this object may notify. */
  interestedIn(info: RequestInfo): number
}

export function createWatchCounts(): WatchCounts {
  const counts = new Map<string, number>()
  const countOf = (key: string): number => counts.get(key) ?? 0
  return {
    open(info) {
      if (isOfOneNode(info)) return nothing
      const key = keyOf(info, info.namespace, info.name)
      counts.set(key, countOf(key) + 1)
      return () => {
        const left = countOf(key) - 1
        if (left === 0) counts.delete(key)
        else counts.set(key, left)
      }
    },
    interestedIn(info) {
      if (counts.size === 0) return 0
      const { namespace, name } = info
      return (
        countOf(keyOf(info, '', '')) +
        (namespace === '' ? 0 : countOf(keyOf(info, namespace, ''))) +
        (name === '' ? 0 : countOf(keyOf(info, namespace, name)))
      )
    },
  }
}

function nothing(): void {}

function keyOf({ group, resource }: RequestInfo, namespace: string, name: string): string {
  return `${group}/${resource}/${namespace}/${name}`
}

/** Kubelets watch the pods of their node: a write of a pod notifies at most one of them. */
function isOfOneNode({ resource, fieldSelector = '' }: RequestInfo): boolean {
  return resource === 'pods' && /(?:^|,)spec\.nodeName==?[^,!=]/.test(fieldSelector)
}
