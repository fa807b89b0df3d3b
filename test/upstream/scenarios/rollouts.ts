/** Scenarios of Deployments and ReplicaSets: rollouts, pauses, rollbacks, adoption and orphans. */
import { type Deployment, Deployments, ReplicaSets } from '#apis/apps/v1.ts'
import { Pods, ReplicationControllers, ResourceQuotas } from '#apis/core/v1.ts'

import type { Act, Scenario } from './scenario.ts'

const labels = { app: 'web' }
const selector = { matchLabels: labels }
/** Long enough for pods to be seen on their way. */
const SLOW = { 'stand-in/after-ms': '900' }

/** A template; `annotations` tell its pods what to do. */
export function template(image = 'one', annotations: Record<string, string> = {}, pod: object = {}): object {
  return {
    metadata: { labels, annotations },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image }], ...pod },
  }
}

const spec = (replicas: number, more: object = {}): object => ({ replicas, selector, template: template(), ...more })

const isComplete = ({ metadata, spec: { replicas = 1 }, status }: Deployment): boolean =>
  status.observedGeneration === metadata.generation &&
  status.updatedReplicas === replicas &&
  status.replicas === replicas &&
  status.availableReplicas === replicas

async function deploy(act: Act, replicas: number, more: object = {}): Promise<void> {
  await act.make(Deployments, 'web', { spec: spec(replicas, more) })
  await act.until(Deployments, 'web', isComplete)
}

const rolling = (maxSurge: number | string, maxUnavailable: number | string): object => ({
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
})

function rollOut(name: string, replicas: number, more: object): Scenario {
  return {
    name,
    async run(act) {
      await deploy(act, replicas, more)
      await act.change(Deployments, 'web', { spec: { template: template('two') } })
      await act.until(Deployments, 'web', isComplete)
    },
  }
}

