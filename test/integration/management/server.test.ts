/**
 * Tests the management server from log-in to requests of an imported cluster: permissions, headers, watches and
 * removal.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Namespaces } from '#apis/core/v1.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings } from '#apis/rbac/v1.ts'
import { realClock } from '#lib/clock.ts'
import { connectWebSocket } from '#lib/http/websocket.ts'
import { ownerBinding } from '#management/clusters/access-objects.ts'
import { AGENT_NAMESPACE } from '#management/clusters/agent-manifest.ts'
import { Members } from '#management/kinds/access.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { eventually, type ManagementBed, newCredential, startManagementBed } from './bed.ts'

describe('hyperkube server', () => {
  let bed: ManagementBed
  let cluster: TestCluster
  let id = ''
  let projectName = ''
  const credential = newCredential()
  let stopAgent: () => Promise<void>
  let jane: { readonly name: string; readonly token: string }

  before(async () => {
    bed = await startManagementBed()
    cluster = await startCluster({ nodes: 1 })
    jane = await bed.createUser('jane')
  })
  after(async () => {
    await bed[Symbol.asyncDispose]()
    await cluster.stop()
  })

  const admin = (): string => bed.administrator
  const inCluster = (token: string, method: string, path: string, body?: unknown): ReturnType<typeof bed.request> =>
    bed.request(method, `/k8s/clusters/${id}${path}`, { token, ...(body !== undefined && { body }) })
  const conditionOf = (type: string): string | undefined =>
    bed.running.objects.get(Clusters, id)?.status?.conditions?.find((condition) => condition.type === type)?.status

  it('imports a cluster with an agent', async () => {
    const made = await bed.request('POST', '/v3/clusters', { token: admin(), body: { displayName: 'shop' } })
    assert.equal(made.status, 201, made.text)
    id = made.body['cluster'].metadata.name as string
    const manifest = await bed.request('GET', new URL(made.body['manifestUrl'] as string).pathname)
    assert.equal(manifest.status, 200)
    assert.match(manifest.text, /kind: Deployment/)
    const before = await inCluster(admin(), 'GET', '/api/v1/nodes')
    assert.equal(before.status, 503, before.text)
    assert.match(before.text, /has not connected yet/)
    // The manifest creates this binding.
    await cluster.client.create(ClusterRoleBindings, ownerBinding())
    stopAgent = bed.runAgent(cluster.kubeconfig, made.body['token'] as string, credential)
    await eventually(
      'the cluster is ready',
      () => conditionOf('Ready') === 'True' && conditionOf('RolesApplied') === 'True',
    )
    const found = bed.running.objects.get(Clusters, id)
    assert.deepEqual(found?.status?.nodes, { total: 1, ready: 1 })
    assert.match(found?.status?.version ?? '', /^v1\.36/)
  })

  it('forwards requests with the permissions of the user', async () => {
    const nodes = await inCluster(admin(), 'GET', '/api/v1/nodes')
    assert.equal(nodes.status, 200)
    assert.equal(nodes.body['kind'], 'NodeList')
    const review = await inCluster(admin(), 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
    })
    assert.match(review.body['status'].userInfo.username as string, /^u-/)
    assert.deepEqual(review.body['status'].userInfo.groups, ['hk:cluster:cluster-owner', 'system:authenticated'])
  })

  it('hides clusters from users without a role in them', async () => {
    assert.equal((await inCluster(jane.token, 'GET', '/api/v1/nodes')).status, 404)
    assert.deepEqual((await bed.request('GET', '/v3/clusters', { token: jane.token })).body['items'], [])
    assert.equal((await bed.request('GET', `/v3/clusters/${id}`, { token: jane.token })).status, 404)
    assert.equal((await bed.request('DELETE', `/v3/clusters/${id}`, { token: jane.token })).status, 404)
  })

  it('allows a project member only what the role permits', async () => {
    for (const namespace of ['web', 'other'])
      await inCluster(admin(), 'POST', '/api/v1/namespaces', { metadata: { name: namespace } })
    const projects = `/v3/clusters/${id}/projects`
    const body = { displayName: 'Web', namespaces: ['web'] }
    const project = await bed.request('POST', projects, { token: admin(), body })
    assert.equal(project.status, 201, project.text)
    const taken = await bed.request('POST', projects, { token: admin(), body: { ...body, displayName: 'Other' } })
    assert.equal(taken.status, 409, taken.text)
    assert.match(taken.text, /belongs to project \\"Web\\"/)
    projectName = project.body['metadata'].name as string
    const added = await bed.request('POST', `/v3/clusters/${id}/members`, {
      token: admin(),
      body: { role: 'project-member', user: jane.name, project: projectName },
    })
    assert.equal(added.status, 201, added.text)
    const path = '/api/v1/namespaces/web/configmaps'
    await eventually('jane may read', async () => (await inCluster(jane.token, 'GET', path)).status === 200)
    const rows: readonly (readonly [status: number, method: string, path: string, body?: object])[] = [
      [201, 'POST', path, { metadata: { name: 'a' } }],
      [200, 'GET', `${path}/a`],
      [200, 'DELETE', `${path}/a`],
      [200, 'GET', '/api/v1/namespaces/web'],
      [403, 'GET', '/api/v1/namespaces/other/configmaps'],
      [403, 'POST', '/api/v1/namespaces/other/configmaps', { metadata: { name: 'a' } }],
      [403, 'GET', '/api/v1/nodes'],
      [403, 'GET', '/api/v1/secrets'],
      [403, 'POST', '/api/v1/namespaces', { metadata: { name: 'mine' } }],
      [
        403,
        'POST',
        '/apis/rbac.authorization.k8s.io/v1/namespaces/web/rolebindings',
        {
          metadata: { name: 'x' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        },
      ],
    ]
    for (const [status, method, target, body] of rows) {
      const answer = await inCluster(jane.token, method, target, body)
      assert.equal(answer.status, status, `${method} ${target}: ${answer.text}`)
    }
    assert.equal(
      (
        await bed.request('POST', `/v3/clusters/${id}/members`, {
          token: jane.token,
          body: { role: 'cluster-owner', user: jane.name },
        })
      ).status,
      403,
    )
    assert.equal(
      (await bed.request('POST', '/v3/clusters', { token: jane.token, body: { displayName: 'mine' } })).status,
      403,
    )
  })

  it('refuses headers that claim an identity, in every spelling', async () => {
    const claims: readonly Readonly<Record<string, string>>[] = [
      { 'Impersonate-User': 'kubernetes-admin' },
      { 'Impersonate-Group': 'system:masters' },
      { 'impersonate-uid': '1' },
      { 'Impersonate-Extra-x': 'y' },
    ]
    for (const headers of claims) {
      const answer = await bed.request('GET', `/k8s/clusters/${id}/api/v1/nodes`, { token: jane.token, headers })
      assert.equal(answer.status, 403, JSON.stringify(headers))
    }
    const dropped: readonly Readonly<Record<string, string>>[] = [
      { 'X-Remote-User': 'admin', 'X-Remote-Group': 'system:masters' },
      { 'X-Remote-Extra-a': 'b' },
      { Impersonate_User: 'kubernetes-admin', Impersonate_Group: 'system:masters' },
      { Connection: 'Impersonate-User, Impersonate-Group' },
    ]
    for (const headers of dropped) {
      const answer = await bed.request('GET', `/k8s/clusters/${id}/api/v1/nodes`, { token: jane.token, headers })
      assert.equal(answer.status, 403, JSON.stringify(headers))
      assert.match(answer.text, new RegExp(`User \\\\"${jane.name}\\\\" cannot list`))
    }
  })

  it('lets a user impersonate another user of the management server, if RBAC of the cluster allows it', async () => {
    const review = async (token: string, headers: Readonly<Record<string, string>>): ReturnType<typeof bed.request> =>
      bed.request('POST', `/k8s/clusters/${id}/apis/authentication.k8s.io/v1/selfsubjectreviews`, {
        token,
        headers,
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
    const asJane = { 'Impersonate-User': jane.name }
    const seen = await review(admin(), { ...asJane, 'Impersonate-Uid': '1', 'Impersonate-Extra-a': 'b' })
    assert.equal(seen.status, 201, seen.text)
    const { username, groups, uid, extra } = seen.body['status'].userInfo
    assert.deepEqual([username, groups, uid, extra], [jane.name, ['system:authenticated'], undefined, undefined])
    assert.equal(bed.audit.at(-1)?.impersonated, jane.name)
    const group = `hk:project:${projectName}:project-member`
    const withGroup = { ...asJane, 'Impersonate-Group': group }
    const path = `/k8s/clusters/${id}/api/v1/namespaces/web/configmaps`
    assert.equal((await bed.request('GET', path, { token: admin(), headers: asJane })).status, 403)
    assert.equal((await bed.request('GET', path, { token: admin(), headers: withGroup })).status, 200)
    assert.equal((await bed.request('GET', '/k8s/clusters/local/api', { token: admin(), headers: asJane })).status, 200)
    const { body } = await bed.request('GET', '/v3/me', { token: admin() })
    const asAdmin = { 'Impersonate-User': body['user'].name as string }
    assert.equal((await review(jane.token, asAdmin)).status, 403)
    assert.equal(
      (await bed.request('GET', '/k8s/clusters/local/api', { token: jane.token, headers: asAdmin })).status,
      403,
    )
    for (const name of ['system:admin', 'hk:server', 'system:serviceaccount:kube-system:default'])
      assert.equal((await review(admin(), { 'Impersonate-User': name })).status, 403, name)
    // The cluster allows the user, and no group.
    const role = { apiGroups: [''], resources: ['users'], resourceNames: [asAdmin['Impersonate-User']] }
    const metadata = { name: 'impersonator' }
    await cluster.client.create(ClusterRoles, { metadata, rules: [{ ...role, verbs: ['impersonate'] }] })
    const rbac = 'rbac.authorization.k8s.io'
    await cluster.client.create(ClusterRoleBindings, {
      metadata,
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'impersonator' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: jane.name }],
    })
    await eventually('jane may impersonate', async () => (await review(jane.token, asAdmin)).status === 201)
    const owners = { ...asAdmin, 'Impersonate-Group': 'hk:cluster:cluster-owner' }
    assert.equal((await review(jane.token, owners)).status, 403)
    await cluster.client.delete(ClusterRoleBindings, metadata)
    await cluster.client.delete(ClusterRoles, metadata)
  })

  it('creates the projects Default and System for an imported cluster', async () => {
    const { body } = await bed.request('GET', `/v3/clusters/${id}/projects`, { token: admin() })
    const items = body['items'] as { spec: { displayName: string; namespaces: string[] } }[]
    const namespaces = (name: string): string[] | undefined =>
      items.find(({ spec }) => spec.displayName === name)?.spec.namespaces
    assert.deepEqual(namespaces('Default'), ['default'])
    assert.deepEqual(namespaces('System'), ['kube-system', 'kube-public', 'kube-node-lease', AGENT_NAMESPACE])
  })

  it('creates new namespaces in a project for its members, but adds no existing ones', async () => {
    const path = `/v3/clusters/${id}/projects/${projectName}/namespaces`
    const create = (name: unknown): ReturnType<typeof bed.request> =>
      bed.request('POST', path, { token: jane.token, body: { name } })
    const made = await create('fresh')
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(made.body['spec'].namespaces, ['web', 'fresh'])
    for (const name of ['fresh', 'web', 'other', 'kube-system']) assert.equal((await create(name)).status, 409, name)
    for (const name of ['', '../x', 'A', undefined]) assert.equal((await create(name)).status, 400, String(name))
    const configMaps = '/api/v1/namespaces/fresh/configmaps'
    await eventually('jane may read', async () => (await inCluster(jane.token, 'GET', configMaps)).status === 200)
  })

  it('binds a custom project role in the cluster when a member gets it', async () => {
    const body = { role: 'serviceaccounts-view', user: jane.name, project: projectName }
    const added = await bed.request('POST', `/v3/clusters/${id}/members`, { token: admin(), body })
    assert.equal(added.status, 201, added.text)
    const name = `hk:project:${projectName}:serviceaccounts-view`
    await eventually('the binding exists', async () => {
      const { items } = await cluster.client.list(RoleBindings, { namespace: 'web' })
      return items.some(({ metadata }) => metadata.name === name)
    })
    const member = added.body['metadata'].name as string
    await bed.request('DELETE', `/v3/clusters/${id}/members/${member}`, { token: admin() })
  })

  it('refuses paths that servers could decode differently', async () => {
    for (const path of ['/../local/api', '/%2e%2e/local/api', '//api', '/api/..%2f..', '/%252e%252e/x', '/a%5c..'])
      assert.equal((await inCluster(admin(), 'GET', path)).status, 400, path)
  })

  it('serves the management API as the cluster "local"', async () => {
    const kinds = '/k8s/clusters/local/apis/management.hyperkube.io/v1'
    assert.equal((await bed.request('GET', `${kinds}/clusters`, { token: admin() })).status, 200)
    for (const plural of ['clusters', 'users', 'tokens', 'members', 'roles', 'registrationtokens'])
      assert.equal((await bed.request('GET', `${kinds}/${plural}`, { token: jane.token })).status, 403, plural)
    const member = { metadata: { name: 'x' }, spec: { role: 'administrator', user: jane.name } }
    assert.equal((await bed.request('POST', `${kinds}/members`, { token: jane.token, body: member })).status, 403)
  })

  it('forwards upgrades, and ends a watch when its user loses the role', async () => {
    const url = `${bed.url.replace('https', 'wss')}/k8s/clusters/${id}/api/v1/namespaces/web/configmaps?watch=1`
    // Kubernetes answers 403 to a WebSocket without an origin.
    const headers = { authorization: `Bearer ${jane.token}`, origin: bed.url }
    const socket = await connectWebSocket({ clock: realClock, url, headers, tls: { ca: bed.ca } })
    await inCluster(admin(), 'POST', '/api/v1/namespaces/web/configmaps', { metadata: { name: 'seen' } })
    for await (const { data } of socket) if (data.toString().includes('"seen"')) break
    const member = bed.running.objects
      .list(Members)
      .find(({ spec }) => spec.user === jane.name && spec.project === projectName)
    const removed = await bed.request('DELETE', `/v3/clusters/${id}/members/${member?.metadata.name}`, {
      token: admin(),
    })
    assert.equal(removed.status, 200, removed.text)
    assert.equal((await inCluster(jane.token, 'GET', '/api/v1/namespaces/web/configmaps')).status, 404)
    await socket.closed
  })

  it('creates a kubeconfig whose token is valid for one cluster only', async () => {
    const { text } = await bed.request('POST', `/v3/clusters/${id}/kubeconfig`, { token: admin(), body: {} })
    const [, token = ''] = /token: (\S+)/.exec(text) ?? []
    assert.match(text, new RegExp(`server: ${bed.url}/k8s/clusters/${id}`))
    assert.equal((await inCluster(token, 'GET', '/api/v1/nodes')).status, 200)
    assert.equal((await bed.request('GET', '/k8s/clusters/local/api/v1/nodes', { token })).status, 403)
    // `kubectl proxy` drops the path of the server.
    for (const path of ['/api', '/api/', '/apis', '/version', '/api/v1/nodes', '/openapi/v3']) {
      const answer = await bed.request('GET', path, { token })
      assert.equal(answer.status, 200, `${path}: ${answer.text}`)
      assert.notEqual(answer.text, '', path)
    }
    assert.equal((await bed.request('POST', `/v3/clusters/${id}/kubeconfig`, { token, body: {} })).status, 403)
  })

  it('refuses a used registration token and a second import of the same cluster', async () => {
    const made = await bed.request('POST', '/v3/clusters', { token: admin(), body: { displayName: 'again' } })
    const stop = bed.runAgent(cluster.kubeconfig, made.body['token'] as string)
    await eventually('the server refuses', () => /Failed to connect to the management server.*409/.test(bed.logged()))
    await stop()
    const unknown = bed.runAgent(cluster.kubeconfig, 'no-such-token')
    await eventually('the server refuses', () => /Failed to connect to the management server.*401/.test(bed.logged()))
    await unknown()
  })

  it('reports since when an agent is disconnected, and continues after it reconnects', async () => {
    await stopAgent()
    await eventually('the agent is away', () => conditionOf('Connected') === 'False')
    const answer = await inCluster(admin(), 'GET', '/api/v1/nodes')
    assert.equal(answer.status, 503)
    assert.match(answer.text, /has been disconnected since 20/)
    assert.equal(answer.headers['retry-after'], '2')
    stopAgent = bed.runAgent(cluster.kubeconfig, '', credential)
    await eventually(
      'the cluster answers',
      async () => (await inCluster(admin(), 'GET', '/api/v1/nodes')).status === 200,
    )
  })

  it('deletes all its objects in a cluster that is removed', async () => {
    // The manifest creates this namespace.
    await cluster.client.create(Namespaces, { metadata: { name: AGENT_NAMESPACE } })
    const removed = await bed.request('DELETE', `/v3/clusters/${id}`, { token: admin() })
    assert.deepEqual([removed.status, removed.body], [200, { left: [] }], removed.text)
    assert.equal((await inCluster(admin(), 'GET', '/api/v1/nodes')).status, 404)
    await eventually('the objects of the server are gone', async () => {
      const { items } = await cluster.client.list(ClusterRoleBindings)
      return items.every(({ metadata }) => metadata.name?.startsWith('hk:') !== true)
    })
    const { items } = await cluster.client.list(ClusterRoles)
    assert.deepEqual(
      items.filter(({ metadata }) => metadata.name?.startsWith('hk:')),
      [],
    )
  })

  it('records user, request and cluster in its audit log', () => {
    const found = bed.audit.filter(({ user, cluster: where }) => user === jane.name && where === id)
    assert.ok(found.some(({ status, path }) => status === 403 && path.endsWith('/api/v1/secrets')))
    assert.ok(!JSON.stringify(bed.audit).includes(jane.token.split('_')[2] ?? '-'))
  })
})
