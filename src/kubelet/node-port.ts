/** The port of a kubelet, with the pages on which it tells of its pods and of itself. */
import { join } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { startRounds } from '#lib/rounds.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import { Cadvisor } from './cadvisor/cadvisor.ts'
import type { KubeletOptions } from './kubelet-options.ts'
import { Measuring, WINDOW_MS } from './machine/measuring.ts'
import { type LogUse, NodeDetail } from './machine/node-detail.ts'
import type { KubeletMeters } from './metrics/kubelet-families.ts'
import { registerKubeletMetrics } from './metrics/kubelet-metrics.ts'
import type { ProbeCounts } from './metrics/probe-counts.ts'
import { countRequests } from './metrics/request-counts.ts'
import { resourceMetrics } from './metrics/resource.ts'
import { registerVolumeMetrics } from './metrics/volume-metrics.ts'
import { statsSummary, type VolumeFsUse } from './node-stats.ts'
import type { PodOfNode } from './pods/pod-of-node.ts'
import type { PodWorkers } from './pods/pod-workers.ts'
import { SYNC_MS } from './runtime-health.ts'
import { Access } from './server/access.ts'
import type { KubeletApiOptions } from './server/kubelet-api.ts'
import { openPorts } from './server/ports.ts'
import type { VolumeKeeper } from './volumes/volume-keeper.ts'

export interface NodePortOptions extends KubeletOptions {
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
  readonly client: ApiClient
  readonly workers: PodWorkers
  readonly keeper: VolumeKeeper
}

/** Pages for which more is looked at than every ten seconds. */
function detailedPages(
  { clock, runtime, machine, meters, keeper, pods: facts, node = {} }: NodePortOptions,
  measuring: Measuring,
  pods: () => Iterable<PodOfNode>,
): Pick<KubeletApiOptions, 'metrics' | 'summary'> {
  const { cgroupVersion } = machine
  const volumes = async (uid: string): Promise<readonly VolumeFsUse[]> => (await keeper.measure?.(uid)) ?? []
  const volumesMs = node.volumesMs ?? VOLUMES_MS
  const detail = new NodeDetail({ runtime, clock, facts, cgroupVersion, pods, volumes, volumesMs })
  let measured: readonly VolumeFsUse[] = []
  let logs: readonly LogUse[] = []
  meters.collect('kubelet_container_log_filesystem_used_bytes', (emit) => {
    for (const { pod, container, bytes } of logs) {
      const { uid = '', namespace = '', name = '' } = pod.metadata
      emit(bytes, uid, namespace, name, container)
    }
  })
  registerVolumeMetrics(meters, keeper, () => measured)
  return {
    summary: async () => statsSummary(await detail.of(await measuring.measure()), clock.now()),
    metrics: async () => {
      measured = await detail.volumes()
      logs = await detail.logs()
      return meters.registry.render()
    },
  }
}

const VOLUMES_MS = 60_000

/** Returns the port on which it listens. */
export function openNodePort(options: NodePortOptions, closing: AsyncDisposableStack): Promise<number> {
  const { name, clock, log, runtime, machine, serving, configuration, meters, client, workers } = options
  const { allowsAnonymous, rules, hasDebugging } = serving
  const pods = (): Iterable<PodOfNode> => workers.pods()
  registerKubeletMetrics(meters, { node: name, cgroupVersion: machine.cgroupVersion, pods })
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
  const { metrics, summary } = detailedPages(options, measuring, pods)
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
    find: (...which) => workers.find(...which),
    isInSync: () => clock.now() - (workers.listedMs ?? startedMs) < SYNC_MS,
    configuration,
    ...(options.zpages !== undefined && { zpages: options.zpages }),
    ...(options.logDirectory !== undefined && { logDirectory: options.logDirectory }),
    summary,
    resourceMetrics: async () => resourceMetrics(await measuring.measure(), clock.now()),
    ...(options.node?.callLimitMs !== undefined && { callLimitMs: options.node.callLimitMs }),
    checkpointsDir: join(options.pods.rootDir, 'checkpoints'),
    cadvisorMetrics: () => cadvisor.page(),
    metrics,
    probeMetrics: () => options.probes.registry.render(),
  })
  const onError = (error: unknown, path: string): void => log.error(error, 'A request failed', { path })
  const count = (isReadOnly: boolean): ReturnType<typeof countRequests> => countRequests(meters, clock, isReadOnly)
  return openPorts({ clock, serving, api, onError, count }, closing)
}