export const ROLLOUTS: readonly Scenario[] = [
  { name: 'Deployment creates its pods', run: (act) => deploy(act, 3) },
  rollOut('rollout with maxSurge', 3, rolling(2, 0)),
  rollOut('rollout with maxUnavailable', 4, rolling(0, 2)),
  rollOut('rollout with percentages', 5, rolling('40%', '20%')),
  rollOut('rollout with strategy Recreate', 3, { strategy: { type: 'Recreate' } }),
  rollOut('rollout with minReadySeconds', 2, { ...rolling(1, 0), minReadySeconds: 2 }),
  rollOut('rollout with revisionHistoryLimit 0', 2, { revisionHistoryLimit: 0 }),
  {
    name: 'rollout that exceeds progressDeadlineSeconds',
    async run(act) {
      await deploy(act, 2, { ...rolling(1, 0), progressDeadlineSeconds: 4 })
      await act.change(Deployments, 'web', { spec: { template: template('two', { 'stand-in/fate': 'running' }) } })
      await act.until(Deployments, 'web', ({ status }) =>
        (status.conditions ?? []).some(({ reason }) => reason === 'ProgressDeadlineExceeded'),
      )
    },
  },
  {
    name: 'paused rollout waits until it is resumed',
    allows: [
      {
        line: /^[-+] Deployment web Progressing \d/,
        why: "upstream's second write of the status in one sync is refused as outdated, so that NewReplicaSetCreated is skipped",
      },
    ],
    async run(act) {
      await deploy(act, 3)
      await act.change(Deployments, 'web', { spec: { paused: true } })
      await act.change(Deployments, 'web', { spec: { template: template('two') } })
      await act.wait(1500)
      await act.change(Deployments, 'web', { spec: { replicas: 4 } })
      await act.until(Deployments, 'web', ({ status }) => status.replicas === 4)
      await act.change(Deployments, 'web', { spec: { paused: false } })
      await act.until(Deployments, 'web', isComplete)
    },
  },
  {
    name: 'rollback reuses the old ReplicaSet',
    async run(act) {
      await deploy(act, 2)
      await act.change(Deployments, 'web', { spec: { template: template('two') } })
      await act.until(Deployments, 'web', isComplete)
      await act.change(Deployments, 'web', { spec: { template: template('one') } })
      await act.until(Deployments, 'web', isComplete)
    },
  },
  {
    name: 'scaling during a rollout is proportional',
    async run(act) {
      await deploy(act, 6, rolling(2, 1))
      await act.change(Deployments, 'web', { spec: { template: template('two', { 'stand-in/fate': 'running' }) } })
      await act.wait(3000)
      await act.change(Deployments, 'web', { spec: { replicas: 12 } })
      await act.wait(3000)
    },
  },
  {
    name: 'Deployment is scaled up, down and to zero',
    async run(act) {
      await deploy(act, 1, { template: template('one', SLOW) })
      for (const replicas of [4, 2, 0]) {
        await act.change(Deployments, 'web', { spec: { replicas } })
        await act.until(Deployments, 'web', ({ status }) => (status.replicas ?? 0) === replicas)
      }
    },
  },
  {
    name: 'annotations and labels of a Deployment are copied to its ReplicaSets',
    async run(act) {
      await act.make(Deployments, 'web', {
        metadata: { annotations: { note: 'one', 'kubernetes.io/change-cause': 'first' }, labels: { team: 'a' } },
        spec: spec(1, { template: template('one', SLOW) }),
      })
      await act.until(Deployments, 'web', isComplete)
      await act.change(Deployments, 'web', { metadata: { annotations: { note: 'two' } } })
      await act.wait(1500)
    },
  },
  {
    name: 'Deployment adopts a matching ReplicaSet',
    async run(act) {
      await act.make(ReplicaSets, 'old', { metadata: { labels }, spec: spec(2) })
      await act.until(ReplicaSets, 'old', ({ status }) => status.readyReplicas === 2)
      await deploy(act, 2)
    },
  },
  {
    name: 'Deployment deleted in the background deletes its pods',
    async run(act) {
      await deploy(act, 2)
      await act.remove(Deployments, 'web', { propagationPolicy: 'Background' })
      await act.untilAll(Pods, (pods) => pods.length === 0)
    },
  },
  {
    name: 'Deployment deleted in the foreground is removed last',
    async run(act) {
      await deploy(act, 2, { template: template('one', { 'stand-in/stop-ms': '900' }) })
      await act.remove(Deployments, 'web', { propagationPolicy: 'Foreground' })
      await act.gone(Deployments, 'web')
    },
  },
  {
    name: 'Deployment deleted with orphaning leaves its ReplicaSets, and a new one adopts them',
    async run(act) {
      await deploy(act, 2)
      await act.remove(Deployments, 'web', { propagationPolicy: 'Orphan' })
      await act.gone(Deployments, 'web')
      await act.untilAll(ReplicaSets, (sets) => sets.every(({ metadata }) => metadata.ownerReferences === undefined))
      await act.make(Deployments, 'web', { spec: spec(2) })
      await act.until(Deployments, 'web', isComplete)
    },
  },
  {
    name: 'Deployment reports why its pods are rejected',
    allows: [
      {
        line: / FailedCreate /,
        isCount: true,
        why: 'how often a pod is refused before the quota is raised depends on how quickly it is tried again',
      },
    ],
    async run(act) {
      await act.make(ResourceQuotas, 'few', { spec: { hard: { pods: '1' } } })
      await act.until(ResourceQuotas, 'few', ({ status }) => status?.used !== undefined)
      await act.make(Deployments, 'web', { spec: spec(2) })
      await act.until(Deployments, 'web', ({ status }) =>
        (status.conditions ?? []).some(({ type }) => type === 'ReplicaFailure'),
      )
      await act.change(ResourceQuotas, 'few', { spec: { hard: { pods: '5' } } })
      await act.until(Deployments, 'web', isComplete)
    },
  },
  {
    name: 'ReplicaSet adopts matching pods and releases others',
    async run(act) {
      await act.make(Pods, 'loose', { ...template(), metadata: { labels } })
      await act.until(Pods, 'loose', ({ status }) => status.phase === 'Running')
      await act.make(ReplicaSets, 'web', { spec: spec(2) })
      await act.until(ReplicaSets, 'web', ({ status }) => status.readyReplicas === 2)
      await act.change(Pods, 'loose', { metadata: { labels: { app: 'other' } } })
      await act.untilAll(Pods, (pods) => pods.length === 3)
      await act.until(ReplicaSets, 'web', ({ status }) => status.readyReplicas === 2)
    },
  },
  {
    name: 'ReplicaSet replaces failed and deleted pods',
    async run(act) {
      await act.make(ReplicaSets, 'web', { spec: spec(2) })
      await act.until(ReplicaSets, 'web', ({ status }) => status.readyReplicas === 2)
      const [first, second] = await act.list(Pods)
      await act.change(Pods, first?.metadata.name ?? '', { status: { phase: 'Failed' } }, 'status')
      await act.remove(Pods, second?.metadata.name ?? '')
      await act.untilAll(Pods, (pods) => pods.filter(({ status }) => status.phase === 'Running').length === 2)
    },
  },
  {
    name: 'ReplicaSet deletes pods with the lowest deletion cost on scale-down',
    async run(act) {
      await act.make(ReplicaSets, 'web', { spec: spec(4) })
      await act.until(ReplicaSets, 'web', ({ status }) => status.readyReplicas === 4)
      const pods = await act.list(Pods)
      const costs = ['3', '-7', '20', '1']
      const names = pods.map(({ metadata }) => metadata.name ?? '')
      for (const [at, name] of names.entries()) {
        const annotations = { 'controller.kubernetes.io/pod-deletion-cost': costs[at] }
        await act.change(Pods, name, { metadata: { annotations } })
      }
      await act.wait(1000)
      await act.change(ReplicaSets, 'web', { spec: { replicas: 2 } })
      await act.untilAll(Pods, (left) => left.length === 2)
      const kept = (await act.list(Pods)).map(({ metadata }) => costs[names.indexOf(metadata.name ?? '')])
      act.lost.push(`kept ${kept.toSorted((a, b) => Number(a) - Number(b)).join()}`)
    },
  },
  {
    name: 'ReplicationController creates pods, is scaled and deleted',
    async run(act) {
      await act.make(ReplicationControllers, 'web', { spec: { ...spec(3), selector: labels } })
      await act.until(ReplicationControllers, 'web', ({ status }) => status?.readyReplicas === 3)
      await act.change(ReplicationControllers, 'web', { spec: { replicas: 1 } })
      await act.until(ReplicationControllers, 'web', ({ status }) => status?.replicas === 1)
    },
  },
]
