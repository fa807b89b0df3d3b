/**
 * `kube-scheduler`: assigns pods to nodes as a separate program with upstream's flags. At most one of several instances
 * leads; the others keep their caches in sync, so that a new leader can start at once.
 */
import { writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'

import { ApiClient } from '#client/api-client.ts'
import { registerClientMetrics } from '#client/client-metrics.ts'
import { Fence } from '#client/fence.ts'
import {
  type Component,
  connect,
  healthy,
  openComponent,
  serve,
  type Server,
  workAsLeader,
} from '#component/component.ts'
import { findGates } from '#component/flags/gate-reach.ts'
import { createGates, gateErrors } from '#component/flags/gates.ts'
import { leaderErrors } from '#component/flags/leader-election-flags.ts'
import { metricsErrors } from '#component/flags/metrics-flags.ts'
import { servingErrors } from '#component/flags/serving-plan.ts'
import type { HealthCheck } from '#component/pages/health.ts'
import { aborted } from '#lib/abort.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion, userAgent } from '#model/version.ts'
import { shownConfiguration, writtenConfiguration } from '#scheduler/configuration/showing.ts'
import { createExtender } from '#scheduler/decision/extender.ts'
import { registerSchedulerMetrics } from '#scheduler/decision/meters.ts'
import { SCHEDULER_REACH } from '#scheduler/gates.ts'
import { type RunningScheduler, type SchedulerOptions, startScheduler } from '#scheduler/start.ts'

import { type LoadedConfiguration, loadConfiguration } from './configuration.ts'
import { SCHEDULER_FLAGS, type SchedulerSettings } from './flags.ts'

const NAME = 'kube-scheduler'

export const scheduler: Program = defineProgram({
  name: NAME,
  aliases: ['scheduler'],
  long:
    'The Kubernetes scheduler watches for pods without a node, filters the nodes that can run each pod, and binds it to the ' +
    'best of them.',
  version: kubernetesVersion(),
  flags: SCHEDULER_FLAGS,
  run: runScheduler,
})

type SchedulerComponent = Component & LoadedConfiguration

async function runScheduler(invocation: Invocation<typeof SCHEDULER_FLAGS>, signal: AbortSignal): Promise<number> {
  // The table of flags defines every setting with its type.
  const flags = invocation.flags as unknown as SchedulerSettings
  checkSettings(flags, invocation)
  const loaded = await loadConfiguration(invocation, flags, createGates(flags['feature-gates']))
  if (flags['write-config-to'] !== '') return writeConfiguration(invocation, loaded)
  await using closing = new AsyncDisposableStack()
  const component: SchedulerComponent = await openComponent(invocation, { ...loaded, name: NAME, closing })
  const { log, metrics, clock, settings, configuration, profiles } = component
  log.info('Starting Kubernetes Scheduler', { version: invocation.version ?? kubernetesVersion().number })
  const { server: plain } = await connect(component, settings)
  const server: Server = { ...plain, transport: registerClientMetrics(metrics.registry, clock)(plain.transport) }
  const stop = new AbortController()
  const leading = Promise.withResolvers<void>()
  const extenders = await Promise.all(configuration.extenders.map((one) => createExtender(one, component)))
  const fence = new Fence()
  const fenced: Server = { ...server, transport: fence.around(server.transport) }
  const start = (): RunningScheduler =>
    startWith(component, fenced, {
      extenders,
      signal: AbortSignal.any([signal, stop.signal]),
      leading: leading.promise,
    })
  // Standby instances keep their caches in sync, unless that is disabled.
  let running = configuration.delayCacheUntilActive && settings['leader-elect'] ? undefined : start()
  const configz = { componentconfig: shownConfiguration(configuration) }
  await serve(component, { flags: SCHEDULER_FLAGS, checks: checksOf(component, () => running, signal), configz })
  // Closed at the end of the run.
  return await workAsLeader(component, {
    server,
    signal,
    releases: true,
    fence,
    reportsAs: profiles[0]?.name ?? NAME,
    async work(leads) {
      running ??= start()
      leading.resolve()
      await aborted(leads)
      stop.abort()
      await running.ended()
    },
  })
}

async function writeConfiguration(
  { log, cwd }: Invocation<typeof SCHEDULER_FLAGS>,
  { configuration, settings }: LoadedConfiguration,
): Promise<number> {
  const file = settings['write-config-to']
  await writeFile(resolve(cwd, file), writtenConfiguration(configuration))
  log.info('Wrote configuration', { file })
  return 0
}

function checkSettings(settings: SchedulerSettings, { changed, log }: Invocation<typeof SCHEDULER_FLAGS>): void {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(SCHEDULER_FLAGS, values, changed)
  const gates = findGates(settings['feature-gates'], SCHEDULER_REACH)
  const errors = [
    ...support.errors,
    ...gateErrors(settings['feature-gates']),
    ...gates.errors,
    ...servingErrors(settings),
    ...metricsErrors(settings),
    ...leaderErrors(settings),
  ]
  if (errors.length > 0) throw new ProgramError(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  for (const note of [...support.notes, ...gates.notes]) log.info(note)
}

/** Events have a separate client, so that they do not delay bindings. */
function startWith(
  { settings, configuration, profiles, clock, random, log, isEnabled, metrics }: SchedulerComponent,
  server: Server,
  when: Pick<SchedulerOptions, 'signal' | 'leading' | 'extenders'>,
): RunningScheduler {
  const limits = { qps: settings['kube-api-qps'], burst: settings['kube-api-burst'] }
  const open = (agent: string): ApiClient => new ApiClient({ ...server, clock, limits, userAgent: agent })
  const meter = registerSchedulerMetrics(metrics.registry)
  const running = startScheduler({
    ...when,
    meter,
    client: open(`${userAgent(NAME)}/scheduler`),
    eventClient: open(userAgent(NAME)),
    clock,
    random,
    log,
    isEnabled,
    host: hostname(),
    profiles,
    initialBackoffMs: configuration.podInitialBackoffSeconds * 1000,
    maxBackoffMs: configuration.podMaxBackoffSeconds * 1000,
    maxUnschedulableMs: settings['pod-max-in-unschedulable-pods-duration'],
  })
  meter.watch(running)
  return running
}

function checksOf(
  { settings }: SchedulerComponent,
  running: () => RunningScheduler | undefined,
  signal: AbortSignal,
): () => readonly HealthCheck[] {
  const checks: HealthCheck[] = [
    settings['leader-elect'] ? healthy('leaderElection', ['healthz', 'readyz']) : healthy('ping', ['healthz']),
    healthy('ping', ['livez']),
    failing('shutdown', () => (signal.aborted ? 'process is shutting down' : undefined)),
    failing('sched-handler-sync', () =>
      running()?.isSynced() === true ? undefined : 'handlers are not fully synchronized',
    ),
  ]
  return () => checks
}

function failing(name: string, problem: () => string | undefined): HealthCheck {
  return {
    name,
    on: ['readyz'],
    check() {
      const text = problem()
      if (text !== undefined) throw new Error(text)
    },
  }
}
