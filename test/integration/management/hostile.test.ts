/** Tests the management server against hostile clusters and agents, which attack it, its users and other clusters. */
import assert from 'node:assert/strict'
import type { Duplex } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { RegistrationTokens } from '#management/kinds/registration-token.ts'

import { type Answer, eventually, type ManagementBed, PASSWORD, startManagementBed } from './bed.ts'
import {
  connected,
  type HostileAgent,
  type Imported,
  importCluster,
  openTls,
  openTunnel,
  probeAnswer,
  sendRaw,
  statusOf,
  WEBSOCKET_UPGRADE,
} from './downstream.ts'
import { startHostileAgent } from './downstream.ts'

const CRLF = '\r\n'
const MEBIBYTE = 'x'.repeat(1 << 20)

/** The head of a response, whatever the text is. */
function framed(text: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Buffer.byteLength(text))
  return Buffer.concat([length, Buffer.from(text)])
}

function head(status: number, ...lines: string[]): Buffer {
  const headers = lines.flatMap((line) => {
    const [name = '', ...value] = line.split(': ')
    return [name.toLowerCase(), value.join(': ')]
  })
  return framed(JSON.stringify({ status, headers }))
}

const joined = (...parts: readonly (Buffer | string)[]): Buffer => Buffer.concat(parts.map((part) => Buffer.from(part)))

function pourForever(stream: Duplex): void {
  const more = (): void => {
    while (!stream.destroyed && stream.write(MEBIBYTE));
    if (!stream.destroyed) stream.once('drain', more)
  }
  stream.write(head(200))
  more()
}

const ORIGIN_HEADERS = [
  'Set-Cookie: __Host-hk=planted; Path=/; Secure',
  'Set-Cookie2: a=b',
  'Location: /v3/users',
  'Refresh: 0;url=https://evil.example',
  'Access-Control-Allow-Origin: *',
  'Access-Control-Allow-Credentials: true',
  'Access-Control-Expose-Headers: *',
  'Access-Control-Max-Age: 99999',
  'Access-Control-Allow-Private-Network: true',
  'Timing-Allow-Origin: *',
  'Strict-Transport-Security: max-age=0',
  'Content-Security-Policy: script-src *',
  'Content-Security-Policy-Report-Only: report-uri https://evil.example',
  'Clear-Site-Data: "*"',
  'Service-Worker-Allowed: /',
  'Alt-Svc: h3="evil.example:443"',
  'Link: </x.js>; rel=preload',
  'SourceMap: https://evil.example/x',
  'Report-To: {}',
  'NEL: {}',
  'Reporting-Endpoints: a="https://evil.example"',
  'Origin-Agent-Cluster: ?0',
  'Permissions-Policy: camera=*',
  'Speculation-Rules: "/x"',
  'X-Accel-Redirect: /etc/passwd',
  'X-Sendfile: /etc/passwd',
  'X-Frame-Options: ALLOWALL',
  'X-Content-Type-Options: sniff',
  'X-XSS-Protection: 0',
  'WWW-Authenticate: Basic realm="type your password"',
  'Proxy-Authenticate: Basic',
  'Public-Key-Pins: x',
  'Set-Login: logged-out',
  'X-Hk: 1',
]

const ATTACKS: Readonly<Record<string, (stream: Duplex) => void>> = {
  '/endless': pourForever,
  '/silent': () => undefined,
  '/switch': (stream) => void stream.write(head(101, 'Connection: Upgrade', 'Upgrade: websocket')),
  '/planting': (stream) =>
    void stream.write(joined(head(101, 'Connection: Upgrade', 'Upgrade: websocket', ...ORIGIN_HEADERS), 'hello')),
  '/reset': (stream) => {
    stream.write(joined(head(200), 'short'))
    setImmediate(() => stream.destroy(new Error('no')))
  },
  '/cut': (stream) => void stream.end(joined(head(200, 'Content-Length: 100'), 'short')),
  '/more': (stream) =>
    void stream.end(joined(head(200, 'Content-Length: 2'), '{}', head(200, 'Content-Length: 6'), 'poison')),
  '/headers': (stream) => void stream.write(head(200, `Etag: ${MEBIBYTE}`)),
  '/lines': (stream) => void stream.write(head(200, ...Array.from({ length: 50_000 }, (_n, at) => `a${at}: 1`))),
  '/early': (stream) => void stream.write(joined(head(103, 'Set-Cookie: a=b'), head(204))),
  '/garbage': (stream) => void stream.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'),
  '/text': (stream) => void stream.write(framed('not JSON')),
  '/array': (stream) => void stream.write(framed('[200]')),
  '/split': (stream) => void stream.write(head(200, 'Etag: a\r\nSet-Cookie: __Host-hk=planted')),
  '/lengths': (stream) => void stream.write(joined(head(200, 'Content-Length: 2', 'Content-Length: 3'), '{}')),
  '/nothing': (stream) => void stream.end(),
  '/destroy': (stream) => void stream.destroy(new Error('no')),
}

