/** Tests explanations of refused requests: the nearest permissions, as far as the asker may list RBAC objects. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Namespaces } from '#apis/core/v1.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import { whyForbidden } from '#explain/explain.ts'
import type { Explanation } from '#explain/explanation.ts'
import { Reader } from '#explain/reader.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { falseEvidence, read } from './bed.ts'

const apiGroup = 'rbac.authorization.k8s.io'

describe('why a user may not do something', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await startCluster({ clock: 'virtual', nodes: 0 })
    const { client } = cluster
    for (const name of ['shop', 'test']) await client.create(Namespaces, { metadata: { name } })
    const deployer = { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'create'] }
    await client.create(Roles, { metadata: { namespace: 'shop', name: 'deployer' }, rules: [deployer] })
    await client.create(Roles, { metadata: { namespace: 'test', name: 'deployer' }, rules: [deployer] })
    const one = { apiGroups: [''], resources: ['secrets'], resourceNames: ['tls'], verbs: ['get'] }
    await client.create(Roles, { metadata: { namespace: 'shop', name: 'one-secret' }, rules: [one] })
    const bind = (binding: string, role: string, user: string, kind = 'Role'): Promise<unknown> => {
      const [namespace = '', name = ''] = binding.split('/')
      return client.create(RoleBindings, {
        metadata: { namespace, name },
        roleRef: { apiGroup, kind, name: role },
        subjects: [{ apiGroup, kind: 'User', name: user }],
      })
    }
    await bind('test/jane-deploys', 'deployer', 'jane')
    await bind('shop/jane-reads', 'view', 'jane', 'ClusterRole')
    await bind('shop/jane-secret', 'one-secret', 'jane')
    await bind('shop/jane-nothing', 'no-such-role', 'jane')
    await bind('shop/janet-deploys', 'deployer', 'Jane')
  })
  after(() => cluster?.stop())

  async function ask(verb: string, resource: string, group = '', name = ''): Promise<Explanation> {
    const access = { verb, resource, subresource: '', group, name, namespace: 'shop' }
    const user = { name: 'jane', groups: [] }
    const found = await whyForbidden({ access, user }, new Reader({ client: cluster.client }))
    assert.deepEqual(await falseEvidence(cluster, [RoleBindings, ClusterRoleBindings, ClusterRoles, Roles], found), [])
    return found
  }

  const actions = ({ steps }: Explanation): string[] => steps.slice(1).map(({ did }) => did)

  it('names other namespaces, verbs, misspelt subjects and missing roles, and the role that would do', async () => {
    const found = await ask('create', 'deployments', 'apps')
    assert.equal(
      found.verdict,
      'jane may not create deployments.apps in the namespace shop because no role that is bound to jane allows it',
    )
    assert.deepEqual(actions(found), [
      'is bound to the Role no-such-role, which does not exist',
      'is not the User Jane, to which janet-deploys binds the Role deployer',
      'may get, list, watch deployments.apps in the namespace shop',
      'may create deployments.apps in the namespace test',
    ])
    assert.deepEqual(found.wouldHelp, [
      'kubectl create rolebinding NAME -n shop --role=deployer --user=jane',
      'kubectl create rolebinding NAME -n shop --clusterrole=edit --user=jane',
      'kubectl create rolebinding NAME -n shop --clusterrole=admin --user=jane',
    ])
  })

  it('names the objects of resourceNames', async () => {
    assert.ok(actions(await ask('get', 'secrets', '', 'db')).includes('may get secrets only with the name tls'))
  })

  it('says what allows a request', async () => {
    assert.match(
      (await ask('get', 'pods')).verdict,
      /^jane may get pods in the namespace shop: RBAC: allowed by RoleBinding "jane-reads\/shop"/,
    )
  })

  it('helps: the proposed binding allows the request', async () => {
    const [line = ''] = (await ask('delete', 'configmaps')).wouldHelp
    await read(cluster, line.replace('kubectl ', '').replace('NAME', 'proposed'))
    assert.match((await ask('delete', 'configmaps')).verdict, /^jane may delete configmaps/)
    await cluster.client.delete(RoleBindings, { namespace: 'shop', name: 'proposed' })
  })

  it('answers a user about themselves, without objects that they may not list', async () => {
    const access = { verb: 'create', resource: 'pods', group: '', subresource: '', name: '', namespace: 'shop' }
    const found = await whyForbidden({ access }, new Reader({ client: cluster.clientAs({ name: 'jane' }) }))
    assert.equal(found.verdict, 'jane may not create pods in the namespace shop: no authorizer allows it')
    assert.doesNotMatch(JSON.stringify(found), /deployer|janet/)
    const other = await whyForbidden(
      { access, user: { name: 'bob', groups: [] } },
      new Reader({ client: cluster.clientAs({ name: 'jane' }) }),
    )
    assert.match(other.verdict, /^NotKnown: you may not ask the server whether bob may create pods/)
  })

  it('is a command that reads with the rights of the asker', async () => {
    const text = await read(cluster, 'why can-i create deployments --as jane -n shop')
    assert.match(text, /^jane may not create deployments\.apps in the namespace shop/)
    assert.match(text, /\n {2}jane may create deployments\.apps in the namespace test \(recomputed\)\n/)
    assert.match(
      await read(cluster, 'why can-i get pods --subresource=log --as jane -n shop'),
      /^jane may get pods\/log/,
    )
    assert.match(await read(cluster, 'why can-i create'), /Give a verb and a resource/)
  })
})
