/**
 * `kube-controller-manager`: the control loops of a cluster as a program of its own, with upstream's flags. Of several at most
 * one leads; the others wait, and serve their port meanwhile.
 */
import type { HealthCheck } from '#apiserver/diagnostics/health.ts'
import { registerClientMetrics } from '#client/client-metrics.ts'
import { Fence } from '#client/fence.ts'
import { findGates } from '#control-plane/flags/gate-reach.ts'
import { gateErrors } from '#control-plane/flags/gates.ts'
import { leaderErrors } from '#control-plane/flags/leader-election-flags.ts'
import { metricsErrors } from '#control-plane/flags/metrics-flags.ts'
import { servingErrors } from '#control-plane/flags/plan.ts'
import type { Controller } from '#controllers/controller.ts'
import { MANAGER_REACH } from '#controllers/gates.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { chooseControllers } from '#controllers/selection.ts'
import { controllerSettingErrors } from '#controllers/settings.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { type Component, connect, healthy, open, openComponent, serve, type Server, workAsLeader } from './component.ts'
import { managerConfigz } from './controller-manager-configz.ts'
import { MANAGER_FLAGS, type ManagerSettings } from './controller-manager-flags.ts'
import { bundleIn, createWork } from './manager-work.ts'
import { runAlone } from './process.ts'

const NAME = 'kube-controller-manager'

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

/** Where the process begins when this is all of the program. */
export function start(): void {
  void runAlone(controllerManager)
}

type Manager = Component & {
  readonly settings: ManagerSettings
  readonly controllers: readonly Controller[]
}

async function runManager(invocation: Invocation<typeof MANAGER_FLAGS>, signal: AbortSignal): Promise<number> {
  // Every setting is in the table of flags, with its type.
  const settings = invocation.flags as unknown as ManagerSettings
  const controllers = checkSettings(settings, invocation)
  await using closing = new AsyncDisposableStack()
  const manager: Manager = await openComponent(invocation, { name: NAME, settings, controllers, closing })
  const { metrics, isEnabled, clock } = manager
  const meter = registerClientMetrics(metrics.registry, clock)
  const { config, server } = await connect(manager, settings)
  const root: Server = { ...server, transport: meter(server.transport) }
  // Without a certificate: one would count before any token.
  const nobody = await open(manager, { ...config, user: {} })
  const running: HealthCheck[] = []
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const configz = managerConfigz(MANAGER_FLAGS, values)
  await serve(manager, { flags: MANAGER_FLAGS, checks: () => [LEADER_CHECK, ...running], configz })
  const fence = new Fence()
  const fenced = (to: Server): Server => ({ ...to, transport: fence.around(to.transport) })
  const own = { ...nobody, transport: meter(nobody.transport) }
  const reached = { root: fenced(root), nobody: fenced(own), serverBundle: bundleIn(config) }
  const work = createWork({ ...manager, told: settings }, reached, running)
  const releases = isEnabled('ControllerManagerReleaseLeaderElectionLockOnExit')
  // Closed only when it is over.
  return await workAsLeader(manager, { server: root, signal, work, releases, fence })
}

/** Who cannot lead any more ends: there is nothing else to be told. */
const LEADER_CHECK = healthy('leaderElection')

/** Returns the controllers that are to run. Throws ProgramError with everything that is wrong. */
function checkSettings(
  settings: ManagerSettings,
  { changed, log }: Invocation<typeof MANAGER_FLAGS>,
): readonly Controller[] {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(MANAGER_FLAGS, values, changed)
  const gates = findGates(settings['feature-gates'], MANAGER_REACH)
  const { controllers, errors: unknown, missing } = chooseControllers(CONTROLLERS, settings.controllers)
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
  for (const name of missing) log.info('The controller is not there', { controller: name })
  return controllers
}
