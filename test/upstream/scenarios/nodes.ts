/**
 * Scenarios of nodes that join, become silent, fail, are drained and return. Each uses a separate node and runs alone.
 */
import { DaemonSets } from '#apis/apps/v1.ts'
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import { template } from './rollouts.ts'
import type { Act, Scenario } from './scenario.ts'

const nodeOf = ({ ns }: Act): string => `${ns}-node`
const ZONE = { 'topology.kubernetes.io/zone': 'zone-1', 'topology.kubernetes.io/region': 'region' }

function onNode(name: string, run: (act: Act) => Promise<void>, more: Partial<Scenario> = {}): Scenario {
  return {
    name,
    isAlone: true,
    clusterKinds: [Nodes],
    async run(act) {
      await act.nodes.join({ name: nodeOf(act), labels: ZONE })
      await run(act)
    },
    clean: forget,
    ...more,
  }
}

const tolerating = (key: string, tolerationSeconds: number): object => ({
  tolerations: [{ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }],
})

async function runPods(act: Act, pods: Readonly<Record<string, object>>): Promise<void> {
  for (const [name, spec] of Object.entries(pods)) {
    await act.make(Pods, name, template('one', {}, { nodeName: nodeOf(act), ...spec }))
    await act.until(Pods, name, ({ status }) => status.phase === 'Running')
  }
}

const ready = (act: Act, status: string): Promise<void> => {
  const now = timeOf(act.clock.now())
  const times = { lastHeartbeatTime: now, lastTransitionTime: now }
  const conditions = [{ type: 'Ready', status, reason: 'Kubelet', message: 'as told', ...times }]
  return act.change(Nodes, nodeOf(act), { status: { conditions } }, 'status').then(() => undefined)
}

const tainted = (act: Act, ...wanted: string[]): Promise<void> =>
  act.until(Nodes, nodeOf(act), ({ spec }: Node) => {
    const taints = (spec.taints ?? []).map(({ key, effect }) => `${key.replace('node.kubernetes.io/', '')}:${effect}`)
    return taints.sort().join() === wanted.sort().join()
  })

const going = (act: Act, name: string): Promise<void> => act.until(Pods, name, (pod: Pod) => isBeingDeleted(pod))

const forget = async (act: Act): Promise<void> => {
  const name = nodeOf(act)
  act.nodes.lose(name)
  await act.client.delete(Nodes, { name }).catch(() => undefined)
  await act.client.delete(Leases, { namespace: 'kube-node-lease', name }).catch(() => undefined)
}

export const NODES: readonly Scenario[] = [
  onNode('unresponsive node: its pods become not ready, some are evicted, and it returns', async (act) => {
    await runPods(act, {
      stays: {},
      leaves: tolerating('unreachable', 3),
      never: { tolerations: [{ operator: 'Exists' }] },
    })
    act.nodes.lose(nodeOf(act))
    await tainted(act, 'unreachable:NoSchedule', 'unreachable:NoExecute')
    await going(act, 'leaves')
    await act.nodes.join({ name: nodeOf(act), labels: ZONE })
    await tainted(act)
    await act.gone(Pods, 'leaves')
    await act.wait(6000)
  }),
  onNode('node reports NotReady and then Ready', async (act) => {
    await runPods(act, { stays: {}, leaves: tolerating('not-ready', 2) })
    await ready(act, 'False')
    await tainted(act, 'not-ready:NoSchedule', 'not-ready:NoExecute')
    await act.gone(Pods, 'leaves')
    await ready(act, 'True')
    await tainted(act)
    await act.wait(6000)
  }),
  onNode('node conditions and spec.unschedulable become taints', async (act) => {
    await act.change(Nodes, nodeOf(act), { spec: { unschedulable: true } })
    await tainted(act, 'unschedulable:NoSchedule')
    const conditions = [
      { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'm' },
      { type: 'MemoryPressure', status: 'True', reason: 'r', message: 'm' },
      { type: 'PIDPressure', status: 'True', reason: 'r', message: 'm' },
      { type: 'DiskPressure', status: 'False', reason: 'r', message: 'm' },
    ]
    await act.change(Nodes, nodeOf(act), { status: { conditions } }, 'status')
    await tainted(act, 'unschedulable:NoSchedule', 'memory-pressure:NoSchedule', 'pid-pressure:NoSchedule')
    await act.change(Nodes, nodeOf(act), { spec: { unschedulable: null } })
    await tainted(act, 'memory-pressure:NoSchedule', 'pid-pressure:NoSchedule')
    await act.wait(6000)
  }),
  onNode('pods of an out-of-service node are force-deleted', async (act) => {
    await runPods(act, { lost: {} })
    act.nodes.lose(nodeOf(act))
    await ready(act, 'False')
    await tainted(act, 'not-ready:NoSchedule', 'not-ready:NoExecute')
    const { spec } = await act.client.get(Nodes, { name: nodeOf(act) })
    const out = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }
    await act.change(Nodes, nodeOf(act), { spec: { taints: [...(spec.taints ?? []), out] } })
    await act.gone(Pods, 'lost')
  }),
  onNode(
    'DaemonSet runs on a new node, leaves it because of a taint, and follows its deletion',
    async (act) => {
      await act.make(DaemonSets, 'agent', {
        spec: { selector: { matchLabels: { app: 'web' } }, template: template() },
      })
      const isReady = (count: number): Promise<void> =>
        act.until(DaemonSets, 'agent', ({ status }) => status.numberReady === count)
      await isReady(4)
      await act.change(Nodes, nodeOf(act), { spec: { taints: [{ key: 'keep', effect: 'NoSchedule' }] } })
      await act.wait(1000)
      // Upstream's does not look again because of a taint that leaves pods alone.
      await act.change(DaemonSets, 'agent', { metadata: { annotations: { look: 'again' } } })
      await act.until(DaemonSets, 'agent', ({ status }) => status.numberMisscheduled === 1)
      await act.change(Nodes, nodeOf(act), { spec: { taints: [{ key: 'keep', effect: 'NoExecute' }] } })
      await act.untilAll(Pods, (pods) => pods.length === 3)
      await act.change(Nodes, nodeOf(act), { spec: { taints: null } })
      await act.untilAll(Pods, (pods) => pods.length === 4)
      await isReady(4)
      // Long enough for both to have taken notice of the node.
      await act.wait(6000)
      await forget(act)
      await act.until(DaemonSets, 'agent', ({ status }) => status.desiredNumberScheduled === 3)
      await act.untilAll(Pods, (pods) => pods.length === 3)
    },
    { clusterKinds: [] },
  ),
]
