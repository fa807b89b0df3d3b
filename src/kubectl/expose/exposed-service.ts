/** Creates the service that exposes a workload; selector, ports and labels default to those of the workload. */
import type { PodSpec, Service, ServicePort } from '#apis/core/v1.ts'
import { parseGoInt } from '#lib/go/text.ts'
import type { LabelSelector } from '#meta/label-selector.ts'

import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'

export interface ExposeOptions {
  readonly 'cluster-ip': string
  readonly 'external-ip': string
  readonly labels: string
  readonly 'load-balancer-ip': string
  readonly name: string
  readonly port: string
  readonly protocol: string
  readonly selector: string
  readonly 'session-affinity': string
  readonly 'target-port': string
  readonly type: string
}

/** The maximum length of a service name. */
const MAX_NAME = 63

type Pairs = Readonly<Record<string, string>>

interface ExposableObject extends AnyObject {
  spec?: {
    selector?: unknown
    template?: { spec?: PodSpec }
    ports?: readonly ServicePort[]
    containers?: PodSpec['containers']
  }
}

/** Kinds that can be exposed, as `Deployment.apps`. */
export const EXPOSABLE: ReadonlySet<string> = new Set([
  'ReplicationController',
  'Service',
  'Pod',
  'Deployment.apps',
  'ReplicaSet.apps',
])

/** Fields in the order of upstream's types. Throws KubectlError. */
export function exposedService(object: ExposableObject, options: ExposeOptions): Service {
  const selector = options.selector === '' ? selectorOf(object) : parsePairs(options.selector)
  const numbers = options.port === '' ? numbersOf(object, options['cluster-ip'] === 'None') : options.port.split(',')
  const labels = options.labels === '' ? object.metadata.labels : parsePairs(options.labels)
  const name = options.name === '' ? (object.metadata.name ?? '').slice(0, MAX_NAME) : options.name
  if (name === '') throw new KubectlError('name must be specified')
  const ports = portsFor(numbers, protocolsOf(object), options)
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name, ...(labels !== undefined && Object.keys(labels).length > 0 && { labels: sorted(labels) }) },
    spec: {
      ...(ports.length > 0 && { ports }),
      selector: sorted(selector),
      ...extras(options),
    },
    status: { loadBalancer: {} },
  }
}

function extras(options: ExposeOptions): object {
  const affinity = options['session-affinity']
  if (affinity !== '' && affinity !== 'None' && affinity !== 'ClientIP') {
    throw new KubectlError(`unknown session affinity: ${affinity}`)
  }
  const isBalanced = options.type === 'LoadBalancer'
  const texts: [string, string][] = [
    ['clusterIP', options['cluster-ip']],
    ['type', options.type],
    ['sessionAffinity', affinity],
    ['loadBalancerIP', isBalanced ? options['load-balancer-ip'] : ''],
  ]
  return {
    ...Object.fromEntries(texts.filter(([, value]) => value !== '')),
    ...(options['external-ip'] !== '' && { externalIPs: [options['external-ip']] }),
  }
}

function sorted(pairs: Pairs): Pairs {
  return Object.fromEntries(Object.entries(pairs).sort(([one], [other]) => (one < other ? -1 : 1)))
}

function selectorOf({ kind = '', metadata, spec = {} }: ExposableObject): Pairs {
  const fail = (why: string): KubectlError =>
    new KubectlError(`couldn't retrieve selectors via --selector flag or introspection: ${why}`)
  if (kind === 'Pod') {
    if (Object.keys(metadata.labels ?? {}).length === 0) throw fail('the pod has no labels and cannot be exposed')
    return metadata.labels ?? {}
  }
  if (kind === 'Service') {
    if (spec.selector === undefined) throw fail('the service has no pod selector set')
    return spec.selector as Pairs
  }
  if (kind === 'ReplicationController') return (spec.selector ?? {}) as Pairs
  return equalityOf(kind, spec.selector ?? {}, fail)
}

/** A service selector supports only equality. */
function equalityOf(kind: string, selector: LabelSelector, fail: (why: string) => KubectlError): Pairs {
  const { matchLabels = {}, matchExpressions = [] } = selector
  if (Object.keys(matchLabels).length === 0) {
    throw fail(`invalid ${kind.toLowerCase()}: no selectors, therefore cannot be exposed`)
  }
  if (matchExpressions.length > 0) {
    const shown = matchExpressions.map(
      ({ key, operator, values = [] }) => `{Key:${key} Operator:${operator} Values:[${values.join(' ')}]}`,
    )
    throw fail(`couldn't convert expressions - "[${shown.join(' ')}]" to map-based selector format`)
  }
  return matchLabels
}

function parsePairs(text: string): Pairs {
  const pairs = text.split(',').map((pair) => {
    const [key = '', value, ...rest] = pair.split('=')
    if (value === undefined || rest.length > 0) throw new KubectlError(`unexpected label spec: ${pair}`)
    if (key === '') throw new KubectlError('unexpected empty label key')
    return [key, value] as const
  })
  return Object.fromEntries(pairs)
}

interface PortOf {
  readonly number: string
  readonly protocol: string
}

/** All ports in order, possibly with duplicates. */
function allPorts({ kind, spec = {} }: ExposableObject): PortOf[] {
  if (kind === 'Service') {
    return (spec.ports ?? []).map(({ port, protocol = 'TCP' }) => ({ number: String(port), protocol }))
  }
  const containers = (kind === 'Pod' ? spec.containers : spec.template?.spec?.containers) ?? []
  return containers.flatMap(({ ports = [] }) =>
    ports.map(({ containerPort, protocol = 'TCP' }) => ({ number: String(containerPort), protocol })),
  )
}

function numbersOf(object: ExposableObject, isHeadless: boolean): string[] {
  const numbers = [...new Set(allPorts(object).map(({ number }) => number))]
  if (numbers.length === 0 && !isHeadless) {
    throw new KubectlError("couldn't find port via --port flag or introspection")
  }
  return numbers
}

function protocolsOf(object: ExposableObject): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { number, protocol } of allPorts(object)) {
    found.set(number, [...(found.get(number) ?? []), protocol])
  }
  return found
}

/** A port with several protocols becomes several service ports. */
function portsFor(
  numbers: readonly string[],
  protocols: ReadonlyMap<string, string[]>,
  { protocol, 'target-port': target }: ExposeOptions,
): ServicePort[] {
  return numbers.flatMap((text, at) => {
    const port = parseGoInt(text, 'Atoi')
    const name = numbers.length > 1 ? `port-${at + 1}` : ''
    const spoken = protocol === '' ? (protocols.get(text) ?? ['TCP']) : [protocol]
    return spoken.map((one) => {
      const own = spoken.length > 1 ? `port-${at + 1}-${one.toLowerCase()}` : name
      const targetPort = target === '' ? port : intOrString(target)
      return { ...(own !== '' && { name: own }), protocol: one, port, targetPort }
    })
  })
}

function intOrString(text: string): number | string {
  return /^[+-]?\d+$/.test(text) && Math.abs(Number(text)) <= 0x7f_ff_ff_ff ? Number(text) : text
}
