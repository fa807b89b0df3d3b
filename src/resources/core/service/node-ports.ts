/**
 * Allocates node ports of Services. All allocated ports are one set with atomic changes (see port-ledger.ts): a Service
 * gets all its ports or none.
 */
import type { ServiceSpec } from '#apis/core/v1.ts'
import type { Random } from '#lib/random.ts'
import { firstByKey } from '#lib/repetition.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import {
  allocatesNodePorts,
  requestedNodePorts,
  needsHealthCheck,
  nodePortsOf,
  usesNodePorts,
} from '#model/services.ts'

/** The set of allocated ports, for one or several servers. */
export interface PortLedger {
  /** `apply` may change the given set, and may be called again with a newer one. */
  change<R>(apply: (taken: Set<number>) => R): Promise<R>
  /**
   * Replaces the set by the result of `plan`. This server changes no port in the meantime; after a change by another
   * server the plan is computed again. `isNew`: the ledger does not exist yet.
   */
  rebuild<R>(plan: (taken: ReadonlySet<number>, isNew: boolean) => Promise<Rebuilt<R>>): Promise<R>
}

export interface Rebuilt<R> {
  readonly taken: ReadonlySet<number>
  readonly outcome: R
}

/** For a single server that starts empty, as in tests. */
export function createMemoryLedger(): PortLedger {
  let taken = new Set<number>()
  let isNew = true
  return {
    change: async (apply) => apply(taken),
    async rebuild(plan) {
      const { taken: rebuilt, outcome } = await plan(taken, isNew)
      taken = new Set(rebuilt)
      isNew = false
      return outcome
    },
  }
}

export interface PortRange {
  readonly first: number
  /** Inclusive. */
  readonly last: number
}

/** `--service-node-port-range`'s default. */
export const DEFAULT_PORT_RANGE: PortRange = { first: 30_000, last: 32_767 }

export interface PortRequest {
  /** Receives the node ports. */
  readonly next: ServiceSpec
  readonly old: ServiceSpec | undefined
  readonly range: PortRange
  readonly random: Random
  readonly dryRun: boolean
}

export interface PortPlan {
  /** Allocated ports, to release if the Service is not written. */
  readonly taken: readonly number[]
  /** Ports to release after the write. */
  readonly released: readonly number[]
  /** Nothing was allocated. */
  readonly refusal?: PortRefusal
}

/** An invalid field, or an internal failure. */
export type PortRefusal = { readonly field: FieldError } | { readonly failure: string; readonly internal: boolean }

/** True if ports must be looked up or allocated. */
export function asksForPorts(spec: ServiceSpec): boolean {
  return usesNodePorts(spec) || needsHealthCheck(spec)
}

/** Allocates and sets the node ports of `next`; for `PortLedger.change`. */
export function allocatePorts(taken: Set<number>, request: PortRequest): PortPlan {
  const { next, old, dryRun } = request
  const desk = createPortAllocation(taken, request)
  const refusal =
    (usesNodePorts(next) ? (old === undefined ? takeNew(next, desk) : takeChanged(next, old, desk)) : undefined) ??
    takeHealthPort(next, old, desk)
  if (refusal !== undefined || dryRun) {
    if (!dryRun) for (const port of desk.own) taken.delete(port)
    return refusal === undefined ? { taken: [], released: [] } : { taken: [], released: [], refusal }
  }
  const kept = requestedNodePorts(next)
  const released = old === undefined ? [] : [...requestedNodePorts(old)].filter((port) => !kept.has(port))
  return { taken: [...desk.own], released }
}

/** Allocates ports for one request. */
interface PortAllocation {
  /** The ports of this request. */
  readonly own: Set<number>
  /** The error if it is not available. */
  take(port: number): string | undefined
  /** Undefined if all are allocated. */
  takeAny(): number | undefined
}

function createPortAllocation(taken: Set<number>, { range, random, dryRun }: PortRequest): PortAllocation {
  const own = new Set<number>()
  const add = (port: number): void => {
    own.add(port)
    if (!dryRun) taken.add(port)
  }
  return {
    own,
    take(port) {
      // A dry run does not check the range, as in upstream.
      if (!dryRun && (port < range.first || port > range.last)) {
        return `provided port is not in the valid range. The range of valid ports is ${range.first}-${range.last}`
      }
      if (taken.has(port) || own.has(port)) return 'provided port is already allocated'
      add(port)
      return undefined
    },
    takeAny() {
      // A port beyond the default range, so that clients do not rely on the result of a dry run.
      const port = dryRun ? Math.max(DEFAULT_PORT_RANGE.last + 1, ...own) + 1 : freePort(taken, range, random)
      if (port !== undefined) add(port)
      return port
    },
  }
}

