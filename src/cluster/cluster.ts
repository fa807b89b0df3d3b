/**
 * A whole cluster in one process: API server, controllers, scheduler and nodes. They call the server without a
 * connection, each with its own identity. `up` and `hyperkube/testing` start it with different settings.
 */
import { ServiceAccounts } from '#apis/core/v1.ts'
import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { Network } from '#apiserver/connect/address-rule.ts'
import { systemNetwork } from '#apiserver/connect/backends.ts'
import type { User } from '#auth/user.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { until, UntilTimeout } from '#client/until.ts'
import { bracketed } from '#component/bound-port.ts'
import { createGates } from '#component/flags/gates.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { startApiServer } from '#control-plane/start.ts'
import type { Controller } from '#controllers/controller.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import type { SimulatedNodes } from '#simulated-node/start.ts'

import { chosenControllers, runInProcessControllers, startInProcessControllers } from './controllers.ts'
import { installAddons } from './default-addons.ts'
import { localPathProvisioner } from './local-path.ts'
import type { NodesPlan, StartedNodes } from './nodes.ts'

export interface ClusterPlan {
  /** kube-apiserver's settings by flag name. Its feature gates apply to all components. */
  readonly server: Settings
  readonly manager: ControllerSettings
  /** As `--controllers`; empty: none, for users with their own controllers. */
  readonly controllers: readonly string[]
  /** Controllers do not start: the caller runs them by `RunningCluster.runControllers`, for example as leader only. */
  readonly hasIdleControllers?: boolean
  /** The directory of default volumes on a node. */
  readonly volumes: string
  /** False for users with their own scheduler. */
  readonly hasScheduler: boolean
  readonly nodes: NodesPlan
}

export interface ClusterSurroundings extends EnvironmentOptions {
  /** The suffix of the scheduler's event source. */
  readonly host: string
  /** Called when a part has started, with its address or count. */
  readonly onStep?: (part: string, what: string) => void
}

