/**
 * Computes the quota usage of pods: their number and compute resources. Upstream's pkg/quota/v1/evaluator/core, v1.36.
 */
import type { Affinity, Container, Pod, PodAffinityTerm } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { type Quantity, quantityOf } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'

import { type Amounts, amountsOf, podLimits, podRequests, qosClassOf } from '../pod-resources.ts'
import {
  isExtendedResource,
  isHugePages,
  isNativeResource,
  isPodLevelResource,
} from '../pod-spec/containers/resource-names.ts'
import { isTerminal } from '../pods.ts'
import type { CountedWrite, Evaluator, Scope } from './evaluator.ts'
import { selects } from './evaluator.ts'

export interface PodEvaluatorOptions {
  readonly nowMs: () => number
  readonly isEnabled: (gate: string) => boolean
}

const COUNT = 'count/pods'
const COMPUTE = ['cpu', 'memory', 'ephemeral-storage']
const NAMES = new Set([COUNT, 'pods', ...COMPUTE, ...COMPUTE.flatMap((name) => [`requests.${name}`, `limits.${name}`])])

/** Every container must set these once a quota limits them: a historical mistake of the API. */
const REQUIRED = new Set(['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'])

/** Extended resources that device classes provide. */
export const DEVICE_CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/'

export function createPodEvaluator(options: PodEvaluatorOptions): Evaluator {
  const podLevel = (): boolean => options.isEnabled('PodLevelResources')
  return {
    handles: handlesPod,
    matching: (names) => [...names].filter(isPodName),
    isWithin: (scope, pod) => isWithin(scope, pod as Pod, podLevel()),
    complaint(required, pod) {
      const { spec } = pod as Pod
      return podLevel() && hasPodLevel(spec.resources) ? undefined : missingText(required, pod as Pod)
    },
    usage: (pod) => podUsage(pod as Pod, options),
  }
}

function handlesPod({ operation, subresource, object, oldObject }: CountedWrite): boolean {
  if (subresource === 'resize') return operation === 'UPDATE'
  if (subresource !== '') return false
  if (operation === 'CREATE') return true
  return operation === 'UPDATE' && isTerminating(object) !== isTerminating(oldObject)
}

/** True for a pod with a deadline. */
function isTerminating(pod: KubeObject | undefined): boolean {
  return ((pod as Pod | undefined)?.spec.activeDeadlineSeconds ?? -1) >= 0
}

function isPodName(name: string): boolean {
  return NAMES.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-') || isExtendedQuotaName(name)
}

/** Extended resources cannot be overcommitted, so only their requests are limited. */
export function isExtendedQuotaName(name: string): boolean {
  if (!name.startsWith('requests.')) return false
  return !isNativeResource(name) || name.startsWith(`requests.${DEVICE_CLASS_PREFIX}`)
}

function isWithin(scope: Scope, pod: Pod, podLevel: boolean): boolean {
  const { spec } = pod
  const isBestEffort = (): boolean => qosClassOf({ spec, status: pod.status ?? {} }, podLevel) === 'BestEffort'
  switch (scope.scopeName) {
    case 'Terminating':
      return isTerminating(pod)
    case 'NotTerminating':
      return !isTerminating(pod)
    case 'BestEffort':
      return isBestEffort()
    case 'NotBestEffort':
      return !isBestEffort()
    case 'PriorityClass':
      return selects(scope, spec.priorityClassName === '' ? undefined : spec.priorityClassName)
    case 'CrossNamespacePodAffinity':
      return crossesNamespaces(spec.affinity)
    default:
      return false
  }
}

function crossesNamespaces(affinity: Affinity | undefined): boolean {
  const crosses = ({ namespaces = [], namespaceSelector }: PodAffinityTerm): boolean =>
    namespaces.length > 0 || namespaceSelector !== undefined
  return [affinity?.podAffinity, affinity?.podAntiAffinity].some(
    (side) =>
      side?.requiredDuringSchedulingIgnoredDuringExecution?.some(crosses) ||
      side?.preferredDuringSchedulingIgnoredDuringExecution?.some(({ podAffinityTerm }) => crosses(podAffinityTerm)),
  )
}

function hasPodLevel(resources: Pod['spec']['resources']): boolean {
  return [resources?.requests, resources?.limits].some((list) => Object.keys(list ?? {}).some(isPodLevelResource))
}

function missingText(required: ReadonlySet<string>, { spec }: Pod): string | undefined {
  const wanted = [...required].filter((name) => REQUIRED.has(name)).sort(compareText)
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  const missing = wanted.flatMap((name) => {
    const names = containers.filter((container) => !containerUsage(container).has(name)).map((one) => one.name)
    return names.length === 0 ? [] : [`${name} for: ${[...new Set(names)].sort(compareText).join(',')}`]
  })
  return missing.length === 0 ? undefined : `must specify ${missing.join('; ')}`
}

function containerUsage({ resources }: Container): Amounts {
  return computeUsage(amountsOf(resources?.requests), amountsOf(resources?.limits))
}

/** With the names of quotas. */
function computeUsage(requests: Amounts, limits: Amounts): Map<string, Quantity> {
  const used = new Map<string, Quantity>([['pods', quantityOf(1)]])
  for (const [name, amount] of requests) {
    const isCompute = COMPUTE.includes(name) || isHugePages(name)
    if (isCompute) used.set(name, amount)
    if (isCompute || isExtendedResource(name) || name.startsWith(DEVICE_CLASS_PREFIX)) {
      used.set(`requests.${name}`, amount)
    }
  }
  for (const [name, amount] of limits) if (COMPUTE.includes(name)) used.set(`limits.${name}`, amount)
  return used
}

/** All stored pods are counted as objects, but only active ones use resources. */
export function podUsage(pod: Pod, { nowMs, isEnabled }: PodEvaluatorOptions): Map<string, Quantity> {
  const counted: [string, Quantity] = [COUNT, quantityOf(1)]
  const { spec, metadata } = pod
  const subject = { metadata, spec, status: pod.status ?? {} }
  if (isTerminal(subject) || isOverdue(subject, nowMs())) return new Map([counted])
  const options = {
    useStatus: isEnabled('InPlacePodVerticalScaling'),
    skipPodLevel: !isEnabled('PodLevelResources'),
  }
  return new Map([counted, ...computeUsage(podRequests(subject, options), podLimits(subject, options))])
}

/** A pod that should be gone by now, for example because its node is lost, must not block its successor. */
function isOverdue({ metadata }: Pick<Pod, 'metadata'>, nowMs: number): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false
  return nowMs > epochMsOf(deletionTimestamp) + deletionGracePeriodSeconds * 1000
}
