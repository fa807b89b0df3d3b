/** What `--append-hash` puts behind a name: ten letters that follow from the content. */
import { createHash } from 'node:crypto'

import { goJson } from '#lib/go-text.ts'

/** Letters that could make a word, or look like another, are others. */
const INSTEAD: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' }

/** `content`: members by name, in the order of their names. */
export function contentHash(content: Readonly<Record<string, unknown>>): string {
  const hex = createHash('sha256').update(goJson(content)).digest('hex')
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (letter) => INSTEAD[letter] ?? letter)
}
