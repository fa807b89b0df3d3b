/** The shared part of programs that use an API server: the connection, the HTTPS port and leader election. */
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'

import { Leases } from '#apis/coordination/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import type { Fence } from '#client/fence.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { keepLeaseCandidate, type LeaseCandidateOptions } from '#client/lease-candidate.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { uuid } from '#lib/random.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { KUBERNETES_VERSION, userAgent, versionInfo } from '#model/version.ts'

import { bracketed } from './bound-port.ts'
import { startComponentServer } from './component-server.ts'
import type { DelegationValues } from './flags/delegation-flags.ts'
import { createGates } from './flags/gates.ts'
import type { LeaderElectionValues } from './flags/leader-election-flags.ts'
import type { MetricsValues } from './flags/metrics-flags.ts'
import type { ServingValues } from './flags/serving-flags.ts'
import { createServerMetrics, loadMetricSettings } from './metrics.ts'
import type { HealthCheck, HealthPath } from './pages/health.ts'
import { reviewing } from './reviews.ts'

export interface ComponentSettings extends ServingValues, DelegationValues, MetricsValues, LeaderElectionValues {
  readonly 'feature-gates': FeatureGates
  readonly profiling: boolean
}

export interface Component extends Invocation<FlagGroups> {
  /** `kube-scheduler`. */
  readonly name: string
  readonly settings: ComponentSettings
  readonly isEnabled: (gate: string) => boolean
  readonly metrics: ServerMeters
  readonly closing: AsyncDisposableStack
}

/** Throws ProgramError. */
export async function openComponent<T extends Pick<Component, 'name' | 'settings' | 'closing'>>(
  invocation: Invocation<FlagGroups>,
  own: T,
): Promise<Component & T> {
  // A sync leaves little garbage, so the young generation stays small; after a burst of pods it would be half of the
  // heap.
  setFlagsFromString('--semi-space-growth-factor=1')
  const { clock, readFile } = invocation
  const isEnabled = createGates(own.settings['feature-gates'])
  const settings = await loadMetricSettings(own.settings, readFile)
  const version = versionInfo(invocation.version)
  own.closing.use(tidyWhenQuiet(clock))
  const { meters: metrics } = own.closing.use(createServerMetrics({ clock, version, isEnabled, settings }))
  return { ...invocation, ...own, isEnabled, metrics }
}

export type Server = Pick<ApiClientOptions, 'transport' | 'server'>

/** Throws ProgramError for problems that the user can fix. */
export async function connect(
  component: Component,
  where: { readonly kubeconfig: string; readonly master: string },
): Promise<{ readonly config: ClientConfig; readonly server: Server }> {
  const { env, cwd, readFile, log } = component
  try {
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    return { config, server: await open(component, config) }
  } catch (cause) {
    if (cause instanceof ConfigError) throw new ProgramError(cause.message, { cause })
    throw cause
  }
}

export async function open({ env, readFile, clock, log, closing }: Component, config: ClientConfig): Promise<Server> {
  const onError = (error: unknown): void => log.error(error, 'Failed to refresh client credentials')
  const connection = await openConnection(config, { clock, readFile, env, onError })
  closing.defer(() => connection.close())
  return connection
}

export interface LeadershipOptions {
  readonly server: Server
  readonly signal: AbortSignal
  /** The reporter of leadership events; by default the program. */
  readonly reportsAs?: string
  readonly releases: boolean
  /** Wraps the writes of the program. */
  readonly fence: Fence
  readonly work: (signal: AbortSignal) => Promise<void>
}

/** Runs the program, as leader if leader election is enabled. Returns the exit code. */
export async function workAsLeader(component: Component, leading: LeadershipOptions): Promise<number> {
  try {
    await (component.settings['leader-elect'] ? leadAndWork(component, leading) : leading.work(leading.signal))
    return 0
  } catch (error) {
    if (!(error instanceof LeadershipLost)) throw error
    component.log.error(error, 'leaderelection lost')
    return 1
  }
}

