/**
 * One cluster, whole, in one process: API server, controllers, scheduler and nodes, which reach the server without a
 * connection and each as who it is outside. `up` and `hyperkube/testing` start this one, and differ in nothing but settings and
 * surroundings.
 */
import { ServiceAccounts } from '#apis/core/v1.ts'
import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { Network } from '#apiserver/connect/address-rule.ts'
import { systemNetwork } from '#apiserver/connect/backends.ts'
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import { until, UntilTimeout } from '#client/until.ts'
import { bracketed } from '#control-plane/addresses.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { startApiServer } from '#control-plane/start.ts'
import type { Controller } from '#controllers/controller.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import type { SimulatedNodes } from '#kubelet/simulated/start.ts'

import { chosenControllers, startInProcessControllers } from './controllers.ts'
import { unpackBox } from './in-the-box.ts'
import { localPathProvisioner } from './local-path.ts'
import type { NodesPlan, StartedNodes } from './nodes.ts'

export interface ClusterPlan {
  /** kube-apiserver's, by the names of its flags. Its gates are everybody's. */
  readonly server: Settings
  readonly manager: ControllerSettings
  /** As `--controllers` has them; empty: none, for those who bring their own. */
  readonly controllers: readonly string[]
  /** Where volumes of the default class are on a node. */
  readonly volumes: string
  /** False: for those who bring their own. */
  readonly hasScheduler: boolean
  readonly nodes: NodesPlan
}

export interface ClusterSurroundings extends Surroundings {
  /** What the scheduler's events are said to come from. */
  readonly host: string
  /** Told what has come up, and where or how much of it. */
  readonly onStep?: (part: string, what: string) => void
}

/** For whoever starts the cluster. */
const ADMIN: User = {
  name: 'kubernetes-admin',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

export interface RunningCluster {
  readonly running: RunningServer
  /** May do everything. */
  readonly client: ApiClient
  /** How many there are. */
  readonly controllers: number
  /** Undefined: none were asked for. */
  readonly nodes: SimulatedNodes | undefined
  /** Pods are placed on all nodes from then on. */
  readonly nodesReady: Promise<void>
}

/**
 * Returns when pods can be made. Everything that is opened is put on `closing`, which stops the cluster, last things first.
 * Throws ProgramError for what the user can act on.
 */
export async function runCluster(
  plan: ClusterPlan,
  around: ClusterSurroundings,
  closing: AsyncDisposableStack,
): Promise<RunningCluster> {
  const { onStep = () => undefined } = around
  const isEnabled = createGates(plan.server['feature-gates'])
  // Who brings their own controllers brings what goes with them.
  const hasBox = plan.controllers.length > 0
  let ports: readonly number[] = []
  const ours = hasBox ? await ownControllers(plan, () => ports) : []
  const controllers = [...chosenControllers(plan.controllers, { ...around, isEnabled }), ...ours]
  let started: StartedNodes | undefined
  const network = networkTo(around, () => started)
  const running = await startServer(plan, { ...around, network }, closing)
  ports = [running.port, KUBELET_PORT]
  await running.server.registry.writer.ensure(ClusterRoleBindings, KUBELET_ACCESS)
  const server = `https://${bracketed(running.host)}:${running.port}`
  if (hasBox) {
    const ca = await around.readFile(plan.server['client-ca-file'])
    const serviceCidr = plan.server['service-cluster-ip-range']
    await unpackBox(running, { clock: around.clock, server, ca, serviceCidr, controllers: ours })
  }
  onStep('API server', `${server}, objects in ${plan.server.datastore}`)
  startInProcessControllers(running, { ...around, controllers, settings: plan.manager, isEnabled }, closing)
  // Who brings their own does not load it.
  const scheduling = plan.hasScheduler ? import('./scheduler.ts') : undefined
  const client = new ApiClient({ transport: running.server.clientAs(ADMIN), clock: around.clock, userAgent: 'admin' })
  if (controllers.some(({ name }) => name === 'serviceaccount-controller')) await untilPodsMayBeMade(client, around)
  onStep('Controllers', controllers.length === 0 ? 'none' : `${controllers.length} in this process`)
  const scheduler = await scheduling
  scheduler?.startInProcessScheduler(running, { ...around, gates: plan.server['feature-gates'] }, closing)
  onStep('Scheduler', scheduler === undefined ? 'none' : 'in this process')
  // Who has none does not load them.
  const parts = hasNone(plan.nodes) ? undefined : await import('./nodes.ts')
  const serviceCidr = plan.server['service-cluster-ip-range']
  started = await parts?.startInProcessNodes(running, { ...around, ...plan.nodes, serviceCidr }, closing)
  const areJudged = controllers.some(({ name }) => name === 'node-lifecycle-controller')
  const nodesReady = areJudged ? parts?.untilReady(client, { ...around, ...plan.nodes }, closing) : undefined
  const nodes = started?.simulated
  return { running, client, controllers: controllers.length, nodes, nodesReady: nodesReady ?? Promise.resolve() }
}

/** Those that upstream's manager has not. `ports` are those of the nodes themselves. */
async function ownControllers(
  { volumes, nodes: { machine } }: ClusterPlan,
  ports: () => readonly number[],
): Promise<readonly Controller[]> {
  const provisioner = localPathProvisioner(volumes)
  if (machine === undefined) return [provisioner]
  // Who runs no containers does not load it.
  const { serviceBalancer } = await import('./service-balancer.ts')
  return [provisioner, serviceBalancer(ports)]
}

/** With containers also where their pods reach it. */
async function startServer(
  { server, nodes: { machine } }: ClusterPlan,
  around: ClusterSurroundings,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  if (machine === undefined) return startApiServer(server, around, closing)
  // Who runs no containers does not load what does.
  const { openMachineNetwork } = await import('./machine-network.ts')
  const { address } = await openMachineNetwork({ ...around, ...machine }, closing)
  return startApiServer({ ...server, 'advertise-address': address }, { ...around, alsoAt: [address] }, closing)
}

const hasNone = ({ simulated, machine }: NodesPlan): boolean => simulated === 0 && machine === undefined

/** How the server reaches the nodes of its own process. */
function networkTo({ network = systemNetwork }: ClusterSurroundings, nodes: () => StartedNodes | undefined): Network {
  return {
    ...network,
    kubeletAt: (host) => nodes()?.simulated?.kubeletAt(host),
    kubeletDoor: (address) => nodes()?.machine?.door(address),
  }
}

/** A pod needs the account of its namespace. It comes soon, and nobody who hears "ready" should find it missing. */
async function untilPodsMayBeMade(client: ApiClient, { random, log }: ClusterSurroundings): Promise<void> {
  const account = { client, kind: ServiceAccounts, namespace: 'default', name: 'default', random }
  try {
    await until({ ...account, timeoutMs: ACCOUNT_MS }, (found) => found !== undefined)
  } catch (error) {
    if (!(error instanceof UntilTimeout)) throw error
    log.error(error, 'The namespace "default" has no account yet; pods cannot be made in it')
  }
}

const KUBELET_PORT = 10_250

/** Much more than it takes; something is wrong with the controllers then, and the log says what. */
const ACCOUNT_MS = 5000

/** Kubelets ask the API server what a caller may do, even when it is the API server itself that calls. */
const KUBELET_ACCESS: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: 'hyperkube:apiserver-kubelet-client' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
}