/** Random, from the upper band first: the lower band is left to static requests (KEP-3668). */
function freePort(taken: ReadonlySet<number>, { first, last }: PortRange, random: Random): number | undefined {
  const upper = first + staticBand(last - first + 1)
  for (const [from, end] of [
    [upper, last + 1],
    [first, upper],
  ] as const) {
    const size = end - from
    const start = size > 0 ? random.int(size) : 0
    for (let step = 0; step < size; step++) {
      const port = from + ((start + step) % size)
      if (!taken.has(port)) return port
    }
  }
  return undefined
}

/** min(max(16, size / 32), 128); no band for small ranges. */
export function staticBand(size: number): number {
  return size <= 16 ? 0 : Math.min(Math.max(16, Math.trunc(size / 32)), 128)
}

function wrongPort(at: number, port: number, complaint: string): PortRefusal {
  return { field: fieldPath('spec.ports').index(at).child('nodePort').invalid(port, complaint) }
}

const NO_PORT: PortRefusal = { failure: 'failed to allocate a nodePort: range is full', internal: true }

/** Ports with the same number and different protocols share a node port. */
function takeNew(spec: ServiceSpec, desk: PortAllocation): PortRefusal | undefined {
  const ports = spec.ports ?? []
  const byPort = new Map<number, number>()
  const requestedByPort = firstByKey(
    ports.filter(({ nodePort = 0 }) => nodePort !== 0),
    ({ port }) => port,
  )
  for (const [at, port] of ports.entries()) {
    const { nodePort: wanted = 0 } = port
    if (wanted === 0 && !allocatesNodePorts(spec)) continue
    const shared = byPort.get(port.port)
    if (shared !== undefined && (wanted === 0 || wanted === shared)) {
      port.nodePort = shared
      continue
    }
    // A node port that a later port requests also applies to this one.
    const requested = shared === undefined ? requestedByPort.get(port.port) : port
    const refusal = takeOne(desk, port, requested?.nodePort ?? 0, at)
    if (refusal !== undefined) return refusal
    if (shared === undefined) byPort.set(port.port, port.nodePort ?? 0)
  }
  return undefined
}

/** Allocates the wanted port, or any for 0, and sets it. */
function takeOne(
  desk: PortAllocation,
  port: { nodePort?: number },
  wanted: number,
  at: number,
): PortRefusal | undefined {
  if (wanted !== 0) {
    const complaint = desk.take(wanted)
    if (complaint !== undefined) return wrongPort(at, wanted, complaint)
    port.nodePort = wanted
    return undefined
  }
  const found = desk.takeAny()
  if (found === undefined) return NO_PORT
  port.nodePort = found
  return undefined
}

/** Existing ports stay; two protocols may share one. */
function takeChanged(next: ServiceSpec, old: ServiceSpec, desk: PortAllocation): PortRefusal | undefined {
  const had = new Set(nodePortsOf(old))
  const seen = new Set<string>()
  for (const [at, port] of (next.ports ?? []).entries()) {
    const { nodePort: wanted = 0, protocol = '' } = port
    if (wanted === 0 && !allocatesNodePorts(next)) continue
    const mine = had.has(wanted) || desk.own.has(wanted)
    const refusal = mine ? undefined : takeOne(desk, port, wanted, at)
    if (refusal !== undefined) return refusal
    const pair = `${protocol} ${port.nodePort}`
    if (seen.has(pair)) return { failure: `duplicate nodePort: {${pair}}`, internal: false }
    seen.add(pair)
  }
  return undefined
}

function takeHealthPort(
  next: ServiceSpec,
  old: ServiceSpec | undefined,
  desk: PortAllocation,
): PortRefusal | undefined {
  if (!needsHealthCheck(next) || (old !== undefined && needsHealthCheck(old))) return undefined
  const { healthCheckNodePort: wanted = 0 } = next
  if (wanted !== 0) {
    const complaint = desk.take(wanted)
    if (complaint === undefined) return undefined
    const failure = `failed to allocate requested HealthCheck NodePort ${wanted}: ${complaint}`
    return { failure, internal: true }
  }
  const found = desk.takeAny()
  if (found === undefined)
    return { failure: 'failed to allocate a HealthCheck NodePort 0: range is full', internal: true }
  next.healthCheckNodePort = found
  return undefined
}
