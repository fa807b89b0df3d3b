/** Scenarios of cluster objects: quotas, service accounts, owner references, namespaces, roles, nodes and tokens. */
import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { Deployments } from '#apis/apps/v1.ts'
import {
  ConfigMaps,
  Namespaces,
  Nodes,
  Pods,
  ResourceQuotas,
  Secrets,
  ServiceAccounts,
  Services,
} from '#apis/core/v1.ts'
import { ClusterRoles } from '#apis/rbac/v1.ts'
import { isForbidden } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { template } from './rollouts.ts'
import type { Act, Scenario } from './scenario.ts'

async function owned(act: Act, owner: { kind: string; uid: string; name: string }, block = false): Promise<void> {
  const reference = { apiVersion: 'v1', ...owner, ...(block && { blockOwnerDeletion: true }) }
  for (const name of ['a', 'b']) await act.make(Secrets, name, { metadata: { ownerReferences: [reference] } })
}

async function owner(
  act: Act,
  name = 'owner',
  metadata: object = {},
): Promise<{ kind: string; uid: string; name: string }> {
  const { metadata: made } = await act.make(ConfigMaps, name, { metadata })
  return { kind: 'ConfigMap', uid: made.uid ?? '', name }
}

const FINALIZER = 'example.com/hold'

