/** Draws what was found in roles and bindings: while they are read, when they are refused, and when some are missing. */
import type { ComponentChildren, VNode } from 'preact'

import { Notice } from '../parts/notice.tsx'
import type { Rbac } from './use-rbac.ts'

export interface RbacViewProps {
  readonly rbac: Rbac
  readonly children: ComponentChildren
}

export function RbacView({ rbac: { isLoading, isRefused, warnings }, children }: RbacViewProps): VNode {
  if (isRefused) {
    return <Notice title="You may not see roles and bindings" text={warnings.join('\n')} />
  }
  return (
    <>
      {isLoading ? <p class="loading">Loading roles and bindings …</p> : children}
      {warnings.map((text) => (
        <p key={text} class="words words-busy" role="status">
          {text}
        </p>
      ))}
      <p class="muted">
        These are the rules of RBAC. The API server can have other authorizers, for nodes, webhooks or ABAC: their
        decisions are not here. Members of the group system:masters may do everything.
      </p>
    </>
  )
}
