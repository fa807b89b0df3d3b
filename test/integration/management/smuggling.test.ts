/** Tests that no request gets another identity or path in a managed cluster, as seen behind its agent. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type OutgoingHttpHeaders } from 'node:http2'
import { after, before, describe, it } from 'node:test'

import type { ManagementBed } from './bed.ts'
import {
  type EchoBed,
  type EchoCluster,
  openTls,
  type SeenRequest,
  sendRaw,
  startEchoBed,
  statusOf,
  WEBSOCKET_UPGRADE,
} from './downstream.ts'

const NAMES = [
  'Impersonate-User',
  'impersonate-user',
  'IMPERSONATE-USER',
  'Impersonate_User',
  'Impersonate-Group',
  'Impersonate_Group',
  'impersonate_group',
  'Impersonate-Uid',
  'Impersonate_Uid',
  'Impersonate-Extra-Scopes',
  'Impersonate_Extra_Scopes',
  'Impersonate-Extra_Scopes',
  'X-Remote-User',
  'x-remote-user',
  'X_Remote_User',
  'X-Remote_User',
  'X-Remote-Group',
  'X_Remote_Group',
  'X-Remote-Uid',
  'X-Remote-Extra-Scopes',
  'X_REMOTE_EXTRA_scopes',
  'X-Forwarded-User',
  'X-Forwarded-Host',
  'X-Forwarded-Uri',
  'X-Forwarded-Proto',
  'X-Real-Ip',
  'Forwarded',
  'Proxy-Authorization',
]

/** Lines of headers. */
const TRICKS: readonly (readonly string[])[] = [
  ...NAMES.map((name) => [`${name}: system:admin`]),
  ...NAMES.map((name) => [`${name}: system:admin`, `${name}: system:masters`]),
  ...NAMES.map((name) => [`${name}:system:admin`, `Connection: ${name}`]),
  ...NAMES.map((name) => [`X-Harmless: 1`, `\t${name}: system:admin`]),
  ...NAMES.map((name) => [`${name} : system:admin`]),
  ...NAMES.map((name) => [`${name}\t: system:admin`]),
  ['Connection: Impersonate-User, Impersonate-Group, Authorization'],
  ['Connection: close, impersonate-user', 'Connection: impersonate-group'],
  ['Connection: Host, Content-Length, Transfer-Encoding'],
  ['Cookie: __Host-hk=secret-of-a-session; other=secret-of-a-site'],
  ['Cookie: a=secret-of-a-site', 'Cookie: b=secret-of-a-site'],
  ['Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c2VjcmV0'],
  ['X-HK: 1', 'Referer: https://manager/secret-of-a-page'],
  ['X-API-Tunnel-Token: secret-of-an-agent'],
  ['Audit-Id: forged', 'X-Forwarded-For: 203.0.113.9'],
]

