/** The pod or Service that a forward leads to, and the choice of a pod behind a Service. Pure. */
import type { Pod, Service } from '#apis/core/v1.ts'
import { isOver, isReady } from '#model/pods.ts'
import { targetPortOf } from '#model/services.ts'

export interface ForwardTarget {
  readonly kind: 'Pod' | 'Service'
  readonly namespace: string
  readonly name: string
  /** Of the pod or the Service. */
  readonly port: number
}

/** A DNS label or subdomain: other names cannot exist, and could change the path of a request. */
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/

/** Undefined if the JSON of a request names no target. */
export function parseTarget(body: unknown): ForwardTarget | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { kind, namespace, name, port } = body as Readonly<Record<string, unknown>>
  if (kind !== 'Pod' && kind !== 'Service') return undefined
  if (typeof namespace !== 'string' || typeof name !== 'string' || !NAME.test(namespace) || !NAME.test(name)) {
    return undefined
  }
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  return { kind, namespace, name, port }
}

/** A pod that can take connections. */
export interface Backend {
  readonly pod: string
  readonly port: number
}

/** The ready pods behind a port of a Service, the oldest first. Throws Error with the reason if the Service has none. */
export function backendsOf(service: Service, port: number, pods: readonly Pod[]): readonly Backend[] {
  const found = (service.spec.ports ?? []).find((one) => one.port === port)
  if (found === undefined) throw new Error(`The Service has no port ${port}`)
  if ((found.protocol ?? 'TCP') !== 'TCP')
    throw new Error(`Port ${port} is ${found.protocol}: only TCP can be forwarded`)
  const backends = pods
    .filter((pod) => isReady(pod) && !isOver(pod) && pod.metadata.deletionTimestamp === undefined)
    .toSorted((one, other) => compare(createdAt(one), createdAt(other)))
    .flatMap((pod) => {
      const number = targetPortOf(pod, found)
      return number === undefined ? [] : [{ pod: pod.metadata.name ?? '', port: number }]
    })
  if (backends.length === 0) throw new Error('The Service has no ready pod with this port')
  return backends
}

function createdAt({ metadata }: Pod): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.name ?? ''}`
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/** Keeps the pod that connections use until it is no longer ready. */
export function chooseBackend(backends: readonly Backend[], current: string | undefined): Backend | undefined {
  return backends.find(({ pod }) => pod === current) ?? backends[0]
}
