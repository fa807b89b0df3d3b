/** Wraps a storage backend with metrics: count, duration and failures by operation and resource. */
import type { Clock } from '#lib/clock.ts'
import type { Counter, Histogram } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import type { Backend, Write } from '#storage/backend.ts'

/** The resource of the keys under a prefix; undefined if there is none. */
export type ResourceAt = (prefix: string) => { readonly group: string; readonly resource: string } | undefined

interface Series {
  readonly duration: Histogram
  readonly total: Counter
  readonly errors: () => Counter
}

/** Wraps a backend; operations on resources are counted. */
export function meterBackend(backend: Backend, meters: ServerMeters, parts: MeterParts): Backend {
  const { clock, resourceAt } = parts
  const duration = meters.family('etcd_request_duration_seconds')
  const total = meters.family('etcd_requests_total')
  const errors = meters.family('etcd_request_errors_total')
  const known = new Map<string, Series>()
  const create = (id: string, operation: string, resource: ReturnType<ResourceAt>): Series | undefined => {
    if (resource === undefined) return undefined
    const labels = [operation, resource.group, resource.resource] as const
    const series = {
      duration: duration.labels(...labels),
      total: total.labels(...labels),
      errors: () => errors.labels(...labels),
    }
    known.set(id, series)
    return series
  }
  const seriesOf = (operation: string, key: string): Series | undefined => {
    for (const depth of DEPTHS) {
      const prefix = prefixOf(key, depth)
      const id = operation + prefix
      const series = known.get(id) ?? create(id, operation, resourceAt(prefix))
      if (series !== undefined) return series
    }
    return undefined
  }
  return {
    ...bound(backend),
    commit(writes, signal) {
      const [first] = writes
      return timed(clock, first && seriesOf(operationOf(first), first.key), () => backend.commit(writes, signal))
    },
    range(options) {
      const operation = options.end === undefined ? 'get' : 'list'
      return timed(clock, seriesOf(operation, options.start), () => backend.range(options))
    },
  }
}

async function timed<T>(clock: Clock, series: Series | undefined, ask: () => Promise<T>): Promise<T> {
  if (series === undefined) return ask()
  const startMs = clock.elapsed()
  series.total.inc()
  try {
    return await ask()
  } catch (error) {
    series.errors().inc()
    throw error
  } finally {
    series.duration.observe((clock.elapsed() - startMs) / 1000)
  }
}

interface MeterParts {
  readonly clock: Clock
  readonly resourceAt: ResourceAt
}

/** Its methods, bound to it. */
function bound(backend: Backend): Backend {
  const methods: Record<string, unknown> = { name: backend.name, isRemote: backend.isRemote }
  for (
    let from: object | null = backend;
    from !== null && from !== Object.prototype;
    from = Object.getPrototypeOf(from)
  ) {
    for (const name of Object.getOwnPropertyNames(from)) {
      const member: unknown = backend[name as keyof Backend]
      if (typeof member === 'function') methods[name] ??= member.bind(backend)
    }
  }
  return methods as unknown as Backend
}

function operationOf({ value, expected }: Write): 'create' | 'update' | 'delete' {
  return value === null ? 'delete' : expected === 0 ? 'create' : 'update'
}

/** The number of segments of a resource's prefix: `/registry/pods/`, `/registry/services/specs/`. */
const DEPTHS = [2, 3]

function prefixOf(key: string, depth: number): string {
  let at = 0
  for (let seen = 0; seen < depth && at >= 0; seen++) at = key.indexOf('/', at + 1)
  return at < 0 ? '' : key.slice(0, at + 1)
}
