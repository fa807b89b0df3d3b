/** The Job resource: pods that run until a number of them has succeeded. */
import { type Job, Jobs } from '#apis/batch/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { humanDuration } from '#meta/duration.ts'
import { hasInvalidLabelValue, labelSelectorText, validateLabelSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { addFinalizer, hasFinalizer } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { validateFinalizerNames, validateObjectMetaUpdate } from '#meta/validation/object-meta.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validateTemplateLabels } from '#model/pod-spec/pod-template.ts'

import { containerColumns, podNameWarnings, selectorOf } from '../../workload.ts'
import { defaultFailurePolicy, isIndexed, jobSpecWarnings, validateJobSpec } from './spec.ts'
import { hasCondition, validateJobStatus } from './status.ts'
import { validateJobUpdate } from './update.ts'

const UID_LABEL = 'batch.kubernetes.io/controller-uid'
const NAME_LABEL = 'batch.kubernetes.io/job-name'
/** Labels from before the project used a prefix. */
const OLD_UID_LABEL = 'controller-uid'
const OLD_NAME_LABEL = 'job-name'

const PODS_STAY =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning'

export const job: Resource<Job> = defineResource<Job>({
  kind: Jobs,
  // `validateUpdate` validates changed metadata after the object.
  metadataRules: { update: ['whole'] },
  generation: 'spec',
  deletionWarnings: ({ propagationPolicy, orphanDependents }) =>
    propagationPolicy === undefined && orphanDependents === undefined ? [PODS_STAY] : [],
  applyDefaults,
  prepareCreate(object, context) {
    generateSelector(object)
    inheritLabels(object)
    growInherited(object)
    dropDisabledTemplateFields(object.spec.template, undefined, context)
  },
  prepareUpdate(next, old, context) {
    inheritLabels(next)
    dropDisabledTemplateFields(next.spec.template, old.spec.template, context)
  },
  validate: (object, context) => validateAround(object, undefined, validateSpec(object, undefined, context)),
  validateUpdate(next, old, context) {
    const spec = validateSpec(next, old, context)
    // Spec errors occur twice, as in the causes of upstream's answer.
    const around = validateAround(next, old, spec)
    return [...around, ...validateMetadataUpdate(next, old), ...spec, ...validateJobUpdate(next, old, context)]
  },
  warnings: (next, old) => [
    ...(old === undefined ? podNameWarnings(next.metadata) : []),
    ...(old !== undefined && next.metadata.generation === old.metadata.generation
      ? []
      : jobSpecWarnings(fieldPath('spec'), next.spec)),
  ],
  // Like the first version, its pods outlive it unless the client decides otherwise.
  deletion(object, { propagationPolicy, orphanDependents }) {
    const decided = propagationPolicy !== undefined || orphanDependents !== undefined
    const known = hasFinalizer(object, 'orphan') || hasFinalizer(object, 'foregroundDeletion')
    if (!decided && !known && object.metadata.deletionTimestamp === undefined) addFinalizer(object, 'orphan')
  },
  status: {
    keeps: ['spec'],
    prepareUpdate(next) {
      inheritLabels(next)
    },
    validateUpdate: validateJobStatus,
  },
  fieldSelectors: { 'status.successful': ({ status }) => String(status?.succeeded ?? 0) },
  unknownField: (label) => `field label ${goQuote(label)} not supported for Job`,
  columns: [
    nameColumn,
    { name: 'Status', value: statusText },
    { name: 'Completions', value: completionsText },
    { name: 'Duration', value: durationText },
    ageColumn,
    ...containerColumns<Job>(({ spec }) => spec.template),
    { name: 'Selector', wide: true, value: ({ spec }) => labelSelectorText(spec.selector) },
  ],
})

/** Practically unlimited: retries are counted per index. */
const NO_BACKOFF_LIMIT = 2 ** 31 - 1

function applyDefaults(object: Job): void {
  const { spec } = object
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1
  spec.parallelism ??= 1
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : NO_BACKOFF_LIMIT
  spec.completionMode ??= 'NonIndexed'
  spec.suspend ??= false
  spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed'
  spec.manualSelector ??= false
  defaultFailurePolicy(spec)
  defaultPodTemplate(spec.template)
  inheritLabels(object)
}

/** Labels of Jobs without labels. Upstream shares the map with the template, so that both get the same additions. */
const inherited = new WeakSet<object>()

/** A Job without labels gets those of its pods. */
function inheritLabels({ metadata, spec }: Job): void {
  const labels = spec.template?.metadata?.labels
  if (labels === undefined || Object.keys(metadata.labels ?? {}).length > 0) return
  metadata.labels = { ...labels }
  inherited.add(metadata.labels)
}

/** After labels have been added to the template. */
function growInherited({ metadata, spec }: Job): void {
  const { labels } = metadata
  if (labels !== undefined && inherited.has(labels)) metadata.labels = { ...spec.template.metadata.labels, ...labels }
}

/** Selects its pods by its unique uid. Validation rejects contradicting labels later. */
function generateSelector({ metadata: { name = '', uid = '' }, spec }: Job): void {
  if (spec.manualSelector === true) return
  const { metadata } = spec.template
  metadata.labels = {
    [OLD_NAME_LABEL]: name,
    [NAME_LABEL]: name,
    [OLD_UID_LABEL]: uid,
    [UID_LABEL]: uid,
    ...metadata.labels,
  }
  const labels = Object.entries({ [UID_LABEL]: uid, ...spec.selector?.matchLabels })
  // Sorted, as errors print them.
  const matchLabels = Object.fromEntries(labels.sort(([a], [b]) => compareText(a, b)))
  spec.selector = { ...spec.selector, matchLabels }
}

function validateMetadataUpdate({ metadata }: Job, old: Job): FieldError[] {
  return [
    ...validateObjectMetaUpdate(metadata, old.metadata),
    ...validateFinalizerNames(fieldPath('metadata.finalizers'), metadata.finalizers),
  ]
}

/** The rules of a whole Job, with spec errors at their position. */
function validateAround(object: Job, old: Job | undefined, spec: readonly FieldError[]): FieldError[] {
  return [...validateGeneratedSelector(object, old), ...spec, ...validateHostnames(object.metadata.name ?? '', object)]
}

function validateSpec({ spec }: Job, old: Job | undefined, context: RuleContext): FieldError[] {
  const selector = selectorOf(spec.selector)
  const invalidValues = hasInvalidLabelValue(old?.spec.selector)
  return collectErrors(
    validateJobSpec(fieldPath('spec'), spec, podTemplateOptions(context, old?.spec.template)),
    spec.selector === undefined
      ? fieldPath('spec.selector').required()
      : validateLabelSelector(fieldPath('spec.selector'), spec.selector, { invalidValues }),
    selector !== undefined && validateTemplateLabels(spec.template, selector, fieldPath('spec.template')),
  )
}

function validateGeneratedSelector({ metadata, spec }: Job, old: Job | undefined): FieldError[] {
  if (spec.manualSelector === true || spec.selector === undefined) return []
  const { uid = '', name = '' } = metadata
  const had = old?.spec.template.metadata.labels ?? {}
  // Jobs of older releases have only labels without a prefix.
  const prefixed = old === undefined || (Object.hasOwn(had, NAME_LABEL) && Object.hasOwn(had, UID_LABEL))
  const expected: Record<string, string> = {
    [OLD_UID_LABEL]: uid,
    [OLD_NAME_LABEL]: name,
    ...(prefixed ? { [UID_LABEL]: uid, [NAME_LABEL]: name } : {}),
  }
  const selector = selectorOf(spec.selector)
  return collectErrors(
    uid === '' && fieldPath('metadata.uid').required(),
    Object.entries(expected).flatMap(([label, value]) => validateLabel(spec.template.metadata.labels, label, value)),
    selector !== undefined &&
      !matchesLabels(selector, expected) &&
      fieldPath('spec.selector').invalid(spec.selector, '`selector` not auto-generated'),
  )
}

function validateLabel(
  labels: Readonly<Record<string, string>> | undefined,
  name: string,
  value: string,
): FieldError[] {
  const field = fieldPath('spec.template.metadata.labels').key(name)
  if (labels === undefined || !Object.hasOwn(labels, name)) return [field.required(`must be '${value}'`)]
  return labels[name] === value ? [] : [field.invalid(labels, `must be '${value}'`)]
}

/** The host name of a pod of an indexed Job is the Job's name and its index. */
function validateHostnames(name: string, { spec }: Job): FieldError[] {
  const { completions = 0 } = spec
  if (!isIndexed(spec) || completions <= 0) return []
  const longest = `${name}-${completions - 1}`
  if (dns1123Label(longest).length === 0) return []
  return [fieldPath('metadata.name').invalid(name, `will not able to create pod with invalid DNS label: ${longest}`)]
}

/** In order of precedence. */
const shownBeforeDeletion = ['Complete', 'Failed']
const shownAfterDeletion = ['Suspended', 'FailureTarget', 'SuccessCriteriaMet']

function statusText(object: Job): string {
  const found = (types: readonly string[]): string | undefined => types.find((type) => hasCondition(object, type))
  const deleting = object.metadata.deletionTimestamp === undefined ? undefined : 'Terminating'
  return found(shownBeforeDeletion) ?? deleting ?? found(shownAfterDeletion) ?? 'Running'
}

function completionsText({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0
  if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`
  const { parallelism = 0 } = spec
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function durationText({ status }: Job, nowMs: number): string {
  const { startTime, completionTime } = status ?? {}
  if (startTime === undefined) return ''
  return humanDuration((completionTime === undefined ? nowMs : epochMsOf(completionTime)) - epochMsOf(startTime))
}
