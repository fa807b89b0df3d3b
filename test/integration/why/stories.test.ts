/**
 * Twenty stories of users of Kubernetes who asked why: the situation, what they type, and what they read. The numbers are those of
 * issues of kubernetes/kubernetes, if no repository is named.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { HorizontalPodAutoscalers } from '#apis/autoscaling/v2.ts'
import {
  ConfigMaps,
  Namespaces,
  PersistentVolumeClaims,
  type Pod,
  Pods,
  ResourceQuotas,
  Services,
} from '#apis/core/v1.ts'
import { ClusterRoleBindings, RoleBindings } from '#apis/rbac/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { read } from './bed.ts'
import { deploymentOf, nameOfPod } from './workloads.ts'

interface Stage {
  readonly cluster: TestCluster
  /** Of ann, who may do everything. */
  readonly ann: ApiClient
  /** A namespace of its own. */
  readonly namespace: string
}

interface Story {
  readonly issue: string
  readonly title: string
  /** Returns what the user types; `POD` in it is replaced by the name that `act` returns. */
  readonly act: (stage: Stage) => Promise<string | void>
  readonly types: string
  readonly reads: readonly RegExp[]
}

type Loose = Record<string, unknown>

async function pod({ ann, namespace }: Stage, name: string, spec: Loose = {}, metadata: Loose = {}): Promise<void> {
  const containers = [{ name: 'app', image: 'app:1' }]
  await ann.create(Pods, {
    metadata: { namespace, name, ...metadata },
    spec: { containers, ...spec },
  } as unknown as Pod)
}

const requesting = (requests: Record<string, string>): Loose => ({
  containers: [{ name: 'app', image: 'app:1', resources: { requests } }],
})

const APP = { matchLabels: { app: 'web' } }

