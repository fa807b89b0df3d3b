/** Regular expressions of expressions: compiled once, and held to the work that cost does not see. */
import { compileRegexp, RegexpError, type Regexp } from '#lib/regexp.ts'

import { spendEffort } from '../effort.ts'
import { Failure } from '../value.ts'

/** Programs up to this size are fast enough for what cost allows them. */
const SMALL = 200

/** A failure with Go's text when it is no pattern. Throws where a large one has searched too much already. */
export function searcher(pattern: string, text: string): Regexp | Failure {
  const regexp = regexpOf(pattern)
  if (regexp instanceof Failure || regexp.size <= SMALL) return regexp
  spendEffort((regexp.size * (text.length + 1)) / 10)
  return regexp
}

function regexpOf(pattern: string): Regexp | Failure {
  try {
    return compileRegexp(pattern)
  } catch (error) {
    if (error instanceof RegexpError) return new Failure(error.message)
    throw error
  }
}
