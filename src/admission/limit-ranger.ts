/**
 * LimitRanger: applies the LimitRanges of the namespace to containers, pods and claims. It sets missing defaults and
 * refuses values below the minimum, above the maximum or with too large a ratio. Upstream's
 * plugin/pkg/admission/limitranger, v1.36.
 */
import {
  type Container,
  type LimitRange,
  type LimitRangeItem,
  LimitRanges,
  type PersistentVolumeClaim,
  type Pod,
  type ResourceRequirements,
} from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { compareText } from '#lib/go/text.ts'
import {
  compareQuantities,
  isZeroQuantity,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantityNumber,
  quantityText,
  roundQuantityUp,
} from '#meta/quantity.ts'
import { type Amounts, amountsOf, podLimits, podRequests } from '#model/pod-resources.ts'
import { amountOf, type ResourceList, sortedAmounts } from '#model/resource-lists.ts'

import { aggregate, refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface LimitRangerOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createLimitRanger({ isEnabled }: LimitRangerOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'LimitRanger',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods', 'pods/resize', 'persistentvolumeclaims'],

    mutate(attributes) {
      return attributes.kind.plural === 'pods' && isMeant(attributes) ? applyDefaults(attributes) : undefined
    },
    validate(attributes) {
      return isMeant(attributes) ? checkLimits(attributes, isEnabled('PodLevelResources')) : undefined
    },
  })
}

/**
 * The containers of a pod are immutable except for their resources through `resize`; objects that are being deleted are
 * not checked.
 */
function isMeant({ kind, operation, subresource, oldObject }: Attributes): boolean {
  if (kind.plural === 'pods' && (operation === 'UPDATE') !== (subresource === 'resize')) return false
  return oldObject?.metadata.deletionTimestamp === undefined
}

async function applyDefaults({ objects, namespace, object }: Attributes): Promise<void> {
  const pod = object as Pod
  for (const range of await objects.list(LimitRanges, namespace)) defaultPod(pod, range)
}

async function checkLimits(attributes: Attributes, podLevel: boolean): Promise<void> {
  const { objects, namespace, kind, object } = attributes
  for (const range of await objects.list(LimitRanges, namespace)) {
    const complaints =
      kind.plural === 'pods'
        ? podComplaints(object as Pod, range, podLevel)
        : claimComplaints(object as PersistentVolumeClaim, range)
    if (complaints.length > 0) throw refuse(attributes, aggregate(complaints))
  }
}

const ANNOTATION = 'kubernetes.io/limit-ranger'

