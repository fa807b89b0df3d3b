/** Moments of the past as people write them: `-2h`, `2026-11-18T03:00Z`, `rv:812`. */
import { spanMs } from '../span.ts'

export type Moment = { readonly revision: number } | { readonly timeMs: number }

const REVISION = /^rv:(\d{1,15})$/
/** RFC 3339, where the seconds may be absent. */
const TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/

/** Throws TypeError with a sentence for the user. */
export function parseMoment(text: string, nowMs: number): Moment {
  const revision = REVISION.exec(text)?.[1]
  if (revision !== undefined) return { revision: Number(revision) }
  const timeMs = text.startsWith('-') ? nowMs - spanOf(text) : timeOf(text)
  if (!Number.isFinite(timeMs)) throw new TypeError(`"${text}" is not a moment; ${FORMS}`)
  if (timeMs > nowMs) throw new TypeError(`"${text}" is in the future; ${FORMS}`)
  return { timeMs }
}

const FORMS = 'write a time ago as -2h, a time as 2026-11-18T03:00Z, or a resourceVersion as rv:812'

function spanOf(text: string): number {
  try {
    return spanMs(text.slice(1))
  } catch {
    return NaN
  }
}

function timeOf(text: string): number {
  const [, day = '', minute = '', second = ':00', zone = ''] = TIME.exec(text) ?? []
  return day === '' ? NaN : Date.parse(`${day}T${minute}${second}${zone.toUpperCase()}`)
}
