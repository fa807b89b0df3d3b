/**
 * What programs share that work on an API server from outside: how they reach it, the port they serve, and that of several
 * at most one leads while the others wait.
 */
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'

import { Leases } from '#apis/coordination/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import type { SendReview } from '#apiserver/credentials/review-webhook.ts'
import type { HealthCheck, HealthPath } from '#apiserver/diagnostics/health.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import type { Fence } from '#client/fence.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { keepLeaseCandidate, type LeaseCandidateOptions } from '#client/lease-candidate.ts'
import { bracketed } from '#control-plane/addresses.ts'
import { startComponentServer } from '#control-plane/component-server.ts'
import type { DelegationValues } from '#control-plane/flags/delegation-flags.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import type { LeaderElectionValues } from '#control-plane/flags/leader-election-flags.ts'
import type { MetricsValues } from '#control-plane/flags/metrics-flags.ts'
import type { ServingValues } from '#control-plane/flags/serving-flags.ts'
import { createServerMetrics, loadMetricSettings } from '#control-plane/metrics.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { uuid } from '#lib/random.ts'
import { tidyWhenQuiet } from '#lib/tidy-memory.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { KUBERNETES_VERSION, userAgent, versionInfo } from '#model/version.ts'

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
  // What a step leaves behind is little. Room for young objects, once taken for a burst of pods, is half of what the process has.
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

/** Throws ProgramError for what the user can act on. */
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
  const onError = (error: unknown): void => log.error(error, 'refreshing credentials')
  const connection = await openConnection(config, { clock, readFile, env, onError })
  closing.defer(() => connection.close())
  return connection
}

export interface Leading {
  readonly server: Server
  readonly signal: AbortSignal
  /** Who tells that somebody leads; default: the program. */
  readonly tellsAs?: string
  readonly releases: boolean
  /** Around what the work writes. */
  readonly fence: Fence
  readonly work: (signal: AbortSignal) => Promise<void>
}

/** Works, as leader where there may be several. Returns the exit code. */
export async function workAsLeader(component: Component, leading: Leading): Promise<number> {
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
async function leadAndWork(component: Component, leading: Leading): Promise<void> {
  const { settings, clock, random, log, metrics, name: program } = component
  const { server, signal, work, releases, fence, tellsAs = program } = leading
  const where = { namespace: settings['leader-elect-resource-namespace'], name: settings['leader-elect-resource-name'] }
  const lock = `${where.namespace}/${where.name}`
  const client = new ApiClient({ ...server, clock, userAgent: `${userAgent(program)}/leader-election` })
  const identity = `${hostname()}_${uuid(random)}`
  const status = metrics.registry
    .gauge({
      name: 'leader_election_master_status',
      help: "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
      labels: ['name'],
      stability: 'ALPHA',
    })
    .labels(where.name)
  status.set(0)
  const recorder = new EventRecorder({ client, source: { component: tellsAs } })
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

/** Keeps the LeaseCandidate of this program until the component closes. */
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
    onError: (error: unknown) => log.error(error, 'Ensuring lease failed', { candidate: where.name }),
  }
  const kept = keepLeaseCandidate(candidate, ended.signal)
  closing.defer(async () => {
    ended.abort()
    await kept
  })
}

/** Nothing is ever wrong with it: who cannot go on ends. */
export function healthy(name: string, on: readonly HealthPath[] = ['healthz', 'livez', 'readyz']): HealthCheck {
  return { name, on, check: () => undefined }
}

export interface ComponentPort {
  readonly flags: FlagGroups
  readonly checks: () => readonly HealthCheck[]
  readonly configz?: object
}

/** Health, metrics and more, until the component closes. */
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

const MAX_REVIEW_BYTES = 1 << 20

/** Asks the API server for a review. */
export function reviewing(client: ApiClient, group: string, resource: string): SendReview {
  return async (body) => {
    const answer = await client.ask({ method: 'POST', path: `/apis/${group}.k8s.io/v1/${resource}`, body })
    return (JSON.parse(await answer.text(MAX_REVIEW_BYTES)) as { status: Readonly<Record<string, unknown>> }).status
  }
}

/** What the API server says of those who sign for clients, where no flag does. */
async function lookUpAuthorities({ settings, log }: Component, client: ApiClient): Promise<string | undefined> {
  if (settings['authentication-skip-lookup'] || settings['client-ca-file'] !== '') return undefined
  try {
    const where = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
    return (await client.get(ConfigMaps, where)).data?.['client-ca-file']
  } catch (cause) {
    const text = `unable to load configmap based client-ca-file: ${(cause as Error).message}`
    if (!settings['authentication-tolerate-lookup-failure']) throw new ProgramError(text, { cause })
    log.error(cause, 'Unable to load the authorities of clients; tokens are all that counts')
    return undefined
  }
}
