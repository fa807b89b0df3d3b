/**
 * Validates changes of a Job's status, because controllers other than ours may write it (`managedBy`). A rule runs only
 * if its fields have changed, so that an old invalid status stays writable.
 */
import type { Job, JobSpec, JobStatus } from '#apis/batch/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { asJson, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import { validateCounts } from '../../workload.ts'
import { countIndexes, sharedIndex } from './indexes.ts'
import { refused } from './policies.ts'
import { isIndexed } from './spec.ts'

export function validateJobStatus(next: Job, old: Job): FieldError[] {
  const step = stepOf(next, old)
  return [
    ...validateCounts(fieldPath('status'), next.status, ['active', 'succeeded', 'failed', 'ready', 'terminating']),
    ...validateUncounted(next.status),
    ...rules.flatMap(({ about, check }) => (about(step) ? check(step) : [])),
  ]
}

export function hasCondition({ status }: Job, type: string, value = 'True'): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === type && condition.status === value)
}

/** The conditions and the fields that depend on them. */
interface Facts {
  readonly complete: boolean
  readonly failed: boolean
  readonly finished: boolean
  readonly failureTarget: boolean
  readonly criteriaMet: boolean
}

interface Step {
  readonly spec: JobSpec
  readonly status: JobStatus
  readonly old: JobStatus
  readonly now: Facts
  readonly before: Facts
  /** True if one of these fields has changed. */
  turned(...facts: readonly (keyof Facts)[]): boolean
  changed(...fields: readonly (keyof JobStatus)[]): boolean
  readonly resumes: boolean
}

function factsOf(job: Job): Facts {
  const complete = hasCondition(job, 'Complete')
  const failed = hasCondition(job, 'Failed')
  return {
    complete,
    failed,
    finished: complete || failed,
    failureTarget: hasCondition(job, 'FailureTarget'),
    criteriaMet: hasCondition(job, 'SuccessCriteriaMet'),
  }
}

function stepOf(next: Job, old: Job): Step {
  const [now, before] = [factsOf(next), factsOf(old)]
  return {
    spec: next.spec,
    status: next.status,
    old: old.status,
    now,
    before,
    turned: (...facts) => facts.some((fact) => now[fact] !== before[fact]),
    changed: (...fields) => fields.some((field) => !semanticEqual(next.status[field], old.status[field])),
    resumes: hasCondition(old, 'Suspended') && hasCondition(next, 'Suspended', 'False'),
  }
}

function validateUncounted({ uncountedTerminatedPods: pods }: JobStatus): FieldError[] {
  const seen = new Set<string>()
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    fieldPath(`status.uncountedTerminatedPods.${list}`).each(pods?.[list], (field, uid) => {
      if (uid === '') return [field.invalid(asJson(uid), 'must not be empty')]
      const repeated = seen.has(uid)
      seen.add(uid)
      return repeated ? [field.duplicate(asJson(uid))] : []
    }),
  )
}

interface Rule {
  /** The condition under which the rule applies. */
  readonly about: (step: Step) => boolean
  readonly check: (step: Step) => FieldError[]
}

const CONDITIONS = fieldPath('status.conditions')

const always = (): boolean => true

/** Rejects a pair of conditions, or one without the other. */
function conditionRule(about: Rule['about'], isBroken: (step: Step) => boolean, detail: string): Rule {
  return { about, check: (step) => (isBroken(step) ? [refused(CONDITIONS, detail)] : []) }
}

/** Rejects the value of a field. */
function fieldRule(
  field: keyof JobStatus,
  about: Rule['about'],
  isBroken: (step: Step) => boolean,
  detail: string,
): Rule {
  const shown = ({ status }: Step): unknown => status[field] ?? (field === 'failed' || field === 'succeeded' ? 0 : null)
  return { about, check: (step) => (isBroken(step) ? [fieldPath(`status.${field}`).invalid(shown(step), detail)] : []) }
}

function requiredRule(
  field: keyof JobStatus,
  about: Rule['about'],
  isBroken: (step: Step) => boolean,
  detail: string,
): Rule {
  return { about, check: (step) => (isBroken(step) ? [fieldPath(`status.${field}`).required(detail)] : []) }
}

function indexesRule(field: 'completedIndexes' | 'failedIndexes', applies: (step: Step) => boolean): Rule {
  return {
    about: (step) => step.changed(field) && step.spec.completions !== undefined && applies(step),
    check({ spec, status }) {
      const text = status[field] ?? ''
      try {
        countIndexes(text, spec.completions ?? 0)
        return []
      } catch (error) {
        return [fieldPath(`status.${field}`).invalid(text, `error parsing ${field}: ${(error as Error).message}`)]
      }
    },
  }
}

const overlap: Rule = {
  about: (step) => step.changed('failedIndexes', 'completedIndexes'),
  check({ spec, status: { completedIndexes = '', failedIndexes } }) {
    if (spec.completions === undefined || failedIndexes === undefined) return []
    const shared = sharedIndex(completedIndexes, failedIndexes, spec.completions)
    if (shared === undefined) return []
    const detail = `failedIndexes and completedIndexes overlap at index: ${shared}`
    return [fieldPath('status.failedIndexes').invalid(failedIndexes, detail)]
  },
}

function endsBeforeStart({ status: { startTime, completionTime } }: Step): boolean {
  if (startTime === undefined || completionTime === undefined) return false
  return epochMsOf(completionTime) < epochMsOf(startTime)
}

function uncountedLeft({ status: { uncountedTerminatedPods: pods } }: Step): boolean {
  return (pods?.failed ?? []).length + (pods?.succeeded ?? []).length > 0
}

