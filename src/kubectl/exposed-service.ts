/** The service that exposes a workload: its selector, ports and labels, taken from the workload where nobody says. */
import type { PodSpec, Service, ServicePort } from '#apis/core/v1.ts'
import { parseGoInt } from '#lib/go-text.ts'
import type { LabelSelector } from '#meta/label-selector.ts'

import { KubectlError } from './errors.ts'
import type { AnyObject } from './rest.ts'

export interface ExposeWish {
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

/** As long as the name of a service may be. */
const MAX_NAME = 63

type Pairs = Readonly<Record<string, string>>

interface Exposed extends AnyObject {
  spec?: {
    selector?: unknown
    template?: { spec?: PodSpec }
    ports?: readonly ServicePort[]
    containers?: PodSpec['containers']
  }
}

/** `Deployment.apps`: those that can be exposed. */
export const EXPOSABLE: ReadonlySet<string> = new Set([
  'ReplicationController',
  'Service',
  'Pod',
  'Deployment.apps',
  'ReplicaSet.apps',
])

/** Fields in the order of upstream's types. Throws KubectlError. */
export function exposedService(object: Exposed, wish: ExposeWish): Service {
  const selector = wish.selector === '' ? selectorOf(object) : parsePairs(wish.selector)
  const numbers = wish.port === '' ? numbersOf(object, wish['cluster-ip'] === 'None') : wish.port.split(',')
  const labels = wish.labels === '' ? object.metadata.labels : parsePairs(wish.labels)
  const name = wish.name === '' ? (object.metadata.name ?? '').slice(0, MAX_NAME) : wish.name
  if (name === '') throw new KubectlError('name must be specified')
  const ports = portsFor(numbers, protocolsOf(object), wish)
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name, ...(labels !== undefined && Object.keys(labels).length > 0 && { labels: sorted(labels) }) },
    spec: {
      ...(ports.length > 0 && { ports }),
      selector: sorted(selector),
      ...extras(wish),
    },
    status: { loadBalancer: {} },
  }
}

function extras(wish: ExposeWish): object {
  const affinity = wish['session-affinity']
  if (affinity !== '' && affinity !== 'None' && affinity !== 'ClientIP') {
    throw new KubectlError(`unknown session affinity: ${affinity}`)
  }
  const isBalanced = wish.type === 'LoadBalancer'
  const texts: [string, string][] = [
    ['clusterIP', wish['cluster-ip']],
    ['type', wish.type],
    ['sessionAffinity', affinity],
    ['loadBalancerIP', isBalanced ? wish['load-balancer-ip'] : ''],
  ]
  return {
    ...Object.fromEntries(texts.filter(([, value]) => value !== '')),
    ...(wish['external-ip'] !== '' && { externalIPs: [wish['external-ip']] }),
  }
}

function sorted(pairs: Pairs): Pairs {
  return Object.fromEntries(Object.entries(pairs).sort(([one], [other]) => (one < other ? -1 : 1)))
}

function selectorOf({ kind = '', metadata, spec = {} }: Exposed): Pairs {
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

/** A service knows nothing but equality. */
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

/** Every port of it, in order, some perhaps several times. */
function allPorts({ kind, spec = {} }: Exposed): PortOf[] {
  if (kind === 'Service') {
    return (spec.ports ?? []).map(({ port, protocol = 'TCP' }) => ({ number: String(port), protocol }))
  }
  const containers = (kind === 'Pod' ? spec.containers : spec.template?.spec?.containers) ?? []
  return containers.flatMap(({ ports = [] }) =>
    ports.map(({ containerPort, protocol = 'TCP' }) => ({ number: String(containerPort), protocol })),
  )
}

function numbersOf(object: Exposed, isHeadless: boolean): string[] {
  const numbers = [...new Set(allPorts(object).map(({ number }) => number))]
  if (numbers.length === 0 && !isHeadless) {
    throw new KubectlError("couldn't find port via --port flag or introspection")
  }
  return numbers
}

function protocolsOf(object: Exposed): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { number, protocol } of allPorts(object)) {
    found.set(number, [...(found.get(number) ?? []), protocol])
  }
  return found
}

/** A port that is served by several protocols becomes several. */
function portsFor(
  numbers: readonly string[],
  protocols: ReadonlyMap<string, string[]>,
  { protocol, 'target-port': target }: ExposeWish,
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
