/**
 * Tests exec, attach and port forwarding by SPDY and WebSocket, to kubelets that support WebSocket and kubelets that do
 * not.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { acceptWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'

import {
  addNode,
  addPod,
  type ConnectedPlane,
  dialPlane,
  PODS,
  READER,
  SPDY,
  startConnectedPlane,
  upgradeRequest,
  WEBSOCKET,
} from './connected-plane.ts'
import { acceptSpdy, type SpdySession, switching, textOf } from './stand-in-kubelet.ts'

let connected: ConnectedPlane

before(async () => {
  connected = await startConnectedPlane()
  await addNode(connected, 'old')
  await addNode(connected, 'new', '127.0.0.1', ['ExtendWebSocketsToKubelet'])
  await addPod(connected, { name: 'a', node: 'old' })
  await addPod(connected, { name: 'b', node: 'new' })
  await addPod(connected, { name: 'waiting' })
})

after(() => connected.stop())

const open = (path: string, protocols: readonly string[], token?: string): Promise<WebSocketConnection> =>
  connected.webSocket(`${PODS}/${path}`, protocols, token)

/** Messages by channel, until the connection is closed. */
async function channels(socket: WebSocketConnection): Promise<Map<number, string>> {
  const out = new Map<number, string>()
  for await (const { data } of socket) {
    const channel = data[0] ?? -1
    out.set(channel, (out.get(channel) ?? '') + data.toString('utf8', 1))
  }
  return out
}

const V5 = ['v5.channel.k8s.io']

/** Sets the kubelet's handler of a SPDY session. */
function onSpdy(serve: (session: SpdySession) => Promise<void>, protocol?: string): void {
  connected.kubelet.answer = (exchange) => serve(acceptSpdy(exchange, protocol))
}

