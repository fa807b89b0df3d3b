/** Validates the metrics of an autoscaler: exactly one source, matching the type, with a valid target. */
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscalerSpec,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from '#apis/autoscaling/v2.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { pathSegmentName } from '#meta/validation/names.ts'
import { validateDnsLabel } from '#meta/validation/rules.ts'
import { validateContainerResourceName } from '#model/pod-spec/containers/resource-names.ts'

/** The groups that a reference may name: its own, the core group as well, or an invalid one that the old object has. */
export type Groups = 'named' | 'core' | 'any'

type SourceName = Exclude<keyof MetricSpec, 'type'>

const sourceOf = new Map<string, SourceName>([
  ['Object', 'object'],
  ['Pods', 'pods'],
  ['Resource', 'resource'],
  ['External', 'external'],
  ['ContainerResource', 'containerResource'],
])

/** In the order of upstream's checks: the first present source is validated. */
const sources: readonly SourceName[] = ['object', 'external', 'pods', 'resource', 'containerResource']

export function validateMetrics(
  path: FieldPath,
  { metrics = [], minReplicas }: HorizontalPodAutoscalerSpec,
  groups: Groups,
): FieldError[] {
  const errors = path.each(metrics, (path, metric) => validateMetric(path, metric, groups))
  // A target of zero pods allows only metrics that do not depend on pods.
  if (minReplicas !== 0 || metrics.some(({ type }) => type === 'Object' || type === 'External')) return errors
  const rule = 'must specify at least one Object or External metric to support scaling to zero replicas'
  return [...errors, path.forbidden(rule)]
}

function validateMetric(path: FieldPath, metric: MetricSpec, groups: Groups): FieldError[] {
  const { type } = metric
  const expected = sourceOf.get(type)
  const present = sources.filter((name) => metric[name] !== undefined)
  const [first] = present
  const errors = type === '' ? [path.child('type').required('must specify a metric source type')] : []
  const unknown = path.child('type').notInSet(asJson(type), sourceOf.keys())
  if (expected === undefined) errors.push(unknown)
  if (first !== undefined) errors.push(...validateSource(first, path.child(first), metric, groups))
  // Upstream reports this before and after it validates the source.
  if (expected === undefined) errors.push(unknown)
  else if (metric[expected] === undefined) {
    errors.push(path.child(expected).required('must populate information for the given metric source'))
  }
  if (present.length === 1) return errors
  const strays = present.filter((name) => name !== expected)
  return [...errors, ...strays.map((name) => path.child(name).forbidden('must populate the given metric source only'))]
}

function validateSource(name: SourceName, path: FieldPath, metric: MetricSpec, groups: Groups): FieldError[] {
  const { object, external, pods, resource, containerResource } = metric
  const target = metric[name]?.target ?? { type: '' }
  const errors = collectErrors(
    object !== undefined &&
      name === 'object' &&
      validateReference(path.child('describedObject'), object.describedObject, groups),
    resource !== undefined && name === 'resource' && requiredName(path, resource.name),
    containerResource !== undefined && name === 'containerResource' && validateContainer(path, containerResource),
  )
  const identified = { object, external, pods } as Partial<Record<SourceName, { metric: MetricIdentifier }>>
  const identifier = identified[name]?.metric
  return collectErrors(
    errors,
    identifier !== undefined && validateIdentifier(path.child('metric'), identifier),
    validateTarget(path.child('target'), target),
    validateTargetChoice(name, path.child('target'), target),
  )
}

function requiredName(path: FieldPath, name: string): FieldError[] {
  return name === '' ? [path.child('name').required('must specify a resource name')] : []
}

function validateContainer(
  path: FieldPath,
  { name, container }: { readonly name: string; readonly container: string },
): FieldError[] {
  return [
    ...(name === '' ? requiredName(path, name) : validateContainerResourceName(path.child('name'), name)),
    ...(container === ''
      ? [path.child('container').required('must specify a container')]
      : validateDnsLabel(path.child('container'), container)),
  ]
}

type TargetField = Exclude<keyof MetricTarget, 'type'>
type Complaint = readonly [field: TargetField, text: string]

/** The targets of a source: at least one of these, and both only if allowed. */
interface Choice {
  readonly among: readonly TargetField[]
  readonly none: Complaint
  readonly both?: Complaint
}

const share: Choice = {
  among: ['averageUtilization', 'averageValue'],
  none: ['averageUtilization', 'must set either a target raw value or a target utilization'],
  both: ['averageValue', 'may not set both a target raw value and a target utilization'],
}

const choices: Readonly<Record<SourceName, Choice>> = {
  object: {
    among: ['value', 'averageValue'],
    none: ['averageValue', 'must set either a target value or averageValue'],
  },
  external: {
    among: ['value', 'averageValue'],
    none: ['averageValue', 'must set either a target value for metric or a per-pod target'],
    both: ['value', 'may not set both a target value for metric and a per-pod target'],
  },
  pods: { among: ['averageValue'], none: ['averageValue', 'must specify a positive target averageValue'] },
  resource: share,
  containerResource: share,
}

function validateTargetChoice(name: SourceName, path: FieldPath, target: MetricTarget): FieldError[] {
  const { among, none, both } = choices[name]
  const count = among.filter((field) => target[field] !== undefined).length
  if (count === 0) return [path.child(none[0]).required(none[1])]
  return count === 2 && both !== undefined ? [path.child(both[0]).forbidden(both[1])] : []
}

const targetTypes = ['Utilization', 'Value', 'AverageValue']

function validateTarget(path: FieldPath, target: MetricTarget): FieldError[] {
  const { type, averageUtilization } = target
  const errors = type === '' ? [path.child('type').required('must specify a metric target type')] : []
  if (!targetTypes.includes(type)) {
    errors.push(path.child('type').invalid(asJson(type), 'must be either Utilization, Value, or AverageValue'))
  }
  for (const name of ['value', 'averageValue'] as const) {
    const amount = target[name]
    if (amount === undefined || quantitySign(parseQuantity(amount)) > 0) continue
    errors.push(path.child(name).invalid(amount, 'must be positive'))
  }
  if (averageUtilization !== undefined && averageUtilization < 1) {
    errors.push(path.child('averageUtilization').invalid(averageUtilization, 'must be greater than 0'))
  }
  return errors
}

function validateIdentifier(path: FieldPath, { name }: MetricIdentifier): FieldError[] {
  const field = path.child('name')
  if (name === '') return [field.required('must specify a metric name')]
  return field.check(name, pathSegmentName)
}

/** Another object of any kind; it becomes part of a URL. */
export function validateReference(
  path: FieldPath,
  reference: CrossVersionObjectReference,
  groups: Groups,
): FieldError[] {
  const complaint = apiVersionComplaint(reference, groups)
  return collectErrors(
    validateSegment(path.child('kind'), reference.kind),
    validateSegment(path.child('name'), reference.name),
    complaint !== undefined && path.child('apiVersion').invalid(reference.apiVersion ?? '', complaint),
  )
}

function validateSegment(path: FieldPath, text: string): FieldError[] {
  return text === '' ? [path.required()] : path.check(text, pathSegmentName)
}

export function apiVersionComplaint(
  { apiVersion = '' }: CrossVersionObjectReference,
  groups: Groups,
): string | undefined {
  if (groups === 'any') return undefined
  try {
    const { group } = parseApiVersion(apiVersion)
    return group === '' && groups === 'named' ? 'apiVersion must specify API group' : undefined
  } catch (error) {
    return (error as Error).message
  }
}
