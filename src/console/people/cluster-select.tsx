/** Chooses the cluster that a page of the server is about. The choice is a part of the address. */
import type { VNode } from 'preact'

import { session } from '../browser/session.ts'
import { go } from '../routing/router.tsx'

export interface ClusterSelectProps {
  /** The name of the page. */
  readonly view: string
  /** Empty: none. */
  readonly cluster: string
  /** The choice of no cluster. */
  readonly noCluster?: string
}

/** The cluster `local` is the server itself: it has no members and projects. */
export function ClusterSelect({ view, cluster, noCluster = 'Choose a cluster' }: ClusterSelectProps): VNode {
  const clusters = (session.value?.clusters ?? []).filter(({ name }) => name !== 'local')
  const isKnown = cluster === '' || clusters.some(({ name }) => name === cluster)
  const choices = isKnown ? clusters : [...clusters, { name: cluster, displayName: cluster }]
  return (
    <p>
      <select
        aria-label="Cluster"
        value={cluster}
        onChange={({ currentTarget }) => go({ page: 'server-view', view, item: currentTarget.value })}
      >
        <option value="">{noCluster}</option>
        {choices.map(({ name, displayName }) => (
          <option key={name} value={name}>
            {displayName}
          </option>
        ))}
      </select>
    </p>
  )
}
