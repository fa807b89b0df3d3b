/**
 * Scenarios of StatefulSets and DaemonSets: order, revisions, partitions, retention of claims, rolling updates by node.
 */
import { DaemonSets, type StatefulSet, StatefulSets } from '#apis/apps/v1.ts'
import { PersistentVolumeClaims, Pods } from '#apis/core/v1.ts'

import { template } from './rollouts.ts'
import type { Act, Allowance, Scenario } from './scenario.ts'

const selector = { matchLabels: { app: 'web' } }
const SLOW = { 'stand-in/after-ms': '300' }

const isSettled = ({ metadata, spec, status }: StatefulSet): boolean =>
  status.observedGeneration === metadata.generation &&
  status.readyReplicas === spec.replicas &&
  status.replicas === spec.replicas

async function makeSet(act: Act, replicas: number, more: object = {}): Promise<void> {
  await act.make(StatefulSets, 'set', {
    spec: { replicas, serviceName: 'set', selector, template: template('one', SLOW), ...more },
  })
  await act.until(StatefulSets, 'set', isSettled)
}

const isRolled = (set: StatefulSet): boolean =>
  isSettled(set) && set.status.currentRevision === set.status.updateRevision

const claims = {
  volumeClaimTemplates: [
    {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'none', resources: { requests: { storage: '1Gi' } } },
    },
  ],
}

const image = (name: string): object => ({ spec: { template: template(name, SLOW) } })

async function makeDaemons(act: Act, more: object = {}): Promise<void> {
  await act.make(DaemonSets, 'agent', { spec: { selector, template: template(), ...more } })
  await act.until(DaemonSets, 'agent', ({ status }) => status.numberReady === 3)
}

const isEverywhere = ({ metadata, status }: { metadata: { generation?: number }; status: object }): boolean => {
  const { observedGeneration, updatedNumberScheduled, numberAvailable, desiredNumberScheduled } = status as Record<
    string,
    number
  >
  return (
    observedGeneration === metadata.generation &&
    updatedNumberScheduled === desiredNumberScheduled &&
    numberAvailable === desiredNumberScheduled
  )
}

const deletedAgain: Allowance = {
  line: /^. StatefulSet set Normal SuccessfulDelete /,
  isCount: true,
  why: "upstream's deletes a pod once more when it has not seen yet that the pod is going",
}