describe('requests to a managed cluster', () => {
  let site: EchoBed
  let bed: ManagementBed
  let echo: EchoCluster
  let id = ''
  let user = ''
  let count = 0

  before(async () => {
    site = await startEchoBed((_request, response) => {
      response.writeHead(200, { 'content-length': '2' }).end('{}')
    })
    ;({ bed, echo, id } = site)
    user = (await bed.request('GET', '/v3/me', { token: bed.administrator })).body['user'].name as string
  })
  after(() => site[Symbol.asyncDispose]())

  const target = (path = '/api/v1/pods'): string => `/k8s/clusters/${id}${path}?n=${++count}`
  const raw = (lines: readonly string[], path = target(), method = 'GET'): string =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${bed.administrator}`,
      ...lines,
      '',
      '',
    ].join('\r\n')

  /** Our headers and no others that could claim anything. */
  function check({ headers, url, isUpgrade }: SeenRequest, trick: string): void {
    const of = (name: string): readonly string[] => headers.flatMap(([key, value]) => (key === name ? [value] : []))
    assert.deepEqual(of('impersonate-user'), [user], trick)
    assert.deepEqual(of('impersonate-group'), ['hk:cluster:cluster-owner', 'system:authenticated'], trick)
    // The agent sends no credential of its own without TLS.
    assert.deepEqual(of('authorization'), [], trick)
    assert.match(of('x-forwarded-for').join(), /^127\.0\.0\.1/, trick)
    assert.ok(!of('audit-id').includes('forged'), trick)
    const foreign = headers.filter(
      ([name]) =>
        name.includes('_') ||
        /^(?:impersonate-(?!user$|group$)|x-remote|x-forwarded-(?!for$)|forwarded|x-real-ip|cookie|proxy-|x-hk|referer)/.test(
          name,
        ) ||
        name.startsWith('x-api-tunnel'),
    )
    assert.deepEqual(foreign, [], trick)
    const text = JSON.stringify([url, headers])
    assert.ok(!text.includes(bed.administrator) && !text.includes('hk_t-'), `${trick}: ${text}`)
    assert.ok(!/secret-of|c2VjcmV0|system:(?:admin|masters)/.test(text), `${trick}: ${text}`)
    if (!isUpgrade) return
    assert.ok(['', '0'].includes(of('content-length').join()), trick)
    assert.deepEqual(of('transfer-encoding'), [], trick)
  }

  async function send(bytes: string, trick: string): Promise<number> {
    const before = echo.seen.length
    const status = statusOf(await sendRaw(bed, bytes))
    for (const seen of echo.seen.slice(before)) check(seen, trick)
    // 0: the parser has closed the connection.
    assert.ok([0, 101, 200, 400, 401, 403].includes(status), `${trick}: ${status}`)
    assert.equal(echo.seen.length - before, status === 200 || status === 101 ? 1 : 0, trick)
    return status
  }

  it('carry only the identity of their user, over HTTP/1.1', async () => {
    assert.equal(await send(raw([]), 'plain'), 200)
    for (const lines of TRICKS) await send(raw(lines), lines.join(' | '))
  })

  it('carry only the identity of their user, as upgrades', async () => {
    assert.equal(await send(raw(WEBSOCKET_UPGRADE), 'upgrade'), 101)
    for (const lines of TRICKS) await send(raw([...WEBSOCKET_UPGRADE, ...lines]), lines.join(' | '))
    await send(`${raw([...WEBSOCKET_UPGRADE, 'Content-Length: 5'], target(), 'POST')}hello`, 'upgrade with a body')
  })

  it('carry only the identity of their user, over HTTP/2', async () => {
    const socket = await openTls(bed, 'h2')
    const session = connect(bed.url, { createConnection: () => socket })
    const ask = async (headers: OutgoingHttpHeaders): Promise<number> => {
      const stream = session.request({ ':path': target(), authorization: `Bearer ${bed.administrator}`, ...headers })
      const [answer] = (await once(stream, 'response')) as [{ readonly ':status'?: number }]
      stream.resume()
      await once(stream, 'close')
      return answer[':status'] ?? 0
    }
    for (const name of NAMES.map((one) => one.toLowerCase()))
      for (const value of ['system:admin', name.startsWith('proxy-') ? 'a' : ['system:admin', 'system:masters']]) {
        const before = echo.seen.length
        const status = await ask({ [name]: value })
        assert.ok([200, 400, 403].includes(status), `${name}: ${status}`)
        for (const seen of echo.seen.slice(before)) check(seen, name)
      }
    const before = echo.seen.length
    await ask({ host: 'evil.example', cookie: 'a=secret-of-a-site' })
    for (const seen of echo.seen.slice(before)) {
      check(seen, 'host')
      assert.ok(!JSON.stringify(seen).includes('evil'))
    }
    session.close()
    socket.destroy()
  })

  it('are refused with ambiguous framing', async () => {
    const chunked = 'Transfer-Encoding: chunked'
    const hidden = `GET ${target()} HTTP/1.1\r\nHost: x\r\nImpersonate-User: system:admin\r\n\r\n`
    const rows: readonly (readonly [lines: readonly string[], body: string])[] = [
      [['Content-Length: 4', chunked], `0\r\n\r\n${hidden}`],
      [[chunked, 'Content-Length: 4'], `0\r\n\r\n${hidden}`],
      [['Content-Length: 0', 'Content-Length: 5'], hidden],
      [['Content-Length: +5'], hidden],
      [['Content-Length: 5, 5'], hidden],
      [['Transfer-Encoding: xchunked'], `0\r\n\r\n${hidden}`],
      [['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${hidden}`],
      [['Transfer-Encoding : chunked'], `0\r\n\r\n${hidden}`],
      [['Transfer-Encoding: \x0bchunked'], `0\r\n\r\n${hidden}`],
      [[chunked], `1;x\nX\r\n0\r\n\r\n${hidden}`],
    ]
    for (const [lines, body] of rows) {
      const before = echo.seen.length
      const answer = await sendRaw(bed, raw(lines, target(), 'POST') + body)
      assert.ok([0, 400].includes(statusOf(answer)), `${lines.join(' | ')}: ${answer}`)
      for (const seen of echo.seen.slice(before))
        assert.ok(!JSON.stringify(seen).includes('system:admin'), lines.join())
    }
  })

  it('cannot reach another path', async () => {
    const paths = [
      '/../local/api',
      '/api/../../local/api',
      '/%2e%2e/local/api',
      '/.%2e/local',
      '/%252e%252e/local',
      '/%25252e%25252e/local',
      '//evil.example/api',
      '/api//v1',
      '/api%2f%2e%2e%2f..',
      '/api\\..\\x',
      '/api%5c..%5cx',
      '/api%255c',
      '/api/%00',
      '/api/%0d%0aX-Remote-User:%20a',
      '/api/%ff',
      '/api/%',
      '/api/.',
      '/api/..',
      '/..',
    ]
    for (const path of paths) {
      const before = echo.seen.length
      const status = statusOf(await sendRaw(bed, raw([], `/k8s/clusters/${id}${path}`)))
      assert.ok([0, 400, 404].includes(status), `${path}: ${status}`)
      assert.equal(echo.seen.length, before, path)
    }
    const targets = [
      `http://localhost/k8s/clusters/${id}/api`,
      `https://evil.example/k8s/clusters/${id}/api`,
      '*',
      `k8s/clusters/${id}/api`,
      `//k8s/clusters/${id}/api`,
      `/k8s/clusters/${id}%2f..%2flocal/api`,
      `/k8s/clusters//${id}/api`,
      `/k8s/./clusters/${id}/api`,
      `/v3-public/..;/v3/users`,
      `/v3-public/%2e%2e/v3/users`,
    ]
    for (const path of targets) {
      const before = echo.seen.length
      const status = statusOf(await sendRaw(bed, raw([], path)))
      assert.ok([0, 400, 404].includes(status), `${path}: ${status}`)
      assert.equal(echo.seen.length, before, path)
    }
  })

  it('are not affected by the header Host', async () => {
    for (const hosts of [['evil.example'], ['localhost', 'evil.example'], ['evil.example:443'], ['[::1]'], ['a@b']]) {
      const lines = hosts.map((host) => `Host: ${host}`)
      const auth = `Authorization: Bearer ${bed.administrator}`
      const answer = await sendRaw(bed, [`GET ${target()} HTTP/1.1`, ...lines, auth, '', ''].join('\r\n'))
      assert.ok([0, 200, 400].includes(statusOf(answer)), `${hosts.join()}: ${answer}`)
      assert.ok(!JSON.stringify(echo.seen).includes('evil.example'))
      const body = JSON.stringify({ displayName: 'host' })
      const head = ['POST /v3/clusters HTTP/1.1', ...lines, auth, `Content-Length: ${body.length}`, '', body]
      assert.ok(!(await sendRaw(bed, head.join('\r\n'))).includes('evil'), hosts.join())
    }
  })
})
