/** Explains why an object was deleted, from its history: who began the deletion, and what led to it. */
import { type Job, Jobs } from '#apis/batch/v1.ts'
import { Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Where } from '#client/api-client.ts'

import { citeOf, type Sighting } from '../citation.ts'
import { actorOf, changeStep, subjectOf } from '../deletion/actor.ts'
import type { DeletionCase, DeletionCause } from '../deletion/case.ts'
import { lastDeletion } from '../deletion/changes.ts'
import { whyDisrupted } from '../deletion/disruption.ts'
import { whyCollected, whyNamespaceGone } from '../deletion/owners.ts'
import { whyScaledDown } from '../deletion/scale-down.ts'
import { type Finding, hiddenStep, notKnown } from '../explanation.ts'
import { HIDDEN, type Reader, UNKEPT } from '../reader.ts'

/** Owners of owners. */
const MAX_DEPTH = 5

export async function whyDeleted(kind: Kind, where: Where, reader: Reader, depth = 0): Promise<Finding> {
  const named = `${kind.kind} ${where.namespace === undefined ? '' : `${where.namespace}/`}${where.name}`
  if (depth > MAX_DEPTH) return notKnown(`the chain of owners above ${named} is too long`)
  const changes = await reader.changes(kind, where)
  if (changes === HIDDEN)
    return notKnown(`you may not read the changes of ${named}: this needs "get" on moments.hyperkube.io`, [
      hiddenStep(),
    ])
  if (changes === UNKEPT) return notKnown(`the server keeps no history of ${named}`)
  const since = changes.from.time === undefined ? '' : `, which begins at ${changes.from.time}`
  const deletion = lastDeletion(changes.items)
  if (deletion === undefined) return notKnown(`the history${since} has no deletion of ${named}`)
  const { object, decision, end } = deletion
  if (decision === undefined) {
    const step = changeStep(kind, end, `removed ${subjectOf({ kind, object })}; its deletion began earlier`)
    return notKnown(`the deletion of ${named} began before the history${since}`, [step])
  }
  if (decision.by === undefined) {
    return notKnown(`the server does not know who deleted ${named}`, [
      changeStep(kind, decision, `deleted ${subjectOf({ kind, object })}`),
    ])
  }
  const again = (other: Kind, there: Where): Promise<Finding> => whyDeleted(other, there, reader, depth + 1)
  const { because, steps } = await causeOf({ kind, object, decision, reader, whyDeleted: again })
  const time = decision.time === undefined ? '' : ` at ${decision.time}`
  return { verdict: `${named} was deleted${time} because ${because}`, steps, wouldHelp: [] }
}

type Cause = (one: DeletionCase) => Promise<DeletionCause> | DeletionCause

/** By the controller that deleted it. */
const CAUSES: Readonly<Record<string, Cause>> = {
  'generic-garbage-collector': whyCollected,
  'replicaset-controller': whyScaledDown,
  'replication-controller': whyScaledDown,
  'namespace-controller': whyNamespaceGone,
  'ttl-after-finished-controller': whyExpired,
}

async function causeOf(one: DeletionCase): Promise<DeletionCause> {
  const disrupted = one.kind.plural === Pods.plural && one.kind.group === '' ? await whyDisrupted(one) : undefined
  const actor = actorOf(one.decision)
  return disrupted ?? (await (CAUSES[actor] ?? bySomeone)(one))
}

function bySomeone({ kind, object, decision }: DeletionCase): DeletionCause {
  const sighting: Sighting = { kind, object }
  const evidence =
    decision.type === 'MODIFIED' ? citeOf({ ...sighting, object: decision.object }, 'metadata.deletionTimestamp') : []
  return {
    because: `${actorOf(decision)} deleted it`,
    steps: [changeStep(kind, decision, `deleted ${subjectOf({ kind, object })}`, evidence)],
  }
}

function whyExpired({ kind, object, decision }: DeletionCase): DeletionCause {
  const { spec, status } = object as Job
  const seconds = spec.ttlSecondsAfterFinished ?? 0
  const ended =
    status?.completionTime ?? status?.conditions?.findLast(({ type }) => type === 'Failed')?.lastTransitionTime
  const evidence = citeOf({ kind: Jobs, object }, 'spec.ttlSecondsAfterFinished', 'status.completionTime')
  return {
    because: `its ttlSecondsAfterFinished of ${seconds} s passed after it finished${ended === undefined ? '' : ` at ${ended}`}`,
    steps: [changeStep(kind, decision, `deleted ${subjectOf({ kind, object })} after its time to live`, evidence)],
  }
}
