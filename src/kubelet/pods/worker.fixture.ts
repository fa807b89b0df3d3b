/**
 * Test fixture for pod workers: a fake API server that accepts all writes, an in-memory runtime and PodWorkers
 * between them.
 */
import type { Container, Node, Pod, PodSpec } from '#apis/core/v1.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import type { Runtime } from '#cri/runtime.ts'
import { MemoryRuntime, type MemoryRuntimeOptions } from '#kits/cri/memory-runtime.ts'
import { createMemoryVolumeManager } from '#kits/kubelet/memory-volume-manager.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { PodFacts } from '../pod/pod-of-node.ts'
import type { ProbeAnswer } from '../probes/probe-action.ts'
import { NO_LOG_FILES } from '../runtime/log-links.ts'
import type { PodFiles } from './pod-files.ts'
import type { PodWorkersOptions } from './pod-host.ts'
import { PodWorkers } from './pod-workers.ts'

const NODE = {
  metadata: { name: 'node1' },
  spec: {},
  status: { allocatable: { cpu: '2', memory: '4Gi', pods: '110' } },
} as unknown as Node

export const FACTS: PodFacts = {
  nodeName: 'node1',
  addresses: ['10.0.0.1'],
  cgroupDriver: 'cgroupfs',
  rootDir: '/var/lib/kubelet',
  podLogsDir: '/var/log/pods',
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: '',
  maxPods: 110,
  memoryBytes: 4 * 1024 ** 3,
  forbidsSwap: false,
}

export const FILES: PodFiles = {
  read: async () => '',
  tail: async () => '',
  writeHosts: async (uid) => `/pods/${uid}/etc-hosts`,
  makeMessageFile: async (uid, container) => `/pods/${uid}/containers/${container}/1`,
  makeDirectory: async () => undefined,
  userRange: async () => ({ first: 65_536, length: 65_536 }),
  remove: async () => undefined,
  uids: async () => [],
}

export interface Patch {
  readonly atMs: number
  readonly status: Record<string, unknown> & { conditions?: { type: string; status?: string }[] }
}

export interface Bed {
  readonly clock: VirtualClock
  readonly runtime: MemoryRuntime
  readonly workers: PodWorkers
  readonly patches: Patch[]
  /** Recorded events as `reason: message`, in order. */
  readonly events: string[]
  /** Paths of deleted objects. */
  readonly deleted: string[]
  /** While set, the API server does not answer. */
  readonly fault: { isDown: boolean }
  /** Objects on the API server, by path. */
  readonly objects: Map<string, object>
  restart(): PodWorkers
}

/** Records writes and serves `objects`. */
function transportOf(bed: Pick<Bed, 'clock' | 'patches' | 'events' | 'deleted' | 'fault' | 'objects'>): Transport {
  const startMs = bed.clock.now()
  return {
    request: async ({ method = 'GET', url, body }) => {
      if (bed.fault.isDown) throw new Error('connection refused')
      const { pathname } = new URL(url)
      const sent = body === undefined ? {} : (JSON.parse(body as string) as Record<string, unknown>)
      if (method === 'PATCH' && pathname.endsWith('/status')) {
        bed.patches.push({ atMs: bed.clock.now() - startMs, status: sent['status'] as Patch['status'] })
      }
      if (method === 'POST') bed.events.push(`${String(sent['reason'])}: ${String(sent['message'])}`)
      if (method === 'DELETE') bed.deleted.push(pathname)
      return answerOf(method === 'GET' ? bed.objects.get(pathname) : sent)
    },
  }
}

function answerOf(found: object | undefined): Awaited<ReturnType<Transport['request']>> {
  const missing = { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 }
  const bytes = Buffer.from(JSON.stringify({ metadata: {}, ...(found ?? missing) }))
  return {
    status: found === undefined ? 404 : 200,
    headers: {},
    version: '1.1',
    body: (async function* () {
      yield bytes
    })(),
    bytes: async () => bytes,
    text: async () => bytes.toString(),
    discard: () => undefined,
  }
}

/** `calls` overrides calls of the runtime. */
export function bedOf(
  options: Partial<MemoryRuntimeOptions> = {},
  more: Partial<PodWorkersOptions> = {},
  calls: (runtime: Runtime) => Partial<Runtime> = () => ({}),
): Bed {
  const clock = createVirtualClock()
  const random = createSeededRandom(1)
  const state = { patches: [], events: [], deleted: [], fault: { isDown: false }, objects: new Map<string, object>() }
  const client = new ApiClient({ transport: transportOf({ clock, ...state }), clock, userAgent: 'kubelet' })
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const runtime = new MemoryRuntime({ clock, random, ...options })
  const recorder = new EventRecorder({ client, source: { component: 'kubelet', host: 'node1' } })
  const create = (): PodWorkers =>
    new PodWorkers({
      runtime: Object.assign<Partial<Runtime>, Runtime, Partial<Runtime>>({}, runtime, calls(runtime)),
      clock,
      random,
      log,
      client,
      recorder,
      node: () => NODE,
      facts: FACTS,
      services: () => [],
      volumes: createMemoryVolumeManager(),
      files: FILES,
      logs: NO_LOG_FILES,
      imageDisk: async () => ({ capacityBytes: 1e12, availableBytes: 9e11, inodes: 1e6, inodesFree: 9e5 }),
      runProbe: async (): Promise<ProbeAnswer> => ({ isFine: true }),
      ...more,
    })
  return { clock, runtime, workers: create(), ...state, restart: create }
}

export function podOf(spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'default', uid: 'u1', generation: 1, ...metadata },
    spec: { containers: [containerOf('c')], restartPolicy: 'Always', terminationGracePeriodSeconds: 30, ...spec },
    status: { phase: 'Pending', qosClass: 'BestEffort' },
  }
}

export const containerOf = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'nginx:1',
  imagePullPolicy: 'IfNotPresent',
  resources: {},
  terminationMessagePath: '/dev/termination-log',
  ...more,
})

export const conditionIn = ({ status }: Patch, type: string): string | undefined =>
  status.conditions?.find((condition) => condition.type === type)?.status
