/** Validates the spec of a Job, also in the template of a CronJob. */
import type { JobSpec } from '#apis/batch/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOf, validateDomainPrefixedPath } from '#meta/validation/rules.ts'
import { validatePodTemplate } from '#model/pod-spec/pod-template.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'

import { validateCounts } from '../../workload.ts'
import { validateFailurePolicy, validateSuccessPolicy } from './policies.ts'

/** Limit the text of failed and completed indexes in the status. */
const MAX_INDEXED_PARALLELISM = 100_000
const MAX_FAILED_INDEXES = 100_000
/** Above this number of completions the other two limits are lower. */
const MANY_COMPLETIONS = 100_000
const MAX_PARALLELISM_OF_MANY = 10_000
const MAX_FAILED_INDEXES_OF_MANY = 10_000

const MAX_MANAGER_BYTES = 63

export function isIndexed({ completionMode }: JobSpec): boolean {
  return completionMode === 'Indexed'
}

/** Everything except the generated selector. */
export function validateJobSpec(path: FieldPath, spec: JobSpec, options: PodOptions): FieldError[] {
  return collectErrors(
    validateAmounts(path, spec),
    validateManager(path.child('managedBy'), spec.managedBy),
    validateCompletionMode(path, spec),
    spec.podFailurePolicy !== undefined && validateFailurePolicy(path.child('podFailurePolicy'), spec),
    validateSuccess(path.child('successPolicy'), spec),
    validateReplacementPolicy(path.child('podReplacementPolicy'), spec),
    validatePodTemplate(spec.template, path.child('template'), options),
    validateRestartPolicy(path.child('template.spec.restartPolicy'), spec),
  )
}

function validateAmounts(path: FieldPath, spec: JobSpec): FieldError[] {
  const orphaned = spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
  return collectErrors(
    validateCounts(path, spec, [
      'parallelism',
      'completions',
      'activeDeadlineSeconds',
      'backoffLimit',
      'ttlSecondsAfterFinished',
      'backoffLimitPerIndex',
      'maxFailedIndexes',
    ]),
    orphaned && path.child('backoffLimitPerIndex').required('when maxFailedIndexes is specified'),
  )
}

function validateManager(path: FieldPath, manager: string | undefined): FieldError[] {
  if (manager === undefined) return []
  const errors = validateDomainPrefixedPath(path, manager)
  return byteLength(manager) > MAX_MANAGER_BYTES ? [...errors, path.tooLong(MAX_MANAGER_BYTES)] : errors
}

const modes = ['NonIndexed', 'Indexed']

function validateCompletionMode(path: FieldPath, spec: JobSpec): FieldError[] {
  const { completionMode: mode } = spec
  if (mode === 'Indexed') return [...validateIndexed(path, spec), ...validateMany(path, spec)]
  if (mode !== undefined && !modes.includes(mode)) {
    return [path.child('completionMode').notSupported(asJson(mode), modes)]
  }
  return (['backoffLimitPerIndex', 'maxFailedIndexes'] as const)
    .filter((name) => spec[name] !== undefined)
    .map((name) => path.child(name).invalid(spec[name], 'requires indexed completion mode'))
}

function validateIndexed(path: FieldPath, { completions, parallelism = 0, maxFailedIndexes }: JobSpec): FieldError[] {
  const failed = path.child('maxFailedIndexes')
  const errors: FieldError[] = []
  if (completions === undefined) {
    errors.push(path.child('completions').required('when completion mode is Indexed'))
  }
  if (parallelism > MAX_INDEXED_PARALLELISM) {
    const rule = `must be less than or equal to ${MAX_INDEXED_PARALLELISM} when completion mode is Indexed`
    errors.push(path.child('parallelism').invalid(parallelism, rule))
  }
  if (maxFailedIndexes === undefined) return errors
  if (completions !== undefined && maxFailedIndexes > completions) {
    errors.push(failed.invalid(maxFailedIndexes, 'must be less than or equal to completions'))
  }
  if (maxFailedIndexes > MAX_FAILED_INDEXES) {
    errors.push(failed.invalid(maxFailedIndexes, `must be less than or equal to ${MAX_FAILED_INDEXES}`))
  }
  return errors
}

function validateMany(path: FieldPath, spec: JobSpec): FieldError[] {
  const { completions = 0, parallelism = 0, maxFailedIndexes, backoffLimitPerIndex } = spec
  if (completions <= MANY_COMPLETIONS || backoffLimitPerIndex === undefined) return []
  const failed = path.child('maxFailedIndexes')
  const above = `completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`
  return collectErrors(
    maxFailedIndexes === undefined &&
      failed.required(`must be specified when completions is above ${MANY_COMPLETIONS}`),
    parallelism > MAX_PARALLELISM_OF_MANY &&
      path
        .child('parallelism')
        .invalid(parallelism, `must be less than or equal to ${MAX_PARALLELISM_OF_MANY} when ${above}`),
    (maxFailedIndexes ?? 0) > MAX_FAILED_INDEXES_OF_MANY &&
      failed.invalid(maxFailedIndexes, `must be less than or equal to ${MAX_FAILED_INDEXES_OF_MANY} when ${above}`),
  )
}

function validateSuccess(path: FieldPath, spec: JobSpec): FieldError[] {
  if (spec.successPolicy === undefined) return []
  if (isIndexed(spec)) return validateSuccessPolicy(path, spec)
  return [path.invalid(spec.successPolicy, 'requires indexed completion mode')]
}

/** With a pod failure policy, a pod is replaced only after it has failed. */
function validateReplacementPolicy(
  path: FieldPath,
  { podReplacementPolicy: policy, podFailurePolicy }: JobSpec,
): FieldError[] {
  const supported = podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed']
  return oneOf(path, policy, supported)
}

/** `Always` is the default of pods, so it counts as unset. */
function validateRestartPolicy(path: FieldPath, { template, podFailurePolicy }: JobSpec): FieldError[] {
  const { restartPolicy: policy = '' } = template.spec
  if (policy === 'Always' || policy === '') return [path.required('valid values: "OnFailure", "Never"')]
  if (policy !== 'OnFailure' && policy !== 'Never') {
    return [path.notSupported(asJson(policy), ['OnFailure', 'Never'])]
  }
  if (podFailurePolicy === undefined || policy === 'Never') return []
  return [path.invalid(asJson(policy), 'only "Never" is supported when podFailurePolicy is specified')]
}

export function jobSpecWarnings(path: FieldPath, spec: JobSpec): string[] {
  const { completions = 0, parallelism = 0 } = spec
  const risk =
    'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail'
  const risky = isIndexed(spec) && completions > MANY_COMPLETIONS && parallelism > MAX_PARALLELISM_OF_MANY
  return [...(risky ? [`${path}: ${risk}`] : []), ...podWarnings(path.child('template'), spec.template)]
}

/** An omitted status of a pattern means True. */
export function defaultFailurePolicy({ podFailurePolicy }: JobSpec): void {
  for (const { onPodConditions } of podFailurePolicy?.rules ?? []) {
    for (const pattern of onPodConditions ?? []) pattern.status ||= 'True'
  }
}
