/** Client of the resource, custom and external metrics APIs. Throws errors with upstream's texts. */
import type { CrossVersionObjectReference } from '#apis/autoscaling/v2.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { defineKind } from '#client/custom-kind.ts'
import { durationMs } from '#lib/go/duration.ts'
import { parseJson } from '#lib/json/json.ts'
import { groupKindText, groupResourceText, parseApiVersion } from '#meta/kind.ts'
import { selectorText, type Selector } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'
import { type PodUsage, PodUsages } from '#model/usage.ts'

import type { ServedKinds } from '../../objects/served-kinds.ts'
import type { PodMetric, PodMetrics } from './replica-count.ts'
import { noMatch } from './scale-target.ts'

/** A metric's name and series selector. */
export interface MetricName {
  readonly name: string
  readonly selector: Selector
}

interface MetricValue {
  readonly describedObject?: { readonly name?: string }
  readonly timestamp: string | null
  readonly windowSeconds?: number
  readonly value: string
}

interface MetricValues {
  readonly items?: readonly MetricValue[] | null
}

function metricsKind<T extends KubeObject>(group: string, plural: string): Kind<T> {
  return defineKind({ group, version: 'v1beta1', kind: '', plural })
}

const CUSTOM = 'custom.metrics.k8s.io'
const CUSTOM_VERSIONS = ['v1beta2', 'v1beta1']
/** The window of a custom metric that reports none. */
const CUSTOM_WINDOW_MS = 60_000
const MAX_BYTES = 64 << 20

export class Metrics {
  readonly #client: ApiClient
  readonly #kinds: ServedKinds
  readonly #signal: AbortSignal

  constructor(client: ApiClient, kinds: ServedKinds, signal: AbortSignal) {
    this.#client = client
    this.#kinds = kinds
    this.#signal = signal
  }

  /** Pod usage of a resource, in one container or in all. */
  async ofResource(namespace: string, pods: Selector, resource: string, container: string): Promise<PodMetrics> {
    const options = { namespace, labelSelector: selectorText(pods), signal: this.#signal }
    const { items } = await this.#client.list(PodUsages, options).catch(failed('resource'))
    const known = items as readonly PodUsage[] | null
    if (known === null || known.length === 0) throw new Error('no metrics returned from resource metrics API')
    return new Map(known.flatMap((usage) => entryOf(usage, usageOf(usage, resource, container))))
  }

  /** A custom metric of each pod. */
  async ofPods(namespace: string, pods: Selector, metric: MetricName): Promise<PodMetrics> {
    const path = `namespaces/${encodeURIComponent(namespace)}/pods/*/${encodeURIComponent(metric.name)}`
    const values = await this.#custom(path, metric, pods).catch(failed('custom'))
    if (values.length === 0) throw new Error('no metrics returned from custom metrics API')
    return new Map(
      values.map(({ describedObject, timestamp, windowSeconds, value }): [string, PodMetric] => [
        describedObject?.name ?? '',
        {
          value: milliOf(value),
          atMs: timestampMs(timestamp),
          windowMs: windowSeconds === undefined ? CUSTOM_WINDOW_MS : windowSeconds * 1000,
        },
      ]),
    )
  }

  /** A custom metric of one object, in thousandths. For a Namespace, the autoscaler's own. */
  async ofObject(namespace: string, object: CrossVersionObjectReference, metric: MetricName): Promise<number> {
    return this.#ofObject(namespace, object, metric).catch(failed('custom'))
  }

  async #ofObject(namespace: string, object: CrossVersionObjectReference, metric: MetricName): Promise<number> {
    const { group } = parseApiVersion(object.apiVersion ?? '')
    const where = `namespaces/${encodeURIComponent(namespace)}`
    const name = encodeURIComponent(metric.name)
    const isNamespace = object.kind === 'Namespace' && group === ''
    const resource = isNamespace ? 'metrics' : await this.#resourceOf({ group, kind: object.kind })
    const path = isNamespace
      ? `${where}/metrics/${name}`
      : `${where}/${resource}/${encodeURIComponent(object.name)}/${name}`
    const values = await this.#custom(path, metric)
    const [first] = values
    if (first === undefined || values.length > 1) {
      throw new Error(`the custom metrics API server returned ${values.length} results when we asked for exactly one`)
    }
    return milliOf(first.value)
  }

  /** The series of an external metric, in thousandths. */
  async ofOutside(namespace: string, { name, selector }: MetricName): Promise<readonly number[]> {
    const kind = metricsKind('external.metrics.k8s.io', encodeURIComponent(name))
    const options = { namespace, labelSelector: selectorText(selector), signal: this.#signal }
    const { items } = await this.#client.list(kind, options).catch(failed('external'))
    const values = (items as unknown as readonly MetricValue[] | null) ?? []
    if (values.length === 0) throw new Error('no metrics returned from external metrics API')
    return values.map(({ value }) => milliOf(value))
  }

  async #resourceOf(kind: { readonly group: string; readonly kind: string }): Promise<string> {
    const [found] = await this.#kinds.ofKind(kind)
    if (found === undefined) throw new Error(`unable to map kind ${groupKindText(kind)} to resource: ${noMatch(kind)}`)
    return groupResourceText({ group: found.group, resource: found.plural })
  }

  async #custom(path: string, { selector }: MetricName, objects?: Selector): Promise<readonly MetricValue[]> {
    const version = await this.#customVersion()
    const parameters = {
      labelSelector: objects === undefined ? '' : selectorText(objects),
      metricLabelSelector: selectorText(selector),
    }
    const query = new URLSearchParams(Object.entries(parameters).filter(([, text]) => text !== '')).toString()
    const [resource = '', name = ''] = path.split('/').slice(2)
    const response = await this.#client.ask({
      method: 'GET',
      path: `/apis/${CUSTOM}/${version}/${path}${query === '' ? '' : `?${query}`}`,
      about: { resource: { group: CUSTOM, resource }, name: decodeURIComponent(name) },
      signal: this.#signal,
    })
    return (parseJson(await response.bytes(MAX_BYTES)) as MetricValues).items ?? []
  }

  async #customVersion(): Promise<string> {
    const versions = await this.#kinds.versionsOf(CUSTOM)
    if (versions.length === 0) throw new Error(`no custom metrics API (${CUSTOM}) registered`)
    const known = versions.find((version) => CUSTOM_VERSIONS.includes(version))
    if (known === undefined) throw new Error('no known available metric versions found')
    return known
  }
}

function failed(api: string): (error: Error) => never {
  return (cause) => {
    throw new Error(`unable to fetch metrics from ${api} metrics API: ${cause.message}`, { cause })
  }
}

/** Undefined if a counted container has no value. */
function usageOf({ containers }: PodUsage, resource: string, container: string): number | undefined {
  const counted = (containers ?? []).filter(({ name }) => container === '' || name === container)
  const amounts = counted.map(({ usage }) => usage?.[resource])
  if (amounts.length === 0 || amounts.includes(undefined)) return undefined
  return amounts.reduce((total, amount) => total + milliOf(amount ?? '0'), 0)
}

function entryOf({ metadata, timestamp, window }: PodUsage, value: number | undefined): [string, PodMetric][] {
  if (value === undefined) return []
  return [[metadata.name ?? '', { value, atMs: timestampMs(timestamp), windowMs: durationMs(window) }]]
}

function timestampMs(timestamp: string | null): number {
  return timestamp === null ? -Infinity : epochMsOf(timestamp)
}

function milliOf(amount: string): number {
  return quantityMilliValue(parseQuantity(amount))
}
