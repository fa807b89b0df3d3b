/** The inputs of the planning functions of `hyperkube build`, and queries that several of them share. Pure. */
import type { DesiredCluster, DesiredHost, DesiredService, Plane } from '../desired.ts'
import { serviceDigest } from '../service-digest.ts'
import { type Manifest, NO_MANIFEST, type Observed, type ObservedHost } from './observed.ts'
import type { Step, Track, Wave } from './step.ts'

export interface PlanOptions {
  readonly checksPorts: boolean
  /** Leaves etcd and the control plane alone (`--update-only`). */
  readonly workersOnly: boolean
  /** Services restart without drains, regardless of `upgrade_strategy`: for new certificates. */
  readonly keepsPods?: boolean
}

export interface PlanContext {
  readonly desired: DesiredCluster
  readonly observed: Observed
  readonly options: PlanOptions
  /** True if a cluster exists: then changes are rolled out. */
  readonly isRunning: boolean
}

export function wave(name: string, width: number, tracks: readonly Track[], tolerates = 0): Wave {
  return { name, width, tolerates, tracks: tracks.filter((track) => track.length > 0) }
}

export function seenOf(observed: Observed, name: string): Extract<ObservedHost, { state: 'seen' }>['seen'] {
  const found = observed.hosts.get(name)
  return found?.state === 'seen' ? found.seen : { files: {}, services: {} }
}

export function manifestOf(observed: Observed, name: string): Manifest {
  const found = observed.hosts.get(name)
  return found?.state === 'seen' ? found.manifest : NO_MANIFEST
}

export function hostsOf({ hosts }: Pick<DesiredCluster, 'hosts'>, role: Plane): DesiredHost[] {
  return hosts.filter(({ roles }) => roles.includes(role))
}

export function isServed(
  { spec }: DesiredService,
  { services }: { services: Record<string, unknown> | object },
): boolean {
  const found = (services as Record<string, { digest: string; isRunning: boolean } | undefined>)[spec.name]
  return found !== undefined && found.isRunning && found.digest === serviceDigest(spec)
}

export function changed({ observed }: PlanContext, host: DesiredHost, plane: Plane): DesiredService[] {
  const seen = seenOf(observed, host.name)
  return host.services.filter((service) => service.plane === plane && !isServed(service, seen))
}

export function serveSteps(host: DesiredHost, services: readonly DesiredService[], waits = true): Step[] {
  return services.map(({ spec, health }) => ({
    host: host.name,
    describe: `start ${spec.name}`,
    action: { type: 'serve', service: spec, ...(waits && health !== undefined && { health }) },
  }))
}

/** Recorded services that are no longer desired. */
export function unwantedServices({ observed }: PlanContext, host: DesiredHost): string[] {
  const wanted = new Set(host.services.map(({ spec }) => spec.name))
  return manifestOf(observed, host.name).services.filter((name) => !wanted.has(name))
}

export function retireSteps({ name: host, ending }: DesiredHost, name: string): Step[] {
  const command = ending[name]
  const undo: Step[] =
    command === undefined
      ? []
      : [{ host, describe: `clean up after ${name}`, action: { type: 'run', ask: { command, timeoutMs: UNDO_MS } } }]
  return [{ host, describe: `remove service ${name}`, action: { type: 'retire', name } }, ...undo]
}

const UNDO_MS = 120_000

/**
 * Services of a removed role may occupy ports of the new role, so they stop just before the new ones start. etcd stops
 * last, after its member has left.
 */
export function clearingSteps(planning: PlanContext, host: DesiredHost): Step[] {
  const { services } = seenOf(planning.observed, host.name)
  return unwantedServices(planning, host)
    .filter((name) => name !== planning.desired.etcd.service && services[name] !== undefined)
    .flatMap((name) => retireSteps(host, name))
}

/** The plane whose wave removes old services: the first that starts services on the host. */
export function clearsWith(planning: PlanContext, host: DesiredHost): Plane | undefined {
  const startsControlPlane = !planning.options.workersOnly && changed(planning, host, 'controlplane').length > 0
  if (startsControlPlane) return 'controlplane'
  return changed(planning, host, 'worker').length > 0 ? 'worker' : undefined
}
