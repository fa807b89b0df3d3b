/**
 * Reads user names, groups and `extra` keys from request headers. Node decodes header values as latin1; this file
 * decodes them as UTF-8.
 */
import type { Exchange } from '#lib/http/exchange.ts'

type Headers = Pick<Exchange, 'rawHeaders'>

/** Every value of a header, in order, by lower-case name. */
export function headerTexts({ rawHeaders }: Headers, name: string): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === name) values.push(utf8(rawHeaders[at + 1] ?? ''))
  }
  return values
}

/** `prefix-<key>: value` for each of the lower-case prefixes: keys are percent-decoded and in lower case. */
export function extrasByPrefix({ rawHeaders }: Headers, prefixes: readonly string[]): Record<string, string[]> {
  const extra = new Map<string, string[]>()
  for (const prefix of prefixes) {
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] ?? '').toLowerCase()
      if (!name.startsWith(prefix)) continue
      const key = decodeKey(name.slice(prefix.length))
      extra.set(key, [...(extra.get(key) ?? []), utf8(rawHeaders[at + 1] ?? '')])
    }
  }
  return Object.fromEntries(extra)
}

/** Node decodes header bytes as latin1, but user names are UTF-8. */
function utf8(value: string): string {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u007f]/.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value
}

/** A badly encoded key is used unchanged. */
function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
