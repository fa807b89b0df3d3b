/** The DaemonSet resource: one pod of a template on every matching node. */
import { type DaemonSet, DaemonSets, type DaemonSetUpdateStrategy } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { hasInvalidLabelValue, labelSelectorText, validateLabelSelector } from '#meta/label-selector.ts'
import { labelsText } from '#meta/labels.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, nonNegative } from '#meta/validation/rules.ts'
import { intOrPercentValue, validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplate, validateTemplateLabels } from '#model/pod-spec/pod-template.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'

import { containerColumns, isEmptySelector, selectorOf, validateCollisionCount, validateCounts } from '../workload.ts'
import { keepAnnotation, readIntegerAnnotation, settleIntegerAnnotation } from './integer-annotation.ts'

/** The template generation; a field before apps/v1. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation'

export const daemonSet: Resource<DaemonSet> = defineResource<DaemonSet>({
  kind: DaemonSets,
  generation: 'spec',
  applyDefaults,
  prepareCreate(object, context) {
    setTemplateGeneration(object, Math.max(1, readIntegerAnnotation(object, TEMPLATE_GENERATION) ?? 0))
    dropDisabledTemplateFields(object.spec.template, undefined, context)
  },
  prepareUpdate(next, old, context) {
    dropDisabledTemplateFields(next.spec.template, old.spec.template, context)
    const before = readIntegerAnnotation(old, TEMPLATE_GENERATION) ?? 0
    setTemplateGeneration(next, semanticEqual(next.spec.template, old.spec.template) ? before : before + 1)
  },
  validate: (object, context) => validateDaemonSet(object, undefined, context),
  validateUpdate: (next, old, context) => [
    ...immutable(fieldPath('spec.selector'), next.spec.selector, old.spec.selector),
    ...validateDaemonSet(next, old, context),
  ],
  warnings: (next, old) =>
    old !== undefined && semanticEqual(next.spec.template, old.spec.template)
      ? []
      : podWarnings(fieldPath('spec.template'), next.spec.template),
  status: {
    keeps: ['spec'],
    prepareUpdate(next, old) {
      keepAnnotation(next, old, TEMPLATE_GENERATION)
    },
    validateUpdate: ({ status }, old) => [
      ...validateCounts(fieldPath('status'), status, counters),
      ...validateCollisionCount(status, old.status),
    ],
  },
  columns: [
    nameColumn,
    { name: 'Desired', type: 'integer', value: ({ status }) => status?.desiredNumberScheduled ?? 0 },
    { name: 'Current', type: 'integer', value: ({ status }) => status?.currentNumberScheduled ?? 0 },
    { name: 'Ready', type: 'integer', value: ({ status }) => status?.numberReady ?? 0 },
    { name: 'Up-to-date', type: 'integer', value: ({ status }) => status?.updatedNumberScheduled ?? 0 },
    { name: 'Available', type: 'integer', value: ({ status }) => status?.numberAvailable ?? 0 },
    { name: 'Node Selector', value: ({ spec }) => labelsText(spec.template.spec.nodeSelector) },
    ageColumn,
    ...containerColumns<DaemonSet>(({ spec }) => spec.template),
    { name: 'Selector', wide: true, value: ({ spec }) => labelSelectorText(spec.selector) },
  ],
})

function applyDefaults(object: DaemonSet): void {
  const { spec } = object
  settleIntegerAnnotation(object, TEMPLATE_GENERATION)
  // The writer of the object manages the annotation, whatever its value.
  if (readIntegerAnnotation(object, TEMPLATE_GENERATION) === undefined) setTemplateGeneration(object, 0)
  const strategy = (spec.updateStrategy ??= {})
  strategy.type ||= 'RollingUpdate'
  if (strategy.type === 'RollingUpdate') {
    strategy.rollingUpdate ??= {}
    strategy.rollingUpdate.maxUnavailable ??= 1
    strategy.rollingUpdate.maxSurge ??= 0
  }
  spec.revisionHistoryLimit ??= 10
  defaultPodTemplate(spec.template)
}

function setTemplateGeneration({ metadata }: DaemonSet, generation: number): void {
  metadata.annotations = { ...metadata.annotations, [TEMPLATE_GENERATION]: String(generation) }
}

function validateDaemonSet({ spec }: DaemonSet, old: DaemonSet | undefined, context: RuleContext): FieldError[] {
  const { selector, template, minReadySeconds, updateStrategy, revisionHistoryLimit } = spec
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec
  const meant = selectorOf(selector)
  const path = fieldPath('spec.template')
  return collectErrors(
    validateLabelSelector(fieldPath('spec.selector'), selector, {
      invalidValues: hasInvalidLabelValue(old?.spec.selector),
    }),
    meant !== undefined && validateTemplateLabels(template, meant, path),
    selector != null &&
      isEmptySelector(selector) &&
      fieldPath('spec.selector').invalid(selector, 'empty selector is invalid for daemonset'),
    validatePodTemplate(template, path, podTemplateOptions(context, old?.spec.template)),
    restartPolicy !== 'Always' && path.child('spec.restartPolicy').notSupported(asJson(restartPolicy), ['Always']),
    activeDeadlineSeconds !== undefined &&
      path.child('spec.activeDeadlineSeconds').forbidden('activeDeadlineSeconds in DaemonSet is not Supported'),
    nonNegative(fieldPath('spec.minReadySeconds'), minReadySeconds),
    validateUpdateStrategy(fieldPath('spec.updateStrategy'), updateStrategy),
    nonNegative(fieldPath('spec.revisionHistoryLimit'), revisionHistoryLimit),
  )
}

const strategies = ['RollingUpdate', 'OnDelete']

function validateUpdateStrategy(path: FieldPath, strategy: DaemonSetUpdateStrategy): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  if (!strategies.includes(type)) return [path.notSupported(strategy, strategies)]
  if (type === 'OnDelete') return []
  const field = path.child('rollingUpdate')
  if (rollingUpdate === undefined) return [field.required()]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const [unavailable, surge] = [field.child('maxUnavailable'), field.child('maxSurge')]
  const ways = [maxUnavailable, maxSurge].filter((value) => intOrPercentValue(value) !== 0).length
  return collectErrors(
    validateIntOrPercent(unavailable, maxUnavailable),
    validateIntOrPercent(surge, maxSurge),
    validateAtMostAll(unavailable, maxUnavailable),
    validateAtMostAll(surge, maxSurge),
    ways === 0 && unavailable.required('cannot be 0 when maxSurge is 0'),
    ways === 2 && surge.invalid(maxSurge, 'may not be set when maxUnavailable is non-zero'),
  )
}

const counters = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
] as const
