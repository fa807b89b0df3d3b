/** The state of a cluster, and links: to its objects, if it can be reached, and to its page at this server. */
import type { ComponentChildren, VNode } from 'preact'

import { AgeText } from '../parts/age-text.tsx'
import { Link } from '../routing/router.tsx'
import { type ManagedCluster, stateOf } from './clusters.ts'

interface ClusterLinkProps {
  readonly cluster: ManagedCluster
}

/** Its name. A cluster that cannot be reached has no objects to show. */
export function ClusterLink({ cluster }: ClusterLinkProps): VNode {
  const { metadata, spec } = cluster
  if (!stateOf(cluster).isReachable) return <DetailsLink cluster={cluster}>{spec.displayName}</DetailsLink>
  return (
    <Link to={{ page: 'cluster', cluster: metadata.name ?? '' }}>
      <bdi>{spec.displayName}</bdi>
    </Link>
  )
}

export function DetailsLink({ cluster, children }: ClusterLinkProps & { readonly children: ComponentChildren }): VNode {
  return (
    <Link to={{ page: 'server-view', view: 'clusters', item: cluster.metadata.name ?? '' }}>
      <bdi>{children}</bdi>
    </Link>
  )
}

export function ClusterTag({ cluster }: ClusterLinkProps): VNode {
  const { text, tone, since } = stateOf(cluster)
  return (
    <span class={`tone tone-${tone}`}>
      {text}
      {since !== undefined && (
        <>
          {' for '}
          <AgeText time={since} />
        </>
      )}
    </span>
  )
}
