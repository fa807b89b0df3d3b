/** The names of users for people: `replicaset-controller` instead of its service account. */
import type { Kind } from '#apis/kinds.ts'

import { referenceTo } from '../citation.ts'
import { nameOf, type Step } from '../explanation.ts'
import type { DeletionCase } from './case.ts'
import type { Transition } from './changes.ts'

const CONTROLLER = 'system:serviceaccount:kube-system:'

export function actorOf({ by }: Pick<Transition, 'by'>): string {
  if (by === undefined) return 'an unknown user'
  return by.user.startsWith(CONTROLLER) ? by.user.slice(CONTROLLER.length) : by.user.replace(/^system:(?=kube-)/, '')
}

/** A step for a change in the history. */
export function changeStep(kind: Kind, change: Transition, did: string, evidence: Step['evidence'] = []): Step {
  const { time, resourceVersion, by } = change
  return {
    ...(time !== undefined && { at: time }),
    revision: resourceVersion,
    actor: actorOf(change),
    did,
    object: referenceTo({ kind, object: change.object }),
    because: by?.because ?? [],
    evidence,
    certainty: 'reported',
  }
}

/** `pod default/web-1`. */
export function subjectOf({ kind, object }: Pick<DeletionCase, 'kind' | 'object'>): string {
  return `${kind.singular} ${nameOf(object)}`
}
