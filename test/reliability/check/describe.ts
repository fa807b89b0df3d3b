/** Formats operations and items of the history for a report. */
import type { Operation } from '../history.ts'
import type { Item } from '../store.ts'

/** An operation in a report. */
export function describe(operation: Operation): string {
  const { client, method, start, end, argument, result, error } = operation
  const answer = error === undefined ? shorten(JSON.stringify(result)) : error.code
  return `client ${client} ${method} ${shorten(JSON.stringify(argument))} → ${answer} [${start}, ${end}]`
}

export function show(item: Item | null | undefined): string {
  if (item == null) return 'nothing'
  const { key, value, create, mod, lease } = item
  return `${key}=${shorten(value)} (created ${create}, changed ${mod}${lease === 0 ? '' : `, lease ${lease}`})`
}

function shorten(text: string | undefined): string {
  // Values repeat their own name to become long.
  const short = (text ?? 'nothing').replaceAll(/([^"~]*~)\1+[^"]*/g, '$1')
  return short.length <= 300 ? short : `${short.slice(0, 300)}…`
}
