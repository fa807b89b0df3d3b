/** Compiles and runs regular expressions of CEL, and bounds work that the cost model does not count. */
import { compileRegexp, RegexpError, type Regexp } from '#lib/regexp.ts'

import { spendEffort } from '../effort.ts'
import { Failure } from '../value.ts'

/** Programs up to this size are fast enough for what cost allows them. */
const SMALL = 200
/** Compiling takes far longer than a match of the same cost. */
const COMPILE_EFFORT = 3000

/** The cache of compiled patterns, including invalid ones. */
const known = new Map<string, Regexp | Failure>()
const MAX_KNOWN = 512

/** A failure with Go's text for an invalid pattern. Throws if a large one has searched too much already. */
export function searcher(pattern: string, text: string): Regexp | Failure {
  const regexp = known.get(pattern) ?? compile(pattern)
  if (regexp instanceof Failure || regexp.size <= SMALL) return regexp
  spendEffort((regexp.size * (text.length + 1)) / 10)
  return regexp
}

function compile(pattern: string): Regexp | Failure {
  spendEffort(COMPILE_EFFORT + 10 * pattern.length)
  const regexp = attempt(pattern)
  if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value as string)
  known.set(pattern, regexp)
  return regexp
}

function attempt(pattern: string): Regexp | Failure {
  try {
    return compileRegexp(pattern)
  } catch (error) {
    if (error instanceof RegexpError) return new Failure(error.message)
    throw error
  }
}
