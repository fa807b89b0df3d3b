/** Checks calls such as `'%d %s'.format([1, 'a'])` at compile time if the text and the list are literals. */
import type { Call, Expression } from '../syntax/ast.ts'
import type { Finding } from '../syntax/source.ts'
import { type CelType, DYN, runtimeTypeName, unwrap } from '../type.ts'
import type { Checked } from './checked.ts'

export function checkFormat(checked: Checked, node: Call): readonly Finding[] {
  const [list] = node.args
  const { target } = node
  if (list?.kind !== 'list' || target?.kind !== 'literal' || target.value.type !== 'string') return []
  const problem = firstProblem(checked, target.value.value, list.elements)
  return problem === undefined ? [] : [{ at: problem.node?.at ?? node.at, message: problem.message }]
}

interface Problem {
  readonly message: string
  /** Default: the call. */
  readonly node?: Expression
}

function firstProblem(checked: Checked, text: string, args: readonly Expression[]): Problem | undefined {
  let used = 0
  // Clauses begin where no other clause or `%%` has taken the sign.
  for (let at = text.indexOf('%'); at !== -1; at = text.indexOf('%', at)) {
    if (text.charAt(at + 1) === '%') {
      at += 2
      continue
    }
    if (at + 1 >= text.length) return { message: 'unexpected end of string' }
    const arg = args[used]
    if (arg === undefined) return { message: `index ${used} out of range` }
    const clause = parseClause(text, at + 1)
    if (clause.problem !== undefined) return { message: `could not parse formatting clause: ${clause.problem}` }
    const wrong = clause.rule.wrongPart(checked, arg)
    if (wrong !== undefined) {
      const given = runtimeTypeName(typeOf(checked, wrong))
      return { message: `error during formatting: ${clause.rule.complaint}, was given ${given}`, node: wrong }
    }
    at = clause.end
    used++
  }
  if (used === args.length) return undefined
  return { message: `too many arguments supplied to string.format (expected ${used}, got ${args.length})` }
}

interface Rule {
  readonly complaint: string
  /** The part of the argument that cannot be formatted so. */
  readonly wrongPart: (checked: Checked, arg: Expression) => Expression | undefined
}

type Clause = { readonly problem?: undefined; readonly end: number; readonly rule: Rule } | { readonly problem: string }

function parseClause(text: string, start: number): Clause {
  let at = start
  if (text.charAt(at) === '.') {
    const digits = /^[0-9]*/.exec(text.slice(at + 1))?.[0] ?? ''
    at += 1 + digits.length
    if (at >= text.length)
      return { problem: 'error while parsing precision: could not find end of precision specifier' }
    const problem = precisionProblem(digits)
    if (problem !== undefined) {
      const doing = 'error while parsing precision: error while converting precision to integer'
      return { problem: `${doing}: strconv.Atoi: parsing "${digits}": ${problem}` }
    }
  }
  const letter = text.charAt(at)
  const rule = RULES[letter]
  if (rule !== undefined) return { end: at + 1, rule }
  // Upstream looks at bytes.
  const byte = Buffer.from(text.slice(at))[0] ?? 0
  return { problem: `unrecognized formatting clause "${String.fromCharCode(byte)}"` }
}

function precisionProblem(digits: string): string | undefined {
  if (digits === '') return 'invalid syntax'
  return BigInt(digits) > 2n ** 63n - 1n ? 'value out of range' : undefined
}

const scalar = (complaint: string, ...kinds: readonly CelType['kind'][]): Rule => ({
  complaint,
  wrongPart: (checked, arg) => (isOneOf(typeOf(checked, arg), kinds) ? undefined : arg),
})

const PRINTABLE: readonly CelType['kind'][] = [
  ...(['list', 'map', 'int', 'uint', 'double', 'bool', 'string', 'timestamp', 'bytes', 'duration'] as const),
  ...(['type', 'null'] as const),
]

const hex = scalar('only integers, byte buffers, and strings can be formatted as hex', 'int', 'uint', 'string', 'bytes')

const RULES: Readonly<Record<string, Rule>> = {
  s: {
    complaint:
      'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
    wrongPart: unprintable,
  },
  d: scalar('decimal clause can only be used on integers', 'int', 'uint'),
  f: scalar('fixed-point clause can only be used on doubles', 'double', 'string'),
  e: scalar('scientific clause can only be used on doubles', 'double', 'string'),
  b: scalar('only integers and bools can be formatted as binary', 'int', 'uint', 'bool'),
  x: hex,
  X: hex,
  o: scalar('octal clause can only be used on integers', 'int', 'uint'),
}

/** Also looks into literals. */
function unprintable(checked: Checked, arg: Expression): Expression | undefined {
  if (!isOneOf(typeOf(checked, arg), PRINTABLE)) return arg
  const parts =
    arg.kind === 'list' ? arg.elements : arg.kind === 'map' ? arg.entries.flatMap(({ key, value }) => [key, value]) : []
  for (const part of parts) {
    const wrong = unprintable(checked, part)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

function isOneOf(type: CelType, kinds: readonly CelType['kind'][]): boolean {
  return type.kind === 'dyn' || kinds.includes(unwrap(type).kind)
}

function typeOf(checked: Checked, node: Expression): CelType {
  return checked.types[node.id] ?? DYN
}