/** Sets missing values and records them in an annotation. */
function defaultPod(pod: Pod, range: LimitRange): void {
  const items = (range.spec.limits ?? []).filter(({ type }) => type === 'Container')
  const limits = Object.assign({}, ...items.map((item) => item.default)) as ResourceList
  const requests = Object.assign({}, ...items.map((item) => item.defaultRequest)) as ResourceList
  const changes = [
    ...(pod.spec.containers ?? []).flatMap((one) => defaultContainer(one, 'container', { limits, requests })),
    ...(pod.spec.initContainers ?? []).flatMap((one) => defaultContainer(one, 'init container', { limits, requests })),
  ]
  if (changes.length === 0) return
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${changes.join('; ')}`,
  }
}

function defaultContainer(
  container: Container,
  what: string,
  defaults: Readonly<Record<'limits' | 'requests', ResourceList>>,
): string[] {
  const changes: string[] = []
  const resources: ResourceRequirements = { ...container.resources }
  for (const part of ['requests', 'limits'] as const) {
    const given = resources[part]
    const added = sortedAmounts(defaults[part]).filter(([name]) => amountOf(given, name) === undefined)
    if (added.length === 0) continue
    resources[part] = { ...given, ...Object.fromEntries(added) }
    changes.push(`${added.map(([name]) => name).join(', ')} ${part.slice(0, -1)} for ${what} ${container.name}`)
  }
  container.resources = resources
  return changes
}

/** The resources in the form that constraints are checked against. */
interface ResourceAmounts {
  readonly requests: Amounts
  readonly limits: Amounts
}

function podComplaints(pod: Pod, range: LimitRange, podLevel: boolean): string[] {
  const { containers, initContainers = [] } = pod.spec
  return (range.spec.limits ?? []).flatMap((item) => {
    switch (item.type) {
      case 'Container':
        return [...(containers ?? []), ...initContainers].flatMap(({ resources }) =>
          complaintsOf(item, { requests: amountsOf(resources?.requests), limits: amountsOf(resources?.limits) }),
        )
      case 'Pod':
        return complaintsOf(item, wholePod(pod, podLevel))
      default:
        return []
    }
  })
}

/** Without overhead, and with only CPU and memory of pod-level resources, unlike the scheduler's sum. */
function wholePod(pod: Pod, podLevel: boolean): ResourceAmounts {
  const options = { excludeOverhead: true, skipPodLevel: true }
  const own = podLevel ? pod.spec.resources : undefined
  const subject = { spec: pod.spec, status: {} }
  return {
    requests: new Map([...podRequests(subject, options), ...computeAmounts(own?.requests)]),
    limits: new Map([...podLimits(subject, options), ...computeAmounts(own?.limits)]),
  }
}

function computeAmounts(list: ResourceList | undefined): [string, Quantity][] {
  return [...amountsOf(list)].filter(([name]) => name === 'cpu' || name === 'memory')
}

/** Claims have only requests. */
function claimComplaints({ spec }: PersistentVolumeClaim, range: LimitRange): string[] {
  const amounts = { requests: amountsOf(spec.resources?.requests), limits: new Map() }
  return (range.spec.limits ?? [])
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap((item) => [
      ...each(item.min, (name, bound) => belowMin(item.type, name, bound, amounts)),
      ...each(item.max, (name, bound) => aboveMaxRequest(item.type, name, bound, amounts)),
    ])
}

function complaintsOf(item: LimitRangeItem, amounts: ResourceAmounts): string[] {
  return [
    ...each(item.min, (name, bound) => belowMin(item.type, name, bound, amounts)),
    ...each(item.max, (name, bound) => aboveMax(item.type, name, bound, amounts)),
    ...each(item.maxLimitRequestRatio, (name, bound) => aboveRatio(item.type, name, bound, amounts)),
  ]
}

type Constraint = (name: string, bound: Quantity) => string | undefined

function each(bounds: ResourceList | undefined, constraint: Constraint): string[] {
  return Object.keys(bounds ?? {})
    .sort(compareText)
    .flatMap((name) => constraint(name, parseQuantity(bounds?.[name] ?? '0')) ?? [])
}

function belowMin(
  type: string,
  name: string,
  min: Quantity,
  { requests, limits }: ResourceAmounts,
): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${quantityText(min)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (request === undefined) return `${rule}.  No request is specified`
  if (compare(request, min) < 0) return `${rule}, but request is ${quantityText(request)}`
  if (limit !== undefined && compare(limit, min) < 0) return `${rule}, but limit is ${quantityText(limit)}`
  return undefined
}

function aboveMax(
  type: string,
  name: string,
  max: Quantity,
  { requests, limits }: ResourceAmounts,
): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (limit === undefined) return `${rule}.  No limit is specified`
  if (compare(limit, max) > 0) return `${rule}, but limit is ${quantityText(limit)}`
  if (request !== undefined && compare(request, max) > 0) return `${rule}, but request is ${quantityText(request)}`
  return undefined
}

function aboveMaxRequest(type: string, name: string, max: Quantity, { requests }: ResourceAmounts): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  if (request === undefined) return `${rule}.  No request is specified`
  return compare(request, max) > 0 ? `${rule}, but request is ${quantityText(request)}` : undefined
}

function aboveRatio(
  type: string,
  name: string,
  max: Quantity,
  { requests, limits }: ResourceAmounts,
): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (request === undefined || isZeroQuantity(request)) return `${rule}, but no request is specified or request is 0`
  if (limit === undefined || isZeroQuantity(limit)) return `${rule}, but no limit is specified or limit is 0`
  const ratio = quantityNumber(inMilli(limit)) / quantityNumber(inMilli(request))
  return ratio * 1000 > quantityMilliValue(max) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined
}

/** Values are compared in thousandths. */
function inMilli(quantity: Quantity): Quantity {
  return roundQuantityUp(quantity, -3)
}

function compare(a: Quantity, b: Quantity): number {
  return compareQuantities(inMilli(a), inMilli(b))
}
