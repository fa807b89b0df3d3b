/** A plan for people: the steps without the contents of files. */
import type { Clock } from '#lib/clock.ts'

import type { PlanOptions } from '../plan/planning.ts'
import { stepsOf } from '../plan/step.ts'
import { planFor } from './converge.ts'
import { planText } from './progress.ts'
import type { Session } from './session.ts'

export interface PlanView {
  readonly steps: readonly { readonly host: string; readonly type: string; readonly describe: string }[]
  /** Reasons against the plan. */
  readonly faults: readonly string[]
  readonly notes: readonly string[]
  /** The format of `build plan`. */
  readonly text: string
}

/** The plan of the first stage of certificates and keys. Changes nothing. */
export async function viewPlan(session: Session, options: PlanOptions, clock: Clock): Promise<PlanView> {
  const found = await planFor(session, await session.desired(session.stage), options, clock)
  const later = session.stages.length - 1
  const notes = [
    ...found.notes,
    ...(later === 0 ? [] : [`${later} further stages of certificates or keys will follow`]),
  ]
  const steps = stepsOf(found).map(({ host, describe, action: { type } }) => ({ host, type, describe }))
  return { steps, faults: found.faults, notes, text: planText({ ...found, notes }) }
}
