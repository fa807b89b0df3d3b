/**
 * `kube-controller-manager`: the control loops of a cluster as a program of its own, with upstream's flags. Of several at most
 * one leads; the others wait, and serve their port meanwhile.
 */
import { hostname } from 'node:os'

import { Leases } from '#apis/coordination/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import type { SendReview } from '#apiserver/credentials/review-webhook.ts'
import type { HealthCheck } from '#apiserver/diagnostics/health.ts'
import { createAccountTokens } from '#client/account-tokens.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { registerClientMetrics } from '#client/client-metrics.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import { type ClientConfig, ConfigError } from '#client/kubeconfig-reading.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { bracketed } from '#control-plane/addresses.ts'
import { startComponentServer } from '#control-plane/component-server.ts'
import { createGates, gateErrors } from '#control-plane/flags/gates.ts'
import { metricsErrors } from '#control-plane/flags/metrics-flags.ts'
import { servingErrors } from '#control-plane/flags/plan.ts'
import { createServerMetrics, loadMetricSettings } from '#control-plane/metrics.ts'
import type { Controller } from '#controllers/controller.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { runControllers } from '#controllers/manager.ts'
import { chooseControllers } from '#controllers/selection.ts'
import { controllerSettingErrors } from '#controllers/settings.ts'
import { sleep } from '#lib/clock.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { uuid } from '#lib/random.ts'
import { registerWorkQueueMetrics } from '#lib/work-queue-metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { kubernetesVersion, userAgent, versionInfo } from '#model/version.ts'

import { managerConfigz } from './controller-manager-configz.ts'
import { MANAGER_FLAGS, type ManagerSettings } from './controller-manager-flags.ts'

const NAME = 'kube-controller-manager'
/** Whose accounts the controllers have. */
const NAMESPACE = 'kube-system'

export const controllerManager: Program = defineProgram({
  name: NAME,
  aliases: ['controller-manager'],
  long:
    'The Kubernetes controller manager watches the objects of a cluster through its API server and works on what is until ' +
    'it is what they ask for: a ReplicaSet gets its pods, a namespace that is deleted is emptied.',
  version: kubernetesVersion(),
  flags: MANAGER_FLAGS,
  run: runManager,
})

type Manager = Invocation<typeof MANAGER_FLAGS> & {
  readonly settings: ManagerSettings
  readonly controllers: readonly Controller[]
  readonly isEnabled: (gate: string) => boolean
  readonly metrics: ServerMeters
  readonly closing: AsyncDisposableStack
}

async function runManager(invocation: Invocation<typeof MANAGER_FLAGS>, signal: AbortSignal): Promise<number> {
  // Every setting is in the table of flags, with its type.
  const settings = invocation.flags as unknown as ManagerSettings
  const controllers = checkSettings(settings, invocation)
  await using closing = new AsyncDisposableStack()
  const isEnabled = createGates(settings['feature-gates'])
  const { clock, readFile, log } = invocation
  const shown = await loadMetricSettings(settings, readFile)
  const version = versionInfo(invocation.version)
  const { meters: metrics } = closing.use(createServerMetrics({ clock, version, isEnabled, settings: shown }))
  const manager: Manager = { ...invocation, settings, controllers, isEnabled, metrics, closing }
  const meter = registerClientMetrics(metrics.registry, clock)
  const { config, server } = await connect(manager, settings)
  const root: Server = { ...server, transport: meter(server.transport) }
  // Without a certificate: one would count before any token.
  const nobody = await open(manager, { ...config, user: {} })
  const running: HealthCheck[] = []
  const port = await serve(manager, () => [LEADER_CHECK, ...running])
  if (port !== undefined) log.info(`Serving securely on ${bracketed(port.host)}:${port.port}`)
  const reached = { root, nobody: { ...nobody, transport: meter(nobody.transport) }, serverBundle: bundleIn(config) }
  const work = createWork(manager, reached, running)
  try {
    await (settings['leader-elect'] ? leadAndWork(manager, root, { signal, work }) : work(signal))
    return 0
  } catch (error) {
    if (!(error instanceof LeadershipLost)) throw error
    log.error(error, 'leaderelection lost')
    return 1
  }
}

