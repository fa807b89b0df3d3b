/**
 * `kube-controller-manager`: runs the controllers of a cluster as a separate program with upstream's flags. At most one
 * of several instances leads; the others wait and serve their port.
 */
import { registerClientMetrics } from '#client/client-metrics.ts'
import { Fence } from '#client/fence.ts'
import {
  type Component,
  connect,
  healthy,
  open,
  openComponent,
  serve,
  type Server,
  workAsLeader,
} from '#component/component.ts'
import { findGates } from '#component/flags/gate-reach.ts'
import { gateErrors } from '#component/flags/gates.ts'
import { leaderErrors } from '#component/flags/leader-election-flags.ts'
import { metricsErrors } from '#component/flags/metrics-flags.ts'
import { servingErrors } from '#component/flags/serving-plan.ts'
import type { HealthCheck } from '#component/pages/health.ts'
import type { Controller } from '#controllers/controller.ts'
import { MANAGER_REACH } from '#controllers/gates.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { controllerSettingErrors } from '#controllers/settings.ts'
import { chooseControllers } from '#controllers/workloads/selection.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { runAlone } from '../process.ts'
import { bundleIn, createControllerRun } from '../run-controllers.ts'
import { managerConfigz } from './configz.ts'
import { MANAGER_FLAGS, type ManagerSettings } from './flags.ts'

const NAME = 'kube-controller-manager'

export const controllerManager: Program = defineProgram({
  name: NAME,
  aliases: ['controller-manager'],
  long:
    'The Kubernetes controller manager watches the objects of a cluster through its API server and changes the cluster until ' +
    'it matches them: it creates the pods of a ReplicaSet and empties a deleted namespace, for example.',
  version: kubernetesVersion(),
  flags: MANAGER_FLAGS,
  run: runManager,
})

/** The start time of the process, if the process runs only this program. */
export function start(): void {
  void runAlone(controllerManager)
}

type Manager = Component & {
  readonly settings: ManagerSettings
  readonly controllers: readonly Controller[]
}

async function runManager(invocation: Invocation<typeof MANAGER_FLAGS>, signal: AbortSignal): Promise<number> {
  // The table of flags defines every setting with its type.
  const settings = invocation.flags as unknown as ManagerSettings
  const controllers = checkSettings(settings, invocation)
  await using closing = new AsyncDisposableStack()
  const manager: Manager = await openComponent(invocation, { name: NAME, settings, controllers, closing })
  const { metrics, isEnabled, clock } = manager
  const meter = registerClientMetrics(metrics.registry, clock)
  const { config, server } = await connect(manager, settings)
  const root: Server = { ...server, transport: meter(server.transport) }
  // Without a client certificate, which would take precedence over tokens.
  const anonymous = await open(manager, { ...config, user: {} })
  const running: HealthCheck[] = []
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const configz = managerConfigz(MANAGER_FLAGS, values)
  await serve(manager, { flags: MANAGER_FLAGS, checks: () => [LEADER_CHECK, ...running], configz })
  const fence = new Fence()
  const fenced = (to: Server): Server => ({ ...to, transport: fence.around(to.transport) })
  const own = { ...anonymous, transport: meter(anonymous.transport) }
  const reached = { root: fenced(root), anonymous: fenced(own), serverBundle: bundleIn(config) }
  const work = createControllerRun({ ...manager, controllerSettings: settings }, reached, running)
  const releases = isEnabled('ControllerManagerReleaseLeaderElectionLockOnExit')
  // Closed at the end of the run.
  return await workAsLeader(manager, { server: root, signal, work, releases, fence })
}

/** Always healthy: a program that loses its lease exits. */
const LEADER_CHECK = healthy('leaderElection')

/** Returns the enabled controllers. Throws ProgramError with all problems. */
function checkSettings(
  settings: ManagerSettings,
  { changed, log }: Invocation<typeof MANAGER_FLAGS>,
): readonly Controller[] {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(MANAGER_FLAGS, values, changed)
  const gates = findGates(settings['feature-gates'], MANAGER_REACH)
  const { controllers, errors: unknown, cloudOnly } = chooseControllers(CONTROLLERS, settings.controllers)
  const errors = [
    ...support.errors,
    ...servingErrors(settings),
    ...metricsErrors(settings),
    ...gateErrors(settings['feature-gates']),
    ...gates.errors,
    ...leaderErrors(settings),
    ...controllerSettingErrors(settings),
    ...unknown,
  ]
  if (errors.length > 0) throw new ProgramError(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  for (const note of [...support.notes, ...gates.notes]) log.info(note)
  for (const name of cloudOnly)
    log.info('Skipping controller that runs only in cloud-controller-manager', { controller: name })
  return controllers
}
