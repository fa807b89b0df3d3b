/** Starts a control plane with a scheduler and a virtual clock for tests, with functions that create nodes and pods. */
import { type Node, Nodes, type Pod, type PodSpec, Pods } from '#apis/core/v1.ts'
import { Events } from '#apis/events/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { startTestScheduler } from '#kits/scheduler/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { SchedulerOptions } from '#scheduler/start.ts'
import { startControlPlane } from '#testing/control-plane.ts'

export interface ClusterUnderTest extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: ApiClient
  node(name: string, more?: NodeWords): Promise<Node>
  pod(name: string, spec?: Partial<PodSpec>, labels?: Record<string, string>): Promise<Pod>
  /** The pod's node after the cluster has settled; '' if it has none. */
  placeOf(name: string): Promise<string>
  /** The message of the PodScheduled condition. */
  whyNot(name: string): Promise<string>
  /** `reason: note` of all its events, with the count of a series. */
  events(name: string): Promise<string[]>
  settle(ms?: number): Promise<void>
}

export interface NodeWords {
  readonly labels?: Record<string, string>
  readonly spec?: Partial<Node['spec']>
  readonly allocatable?: Record<string, string>
  readonly images?: { readonly names: string[]; readonly sizeBytes: number }[]
}

const SIZE = { cpu: '4', memory: '32Gi', pods: '110' }
export const namespace = 'default'
/** Admission plugins that would reject these nodes and pods. */
const IN_THE_WAY = ['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds']

export async function startCluster(
  options: Partial<SchedulerOptions> = {},
  settings: Partial<Settings> = {},
): Promise<ClusterUnderTest> {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const plane = await startControlPlane({
    clock,
    settings: { 'disable-admission-plugins': IN_THE_WAY, ...settings },
  })
  const scheduler = await startTestScheduler(plane, clock, options)
  const { client } = scheduler
  const settle = (ms = 100): Promise<void> => clock.advance(ms)
  const get = async (name: string): Promise<Pod> => {
    await settle()
    return client.get(Pods, { namespace, name })
  }
  return {
    clock,
    client,
    settle,
    async node(name, { labels = {}, spec = {}, allocatable = SIZE, images } = {}) {
      const metadata = { name, labels: { 'kubernetes.io/hostname': name, ...labels } }
      await client.create(Nodes, { metadata, spec: { ...spec } })
      const status = { allocatable, capacity: allocatable, ...(images !== undefined && { images }) }
      return client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
    },
    pod: (name, spec = {}, labels = {}) =>
      client.create(Pods, {
        metadata: { namespace, name, labels },
        spec: { containers: [{ name: 'c', image: 'img:1', resources: {} }], ...spec },
      }),
    placeOf: async (name) => (await get(name)).spec.nodeName ?? '',
    async whyNot(name) {
      const { status } = await get(name)
      return status.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False')?.message ?? ''
    },
    async events(name) {
      await settle()
      const { items } = await client.list(Events, { namespace, fieldSelector: `regarding.name=${name}` })
      return items.map(
        ({ reason, note, series }) => `${reason}: ${note}${series === undefined ? '' : ` x${series.count}`}`,
      )
    },
    async [Symbol.asyncDispose]() {
      await scheduler.stop()
      await plane.stop()
    },
  }
}

/** A container with these requests. */
export function asking(requests: Record<string, string>): Pick<PodSpec, 'containers'> {
  return { containers: [{ name: 'c', image: 'img:1', resources: { requests } }] }
}
