/** Proposed replicas and status of each metric: one row for each metric type. */
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '#apis/autoscaling/v2.ts'
import { asSelector, goSelectorText, type LabelSelector } from '#meta/label-selector.ts'
import type { Selector } from '#meta/labels.ts'
import { parseQuantity, quantityMilliValue, quantityOfMilli, quantityText } from '#meta/quantity.ts'

import type { MetricName, Metrics } from './metrics.ts'
import {
  countByAverage,
  countByRatio,
  countByUtilization,
  countPerPod,
  MAX_INT64,
  type Population,
  type Tolerance,
} from './replica-count.ts'

export interface Proposal {
  readonly replicas: number
  /** The description of the metric for users. */
  readonly metric: string
  readonly status: MetricStatus
}

/** Why a metric has no proposal. */
export interface ProposalFailure {
  readonly reason: string
  /** For the condition and the event. */
  readonly message: string
  /** For the summary over all metrics. */
  readonly error: string
}

/** The shared input of all metrics. */
export interface ProposalInput {
  readonly hpa: HorizontalPodAutoscaler
  readonly metrics: Metrics
  /** Selects the pods. */
  readonly selector: Selector
  readonly population: Population
  readonly tolerance: Tolerance
  /** The target's desired and current replicas. */
  readonly wanted: number
  readonly present: number
  readonly podLevel: boolean
}

interface Source {
  readonly reason: string
  /** The prefix of an error in the summary. */
  prefix(spec: MetricSpec): string
  propose(spec: MetricSpec, round: ProposalInput): Promise<Proposal>
}

const SOURCES: Readonly<Record<string, Source>> = {
  Resource: {
    reason: 'FailedGetResourceMetric',
    prefix: ({ resource }) => `failed to get ${resource?.name} resource metric value: `,
    async propose({ resource: { name, target } = NO_RESOURCE }, round) {
      const { replicas, current, share } = await ofResource(round, target, { resource: name, container: '' })
      const metric = `${name} resource${share ? ' utilization (percentage of request)' : ''}`
      return { replicas, metric, status: { type: 'Resource', resource: { name, current } } }
    },
  },
  ContainerResource: {
    reason: 'FailedGetContainerResourceMetric',
    prefix: ({ containerResource }) => `failed to get ${containerResource?.container} container metric value: `,
    async propose({ containerResource: { name, container, target } = NO_RESOURCE }, round) {
      const { replicas, current, share } = await ofResource(round, target, { resource: name, container })
      const metric = `${name} ${share ? 'container resource utilization (percentage of request)' : 'resource'}`
      return {
        replicas,
        metric,
        status: { type: 'ContainerResource', containerResource: { name, container, current } },
      }
    },
  },
  Pods: {
    reason: 'FailedGetPodsMetric',
    prefix: () => 'failed to get pods metric value: ',
    async propose({ pods: { metric, target } = NO_METRIC }, { hpa, metrics, selector, population, tolerance, wanted }) {
      const found = await metrics
        .ofPods(namespaceOf(hpa), selector, nameOf(metric))
        .catch(rethrowWith(`unable to get metric ${metric.name}: `))
      const request = { current: wanted, target: milliOf(target.averageValue), resource: '', tolerance }
      const { replicas, usage } = countByAverage(found, population, request)
      const status = { type: 'Pods', pods: { metric: identity(metric), current: { averageValue: textOf(usage) } } }
      return { replicas, metric: `pods metric ${metric.name}`, status }
    },
  },
  Object: {
    reason: 'FailedGetObjectMetric',
    prefix: ({ object }) =>
      `failed to get object metric value: ${isAverage(object?.target) ? `failed to get ${object?.metric.name} object metric: ` : ''}`,
    propose: ({ object = NO_METRIC }, round) => ofObject(object, round),
  },
  External: {
    reason: 'FailedGetExternalMetric',
    prefix({ external: { metric, target } = NO_METRIC }) {
      const whole = target.value === undefined ? '' : `failed to get external metric ${metric.name}: `
      const inner = target.averageValue === undefined ? whole : `failed to get ${metric.name} external metric: `
      return `failed to get ${metric.name} external metric value: ${inner}`
    },
    propose: ({ external = NO_METRIC }, round) => ofOutside(external, round),
  },
}

/** Never rejects. */
export async function propose(spec: MetricSpec, round: ProposalInput): Promise<Proposal | ProposalFailure> {
  const source = SOURCES[spec.type]
  if (source === undefined) {
    const message = `unknown metric source type "${spec.type}"`
    return { reason: 'InvalidMetricSourceType', message, error: message }
  }
  try {
    return await source.propose(spec, round)
  } catch (error) {
    const { message } = error as Error
    return { reason: source.reason, message, error: source.prefix(spec) + message }
  }
}

// A valid spec has the part that its type names.
const NO_TARGET: MetricTarget = { type: '' }
const NO_RESOURCE = { name: '', container: '', target: NO_TARGET }
const NO_METRIC = { metric: { name: '' }, target: NO_TARGET, describedObject: { kind: '', name: '' } }

interface ResourceCount {
  readonly replicas: number
  readonly current: MetricValueStatus
  /** Whether it is a percentage of pod requests. */
  readonly share: boolean
}

