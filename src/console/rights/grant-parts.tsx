/** The cells of a grant: subject, where it holds, binding, role. */
import type { VNode } from 'preact'

import { ObjectLink } from '../objects/object-link.tsx'
import { Link } from '../routing/router.tsx'
import { holderText, nameText } from './holder-text.ts'
import type { Grant, Holder } from './rbac.ts'

const V1 = 'rbac.authorization.k8s.io/v1'

export interface GrantProps {
  readonly cluster: string
  readonly grant: Grant
}

/** Leads to all that the subject may do. */
export function HolderLink({ cluster, holder }: { readonly cluster: string; readonly holder: Holder }): VNode {
  return (
    <Link
      to={{ page: 'cluster-view', cluster, view: 'rights' }}
      query={{ part: 'subject', who: holderText(holder) }}
      title={`What ${holder.kind} ${nameText(holder)} may do`}
    >
      <bdi>{nameText(holder)}</bdi>
    </Link>
  )
}

export function BindingLink({ cluster, grant: { binding, namespace } }: GrantProps): VNode {
  return (
    <ObjectLink cluster={cluster} to={{ apiVersion: V1, namespace, ...binding }}>
      <bdi>{`${binding.kind} ${binding.name}`}</bdi>
    </ObjectLink>
  )
}

export function RoleLink({ cluster, grant: { role, namespace, rules } }: GrantProps): VNode {
  const { kind, name } = role
  const text = <bdi>{`${kind} ${name}`}</bdi>
  if (rules === undefined) return <>{text} does not exist</>
  return (
    <ObjectLink cluster={cluster} to={{ apiVersion: V1, kind, name, ...(kind === 'Role' && { namespace }) }}>
      {text}
    </ObjectLink>
  )
}

export function whereText({ namespace }: Grant): string {
  return namespace === '' ? 'the whole cluster' : `namespace ${namespace}`
}
