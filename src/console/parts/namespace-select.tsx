/** Chooses the namespace of a list. At a management server the namespaces are grouped by project. */
import type { VNode } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { loadProjects, type Project } from '../api/projects.ts'
import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { openList } from '../lists/list-client.ts'
import { setQuery } from '../routing/router.tsx'
import { type NamespaceGroup, namespaceGroups } from './namespace-groups.ts'
import { useLoaded } from './use-loaded.ts'

const MAX_NAMESPACES = 5000

export interface NamespaceSelectProps {
  readonly cluster: string
  /** Empty: all. */
  readonly namespace: string
}

export function NamespaceSelect({ cluster, namespace }: NamespaceSelectProps): VNode {
  const list = useMemo(
    () =>
      openList(
        { path: clusterPath(cluster, '/api/v1/namespaces') },
        { filter: '', sort: '@name', isDescending: false, group: '', from: 0, count: MAX_NAMESPACES },
      ),
    [cluster],
  )
  useEffect(() => () => list.close(), [list])
  const projects = useLoaded(cluster, (signal) => loadProjectsOf(cluster, signal))
  const { rows = [], state } = list.data.value ?? {}
  const listed = state?.type === 'failed' ? undefined : rows.map(({ name }) => name)
  const groups = namespaceGroups(listed, projects.value ?? [])
  const isKnown = namespace === '' || groups.some(({ names }) => names.includes(namespace))
  return (
    <select
      aria-label="Namespace"
      value={namespace}
      onChange={({ currentTarget }) => setQuery({ ns: currentTarget.value })}
    >
      <option value="">All namespaces</option>
      {!isKnown && <option value={namespace}>{namespace}</option>}
      {groups.map((group) => (
        <Group key={group.project ?? ''} {...group} />
      ))}
    </select>
  )
}

/** Without a project it is no group for people: its choices stand alone. */
function Group({ project, names }: NamespaceGroup): VNode {
  const options = names.map((name) => (
    <option key={name} value={name}>
      {name}
    </option>
  ))
  return project === undefined ? <>{options}</> : <optgroup label={`Project ${project}`}>{options}</optgroup>
}

/** Only clusters of a management server have projects. A user without a role in the cluster sees none. */
async function loadProjectsOf(cluster: string, signal: AbortSignal): Promise<readonly Project[]> {
  if (session.value?.mode !== 'many-clusters' || cluster === 'local') return []
  try {
    return await loadProjects(cluster, signal)
  } catch (error) {
    if (error instanceof RequestError) return []
    throw error
  }
}
