/** Escapes property names that are not valid CEL identifiers. */
import { RESERVED_WORDS } from './lexer.ts'

const escapes: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
}

/** The identifier for a property; undefined when expressions cannot reach it. */
export function escapeName(name: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined
  return RESERVED_WORDS.has(name) ? `__${name}__` : name.replaceAll(/__|[./-]/g, (found) => escapes[found] as string)
}

const escaped = new Map(Object.entries(escapes).map(([text, escape]) => [escape, text]))

/** The property that an identifier stands for; undefined when it is none that was escaped. */
export function unescapeName(name: string): string | undefined {
  if (!name.includes('__')) return undefined
  const word = /^__(.*)__$/.exec(name)?.[1]
  if (word !== undefined && RESERVED_WORDS.has(word)) return word
  return name.replaceAll(/__(?:underscores|dot|dash|slash)__/g, (found) => escaped.get(found) as string)
}
