/** Tests roles and members over HTTP: callers can grant only permissions that they have. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Roles } from '#management/kinds/access.ts'

import { type Answer, type ManagementBed, startManagementBed } from './bed.ts'
import { importCluster } from './downstream.ts'

interface Caller {
  readonly name: string
  readonly token: string
}

describe('roles of the management server', () => {
  let bed: ManagementBed
  const callers = new Map<string, Caller>()
  const clusters: string[] = []
  const projects: string[] = []

  const callerOf = (name: string): Caller => callers.get(name) ?? { name: '', token: bed.administrator }
  const send = (caller: string, method: string, path: string, body?: object): Promise<Answer> =>
    bed.request(method, path, { token: callerOf(caller).token, ...(body !== undefined && { body }) })
  const at = (cluster: number): string => `/v3/clusters/${clusters[cluster]}`

  async function expect(status: number, ...request: Parameters<typeof send>): Promise<Answer> {
    const answer = await send(...request)
    assert.equal(answer.status, status, `${request[0]} ${request[1]} ${request[2]}: ${answer.text}`)
    return answer
  }

  before(async () => {
    bed = await startManagementBed()
    for (const name of ['one', 'two']) clusters.push((await importCluster(bed, name)).id)
    const names = ['users', 'roles', 'owner', 'members', 'projects', 'project', 'nobody', 'target']
    for (const name of names) callers.set(name, await bed.createUser(name))
    for (const namespaces of [['web'], ['db']]) {
      const body = { displayName: namespaces.join(), namespaces }
      projects.push((await expect(201, 'admin', 'POST', `${at(0)}/projects`, body)).body['metadata'].name as string)
    }
    const give = (path: string, role: string, user: string, more: object = {}): Promise<Answer> =>
      expect(201, 'admin', 'POST', path, { role, user: callerOf(user).name, ...more })
    await give('/v3/members', 'users-manage', 'users')
    await give('/v3/members', 'roles-manage', 'roles')
    await give(`${at(0)}/members`, 'cluster-owner', 'owner')
    await give(`${at(0)}/members`, 'members-manage', 'members')
    await give(`${at(0)}/members`, 'projects-create', 'projects')
    await give(`${at(0)}/members`, 'project-owner', 'project', { project: projects[0] })
  })
  after(() => bed[Symbol.asyncDispose]())

  const user = (name: string): string => callerOf(name).name

  it('for the server can be granted only by users with all their permissions', async () => {
    const give = (status: number, caller: string, role: string, more: object = {}): Promise<Answer> =>
      expect(status, caller, 'POST', '/v3/members', { role, user: user('target'), ...more })
    await give(201, 'users', 'users-manage')
    await give(201, 'users', 'user-base')
    await give(403, 'users', 'administrator')
    await give(403, 'users', 'roles-manage')
    await give(403, 'users', 'administrator', { user: user('users') })
    await expect(403, 'users', 'POST', '/v3/members', { role: 'administrator', group: 'idp:devs' })
    await give(403, 'roles', 'user-base')
    await give(400, 'users', 'cluster-owner')
    await give(400, 'admin', 'user-base', { user: 'u-none' })
    await expect(400, 'admin', 'POST', '/v3/members', { role: 'user-base', group: 'devs' })
    const refused = await send('users', 'POST', '/v3/members', { role: 'administrator', user: user('users') })
    assert.match(refused.text, /needs rights that you do not have/)
  })

  it('for the server can be revoked only by users with all their permissions, except from the last administrator', async () => {
    const { body } = await expect(200, 'admin', 'GET', '/v3/members')
    const items = body['items'] as { metadata: { name: string }; spec: { role: string; user: string } }[]
    const path = (role: string): string => `/v3/members/${items.find(({ spec }) => spec.role === role)?.metadata.name}`
    await expect(403, 'users', 'DELETE', path('administrator'))
    await expect(403, 'admin', 'DELETE', path('administrator'))
    await expect(403, 'users', 'DELETE', path('roles-manage'))
    await expect(200, 'users', 'DELETE', path('user-base'))
    await expect(403, 'nobody', 'GET', '/v3/members')
  })

  it('let users with users-manage change accounts, but not log in as users with more permissions', async () => {
    const { body } = await expect(200, 'users', 'GET', '/v3/users')
    const items = body['items'] as { name: string; username: string }[]
    const admin = `/v3/users/${items.find(({ username }) => username === 'admin')?.name}`
    const password = 'another good password'
    for (const change of [{ password }, { disabled: true }, { displayName: 'x' }])
      await expect(403, 'users', 'PATCH', admin, change)
    await expect(403, 'users', 'DELETE', admin)
    await expect(403, 'users', 'PATCH', `/v3/users/${user('owner')}`, { password })
    await expect(200, 'users', 'PATCH', `/v3/users/${user('owner')}`, { displayName: 'Owner' })
    const made = await expect(201, 'users', 'POST', '/v3/users', { username: 'fresh', password })
    await expect(200, 'users', 'PATCH', `/v3/users/${made.body['name']}`, { password: `${password}!` })
    await expect(204, 'users', 'DELETE', `/v3/users/${made.body['name']}`)
    await expect(403, 'owner', 'GET', '/v3/users')
  })

  it('can be created only with permissions of their creator', async () => {
    const create = (status: number, caller: string, more: object): Promise<Answer> =>
      expect(status, caller, 'POST', '/v3/roles', { displayName: 'Own', ...more })
    const readRoles = { apiGroups: ['management.hyperkube.io'], resources: ['roles'], verbs: ['get'] }
    const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
    await create(201, 'roles', { scope: 'global', rules: [readRoles] })
    await create(403, 'roles', { scope: 'global', rules: [secrets] })
    await create(403, 'roles', { scope: 'cluster', rules: [secrets] })
    await create(403, 'roles', { scope: 'project', inherits: 'view' })
    await create(403, 'owner', { scope: 'cluster', rules: [secrets] })
    await create(201, 'admin', { scope: 'cluster', rules: [secrets] })
    await create(400, 'admin', { scope: 'cluster', rules: [{ verbs: ['get'] }] })
    await create(400, 'admin', { scope: 'global', inherits: 'view' })
    await create(400, 'admin', { scope: 'cluster', isDefault: true })
    await create(400, 'admin', { scope: 'cluster', name: 'chosen' })
  })

  it('can be extended only by users who have the permissions in every cluster where the role is used', async () => {
    const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
    const made = await expect(201, 'admin', 'POST', '/v3/roles', { displayName: 'R', scope: 'cluster', rules: [] })
    const role = made.body['metadata'].name as string
    await expect(201, 'admin', 'POST', '/v3/members', { role: 'roles-manage', user: user('owner') })
    const two = await expect(201, 'admin', 'POST', `${at(1)}/members`, { role, user: user('owner') })
    await expect(403, 'owner', 'PATCH', `/v3/roles/${role}`, { rules: [secrets] })
    await expect(403, 'owner', 'PATCH', `/v3/roles/${role}`, { inherits: 'cluster-admin' })
    await expect(409, 'owner', 'DELETE', `/v3/roles/${role}`)
    await expect(200, 'admin', 'DELETE', `${at(1)}/members/${two.body['metadata'].name}`)
    // In the other cluster it is owner.
    await expect(200, 'owner', 'PATCH', `/v3/roles/${role}`, { rules: [secrets] })
    await expect(403, 'roles', 'PATCH', `/v3/roles/${role}`, { displayName: 'Taken' })
    await expect(200, 'owner', 'DELETE', `/v3/roles/${role}`)
  })

  it('that are built in are read-only, except whether new users get them', async () => {
    await expect(403, 'admin', 'PATCH', '/v3/roles/user-base', { rules: [] })
    await expect(403, 'admin', 'DELETE', '/v3/roles/user-base')
    await expect(403, 'roles', 'PATCH', '/v3/roles/administrator', { isDefault: true })
    await expect(200, 'admin', 'PATCH', '/v3/roles/clusters-create', { isDefault: true })
    const { token } = await bed.createUser('later')
    const body = { displayName: 'mine' }
    assert.equal((await bed.request('POST', '/v3/clusters', { token, body })).status, 201)
    await expect(200, 'admin', 'PATCH', '/v3/roles/clusters-create', { isDefault: false })
    assert.equal(bed.running.objects.get(Roles, 'clusters-create')?.spec.isDefault, false)
  })

  it('for a cluster can be granted only by users with all their permissions in it', async () => {
    const give = (status: number, caller: string, role: string, more: object = {}): Promise<Answer> =>
      expect(status, caller, 'POST', `${at(0)}/members`, { role, user: user('target'), ...more })
    await give(201, 'members', 'members-view')
    for (const role of ['cluster-owner', 'cluster-member', 'projects-create']) await give(403, 'members', role)
    await expect(403, 'members', 'POST', `${at(0)}/members`, { role: 'cluster-owner', group: 'idp:devs' })
    await give(403, 'members', 'project-owner', { project: projects[0] })
    await give(403, 'project', 'cluster-read-only')
    await give(201, 'owner', 'cluster-owner')
    await expect(404, 'owner', 'POST', `${at(1)}/members`, { role: 'cluster-member', user: user('owner') })
    const { body } = await expect(200, 'members', 'GET', `${at(0)}/members`)
    const items = body['items'] as { metadata: { name: string }; spec: { role: string } }[]
    const owner = items.find(({ spec }) => spec.role === 'cluster-owner')?.metadata.name
    await expect(403, 'members', 'DELETE', `${at(0)}/members/${owner}`)
  })

  it('for a project can be granted only by its owners', async () => {
    const give = (status: number, caller: string, role: string, project: string | undefined): Promise<Answer> =>
      expect(status, caller, 'POST', `${at(0)}/members`, { role, user: user('nobody'), project })
    for (const role of ['project-member', 'secrets-view', 'create-ns', 'workloads-manage'])
      await give(201, 'project', role, projects[0])
    await give(403, 'project', 'project-read-only', projects[1])
    await give(400, 'project', 'cluster-read-only', projects[0])
    await give(403, 'nobody', 'project-read-only', projects[0])
    await give(201, 'project', 'project-owner', projects[0])
  })

  it('show each caller only the members that its roles allow it to see', async () => {
    const seenBy = async (caller: string): Promise<string[]> => {
      const { body } = await expect(200, caller, 'GET', `${at(0)}/members`)
      const items = body['items'] as { spec: { role: string; project?: string } }[]
      return items.map(({ spec }) => spec.project ?? 'cluster')
    }
    assert.ok((await seenBy('members')).includes('cluster'))
    const inProject = await seenBy('project')
    assert.deepEqual(new Set(inProject), new Set([projects[0]]))
    assert.deepEqual(await seenBy('projects'), ['cluster'])
  })

  it('make the creator of a project its owner, without access to namespaces outside of it', async () => {
    const create = (status: number, namespaces: string[]): Promise<Answer> =>
      expect(status, 'projects', 'POST', `${at(0)}/projects`, { displayName: 'Mine', namespaces })
    await create(403, ['free'])
    await create(409, ['web'])
    const mine = (await create(201, [])).body['metadata'].name as string
    await expect(200, 'projects', 'PATCH', `${at(0)}/projects/${mine}`, { displayName: 'Ours' })
    await expect(403, 'projects', 'PATCH', `${at(0)}/projects/${mine}`, { namespaces: ['free'] })
    await expect(403, 'projects', 'PATCH', `${at(0)}/projects/${projects[0]}`, { displayName: 'Taken' })
    await expect(403, 'projects', 'DELETE', `${at(0)}/projects/${projects[0]}`)
    // There is no agent.
    await expect(503, 'projects', 'POST', `${at(0)}/projects/${mine}/namespaces`, { name: 'fresh' })
    await expect(409, 'projects', 'POST', `${at(0)}/projects/${mine}/namespaces`, { name: 'web' })
    await expect(403, 'projects', 'POST', `${at(0)}/projects/${projects[0]}/namespaces`, { name: 'fresh' })
    await expect(200, 'projects', 'DELETE', `${at(0)}/projects/${mine}`)
  })

  it('add a namespace to only one of eight projects that request it at the same time', async () => {
    const create = (n: number): Promise<Answer> =>
      send('owner', 'POST', `${at(0)}/projects`, { displayName: `P${n}`, namespaces: ['wanted'] })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => create(n)))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 409]))
    const made = answers.filter(({ status }) => status === 201)
    assert.equal(made.length, 1)
    await expect(200, 'owner', 'DELETE', `${at(0)}/projects/${made[0]?.body['metadata'].name}`)
  })

  it('let only users who manage both projects move a namespace between them', async () => {
    const move = (
      status: number,
      caller: string,
      namespace: string,
      project: string | null | undefined,
    ): Promise<Answer> => expect(status, caller, 'POST', `${at(0)}/namespaces/${namespace}/move`, { project })
    const [one = '', two = ''] = projects
    const namespaces = async (): Promise<unknown[]> => {
      const { body } = await expect(200, 'owner', 'GET', `${at(0)}/projects`)
      const items = body['items'] as { metadata: { name: string }; spec: { namespaces: string[] } }[]
      return projects.map((name) => items.find(({ metadata }) => metadata.name === name)?.spec.namespaces)
    }
    // It owns the first, and then the second too.
    await move(403, 'project', 'web', two)
    await move(403, 'project', 'db', one)
    await move(403, 'project', 'web', null)
    await move(403, 'project', 'kube-system', one)
    await move(403, 'nobody', 'web', two)
    await move(404, 'project', 'web', 'p-none')
    await move(400, 'owner', 'web', undefined)
    assert.deepEqual(await namespaces(), [['web'], ['db']])
    await expect(201, 'owner', 'POST', `${at(0)}/members`, {
      role: 'project-owner',
      user: user('project'),
      project: two,
    })
    await move(200, 'project', 'web', two)
    assert.deepEqual(await namespaces(), [[], ['db', 'web']])
    await move(200, 'owner', 'web', null)
    await move(200, 'owner', 'web', one)
    assert.deepEqual(await namespaces(), [['web'], ['db']])
    await expect(404, 'target', 'POST', `${at(1)}/namespaces/web/move`, { project: one })
  })
})
