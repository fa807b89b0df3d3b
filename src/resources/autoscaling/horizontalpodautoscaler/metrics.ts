/** The rules of metrics: exactly one source, the one its type names, with a target that makes sense for it. */
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscalerSpec,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from '#apis/autoscaling/v2.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  notInSet,
  required,
} from '#meta/validation/field-error.ts'
import { pathSegmentName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { validateDnsLabel } from '#model/pod-spec/checks.ts'
import { validateContainerResourceName } from '#model/pod-spec/resource-names.ts'

/** Which groups a reference may name: one of its own, the core group as well, or nonsense that was there before. */
export type Groups = 'named' | 'core' | 'any'

type SourceName = Exclude<keyof MetricSpec, 'type'>

const sourceOf = new Map<string, SourceName>([
  ['Object', 'object'],
  ['Pods', 'pods'],
  ['Resource', 'resource'],
  ['External', 'external'],
  ['ContainerResource', 'containerResource'],
])

/** In the order in which upstream looks for them: the first that is there is judged. */
const sources: readonly SourceName[] = ['object', 'external', 'pods', 'resource', 'containerResource']

export function validateMetrics(
  field: string,
  { metrics = [], minReplicas }: HorizontalPodAutoscalerSpec,
  groups: Groups,
): FieldError[] {
  const errors = metrics.flatMap((metric, at) => validateMetric(index(field, at), metric, groups))
  // Without pods there is nothing to measure but what is outside of them.
  if (minReplicas !== 0 || metrics.some(({ type }) => type === 'Object' || type === 'External')) return errors
  const rule = 'must specify at least one Object or External metric to support scaling to zero replicas'
  return [...errors, forbidden(field, rule)]
}

function validateMetric(path: string, metric: MetricSpec, groups: Groups): FieldError[] {
  const { type } = metric
  const expected = sourceOf.get(type)
  const present = sources.filter((name) => metric[name] !== undefined)
  const [first] = present
  const errors = type === '' ? [required(child(path, 'type'), 'must specify a metric source type')] : []
  const unknown = notInSet(child(path, 'type'), asJson(type), sourceOf.keys())
  if (expected === undefined) errors.push(unknown)
  if (first !== undefined) errors.push(...validateSource(first, child(path, first), metric, groups))
  // Upstream says so before and after it has looked at the source.
  if (expected === undefined) errors.push(unknown)
  else if (metric[expected] === undefined) {
    errors.push(required(child(path, expected), 'must populate information for the given metric source'))
  }
  if (present.length === 1) return errors
  const strays = present.filter((name) => name !== expected)
  return [
    ...errors,
    ...strays.map((name) => forbidden(child(path, name), 'must populate the given metric source only')),
  ]
}

function validateSource(name: SourceName, path: string, metric: MetricSpec, groups: Groups): FieldError[] {
  const { object, external, pods, resource, containerResource } = metric
  const target = metric[name]?.target ?? { type: '' }
  const errors = [
    ...(object !== undefined && name === 'object'
      ? validateReference(child(path, 'describedObject'), object.describedObject, groups)
      : []),
    ...(resource !== undefined && name === 'resource' ? requiredName(path, resource.name) : []),
    ...(containerResource !== undefined && name === 'containerResource'
      ? validateContainer(path, containerResource)
      : []),
  ]
  const identified = { object, external, pods } as Partial<Record<SourceName, { metric: MetricIdentifier }>>
  const identifier = identified[name]?.metric
  return [
    ...errors,
    ...(identifier === undefined ? [] : validateIdentifier(child(path, 'metric'), identifier)),
    ...validateTarget(child(path, 'target'), target),
    ...validateTargetChoice(name, child(path, 'target'), target),
  ]
}

function requiredName(path: string, name: string): FieldError[] {
  return name === '' ? [required(child(path, 'name'), 'must specify a resource name')] : []
}

function validateContainer(
  path: string,
  { name, container }: { readonly name: string; readonly container: string },
): FieldError[] {
  return [
    ...(name === '' ? requiredName(path, name) : validateContainerResourceName(child(path, 'name'), name)),
    ...(container === ''
      ? [required(child(path, 'container'), 'must specify a container')]
      : validateDnsLabel(child(path, 'container'), container)),
  ]
}

type TargetField = Exclude<keyof MetricTarget, 'type'>
type Complaint = readonly [field: TargetField, text: string]

/** Which targets a source takes: at least one of these, and both only where nothing is said against it. */
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

function validateTargetChoice(name: SourceName, path: string, target: MetricTarget): FieldError[] {
  const { among, none, both } = choices[name]
  const count = among.filter((field) => target[field] !== undefined).length
  if (count === 0) return [required(child(path, none[0]), none[1])]
  return count === 2 && both !== undefined ? [forbidden(child(path, both[0]), both[1])] : []
}

const targetTypes = ['Utilization', 'Value', 'AverageValue']

function validateTarget(path: string, target: MetricTarget): FieldError[] {
  const { type, averageUtilization } = target
  const errors = type === '' ? [required(child(path, 'type'), 'must specify a metric target type')] : []
  if (!targetTypes.includes(type)) {
    errors.push(invalid(child(path, 'type'), asJson(type), 'must be either Utilization, Value, or AverageValue'))
  }
  for (const name of ['value', 'averageValue'] as const) {
    const amount = target[name]
    if (amount === undefined || quantitySign(parseQuantity(amount)) > 0) continue
    errors.push(invalid(child(path, name), amount, 'must be positive'))
  }
  if (averageUtilization !== undefined && averageUtilization < 1) {
    errors.push(invalid(child(path, 'averageUtilization'), averageUtilization, 'must be greater than 0'))
  }
  return errors
}

function validateIdentifier(path: string, { name }: MetricIdentifier): FieldError[] {
  const field = child(path, 'name')
  if (name === '') return [required(field, 'must specify a metric name')]
  return complaining(field, name, pathSegmentName(name))
}

/** Another object, of whatever kind; it becomes part of a URL. */
export function validateReference(path: string, reference: CrossVersionObjectReference, groups: Groups): FieldError[] {
  const complaint = apiVersionComplaint(reference, groups)
  return [
    ...validateSegment(child(path, 'kind'), reference.kind),
    ...validateSegment(child(path, 'name'), reference.name),
    ...(complaint === undefined ? [] : [invalid(child(path, 'apiVersion'), reference.apiVersion ?? '', complaint)]),
  ]
}

function validateSegment(field: string, text: string): FieldError[] {
  return text === '' ? [required(field)] : complaining(field, text, pathSegmentName(text))
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
