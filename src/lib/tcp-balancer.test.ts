import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

import { realClock } from './clock.ts'
import { inOrder, startBalancer } from './tcp-balancer.ts'

async function says(word: string): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.end(word)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

test('inOrder() puts those that are up first, and of them those with the fewest connections', () => {
  const target = (name: string, isUp: boolean, connections: number) => ({ name, isUp, connections })
  const targets = [target('busy', true, 3), target('down', false, 0), target('idle', true, 1)]
  assert.deepEqual(
    inOrder(targets).map(({ name }) => name),
    ['idle', 'busy', 'down'],
  )
})

test('startBalancer() goes to the next server when one has gone, and back when it is there again', async () => {
  await using closing = new AsyncDisposableStack()
  const [one, other] = [await says('one'), await says('other')]
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

test('startBalancer() ends connections when there is nobody', async () => {
  await using closing = new AsyncDisposableStack()
  const gone = await says('')
  gone.server.close()
  const servers = [{ host: '127.0.0.1', port: gone.port }]
  const { port } = await startBalancer({ listen: { host: '127.0.0.1', port: 0 }, servers, clock: realClock }, closing)
  assert.equal(await text(connect(port, '127.0.0.1')), '')
})