/** The identity of the caller, and of the administrator's certificate. */
export const ADMIN: User = {
  name: 'kubernetes-admin',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

export interface RunningCluster {
  readonly running: RunningServer
  /** Has all permissions. */
  readonly client: ApiClient
  /** The number of controllers. */
  readonly controllers: number
  /** Runs the controllers of a plan with `hasIdleControllers` until the signal is aborted; `around` sees their requests. */
  runControllers(signal: AbortSignal, around: (transport: Transport) => Transport): Promise<void>
  /** Undefined: none were requested. */
  readonly nodes: SimulatedNodes | undefined
  /** Resolves when pods can be scheduled to all nodes. */
  readonly nodesReady: Promise<void>
}

/**
 * Resolves when pods can be created. Everything is put on `closing`, which stops the cluster in reverse order. Throws
 * ProgramError for user errors.
 */
export async function runCluster(
  plan: ClusterPlan,
  around: ClusterSurroundings,
  closing: AsyncDisposableStack,
): Promise<RunningCluster> {
  const { onStep = () => undefined } = around
  const isEnabled = createGates(plan.server['feature-gates'])
  // Users with their own controllers also bring their addons.
  const hasAddons = plan.controllers.length > 0
  let ports: readonly number[] = []
  const ours = hasAddons ? await ownControllers(plan, () => ports) : []
  const controllers = [...chosenControllers(plan.controllers, { ...around, isEnabled }), ...ours]
  let started: StartedNodes | undefined
  const network = networkTo(around, () => started)
  const running = await startServer(plan, { ...around, network }, closing)
  ports = [running.port, KUBELET_PORT]
  await running.server.registry.writer.ensure(ClusterRoleBindings, KUBELET_ACCESS)
  const server = `https://${bracketed(running.host)}:${running.port}`
  if (hasAddons) {
    const ca = await around.readFile(plan.server['client-ca-file'])
    const serviceCidr = plan.server['service-cluster-ip-range']
    await installAddons(running, { clock: around.clock, server, ca, serviceCidr, controllers: ours })
  }
  onStep('API server', `${server}, objects in ${plan.server.datastore}`)
  const controlling = { ...around, controllers, settings: plan.manager, isEnabled }
  const isIdle = plan.hasIdleControllers === true
  if (!isIdle) startInProcessControllers(running, controlling, closing)
  // Loaded only if needed.
  const scheduling = plan.hasScheduler ? import('./scheduler.ts') : undefined
  const client = new ApiClient({ transport: running.server.clientAs(ADMIN), clock: around.clock, userAgent: 'admin' })
  await waitForDefaultAccount(client, around, isIdle ? [] : controllers)
  onStep('Controllers', controllers.length === 0 ? 'none' : `${controllers.length} in this process`)
  const scheduler = await scheduling
  scheduler?.startInProcessScheduler(running, { ...around, gates: plan.server['feature-gates'] }, closing)
  onStep('Scheduler', scheduler === undefined ? 'none' : 'in this process')
  // Loaded only if needed.
  const parts = hasNone(plan.nodes) ? undefined : await import('./nodes.ts')
  const serviceCidr = plan.server['service-cluster-ip-range']
  started = await parts?.startInProcessNodes(running, { ...around, ...plan.nodes, serviceCidr }, closing)
  const hasNodeLifecycle = has(controllers, 'node-lifecycle-controller')
  const nodesReady = hasNodeLifecycle ? parts?.untilReady(client, { ...around, ...plan.nodes }, closing) : undefined
  return {
    running,
    client,
    controllers: controllers.length,
    runControllers: (signal, wrap) => runInProcessControllers(running, { ...controlling, around: wrap }, signal),
    nodes: started?.simulated,
    nodesReady: Promise.resolve(nodesReady),
  }
}

function has(controllers: readonly Controller[], wanted: string): boolean {
  return controllers.some(({ name }) => name === wanted)
}

/** Controllers that upstream's manager does not have. `ports` are those of the nodes. */
async function ownControllers(
  { volumes, nodes }: ClusterPlan,
  ports: () => readonly number[],
): Promise<readonly Controller[]> {
  const provisioner = localPathProvisioner(volumes)
  if (hasNone(nodes)) return [provisioner]
  // Loaded only if needed.
  const { serviceBalancer, simulatedServiceBalancer } = await import('./service-balancer.ts')
  return [provisioner, nodes.machine === undefined ? simulatedServiceBalancer() : serviceBalancer(ports)]
}

/** With containers, also listens where pods reach it. */
async function startServer(
  { server, nodes: { machine } }: ClusterPlan,
  around: ClusterSurroundings,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  if (machine === undefined) return startApiServer(server, around, closing)
  // Loaded only with containers.
  const { openMachineNetwork } = await import('./machine/machine-network.ts')
  const { address } = await openMachineNetwork({ ...around, ...machine }, closing)
  return startApiServer({ ...server, 'advertise-address': address }, { ...around, extraAddresses: [address] }, closing)
}

const hasNone = ({ simulated, machine }: NodesPlan): boolean => simulated === 0 && machine === undefined

/** How the server reaches nodes in this process. */
function networkTo({ network = systemNetwork }: ClusterSurroundings, nodes: () => StartedNodes | undefined): Network {
  return {
    ...network,
    kubeletAt: (host) => nodes()?.simulated?.kubeletAt(host),
    kubeletAddress: (address) => nodes()?.machine?.kubeletAddress(address),
  }
}

/** Pods need the default service account: waits for it, so that a ready cluster accepts pods. */
async function waitForDefaultAccount(
  client: ApiClient,
  { random, log }: ClusterSurroundings,
  controllers: readonly Controller[],
): Promise<void> {
  if (!has(controllers, 'serviceaccount-controller')) return
  const account = { client, kind: ServiceAccounts, namespace: 'default', name: 'default', random }
  try {
    await until({ ...account, timeoutMs: ACCOUNT_MS }, (found) => found !== undefined)
  } catch (error) {
    if (!(error instanceof UntilTimeout)) throw error
    log.error(error, 'Failed to wait for the default service account; pods cannot be created yet')
  }
}

const KUBELET_PORT = 10_250

/** Much longer than usual; after that the controllers have a problem, which the log contains. */
const ACCOUNT_MS = 5000

/** Kubelets authorize callers with the API server, even the API server itself. */
const KUBELET_ACCESS: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: 'hyperkube:apiserver-kubelet-client' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
}
