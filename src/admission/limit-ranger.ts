/**
 * LimitRanger: what a LimitRange of the namespace says about the resources of containers, pods and claims. Containers
 * that say nothing get its defaults; what is below the least, above the most or too far apart is refused. Upstream's
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
import { compareText } from '#lib/go-text.ts'
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

/** Containers of a pod never change, except for their resources through `resize`; what goes away may be as it is. */
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

/** Sets what is missing and tells in an annotation what that was. */
function defaultPod(pod: Pod, range: LimitRange): void {
  const items = (range.spec.limits ?? []).filter(({ type }) => type === 'Container')
  const limits = Object.assign({}, ...items.map((item) => item.default)) as ResourceList
  const requests = Object.assign({}, ...items.map((item) => item.defaultRequest)) as ResourceList
  const told = [
    ...(pod.spec.containers ?? []).flatMap((one) => defaultContainer(one, 'container', { limits, requests })),
    ...(pod.spec.initContainers ?? []).flatMap((one) => defaultContainer(one, 'init container', { limits, requests })),
  ]
  if (told.length === 0) return
  pod.metadata.annotations = { ...pod.metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${told.join('; ')}` }
}

function defaultContainer(
  container: Container,
  what: string,
  defaults: Readonly<Record<'limits' | 'requests', ResourceList>>,
): string[] {
  const told: string[] = []
  const resources: ResourceRequirements = { ...container.resources }
  for (const part of ['requests', 'limits'] as const) {
    const given = resources[part]
    const added = sortedAmounts(defaults[part]).filter(([name]) => amountOf(given, name) === undefined)
    if (added.length === 0) continue
    resources[part] = { ...given, ...Object.fromEntries(added) }
    told.push(`${added.map(([name]) => name).join(', ')} ${part.slice(0, -1)} for ${what} ${container.name}`)
  }
  container.resources = resources
  return told
}

/** What is asked for, in the form constraints are checked against. */
interface Asked {
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

/** Without overhead, and of what the pod asks as a whole only CPU and memory, unlike the scheduler's view. */
function wholePod(pod: Pod, podLevel: boolean): Asked {
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

/** Only requests of claims mean anything. */
function claimComplaints({ spec }: PersistentVolumeClaim, range: LimitRange): string[] {
  const asked = { requests: amountsOf(spec.resources?.requests), limits: new Map() }
  return (range.spec.limits ?? [])
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap((item) => [
      ...each(item.min, (name, bound) => belowMin(item.type, name, bound, asked)),
      ...each(item.max, (name, bound) => aboveMaxRequest(item.type, name, bound, asked)),
    ])
}

function complaintsOf(item: LimitRangeItem, asked: Asked): string[] {
  return [
    ...each(item.min, (name, bound) => belowMin(item.type, name, bound, asked)),
    ...each(item.max, (name, bound) => aboveMax(item.type, name, bound, asked)),
    ...each(item.maxLimitRequestRatio, (name, bound) => aboveRatio(item.type, name, bound, asked)),
  ]
}

type Constraint = (name: string, bound: Quantity) => string | undefined

function each(bounds: ResourceList | undefined, constraint: Constraint): string[] {
  return Object.keys(bounds ?? {})
    .sort(compareText)
    .flatMap((name) => constraint(name, parseQuantity(bounds?.[name] ?? '0')) ?? [])
}

function belowMin(type: string, name: string, min: Quantity, { requests, limits }: Asked): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${quantityText(min)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (request === undefined) return `${rule}.  No request is specified`
  if (compare(request, min) < 0) return `${rule}, but request is ${quantityText(request)}`
  if (limit !== undefined && compare(limit, min) < 0) return `${rule}, but limit is ${quantityText(limit)}`
  return undefined
}

function aboveMax(type: string, name: string, max: Quantity, { requests, limits }: Asked): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (limit === undefined) return `${rule}.  No limit is specified`
  if (compare(limit, max) > 0) return `${rule}, but limit is ${quantityText(limit)}`
  if (request !== undefined && compare(request, max) > 0) return `${rule}, but request is ${quantityText(request)}`
  return undefined
}

function aboveMaxRequest(type: string, name: string, max: Quantity, { requests }: Asked): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  if (request === undefined) return `${rule}.  No request is specified`
  return compare(request, max) > 0 ? `${rule}, but request is ${quantityText(request)}` : undefined
}

function aboveRatio(type: string, name: string, max: Quantity, { requests, limits }: Asked): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${quantityText(max)}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (request === undefined || isZeroQuantity(request)) return `${rule}, but no request is specified or request is 0`
  if (limit === undefined || isZeroQuantity(limit)) return `${rule}, but no limit is specified or limit is 0`
  const ratio = quantityNumber(inMilli(limit)) / quantityNumber(inMilli(request))
  return ratio * 1000 > quantityMilliValue(max) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined
}

/** Finer than a thousandth nobody looks. */
function inMilli(quantity: Quantity): Quantity {
  return roundQuantityUp(quantity, -3)
}

function compare(a: Quantity, b: Quantity): number {
  return compareQuantities(inMilli(a), inMilli(b))
}