/** Rejects with LeadershipLost. */
async function leadAndWork(component: Component, leading: LeadershipOptions): Promise<void> {
  const { settings, clock, random, log, metrics, name: program } = component
  const { server, signal, work, releases, fence, reportsAs = program } = leading
  const where = { namespace: settings['leader-elect-resource-namespace'], name: settings['leader-elect-resource-name'] }
  const lock = `${where.namespace}/${where.name}`
  const client = new ApiClient({ ...server, clock, userAgent: `${userAgent(program)}/leader-election` })
  const identity = `${hostname()}_${uuid(random)}`
  const status = metrics.registry
    .gauge({
      name: 'leader_election_master_status',
      help: 'Whether this process leads, by the name of the Lease: 1 for the leader, 0 for others.',
      labels: ['name'],
      stability: 'ALPHA',
    })
    .labels(where.name)
  status.set(0)
  const recorder = new EventRecorder({ client, source: { component: reportsAs } })
  log.info('Attempting to acquire leader lease...', { lock })
  const coordinated = component.isEnabled('CoordinatedLeaderElection')
  const options = {
    ...where,
    client,
    random,
    identity,
    leaseDurationMs: settings['leader-elect-lease-duration'],
    renewDeadlineMs: settings['leader-elect-renew-deadline'],
    retryPeriodMs: settings['leader-elect-retry-period'],
    releases,
    coordinated,
    onLeader: (leader: string) => leader !== identity && log.info('New leader elected', { identity: leader }),
    onError: (error: unknown) => log.error(error, 'Error retrieving lease lock', { lock }),
  }
  if (coordinated) standAsCandidate(component, { ...options, leaseName: where.name, name: identity })
  await lead(options, signal, async (working, leads) => {
    fence.guard(leads)
    status.set(1)
    log.info('Successfully acquired lease', { lock })
    const lease = await client.get(Leases, where).catch(() => undefined)
    if (lease !== undefined) {
      const message = `${identity} became leader`
      recorder.record(
        { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', ...lease },
        { type: 'Normal', reason: 'LeaderElection', message },
      )
    }
    await work(working)
  }).finally(() => status.set(0))
}

/** Maintains the LeaseCandidate of this program until the component closes. */
function standAsCandidate(
  { log, closing }: Component,
  where: Pick<LeaseCandidateOptions, 'client' | 'random' | 'namespace' | 'name' | 'leaseName'>,
): void {
  const ended = new AbortController()
  const { emulationMajor, emulationMinor } = versionInfo()
  const candidate = {
    ...where,
    binaryVersion: KUBERNETES_VERSION.slice(1),
    emulationVersion: `${emulationMajor}.${emulationMinor}.0`,
    onError: (error: unknown) =>
      log.error(error, 'Failed to create or renew lease candidate', { candidate: where.name }),
  }
  const kept = keepLeaseCandidate(candidate, ended.signal)
  closing.defer(async () => {
    ended.abort()
    await kept
  })
}

/** Always healthy: a program that cannot continue exits. */
export function healthy(name: string, on: readonly HealthPath[] = ['healthz', 'livez', 'readyz']): HealthCheck {
  return { name, on, check: () => undefined }
}

export interface ComponentPort {
  readonly flags: FlagGroups
  readonly checks: () => readonly HealthCheck[]
  readonly configz?: object
}

/** Serves health, metrics and debugging pages until the component closes. */
export async function serve(component: Component, { flags, checks, configz }: ComponentPort): Promise<void> {
  const { settings, clock, version, name, log } = component
  const delegate = async (kubeconfig: string): Promise<ApiClient | undefined> => {
    if (kubeconfig === '') return undefined
    const { server } = await connect(component, { kubeconfig, master: '' })
    return new ApiClient({ ...server, clock, userAgent: userAgent(name) })
  }
  const authentication = await delegate(settings['authentication-kubeconfig'])
  const authorization = await delegate(settings['authorization-kubeconfig'])
  const authorities = authentication && (await lookUpAuthorities(component, authentication))
  const all = Object.values(flags).flatMap((group) => Object.entries(group))
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const port = await startComponentServer({
    ...component,
    version,
    flags: new Map(all.map(([flag, { kind, initial }]) => [flag, kind.print(values[flag] ?? initial)] as const)),
    checks,
    ...(configz !== undefined && { configz }),
    ...(authorities !== undefined && { clientAuthorities: authorities }),
    ...(authentication !== undefined && { tokenReviews: reviewing(authentication, 'authentication', 'tokenreviews') }),
    ...(authorization !== undefined && {
      accessReviews: reviewing(authorization, 'authorization', 'subjectaccessreviews'),
    }),
  })
  if (port !== undefined) log.info(`Serving securely on ${bracketed(port.host)}:${port.port}`)
}

/** The certificate authorities of clients from the API server, if no flag sets them. */
async function lookUpAuthorities({ settings, log }: Component, client: ApiClient): Promise<string | undefined> {
  if (settings['authentication-skip-lookup'] || settings['client-ca-file'] !== '') return undefined
  try {
    const where = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
    return (await client.get(ConfigMaps, where)).data?.['client-ca-file']
  } catch (cause) {
    const text = `unable to load configmap based client-ca-file: ${(cause as Error).message}`
    if (!settings['authentication-tolerate-lookup-failure']) throw new ProgramError(text, { cause })
    log.error(cause, 'Unable to load the client certificate authorities; only tokens are accepted')
    return undefined
  }
}