export const CLUSTER: readonly Scenario[] = [
  {
    name: 'new namespace gets the default service account and the root CA',
    run: (act) => act.until(ConfigMaps, 'kube-root-ca.crt', () => true),
  },
  {
    name: 'default service account and root CA are restored after deletions and changes',
    async run(act) {
      await act.until(ConfigMaps, 'kube-root-ca.crt', () => true)
      const {
        metadata: { uid },
      } = (await act.get(ServiceAccounts, 'default')) ?? { metadata: { uid: '' } }
      await act.remove(ServiceAccounts, 'default')
      await act.until(ServiceAccounts, 'default', ({ metadata }) => metadata.uid !== uid)
      await act.change(ConfigMaps, 'kube-root-ca.crt', { data: { 'ca.crt': 'x', more: 'y' } })
      await act.until(ConfigMaps, 'kube-root-ca.crt', ({ data }) => data?.['more'] === undefined)
    },
  },
  {
    name: 'token Secret gets its token, and is deleted with its service account',
    async run(act) {
      await act.make(ServiceAccounts, 'robot')
      const annotations = { 'kubernetes.io/service-account.name': 'robot' }
      for (const name of ['kept', 'other'])
        await act.make(Secrets, name, {
          metadata: {
            annotations: name === 'kept' ? annotations : { 'kubernetes.io/service-account.name': 'default' },
          },
          type: 'kubernetes.io/service-account-token',
        })
      await act.until(Secrets, 'kept', ({ data }) => data?.['token'] !== undefined)
      await act.until(Secrets, 'other', ({ data }) => data?.['token'] !== undefined)
      await act.remove(ServiceAccounts, 'robot')
      await act.gone(Secrets, 'kept')
    },
  },
  {
    name: 'ResourceQuota is not exceeded by concurrent creations',
    async run(act) {
      await act.make(ResourceQuotas, 'few', { spec: { hard: { pods: '3', 'count/configmaps': '4', services: '1' } } })
      await act.until(ResourceQuotas, 'few', ({ status }) => status?.used !== undefined)
      const pods = Array.from({ length: 12 }, (_, at) =>
        act.make(Pods, `pod-${at % 12}`, template()).catch((error: unknown) => {
          if (!isForbidden(error)) throw error
        }),
      )
      await Promise.all(pods)
      await act.make(Services, 'one', { spec: { ports: [{ port: 80 }] } })
      const [first] = await act.list(Pods)
      for (const pod of await act.list(Pods)) if (pod !== first) await act.remove(Pods, pod.metadata.name ?? '')
      await act.until(ResourceQuotas, 'few', ({ status }) => status?.used?.['pods'] === '1')
      for (const pod of await act.list(Pods)) await act.remove(Pods, pod.metadata.name ?? '')
      await act.until(ResourceQuotas, 'few', ({ status }) => status?.used?.['pods'] === '0')
    },
  },
  {
    name: 'ResourceQuota with scopes counts only pods within them',
    async run(act) {
      await act.make(ResourceQuotas, 'best', { spec: { hard: { pods: '5' }, scopes: ['BestEffort'] } })
      await act.make(ResourceQuotas, 'rest', {
        spec: { hard: { pods: '5', 'requests.cpu': '4' }, scopes: ['NotBestEffort'] },
      })
      for (const name of ['best', 'rest'])
        await act.until(ResourceQuotas, name, ({ status }) => status?.used !== undefined)
      const resources = { requests: { cpu: '500m' } }
      await act.make(Pods, 'best', template())
      await act.make(Pods, 'rest', template('one', {}, { containers: [{ name: 'c', image: 'i', resources }] }))
      await act.until(ResourceQuotas, 'rest', ({ status }) => status?.used?.['requests.cpu'] === '500m')
      await act.remove(ResourceQuotas, 'best')
    },
  },
  {
    name: 'dependents are deleted after their owner in the background',
    async run(act) {
      await owned(act, await owner(act))
      await act.remove(ConfigMaps, 'owner', { propagationPolicy: 'Background' })
      await act.gone(Secrets, 'b')
    },
  },
  {
    name: 'dependents are deleted before their owner in the foreground',
    async run(act) {
      await owned(act, await owner(act), true)
      await act.change(Secrets, 'a', { metadata: { finalizers: [FINALIZER] } })
      await act.remove(ConfigMaps, 'owner', { propagationPolicy: 'Foreground' })
      await act.gone(Secrets, 'b')
      await act.wait(1500)
      if ((await act.get(ConfigMaps, 'owner')) === undefined) act.lost.push('an owner that waits')
      await act.change(Secrets, 'a', { metadata: { finalizers: null } })
      await act.gone(ConfigMaps, 'owner')
    },
  },
  {
    name: 'dependents stay without owner references after an orphaning deletion',
    async run(act) {
      await owned(act, await owner(act))
      await act.remove(ConfigMaps, 'owner', { propagationPolicy: 'Orphan' })
      await act.gone(ConfigMaps, 'owner')
      await act.until(Secrets, 'b', ({ metadata }) => metadata.ownerReferences === undefined)
    },
  },
  {
    name: 'object whose only owner does not exist is deleted, and one with another owner stays',
    async run(act) {
      await owned(act, { kind: 'ConfigMap', uid: '00000000-0000-4000-8000-000000000000', name: 'nobody' })
      const real = await owner(act)
      const both = [real, { kind: 'ConfigMap', uid: '00000000-0000-4000-8000-000000000001', name: 'nobody' }]
      await act.make(Secrets, 'both', {
        metadata: { ownerReferences: both.map((one) => ({ apiVersion: 'v1', ...one })) },
      })
      await act.gone(Secrets, 'b')
      await act.wait(1500)
    },
  },
  {
    name: 'owner in another namespace is ignored with an event',
    async run(act) {
      const node = await act.client.get(Nodes, { name: 'virtual-1' })
      const { uid = '' } = node.metadata
      await act.make(Secrets, 'of-a-node', {
        metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'virtual-1', uid }] },
      })
      const role = await act.make(ClusterRoles, `${act.ns}-role`, {
        metadata: { ownerReferences: [{ ...(await owner(act)), apiVersion: 'v1' }] },
        rules: [],
      })
      await act.wait(3000)
      if (role.metadata.name !== undefined) await act.get(ClusterRoles, role.metadata.name)
    },
    clusterKinds: [ClusterRoles],
  },
  {
    name: 'namespace waits for the finalizers of its objects',
    async run(act) {
      const name = `${act.ns}-own`
      await act.make(Namespaces, name)
      await act.client.create(ConfigMaps, { metadata: { namespace: name, name: 'held', finalizers: [FINALIZER] } })
      await act.client.create(Secrets, { metadata: { namespace: name, name: 'free' } })
      await act.remove(Namespaces, name)
      await act.until(Namespaces, name, ({ status }) =>
        (status?.conditions ?? []).some(
          ({ type, status: is }) => type === 'NamespaceFinalizersRemaining' && is === 'True',
        ),
      )
    },
    clusterKinds: [Namespaces],
  },
  {
    name: 'deleted namespace deletes all its objects',
    async run(act) {
      const name = `${act.ns}-own`
      await act.make(Namespaces, name)
      const labels = { app: 'web' }
      await act.wait(1000)
      await act.client.create(Deployments, {
        metadata: { namespace: name, name: 'web' },
        spec: { replicas: 2, selector: { matchLabels: labels }, template: template() },
      } as never)
      await act.wait(2000)
      await act.remove(Namespaces, name)
      await act.gone(Namespaces, name)
    },
    clusterKinds: [Namespaces],
  },
  {
    name: 'ClusterRole is aggregated from others',
    async run(act) {
      const label = `${act.ns}.example.com/aggregate`
      const part = (verb: string): object => ({
        metadata: { labels: { [label]: 'true' } },
        rules: [{ apiGroups: [''], resources: ['pods'], verbs: [verb] }],
      })
      await act.make(ClusterRoles, `${act.ns}-b`, part('list'))
      await act.make(ClusterRoles, `${act.ns}-whole`, {
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] },
      })
      await act.until(ClusterRoles, `${act.ns}-whole`, ({ rules }) => rules?.length === 1)
      await act.make(ClusterRoles, `${act.ns}-a`, part('get'))
      await act.until(ClusterRoles, `${act.ns}-whole`, ({ rules }) => rules?.length === 2)
    },
    clusterKinds: [ClusterRoles],
  },
  {
    name: 'pods of a missing node are deleted',
    async run(act) {
      const pod = { ...template(), spec: { nodeName: 'nowhere', containers: [{ name: 'c', image: 'i' }] } }
      await act.make(Pods, 'lost', pod)
      await act.gone(Pods, 'lost')
    },
  },
  {
    name: 'NoExecute taint evicts pods, some after tolerationSeconds',
    isAlone: true,
    async run(act) {
      const tolerates = (seconds: number): object => ({
        nodeName: 'virtual-3',
        tolerations: [{ key: 'bad', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds }],
      })
      await act.make(Pods, 'now', template('one', {}, { nodeName: 'virtual-3' }))
      await act.make(Pods, 'later', template('one', {}, tolerates(2)))
      await act.make(Pods, 'much-later', template('one', {}, tolerates(3600)))
      await act.until(Pods, 'much-later', ({ status }) => status.phase === 'Running')
      await act.client.patch(
        Nodes,
        { name: 'virtual-3' },
        { type: 'merge', value: { spec: { taints: [{ key: 'bad', effect: 'NoExecute' }] } } },
      )
      await act.gone(Pods, 'now')
      await act.gone(Pods, 'later')
      await act.client.patch(Nodes, { name: 'virtual-3' }, { type: 'merge', value: { spec: { taints: null } } })
      await act.wait(1500)
    },
  },
  {
    name: 'bootstrap tokens sign cluster-info until they expire',
    isAlone: true,
    async run(act) {
      const token = (id: string, seconds: number): object => ({
        metadata: { namespace: 'kube-system', name: `bootstrap-token-${id}` },
        type: 'bootstrap.kubernetes.io/token',
        stringData: {
          'token-id': id,
          'token-secret': '0123456789abcdef',
          'usage-bootstrap-signing': 'true',
          expiration: timeOf(act.clock.now() + seconds * 1000),
        },
      })
      await act.client.create(ConfigMaps, {
        metadata: { namespace: 'kube-public', name: 'cluster-info' },
        data: { kubeconfig: 'clusters: []' },
      })
      await act.client.create(Secrets, token('aaaaaa', 3600) as never)
      await act.client.create(Secrets, token('bbbbbb', 4) as never)
      await act.wait(8000)
      const { data } = await act.client.get(ConfigMaps, { namespace: 'kube-public', name: 'cluster-info' })
      const left = (await act.client.list(Secrets, { namespace: 'kube-system' })).items
      const names = left.map(({ metadata }) => metadata.name).filter((name) => name?.startsWith('bootstrap-token'))
      act.lost.push(`cluster-info has ${Object.entries(data ?? {}).join(' · ')}; tokens: ${names.join()}`)
      for (const name of names) await act.client.delete(Secrets, { namespace: 'kube-system', name: name ?? '' })
      await act.client.delete(ConfigMaps, { namespace: 'kube-public', name: 'cluster-info' })
    },
  },
  {
    name: 'custom resources are garbage-collected like other objects',
    async run(act) {
      const group = `${act.ns}.example.com`
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
      await act.client.create(CustomResourceDefinitions, {
        metadata: { name: `things.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural: 'things', kind: 'Thing' },
          versions: [{ name: 'v1', served: true, storage: true, schema }],
        },
      })
      await act.until(CustomResourceDefinitions, `things.${group}`, ({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === 'Established' && is === 'True'),
      )
      const path = `/apis/${group}/v1/namespaces/${act.ns}/things`
      const answer = await act.client.ask({
        method: 'POST',
        path,
        body: { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'it' } },
      })
      const { metadata } = JSON.parse(await answer.text(1 << 20)) as { metadata: { uid: string } }
      const reference = { apiVersion: `${group}/v1`, kind: 'Thing', name: 'it', uid: metadata.uid }
      await act.make(Secrets, 'of-it', { metadata: { ownerReferences: [reference] } })
      // The collector looks every half minute for kinds that are new.
      await act.wait(35_000)
      await act.client.ask({ method: 'DELETE', path: `${path}/it` })
      await act.gone(Secrets, 'of-it')
      await act.client.delete(CustomResourceDefinitions, { name: `things.${group}` })
    },
  },
]