async function ofResource(
  { hpa, metrics, selector, population, tolerance, wanted, podLevel }: ProposalInput,
  { averageValue, averageUtilization }: MetricTarget,
  { resource, container }: { readonly resource: string; readonly container: string },
): Promise<ResourceCount> {
  const read = (): ReturnType<Metrics['ofResource']> =>
    metrics
      .ofResource(namespaceOf(hpa), selector, resource, container)
      .catch(rethrowWith(`unable to get metrics for resource ${resource}: `))
  const shown = (usage: number): string => textOf(usage, resource === 'memory')
  try {
    if (averageValue !== undefined) {
      const request = { current: wanted, target: milliOf(averageValue), resource, tolerance }
      const { replicas, usage } = countByAverage(await read(), population, request)
      return { replicas, current: { averageValue: shown(usage) }, share: false }
    }
    if (averageUtilization === undefined)
      throw new NoTarget('resource', 'an average utilization target nor an average value (usage) target')
    const request = { current: wanted, target: averageUtilization, resource, container, tolerance, podLevel }
    const { replicas, usage, utilization } = countByUtilization(await read(), population, request)
    return { replicas, current: { averageUtilization: utilization, averageValue: shown(usage) }, share: true }
  } catch (error) {
    if (error instanceof NoTarget) throw error
    return rethrowWith(`failed to get ${resource} ${averageValue === undefined ? 'utilization' : 'usage'}: `)(
      error as Error,
    )
  }
}

async function ofObject(
  { metric, target, describedObject }: NonNullable<MetricSpec['object']>,
  { hpa, metrics, population, tolerance, wanted, present }: ProposalInput,
): Promise<Proposal> {
  const namespace = namespaceOf(hpa)
  const status = (current: MetricValueStatus): MetricStatus => ({
    type: 'Object',
    object: { metric: identity(metric), current, describedObject },
  })
  const read = (): Promise<number> =>
    metrics.ofObject(namespace, describedObject, nameOf(metric)).catch((cause: Error) => {
      // The order of upstream's arguments.
      const { kind, name } = describedObject
      throw new Error(`unable to get metric ${metric.name}: ${kind} on ${namespace} ${name}/${cause.message}`, {
        cause,
      })
    })
  if (target.type === 'Value' && target.value !== undefined) {
    const usage = await read()
    const replicas = countByRatio(usage / milliOf(target.value), population.pods, { current: wanted, tolerance })
    return {
      replicas,
      metric: `${describedObject.kind} metric ${metric.name}`,
      status: status({ value: textOf(usage) }),
    }
  }
  if (!isAverage(target)) throw new NoTarget('object', 'a value target nor an average value target')
  const { replicas, usage } = countPerPod(await read(), milliOf(target.averageValue), { current: present, tolerance })
  return { replicas, metric: externalText(metric), status: status({ averageValue: textOf(usage) }) }
}

async function ofOutside(
  { metric, target }: NonNullable<MetricSpec['external']>,
  { hpa, metrics, population, tolerance, wanted, present }: ProposalInput,
): Promise<Proposal> {
  const status = (current: MetricValueStatus): MetricStatus => ({
    type: 'External',
    external: { metric: identity(metric), current },
  })
  const read = async (): Promise<number> => {
    const named = nameOf(metric)
    const shown = `${namespaceOf(hpa)}/${metric.name}/${goSelectorText(metric.selector)}`
    const values = await metrics
      .ofOutside(namespaceOf(hpa), named)
      .catch(rethrowWith(`unable to get external metric ${shown}: `))
    return Math.min(
      MAX_INT64,
      values.reduce((total, value) => total + value, 0),
    )
  }
  if (target.averageValue !== undefined) {
    const { replicas, usage } = countPerPod(await read(), milliOf(target.averageValue), { current: present, tolerance })
    return { replicas, metric: externalText(metric), status: status({ averageValue: textOf(usage) }) }
  }
  if (target.value === undefined) throw new NoTarget('external', 'a value target nor an average value target')
  const usage = await read()
  const replicas = countByRatio(usage / milliOf(target.value), population.pods, { current: wanted, tolerance })
  return { replicas, metric: externalText(metric), status: status({ value: textOf(usage) }) }
}

class NoTarget extends Error {
  constructor(source: string, neither: string) {
    super(`invalid ${source} metric source: neither ${neither} was set`)
  }
}

function rethrowWith(prefix: string): (error: Error) => never {
  return (cause) => {
    throw new Error(prefix + cause.message, { cause })
  }
}

function isAverage(target: MetricTarget | undefined): boolean {
  return target?.type === 'AverageValue' && target.averageValue !== undefined
}

interface Identifier {
  readonly name: string
  readonly selector?: LabelSelector
}

function identity({ name, selector }: Identifier): { name: string; selector?: LabelSelector } {
  return { name, ...(selector !== undefined && { selector }) }
}

function nameOf({ name, selector }: Identifier): MetricName {
  return { name, selector: asSelector(selector) }
}

function externalText({ name, selector }: Identifier): string {
  return `external metric ${name}(${goSelectorText(selector)})`
}

function namespaceOf({ metadata }: HorizontalPodAutoscaler): string {
  return metadata.namespace ?? ''
}

function milliOf(amount = '0'): number {
  return quantityMilliValue(parseQuantity(amount))
}

/** Formats thousandths as a quantity. */
function textOf(milli: number, isBinary = false): string {
  const whole = milli >= MAX_INT64 ? 2n ** 63n - 1n : BigInt(milli)
  return quantityText(quantityOfMilli(whole, isBinary ? 'BinarySI' : 'DecimalSI'))
}
