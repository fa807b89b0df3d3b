/** Compares two values in a JSONPath filter, with the rules of Go's templates: only like types compare. */
import { compareUtf8 } from '#lib/json/write.ts'

import { isGoInt } from '../templates/go-value.ts'
import { JsonPathError } from './parse.ts'

type Basic = 'bool' | 'int' | 'float' | 'string'

function basicKind(value: unknown): Basic {
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (isGoInt(value)) return 'int'
  if (typeof value === 'number') return 'float'
  throw new JsonPathError('invalid type for comparison')
}

/** Undefined for an unknown operator. Throws JsonPathError for values that cannot be compared. */
export function compareValues(left: unknown, operator: string, right: unknown): boolean | undefined {
  switch (operator) {
    case '==':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case '<':
      return isLess(left, right)
    case '>=':
      return !isLess(left, right)
    case '<=':
      return isLess(left, right) || isEqual(left, right)
    case '>':
      return !isLess(left, right) && !isEqual(left, right)
    default:
      return undefined
  }
}

function likeKind(left: unknown, right: unknown): Basic {
  const [one, other] = [basicKind(left), basicKind(right)]
  if (one !== other) throw new JsonPathError('incompatible types for comparison')
  return one
}

function isEqual(left: unknown, right: unknown): boolean {
  const kind = likeKind(left, right)
  return kind === 'int' ? BigInt(left as number) === BigInt(right as number) : left === right
}

function isLess(left: unknown, right: unknown): boolean {
  const kind = likeKind(left, right)
  if (kind === 'bool') throw new JsonPathError('invalid type for comparison')
  if (kind === 'string') return compareUtf8(left as string, right as string) < 0
  return (left as number) < (right as number)
}
