/** Tests proxying to an aggregated server: forwarded requests, returned responses, and misbehaving servers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, beforeEach, describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'

import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { fetchFrom } from '../fetch-from.ts'
import {
  addApiService,
  addService,
  type AggregatedServer,
  authority,
  CA_BUNDLE,
  type FrontPlane,
  frontProxy,
  isSaid,
  type Json,
  type Seen,
  startAggregatedServer,
  startFrontPlane,
} from './aggregated-server.ts'

const WIDGETS = '/apis/agg.io/v1/namespaces/default/widgets'

let server: AggregatedServer
let front: FrontPlane

before(async () => {
  server = await startAggregatedServer()
  front = await startFrontPlane()
  await addService(front, server.port)
  await addApiService(front)
  await isSaid(front, 'Passed')
  const apiGroup = 'rbac.authorization.k8s.io'
  const rbac = `/apis/${apiGroup}/v1`
  const rules = [
    { apiGroups: ['agg.io'], resources: ['widgets', 'widgets/exec'], verbs: ['get', 'list', 'create'] },
    { apiGroups: [''], resources: ['users', 'groups', 'userextras/scopes/a', 'uids'], verbs: ['impersonate'] },
  ]
  await front.must('POST', `${rbac}/clusterroles`, { metadata: { name: 'jane' }, rules })
  await front.must('POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'jane' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'jane' },
    subjects: [{ apiGroup, kind: 'User', name: 'jane' }],
  })
})

after(async () => {
  await front[Symbol.asyncDispose]()
  await server.stop()
})

beforeEach(() => {
  server.answer = () => undefined
})

const asJane = { authorization: 'Bearer jane' }
const lastTo = (path: string): Seen => {
  const found = server.to(path).at(-1)
  assert.ok(found, `nothing came to ${path}`)
  return found
}
const valuesOf = ({ raw }: Seen, name: string): string[] =>
  raw.flatMap((value, at) => (at % 2 === 1 && raw[at - 1]?.toLowerCase() === name ? [value] : []))
const echo = (exchange: Exchange): void => exchange.respond(200, ['Content-Type', 'text/plain', 'X-Own', 'y'], 'fine')
const ask = (path: string, init: RequestInit = {}): Promise<Response> => fetchFrom(front.plane, path, init)

describe('a request to an aggregated server', () => {
  it('arrives unchanged, with the user in headers and without credentials', async () => {
    server.answer = echo
    const path = `${WIDGETS}?limit=5&labelSelector=a%3Db&x=%zz`
    const headers = {
      ...asJane,
      accept: 'application/yaml',
      'user-agent': 'me',
      'x-mine': '1',
      'x-remote-user': 'root',
      'x-remote-group': 'system:masters',
      'x-remote-extra-a': 'b',
      'audit-id': 'my-id',
      'hyperkube-because': 'pods/default/one@7',
    }
    const answer = await front.plane.request('GET', path, undefined, headers)
    assert.deepEqual([answer.status, answer.text, answer.headers.get('x-own')], [200, 'fine', 'y'])
    assert.equal(answer.headers.get('audit-id'), 'my-id')
    assert.ok(answer.headers.get('x-kubernetes-pf-flowschema-uid'))
    assert.match(answer.headers.get('cache-control') ?? '', /no-cache, private/)
    const seen = lastTo(path)
    assert.equal(seen.caller, 'front-proxy-client')
    assert.deepEqual(valuesOf(seen, 'x-remote-user'), ['jane'])
    assert.deepEqual(valuesOf(seen, 'x-remote-uid'), ['jane-uid'])
    assert.deepEqual(valuesOf(seen, 'x-remote-group'), ['devs', 'ops', 'system:authenticated'])
    assert.deepEqual(valuesOf(seen, 'x-remote-extra-a'), [])
    assert.deepEqual(valuesOf(seen, 'audit-id'), ['my-id'])
    const place = `10.1.2.3:${server.port}`
    const expected = {
      accept: 'application/yaml',
      'user-agent': 'me',
      'x-mine': '1',
      authorization: undefined,
      'hyperkube-because': undefined,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': place,
      'x-forwarded-proto': 'https',
      'x-forwarded-uri': WIDGETS,
    }
    for (const [name, value] of Object.entries(expected)) assert.equal(seen.headers[name], value, name)
    assert.equal(seen.headers[':authority'] ?? seen.headers['host'], place)
  })

  it('carries the impersonated user, with escaped extra keys', async () => {
    server.answer = echo
    const headers = {
      'impersonate-user': 'bob',
      'impersonate-extra-scopes%2fa': 'one',
      'impersonate-group': 'system:masters',
    }
    assert.equal((await front.plane.request('GET', WIDGETS, undefined, headers)).status, 200)
    const seen = lastTo(WIDGETS)
    assert.deepEqual(valuesOf(seen, 'x-remote-user'), ['bob'])
    assert.deepEqual(valuesOf(seen, 'x-remote-extra-scopes%2fa'), ['one'])
    assert.deepEqual(
      Object.keys(seen.headers).filter((name) => name.startsWith('impersonate')),
      [],
    )
  })

  it('is authorized by kube-apiserver first', async () => {
    const before = server.seen.length
    const answer = await front.plane.request('DELETE', `${WIDGETS}/w`, undefined, asJane)
    assert.equal(answer.status, 403)
    assert.match(answer.text, /cannot delete resource \\"widgets\\" in API group \\"agg\.io\\"/)
    assert.equal(server.seen.slice(before).filter(({ method }) => method === 'DELETE').length, 0)
  })

  it('may have any method and a body, and gets any response', async () => {
    const got: [string, number][] = []
    server.answer = async (exchange) => {
      const body = await exchange.readBody(64 << 20)
      got.push([exchange.method, body.length])
      exchange.respond(418, ['Content-Type', 'application/json'], JSON.stringify({ kind: 'Status', code: 418 }))
    }
    const body = 'x'.repeat(5_000_000)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await front.plane.request(method, `${WIDGETS}/w`, body, { 'content-type': 'text/plain' })
      assert.deepEqual([answer.status, answer.json()], [418, { kind: 'Status', code: 418 }])
    }
    assert.deepEqual(
      got.filter(([method]) => method !== 'GET'),
      ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, body.length]),
    )
  })

  it('gets 502 if the aggregated server redirects', async () => {
    server.answer = (exchange) => exchange.respond(307, ['Location', 'https://evil.example/'], '')
    const answer = await ask(WIDGETS, { redirect: 'manual' })
    assert.equal(answer.status, 502)
    assert.equal(answer.headers.get('location'), null)
    assert.equal(await answer.text(), 'the backend attempted to redirect this request, which is not permitted')
  })

  it('ends when its timeout expires', async () => {
    server.answer = () => new Promise(() => undefined)
    const answer = await front.plane.request('GET', `${WIDGETS}?timeout=50ms`)
    assert.deepEqual([answer.status, answer.json()['reason']], [504, 'Timeout'])
  })
})

describe('a streaming response of an aggregated server', () => {
  it('arrives in chunks, and ends when the client disconnects', async () => {
    const gone = Promise.withResolvers<void>()
    server.answer = (exchange) => {
      if (!exchange.path.includes('watch=true')) return undefined
      const writer = exchange.stream(200, ['Content-Type', 'application/json'])
      writer.write(Buffer.from('{"type":"ADDED"}\n'))
      writer.onClose(gone.resolve)
      return Promise.resolve()
    }
    const ending = new AbortController()
    const answer = await ask(`${WIDGETS}?watch=true`, { signal: ending.signal })
    const reader = answer.body!.getReader()
    const { value } = await reader.read()
    assert.equal(Buffer.from(value).toString(), '{"type":"ADDED"}\n')
    ending.abort()
    await reader.read().catch(() => undefined)
    await gone.promise
  })

  it('is aborted if the aggregated server dies', async () => {
    await using other = await startAggregatedServer()
    await addService(front, other.port, 'mortal')
    const spec = { service: { namespace: 'default', name: 'mortal' }, caBundle: undefined, insecureSkipTLSVerify: true }
    await addApiService(front, spec, 'v2')
    await isSaid(front, 'Passed', 'v2.agg.io')
    other.answer = (exchange) => {
      if (!exchange.path.endsWith('/widgets')) return undefined
      exchange.stream(200, ['Content-Type', 'text/plain']).write(Buffer.from('half'))
      return Promise.resolve()
    }
    const answer = await ask('/apis/agg.io/v2/widgets')
    const reader = answer.body!.getReader()
    assert.equal(Buffer.from((await reader.read()).value).toString(), 'half')
    await other.stop()
    await assert.rejects(async () => {
      for (;;) if ((await reader.read()).done) return
    })
    const after = await front.plane.request('GET', '/apis/agg.io/v2/widgets')
    assert.equal(after.status, 503)
    assert.match(after.text, /^(?:service unavailable|error trying to reach service: .*)\n$/)
  })

  it('leaves no connection open, whichever side closes it', async () => {
    const open = new Set<object>()
    server.answer = (exchange) => {
      if (!exchange.path.includes('watch=true')) return undefined
      const writer = exchange.stream(200, ['Content-Type', 'application/json'])
      writer.write(Buffer.from('{}\n'))
      open.add(writer)
      writer.onClose(() => open.delete(writer))
      return Promise.resolve()
    }
    const ending = new AbortController()
    const watches = await Promise.all(
      Array.from({ length: 40 }, () => ask(`${WIDGETS}?watch=true`, { signal: ending.signal })),
    )
    assert.equal(open.size, watches.length)
    ending.abort()
    await eventually(
      () => open.size,
      (size) => size === 0,
    )
  })

  it('is sent only as fast as the client reads', async () => {
    let written = 0
    server.answer = async (exchange) => {
      const writer = exchange.stream(200, ['Content-Type', 'text/plain'])
      const piece = Buffer.alloc(64 << 10)
      for (let at = 0; at < 1024 && !writer.isClosed; at++) {
        written += piece.length
        if (!writer.write(piece)) await writer.drained()
      }
      writer.end()
    }
    const answer = await ask(WIDGETS)
    const reader = answer.body!.getReader()
    await reader.read()
    const stalled = await eventually(
      async () => {
        const before = written
        await new Promise((resolve) => setImmediate(resolve))
        return [before, written] as const
      },
      ([before, now]) => before === now && now > 0,
    )
    assert.ok(stalled[1] < 64 << 20, 'everything was taken at once')
    let size = 0
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      size += value.length
    }
    assert.ok(size > 60 << 20)
  })
})

describe('an upgraded connection to an aggregated server', () => {
  const upgrade = async (path: string): Promise<{ text: string; seen: Seen | undefined }> => {
    const socket = connectTls({ host: '127.0.0.1', port: front.plane.running.port, ca: front.plane.ca })
    await once(socket, 'secureConnect')
    const head = ['Host: plane', 'Connection: Upgrade', 'Upgrade: SPDY/3.1', 'Authorization: Bearer jane']
    socket.write([`POST ${path} HTTP/1.1`, ...head, '', ''].join('\r\n'))
    let text = ''
    socket.on('data', (piece: Buffer) => {
      text += piece.toString()
      if (text.endsWith('ready')) socket.write('hello')
      if (text.endsWith('hello')) socket.end()
    })
    await once(socket, 'close')
    return { text, seen: server.to(path).at(-1) }
  }

  it('is forwarded, with the user in headers', async () => {
    server.answer = (exchange) => {
      if (exchange.upgradeProtocol === undefined) return undefined
      const { socket } = exchange.upgrade()
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nready')
      socket.on('data', (piece: Buffer) => socket.write(piece))
      socket.on('end', () => socket.end())
      socket.on('error', () => undefined)
      return Promise.resolve()
    }
    const { text, seen } = await upgrade(`${WIDGETS}/w/exec?command=sh`)
    assert.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n[^]*readyhello$/)
    assert.equal(seen?.headers['x-remote-user'], 'jane')
    assert.equal(seen.headers['authorization'], undefined)
    assert.equal(seen.caller, 'front-proxy-client')
  })

  it('gets the response of the aggregated server if that refuses', async () => {
    server.answer = (exchange) =>
      exchange.upgradeProtocol === undefined ? undefined : Promise.resolve(exchange.respond(400, [], 'no'))
    const { text } = await upgrade(`${WIDGETS}/w/exec`)
    assert.match(text, /^HTTP\/1\.1 400 /)
  })
})

describe('client certificate of the front proxy', () => {
  it('is reloaded when its files change', async () => {
    server.answer = echo
    const renewed = frontProxy.issue({ commonName: 'renewed', purpose: 'client' })
    front.files.set('front-proxy-client.crt', renewed.certificatePem)
    front.files.set('front-proxy-client.key', renewed.keyPem)
    await front.plane.running.files.poll()
    await front.plane.request('GET', WIDGETS)
    assert.equal(lastTo(WIDGETS).caller, 'renewed')
    assert.equal(CA_BUNDLE, Buffer.from(authority.certificatePem).toString('base64'))
  })

  it('authenticates a proxy in front of kube-apiserver too, whose UID header needs a feature gate', async () => {
    const shown = frontProxy.issue({ commonName: 'front-proxy-client', purpose: 'client' })
    const who = async (plane: FrontPlane): Promise<Json> => {
      const tls = { ca: plane.plane.ca, certificate: shown.certificatePem, key: shown.keyPem }
      const client = createHttpClient({ clock: realClock, tls })
      const headers = {
        'x-remote-user': 'ada',
        'x-remote-group': ['g1', 'g2'],
        'x-remote-uid': 'u-1',
        'x-remote-extra-scopes%2fa': 'one',
        'content-type': 'application/json',
      }
      const url = `${plane.plane.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`
      const answer = await client.request({ method: 'POST', url, headers, body: '{}' })
      const { status }: Json = JSON.parse(await answer.text(1 << 20))
      client.close()
      return status.userInfo
    }
    const known = { username: 'ada', groups: ['g1', 'g2', 'system:authenticated'], extra: { 'scopes/a': ['one'] } }
    assert.deepEqual(await who(front), known)
    await using other = await startFrontPlane({ 'requestheader-uid-headers': ['X-Remote-Uid'] })
    assert.deepEqual(await who(other), { ...known, uid: 'u-1' })
  })

  it('is signed by the CA in extension-apiserver-authentication, with the names of the user headers', async () => {
    const { data } = await front.must(
      'GET',
      '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
    )
    assert.equal(data['requestheader-client-ca-file'].trim(), frontProxy.certificatePem.trim())
    assert.equal(data['requestheader-allowed-names'], '["front-proxy-client"]')
    assert.equal(data['requestheader-username-headers'], '["X-Remote-User"]')
    assert.equal(data['requestheader-group-headers'], '["X-Remote-Group"]')
    assert.equal(data['requestheader-extra-headers-prefix'], '["X-Remote-Extra-"]')
  })
})