/** A suspended Job without work finishes without ever starting. */
function isIdle({ spec }: Step): boolean {
  return spec.suspend === true && spec.completions === 0
}

/** Scaling completions down may reduce the number of succeeded indexes. */
function isElastic({ spec }: Step): boolean {
  return isIndexed(spec) && spec.completions === spec.parallelism
}

const consistency: readonly Rule[] = [
  conditionRule(
    (step) => step.turned('complete', 'failed'),
    ({ now }) => now.complete && now.failed,
    'cannot set Complete=True and Failed=true conditions',
  ),
  conditionRule(
    (step) => step.turned('complete', 'failureTarget'),
    ({ now }) => now.complete && now.failureTarget,
    'cannot set Complete=True and FailureTarget=true conditions',
  ),
  fieldRule(
    'completionTime',
    (step) => step.turned('complete') || step.changed('completionTime'),
    ({ status, now }) => status.completionTime !== undefined && !now.complete,
    'cannot set completionTime when there is no Complete=True condition',
  ),
  requiredRule(
    'completionTime',
    (step) => step.turned('complete') || step.changed('completionTime'),
    ({ status, now }) => status.completionTime === undefined && now.complete,
    'completionTime is required for Complete jobs',
  ),
  fieldRule(
    'completionTime',
    (step) => step.changed('startTime', 'completionTime'),
    endsBeforeStart,
    'must be equal to or after `startTime`',
  ),
  conditionRule(
    (step) => step.turned('failed') || step.changed('failedIndexes'),
    ({ now }) => now.failed && !now.failureTarget,
    'cannot set Failed=True condition without the FailureTarget=true condition',
  ),
  conditionRule(
    (step) => step.turned('complete', 'criteriaMet'),
    ({ now }) => now.complete && !now.criteriaMet,
    'cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
  ),
  fieldRule(
    'active',
    (step) => step.turned('finished') || step.changed('active'),
    ({ status, now }) => (status.active ?? 0) > 0 && now.finished,
    'active>0 is invalid for finished job',
  ),
  requiredRule(
    'startTime',
    (step) => (step.turned('finished') || step.changed('startTime')) && !isIdle(step),
    ({ status, now }) => status.startTime === undefined && now.finished,
    'startTime is required for finished job',
  ),
  fieldRule(
    'uncountedTerminatedPods',
    (step) => step.turned('finished') || step.changed('uncountedTerminatedPods'),
    (step) => step.now.finished && uncountedLeft(step),
    'must be empty for finished job',
  ),
  indexesRule('completedIndexes', always),
  indexesRule('failedIndexes', ({ spec, status }) =>
    [spec.backoffLimitPerIndex, status.failedIndexes].every((value) => value !== undefined),
  ),
  fieldRule(
    'completedIndexes',
    (step) => step.changed('completedIndexes'),
    ({ spec, status }) => (status.completedIndexes ?? '') !== '' && !isIndexed(spec),
    'cannot set non-empty completedIndexes when non-indexed completion mode',
  ),
  fieldRule(
    'failedIndexes',
    (step) => step.changed('failedIndexes'),
    ({ spec, status }) => spec.backoffLimitPerIndex === undefined && status.failedIndexes !== undefined,
    'cannot set non-null failedIndexes when backoffLimitPerIndex is null',
  ),
  overlap,
  fieldRule(
    'terminating',
    (step) => step.turned('finished') || step.changed('terminating'),
    ({ status, now }) => (status.terminating ?? 0) > 0 && now.finished,
    'terminating>0 is invalid for finished job',
  ),
  fieldRule(
    'ready',
    (step) => step.changed('ready', 'active'),
    ({ status }) => status.ready !== undefined && status.ready > (status.active ?? 0),
    'cannot set more ready pods than active',
  ),
  conditionRule(
    always,
    ({ now }) => now.criteriaMet && now.failed,
    'cannot set SuccessCriteriaMet=True and Failed=true conditions',
  ),
  conditionRule(
    always,
    ({ now }) => now.criteriaMet && now.failureTarget,
    'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions',
  ),
  conditionRule(
    always,
    ({ spec, now }) => spec.successPolicy !== undefined && !now.criteriaMet && now.complete,
    'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True',
  ),
]

/** States that must not be reverted. */
function lasting(fact: keyof Facts, type: string): Rule {
  return conditionRule(
    always,
    ({ now, before }) => before[fact] && !now[fact],
    `cannot disable the ${type}=True condition`,
  )
}

const progress: readonly Rule[] = [
  lasting('failed', 'terminal Failed'),
  lasting('complete', 'terminal Complete'),
  lasting('failureTarget', 'terminal FailureTarget'),
  fieldRule(
    'failed',
    always,
    ({ status, old }) => (status.failed ?? 0) < (old.failed ?? 0),
    'cannot decrease the failed counter',
  ),
  fieldRule(
    'succeeded',
    (step) => !isElastic(step),
    ({ status, old }) => (status.succeeded ?? 0) < (old.succeeded ?? 0),
    'cannot decrease the succeeded counter',
  ),
  fieldRule(
    'completionTime',
    (step) => step.changed('completionTime'),
    ({ status, old }) => status.completionTime !== undefined && old.completionTime !== undefined,
    'field is immutable',
  ),
  fieldRule(
    'startTime',
    (step) => step.changed('startTime') && !step.resumes,
    ({ spec, old }) => old.startTime !== undefined && spec.suspend !== true,
    'field is immutable for unsuspended job once set',
  ),
  lasting('criteriaMet', 'SuccessCriteriaMet'),
  conditionRule(
    always,
    ({ now, before }) => before.complete && !before.criteriaMet && now.criteriaMet,
    'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions',
  ),
]

const rules: readonly Rule[] = [...consistency, ...progress]
