/**
 * Ports that Services hold on every node. Which are taken is one set, in a ledger that changes it atomically: either
 * all ports a Service needs are in it afterwards or none.
 */
import type { ServiceSpec } from '#apis/core/v1.ts'
import type { Random } from '#lib/random.ts'
import { firstByKey } from '#lib/repetition.ts'
import { child, type FieldError, index, invalid } from '#meta/validation/field-error.ts'
import { allocatesNodePorts, heldNodePorts, needsHealthCheck, nodePortsOf, usesNodePorts } from '#model/services.ts'

/** Keeps the set of taken ports, for one server or for several. */
export interface PortLedger {
  /** `apply` may change the set it is handed, and may be called again with a newer one. */
  change<R>(apply: (taken: Set<number>) => R): Promise<R>
  /**
   * Replaces what is taken by what `plan` says. No port is taken or given back by this server meanwhile; when another
   * one does, the plan is asked again. `isNew`: nothing was ever written down.
   */
  rebuild<R>(plan: (taken: ReadonlySet<number>, isNew: boolean) => Promise<Rebuilt<R>>): Promise<R>
}

export interface Rebuilt<R> {
  readonly taken: ReadonlySet<number>
  readonly outcome: R
}

/** For a server that is the only one and begins with nothing, as in tests. */
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
  /** Included. */
  readonly last: number
}

/** `--service-node-port-range`'s default. */
export const DEFAULT_PORT_RANGE: PortRange = { first: 30_000, last: 32_767 }

export interface PortRequest {
  /** Node ports are filled in here. */
  readonly next: ServiceSpec
  readonly old: ServiceSpec | undefined
  readonly range: PortRange
  readonly random: Random
  readonly dryRun: boolean
}

export interface PortPlan {
  /** In the set by now; to be given back when the Service is not written. */
  readonly taken: readonly number[]
  /** To be given back when it is. */
  readonly released: readonly number[]
  /** Nothing was taken. */
  readonly refusal?: PortRefusal
}

/** A field that is wrong, or a failure that is nobody's fault. */
export type PortRefusal = { readonly field: FieldError } | { readonly failure: string; readonly internal: boolean }

/** Whether anything has to be looked up or taken for it. */
export function asksForPorts(spec: ServiceSpec): boolean {
  return usesNodePorts(spec) || needsHealthCheck(spec)
}

/** Fills in the node ports of `next` and takes them; for `PortLedger.change`. */
export function allocatePorts(taken: Set<number>, request: PortRequest): PortPlan {
  const { next, old, dryRun } = request
  const desk = createDesk(taken, request)
  const refusal =
    (usesNodePorts(next) ? (old === undefined ? takeNew(next, desk) : takeChanged(next, old, desk)) : undefined) ??
    takeHealthPort(next, old, desk)
  if (refusal !== undefined || dryRun) {
    if (!dryRun) for (const port of desk.own) taken.delete(port)
    return refusal === undefined ? { taken: [], released: [] } : { taken: [], released: [], refusal }
  }
  const held = heldNodePorts(next)
  const released = old === undefined ? [] : [...heldNodePorts(old)].filter((port) => !held.has(port))
  return { taken: [...desk.own], released }
}

/** Takes ports for one request. */
interface Desk {
  /** Those of this request. */
  readonly own: Set<number>
  /** What is wrong with it, if it cannot be had. */
  take(port: number): string | undefined
  /** Nothing when all are taken. */
  takeAny(): number | undefined
}

function createDesk(taken: Set<number>, { range, random, dryRun }: PortRequest): Desk {
  const own = new Set<number>()
  const add = (port: number): void => {
    own.add(port)
    if (!dryRun) taken.add(port)
  }
  return {
    own,
    take(port) {
      // A dry run does not look at the range, as upstream's does not.
      if (!dryRun && (port < range.first || port > range.last)) {
        return `provided port is not in the valid range. The range of valid ports is ${range.first}-${range.last}`
      }
      if (taken.has(port) || own.has(port)) return 'provided port is already allocated'
      add(port)
      return undefined
    },
    takeAny() {
      // Beyond the usual range, so that nobody takes the answer of a dry run for a promise.
      const port = dryRun ? Math.max(DEFAULT_PORT_RANGE.last + 1, ...own) + 1 : freePort(taken, range, random)
      if (port !== undefined) add(port)
      return port
    },
  }
}

/** At random, from the upper band first: the lower is left to who asks for a certain port (KEP-3668). */
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

/** min(max(16, size / 32), 128); nothing for ranges that are too small to be split. */
export function staticBand(size: number): number {
  return size <= 16 ? 0 : Math.min(Math.max(16, Math.trunc(size / 32)), 128)
}

function wrongPort(at: number, port: number, complaint: string): PortRefusal {
  return { field: invalid(child(index('spec.ports', at), 'nodePort'), port, complaint) }
}

const NO_PORT: PortRefusal = { failure: 'failed to allocate a nodePort: range is full', internal: true }

/** Ports of the same number, of two protocols, share one. */
function takeNew(spec: ServiceSpec, desk: Desk): PortRefusal | undefined {
  const ports = spec.ports ?? []
  const byPort = new Map<number, number>()
  const askedByPort = firstByKey(
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
    // One that is asked for further down counts for this one, too.
    const asked = shared === undefined ? askedByPort.get(port.port) : port
    const refusal = takeOne(desk, port, asked?.nodePort ?? 0, at)
    if (refusal !== undefined) return refusal
    if (shared === undefined) byPort.set(port.port, port.nodePort ?? 0)
  }
  return undefined
}

/** Takes the wanted port, or any for 0, and writes it down. */
function takeOne(desk: Desk, port: { nodePort?: number }, wanted: number, at: number): PortRefusal | undefined {
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

/** What it had it keeps; the same port for two protocols is fine. */
function takeChanged(next: ServiceSpec, old: ServiceSpec, desk: Desk): PortRefusal | undefined {
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

function takeHealthPort(next: ServiceSpec, old: ServiceSpec | undefined, desk: Desk): PortRefusal | undefined {
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
