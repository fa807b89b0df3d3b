/** The rules of a Job's spec that also hold for the template in a CronJob. */
import type { JobSpec } from '#apis/batch/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import {
  asJson,
  child,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { validateDomainPrefixedPath } from '#meta/validation/rules.ts'
import { validatePodTemplate } from '#model/pod-spec/pod-template.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { podWarnings } from '#model/pod-spec/warnings.ts'

import { validateCounts } from '../../workload.ts'
import { validateFailurePolicy, validateSuccessPolicy } from './policies.ts'

/** Cap the text of failed and completed indexes in the status. */
const MAX_INDEXED_PARALLELISM = 100_000
const MAX_FAILED_INDEXES = 100_000
/** Above so many completions the other two limits are lower. */
const MANY_COMPLETIONS = 100_000
const MAX_PARALLELISM_OF_MANY = 10_000
const MAX_FAILED_INDEXES_OF_MANY = 10_000

const MAX_MANAGER_BYTES = 63

export function isIndexed({ completionMode }: JobSpec): boolean {
  return completionMode === 'Indexed'
}

/** Everything but the selector, which the server makes. */
export function validateJobSpec(path: string, spec: JobSpec, options: PodOptions): FieldError[] {
  return [
    ...validateAmounts(path, spec),
    ...validateManager(child(path, 'managedBy'), spec.managedBy),
    ...validateCompletionMode(path, spec),
    ...(spec.podFailurePolicy === undefined ? [] : validateFailurePolicy(child(path, 'podFailurePolicy'), spec)),
    ...validateSuccess(child(path, 'successPolicy'), spec),
    ...validateReplacementPolicy(child(path, 'podReplacementPolicy'), spec),
    ...validatePodTemplate(spec.template, child(path, 'template'), options),
    ...validateRestartPolicy(child(path, 'template', 'spec', 'restartPolicy'), spec),
  ]
}

function validateAmounts(path: string, spec: JobSpec): FieldError[] {
  const orphaned = spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
  return [
    ...validateCounts(path, spec, [
      'parallelism',
      'completions',
      'activeDeadlineSeconds',
      'backoffLimit',
      'ttlSecondsAfterFinished',
      'backoffLimitPerIndex',
      'maxFailedIndexes',
    ]),
    ...(orphaned ? [required(child(path, 'backoffLimitPerIndex'), 'when maxFailedIndexes is specified')] : []),
  ]
}

function validateManager(field: string, manager: string | undefined): FieldError[] {
  if (manager === undefined) return []
  const errors = validateDomainPrefixedPath(field, manager)
  return byteLength(manager) > MAX_MANAGER_BYTES ? [...errors, tooLong(field, MAX_MANAGER_BYTES)] : errors
}

const modes = ['NonIndexed', 'Indexed']

function validateCompletionMode(path: string, spec: JobSpec): FieldError[] {
  const { completionMode: mode } = spec
  if (mode === 'Indexed') return [...validateIndexed(path, spec), ...validateMany(path, spec)]
  if (mode !== undefined && !modes.includes(mode)) {
    return [notSupported(child(path, 'completionMode'), asJson(mode), modes)]
  }
  return (['backoffLimitPerIndex', 'maxFailedIndexes'] as const)
    .filter((name) => spec[name] !== undefined)
    .map((name) => invalid(child(path, name), spec[name], 'requires indexed completion mode'))
}

function validateIndexed(path: string, { completions, parallelism = 0, maxFailedIndexes }: JobSpec): FieldError[] {
  const failed = child(path, 'maxFailedIndexes')
  const errors: FieldError[] = []
  if (completions === undefined) {
    errors.push(required(child(path, 'completions'), 'when completion mode is Indexed'))
  }
  if (parallelism > MAX_INDEXED_PARALLELISM) {
    const rule = `must be less than or equal to ${MAX_INDEXED_PARALLELISM} when completion mode is Indexed`
    errors.push(invalid(child(path, 'parallelism'), parallelism, rule))
  }
  if (maxFailedIndexes === undefined) return errors
  if (completions !== undefined && maxFailedIndexes > completions) {
    errors.push(invalid(failed, maxFailedIndexes, 'must be less than or equal to completions'))
  }
  if (maxFailedIndexes > MAX_FAILED_INDEXES) {
    errors.push(invalid(failed, maxFailedIndexes, `must be less than or equal to ${MAX_FAILED_INDEXES}`))
  }
  return errors
}

function validateMany(path: string, spec: JobSpec): FieldError[] {
  const { completions = 0, parallelism = 0, maxFailedIndexes, backoffLimitPerIndex } = spec
  if (completions <= MANY_COMPLETIONS || backoffLimitPerIndex === undefined) return []
  const failed = child(path, 'maxFailedIndexes')
  const above = `completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`
  const errors: FieldError[] = []
  if (maxFailedIndexes === undefined) {
    errors.push(required(failed, `must be specified when completions is above ${MANY_COMPLETIONS}`))
  }
  if (parallelism > MAX_PARALLELISM_OF_MANY) {
    const rule = `must be less than or equal to ${MAX_PARALLELISM_OF_MANY} when ${above}`
    errors.push(invalid(child(path, 'parallelism'), parallelism, rule))
  }
  if ((maxFailedIndexes ?? 0) > MAX_FAILED_INDEXES_OF_MANY) {
    const rule = `must be less than or equal to ${MAX_FAILED_INDEXES_OF_MANY} when ${above}`
    errors.push(invalid(failed, maxFailedIndexes, rule))
  }
  return errors
}

function validateSuccess(path: string, spec: JobSpec): FieldError[] {
  if (spec.successPolicy === undefined) return []
  if (isIndexed(spec)) return validateSuccessPolicy(path, spec)
  return [invalid(path, spec.successPolicy, 'requires indexed completion mode')]
}

/** With a failure policy, a pod is judged once it has failed, and not replaced before. */
function validateReplacementPolicy(
  field: string,
  { podReplacementPolicy: policy, podFailurePolicy }: JobSpec,
): FieldError[] {
  const supported = podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed']
  return policy === undefined || supported.includes(policy) ? [] : [notSupported(field, asJson(policy), supported)]
}

/** `Always` is what a pod gets by itself, so it counts as none. */
function validateRestartPolicy(field: string, { template, podFailurePolicy }: JobSpec): FieldError[] {
  const { restartPolicy: policy = '' } = template.spec
  if (policy === 'Always' || policy === '') return [required(field, 'valid values: "OnFailure", "Never"')]
  if (policy !== 'OnFailure' && policy !== 'Never') {
    return [notSupported(field, asJson(policy), ['OnFailure', 'Never'])]
  }
  if (podFailurePolicy === undefined || policy === 'Never') return []
  return [invalid(field, asJson(policy), 'only "Never" is supported when podFailurePolicy is specified')]
}

export function jobSpecWarnings(path: string, spec: JobSpec): string[] {
  const { completions = 0, parallelism = 0 } = spec
  const risk =
    'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail'
  const risky = isIndexed(spec) && completions > MANY_COMPLETIONS && parallelism > MAX_PARALLELISM_OF_MANY
  return [...(risky ? [`${path}: ${risk}`] : []), ...podWarnings(child(path, 'template'), spec.template)]
}

/** A condition that is looked for may be left to mean that it holds. */
export function defaultFailurePolicy({ podFailurePolicy }: JobSpec): void {
  for (const { onPodConditions } of podFailurePolicy?.rules ?? []) {
    for (const pattern of onPodConditions ?? []) pattern.status ||= 'True'
  }
}
