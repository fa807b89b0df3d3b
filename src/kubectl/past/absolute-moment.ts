/**
 * Moments of a command line. A relative moment becomes a time once for each invocation, so that all its requests read
 * the same state. Times are exact to a second, as those of the server's commits. Pure.
 */
import type { Clock } from '#lib/clock.ts'
import { parseMoment } from '#lib/time/moment.ts'

import { KubectlError } from '../errors.ts'

export interface AbsoluteMoment {
  /** The moment in paths: `2026-11-18T03:00:00Z` or `rv:812`. */
  readonly text: string
  /** Undefined: the server knows the time of the resourceVersion. */
  readonly timeMs?: number
}

/** Throws KubectlError for a text that is no moment, with the flag in front. */
export function absoluteMoment(flag: string, text: string, nowMs: number): AbsoluteMoment {
  try {
    const moment = parseMoment(text, nowMs)
    return 'revision' in moment ? { text } : momentOf(moment.timeMs)
  } catch (error) {
    throw error instanceof TypeError ? new KubectlError(`${flag}: ${error.message}`, { cause: error }) : error
  }
}

/** The moment of a time. */
export function momentOf(timeMs: number): AbsoluteMoment {
  const secondMs = Math.floor(timeMs / 1000) * 1000
  return { text: `${new Date(secondMs).toISOString().slice(0, 19)}Z`, timeMs: secondMs }
}

/** The values of the flags of a reading command; absent if the command does not have them. */
export interface PastValues {
  readonly at?: unknown
  readonly speed?: unknown
  readonly watch?: unknown
  readonly 'watch-only'?: unknown
}

/** The moment whose state a command reads; undefined: now. Throws KubectlError for flags without effect. */
export function momentToRead(values: PastValues, nowMs: number): AbsoluteMoment | undefined {
  const { at = '', speed = '' } = values
  if (typeof at !== 'string' || typeof speed !== 'string') return undefined
  if (at === '' && speed !== '') throw new KubectlError('--speed only works with --at')
  if (at === '') return undefined
  const moment = absoluteMoment('--at', at, nowMs)
  if (speed === '') return moment
  if (values.watch !== true && values['watch-only'] !== true) throw new KubectlError('--speed only works with --watch')
  const [, factor = ''] = /^(\d{1,6}(?:\.\d{1,3})?)x?$/.exec(speed) ?? []
  if (!(Number(factor) > 0)) throw new KubectlError(`--speed: "${speed}" is not a number greater than 0, such as 60`)
  return { ...moment, text: `${moment.text}@${factor}x` }
}

/** Shows a time as the present one, so that ages are those of that time. */
export function clockAt(clock: Clock, timeMs: number): Clock {
  const startMs = clock.elapsed()
  return {
    now: () => timeMs + clock.elapsed() - startMs,
    elapsed: () => clock.elapsed(),
    after: (delayMs, task, options) => clock.after(delayMs, task, options),
    during: (work) => clock.during(work),
  }
}
