/** The port of a kubelet, with the pages on which it tells of its pods and of itself. */
import type { ApiClient } from '#client/api-client.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { Registry } from '#lib/metrics.ts'
import { startRounds } from '#lib/rounds.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import type { KubeletOptions } from './kubelet-options.ts'
import { Measuring, WINDOW_MS } from './machine/measuring.ts'
import { cadvisorMetrics } from './metrics/cadvisor.ts'
import { registerKubeletMetrics } from './metrics/kubelet-metrics.ts'
import { resourceMetrics, statsSummary } from './node-stats.ts'
import type { PodOfNode } from './pods/pod-of-node.ts'
import type { PodWorkers } from './pods/pod-workers.ts'
import { SYNC_MS } from './runtime-health.ts'
import { Access } from './server/access.ts'
import type { KubeletApiOptions } from './server/kubelet-api.ts'
import { openPorts } from './server/ports.ts'

export interface NodePortOptions extends KubeletOptions {
  readonly registry: Registry
  readonly client: ApiClient
  readonly workers: PodWorkers
}

/** A runtime that does not count sandboxes says nothing of their network. */
async function cadvisorPage(
  { runtime, clock, machine, pods: facts }: KubeletOptions,
  pods: () => Iterable<PodOfNode>,
): Promise<string> {
  const [{ stats: containers }, { stats: sandboxes }] = await Promise.all([
    runtime.listContainerStats({}),
    runtime.listPodSandboxStats({}).catch(() => ({ stats: [] })),
  ])
  const { memoryBytes, capacity } = machine
  const about = { facts: { ...facts, memoryBytes }, cpus: Number(capacity['cpu'] ?? 0), nowMs: clock.now() }
  return cadvisorMetrics({ pods: Array.from(pods()), containers, sandboxes, ...about })
}

/** Returns the port on which it listens. */
export function openNodePort(options: NodePortOptions, closing: AsyncDisposableStack): Promise<number> {
  const { name, clock, log, runtime, machine, serving, configuration, registry, client, workers } = options
  const { allowsAnonymous, rules, hasDebugging } = serving
  const pods = (): Iterable<PodOfNode> => workers.pods()
  registerKubeletMetrics(registry, { node: name, clock, pods })
  const measuring = new Measuring({ name, clock, runtime, capacityBytes: machine.memoryBytes, pods })
  const unmeasured = (error: unknown): void =>
    log.v(2)?.info('What is used could not be measured', { err: String(error) })
  const looking = startRounds(
    { clock, periodMs: WINDOW_MS, onError: unmeasured },
    async () => void (await measuring.measure()),
  )
  closing.defer(() => looking.stop())
  // Whoever asks before the first round has something to compare with.
  void measuring.measure().catch(unmeasured)
  const http = createHttpClient({ clock, http1Only: true })
  closing.defer(() => http.close())
  const startedMs = clock.now()
  const api = (authorities: () => readonly Certificate[]): KubeletApiOptions => ({
    clock,
    access: new Access({ client, node: name, authorities, allowsAnonymous, ...(rules !== undefined && { rules }) }),
    ...(hasDebugging !== undefined && { hasDebugging }),
    runtime,
    http,
    pods,
    find: (...which) => workers.find(...which),
    isInSync: () => clock.now() - (workers.listedMs ?? startedMs) < SYNC_MS,
    configuration,
    summary: async () => statsSummary(await measuring.measure(), clock.now()),
    resourceMetrics: async () => resourceMetrics(await measuring.measure(), clock.now()),
    cadvisorMetrics: () => cadvisorPage(options, pods),
    metrics: () => registry.render(),
  })
  const onError = (error: unknown, path: string): void => log.error(error, 'A request failed', { path })
  return openPorts({ clock, serving, api, onError }, closing)
}
