/** DaemonSet: one pod of a template on every node that fits. */
import { type DaemonSet, DaemonSets, type DaemonSetUpdateStrategy } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { hasInvalidLabelValue, labelSelectorText, validateLabelSelector } from '#meta/label-selector.ts'
import { labelsText } from '#meta/labels.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { immutable, nonNegative } from '#meta/validation/rules.ts'
import { intOrPercentValue, validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplate, validateTemplateLabels } from '#model/pod-spec/pod-template.ts'
import { podWarnings } from '#model/pod-spec/warnings.ts'

import { containerColumns, isEmptySelector, selectorOf, validateCollisionCount, validateCounts } from '../workload.ts'
import { keepAnnotation, readIntegerAnnotation, settleIntegerAnnotation } from './integer-annotation.ts'

/** Counts changes of the template; a field of its own before apps/v1. */
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
    ...immutable('spec.selector', next.spec.selector, old.spec.selector),
    ...validateDaemonSet(next, old, context),
  ],
  warnings: (next, old) =>
    old !== undefined && semanticEqual(next.spec.template, old.spec.template)
      ? []
      : podWarnings('spec.template', next.spec.template),
  status: {
    keeps: ['spec'],
    prepareUpdate(next, old) {
      keepAnnotation(next, old, TEMPLATE_GENERATION)
    },
    validateUpdate: ({ status }, old) => [
      ...validateCounts('status', status, counters),
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
  // Whoever writes the object owns the count, whatever it will be.
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
  const path = 'spec.template'
  return [
    ...validateLabelSelector('spec.selector', selector, { invalidValues: hasInvalidLabelValue(old?.spec.selector) }),
    ...(meant === undefined ? [] : validateTemplateLabels(template, meant, path)),
    ...(selector != null && isEmptySelector(selector)
      ? [invalid('spec.selector', selector, 'empty selector is invalid for daemonset')]
      : []),
    ...validatePodTemplate(template, path, podTemplateOptions(context, old?.spec.template)),
    ...(restartPolicy === 'Always'
      ? []
      : [notSupported(`${path}.spec.restartPolicy`, asJson(restartPolicy), ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden(`${path}.spec.activeDeadlineSeconds`, 'activeDeadlineSeconds in DaemonSet is not Supported')]),
    ...nonNegative('spec.minReadySeconds', minReadySeconds),
    ...validateUpdateStrategy('spec.updateStrategy', updateStrategy),
    ...nonNegative('spec.revisionHistoryLimit', revisionHistoryLimit),
  ]
}

const strategies = ['RollingUpdate', 'OnDelete']

function validateUpdateStrategy(path: string, strategy: DaemonSetUpdateStrategy): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  if (!strategies.includes(type)) return [notSupported(path, strategy, strategies)]
  if (type === 'OnDelete') return []
  const field = child(path, 'rollingUpdate')
  if (rollingUpdate === undefined) return [required(field)]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const [unavailable, surge] = [child(field, 'maxUnavailable'), child(field, 'maxSurge')]
  const errors = [
    ...validateIntOrPercent(unavailable, maxUnavailable),
    ...validateIntOrPercent(surge, maxSurge),
    ...validateAtMostAll(unavailable, maxUnavailable),
    ...validateAtMostAll(surge, maxSurge),
  ]
  const ways = [maxUnavailable, maxSurge].filter((value) => intOrPercentValue(value) !== 0).length
  if (ways === 0) errors.push(required(unavailable, 'cannot be 0 when maxSurge is 0'))
  if (ways === 2) errors.push(invalid(surge, maxSurge, 'may not be set when maxUnavailable is non-zero'))
  return errors
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
