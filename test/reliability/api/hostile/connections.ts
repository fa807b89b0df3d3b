/** Attacks without credentials: connections that send slowly, nothing, or invalid data. */
import { connect as connectTcp, type Socket } from 'node:net'

import { createSeededRandom } from '#lib/random.ts'

import { credentials } from '../program.ts'
import { openSocket } from '../raw-http.ts'
import { type Attack, type AttackContext, rest } from './attack.ts'

const random = createSeededRandom(7)

/** Opens `count` connections, keeps them, and opens another for each that the server ends. */
async function keepOpen(
  context: AttackContext,
  count: number,
  open: () => Promise<Socket>,
  nurse: (socket: Socket) => void = () => undefined,
): Promise<void> {
  const { signal, tally } = context
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      const socket = await open().catch(() => undefined)
      if (socket === undefined) {
        tally.cut++
        await rest(100, signal)
        continue
      }
      tally.sent++
      await untilClosed(socket, signal, nurse)
      if (!signal.aborted) tally.cut++
      socket.destroy()
    }
  }
  // A few at a time: their own handshakes must not be what slows the machine.
  const lanes: Promise<void>[] = []
  for (let n = 0; n < count && !signal.aborted; n++) {
    lanes.push(lane())
    if (n % 10 === 9) await rest(20, signal)
  }
  await Promise.all(lanes)
}

function untilClosed(socket: Socket, signal: AbortSignal, nurse: (socket: Socket) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => nurse(socket), 1000)
    const done = (): void => {
      clearInterval(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    socket.on('error', () => undefined)
    socket.on('close', done)
    // Received data is discarded, so that the end of the connection is noticed.
    socket.resume()
    signal.addEventListener('abort', done, { once: true })
    nurse(socket)
  })
}

function openTcp({ target: { port } }: AttackContext): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
  })
}

const HEAD = `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nauthorization: ${credentials('user')['authorization']}\r\ncontent-type: application/json\r\n`

/** The first bytes of a TLS handshake, and then nothing. */
const HALF_HELLO = Buffer.from('1603010200010001fc0303', 'hex')

export const CONNECTION_ATTACKS: Readonly<Record<string, Attack>> = {
  'slow-headers': {
    what: '500 connections that send a header a byte at a time',
    minMs: 18_000,
    isCut: true,
    async run(context) {
      const begun = new WeakSet<Socket>()
      await keepOpen(
        context,
        500 * context.scale,
        () => openSocket(context.target),
        (socket) => {
          socket.write(begun.has(socket) ? 'x' : 'GET /api HTTP/1.1\r\nhost: x\r\nx-slow: ')
          begun.add(socket)
        },
      )
    },
  },
  'slow-bodies': {
    what: '300 connections that send a body of 3 MiB a byte at a time',
    minMs: 70_000,
    isCut: true,
    async run(context) {
      const begun = new WeakSet<Socket>()
      await keepOpen(
        context,
        300 * context.scale,
        () => openSocket(context.target),
        (socket) => {
          socket.write(begun.has(socket) ? ' ' : `${HEAD}content-length: 3000000\r\n\r\n{`)
          begun.add(socket)
        },
      )
    },
  },
  idle: {
    what: '1,000 connections with TLS that say nothing',
    minMs: 18_000,
    isCut: true,
    run: (context) => keepOpen(context, 1000 * context.scale, () => openSocket(context.target)),
  },
  'half-handshakes': {
    what: '1,000 TLS handshakes begun and left',
    minMs: 14_000,
    isCut: true,
    async run(context) {
      const begun = new WeakSet<Socket>()
      await keepOpen(
        context,
        1000 * context.scale,
        () => openTcp(context),
        (socket) => {
          if (!begun.has(socket)) socket.write(HALF_HELLO)
          begun.add(socket)
        },
      )
    },
  },
  garbage: {
    what: '1,000 connections of noise, half of them inside TLS',
    isCut: true,
    async run(context) {
      let turn = 0
      const open = (): Promise<Socket> => (turn++ % 2 === 0 ? openTcp(context) : openSocket(context.target))
      await keepOpen(context, 1000 * context.scale, open, (socket) => socket.write(random.bytes(512)))
    },
  },
}
