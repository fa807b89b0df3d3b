/** Parses the file of `--history-policy-file` (hyperkube.io/v1 HistoryPolicy). */
import { DEFAULT_POLICY, type HistoryPolicy, type HistoryRule, LEVELS } from '#history/policy.ts'
import { spanMs } from '#lib/span.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

const STRUCTS = {
  'v1.HistoryPolicy': { maxAge: 'string', maxBytes: 'string', rules: '[]v1.HistoryRule' },
  'v1.HistoryRule': { level: 'string', resources: '[]string' },
} as const

const POLICY = defineConfig(['HistoryPolicy', 'v1.HistoryPolicy'], ['hyperkube.io/v1'], STRUCTS)

/** Throws an error that names each wrong field. */
export function parseHistoryPolicy(source: string): HistoryPolicy {
  const {
    maxAge = '',
    maxBytes = '',
    rules = [],
  } = readConfig(source, [POLICY]).value as {
    readonly maxAge?: string
    readonly maxBytes?: string
    readonly rules?: readonly Partial<HistoryRule>[]
  }
  const errors: FieldError[] = []
  const read = (name: string, text: string, parse: (text: string) => number, usual: number): number => {
    if (text === '') return usual
    try {
      const value = parse(text)
      if (value > 0) return value
      errors.push(fieldPath(name).invalid(text, 'must be greater than 0'))
    } catch (error) {
      errors.push(fieldPath(name).invalid(text, (error as Error).message))
    }
    return usual
  }
  const maxAgeMs = read('maxAge', maxAge, spanMs, DEFAULT_POLICY.maxAgeMs)
  const bytes = read('maxBytes', maxBytes, (text) => quantityValue(parseQuantity(text)), DEFAULT_POLICY.maxBytes)
  errors.push(...rules.flatMap((rule, at) => ruleErrors(fieldPath('rules').index(at), rule)))
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return { maxAgeMs, maxBytes: bytes, rules: rules as readonly HistoryRule[] }
}

function ruleErrors(
  path: FieldPath,
  { level = '', resources = [] }: { level?: string; resources?: readonly string[] },
): FieldError[] {
  return collectErrors(
    level === '' && path.child('level').required(),
    level !== '' && !LEVELS.some((known) => known === level) && path.child('level').notSupported(level, LEVELS),
    resources.length === 0 && path.child('resources').required(),
  )
}
