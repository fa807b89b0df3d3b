/** Groups the namespaces of a cluster by the projects of a management server, for the choice of a namespace. */
import type { Project } from '../api/projects.ts'

export interface NamespaceGroup {
  /** Undefined: without a project. */
  readonly project: string | undefined
  readonly names: readonly string[]
}

/** `listed` is undefined if the user may not list namespaces: then those of the user's projects are known. */
export function namespaceGroups(
  listed: readonly string[] | undefined,
  projects: readonly Project[],
): readonly NamespaceGroup[] {
  const exists = (name: string): boolean => listed === undefined || listed.includes(name)
  const groups = projects.map(({ spec }) => ({
    project: spec.displayName,
    names: (spec.namespaces ?? []).filter((name) => exists(name)).sort(),
  }))
  const taken = new Set(groups.flatMap(({ names }) => names))
  const others = { project: undefined, names: (listed ?? []).filter((name) => !taken.has(name)) }
  return [...groups, others].filter(({ names }) => names.length > 0)
}
