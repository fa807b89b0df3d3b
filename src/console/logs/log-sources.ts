/** Which logs a page reads. */
import { clusterPath, objectPath } from '../api/kinds.ts'
import type { LogSource } from './messages.ts'

export interface LogContainer {
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

export interface LogOptions {
  /** 0: all. */
  readonly tailLines: number
  /** The log of the container before its last restart. */
  readonly isPrevious: boolean
  /** Empty: all containers. */
  readonly container: string
}

const PODS = { group: '', version: 'v1', plural: 'pods' }
/** Each log is a connection to a kubelet. */
const MAX_SOURCES = 50

export function sourcesOf(
  cluster: string,
  containers: readonly LogContainer[],
  { tailLines, isPrevious, container }: LogOptions,
): readonly LogSource[] {
  const chosen = containers.filter((one) => container === '' || one.container === container).slice(0, MAX_SOURCES)
  const hasOnePod = new Set(chosen.map(({ pod }) => pod)).size <= 1
  return chosen.map(({ namespace, pod, container: name }) => {
    const query = new URLSearchParams({
      container: name,
      timestamps: 'true',
      ...(isPrevious ? { previous: 'true' } : { follow: 'true' }),
      ...(tailLines > 0 && { tailLines: String(tailLines) }),
    })
    const path = clusterPath(cluster, objectPath(PODS, { namespace, name: pod }, 'log'))
    return { label: hasOnePod ? name : `${pod}/${name}`, path: `${path}?${query.toString()}` }
  })
}
