/**
 * One cluster, whole, in one process: API server, controllers and scheduler, which reach the server without a connection
 * and each as who it is outside. `up` and `hyperkube/testing` start this one, and differ in nothing but settings and
 * surroundings.
 */
import { ServiceAccounts } from '#apis/core/v1.ts'
import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import { until, UntilTimeout } from '#client/until.ts'
import { bracketed } from '#control-plane/addresses.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { startApiServer } from '#control-plane/start.ts'
import type { ControllerSettings } from '#controllers/settings.ts'

import { chosenControllers, startInProcessControllers } from './controllers.ts'
import { unpackBox } from './in-the-box.ts'
import { localPathProvisioner } from './local-path.ts'

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
  const ours = plan.controllers.length === 0 ? [] : [localPathProvisioner(plan.volumes)]
  const controllers = [...chosenControllers(plan.controllers, { ...around, isEnabled }), ...ours]
  const running = await startApiServer(plan.server, around, closing)
  await running.server.registry.writer.ensure(ClusterRoleBindings, KUBELET_ACCESS)
  const server = `https://${bracketed(running.host)}:${running.port}`
  await unpackBox(running, {
    clock: around.clock,
    server,
    ca: await around.readFile(plan.server['client-ca-file']),
    serviceCidr: plan.server['service-cluster-ip-range'],
    controllers: ours,
  })
  onStep('API server', `${server}, objects in ${plan.server.datastore}`)
  startInProcessControllers(running, { ...around, controllers, settings: plan.manager, isEnabled }, closing)
  // Who brings their own does not load it.
  const scheduling = plan.hasScheduler ? import('./scheduler.ts') : undefined
  const client = new ApiClient({ transport: running.server.clientAs(ADMIN), clock: around.clock, userAgent: 'admin' })
  if (controllers.some(({ name }) => name === 'serviceaccount-controller')) await untilPodsMayBeMade(client, around)
  onStep('Controllers', controllers.length === 0 ? 'none' : `${controllers.length} in this process`)
  const scheduler = await scheduling
  scheduler?.startInProcessScheduler(running, { ...around, isEnabled }, closing)
  onStep('Scheduler', scheduler === undefined ? 'none' : 'in this process')
  return { running, client }
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

/** Much more than it takes; something is wrong with the controllers then, and the log says what. */
const ACCOUNT_MS = 5000

/** Kubelets ask the API server what a caller may do, even when it is the API server itself that calls. */
const KUBELET_ACCESS: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: 'hyperkube:apiserver-kubelet-client' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
}
