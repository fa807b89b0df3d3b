/** Tests in-process clients: they use no socket, but get the same filters, rules and responses as other clients. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import type { User } from '#auth/user.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const MANAGER: User = { name: 'manager', uid: '', groups: ['system:masters'], extra: {} }
const JANE: User = { name: 'jane', uid: '', groups: [], extra: {} }

type Client = Pick<HttpClient, 'request'>

/** ConfigMaps, in the namespace default. */
async function letJaneCreate(plane: ControlPlane): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const metadata = { name: 'jane' }
  const path = `/apis/${apiGroup}/v1/namespaces/default`
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['create'] }]
  await plane.request('POST', `${path}/roles`, { metadata, rules })
  await plane.request('POST', `${path}/rolebindings`, {
    metadata,
    roleRef: { apiGroup, kind: 'Role', name: 'jane' },
    subjects: [{ apiGroup, kind: 'User', name: 'jane' }],
  })
}

describe('API client in the process of the server', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-loopback-'))
  const log = join(dir, 'audit.log')
  let plane: ControlPlane
  let manager: Client
  let jane: Client

  before(async () => {
    const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }
    plane = await startControlPlane({
      settings: { 'audit-policy-file': 'policy', 'audit-log-path': log },
      files: new Map([['policy', JSON.stringify(policy)]]),
    })
    manager = plane.running.server.clientAs(MANAGER)
    jane = plane.running.server.clientAs(JANE)
    await letJaneCreate(plane)
  })
  after(async () => {
    await plane.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const post = (client: Client, name: string): ReturnType<Client['request']> =>
    client.request({
      method: 'POST',
      url: MAPS,
      headers: { 'content-type': 'application/json', 'audit-id': name },
      body: JSON.stringify({ metadata: { name }, data: { a: 'b' } }),
    })

  it('reads and writes the same objects as other clients', async () => {
    const made = await post(manager, 'made')
    assert.deepEqual([made.status, made.headers['audit-id']], [201, 'made'])
    await made.text(1 << 20)
    const read = await manager.request({ url: `${MAPS}/made` })
    assert.equal(read.status, 200)
    assert.equal(await read.text(1 << 20), (await plane.request('GET', `${MAPS}/made`)).text)
  })

  it('has exactly the permissions of its user', async () => {
    assert.equal((await post(jane, 'hers')).status, 201)
    const refused = await jane.request({ url: '/api/v1/nodes' })
    assert.equal(refused.status, 403)
    assert.match(await refused.text(1 << 20), /User \\"jane\\" cannot list resource \\"nodes\\"/)
  })

  it('appears in the audit log, and has a FlowSchema', async () => {
    const answer = await post(jane, 'recorded')
    assert.ok('x-kubernetes-pf-flowschema-uid' in answer.headers)
    const events = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes('"auditID":"recorded"'))
    assert.match(events.at(-1) ?? '', /"user":\{"username":"jane","groups":\["system:authenticated"\]\}/)
  })

  it('counts for the limit of requests in flight', async () => {
    const limits = { 'enable-priority-and-fairness': false, 'max-mutating-requests-inflight': 1 }
    await using small = await startControlPlane({ settings: limits })
    await letJaneCreate(small)
    const other = small.running.server.clientAs(JANE)
    const held = Promise.withResolvers<void>()
    async function* slow(): AsyncGenerator<Buffer> {
      await held.promise
      yield Buffer.from('{}')
    }
    const first = other.request({ method: 'POST', url: MAPS, body: slow() })
    await new Promise(setImmediate)
    const second = await post(other, 'too-many')
    held.resolve()
    assert.deepEqual([second.status, second.headers['retry-after']], [429, '1'])
    assert.notEqual((await first).status, 429)
  })

  it('watches with backpressure until it aborts', async () => {
    const control = new AbortController()
    const watch = await manager.request({
      url: `${MAPS}?watch=true&fieldSelector=metadata.name=seen`,
      signal: control.signal,
    })
    assert.equal(watch.status, 200)
    await post(jane, 'seen')
    let text = ''
    for await (const piece of watch.body) {
      text += piece.toString()
      if (text.includes('\n')) break
    }
    assert.match(text, /^\{"type":"ADDED","object":\{.*"name":"seen"/)
    const other = await manager.request({ url: `${MAPS}?watch=true`, signal: control.signal })
    control.abort()
    await assert.rejects(other.text(1 << 24), { code: 'aborted' })
  })

  it('has no credentials that another client could use', async () => {
    const headers = { authorization: 'Bearer manager', 'x-remote-user': 'manager' }
    assert.equal((await plane.request('GET', MAPS, undefined, headers)).status, 401)
  })
})
