import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

import { aborted } from '../abort.ts'
import { createVirtualClock, realClock } from '../clock.ts'
import { type Dialled, inOrder, startBalancer, type TcpServer } from './tcp-balancer.ts'

async function serverOf(word: string): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.on('error', () => undefined).end(word)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

test('the TCP balancer prefers available servers, then those with few connections', () => {
  const target = (name: string, isUp: boolean, connections: number) => ({ name, isUp, connections })
  const targets = [target('busy', true, 3), target('down', false, 0), target('idle', true, 1)]
  assert.deepEqual(
    inOrder(targets).map(({ name }) => name),
    ['idle', 'busy', 'down'],
  )
})

test('the TCP balancer uses the next server when one fails, and the first one when it recovers', async () => {
  await using closing = new AsyncDisposableStack()
  const [one, other] = [await serverOf('one'), await serverOf('other')]
  closing.defer(() => void other.server.close())
  const { port } = await startBalancer(
    {
      listen: { host: '127.0.0.1', port: 0 },
      servers: [one, other].map((each) => ({ host: '127.0.0.1', port: each.port })),
      clock: realClock,
    },
    closing,
  )
  const ask = (): Promise<string> => text(connect(port, '127.0.0.1'))
  assert.equal(await ask(), 'one')
  one.server.close()
  assert.equal(await ask(), 'other')
  assert.equal(await ask(), 'other')
})

test('the TCP balancer closes connections when no server is available', async () => {
  await using closing = new AsyncDisposableStack()
  const gone = await serverOf('')
  gone.server.close()
  const servers = [{ host: '127.0.0.1', port: gone.port }]
  const { port } = await startBalancer({ listen: { host: '127.0.0.1', port: 0 }, servers, clock: realClock }, closing)
  assert.equal(await text(connect(port, '127.0.0.1')), '')
})

/** Servers that say their name, and of which some are silent: they neither accept nor refuse. */
function servers(...names: string[]) {
  const silent = new Set<string>()
  let dialled = Promise.withResolvers<string>()
  return {
    silent,
    list: names.map((host) => ({ host, port: 1 })),
    /** The name of the server that the next connection reaches. */
    next: () => (dialled = Promise.withResolvers<string>()).promise,
    dial: async ({ host }: TcpServer, signal: AbortSignal): Promise<Dialled> => {
      dialled.resolve(host)
      if (silent.has(host)) return aborted(signal).then(() => 'silent')
      const [near, far] = duplexPair()
      far.on('error', () => undefined).write(host)
      return near as Socket
    },
  }
}

test('the TCP balancer closes connections to a silent server within two seconds, and no others', async () => {
  await using closing = new AsyncDisposableStack()
  const { silent, list, dial } = servers('one', 'other')
  const clock = createVirtualClock()
  const { port } = await startBalancer({ listen: { host: '127.0.0.1', port: 0 }, servers: list, clock, dial }, closing)
  const clients = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  const clientsByAnswer = new Map<string, Socket>()
  for (const client of clients) clientsByAnswer.set(String((await once(client, 'data'))[0]), client)
  await clock.advance(10_000)
  silent.add('one')
  const ended = once(clientsByAnswer.get('one') as Socket, 'close')
  await clock.advance(2000)
  await ended
  assert.equal(clientsByAnswer.get('other')?.destroyed, false)
  silent.delete('one')
  await clock.advance(1000)
  const again = connect(port, '127.0.0.1')
  assert.equal(String((await once(again, 'data'))[0]), 'one', 'it has fewer connections, and is there again')
})

test('the TCP balancer tries the next server while one does not answer', async () => {
  await using closing = new AsyncDisposableStack()
  const { silent, list, dial, next } = servers('one', 'other')
  const clock = createVirtualClock()
  const { port } = await startBalancer({ listen: { host: '127.0.0.1', port: 0 }, servers: list, clock, dial }, closing)
  await clock.advance(500)
  silent.add('one')
  const first = next()
  const client = connect(port, '127.0.0.1')
  assert.equal(await first, 'one')
  const data = once(client, 'data')
  await clock.advance(250)
  assert.equal(String((await data)[0]), 'other')
})

test('the TCP balancer marks no server as silent after its own process was suspended', async () => {
  await using closing = new AsyncDisposableStack()
  const { silent, list, dial } = servers('one')
  const clock = createVirtualClock()
  const { port } = await startBalancer({ listen: { host: '127.0.0.1', port: 0 }, servers: list, clock, dial }, closing)
  const client = connect(port, '127.0.0.1')
  await once(client, 'data')
  silent.add('one')
  // One question is lost, as when its answer lies unread for that long.
  await clock.advance(1000)
  silent.delete('one')
  await clock.advance(10_000)
  assert.equal(client.destroyed, false)
})
