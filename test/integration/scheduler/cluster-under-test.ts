import { type Node, Nodes, type Pod, type PodSpec, Pods } from '#apis/core/v1.ts'
/** A control plane with a scheduler in virtual time, and words for the nodes and pods of a scenario. */
import { Events } from '#apis/events/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { SchedulerOptions } from '#scheduler/start.ts'
import { startControlPlane } from '#testing/control-plane.ts'
import { startTestScheduler } from '#testing/scheduler.ts'

export interface ClusterUnderTest extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: ApiClient
  node(name: string, more?: NodeWords): Promise<Node>
  pod(name: string, spec?: Partial<PodSpec>, labels?: Record<string, string>): Promise<Pod>
  /** Where it is, after everything has settled; '' nowhere. */
  placeOf(name: string): Promise<string>
  /** What its condition says. */
  whyNot(name: string): Promise<string>
  /** `reason: note` of all events about it, the series with how often. */
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
/** Admission that nodes and pods without anybody behind them would not pass. */
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

/** A container that asks for so much. */
export function asking(requests: Record<string, string>): Pick<PodSpec, 'containers'> {
  return { containers: [{ name: 'c', image: 'img:1', resources: { requests } }] }
}