describe('a hostile cluster', () => {
  let bed: ManagementBed
  let imported: Imported
  let agent: HostileAgent
  const uid = uuid(secureRandom)
  let claimedUid = uid
  let nodes: string | undefined
  const asked: string[] = []

  before(async () => {
    bed = await startManagementBed()
    imported = await importCluster(bed, 'hostile')
    agent = startHostileAgent(bed, { token: imported.token, uid, answer })
    await connected(bed, imported.id)
  })
  after(async () => {
    await agent[Symbol.asyncDispose]()
    await bed[Symbol.asyncDispose]()
  })

  function answer(stream: Duplex, text: string): void {
    const { path } = JSON.parse(text) as { readonly path: string }
    asked.push(text)
    const attack = ATTACKS[path]
    if (attack !== undefined) return attack(stream)
    const [, location] = /^\/redirect\?(.*)/.exec(path) ?? []
    if (location !== undefined)
      return void stream.end(head(307, `Location: ${decodeURIComponent(location)}`, 'Content-Length: 0'))
    if (path === '/origin') {
      const body = '<script>alert(1)</script>'
      const own = ['Content-Type: text/html', 'Cache-Control: public, max-age=9', `Content-Length: ${body.length}`]
      return void stream.end(joined(head(200, ...own, ...ORIGIN_HEADERS), body))
    }
    const probe = path.startsWith('/api/v1/nodes?') ? (nodes ?? probeAnswer(path, uid)) : probeAnswer(path, claimedUid)
    if (probe === 'endless') return pourForever(stream)
    const body = probe ?? '{}'
    stream.end(joined(head(probe === undefined ? 404 : 200, `Content-Length: ${body.length}`), body))
  }

  const at = (path: string): string => `/k8s/clusters/${imported.id}${path}`
  const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    bed.request('GET', at(path), { token: bed.administrator, headers })
  const raw = (path: string, ...lines: string[]): string =>
    [
      `GET ${at(path)} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${bed.administrator}`,
      ...lines,
      '',
      '',
    ].join(CRLF)

  it('cannot set headers that affect other pages of the server', async () => {
    const { headers } = await get('/origin')
    const { date: _date, connection: _connection, 'keep-alive': _alive, ...rest } = headers
    assert.deepEqual(rest, {
      'cache-control': 'private, max-age=9',
      'content-length': '25',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-type': 'text/html',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      location: at('/v3/users'),
    })
  })

  it('can redirect only to its own paths', async () => {
    const rows: readonly (readonly [sent: string, got: string | undefined])[] = [
      ['/api/v1/x?y=1', at('/api/v1/x?y=1')],
      ['x/', at('/x/')],
      ['/v3/users', at('/v3/users')],
      ['/k8s/clusters/local/api', at('/k8s/clusters/local/api')],
      ['../../../local/api', at('/local/api')],
      ['http://kube-apiserver/y', at('/y')],
      ['https://evil.example/', undefined],
      ['//evil.example/', undefined],
      ['\\\\evil.example/', undefined],
      ['javascript:alert(1)', undefined],
      ['/a//evil.example', undefined],
      ['/a/%2e%2e%2f%2e%2e%2flocal', undefined],
      ['http://[', undefined],
    ]
    for (const [sent, got] of rows)
      assert.equal((await get(`/redirect?${encodeURIComponent(sent)}`)).headers['location'], got, sent)
  })

  it('cannot serve scripts, styles or frames to pages of the server', async () => {
    const body = { username: 'admin', password: PASSWORD }
    const login = await bed.request('POST', '/v3-public/login', { body })
    const cookie = String([login.headers['set-cookie']].flat()[0]).split(';')[0] ?? ''
    const ask = async (destination: string): Promise<number> =>
      (await bed.request('GET', at('/version'), { headers: { cookie, 'sec-fetch-dest': destination } })).status
    for (const destination of ['script', 'serviceworker', 'worker', 'style', 'iframe', 'embed', 'object', 'image'])
      assert.equal(await ask(destination), 403, destination)
    for (const destination of ['empty', 'document']) assert.equal(await ask(destination), 200, destination)
    assert.ok(!asked.join('').includes(cookie))
  })

  it('cannot set a cookie in the response to an upgrade', async () => {
    const answered = await sendRaw(bed, raw('/planting', ...WEBSOCKET_UPGRADE))
    assert.equal(statusOf(answered), 101)
    assert.ok(!/set-cookie|planted|evil/i.test(answered), answered)
  })

  it('affects no other request by broken responses', async () => {
    const refused = [
      'switch',
      'headers',
      'lines',
      'garbage',
      'text',
      'array',
      'split',
      'lengths',
      'early',
      'nothing',
      'destroy',
    ]
    for (const path of refused) {
      const answered = await sendRaw(bed, raw(`/${path}`))
      assert.equal(statusOf(answered), 503, path)
      assert.ok(!answered.includes('planted'), path)
      assert.equal((await get('/version')).body['gitVersion'], 'v1.36.0', path)
    }
    for (const path of ['/reset', '/cut', '/more']) {
      await assert.rejects(get(path), path)
      assert.ok(!(await sendRaw(bed, raw(path))).includes('poison'), path)
      assert.equal((await get('/version')).body['gitVersion'], 'v1.36.0', path)
    }
  })

  it('cannot exhaust memory by endless or missing responses', async () => {
    const before = process.memoryUsage().rss
    const sockets = await Promise.all(Array.from({ length: 40 }, () => openTls(bed)))
    for (const [index, socket] of sockets.entries()) {
      socket.on('error', () => undefined)
      socket.pause()
      socket.write(raw(index % 4 === 0 ? '/silent' : '/endless'))
    }
    await sleep(realClock, 3000)
    const grown = process.memoryUsage().rss - before
    assert.equal((await get('/version')).status, 200)
    assert.equal((await bed.request('GET', '/livez')).status, 200)
    for (const socket of sockets) socket.destroy()
    // Both ends of the tunnel and the clients are in this process.
    assert.ok(grown < 500 << 20, `${grown >> 20} MiB`)
    await eventually('others are served', async () => (await get('/version')).status === 200)
  })

  it('cannot open tunnel streams to addresses that the server reaches', async () => {
    const tunnel = await openTunnel(bed, { credential: agent.credential, uid })
    const ended = tunnel.serve().catch(() => undefined)
    const addresses = ['127.0.0.1:22', new URL(bed.url).host, '169.254.169.254:80', 'kube-apiserver']
    const targets = ['tcp', 'request'].flatMap((protocol) => addresses.map((address) => [protocol, address] as const))
    for (const [protocol, address] of targets) {
      const stream = tunnel.dial(protocol, address)
      const { promise, resolve } = Promise.withResolvers<Error>()
      stream.on('error', resolve)
      assert.match((await promise).message, /is not allowed/, address)
    }
    await tunnel.close()
    await ended
    await eventually('the first tunnel serves', async () => (await get('/version')).status === 200)
  })

  it('cannot take over another cluster by its UID', async () => {
    const other = await importCluster(bed, 'victim')
    const victimUid = uuid(secureRandom)
    const plan = { token: other.token, uid: victimUid, answer }
    const victim = startHostileAgent(bed, plan)
    await connected(bed, other.id)
    claimedUid = victimUid
    // A change of the cluster makes the server probe it again.
    await bed.running.objects.change(Clusters, imported.id, (now) => ({
      ...now,
      spec: { ...now.spec, description: 'b' },
    }))
    const probes = asked.length
    await eventually('a probe', () => asked.slice(probes).some((text) => text.includes('/kube-system')))
    await sleep(realClock, 500)
    assert.equal(bed.running.objects.get(Clusters, imported.id)?.status?.uid, uid)
    await victim[Symbol.asyncDispose]()
    // Without a registration token that is valid: the credential is enough.
    await using _again = startHostileAgent(bed, { ...plan, token: 'none', credential: victim.credential })
    await connected(bed, other.id)
    const thief = await connectStatus({ uid: victimUid, token: agent.credential })
    assert.equal(thief, 401)
  })

  it('cannot make the server read an endless list', async () => {
    nodes = 'endless'
    const before = process.memoryUsage().rss
    await bed.running.objects.change(Clusters, imported.id, (now) => ({
      ...now,
      spec: { ...now.spec, description: 'c' },
    }))
    const ready = (): string | undefined =>
      bed.running.objects.get(Clusters, imported.id)?.status?.conditions?.find(({ type }) => type === 'Ready')?.message
    await eventually('the probe gives up', () => /does not answer/.test(ready() ?? ''))
    assert.match(ready() ?? '', /bytes/)
    const { length } = ready() ?? ''
    assert.ok(length < 1000, `${length}`)
    assert.ok(process.memoryUsage().rss - before < 600 << 20)
    nodes = undefined
  })

  interface Shown {
    readonly uid: string
    readonly token: string
    readonly credential?: string
  }

  async function connectStatus({ uid: shown, token, credential }: Shown): Promise<number> {
    const parameters = { uid: shown, agentVersion: '0', ...(credential !== undefined && { credential }) }
    const lines = [
      `GET /v3/connect${credential === undefined ? '' : '/register'} HTTP/1.1`,
      'Host: localhost',
      ...WEBSOCKET_UPGRADE,
      `Sec-WebSocket-Protocol: ${TUNNEL_PROTOCOL}`,
      `X-API-Tunnel-Token: ${token}`,
      `X-API-Tunnel-Params: ${Buffer.from(JSON.stringify(parameters)).toString('base64')}`,
      '',
      '',
    ]
    const socket = await openTls(bed)
    const { promise, resolve } = Promise.withResolvers<number>()
    socket.once('data', (piece: Buffer) => resolve(statusOf(piece.toString())))
    socket.once('close', () => resolve(0))
    socket.write(lines.join(CRLF))
    return promise.finally(() => socket.destroy())
  }

  it('registers only as often as its registration token allows, and as one cluster', async () => {
    const made = await importCluster(bed, 'raced')
    const uids = Array.from({ length: 20 }, () => uuid(secureRandom))
    const credential = 'c'.repeat(43)
    const statuses = await Promise.all(uids.map((one) => connectStatus({ uid: one, token: made.token, credential })))
    assert.deepEqual(statuses.filter((status) => status === 101).length, 1, statuses.join())
    const [winner = ''] = uids.filter((_one, index) => statuses[index] === 101)
    assert.equal(bed.running.objects.get(Clusters, made.id)?.status?.uid, winner)
    const again = await Promise.all(uids.map(() => connectStatus({ uid: winner, token: made.token, credential })))
    assert.equal(again.filter((status) => status === 101).length, 1, again.join())
    assert.ok(
      again.every((status) => status === 101 || status === 401),
      again.join(),
    )
    const left = bed.running.objects.list(RegistrationTokens).find(({ spec }) => spec.cluster === made.id)
    assert.equal(left?.spec.usesLeft, 0)
    assert.equal((await bed.request('GET', `/v3/import/${made.token}_${made.id}.yaml`)).status, 404)
  })

  it('stays one cluster if it registers with two tokens concurrently', async () => {
    const two = await Promise.all(['one', 'two'].map((name) => importCluster(bed, name)))
    const same = uuid(secureRandom)
    const credential = 'c'.repeat(43)
    const statuses = await Promise.all(two.map(({ token }) => connectStatus({ uid: same, token, credential })))
    assert.deepEqual(new Set(statuses), new Set([101, 409]))
  })

  it('loses its tunnel when it is removed, even if its agent does not cooperate', async () => {
    const made = await importCluster(bed, 'removed')
    const removedUid = uuid(secureRandom)
    await using removed = startHostileAgent(bed, { token: made.token, uid: removedUid, answer })
    await connected(bed, made.id)
    const { credential } = removed
    const tunnel = await openTunnel(bed, { credential, uid: removedUid })
    const ended = tunnel.serve().catch(() => undefined)
    const slow = await openTls(bed)
    slow.on('error', () => undefined)
    const closed = new Promise((resolve) => slow.once('close', resolve))
    slow.resume()
    slow.write(raw('/silent').replace(imported.id, made.id))
    assert.equal((await bed.request('DELETE', `/v3/clusters/${made.id}`, { token: bed.administrator })).status, 200)
    assert.equal(
      (await bed.request('GET', `/k8s/clusters/${made.id}/version`, { token: bed.administrator })).status,
      404,
    )
    slow.end()
    await closed
    // This agent closes nothing by itself.
    await ended
    assert.ok(
      !bed.running.objects.list(RegistrationTokens).some(({ spec }) => spec.cluster === made.id && spec.usesLeft > 1),
    )
  })

  it('receives no secret of the server, and logs contain none', () => {
    const secrets = [bed.administrator, imported.token, agent.credential]
    for (const secret of secrets) {
      assert.ok(!bed.logged().includes(secret))
      assert.ok(!JSON.stringify(bed.audit).includes(secret))
      assert.ok(!asked.join('').includes(secret))
    }
  })
})
