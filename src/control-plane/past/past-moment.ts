/** The moment in a path below `/past/`: `-2h`, or `-2h@60x` for a watch that plays sixty times as fast. */
import { type Moment, parseMoment } from '#lib/moment.ts'
import { badRequestError } from '#meta/status-errors.ts'

export interface PastMoment {
  readonly moment: Moment
  /** How much faster than its clock a watch delivers the changes after the moment. */
  readonly speed: number
}

const SPEED = /^(.*)@(\d{1,6}(?:\.\d{1,3})?)x$/

/** Throws StatusError 400. */
export function parsePastMoment(text: string, nowMs: number): PastMoment {
  const [, momentText = text, speedText = '1'] = SPEED.exec(text) ?? []
  const speed = Number(speedText)
  if (speed === 0) throw badRequestError(`the speed of "${text}" must be greater than 0`)
  try {
    return { moment: parseMoment(momentText, nowMs), speed }
  } catch (error) {
    throw badRequestError((error as Error).message)
  }
}