/** Returns the controllers that are to run. Throws ProgramError with everything that is wrong. */
function checkSettings(
  settings: ManagerSettings,
  { changed, log }: Invocation<typeof MANAGER_FLAGS>,
): readonly Controller[] {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(MANAGER_FLAGS, values, changed)
  const { controllers, errors: unknown, missing } = chooseControllers(CONTROLLERS, settings.controllers)
  const errors = [
    ...support.errors,
    ...servingErrors(settings),
    ...metricsErrors(settings),
    ...gateErrors(settings['feature-gates']),
    ...leaderErrors(settings),
    ...controllerSettingErrors(settings),
    ...unknown,
  ]
  if (errors.length > 0) throw new ProgramError(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  for (const note of support.notes) log.info(note)
  for (const name of missing) log.info('The controller is not there', { controller: name })
  return controllers
}

function leaderErrors(settings: ManagerSettings): string[] {
  if (!settings['leader-elect']) return []
  const [lease, renew] = [settings['leader-elect-lease-duration'], settings['leader-elect-renew-deadline']]
  if (lease <= renew) return ['leaseDuration must be greater than renewDeadline']
  const isLong = renew <= settings['leader-elect-retry-period'] * 1.2
  return isLong ? ['renewDeadline must be greater than retryPeriod*JitterFactor'] : []
}

/** Throws ProgramError for what the user can act on. */
async function connect(
  manager: Manager,
  where: { readonly kubeconfig: string; readonly master: string },
): Promise<{ readonly config: ClientConfig; readonly server: Server }> {
  const { env, cwd, readFile, log } = manager
  try {
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    return { config, server: await open(manager, config) }
  } catch (cause) {
    if (cause instanceof ConfigError) throw new ProgramError(cause.message, { cause })
    throw cause
  }
}

async function open({ env, readFile, clock, log, closing }: Manager, config: ClientConfig): Promise<Server> {
  const onError = (error: unknown): void => log.error(error, 'refreshing credentials')
  const connection = await openConnection(config, { clock, readFile, env, onError })
  closing.defer(() => connection.close())
  return connection
}

type Server = Pick<ApiClientOptions, 'transport' | 'server'>

interface Reached {
  readonly root: Server
  readonly nobody: Server
  /** PEM of what it is verified with. */
  readonly serverBundle: string
}

/** As upstream: only what the kubeconfig holds itself. */
function bundleIn({ cluster }: ClientConfig): string {
  return Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString()
}

/** What a leader does: the controllers, each with its own credentials where that is asked for. */
function createWork(
  manager: Manager,
  { root: server, nobody, serverBundle }: Reached,
  running: HealthCheck[],
): (signal: AbortSignal) => Promise<void> {
  const { settings, controllers, clock, random, log, readFile, metrics, isEnabled } = manager
  const limits = { qps: settings['kube-api-qps'], burst: settings['kube-api-burst'] }
  const root = new ApiClient({ ...server, clock, userAgent: userAgent(NAME), limits })
  const tokenOf = createAccountTokens(root, NAMESPACE)
  const own = controllers.filter(({ actsAsManager }) => actsAsManager !== true)
  const accounts = new Set(own.map(({ account, name }) => account ?? name))
  const queueMetrics = registerWorkQueueMetrics(metrics.registry)
  const options = {
    controllers,
    clock,
    random,
    log,
    settings,
    readFile,
    queueMetrics,
    isEnabled,
    serverBundle,
    userAgent: userAgent(NAME),
    connect: (name: string) =>
      settings['use-service-account-credentials'] && accounts.has(name)
        ? { ...nobody, bearerToken: tokenOf(name), limits }
        : { ...server, limits },
  }
  return async (signal) => {
    running.push(...controllers.map(({ name }) => healthy(name)))
    const done = runControllers(options, signal).catch((cause: unknown) => {
      log.error(cause, 'Error building controllers')
      throw new ProgramError((cause as Error).message, { cause })
    })
    await Promise.race([done, aborted(signal).then(() => sleep(clock, settings['controller-shutdown-timeout']))])
    running.length = 0
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done(), { once: true })
  })
}

interface Leading {
  readonly signal: AbortSignal
  readonly work: (signal: AbortSignal) => Promise<void>
}

