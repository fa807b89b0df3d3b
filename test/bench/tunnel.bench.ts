/**
 * Benchmarks a tunnel between two threads over a WebSocket on loopback: a bulk copy in each direction, with small
 * requests on other streams meanwhile.
 */
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

import { realClock } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

import { type Bench, quantile } from './bench.ts'
import { figure, type Table } from './table.ts'

const COPY_BYTES = 400 << 20
const PIECE = Buffer.alloc(64 << 10, 'x')
const REQUEST = Buffer.alloc(200, 'r')
const REQUEST_EVERY_MS = 5

type Direction = 'up' | 'down'

/** One way to copy; `request` is missing where there is only one stream. */
interface Way {
  readonly name: string
  copy(direction: Direction, bytes: number): Promise<void>
  request?(): Promise<void>
  close(): void
}

interface Measured {
  readonly rate: number
  readonly latencies: readonly number[]
}

export const bench: Bench = {
  about: `a tunnel on loopback: copies of ${COPY_BYTES >> 20} MiB to the server (up) and to the agent (down), small requests beside them`,
  async run() {
    const worker = new Worker(new URL('tunnel.worker.ts', import.meta.url))
    try {
      const [port] = (await once(worker, 'message')) as [number]
      const ways = [bare(port), await tunnel(port, 1), await tunnel(port, 2)]
      const tables = [await measureWays(ways)]
      for (const way of ways) way.close()
      return tables
    } finally {
      worker.postMessage('stop')
      await worker.terminate()
    }
  },
}

async function measureWays(ways: readonly Way[]): Promise<Table> {
  const rows: string[][] = []
  const results: string[] = []
  for (const way of ways) {
    for (const direction of ['up', 'down'] as const) await way.copy(direction, COPY_BYTES / 8)
    const up = await measure(way, 'up')
    const down = await measure(way, 'down')
    const delays = [up, down].map(({ latencies }) => [quantile(latencies, 0.5), quantile(latencies, 0.99)])
    rows.push([way.name, figure(up.rate), figure(down.rate), ...delays.flat().map(figure)])
    const [p50 = Number.NaN, p99 = Number.NaN] = [0, 1].map((at) => Math.max(...delays.map((pair) => pair[at] ?? 0)))
    const copies = `${figure(up.rate)} MB/s up, ${figure(down.rate)} MB/s down`
    results.push(
      `${way.name}: ${copies}${way.request ? `, requests p50 ${figure(p50)} ms, p99 ${figure(p99)} ms` : ''}`,
    )
  }
  return {
    title: 'one copy, and requests beside it',
    columns: ['', 'up MB/s', 'down MB/s', 'p50 ms, up', 'p99 ms, up', 'p50 ms, down', 'p99 ms, down'],
    rows,
    notes: [`Requests have ${REQUEST.length} bytes each way and their own streams.`],
    result: results.at(-1) ?? '',
  }
}

/** The rate without requests, the latencies with them. */
async function measure(way: Way, direction: Direction): Promise<Measured> {
  const start = performance.now()
  await way.copy(direction, COPY_BYTES)
  const rate = COPY_BYTES / 1000 / (performance.now() - start)
  const latencies: number[] = []
  if (way.request === undefined) return { rate, latencies }
  const over = new AbortController()
  const copying = way.copy(direction, COPY_BYTES).finally(() => over.abort())
  while (!over.signal.aborted) {
    const sent = performance.now()
    await way.request()
    latencies.push(performance.now() - sent)
    await pause(REQUEST_EVERY_MS)
  }
  await copying
  return { rate, latencies }
}

function bare(port: number): Way {
  const copy = async (direction: Direction, bytes: number): Promise<void> => {
    const what = direction === 'up' ? 'sink' : 'source'
    const connection = await connect(port, `${what}/${bytes}`)
    if (direction === 'up') for (let sent = 0; sent < bytes; sent += PIECE.length) await connection.send(PIECE)
    let left = direction === 'up' ? 1 : bytes
    for await (const { data } of connection) if ((left -= data.length) <= 0) break
    connection.destroy()
  }
  return { name: 'a WebSocket alone', copy, close: () => undefined }
}

async function tunnel(port: number, version: 1 | 2): Promise<Way> {
  const connection = await connect(port, 'tunnel', version === 2 ? [TUNNEL_PROTOCOL] : [])
  const own = new Tunnel(connection, { clock: realClock, side: 'agent' })
  void own.serve().catch(() => undefined)
  return {
    name: `tunnel, version ${version}`,
    async copy(direction, bytes) {
      const what = direction === 'up' ? 'sink' : 'source'
      const stream = own.dial(what, String(bytes), { priority: 'bulk' })
      if (direction === 'up') await write(stream, bytes)
      await receive(stream, direction === 'up' ? 1 : bytes)
    },
    async request() {
      const stream = own.dial('echo', '')
      stream.write(REQUEST)
      await receive(stream, REQUEST.length)
    },
    close: () => connection.destroy(),
  }
}

function connect(port: number, path: string, protocols: readonly string[] = []): Promise<WebSocketConnection> {
  return connectWebSocket({
    clock: realClock,
    url: `ws://127.0.0.1:${port}/${path}`,
    protocols,
    pingIntervalMs: 10_000,
  })
}

async function write(stream: Duplex, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes; sent += PIECE.length) if (!stream.write(PIECE)) await once(stream, 'drain')
}

/** Reads so many bytes and destroys the stream. */
async function receive(stream: Duplex, bytes: number): Promise<void> {
  let left = bytes
  for await (const piece of stream as AsyncIterable<Buffer>) if ((left -= piece.length) <= 0) return
  throw new Error('The stream ended early')
}