const STORIES: readonly Story[] = [
  {
    issue: '#4583',
    title: 'why is my pod pending',
    act: (stage) => pod(stage, 'web', requesting({ cpu: '100' })),
    types: 'why pod/web',
    reads: [
      /^Pod \S+ is Pending because no node fits: 7 nodes: not enough cpu; 3 nodes: .*not enough cpu/m,
      /requests 100 cpu, node-\d has \S+ of \S+ free/,
    ],
  },
  {
    issue: '#116713',
    title: 'which nodes lack memory',
    act: (stage) => pod(stage, 'web', requesting({ memory: '5Gi' })),
    types: 'why pod/web',
    reads: [
      /7 nodes: not enough memory; 3 nodes: taint team=batch:NoSchedule is not tolerated$/m,
      /refuses node-\d, node-\d, node-\d and 4 more: not enough memory; the pod requests 5Gi memory/,
      /request 1\.1Gi memory less \(3\.9Gi in all\): node-0, node-1, node-2 and 4 more fit then/,
      /tolerate the taint team=batch:NoSchedule: node-7, node-8, node-9 fit then/,
    ],
  },
  {
    issue: '#88077',
    title: 'the message does not say which label is missing',
    act: (stage) => pod(stage, 'web', { nodeSelector: { disk: 'nvme' } }),
    types: 'why pod/web',
    reads: [/label disk=nvme is missing/, /drop disk=nvme from the nodeSelector/],
  },
  {
    issue: '#101820',
    title: 'pods repel each other',
    act: async (stage) => {
      const term = { topologyKey: 'cluster', labelSelector: APP }
      const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
      const labels = { labels: { app: 'web' } }
      await pod(stage, 'one', {}, labels)
      await stage.cluster.settle()
      await pod(stage, 'two', { affinity }, labels)
    },
    types: 'why pod/two',
    reads: [
      /a pod that the pod's anti-affinity names is there/,
      /drop the anti-affinity to app=web by cluster: .* fit then/,
    ],
  },
  {
    issue: 'openshift/origin #6517',
    title: 'the claim of a pending pod is not bound',
    act: async (stage) => {
      const { ann, namespace } = stage
      const resources = { requests: { storage: '1Gi' } }
      const spec = { storageClassName: 'fast', accessModes: ['ReadWriteOnce'], resources }
      await ann.create(PersistentVolumeClaims, { metadata: { namespace, name: 'data' }, spec })
      await pod(stage, 'db', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] })
    },
    types: 'why pod/db',
    reads: [/Pending because its PersistentVolumeClaim \S+ is Pending because its StorageClass fast does not exist$/m],
  },
  {
    issue: 'cluster-capacity #137',
    title: 'a gate holds the pod',
    act: (stage) => pod(stage, 'web', { schedulingGates: [{ name: 'example.com/budget' }] }),
    types: 'why pod/web',
    reads: [/Pending because it has the scheduling gate example\.com\/budget$/m],
  },
  {
    issue: 'deis #1182',
    title: 'a quota refuses pods, and only the ReplicaSet knows',
    act: async ({ ann, namespace, cluster }) => {
      await ann.create(ResourceQuotas, { metadata: { namespace, name: 'few' }, spec: { hard: { pods: '1' } } })
      await cluster.settle()
      await ann.create(Deployments, deploymentOf('web', { replicas: 2, namespace }))
    },
    types: 'why deployment/web',
    reads: [/lacks pods because the API server refuses them: .* exceeded quota: few/, /raise the ResourceQuota few/],
  },
  {
    issue: '#80038',
    title: 'which user deleted the pod, and when',
    act: async (stage) => {
      await pod(stage, 'web')
      await stage.cluster.settle()
      await stage.ann.delete(Pods, { namespace: stage.namespace, name: 'web' })
    },
    types: 'why deleted pod/web',
    reads: [/^Pod \S+ was deleted at 2026-01-01T\S+ because ann deleted it$/m],
  },
  {
    issue: '#56272',
    title: 'a pod of a Deployment disappeared',
    act: async ({ ann, namespace, cluster }) => {
      await ann.create(Deployments, deploymentOf('web', { replicas: 2, namespace }))
      await cluster.settle()
      const name = await nameOfPod(cluster, 'web', namespace)
      const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-1' }
      await ann.patch(Pods, { namespace, name }, { type: 'merge', value: { metadata: { annotations } } })
      await cluster.settle()
      await ann.patch(Deployments, { namespace, name: 'web' }, { type: 'merge', value: { spec: { replicas: 1 } } })
      return name
    },
    types: 'why pod/POD',
    reads: [
      /more pods than replicas: ann set spec\.replicas of Deployment web from 2 to 1$/m,
      /chose it among 2 pods, because its deletion cost was lower \(recomputed\)/,
    ],
  },
  {
    issue: '#69980',
    title: 'the owner was deleted',
    act: async ({ ann, namespace, cluster }) => {
      await ann.create(Deployments, deploymentOf('web', { namespace }))
      await cluster.settle()
      const name = await nameOfPod(cluster, 'web', namespace)
      await ann.delete(Deployments, { namespace, name: 'web' })
      return name
    },
    types: 'why pod/POD',
    reads: [/its owner ReplicaSet .* because its owner Deployment .* because ann deleted it$/m],
  },
  {
    issue: '#77992',
    title: 'a namespace was deleted with all that is in it',
    act: async ({ ann, namespace }) => {
      await ann.create(ConfigMaps, { metadata: { namespace, name: 'settings' } })
      await ann.delete(Namespaces, { name: namespace })
    },
    types: 'why deleted configmap/settings',
    reads: [/because its Namespace \S+ was deleted at \S+ because ann deleted it$/m],
  },
  {
    issue: '#17881',
    title: 'a more important pod took the place',
    act: async (stage) => {
      const nodeSelector = { 'kubernetes.io/hostname': 'node-6' }
      await stage.ann.create(PriorityClasses, { metadata: { name: 'urgent' }, value: 1000 })
      await pod(stage, 'low', { ...requesting({ cpu: '3' }), nodeSelector })
      await stage.cluster.settle()
      await pod(stage, 'high', { ...requesting({ cpu: '3' }), nodeSelector, priorityClassName: 'urgent' })
    },
    types: 'why deleted pod/low',
    reads: [/because the scheduler preempted it: /],
  },
  {
    issue: 'RBAC without a reason',
    title: 'a request is forbidden',
    act: async ({ ann, namespace }) => {
      await ann.create(RoleBindings, {
        metadata: { namespace, name: 'jane' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
      })
    },
    types: 'why can-i create deployments --as jane',
    reads: [
      /^jane may not create deployments\.apps in the namespace/,
      /jane may get, list, watch deployments\.apps/,
      /--clusterrole=edit --user=jane/,
    ],
  },
  {
    issue: 'a Service without endpoints',
    title: 'a label is misspelt',
    act: async (stage) => {
      const { ann, namespace } = stage
      await pod(stage, 'web-1', {}, { labels: { app: 'web' } })
      const spec = { selector: { app: 'wbe' }, ports: [{ port: 80 }] }
      await ann.create(Services, { metadata: { namespace, name: 'web' }, spec } as never)
    },
    types: 'why service/web',
    reads: [
      /no endpoints because no pod has the labels app=wbe; the nearest, \S+\/web-1, has app=web instead of app=wbe$/m,
    ],
  },
  {
    issue: 'a pod that restarts',
    title: 'its limit of memory is too low',
    act: async (stage) => {
      const { cluster, namespace } = stage
      cluster.inject({ type: 'oom', namespace })
      const containers = [{ name: 'app', image: 'app:1', resources: { limits: { memory: '64Mi' } } }]
      await pod(stage, 'web', { containers })
      await cluster.clock.advance('1m')
    },
    types: 'why pod/web',
    reads: [/because container app used more memory than its limit of 64Mi/],
  },
  {
    issue: 'a rollout that hangs',
    title: 'the image does not exist',
    act: async ({ ann, namespace, cluster }) => {
      cluster.inject({ type: 'image-pull-error', image: 'app:typo', message: 'not found' })
      await ann.create(Deployments, deploymentOf('web', { namespace, container: { image: 'app:typo' } }))
      await cluster.clock.advance('30s')
    },
    types: 'why deployment/web',
    reads: [
      /has 1 of 1 pod not ready: Pod \S+ does not start because the image app:typo of container app cannot be pulled: .*not found/,
    ],
  },
  {
    issue: '#102274',
    title: 'an object cannot be deleted',
    act: async ({ ann, namespace }) => {
      await ann.create(ConfigMaps, { metadata: { namespace, name: 'kept', finalizers: ['example.com/backup'] } })
      await ann.delete(ConfigMaps, { namespace, name: 'kept' })
    },
    types: 'why configmap/kept',
    reads: [/is being deleted, and stays because it has the finalizer example\.com\/backup$/m],
  },
  {
    issue: 'a claim that waits',
    title: 'nothing uses the claim',
    act: async ({ ann, namespace }) => {
      const fields = { provisioner: 'example.com/disks', volumeBindingMode: 'WaitForFirstConsumer' }
      await ann.create(StorageClasses, { metadata: { name: 'late' }, ...fields })
      const resources = { requests: { storage: '1Gi' } }
      const spec = { storageClassName: 'late', accessModes: ['ReadWriteOnce'], resources }
      await ann.create(PersistentVolumeClaims, { metadata: { namespace, name: 'data' }, spec })
    },
    types: 'why pvc/data',
    reads: [/waits for the first consumer, and no pod uses it$/m],
  },
  {
    issue: 'an autoscaler that does nothing',
    title: 'there are no metrics',
    act: async ({ ann, namespace, cluster }) => {
      await ann.create(Deployments, deploymentOf('web', { namespace }))
      const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
      const spec = { scaleTargetRef, maxReplicas: 3 }
      await ann.create(HorizontalPodAutoscalers, { metadata: { namespace, name: 'web' }, spec })
      await cluster.clock.advance('30s')
    },
    types: 'why hpa/web',
    reads: [/does not scale Deployment web because /],
  },
  {
    issue: '#11993',
    title: 'the node of a pod was lost',
    act: async (stage) => {
      const { cluster } = stage
      const tolerations = ['not-ready', 'unreachable'].map((what) => {
        return { key: `node.kubernetes.io/${what}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10 }
      })
      await pod(stage, 'web', { tolerations, nodeSelector: { 'kubernetes.io/hostname': 'node-3' } })
      await cluster.settle()
      const end = cluster.inject({ type: 'network-cut', node: 'node-3' })
      await cluster.clock.advance('2m')
      end()
    },
    types: 'why deleted pod/web',
    reads: [
      /because node node-3 was silent and got the taint node\.kubernetes\.io\/unreachable:NoExecute$/m,
      /^ {2}\S+ \S+ found node node-3 silent and set its condition Ready to Unknown, because of leases\.coordination\.k8s\.io\/kube-node-lease\/node-3@\d+$/m,
    ],
  },
]

describe('stories', () => {
  let cluster: TestCluster
  before(async () => {
    const capacity = { cpu: '4', memory: '4Gi', pods: '110' }
    const nodes = Array.from({ length: 10 }, (_, at) => ({
      name: `node-${at}`,
      capacity: at < 7 ? capacity : { ...capacity, memory: '16Gi' },
      labels: { cluster: 'one' },
      ...(at >= 7 && { taints: [{ key: 'team', value: 'batch', effect: 'NoSchedule' }] }),
    }))
    cluster = await startCluster({ clock: 'virtual', nodes })
    await cluster.client.create(ClusterRoleBindings, {
      metadata: { name: 'ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
  })
  after(() => cluster?.stop())

  it('are twenty', () => assert.equal(STORIES.length, 20))

  for (const [at, { issue, title, act, types, reads }] of STORIES.entries()) {
    it(`${issue}: ${title}`, async () => {
      const namespace = `story-${at + 1}`
      const ann = cluster.clientAs({ name: 'ann' })
      await ann.create(Namespaces, { metadata: { name: namespace } })
      const name = await act({ cluster, ann, namespace })
      await cluster.settle({ limit: '5m' }).catch(() => undefined)
      const text = await read(cluster, `${types.replace('POD', name ?? '')} -n ${namespace}`)
      for (const pattern of reads) assert.match(text, pattern)
    })
  }
})
