/** How many watches are open on what, to know how many will be told of a write. Selectors but one are not looked at. */
import type { RequestInfo } from '../request-info.ts'

export interface WatchCounts {
  /** Returns what is called once when the watch is over. */
  open(info: RequestInfo): () => void
  /** Of those that may be told of a write of this. */
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

/** Kubelets watch the pods of their node: all but one of them are told nothing of a pod. */
function isOfOneNode({ resource, fieldSelector = '' }: RequestInfo): boolean {
  return resource === 'pods' && /(?:^|,)spec\.nodeName==?[^,!=]/.test(fieldSelector)
}
