/**
 * `cloud-controller-manager`: runs the cloud controllers as a separate program with upstream's flags, with a built-in
 * provider or a module. At most one of several instances leads.
 */
import { registerClientMetrics } from '#client/client-metrics.ts'
import { Fence } from '#client/fence.ts'
import { LOOP_NAMES, loopsFor, type LoopSettings } from '#cloud/loops.ts'
import type { CloudProvider } from '#cloud/provider.ts'
import { loadProvider, UnknownProvider } from '#cloud/providers.ts'
import { connect, healthy, open, openComponent, serve, type Server, workAsLeader } from '#component/component.ts'
import { gateErrors } from '#component/flags/gates.ts'
import { leaderErrors } from '#component/flags/leader-election-flags.ts'
import { metricsErrors } from '#component/flags/metrics-flags.ts'
import { servingErrors } from '#component/flags/serving-plan.ts'
import type { HealthCheck } from '#component/pages/health.ts'
import { type Controller, defineController } from '#controllers/controller.ts'
import { chooseControllers } from '#controllers/workloads/selection.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { bundleIn, createControllerRun } from '../run-controllers.ts'
import { CLOUD_FLAGS, type CloudSettings } from './flags.ts'

const NAME = 'cloud-controller-manager'
/** The value of kube-controller-manager; there is no flag for it here. */
const SHUTDOWN_MS = 10_000

export const cloudControllerManager: Program = defineProgram({
  name: NAME,
  long:
    'The cloud controller manager manages the resources that a cloud provides for a cluster: machines of nodes, load balancers ' +
    'of Services and routes to pods. Without a cloud the provider "local" uses the nodes themselves.',
  version: kubernetesVersion(),
  flags: CLOUD_FLAGS,
  run: runManager,
})

async function runManager(invocation: Invocation<typeof CLOUD_FLAGS>, signal: AbortSignal): Promise<number> {
  // The table of flags defines every setting with its type.
  const settings = invocation.flags as unknown as CloudSettings
  checkSettings(settings, invocation)
  const provider = await providerFor(settings, invocation)
  const controllers = controllersFor(provider, settings, invocation)
  await using closing = new AsyncDisposableStack()
  const manager = await openComponent(invocation, { name: NAME, settings, closing })
  const { metrics, clock } = manager
  const meter = registerClientMetrics(metrics.registry, clock)
  const { config, server } = await connect(manager, settings)
  const root: Server = { ...server, transport: meter(server.transport) }
  // Without a client certificate, which would take precedence over tokens.
  const anonymous = await open(manager, { ...config, user: {} })
  const running: HealthCheck[] = []
  await serve(manager, { flags: CLOUD_FLAGS, checks: () => [healthy('leaderElection'), ...running] })
  const fence = new Fence()
  const fenced = (to: Server): Server => ({ ...to, transport: fence.around(to.transport) })
  const own = { ...anonymous, transport: meter(anonymous.transport) }
  const reached = { root: fenced(root), anonymous: fenced(own), serverBundle: bundleIn(config) }
  const withShutdown = { ...settings, 'controller-shutdown-timeout': SHUTDOWN_MS }
  const work = createControllerRun({ ...manager, settings: withShutdown, controllers }, reached, running)
  return await workAsLeader(manager, { server: root, signal, work, releases: false, fence })
}

/** Throws ProgramError with all problems. */
function checkSettings(settings: CloudSettings, { changed, log }: Invocation<typeof CLOUD_FLAGS>): void {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(CLOUD_FLAGS, values, changed)
  const errors = [
    ...support.errors,
    ...servingErrors(settings),
    ...metricsErrors(settings),
    ...gateErrors(settings['feature-gates']),
    ...leaderErrors(settings),
    ...chooseControllers([], settings.controllers, LOOP_NAMES).errors,
    ...(settings['cloud-provider'] === '' ? ['--cloud-provider cannot be empty'] : []),
  ]
  if (errors.length > 0) throw new ProgramError(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  for (const note of support.notes) log.info(note)
}

async function providerFor(
  settings: CloudSettings,
  { readFile, cwd }: Invocation<typeof CLOUD_FLAGS>,
): Promise<CloudProvider> {
  const file = settings['cloud-config']
  try {
    const config = file === '' ? undefined : await readFile(file)
    return await loadProvider(settings['cloud-provider'], cwd, { config })
  } catch (cause) {
    const isTheirs = cause instanceof UnknownProvider || (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw isTheirs ? new ProgramError((cause as Error).message, { cause }) : cause
  }
}

function controllersFor(
  provider: CloudProvider,
  settings: CloudSettings,
  { log }: Invocation<typeof CLOUD_FLAGS>,
): readonly Controller[] {
  const loops = loopsFor(provider, loopSettings(settings)).map((loop) => defineController(loop))
  for (const name of Object.keys(LOOP_NAMES))
    if (!loops.some((loop) => loop.name === name))
      log.info('Skipping controller that the cloud provider does not support', {
        provider: provider.name,
        controller: name,
      })
  return chooseControllers(loops, settings.controllers, LOOP_NAMES).controllers
}

function loopSettings(settings: CloudSettings): LoopSettings {
  return {
    clusterName: settings['cluster-name'],
    clusterCidrs: settings['cluster-cidr'] === '' ? [] : settings['cluster-cidr'].split(','),
    hasRoutes: settings['allocate-node-cidrs'] && settings['configure-cloud-routes'],
    nodeWorkers: settings['concurrent-node-syncs'],
    serviceWorkers: settings['concurrent-service-syncs'],
    nodeUpdateMs: settings['node-status-update-frequency'],
    nodeMonitorMs: settings['node-monitor-period'],
    routeMs: settings['route-reconciliation-period'],
  }
}
