/**
 * Regular expressions in linear time: RE2, with Go's syntax and error texts. Every pattern from a user runs here,
 * because the native engine can take exponential time.
 */
import { createRequire } from 'node:module'

import type * as Re2js from 're2js'

export interface Regexp {
  readonly source: string
  /** Of the compiled program, in instructions: what searching may take for each character. `x{1000}` is short and large. */
  readonly size: number
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean
  /** The first match, its groups behind it (undefined where a group took no part); undefined when there is none. */
  find(text: string): readonly (string | undefined)[] | undefined
  /** The matches that do not overlap, from left to right, `limit` of them at most; no empty one right behind another. */
  findAll(text: string, limit?: number): string[]
}

/** The message is Go's: "error parsing regexp: missing closing ]: `[a`". */
export class RegexpError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RegexpError'
  }
}

/** Compiled patterns kept: more than a cluster's policies and schemas have, few enough to forget about. */
const MAX_CACHED = 512

/** In order of last use, the oldest first. */
const cache = new Map<string, Regexp>()

/** Throws a RegexpError for an invalid pattern. The result is stateless and may be shared. */
export function compileRegexp(source: string): Regexp {
  const known = cache.get(source)
  const regexp = known ?? create(source)
  cache.delete(source)
  cache.set(source, regexp)
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value as string)
  return regexp
}

function create(source: string): Regexp {
  const compiled = compile(source)
  return {
    source,
    size: compiled.programSize(),
    test: (text) => compiled.test(text),
    find(text) {
      const matcher = compiled.matcher(text)
      if (!matcher.find()) return undefined
      return Array.from({ length: matcher.groupCount() + 1 }, (_, group) => matcher.group(group) ?? undefined)
    },
    findAll(text, limit = Infinity) {
      const matcher = compiled.matcher(text)
      const found: string[] = []
      let end = -1
      while (found.length < limit && matcher.find()) {
        const match = matcher.group() ?? ''
        if (match !== '' || matcher.start() !== end) found.push(match)
        end = matcher.end()
      }
      return found
    },
  }
}

/** Loaded with the first pattern: most servers never meet one, and it takes 2 MB. */
const re2js = (): typeof Re2js => require('re2js') as typeof Re2js
const require = createRequire(import.meta.url)

function compile(source: string): Re2js.RE2JS {
  const { RE2JS, RE2JSException } = re2js()
  try {
    return RE2JS.compile(source)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw new RegexpError(toGoMessage(cause.message), { cause })
  }
}

/** Go quotes the rest of the pattern even where nothing is left. */
function toGoMessage(message: string): string {
  return message.endsWith('trailing backslash at end of expression') ? `${message}: \`\`` : message
}
