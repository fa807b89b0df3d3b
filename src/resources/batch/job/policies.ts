/** Validates the pod failure policy and the success policy of a Job. */
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyOnPodConditionsPattern,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from '#apis/batch/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { nonNegative, oneOf, validateQualifiedName } from '#meta/validation/rules.ts'

import { countIndexes } from './indexes.ts'

const MAX_RULES = 20
const MAX_EXIT_CODES = 255
const MAX_CONDITIONS = 20
const MAX_INDEXES_BYTES = 64 * 1024

const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const operators = ['In', 'NotIn']
const statuses = ['False', 'True', 'Unknown']

/** An Invalid error without a value. */
export function refused(path: FieldPath, detail: string): FieldError {
  return { ...path.tooMany(-1, -1), type: 'FieldValueInvalid', detail }
}

/** Rejects values outside of `supported`, and reports a missing value with that list. */
function chosen(path: FieldPath, value: string, supported: readonly string[]): FieldError[] {
  if (value === '') return [path.required(`valid values: [${supported.map(goQuote).join(' ')}]`)]
  return oneOf(path, value, supported)
}

export function validateFailurePolicy(path: FieldPath, spec: JobSpec): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? []
  const { containers, initContainers } = spec.template.spec
  const names = new Set([...(containers ?? []), ...(initContainers ?? [])].map(({ name }) => name))
  const field = path.child('rules')
  return collectErrors(
    rules.length > MAX_RULES && field.tooMany(rules.length, MAX_RULES),
    field.each(rules, (path, rule) => validateFailureRule(path, rule, spec, names)),
  )
}

function validateFailureRule(
  path: FieldPath,
  { action, onExitCodes, onPodConditions: conditions = [] }: PodFailurePolicyRule,
  { backoffLimitPerIndex }: JobSpec,
  containers: ReadonlySet<string>,
): FieldError[] {
  return collectErrors(
    chosen(path.child('action'), action, actions),
    action === 'FailIndex' &&
      backoffLimitPerIndex === undefined &&
      path.child('action').invalid(asJson(action), 'requires the backoffLimitPerIndex to be set'),
    onExitCodes !== undefined && validateExitCodes(path.child('onExitCodes'), onExitCodes, containers),
    validatePatterns(path.child('onPodConditions'), conditions),
    onExitCodes !== undefined &&
      conditions.length > 0 &&
      refused(path, 'specifying both OnExitCodes and OnPodConditions is not supported'),
    onExitCodes === undefined &&
      conditions.length === 0 &&
      refused(path, 'specifying one of OnExitCodes and OnPodConditions is required'),
  )
}

function validatePatterns(path: FieldPath, patterns: readonly PodFailurePolicyOnPodConditionsPattern[]): FieldError[] {
  return collectErrors(
    patterns.length > MAX_CONDITIONS && path.tooMany(patterns.length, MAX_CONDITIONS),
    path.each(patterns, (path, { type, status }) => [
      ...validateQualifiedName(path.child('type'), type),
      ...chosen(path.child('status'), status, statuses),
    ]),
  )
}

function validateExitCodes(
  path: FieldPath,
  { operator, containerName, values }: PodFailurePolicyOnExitCodesRequirement,
  containers: ReadonlySet<string>,
): FieldError[] {
  const field = path.child('values')
  const codes = values ?? []
  const errors = chosen(path.child('operator'), operator, operators)
  if (containerName !== undefined && !containers.has(containerName)) {
    const rule = 'must be one of the container or initContainer names in the pod template'
    errors.push(path.child('containerName').invalid(containerName, rule))
  }
  if (codes.length === 0) errors.push(field.invalid(values, 'at least one value is required'))
  if (codes.length > MAX_EXIT_CODES) errors.push(field.tooMany(codes.length, MAX_EXIT_CODES))
  const seen = new Set<number>()
  for (const [at, code] of codes.entries()) {
    if (operator === 'In' && code === 0) {
      errors.push(field.index(at).invalid(code, 'must not be 0 for the In operator'))
    }
    if (seen.has(code)) errors.push(field.index(at).duplicate(code))
    seen.add(code)
  }
  const isOrdered = codes.every((code, at) => at === 0 || (codes[at - 1] as number) <= code)
  return isOrdered ? errors : [...errors, field.invalid(values, 'must be ordered')]
}

export function validateSuccessPolicy(path: FieldPath, { successPolicy, completions = 0 }: JobSpec): FieldError[] {
  const rules = successPolicy?.rules ?? []
  const field = path.child('rules')
  const missing = 'at least one rules must be specified when the successPolicy is specified'
  return collectErrors(
    rules.length === 0 && field.required(missing),
    rules.length > MAX_RULES && field.tooMany(rules.length, MAX_RULES),
    field.each(rules, (path, rule) => validateSuccessRule(path, rule, completions)),
  )
}

function validateSuccessRule(
  path: FieldPath,
  { succeededCount: count, succeededIndexes: indexes }: SuccessPolicyRule,
  completions: number,
): FieldError[] {
  const errors: FieldError[] = []
  if (count === undefined && indexes === undefined) {
    errors.push(path.required('at least one of succeededCount or succeededIndexes must be specified'))
  }
  let named = 0
  if (indexes !== undefined) {
    const field = path.child('succeededIndexes')
    if (indexes.length > MAX_INDEXES_BYTES) errors.push(field.tooLong(MAX_INDEXES_BYTES))
    try {
      named = countIndexes(indexes, completions)
    } catch (error) {
      errors.push(field.invalid(indexes, `error parsing succeededIndexes: ${(error as Error).message}`))
    }
  }
  if (count === undefined) return errors
  const field = path.child('succeededCount')
  const atMost = (bound: number, what: string): FieldError[] =>
    count > bound ? [field.invalid(count, `must be less than or equal to ${bound} (the number of ${what})`)] : []
  return collectErrors(
    errors,
    nonNegative(field, count),
    atMost(completions, 'specified completions'),
    indexes !== undefined && atMost(named, 'indexes in the specified succeededIndexes field'),
  )
}
