/**
 * Tests the service accounts of a Windows worker's components on a whole API server: their permissions and their
 * removal.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { serviceAccountTokenController } from '#controllers/identity/serviceaccount-token.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { realClock } from '#lib/clock.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'
import { clusterBehind } from '#supervisor/windows/setup/cluster.ts'
import type { ClusterView } from '#supervisor/windows/setup/context.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

describe('permissions of components on a Windows worker', () => {
  let plane: ControlPlane
  let controllers: RunningControllers
  let client: ApiClient
  let cluster: ClusterView

  before(async () => {
    plane = await startControlPlane()
    const key = keyToPem(createKey('rsa-2048'))
    controllers = startControllers(plane, realClock, [serviceAccountTokenController], {
      settings: controllerSettings({ 'service-account-private-key-file': 'key' }),
      readFile: () => Promise.resolve(key),
    })
    client = controllers.client
    const never = (): Promise<never> => Promise.reject(new Error('not used here'))
    cluster = clusterBehind(client, new AbortController().signal, { endpoint: never, joinToken: never })
  })
  after(async () => {
    await controllers.stop()
    await plane.stop()
  })

  const may = async (user: string, verb: string, resource: string): Promise<boolean> => {
    const [path = '', subresource = ''] = resource.split('/')
    const [name = '', group = ''] = path.split('@')
    const resourceAttributes = { verb, resource: name, group, subresource, version: '*' }
    const spec = {
      user: `system:serviceaccount:kube-system:${user}`,
      groups: ['system:serviceaccounts'],
      resourceAttributes,
    }
    const { status } = await client.create(SubjectAccessReviews, { metadata: {}, spec })
    return status?.allowed ?? false
  }

  it('gives each component a stable token and the permissions it needs', async () => {
    const token = await cluster.componentToken('kube-proxy', 'win-1')
    assert.match(token, /^eyJ/)
    assert.equal(await cluster.componentToken('kube-proxy', 'win-1'), token)
    assert.notEqual(await cluster.componentToken('flannel', 'win-1'), token)
    const table: readonly (readonly [verb: string, resource: string, kubeProxy: boolean, flannel: boolean])[] = [
      ['list', 'services', true, false],
      ['watch', 'endpointslices@discovery.k8s.io', true, false],
      ['watch', 'nodes', true, true],
      ['patch', 'nodes/status', false, true],
      ['patch', 'nodes', false, false],
      ['delete', 'nodes', false, false],
      ['create', 'nodes/proxy', false, false],
      ['get', 'secrets', false, false],
      ['list', 'secrets', false, false],
      ['list', 'pods', false, false],
      ['create', 'pods', false, false],
      ['create', 'serviceaccounts/token', false, false],
      ['bind', 'clusterroles@rbac.authorization.k8s.io', false, false],
    ]
    for (const [verb, resource, kubeProxy, flannel] of table) {
      assert.equal(await may('windows-kube-proxy-win-1', verb, resource), kubeProxy, `kube-proxy ${verb} ${resource}`)
      assert.equal(await may('windows-flannel-win-1', verb, resource), flannel, `flannel ${verb} ${resource}`)
    }
  })

  it('deletes all objects of a revoked component, and no others', async () => {
    await cluster.componentToken('flannel', 'win-2')
    await cluster.componentToken('flannel', 'win-3')
    await cluster.revoke('flannel', 'win-2')
    await cluster.revoke('flannel', 'win-2')
    for (const kind of [ServiceAccounts, Secrets, ClusterRoles, ClusterRoleBindings] as readonly Kind[]) {
      const { items } = await client.list(kind, {})
      const names = items
        .map(({ metadata }) => metadata.name)
        .filter((name) => /^windows-flannel-win-[23]$/.test(name ?? ''))
      assert.deepEqual(names, ['windows-flannel-win-3'], kind.kind)
    }
  })

  it('include reading the client CA that the API server publishes', async () => {
    assert.match(await cluster.clientAuthority(), /^-----BEGIN CERTIFICATE-----/)
  })
})
