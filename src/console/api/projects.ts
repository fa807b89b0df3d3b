/** Projects of a cluster of a management server: each is a group of its namespaces, and has members. */
import { clusterPath } from './cluster-paths.ts'
import { sendForJson } from './request.ts'

export interface Project {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly displayName: string
    readonly description?: string
    readonly namespaces?: readonly string[]
  }
}

export async function loadProjects(cluster: string, signal?: AbortSignal): Promise<readonly Project[]> {
  const { items } = await sendForJson<{ items: readonly Project[] }>(pathOfProjects(cluster), { signal })
  return items.toSorted((a, b) => (a.spec.displayName < b.spec.displayName ? -1 : 1))
}

export function pathOfProjects(cluster: string): string {
  return `${clusterPath(cluster)}/projects`
}
