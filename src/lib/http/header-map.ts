/** Headers by name from a list of names and values. */
import type { IncomingHttpHeaders } from 'node:http'

import type { HeaderList } from './exchange.ts'

/** By lower-case name; several values of one name are joined by commas, but for cookies. */
export function headersOf(list: HeaderList): IncomingHttpHeaders {
  const headers = Object.create(null) as Record<string, string | string[]>
  for (let at = 0; at + 1 < list.length; at += 2) {
    const name = (list[at] ?? '').toLowerCase()
    const value = list[at + 1] ?? ''
    const before = headers[name]
    if (name === 'set-cookie') headers[name] = [before ?? [], value].flat()
    else headers[name] = before === undefined ? value : `${String(before)}, ${value}`
  }
  return headers
}
