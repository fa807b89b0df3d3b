/** The actions on many objects: those of one object that need no more than its address. */
import type { KubeObject } from '#meta/object.ts'

import type { Action, ActionRequest, Surroundings, Target } from '../actions/action.ts'
import { ACTIONS } from '../actions/actions.ts'
import { remove } from '../actions/plans.ts'
import type { Kind } from '../api/kinds.ts'
import type { Row } from '../lists/messages.ts'

/** In the order of the buttons. */
const NAMES = ['restart', 'pause', 'resume-rollout', 'suspend', 'resume', 'cordon', 'uncordon', 'delete']

/** An action, and the request that it sends for each object. */
export interface BulkAction {
  readonly action: Action
  readonly plan: (target: Target, surroundings: Surroundings) => ActionRequest
}

export function bulkActionsFor({ kind, group }: Pick<Kind, 'kind' | 'group'>): readonly BulkAction[] {
  const name = group === '' ? kind : `${kind}.${group}`
  return NAMES.flatMap((wanted) => {
    const action = ACTIONS.find((one) => one.name === wanted)
    if (action === undefined || !(action.kinds?.includes(name) ?? true)) return []
    const plan = wanted === 'delete' ? (target: Target) => remove(target, 'Background') : action.plan
    return plan === undefined ? [] : [{ action, plan }]
  })
}

/** As much of the object as a row knows. */
export function targetOf(kind: Kind, { name, namespace, uid }: Row): Target {
  const { group, version } = kind
  const object: KubeObject = {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind: kind.kind,
    metadata: { name, uid, ...(namespace !== '' && { namespace }) },
  }
  return { kind, object }
}
