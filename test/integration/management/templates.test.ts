/** Cluster templates over the port, and clusters that follow them. No machine answers: nothing is built. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Answer, type ManagementBed, startManagementBed } from './bed.ts'

interface Caller {
  readonly name: string
  readonly token: string
}

describe('routes of cluster templates', () => {
  let bed: ManagementBed
  let author: Caller
  let user: Caller
  let template = ''
  let cluster = ''

  before(async () => {
    bed = await startManagementBed()
    author = await bed.createUser('author')
    user = await bed.createUser('user')
    const rights = { 'clustertemplates-create': author, 'clusters-create': user }
    for (const [role, { name }] of Object.entries(rights))
      await expect(201, bed.administrator, 'POST /v3/members', { role, user: name })
  })
  after(() => bed[Symbol.asyncDispose]())

  async function expect(status: number, token: string, route: string, body?: object): Promise<Answer> {
    const [method = '', path = ''] = route.split(' ')
    const answer = await bed.request(method, path, { token, ...(body !== undefined && { body }) })
    assert.equal(answer.status, status, `${route}: ${answer.text}`)
    return answer
  }

  const FILE = { kubernetes_version: 'v1.36.4', services: { etcd: { snapshot: true } } }
  const NODES = [{ address: '192.0.2.1', user: 'root', role: ['controlplane', 'etcd', 'worker'] }]
  const post = (status: number, token: string, more: object): Promise<Answer> =>
    expect(status, token, 'POST /v3/cluster-templates', {
      displayName: 'T',
      file: FILE,
      editable: ['nodes'],
      ...more,
    })
  const built = (status: number, more: object): Promise<Answer> =>
    expect(status, user.token, 'POST /v3/clusters', { displayName: 'C', source: 'built', template, ...more })
  const fieldsOf = ({ body }: Answer): string[] =>
    (body['details'].causes as { readonly field: string }[]).map(({ field }) => field)

  it('create one for holders of clustertemplates-create', async () => {
    await post(403, user.token, {})
    template = (await post(201, author.token, {})).body['metadata'].name as string
    const { body } = await expect(200, user.token, 'GET /v3/cluster-templates')
    assert.equal((body['items'] as unknown[]).length, 1)
    const shown = await expect(200, user.token, `GET /v3/cluster-templates/${template}`)
    assert.deepEqual([shown.body['spec'].config, shown.body['spec'].createdBy], [FILE, author.name])
  })

  it('refuse keys and passwords, other fields, and paths that are none', async () => {
    const secret = { ...FILE, private_registries: [{ url: 'r.example', password: 'secret' }] }
    assert.deepEqual(fieldsOf(await post(422, author.token, { file: secret })), ['file.private_registries[0].password'])
    for (const more of [{ file: 'a: [' }, { file: 1 }, { editable: 'nodes' }, { editable: ['../x'] }, { extra: 1 }])
      await post(400, author.token, more)
    await post(201, author.token, { file: 'kubernetes_version: v1.36.4\n' })
  })

  it('give clusters the template, and let only editable parts differ', async () => {
    await built(404, { template: 'ct-none', file: { nodes: NODES } })
    const older = { nodes: NODES, kubernetes_version: 'v1.35.0', services: { etcd: { snapshot: false } } }
    const locked = ['file.kubernetes_version', 'file.services.etcd.snapshot']
    assert.deepEqual(fieldsOf(await built(422, { file: older })), locked)
    const made = await built(201, { file: { nodes: NODES } })
    cluster = made.body['cluster'].metadata.name as string
    assert.deepEqual(made.body['cluster'].spec.build, { config: { ...FILE, nodes: NODES }, template })
  })

  it('hold for later changes of the cluster too', async () => {
    const path = `/v3/clusters/${cluster}/build`
    const other = { nodes: [{ ...NODES[0], address: '192.0.2.2' }] }
    await expect(200, user.token, `PUT ${path}`, { file: other })
    const text = 'kubernetes_version: v1.35.0\nnodes: [{address: 192.0.2.3, user: root, role: [etcd]}]\n'
    assert.deepEqual(fieldsOf(await expect(422, user.token, `PUT ${path}`, { file: text })), [
      'file.kubernetes_version',
    ])
    await expect(400, user.token, `PUT ${path}`, { template: '', file: text })
    const shown = await expect(200, user.token, `GET ${path}`)
    assert.deepEqual([shown.body['file'], shown.body['template']], [{ ...FILE, ...other }, template])
  })

  it('remove one for its creator, when no cluster follows it', async () => {
    const path = `/v3/cluster-templates/${template}`
    await expect(403, user.token, `DELETE ${path}`)
    await expect(409, author.token, `DELETE ${path}`)
    const free = (await post(201, author.token, {})).body['metadata'].name as string
    await expect(200, author.token, `DELETE /v3/cluster-templates/${free}`)
    await expect(404, author.token, `DELETE /v3/cluster-templates/${free}`)
  })
})
