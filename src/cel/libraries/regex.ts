/** The CEL library that finds and extracts parts of strings by regular expression. */
import type { Regexp } from '#lib/regexp.ts'

import { estimatePattern, matchPattern, sizeAt } from '../cost/costs.ts'
import { defineLibrary, member, type ArgumentEstimate, type CallEstimate, type Library } from '../library.ts'
import { INT, STRING, listOf } from '../type.ts'
import { Failure, type Result } from '../value.ts'
import { listValue } from '../values/list.ts'
import { searcher } from '../values/pattern.ts'

function searching(text: string, pattern: string, take: (regexp: Regexp) => Result): Result {
  const regexp = searcher(pattern, text)
  return regexp instanceof Failure ? new Failure(`Illegal regex: ${regexp.message}`) : take(regexp)
}

const find = (text: string, pattern: string): Result =>
  searching(text, pattern, (regexp) => regexp.find(text)?.[0] ?? '')

/** As many as `limit`; all when that is negative. */
const findAll = (text: string, pattern: string, limit: number | bigint): Result =>
  searching(text, pattern, (regexp) => listValue(regexp.findAll(text, limit < 0 ? Infinity : Number(limit))))

/** At worst every character is a separate match. */
const estimate = (args: readonly ArgumentEstimate[]): CallEstimate => ({
  ...estimatePattern(args),
  resultSize: { min: 0n, max: sizeAt(args, 0).max },
})

const behaviour = { cost: matchPattern, dynamicCost: matchPattern, estimate }

export const regex: Library = defineLibrary('kubernetes.regex', {
  find: [member('string_find_string', [STRING, STRING], STRING, { ...behaviour, evaluate: find })],
  findAll: [
    member('string_find_all_string', [STRING, STRING], listOf(STRING), {
      ...behaviour,
      evaluate: (text: string, pattern: string) => findAll(text, pattern, -1),
    }),
    member('string_find_all_string_int', [STRING, STRING, INT], listOf(STRING), { ...behaviour, evaluate: findAll }),
  ],
})
