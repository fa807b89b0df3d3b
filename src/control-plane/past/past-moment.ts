/** The moment in a path below `/past/`: `-2h`; `-2h@60x` for a faster watch; `-2h..-1h` for the changes between two. */
import { type Moment, parseMoment } from '#lib/time/moment.ts'
import { badRequestError } from '#meta/status-errors.ts'

export interface PastMoment {
  readonly moment: Moment
  /** How much faster than its clock a watch delivers the changes after the moment. */
  readonly speed: number
}

export interface PastRange {
  readonly from: Moment
  readonly to: Moment
}

const SPEED = /^(.*)@(\d{1,6}(?:\.\d{1,3})?)x$/
const RANGE = '..'

export function isPastRange(text: string): boolean {
  return text.includes(RANGE)
}

/** Throws StatusError 400. */
export function parsePastMoment(text: string, nowMs: number): PastMoment {
  const [, momentText = text, speedText = '1'] = SPEED.exec(text) ?? []
  const speed = Number(speedText)
  if (speed === 0) throw badRequestError(`the speed of "${text}" must be greater than 0`)
  return { moment: momentOf(momentText, nowMs), speed }
}

/** Without an end, until now. Throws StatusError 400. */
export function parsePastRange(text: string, nowMs: number): PastRange {
  const at = text.indexOf(RANGE)
  const end = text.slice(at + RANGE.length)
  return { from: momentOf(text.slice(0, at), nowMs), to: end === '' ? { timeMs: nowMs } : momentOf(end, nowMs) }
}

function momentOf(text: string, nowMs: number): Moment {
  try {
    return parseMoment(text, nowMs)
  } catch (error) {
    throw badRequestError((error as Error).message)
  }
}
