/** Opens the ports of the kubelet API, with the endpoints for stats and metrics. */
import { join } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { runPeriodically } from '#lib/periodic.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import { Cadvisor } from './cadvisor/cadvisor.ts'
import type { KubeletOptions } from './kubelet-options.ts'
import { statsSummary, type VolumeFsUse } from './machine/node-stats.ts'
import { type LogUse, StatsDetail } from './machine/stats-detail.ts'
import { UsageSampler, WINDOW_MS } from './machine/usage-sampler.ts'
import type { KubeletMeters } from './metrics/kubelet-families.ts'
import { registerKubeletMetrics } from './metrics/kubelet-metrics.ts'
import type { ProbeCounts } from './metrics/probe-counts.ts'
import { countRequests } from './metrics/request-counts.ts'
import { resourceMetrics } from './metrics/resource.ts'
import type { PodOfNode } from './pod/pod-of-node.ts'
import type { PodWorkers } from './pods/pod-workers.ts'
import { SYNC_MS } from './runtime/runtime-health.ts'
import { Access } from './server/access.ts'
import type { KubeletApiOptions } from './server/kubelet-api.ts'
import { openPorts } from './server/ports.ts'
import type { VolumeManager } from './volumes/volume-manager.ts'
import { registerVolumeMetrics } from './volumes/volume-metrics.ts'

export interface NodePortOptions extends KubeletOptions {
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
  readonly client: ApiClient
  readonly workers: PodWorkers
  readonly volumeManager: VolumeManager
}

/** Endpoints that need more measurements than the periodic ones. */
function detailedPages(
  { clock, runtime, machine, meters, volumeManager, pods: facts, node = {} }: NodePortOptions,
  sampler: UsageSampler,
  pods: () => Iterable<PodOfNode>,
): Pick<KubeletApiOptions, 'metrics' | 'summary'> {
  const { cgroupVersion } = machine
  const volumes = async (uid: string): Promise<readonly VolumeFsUse[]> => (await volumeManager.measure?.(uid)) ?? []
  const volumeStatsMs = node.volumeStatsMs ?? VOLUMES_MS
  const detail = new StatsDetail({ runtime, clock, facts, cgroupVersion, pods, volumes, volumeStatsMs })
  let measured: readonly VolumeFsUse[] = []
  let logs: readonly LogUse[] = []
  meters.collect('kubelet_container_log_filesystem_used_bytes', (emit) => {
    for (const { pod, container, bytes } of logs) {
      const { uid = '', namespace = '', name = '' } = pod.metadata
      emit(bytes, uid, namespace, name, container)
    }
  })
  registerVolumeMetrics(meters, volumeManager, () => measured)
  return {
    summary: async () => statsSummary(await detail.of(await sampler.measure()), clock.now()),
    metrics: async () => {
      measured = await detail.volumes()
      logs = await detail.logs()
      return meters.registry.render()
    },
  }
}

const VOLUMES_MS = 60_000

/** Returns the port number. */
export function openNodePort(options: NodePortOptions, closing: AsyncDisposableStack): Promise<number> {
  const { name, clock, log, runtime, machine, serving, configuration, meters, client, workers } = options
  const { allowsAnonymous, rules, hasDebugging } = serving
  const pods = (): Iterable<PodOfNode> => workers.registry.pods()
  registerKubeletMetrics(meters, { node: name, cgroupVersion: machine.cgroupVersion, pods })
  const sampler = new UsageSampler({ name, clock, runtime, capacityBytes: machine.memoryBytes, pods })
  const unmeasured = (error: unknown): void =>
    log.v(2)?.info('Failed to measure CPU and memory usage', { err: String(error) })
  const looking = runPeriodically(
    { clock, periodMs: WINDOW_MS, onError: unmeasured },
    async () => void (await sampler.measure()),
  )
  closing.defer(() => looking.stop())
  // A request before the first periodic measurement needs an earlier one to compare with.
  void sampler.measure().catch(unmeasured)
  const { metrics, summary } = detailedPages(options, sampler, pods)
  const cadvisor = new Cadvisor({ runtime, clock, machine, facts: options.pods, pods })
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
    find: (...which) => workers.registry.find(...which),
    isInSync: () => clock.now() - (workers.listedMs ?? startedMs) < SYNC_MS,
    configuration,
    ...(options.zpages !== undefined && { zpages: options.zpages }),
    ...(options.logDirectory !== undefined && { logDirectory: options.logDirectory }),
    summary,
    resourceMetrics: async () => resourceMetrics(await sampler.measure(), clock.now()),
    ...(options.node?.runtimeTimeoutMs !== undefined && { runtimeTimeoutMs: options.node.runtimeTimeoutMs }),
    checkpointsDir: join(options.pods.rootDir, 'checkpoints'),
    cadvisorMetrics: () => cadvisor.page(),
    metrics,
    probeMetrics: () => options.probes.registry.render(),
  })
  const onError = (error: unknown, path: string): void => log.error(error, 'Failed to serve request', { path })
  const count = (isReadOnly: boolean): ReturnType<typeof countRequests> => countRequests(meters, clock, isReadOnly)
  return openPorts({ clock, serving, api, onError, count }, closing)
}
