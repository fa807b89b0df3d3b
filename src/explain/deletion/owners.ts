/** Deletions that follow from another one: of an owner, or of the namespace. */
import { Namespaces } from '#apis/core/v1.ts'
import { kindFor } from '#apis/kinds.ts'
import { parseApiVersion } from '#meta/kind.ts'
import type { OwnerReference } from '#meta/object.ts'

import { citeOf } from '../citation.ts'
import { isNotKnown } from '../explanation.ts'
import { HIDDEN } from '../reader.ts'
import { changeStep, subjectOf } from './actor.ts'
import type { DeletionCase, DeletionCause } from './case.ts'

export async function whyCollected(one: DeletionCase): Promise<DeletionCause> {
  const { object, kind, decision } = one
  const { ownerReferences = [] } = object.metadata
  const owner = ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0]
  const evidence = citeOf({ kind, object }, 'metadata.ownerReferences')
  const step = changeStep(
    kind,
    decision,
    `deleted ${subjectOf(one)}, because its owner is gone or being deleted`,
    evidence,
  )
  if (owner === undefined) return { because: 'the garbage collector found no owner', steps: [step] }
  const above = await whyOwner(one, owner)
  return { because: above.because, steps: [step, ...above.steps] }
}

async function whyOwner({ object, reader, whyDeleted }: DeletionCase, owner: OwnerReference): Promise<DeletionCause> {
  const { kind: kindName, apiVersion, name, uid } = owner
  const named = `its owner ${kindName} ${name}`
  const kind = kindFor({ ...parseApiVersion(apiVersion), kind: kindName })
  if (kind === undefined) return { because: `${named} is gone`, steps: [] }
  const where = { ...(kind.namespaced && { namespace: object.metadata.namespace ?? '' }), name }
  const present = await reader.get(kind, where)
  if (present === HIDDEN) return { because: 'its owner, which you may not see, is gone', steps: [] }
  if (present !== undefined && present.metadata.uid === uid && present.metadata.deletionTimestamp === undefined)
    return { because: `the garbage collector deleted it, although ${named} exists now`, steps: [] }
  const above = await whyDeleted(kind, where)
  if (isNotKnown(above)) return { because: `${named} was deleted, and it is not known why`, steps: above.steps }
  return { because: `its owner ${above.verdict}`, steps: above.steps }
}

export async function whyNamespaceGone(one: DeletionCase): Promise<DeletionCause> {
  const { object, kind, decision, whyDeleted } = one
  const { namespace = '' } = object.metadata
  const step = changeStep(kind, decision, `deleted ${subjectOf(one)} with its namespace`)
  const above = await whyDeleted(Namespaces, { name: namespace })
  const known = isNotKnown(above) ? `its Namespace ${namespace} was deleted` : `its ${above.verdict}`
  return { because: known, steps: [step, ...above.steps] }
}