export const SETS: readonly Scenario[] = [
  { name: 'StatefulSet starts its pods one after the other', run: (act) => makeSet(act, 3) },
  {
    name: 'StatefulSet with podManagementPolicy Parallel starts its pods at once',
    run: (act) => makeSet(act, 3, { podManagementPolicy: 'Parallel' }),
  },
  {
    name: 'StatefulSet is scaled down from the highest ordinal and up again',
    async run(act) {
      await makeSet(act, 3)
      for (const replicas of [1, 2]) {
        await act.change(StatefulSets, 'set', { spec: { replicas } })
        await act.until(StatefulSets, 'set', isSettled)
      }
    },
  },
  {
    name: 'StatefulSet rolls out from the highest ordinal',
    allows: [deletedAgain],
    async run(act) {
      await makeSet(act, 3)
      await act.change(StatefulSets, 'set', image('two'))
      await act.until(StatefulSets, 'set', isRolled)
    },
  },
  {
    name: 'StatefulSet rolls out down to its partition',
    allows: [deletedAgain],
    async run(act) {
      await makeSet(act, 3, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } })
      await act.change(StatefulSets, 'set', image('two'))
      await act.until(StatefulSets, 'set', (set) => isSettled(set) && set.status.updatedReplicas === 1)
      await act.wait(1500)
      await act.change(StatefulSets, 'set', { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } })
      await act.until(StatefulSets, 'set', isRolled)
    },
  },
  {
    name: 'StatefulSet with updateStrategy OnDelete',
    async run(act) {
      await makeSet(act, 2, { updateStrategy: { type: 'OnDelete' } })
      await act.change(StatefulSets, 'set', image('two'))
      await act.wait(1500)
      await act.remove(Pods, 'set-0')
      await act.until(StatefulSets, 'set', (set) => isSettled(set) && set.status.updatedReplicas === 1)
    },
  },
  {
    name: 'StatefulSet is rolled back',
    allows: [deletedAgain],
    async run(act) {
      await makeSet(act, 2)
      for (const name of ['two', 'one']) {
        await act.change(StatefulSets, 'set', image(name))
        await act.until(StatefulSets, 'set', isRolled)
      }
    },
  },
  {
    name: 'StatefulSet with revisionHistoryLimit',
    async run(act) {
      await makeSet(act, 1, { revisionHistoryLimit: 1 })
      for (const name of ['two', 'three', 'four']) {
        await act.change(StatefulSets, 'set', image(name))
        await act.until(StatefulSets, 'set', isRolled)
      }
      await act.wait(1000)
    },
  },
  {
    name: 'StatefulSet with a start ordinal',
    async run(act) {
      await makeSet(act, 2, { ordinals: { start: 5 } })
      await act.change(StatefulSets, 'set', { spec: { ordinals: { start: 6 } } })
      await act.untilAll(Pods, (pods) => pods.map(({ metadata }) => metadata.name).join() === 'set-6,set-7')
      await act.until(StatefulSets, 'set', isSettled)
    },
  },
  {
    name: 'StatefulSet keeps the claims of deleted pods',
    async run(act) {
      await makeSet(act, 2, claims)
      await act.change(StatefulSets, 'set', { spec: { replicas: 1 } })
      await act.until(StatefulSets, 'set', isSettled)
    },
  },
  {
    name: 'StatefulSet deletes the claims of pods removed by scale-down',
    async run(act) {
      await makeSet(act, 2, {
        ...claims,
        persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete', whenDeleted: 'Retain' },
      })
      await act.change(StatefulSets, 'set', { spec: { replicas: 1 } })
      await act.until(StatefulSets, 'set', isSettled)
      await act.wait(1000)
    },
  },
  {
    name: 'deleted StatefulSet deletes its claims',
    async run(act) {
      await makeSet(act, 2, {
        ...claims,
        persistentVolumeClaimRetentionPolicy: { whenScaled: 'Retain', whenDeleted: 'Delete' },
      })
      await act.untilAll(PersistentVolumeClaims, (all) => all.every(({ metadata }) => metadata.ownerReferences))
      await act.remove(StatefulSets, 'set', { propagationPolicy: 'Background' })
      await act.untilAll(Pods, (pods) => pods.length === 0)
      await act.wait(1000)
    },
  },
  {
    name: 'StatefulSet replaces a failed pod',
    async run(act) {
      await makeSet(act, 2)
      await act.change(Pods, 'set-1', { status: { phase: 'Failed' } }, 'status')
      await act.wait(500)
      await act.until(StatefulSets, 'set', isSettled)
    },
  },
  {
    name: 'StatefulSet adopts its pods after an orphaning deletion',
    async run(act) {
      await makeSet(act, 2)
      await act.remove(StatefulSets, 'set', { propagationPolicy: 'Orphan' })
      await act.gone(StatefulSets, 'set')
      await makeSet(act, 2)
    },
  },
  {
    name: 'StatefulSet waits for minReadySeconds',
    run: (act) => makeSet(act, 2, { minReadySeconds: 2 }),
  },
  {
    name: 'StatefulSet with maxUnavailable updates several pods at once',
    async run(act) {
      await makeSet(act, 4, {
        podManagementPolicy: 'Parallel',
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 2 } },
      })
      await act.change(StatefulSets, 'set', image('two'))
      await act.until(StatefulSets, 'set', isRolled)
    },
  },
  { name: 'DaemonSet runs a pod on each node', run: (act) => makeDaemons(act) },
  {
    name: 'DaemonSet rolls out with maxUnavailable',
    async run(act) {
      await makeDaemons(act)
      await act.change(DaemonSets, 'agent', { spec: { template: template('two') } })
      await act.until(DaemonSets, 'agent', isEverywhere)
    },
  },
  {
    name: 'DaemonSet rolls out with maxSurge',
    async run(act) {
      const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 }
      await makeDaemons(act, { updateStrategy: { type: 'RollingUpdate', rollingUpdate } })
      await act.change(DaemonSets, 'agent', { spec: { template: template('two') } })
      await act.until(DaemonSets, 'agent', isEverywhere)
    },
  },
  {
    name: 'DaemonSet with updateStrategy OnDelete',
    async run(act) {
      await makeDaemons(act, { updateStrategy: { type: 'OnDelete' } })
      await act.change(DaemonSets, 'agent', { spec: { template: template('two') } })
      await act.wait(1500)
      const [pod] = await act.list(Pods)
      await act.remove(Pods, pod?.metadata.name ?? '')
      await act.until(DaemonSets, 'agent', ({ status }) => status.updatedNumberScheduled === 1)
      await act.until(DaemonSets, 'agent', ({ status }) => status.numberReady === 3)
    },
  },
  {
    name: 'DaemonSet follows changes of its node selector',
    async run(act) {
      await act.make(DaemonSets, 'agent', {
        spec: { selector, template: template('one', {}, { nodeSelector: { 'kubernetes.io/hostname': 'virtual-1' } }) },
      })
      await act.until(DaemonSets, 'agent', ({ status }) => status.numberReady === 1)
      await act.change(DaemonSets, 'agent', { spec: { template: { spec: { nodeSelector: null } } } })
      await act.until(DaemonSets, 'agent', isEverywhere)
    },
  },
  {
    name: 'DaemonSet replaces a failed pod',
    async run(act) {
      await makeDaemons(act)
      const [pod] = await act.list(Pods)
      await act.change(Pods, pod?.metadata.name ?? '', { status: { phase: 'Failed' } }, 'status')
      await act.gone(Pods, pod?.metadata.name ?? '')
      await act.until(DaemonSets, 'agent', ({ status }) => status.numberReady === 3)
    },
  },
]
