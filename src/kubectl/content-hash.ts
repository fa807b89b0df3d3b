/** Computes the hash that `--append-hash` adds to a name: ten letters derived from the content. */
import { createHash } from 'node:crypto'

import { goJson } from '#lib/go/text.ts'

/** Replaces letters that could form words or look alike. */
const INSTEAD: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' }

/** `content`: members by name, sorted by name. */
export function contentHash(content: Readonly<Record<string, unknown>>): string {
  const hex = createHash('sha256').update(goJson(content)).digest('hex')
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (letter) => INSTEAD[letter] ?? letter)
}
