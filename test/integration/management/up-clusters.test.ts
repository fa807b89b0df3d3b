/** Clusters of `hyperkube up` that the management server starts, stops, forks and deletes on its machine. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { createUpPrograms } from '../../../src/cmd/management/up-programs.ts'
import { type Answer, eventually, type ManagementBed, startManagementBed } from './bed.ts'

/** Undefined for a process that does not exist. */
function commandLine(pid: number): string | undefined {
  const file = `/proc/${pid}/cmdline`
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

describe('clusters on the machine of the server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'up-clusters-'))
  let bed: ManagementBed
  let member: { readonly name: string; readonly token: string }
  let id = ''
  let copy = ''

  const asAdministrator = (method: string, path: string, body?: object): Promise<Answer> =>
    bed.request(method, path, { token: bed.administrator, ...(body !== undefined && { body }) })
  const conditionOf = async (cluster: string, type: string): Promise<string> => {
    const { body } = await asAdministrator('GET', `/v3/clusters/${cluster}`)
    const conditions = (body['status']?.conditions ?? []) as { readonly type: string; readonly status: string }[]
    return conditions.find((one) => one.type === type)?.status ?? ''
  }
  const becomes = (cluster: string, type: string, status: string): Promise<void> =>
    eventually(`${type} is ${status}`, async () => (await conditionOf(cluster, type)) === status)
  const inCluster = (cluster: string, path: string): string => `/k8s/clusters/${cluster}/api/v1${path}`
  const nodesOf = async (cluster: string): Promise<number> =>
    ((await asAdministrator('GET', inCluster(cluster, '/nodes'))).body['items'] as unknown[]).length
  const processOf = (cluster: string): number =>
    (JSON.parse(readFileSync(join(folder, cluster, 'cluster.json'), 'utf8')) as { readonly pid: number }).pid

  before(async () => {
    bed = await startManagementBed(createUpPrograms(folder, { ...process.env, HOME: folder, KUBECONFIG: '' }))
    member = await bed.createUser('jane')
  })
  after(async () => {
    const programs = createUpPrograms(folder, process.env)
    await bed[Symbol.asyncDispose]()
    for (const cluster of [id, copy]) await programs.remove(cluster)
    rmSync(folder, { recursive: true, force: true })
  })

  it('starts a cluster with simulated nodes, whose owner reaches it through the server', async () => {
    const made = await asAdministrator('POST', '/v3/clusters', { displayName: 'dev', source: 'up', nodes: 2 })
    assert.equal(made.status, 201, made.text)
    id = (made.body['cluster'] as { readonly metadata: { readonly name: string } }).metadata.name
    const early = await asAdministrator('GET', inCluster(id, '/nodes'))
    assert.equal(early.status, 503)
    assert.equal(early.headers['retry-after'], '2', 'kubectl repeats the request')
    await becomes(id, 'Ready', 'True')
    await becomes(id, 'RolesApplied', 'True')
    assert.equal(await nodesOf(id), 2)
    const namespace = inCluster(id, '/namespaces/default')
    const configMap = { metadata: { name: 'kept' }, data: { a: 'b' } }
    assert.equal((await asAdministrator('POST', `${namespace}/configmaps`, configMap)).status, 201)
    const secret = { metadata: { name: 'sealed' }, stringData: { a: 'b' } }
    assert.equal((await asAdministrator('POST', `${namespace}/secrets`, secret)).status, 201)
  })

  it('gives members the rights of their roles only', async () => {
    const asMember = (method: string, path: string, body?: object): Promise<Answer> =>
      bed.request(method, path, { token: member.token, ...(body !== undefined && { body }) })
    assert.equal((await asMember('GET', inCluster(id, '/nodes'))).status, 404)
    const role = { role: 'cluster-read-only', user: member.name }
    assert.equal((await asAdministrator('POST', `/v3/clusters/${id}/members`, role)).status, 201)
    assert.equal((await asMember('GET', inCluster(id, '/namespaces/default/configmaps'))).status, 200)
    const configMap = { metadata: { name: 'refused' } }
    assert.equal((await asMember('POST', inCluster(id, '/namespaces/default/configmaps'), configMap)).status, 403)
    for (const action of ['start', 'stop', 'fork'])
      assert.equal((await asMember('POST', `/v3/clusters/${id}/${action}`, {})).status, 403, action)
  })

  it('forks a running cluster with its objects and secrets', async () => {
    const made = await asAdministrator('POST', `/v3/clusters/${id}/fork`, { displayName: 'what if' })
    assert.equal(made.status, 201, made.text)
    copy = (made.body['cluster'] as { readonly metadata: { readonly name: string } }).metadata.name
    await becomes(copy, 'Ready', 'True')
    const namespace = inCluster(copy, '/namespaces/default')
    assert.deepEqual((await asAdministrator('GET', `${namespace}/configmaps/kept`)).body['data'], { a: 'b' })
    assert.deepEqual((await asAdministrator('GET', `${namespace}/secrets/sealed`)).body['data'], { a: 'Yg==' })
    assert.equal((await asAdministrator('DELETE', `${namespace}/configmaps/kept`)).status, 200)
    assert.equal((await asAdministrator('GET', inCluster(id, '/namespaces/default/configmaps/kept'))).status, 200)
  })

  it('stops a cluster and keeps its state', async () => {
    assert.equal((await asAdministrator('POST', `/v3/clusters/${id}/stop`, {})).status, 200)
    await becomes(id, 'Running', 'False')
    const { status, text } = await asAdministrator('GET', inCluster(id, '/nodes'))
    assert.equal(status, 503)
    assert.match(text, /cluster \\"dev\\" is not running/)
    assert.doesNotMatch(text, /retryAfterSeconds/)
    assert.equal((await asAdministrator('POST', `/v3/clusters/${id}/start`, {})).status, 200)
    await becomes(id, 'Running', 'True')
    assert.equal((await asAdministrator('GET', inCluster(id, '/namespaces/default/configmaps/kept'))).status, 200)
  })

  it('starts a cluster again whose process was killed', async () => {
    const before = processOf(id)
    process.kill(before, 'SIGKILL')
    await eventually(
      'another process runs',
      () => existsSync(join(folder, id, 'cluster.json')) && processOf(id) !== before,
    )
    await eventually('it answers', async () => (await asAdministrator('GET', inCluster(id, '/nodes'))).status === 200)
  })

  it('deletes a cluster with its state and process', async () => {
    const pid = processOf(id)
    assert.equal((await asAdministrator('DELETE', `/v3/clusters/${id}`)).status, 200)
    await eventually('its folder is gone', () => !existsSync(join(folder, id)))
    // A process that has ended, but whose parent has not noticed, has no command line.
    await eventually('its process has ended', () => (commandLine(pid) ?? '') === '')
    assert.equal((await asAdministrator('GET', `/v3/clusters/${id}`)).status, 404)
    assert.equal((await asAdministrator('GET', inCluster(copy, '/nodes'))).status, 200)
  })

  for (const [body, message] of [
    [{ nodes: -1 }, /nodes must be a whole number from 0 to 1000/],
    [{ nodes: '2' }, /nodes must be a whole number/],
    [{ runtime: 'docker' }, /runtime must be/],
    [{ speed: 1 }, /unknown field \\"speed\\"/],
    [{ source: 'cloud' }, /source must be one of \\"imported\\", \\"built\\", \\"up\\"/],
  ] as const) {
    it(`rejects ${JSON.stringify(body)}`, async () => {
      const made = await asAdministrator('POST', '/v3/clusters', { displayName: 'x', source: 'up', ...body })
      assert.equal(made.status, 400)
      assert.match(made.text, message)
    })
  }

  it('starts no cluster for people who may only import clusters', async () => {
    const { name, token } = await bed.createUser('importer')
    const member = { kind: 'Member', apiVersion: 'management.hyperkube.io/v1', metadata: { generateName: 'm-' } }
    const path = '/k8s/clusters/local/apis/management.hyperkube.io/v1/members'
    const given = await asAdministrator('POST', path, { ...member, spec: { role: 'clusters-create', user: name } })
    assert.equal(given.status, 201, given.text)
    const body = { displayName: 'x', source: 'up' }
    const { status, text } = await bed.request('POST', '/v3/clusters', { token, body })
    assert.equal(status, 403)
    assert.match(text, /only administrators may run clusters on the machine of the server/)
  })
})