describe('exec by WebSocket with a kubelet that speaks SPDY', () => {
  it('is translated to SPDY streams, and its exit code to a Status', async () => {
    onSpdy(async ({ connection, stream }) => {
      const stdin = await textOf(await stream('stdin'))
      const [stdout, stderr, error] = [await stream('stdout'), await stream('stderr'), await stream('error')]
      await stdout.write(Buffer.from(`read ${stdin}`))
      await stderr.write(Buffer.from('warned'))
      await error.write(Buffer.from('{"status":"Failure","reason":"NonZeroExitCode"}'))
      connection.close()
    })
    const socket = await open('a/exec?command=sh&command=-c&command=x%20y&stdin=1&stdout=true&stderr', V5)
    assert.equal(socket.protocol, 'v5.channel.k8s.io')
    await socket.send(Buffer.from('\x00in'))
    await socket.send(Buffer.from('\x00put'))
    await socket.send(Buffer.from([255, 0]))
    const said = await channels(socket)
    assert.equal(said.get(1), 'read input')
    assert.equal(said.get(2), 'warned')
    assert.equal(said.get(3), '{"status":"Failure","reason":"NonZeroExitCode"}')
    const path = '/exec/default/a/c?command=sh&command=-c&command=x+y&error=1&input=1&output=1'
    assert.equal(connected.kubelet.asked.at(-1), `POST ${path}`)
    assert.match(connected.kubelet.caller, /kube-apiserver-kubelet-client/)
  })

  it('passes on the terminal size, and may have a single output stream', async () => {
    onSpdy(async ({ connection, stream }) => {
      const resize = await stream('resize')
      const stdout = await stream('stdout')
      for await (const size of resize) {
        await stdout.write(size)
        break
      }
      connection.close()
    })
    const socket = await open('a/attach?tty=true&stdin=true&stdout=true&stderr=true', V5)
    await socket.send(Buffer.from('\x04{"Width":80,"Height":24}'))
    const said = await channels(socket)
    assert.equal(said.get(1), '{"Width":80,"Height":24}')
    assert.equal(said.get(3), '{"metadata":{},"status":"Success"}')
    assert.equal(connected.kubelet.asked.at(-1), 'POST /attach/default/a/c?error=1&input=1&output=1&tty=1')
  })

  it('transfers megabytes in both directions', async () => {
    const size = 3_000_000
    onSpdy(async ({ connection, stream }) => {
      const stdout = await stream('stdout')
      for await (const piece of await stream('stdin')) await stdout.write(piece)
      stdout.end()
      connection.close()
    })
    const socket = await open('a/exec?command=cat&stdin=1&stdout=1', V5)
    const piece = Buffer.concat([Buffer.from([0]), Buffer.alloc(30_000, 'x')])
    const sending = (async () => {
      for (let sent = 0; sent < size; sent += 30_000) await socket.send(piece)
      await socket.send(Buffer.from([255, 0]))
    })()
    assert.equal((await channels(socket)).get(1)?.length, size)
    await sending
  })

  it('reports connection errors as a Status', async () => {
    const failure = async (answer: (exchange: Exchange) => void): Promise<string> => {
      connected.kubelet.answer = answer
      const said = (await channels(await open('a/exec?command=ls&stdout=1', V5))).get(3) ?? ''
      return (JSON.parse(said) as { message: string }).message
    }
    const upgrading = 'Internal error occurred: unable to upgrade connection:'
    assert.equal(
      await failure((exchange) => exchange.respond(404, [], 'pod does not exist\n')),
      `${upgrading} pod does not exist`,
    )
    assert.equal(await failure((exchange) => exchange.respond(403, [], '{"message":"no"}')), `${upgrading} no`)
    const cut = (exchange: Exchange): void => {
      const { connection, stream } = acceptSpdy(exchange)
      void stream('stdout').then(() => connection.destroy())
    }
    assert.equal(await failure(cut), 'Internal error occurred: the connection to the kubelet was lost')
    assert.match(await failure((exchange) => void acceptSpdy(exchange, 'v1.channel.k8s.io')), /speaks "v1.channel/)
    const redirect = ['Location', `https://127.0.0.1:${connected.kubelet.port}/canary`]
    await failure((exchange) => exchange.respond(302, redirect, ''))
    assert.ok(!connected.kubelet.asked.some((request) => request.includes('canary')))
  })

  it('is aborted at the kubelet when the client disconnects', async () => {
    const session = Promise.withResolvers<SpdySession>()
    onSpdy(async (one) => {
      await one.stream('stdout')
      session.resolve(one)
    })
    const socket = await open('a/exec?command=sleep&stdout=1', V5)
    const { connection } = await session.promise
    socket.destroy()
    await connection.closed
  })
})

describe('exec without translation', () => {
  it('forwards SPDY byte for byte, and headers without credentials', async () => {
    connected.kubelet.answer = async (exchange) => {
      const { socket, head } = exchange.upgrade()
      socket.write(switching('Upgrade: SPDY/3.1\r\nX-Theirs: 1\r\n'))
      socket.write(`got ${head.toString()}`)
      for await (const bytes of socket) socket.write(bytes)
      socket.end()
    }
    const socket = dialPlane(connected)
    const path = `${PODS}/a/exec?command=sh&stdout=1`
    socket.write(upgradeRequest('POST', path, [...SPDY, 'X-Mine: 1']))
    const next = (): Promise<Buffer> => new Promise((resolve) => socket.once('data', resolve))
    let first = ''
    while (!first.endsWith('got ')) first += (await next()).toString()
    assert.match(first, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
    assert.match(first, /\r\nX-Theirs: 1\r\n/)
    socket.write(Buffer.from([0x80, 3, 0xff, 0]))
    assert.deepEqual([...(await next())], [0x80, 3, 0xff, 0])
    socket.destroy()
    const { lastHeaders } = connected.kubelet
    assert.equal(lastHeaders['authorization'], undefined)
    assert.equal(lastHeaders['x-mine'], '1')
    assert.equal(lastHeaders['x-forwarded-for'], '127.0.0.1')
    assert.equal(lastHeaders['x-stream-protocol-version'], 'v4.channel.k8s.io')
  })

  it('forwards WebSocket to a kubelet that supports it', async () => {
    connected.kubelet.answer = async (exchange) => {
      const choose = ([first]: readonly string[]): string | undefined => first
      const socket = await acceptWebSocket(exchange, { clock: realClock, choose })
      await socket.send('\x01hello')
      await socket.close()
    }
    const socket = await open('b/exec?command=ls&stdout=1', V5)
    assert.deepEqual([...(await channels(socket))], [[1, 'hello']])
    assert.equal(connected.kubelet.asked.at(-1), 'GET /exec/default/b/c?command=ls&output=1')
  })

  it('forwards older WebSocket subprotocols to any kubelet', async () => {
    connected.kubelet.answer = (exchange) => exchange.respond(403, [], 'not me')
    await assert.rejects(open('a/exec?command=ls&stdout=1', ['v4.channel.k8s.io']), { status: 403 })
    assert.equal(connected.kubelet.asked.at(-1), 'GET /exec/default/a/c?command=ls&output=1')
  })

  it('ends when the server stops', async () => {
    const own = await startConnectedPlane()
    await addNode(own, 'old')
    await addPod(own, { name: 'a', node: 'old' })
    own.kubelet.answer = (exchange) => void exchange.upgrade().socket.write(switching('Upgrade: SPDY/3.1\r\n'))
    const socket = dialPlane(own)
    socket.write(upgradeRequest('POST', `${PODS}/a/exec?command=sh&stdout=1`, SPDY))
    await new Promise((resolve) => socket.once('data', resolve))
    const over = textOf(socket)
    await own.stop()
    await over
  })
})

/** No client library takes a subprotocol with a slash in its name; kubectl brings its own. */
const TUNNEL = [...WEBSOCKET, 'Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io']

describe('port forwarding by WebSocket', () => {
  it('transfers SPDY in WebSocket messages, unwrapped for the kubelet', async () => {
    connected.kubelet.answer = async (exchange) => {
      const { socket } = exchange.upgrade()
      socket.write(switching('Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n'))
      socket.write('hello')
      for await (const bytes of socket) socket.write(bytes)
    }
    const socket = dialPlane(connected)
    socket.write(upgradeRequest('GET', `${PODS}/a/portforward?ports=80,443&ports=8080`, TUNNEL))
    let received = ''
    for await (const bytes of socket) {
      received += (bytes as Buffer).toString('latin1')
      // A binary message of six bytes, masked by nothing.
      if (received.endsWith('hello')) socket.write(Buffer.from('\x82\x86\0\0\0\0echoed', 'latin1'))
      if (received.endsWith('echoed')) break
    }
    assert.match(received, /^HTTP\/1\.1 101 [\s\S]*\r\nSec-WebSocket-Protocol: SPDY\/3\.1\+portforward\.k8s\.io\r\n/)
    assert.ok(received.endsWith('\r\n\r\n\x82\x05hello\x82\x06echoed'))
    assert.equal(connected.kubelet.asked.at(-1), 'POST /portForward/default/a?port=80%2C443%2C8080')
    assert.equal(connected.kubelet.lastHeaders['x-stream-protocol-version'], 'portforward.k8s.io')
    assert.equal(connected.kubelet.lastHeaders['sec-websocket-key'], undefined)
  })

  it('returns the error of the kubelet', async () => {
    connected.kubelet.answer = (exchange) => exchange.respond(404, [], 'pod does not exist')
    const socket = dialPlane(connected)
    socket.write(upgradeRequest('GET', `${PODS}/a/portforward`, TUNNEL))
    assert.match(await textOf(socket), /^HTTP\/1\.1 404 [\s\S]*pod does not exist$/)
  })

  it('requires numeric ports', async () => {
    for (const [ports, why] of [
      ['x', '"x": invalid syntax'],
      ['80,', '"": invalid syntax'],
      ['-1', '"-1": invalid syntax'],
      ['65536', '"65536": value out of range'],
    ]) {
      const answer = await connected.plane.request('GET', `${PODS}/a/portforward?ports=${ports}`)
      assert.equal(answer.status, 400)
      assert.equal(answer.json()['message'], `cannot convert to []int32: strconv.ParseUint: parsing ${why}`)
    }
    const fine = await connected.plane.request('GET', `${PODS}/a/portforward?ports=65535`)
    assert.equal(fine.json()['message'], 'Upgrade request required')
  })
})

describe('refused exec request', () => {
  const refused = async (method: string, path: string, token = 'admin'): Promise<readonly unknown[]> => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await connected.plane.request(method, `${PODS}/${path}`, undefined, headers)
    return [answer.status, answer.json()['message']]
  }

  it('contains the reason', async () => {
    assert.deepEqual(await refused('POST', 'a/exec?command=ls'), [400, 'Upgrade request required'])
    assert.deepEqual(await refused('POST', 'none/exec'), [404, 'pods "none" not found'])
    const hostless = [400, 'pod waiting does not have a host assigned']
    assert.deepEqual(await refused('POST', 'waiting/exec'), hostless)
    assert.deepEqual(await refused('POST', 'waiting/portforward'), hostless)
    assert.deepEqual(await refused('POST', 'a/attach?container=x'), [400, 'container x is not valid for pod a'])
    assert.deepEqual(await refused('POST', 'a/exec?dryRun=All'), [400, 'dryRun is not supported'])
    assert.equal((await refused('PUT', 'a/exec'))[0], 405)
  })

  it('requires the create permission, although WebSocket uses GET', async () => {
    const before = connected.kubelet.asked.length
    for (const part of ['exec?command=ls', 'attach?stdout=1', 'portforward']) {
      await assert.rejects(open(`a/${part}`, V5, READER), { status: 403 })
    }
    const [status, message] = await refused('GET', 'a/exec?command=ls', READER)
    assert.equal(status, 403)
    const why = 'User "reader" cannot create resource "pods/exec" in API group "" in the namespace "default"'
    assert.equal(message, `pods "a" is forbidden: ${why}`)
    assert.equal(connected.kubelet.asked.length, before)
  })
})

describe('metrics of streams', () => {
  it('count them by protocol', async () => {
    const { text } = await connected.plane.request('GET', '/metrics')
    const series: readonly string[] = text.match(/^apiserver_(?:websocket|stream)\S+/gm) ?? []
    const ways = ['proxied_to_kubelet', 'translated_at_apiserver']
    const expected = [
      ...ways.map((way) => `apiserver_websocket_streaming_requests_total{proxy_type="${way}",subresource="exec"}`),
      ...[200, 500].map((code) => `apiserver_stream_translator_requests_total{code="${code}"}`),
      ...[101, 404].map((code) => `apiserver_stream_tunnel_requests_total{code="${code}"}`),
    ]
    assert.deepEqual(
      expected.filter((one) => !series.includes(one)),
      [],
    )
  })
})

/** CVE-2018-1002105: after an upgrade that failed, the client spoke to the kubelet as the API server. */
describe('connection after a refused upgrade', () => {
  const REFUSALS: readonly (readonly [string, number, string])[] = [
    ['403 Forbidden', 403, 'no way'],
    ['200 OK', 500, 'invalid upgrade response: status code 200'],
    ['302 Found\r\nLocation: https://127.0.0.1/canary', 500, 'invalid upgrade response: status code 302'],
  ]
  for (const [line, status, text] of REFUSALS) {
    it(`is closed after ${line.split('\r')[0]}`, async () => {
      const seen: string[] = []
      // Not an HTTP server: one that would go on talking.
      const over = Promise.withResolvers<void>()
      const backend = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.on('close', () => over.resolve())
        socket.on('data', (bytes) => {
          seen.push(bytes.toString('latin1'))
          if (seen.length === 1) socket.write(`HTTP/1.1 ${line}\r\nContent-Length: 6\r\n\r\nno way`)
          else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npwned!!')
        })
      })
      await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
      const { port } = backend.address() as { port: number }
      const routeTo = (): string => '127.0.0.1'
      await using own = await startConnectedPlane({ network: { lookup: () => Promise.resolve([]), routeTo } })
      await addPod(own, { name: 'web', node: 'x', ip: '10.1.2.3', port })
      const socket = dialPlane(own)
      socket.write(upgradeRequest('GET', `${PODS}/web/proxy/x`, WEBSOCKET))
      socket.write(upgradeRequest('GET', '/secret', []))
      const said = await textOf(socket)
      assert.match(said, new RegExp(`^HTTP/1\\.1 ${status} `))
      assert.ok(said.includes(text), said)
      assert.ok(!said.includes('pwned') && said.split('HTTP/1.1').length === 2, said)
      assert.ok(!seen.join('').includes('/secret'))
      await over.promise
      backend.close()
    })
  }
})
