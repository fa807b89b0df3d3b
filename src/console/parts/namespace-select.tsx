/** Chooses the namespace of a list. */
import type { VNode } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { openList } from '../lists/list-client.ts'
import { setQuery } from '../routing/router.tsx'

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
  const names = list.data.value?.rows.map(({ name }) => name) ?? []
  const all = namespace === '' || names.includes(namespace) ? names : [namespace, ...names]
  return (
    <select
      aria-label="Namespace"
      value={namespace}
      onChange={({ currentTarget }) => setQuery({ ns: currentTarget.value })}
    >
      <option value="">All namespaces</option>
      {all.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}
