/** The CronJob resource: creates Jobs from a template on a schedule. */
import { type CronJob, CronJobs, type CronJobSpec, type JobTemplateSpec } from '#apis/batch/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { checkTimeZone, parseCron } from '#lib/time/cron.ts'
import { ageText } from '#meta/duration.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nonNegative, requiredOneOf } from '#meta/validation/rules.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'

import { containerColumns, podNameWarnings, validateCounts } from '../workload.ts'
import { defaultFailurePolicy, jobSpecWarnings, validateJobSpec } from './job/spec.ts'

/** The name of a Job is this name, a dash and ten digits, and must fit into a label. */
const MAX_NAME_BYTES = 52

const TEMPLATE = fieldPath('spec.jobTemplate')

export const cronJob: Resource<CronJob> = defineResource<CronJob>({
  kind: CronJobs,
  metadataRules: { part: [] },
  generation: 'spec',
  applyDefaults: ({ spec }) => applyDefaults(spec),
  prepareCreate: ({ spec }, context) => dropDisabledTemplateFields(spec.jobTemplate.spec.template, undefined, context),
  prepareUpdate: ({ spec }, old, context) =>
    dropDisabledTemplateFields(spec.jobTemplate.spec.template, old.spec.jobTemplate.spec.template, context),
  validate: ({ metadata: { name = '' }, spec }, context) =>
    collectErrors(
      validateSpec(spec, undefined, context),
      byteLength(name) > MAX_NAME_BYTES &&
        fieldPath('metadata.name').invalid(name, `must be no more than ${MAX_NAME_BYTES} characters`),
    ),
  validateUpdate: (next, old, context) => validateSpec(next.spec, old.spec, context),
  warnings,
  status: { keeps: ['spec'] },
  columns: [
    nameColumn,
    { name: 'Schedule', value: ({ spec }) => spec.schedule },
    { name: 'Timezone', value: ({ spec }) => spec.timeZone ?? '<none>' },
    { name: 'Suspend', type: 'boolean', value: ({ spec }) => switchText(spec.suspend) },
    { name: 'Active', type: 'integer', value: ({ status }) => (status?.active ?? []).length },
    { name: 'Last Schedule', value: lastScheduleText },
    ageColumn,
    ...containerColumns<CronJob>(({ spec }) => spec.jobTemplate.spec.template),
    { name: 'Selector', wide: true, value: ({ spec }) => labelSelectorText(spec.jobTemplate.spec.selector) },
  ],
})

function applyDefaults(spec: CronJobSpec): void {
  spec.concurrencyPolicy ||= 'Allow'
  spec.suspend ??= false
  spec.successfulJobsHistoryLimit ??= 3
  spec.failedJobsHistoryLimit ??= 1
  defaultFailurePolicy(spec.jobTemplate.spec)
  defaultPodTemplate(spec.jobTemplate.spec.template)
}

function validateSpec(spec: CronJobSpec, old: CronJobSpec | undefined, context: RuleContext): FieldError[] {
  const options = podTemplateOptions(context, old?.jobTemplate.spec.template)
  return collectErrors(
    validateSchedule(spec, old),
    nonNegative(fieldPath('spec.startingDeadlineSeconds'), spec.startingDeadlineSeconds),
    (old === undefined || old.timeZone !== spec.timeZone) && validateTimeZone(spec.timeZone),
    requiredOneOf(fieldPath('spec.concurrencyPolicy'), spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace']),
    validateTemplate(spec.jobTemplate, options),
    validateCounts(fieldPath('spec'), spec, ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit']),
  )
}

/** A time zone in the schedule was never supported; existing objects keep it. */
function validateSchedule({ schedule, timeZone }: CronJobSpec, old: CronJobSpec | undefined): FieldError[] {
  const field = fieldPath('spec.schedule')
  if (schedule === '') return [field.required()]
  const errors: FieldError[] = []
  try {
    parseCron(schedule)
  } catch (error) {
    errors.push(field.invalid(schedule, (error as Error).message))
  }
  if (!schedule.includes('TZ')) return errors
  if (old?.schedule.includes('TZ') !== true) {
    errors.push(field.invalid(schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'))
  } else if (timeZone !== undefined) {
    errors.push(field.invalid(schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'))
  }
  return errors
}

/** The characters of tz database names; older names have digits and plus signs. */
const zonePart = /^(?!-)(?!\.{1,2}$)[A-Za-z.\-_0-9+]{1,14}$/

function validateTimeZone(zone: string | undefined): FieldError[] {
  const field = fieldPath('spec.timeZone')
  if (zone === undefined) return []
  if (zone === '') return [field.invalid(zone, 'timeZone must be nil or non-empty string')]
  if (!zone.split('/').every((part) => zonePart.test(part))) {
    return [field.invalid(zone, `unknown time zone ${zone}`)]
  }
  const errors: FieldError[] = []
  if (zone.toLowerCase() === 'local') {
    const rule = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
    errors.push(field.invalid(zone, rule))
    // Go accepts only this spelling.
    if (zone === 'Local') return errors
  }
  try {
    checkTimeZone(zone)
    return errors
  } catch (error) {
    return [...errors, field.invalid(zone, (error as Error).message)]
  }
}

/** The server generates the selector of each Job. */
function validateTemplate({ spec }: JobTemplateSpec, options: PodOptions): FieldError[] {
  const path = TEMPLATE.child('spec')
  const { selector, manualSelector } = spec
  return collectErrors(
    validateJobSpec(path, spec, options),
    selector !== undefined && path.child('selector').invalid(selector, '`selector` will be auto-generated'),
    manualSelector === true && path.child('manualSelector').notSupported(asJson(manualSelector), ['nil', 'false']),
  )
}

function warnings(next: CronJob, old: CronJob | undefined): string[] {
  const changed = old === undefined || next.metadata.generation !== old.metadata.generation
  const page = 'https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/'
  return [
    ...(old === undefined ? podNameWarnings(next.metadata) : []),
    ...(changed ? jobSpecWarnings(TEMPLATE.child('spec'), next.spec.jobTemplate.spec) : []),
    ...(old !== undefined && next.spec.schedule.includes('TZ')
      ? [`cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see ${page} for more details`]
      : []),
  ]
}

function switchText(value: boolean | undefined): string {
  if (value === undefined) return '<unset>'
  return value ? 'True' : 'False'
}

function lastScheduleText({ status }: CronJob, nowMs: number): string {
  return status?.lastScheduleTime === undefined ? '<none>' : ageText(status.lastScheduleTime, nowMs)
}
