/** Tests that tokens, cookies and passwords give access only to what they are for, and only while they are valid. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { TLSSocket } from 'node:tls'

import { Members } from '#management/kinds/access.ts'

import { type ManagementBed, PASSWORD } from './bed.ts'
import {
  type EchoBed,
  type EchoCluster,
  openTls,
  sendRaw,
  startEchoBed,
  statusOf,
  WEBSOCKET_UPGRADE,
} from './downstream.ts'

describe('credentials of users', () => {
  let site: EchoBed
  let bed: ManagementBed
  let echo: EchoCluster
  let id = ''

  before(async () => {
    site = await startEchoBed((_request, response) => {
      response.writeHead(200)
      // A watch.
      response.write('{}\n')
    })
    ;({ bed, echo, id } = site)
  })
  after(() => site[Symbol.asyncDispose]())

  const raw = (path: string, ...lines: readonly string[]): string =>
    [`GET ${path} HTTP/1.1`, `Host: ${new URL(bed.url).host}`, ...lines, '', ''].join('\r\n')
  const inCluster = (...lines: readonly string[]): string => raw(`/k8s/clusters/${id}/api/v1/pods`, ...lines)

  async function createToken(body: object, token = bed.administrator): Promise<Record<string, string>> {
    const made = await bed.request('POST', '/v3/tokens', { token, body })
    assert.equal(made.status, 201, made.text)
    return made.body
  }

  async function createMember(name: string): Promise<{ readonly name: string; readonly token: string }> {
    const user = await bed.createUser(name)
    const body = { role: 'cluster-member', user: user.name }
    await bed.request('POST', `/v3/clusters/${id}/members`, { token: bed.administrator, body })
    return user
  }

  /** A watch that is open; `closed` resolves when it ends. */
  async function openWatch(token: string): Promise<{ readonly socket: TLSSocket; readonly closed: Promise<unknown> }> {
    const socket = await openTls(bed)
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const { promise, resolve } = Promise.withResolvers<string>()
    socket.on('data', (piece: Buffer) => {
      if (piece.includes('{}')) resolve('open')
    })
    socket.write(inCluster(`Authorization: Bearer ${token}`))
    assert.equal(await Promise.race([promise, closed]), 'open')
    return { socket, closed }
  }

  it('in a WebSocket subprotocol are not sent to the cluster, with and without an upgrade', async () => {
    const encoded = Buffer.from(bed.administrator).toString('base64url')
    const protocol = `Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${encoded}`
    assert.equal(statusOf(await sendRaw(bed, inCluster(protocol, ...WEBSOCKET_UPGRADE, `Origin: ${bed.url}`))), 101)
    const upgraded = echo.seen.at(-1)
    assert.deepEqual(
      upgraded?.headers.filter(([name]) => name === 'sec-websocket-protocol'),
      [['sec-websocket-protocol', 'v5.channel.k8s.io']],
    )
    echo.answer = (_request, response) => void response.writeHead(200, { 'content-length': '0' }).end()
    assert.equal(statusOf(await sendRaw(bed, inCluster(protocol))), 200)
    assert.ok(!JSON.stringify(echo.seen).includes(encoded))
    assert.equal(statusOf(await sendRaw(bed, inCluster(protocol, `Authorization: Bearer ${bed.administrator}`))), 401)
    echo.answer = (_request, response) => void response.writeHead(200).write('{}\n')
  })

  it('that are read-only allow no upgrades and no writes', async () => {
    const { token = '' } = await createToken({ readOnly: true })
    const sent = echo.seen.length
    assert.equal(statusOf(await sendRaw(bed, inCluster(`Authorization: Bearer ${token}`, ...WEBSOCKET_UPGRADE))), 403)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'BREW']) {
      const { status } = await bed
        .request(method, `/k8s/clusters/${id}/api/v1/pods`, { token })
        .catch(() => ({ status: 403 }))
      assert.ok([400, 403].includes(status), `${method}: ${status}`)
    }
    assert.equal(echo.seen.length, sent)
    assert.equal((await bed.request('POST', '/v3/tokens', { token, body: {} })).status, 403)
  })

  it('for one cluster are refused everywhere else', async () => {
    const { token = '' } = await createToken({ cluster: id })
    for (const path of ['/k8s/clusters/local/api', '/k8s/clusters/LOCAL/api', `/k8s/clusters/${id}x/api`, '/v3/me'])
      assert.equal((await bed.request('GET', path, { token })).status, 403, path)
    for (const path of [`/v3/clusters/${id}`, `/v3/clusters/${id}/members`])
      assert.equal((await bed.request('GET', path, { token })).status, 403, path)
    const { seen } = echo
    const before = seen.length
    await openWatch(token)
    const root = await openTls(bed)
    root.write(raw('/api/v1/pods', `Authorization: Bearer ${token}`))
    await new Promise((resolve) => root.once('data', resolve))
    root.destroy()
    assert.equal(seen.length, before + 2)
  })

  it('end their open watches when they become invalid', async () => {
    const disabled = await createMember('disabled')
    const removed = await createMember('removed')
    const watches = [await openWatch(disabled.token), await openWatch(removed.token)]
    const { token = '', name = '' } = await createToken({})
    watches.push(await openWatch(token))
    const admin = { token: bed.administrator }
    const off = await bed.request('PATCH', `/v3/users/${disabled.name}`, { ...admin, body: { disabled: true } })
    assert.equal(off.status, 200, off.text)
    assert.equal((await bed.request('DELETE', `/v3/users/${removed.name}`, admin)).status, 204)
    assert.equal((await bed.request('DELETE', `/v3/tokens/${name}`, admin)).status, 204)
    for (const gone of [disabled.token, removed.token, token])
      assert.equal((await bed.request('GET', '/v3/me', { token: gone })).status, 401)
    await Promise.all(watches.map(({ closed }) => closed))
  })

  it('in cookies are accepted only from pages of this server', async () => {
    const login = await bed.request('POST', '/v3-public/login', { body: { username: 'admin', password: PASSWORD } })
    const [cookie = ''] = String([login.headers['set-cookie']].flat()[0]).split(';')
    const sent = `Cookie: ${cookie}`
    const rows: readonly (readonly [status: number, lines: readonly string[]])[] = [
      [101, [`Origin: ${bed.url}`]],
      [101, [`Origin: ${bed.url}`, 'Sec-Fetch-Site: same-origin']],
      [403, []],
      [403, ['Origin: https://evil.example']],
      [403, ['Origin: null']],
      [403, [`Origin: ${bed.url}.evil.example`]],
      [403, [`Origin: ${bed.url}`, 'Origin: https://evil.example']],
      [403, [`Origin: ${bed.url}`, 'Sec-Fetch-Site: same-site']],
      [403, [`Origin: ${bed.url}`, 'Sec-Fetch-Site: cross-site']],
      [403, ['Origin: https://evil.example', 'X-HK: 1', 'Sec-Fetch-Site: same-origin']],
      [401, [`Origin: ${bed.url}`, `Cookie: ${cookie}`]],
      [401, [`Origin: ${bed.url}`, `Authorization: Bearer ${bed.administrator}`]],
    ]
    for (const [status, lines] of rows)
      assert.equal(
        statusOf(await sendRaw(bed, inCluster(sent, ...WEBSOCKET_UPGRADE, ...lines))),
        status,
        lines.join(' | '),
      )
    const body = { displayName: 'csrf' }
    for (const headers of [{}, { 'x-hk': '1' }, { origin: bed.url }, { 'x-hk': '1', origin: 'https://evil.example' }]) {
      const answer = await bed.request('POST', '/v3/clusters', { body, headers: { cookie, ...headers } })
      assert.equal(answer.status, 403, JSON.stringify(headers))
    }
    assert.ok(!JSON.stringify(echo.seen).includes(cookie))
  })

  it('cannot be guessed quickly', async () => {
    await bed.createUser('guessed')
    const guess = (password: string): Promise<number> =>
      bed.request('POST', '/v3-public/login', { body: { username: 'guessed', password } }).then(({ status }) => status)
    const statuses = await Promise.all(Array.from({ length: 60 }, (_none, at) => guess(`wrong password ${at}`)))
    const checked = statuses.filter((status) => status === 401).length
    assert.ok(checked <= 10, `${checked} passwords were checked`)
    assert.ok(
      statuses.every((status) => status === 401 || status === 429),
      statuses.join(),
    )
    assert.equal(await guess(PASSWORD), 429)
    const forged = bed.administrator.replace(/.{43}$/, 'A'.repeat(43))
    for (const token of [forged, `${bed.administrator}A`, bed.administrator.toUpperCase(), '', 'hk_', 'hk__'])
      assert.equal((await bed.request('GET', '/v3/me', { token })).status, 401, token)
  })

  it('of a member of many clusters are accepted by the management API', async () => {
    const { name, token } = await bed.createUser('busy')
    const create = (at: number): Promise<unknown> =>
      bed.running.objects.create(Members, {
        metadata: { name: `busy-${at}` },
        spec: { user: name, role: 'cluster-member', cluster: `c-${at}` },
      })
    await Promise.all(Array.from({ length: 300 }, (_none, at) => create(at)))
    for (const path of ['/api', '/k8s/clusters/local/version'])
      assert.equal((await bed.request('GET', path, { token })).status, 200, path)
  })

  it('never appear in the logs', () => {
    const text = JSON.stringify(bed.audit) + bed.logged()
    for (const secret of [bed.administrator, PASSWORD, '__Host-hk=']) assert.ok(!text.includes(secret), secret)
    assert.ok(bed.audit.some(({ status, path }) => status === 101 && path.endsWith('/api/v1/pods')))
  })
})
