/** When a failed pod counts, and when enough of them have succeeded: the two policies of a Job. */
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyOnPodConditionsPattern,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from '#apis/batch/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  index,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '#meta/validation/field-error.ts'
import { nonNegative } from '#meta/validation/rules.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

import { countIndexes } from './indexes.ts'

const MAX_RULES = 20
const MAX_EXIT_CODES = 255
const MAX_CONDITIONS = 20
const MAX_INDEXES_BYTES = 64 * 1024

const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const operators = ['In', 'NotIn']
const statuses = ['False', 'True', 'Unknown']

/** An Invalid whose value says nothing and is not shown. */
export function refused(field: string, detail: string): FieldError {
  return { ...tooMany(field, -1, -1), type: 'FieldValueInvalid', detail }
}

/** Refuses what is none of `supported`, and an absent value with the list of them. */
function chosen(field: string, value: string, supported: readonly string[]): FieldError[] {
  if (value === '') return [required(field, `valid values: [${supported.map(goQuote).join(' ')}]`)]
  return supported.includes(value) ? [] : [notSupported(field, asJson(value), supported)]
}

export function validateFailurePolicy(path: string, spec: JobSpec): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? []
  const { containers, initContainers } = spec.template.spec
  const names = new Set([...(containers ?? []), ...(initContainers ?? [])].map(({ name }) => name))
  const field = child(path, 'rules')
  return [
    ...(rules.length > MAX_RULES ? [tooMany(field, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, at) => validateFailureRule(index(field, at), rule, spec, names)),
  ]
}

function validateFailureRule(
  path: string,
  { action, onExitCodes, onPodConditions: conditions = [] }: PodFailurePolicyRule,
  { backoffLimitPerIndex }: JobSpec,
  containers: ReadonlySet<string>,
): FieldError[] {
  const errors = chosen(child(path, 'action'), action, actions)
  if (action === 'FailIndex' && backoffLimitPerIndex === undefined) {
    errors.push(invalid(child(path, 'action'), asJson(action), 'requires the backoffLimitPerIndex to be set'))
  }
  if (onExitCodes !== undefined) {
    errors.push(...validateExitCodes(child(path, 'onExitCodes'), onExitCodes, containers))
  }
  errors.push(...validatePatterns(child(path, 'onPodConditions'), conditions))
  if (onExitCodes !== undefined && conditions.length > 0) {
    errors.push(refused(path, 'specifying both OnExitCodes and OnPodConditions is not supported'))
  }
  if (onExitCodes === undefined && conditions.length === 0) {
    errors.push(refused(path, 'specifying one of OnExitCodes and OnPodConditions is required'))
  }
  return errors
}

function validatePatterns(field: string, patterns: readonly PodFailurePolicyOnPodConditionsPattern[]): FieldError[] {
  return [
    ...(patterns.length > MAX_CONDITIONS ? [tooMany(field, patterns.length, MAX_CONDITIONS)] : []),
    ...patterns.flatMap(({ type, status }, at) => [
      ...validateQualifiedName(child(index(field, at), 'type'), type),
      ...chosen(child(index(field, at), 'status'), status, statuses),
    ]),
  ]
}

function validateExitCodes(
  path: string,
  { operator, containerName, values }: PodFailurePolicyOnExitCodesRequirement,
  containers: ReadonlySet<string>,
): FieldError[] {
  const field = child(path, 'values')
  const codes = values ?? []
  const errors = chosen(child(path, 'operator'), operator, operators)
  if (containerName !== undefined && !containers.has(containerName)) {
    const rule = 'must be one of the container or initContainer names in the pod template'
    errors.push(invalid(child(path, 'containerName'), containerName, rule))
  }
  if (codes.length === 0) errors.push(invalid(field, values, 'at least one value is required'))
  if (codes.length > MAX_EXIT_CODES) errors.push(tooMany(field, codes.length, MAX_EXIT_CODES))
  const seen = new Set<number>()
  for (const [at, code] of codes.entries()) {
    if (operator === 'In' && code === 0) {
      errors.push(invalid(index(field, at), code, 'must not be 0 for the In operator'))
    }
    if (seen.has(code)) errors.push(duplicate(index(field, at), code))
    seen.add(code)
  }
  const isOrdered = codes.every((code, at) => at === 0 || (codes[at - 1] as number) <= code)
  return isOrdered ? errors : [...errors, invalid(field, values, 'must be ordered')]
}

export function validateSuccessPolicy(path: string, { successPolicy, completions = 0 }: JobSpec): FieldError[] {
  const rules = successPolicy?.rules ?? []
  const field = child(path, 'rules')
  const missing = 'at least one rules must be specified when the successPolicy is specified'
  return [
    ...(rules.length === 0 ? [required(field, missing)] : []),
    ...(rules.length > MAX_RULES ? [tooMany(field, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, at) => validateSuccessRule(index(field, at), rule, completions)),
  ]
}

function validateSuccessRule(
  path: string,
  { succeededCount: count, succeededIndexes: indexes }: SuccessPolicyRule,
  completions: number,
): FieldError[] {
  const errors: FieldError[] = []
  if (count === undefined && indexes === undefined) {
    errors.push(required(path, 'at least one of succeededCount or succeededIndexes must be specified'))
  }
  let named = 0
  if (indexes !== undefined) {
    const field = child(path, 'succeededIndexes')
    if (indexes.length > MAX_INDEXES_BYTES) errors.push(tooLong(field, MAX_INDEXES_BYTES))
    try {
      named = countIndexes(indexes, completions)
    } catch (error) {
      errors.push(invalid(field, indexes, `error parsing succeededIndexes: ${(error as Error).message}`))
    }
  }
  if (count === undefined) return errors
  const field = child(path, 'succeededCount')
  const atMost = (bound: number, what: string): FieldError[] =>
    count > bound ? [invalid(field, count, `must be less than or equal to ${bound} (the number of ${what})`)] : []
  return [
    ...errors,
    ...nonNegative(field, count),
    ...atMost(completions, 'specified completions'),
    ...(indexes === undefined ? [] : atMost(named, 'indexes in the specified succeededIndexes field')),
  ]
}