/** Rejects with LeadershipLost. */
async function leadAndWork(manager: Manager, server: Server, { signal, work }: Leading): Promise<void> {
  const { settings, clock, random, log, metrics, isEnabled } = manager
  const where = {
    namespace: settings['leader-elect-resource-namespace'],
    name: settings['leader-elect-resource-name'],
  }
  const client = new ApiClient({ ...server, clock, userAgent: `${userAgent(NAME)}/leader-election` })
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
  const recorder = new EventRecorder({ client, source: { component: NAME } })
  log.info('Attempting to acquire leader lease...', { lock: `${where.namespace}/${where.name}` })
  const options = {
    ...where,
    client,
    random,
    identity,
    leaseDurationMs: settings['leader-elect-lease-duration'],
    renewDeadlineMs: settings['leader-elect-renew-deadline'],
    retryPeriodMs: settings['leader-elect-retry-period'],
    releases: isEnabled('ControllerManagerReleaseLeaderElectionLockOnExit'),
    onLeader: (leader: string) => leader !== identity && log.info('New leader elected', { identity: leader }),
    onError: (error: unknown) =>
      log.error(error, 'Error retrieving lease lock', { lock: `${where.namespace}/${where.name}` }),
  }
  await lead(options, signal, async (leading) => {
    status.set(1)
    log.info('Successfully acquired lease', { lock: `${where.namespace}/${where.name}` })
    const lease = await client.get(Leases, where).catch(() => undefined)
    if (lease !== undefined) {
      const message = `${identity} became leader`
      recorder.record(
        { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', ...lease },
        { type: 'Normal', reason: 'LeaderElection', message },
      )
    }
    await work(leading)
  }).finally(() => status.set(0))
}

/** Who cannot lead any more ends: there is nothing else to be told. */
const LEADER_CHECK = healthy('leaderElection')

function healthy(name: string): HealthCheck {
  return { name, on: ['healthz', 'livez', 'readyz'], check: () => undefined }
}

async function serve(manager: Manager, checks: () => readonly HealthCheck[]): ReturnType<typeof startComponentServer> {
  const { settings, clock, version } = manager
  const delegate = async (kubeconfig: string): Promise<ApiClient | undefined> => {
    if (kubeconfig === '') return undefined
    const { server } = await connect(manager, { kubeconfig, master: '' })
    return new ApiClient({ ...server, clock, userAgent: userAgent(NAME) })
  }
  const authentication = await delegate(settings['authentication-kubeconfig'])
  const authorization = await delegate(settings['authorization-kubeconfig'])
  const authorities = authentication && (await lookUpAuthorities(manager, authentication))
  const all = Object.values(MANAGER_FLAGS).flatMap((group) => Object.entries(group))
  const values = settings as unknown as Readonly<Record<string, unknown>>
  return startComponentServer({
    ...manager,
    name: NAME,
    version,
    flags: new Map(all.map(([name, { kind, initial }]) => [name, kind.print(values[name] ?? initial)] as const)),
    checks,
    configz: managerConfigz(MANAGER_FLAGS, values),
    ...(authorities !== undefined && { clientAuthorities: authorities }),
    ...(authentication !== undefined && { tokenReviews: reviewing(authentication, 'authentication', 'tokenreviews') }),
    ...(authorization !== undefined && {
      accessReviews: reviewing(authorization, 'authorization', 'subjectaccessreviews'),
    }),
  })
}

const MAX_REVIEW_BYTES = 1 << 20

function reviewing(client: ApiClient, group: string, resource: string): SendReview {
  return async (body) => {
    const answer = await client.ask({ method: 'POST', path: `/apis/${group}.k8s.io/v1/${resource}`, body })
    return (JSON.parse(await answer.text(MAX_REVIEW_BYTES)) as { status: Readonly<Record<string, unknown>> }).status
  }
}

/** What the API server says of those who sign for clients, where no flag does. */
async function lookUpAuthorities({ settings, log }: Manager, client: ApiClient): Promise<string | undefined> {
  if (settings['authentication-skip-lookup'] || settings['client-ca-file'] !== '') return undefined
  try {
    const where = { namespace: NAMESPACE, name: 'extension-apiserver-authentication' }
    return (await client.get(ConfigMaps, where)).data?.['client-ca-file']
  } catch (cause) {
    const text = `unable to load configmap based client-ca-file: ${(cause as Error).message}`
    if (!settings['authentication-tolerate-lookup-failure']) throw new ProgramError(text, { cause })
    log.error(cause, 'Unable to load the authorities of clients; tokens are all that counts')
    return undefined
  }
}
