/** The API calls of a worker's set-up to its cluster, with administrator rights. */
import { ConfigMaps, Nodes, type Secret, Secrets, ServiceAccounts, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { sleep } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import { CrashError } from '../../outcome.ts'
import type { ClusterView, Component } from './context.ts'

/** Values that this client cannot determine itself. */
type Others = Pick<ClusterView, 'endpoint' | 'joinToken'>

export function clusterBehind(client: ApiClient, signal: AbortSignal, others: Others): ClusterView {
  return {
    ...others,
    dnsServiceIp: () => dnsServiceIp(client, signal),
    isNodeThere: async (name) => (await found(client.get(Nodes, { name }, { signal }))) !== undefined,
    async deleteNode(name) {
      await found(client.delete(Nodes, { name }, { signal }))
    },
    async clientAuthority() {
      const where = { namespace: NAMESPACE, name: 'extension-apiserver-authentication' }
      const pem = (await found(client.get(ConfigMaps, where, { signal })))?.data?.['client-ca-file']
      if (pem === undefined || pem === '')
        throw new CrashError('The API server accepts no client certificates: start it with --client-ca-file')
      return pem
    },
    async componentToken(component, node) {
      for (const [kind, object] of accessOf(component, node)) {
        await client.create(kind, object, { signal }).catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
        })
      }
      return tokenOf(client, nameOf(component, node), signal)
    },
    async revoke(component, node) {
      // Deleting the account first invalidates its token.
      for (const [kind, { metadata }] of accessOf(component, node)) {
        const { namespace, name = '' } = metadata
        await found(client.delete(kind, { name, ...(namespace !== undefined && { namespace }) }, { signal }))
      }
    },
  }
}

async function dnsServiceIp(client: ApiClient, signal: AbortSignal): Promise<string> {
  const { items } = await client.list(Services, { namespace: NAMESPACE, signal })
  const address = items.find(({ metadata }) => metadata.name?.includes('dns'))?.spec.clusterIP
  if (address === undefined || address === '' || address === 'None')
    throw new CrashError('The cluster has no Service for DNS in kube-system: install one before its Windows workers')
  return address
}

/** Undefined if it does not exist. */
function found<T>(request: Promise<T>): Promise<T | undefined> {
  return request.catch((error: unknown) => {
    if (isNotFound(error)) return undefined
    throw error
  })
}

const NAMESPACE = 'kube-system'
const RBAC = 'rbac.authorization.k8s.io'

/** By component: an existing cluster role, or the rules of a new one. */
const ROLES: Readonly<Record<Component, string | readonly object[]>> = {
  'kube-proxy': 'system:node-proxier',
  flannel: [
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  ],
}

const nameOf = (component: Component, node: string): string => `windows-${component}-${node}`

/** The objects that grant a component its rights, the account first. Creates a role if the cluster has none. */
export function accessOf(component: Component, node: string): readonly (readonly [Kind, KubeObject])[] {
  const name = nameOf(component, node)
  const role = ROLES[component]
  const metadata = { name, namespace: NAMESPACE }
  const isOwnRole = typeof role !== 'string'
  const binding = {
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: isOwnRole ? name : role },
    subjects: [{ kind: 'ServiceAccount', ...metadata }],
  }
  const annotations = { 'kubernetes.io/service-account.name': name }
  const token = { metadata: { ...metadata, annotations }, type: 'kubernetes.io/service-account-token' }
  return [
    [ServiceAccounts, { metadata }],
    ...(isOwnRole ? [[ClusterRoles, { metadata: { name }, rules: role } as KubeObject] as const] : []),
    [ClusterRoleBindings, binding],
    [Secrets, token],
  ]
}

const TOKEN_TRIES = 30

/** The controller manager adds the token to the Secret. */
async function tokenOf(client: ApiClient, name: string, signal: AbortSignal): Promise<string> {
  for (let tries = 0; tries < TOKEN_TRIES; tries++) {
    const { data }: Secret = await client.get(Secrets, { namespace: NAMESPACE, name }, { signal })
    if (data?.['token'] !== undefined) return Buffer.from(data['token'], 'base64').toString()
    await sleep(client.clock, 1000, signal)
  }
  throw new CrashError(
    `The Secret ${NAMESPACE}/${name} got no token within ${TOKEN_TRIES} s: is kube-controller-manager running?`,
  )
}
