/** Answers why an object is in its state. */
import type { Kind } from '#apis/kinds.ts'
import type { Where } from '#client/api-client.ts'
import { groupResourceText } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import { withVisibleCauses } from './causes.ts'
import type { Target } from './explainer.ts'
import { whyDeleted } from './explainers/deletion.ts'
import { EXPLAINERS } from './explainers/index.ts'
import { type AccessQuestion, whyRefused } from './explainers/refusal.ts'
import { type Explanation, type Finding, hiddenStep, nameOf, notKnown } from './explanation.ts'
import { HIDDEN, type Reader } from './reader.ts'

/** Objects that change while they are explained are read again, this many times. */
const MAX_TRIES = 3

/** Explains what is wrong with an object. */
export async function whyObject(kind: Kind, where: Where, reader: Reader): Promise<Explanation> {
  const resource = groupResourceText({ group: kind.group, resource: kind.plural })
  const named = `${resource}/${where.namespace === undefined ? '' : `${where.namespace}/`}${where.name}`
  for (let tries = 1; ; tries++) {
    const object = await reader.get<KubeObject>(kind, where)
    if (object === HIDDEN) {
      const finding = notKnown(`you may not get ${named}`, [hiddenStep()])
      return explanationOf({ resource, ...where }, 'state', finding, reader)
    }
    if (object === undefined) return whyGone(kind, where, reader)
    const target: Target = { kind, object }
    const explainer = EXPLAINERS.find((one) => one.applies(target))
    const finding = (await explainer?.explain(target, reader)) ?? nothingFound(object)
    const isConfirmed = await reader.confirms(finding.steps.flatMap(({ evidence }) => evidence))
    if (!isConfirmed && tries < MAX_TRIES) continue
    const { uid = '' } = object.metadata
    const answer = isConfirmed ? finding : notKnown(`the objects change faster than they can be explained`)
    return explanationOf({ resource, ...where, uid }, explainer?.name ?? 'state', answer, reader)
  }
}

/** Explains the last deletion of an object of this name, whether another one exists now or not. */
export async function whyGone(kind: Kind, where: Where, reader: Reader): Promise<Explanation> {
  const resource = groupResourceText({ group: kind.group, resource: kind.plural })
  return explanationOf({ resource, ...where }, 'deletion', await whyDeleted(kind, where, reader), reader)
}

/** Explains whether a user may do something, and why not. */
export async function whyForbidden(question: AccessQuestion, reader: Reader): Promise<Explanation> {
  const { namespace, name, resource } = question.access
  const about = { resource, ...(namespace !== '' && { namespace }), name }
  return explanationOf(about, 'refusal', await whyRefused(question, reader), reader)
}

function nothingFound(object: KubeObject): Finding {
  return notKnown(`no explainer finds anything wrong with ${nameOf(object)}`)
}

interface AboutObject extends Where {
  readonly resource: string
  readonly uid?: string
}

async function explanationOf(
  { resource, namespace, name, uid }: AboutObject,
  question: string,
  finding: Finding,
  reader: Reader,
): Promise<Explanation> {
  const { verdict, steps, wouldHelp } = await withVisibleCauses(finding, reader)
  return {
    kind: 'Explanation',
    apiVersion: 'hyperkube.io/v1',
    about: { resource, ...(namespace !== undefined && { namespace }), name, ...(uid !== undefined && { uid }) },
    question,
    at: reader.moment?.startsWith('rv:') === true ? reader.moment : timeOf(reader.nowMs),
    verdict,
    steps,
    wouldHelp,
  }
}
