/** A link to an object by its kind. Without a page for the kind it is text. */
import type { ComponentChildren, VNode } from 'preact'

import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import type { Page } from '../routing/location.ts'
import { Link } from '../routing/router.tsx'
import { groupOf, type Ref } from './ref.ts'

export interface ObjectLinkProps {
  readonly cluster: string
  readonly to: Ref
  readonly children?: ComponentChildren
}

export function ObjectLink({ cluster, to, children = to.name }: ObjectLinkProps): VNode {
  const page = pageOf(cluster, to)
  if (page === undefined) return <>{children}</>
  return (
    <Link to={page} title={`${to.kind} ${to.name}`}>
      {children}
    </Link>
  )
}

/** Undefined if the cluster does not serve the kind. */
export function pageOf(cluster: string, { apiVersion, kind, namespace = '', name }: Ref): Page | undefined {
  const group = groupOf(apiVersion)
  const known = kindsOfCluster(cluster).value.kinds.find((one) => one.kind === kind && one.group === group)
  if (known === undefined || name === '') return undefined
  return { page: 'object', cluster, kind: known, namespace: known.isNamespaced ? namespace : '', name, tab: '' }
}
