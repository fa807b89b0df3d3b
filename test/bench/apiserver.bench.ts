/**
 * Benchmarks the API server from outside: reads, lists, durable writes, watches, start, restart and memory, over TLS
 * with a client certificate and RBAC.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { type Bench, quantile } from './bench.ts'
import { collectionOf, post } from './config-maps.ts'
import { encodeRequest, type Load, openConnection, pause, runLoad, sendAll } from './http-load.ts'
import { type ServerUnderTest, startOurs, type StartServer, startTheirs, type Usage } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

const WARM_UP_MS = 1500
const RUN_MS = 2500
const STARTS = 3
/** Long enough after the start for everything that begins then to have ended. */
const IDLE_AFTER_MS = 3000
const CHANGE_EVERY_MS = 10

export const bench: Bench = {
  about: `kube-apiserver as npm installs it; requests over TLS, client and server on the same processors; ${WARM_UP_MS} ms warm-up, ${RUN_MS} ms measured`,
  async run({ reference, only = '' }) {
    const parts = PARTS.filter(({ name }) => name.includes(only))
    if (parts.length === 0) throw new Error(`No part "${only}"; there are ${PARTS.map(({ name }) => name).join(', ')}`)
    const ours = await measureServer(startOurs, parts)
    if (!reference) return ours.map(toTable)
    const theirs = await measureServer(startTheirs, parts)
    return ours.map((figures, at) => (theirs[at] === undefined ? toTable(figures) : besides(figures, theirs[at])))
  },
}

/** The parts that `--only` selects. `alone` starts separate servers; the others share one server with objects. */
type Part =
  | { readonly name: string; readonly alone: (start: StartServer, folder: string) => Promise<readonly Figures[]> }
  | { readonly name: string; readonly filled: (server: ServerUnderTest) => Promise<Figures> }

const PARTS: readonly Part[] = [
  { name: 'starts', alone: measureStarts },
  { name: 'reads', filled: measureReads },
  { name: 'writes', filled: measureWrites },
  { name: 'watches', filled: measureWatches },
  { name: 'sizes', alone: measureSizes },
]

async function measureServer(start: StartServer, parts: readonly Part[]): Promise<readonly Figures[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-'))
  let loaded: ServerUnderTest | undefined
  const figures: Figures[] = []
  try {
    for (const part of parts) {
      if ('filled' in part) {
        loaded ??= await startFilled(start, join(folder, 'load'))
        figures.push(await part.filled(loaded))
        continue
      }
      // Benchmarks of a start need the whole machine.
      await loaded?.stop()
      loaded = undefined
      figures.push(...(await part.alone(start, join(folder, part.name))))
    }
    return figures
  } finally {
    await loaded?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function startFilled(start: StartServer, folder: string): Promise<ServerUnderTest> {
  const server = await start(folder)
  await fill(server).catch(async (error: unknown) => {
    await server.stop()
    throw error
  })
  return server
}

async function measureStarts(start: StartServer, folder: string): Promise<readonly Figures[]> {
  const readyMs: number[] = []
  const usages: Usage[] = []
  for (let round = 0; round < STARTS; round++) {
    const server = await start(join(folder, `start-${round}`))
    await pause(IDLE_AFTER_MS)
    readyMs.push(server.readyMs)
    usages.push(await server.usage())
    await server.stop()
  }
  const memory = (['residentMb', 'anonymousMb'] as const).map((name) =>
    quantile(
      usages.map((usage) => usage[name]),
      0.5,
    ),
  )
  const values = [quantile(readyMs, 0.5), Math.min(...readyMs), ...memory]
  return [
    {
      title: `start on an empty data directory, median of ${STARTS}`,
      columns: ['', 'ready ms', 'fastest ms', 'resident MB idle', 'without file pages'],
      rows: [{ name: 'start', values }],
    },
  ]
}

const objectName = (index: number): string => `object-${String(index).padStart(6, '0')}`

function change(namespace: string, name: string, turn: number): Buffer {
  const body = JSON.stringify({ data: { turn: `${turn} ${performance.now()}` } })
  const headers = { 'content-type': 'application/merge-patch+json' }
  return encodeRequest({ method: 'PATCH', path: `${collectionOf(namespace)}/${name}`, body, headers })
}

async function fill(server: ServerUnderTest): Promise<void> {
  const namespaces = ['small', 'large', 'written', 'watched']
  const namespace = (name: string): string =>
    JSON.stringify({ kind: 'Namespace', apiVersion: 'v1', metadata: { name } })
  const path = '/api/v1/namespaces'
  await sendAll(
    server,
    namespaces.map((name) => encodeRequest({ method: 'POST', path, body: namespace(name) })),
  )
  const fillOne = (name: string, count: number): Buffer[] =>
    Array.from({ length: count }, (_, index) => post(name, objectName(index)))
  await sendAll(server, [...fillOne('small', 500), ...fillOne('large', 5000), ...fillOne('watched', 10)])
}

type Row = Figures['rows'][number]

interface Read {
  readonly name: string
  readonly clients: number
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** The namespace in which an object changes all the time meanwhile. */
  readonly changing?: string
}

const gzip = { 'accept-encoding': 'gzip' }
const protobuf = { accept: 'application/vnd.kubernetes.protobuf' }
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const partial = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }
const small = collectionOf('small')
const large = collectionOf('large')

const READS: readonly Read[] = [
  { name: 'GET', clients: 32, path: `${small}/object-000000` },
  { name: 'GET, protobuf', clients: 32, path: `${small}/object-000000`, headers: protobuf },
  { name: 'LIST 500', clients: 4, path: small },
  { name: 'LIST 500, changing', clients: 4, path: small, changing: 'small' },
  { name: 'LIST 500, gzip', clients: 4, path: small, headers: gzip },
  { name: 'LIST 500, gzip, changing', clients: 4, path: small, headers: gzip, changing: 'small' },
  { name: 'LIST 500, protobuf', clients: 4, path: small, headers: protobuf },
  { name: 'LIST 500, protobuf, changing', clients: 4, path: small, headers: protobuf, changing: 'small' },
  { name: 'LIST 500, metadata only', clients: 4, path: small, headers: partial },
  { name: 'LIST 500, table', clients: 4, path: small, headers: table },
  { name: 'LIST 500, by label', clients: 4, path: `${small}?labelSelector=app%3Dbench`, changing: 'small' },
  { name: 'LIST 100 of 5,000', clients: 4, path: `${large}?limit=100` },
  { name: 'LIST 5,000', clients: 4, path: large },
  { name: 'LIST 5,000, changing', clients: 4, path: large, changing: 'large' },
  { name: 'LIST 5,000, gzip', clients: 4, path: large, headers: gzip },
]

const LOAD_COLUMNS = ['', 'per second', 'p50 ms', 'p99 ms', 'server CPU us each', 'KB']

async function measureReads(server: ServerUnderTest): Promise<Figures> {
  const rows: Row[] = []
  for (const { name, clients, changing, ...request } of READS) {
    const bytes = encodeRequest(request)
    const stop = changing === undefined ? undefined : startChanging(server, changing)
    rows.push(await loadRow(server, name, { clients, request: () => bytes }))
    await stop?.()
  }
  return { title: 'reads', columns: LOAD_COLUMNS, rows }
}

async function loadRow(server: ServerUnderTest, name: string, load: Pick<Load, 'clients' | 'request'>): Promise<Row> {
  const result = await runLoad(server, { ...load, warmUpMs: WARM_UP_MS, durationMs: RUN_MS })
  const { perSecond, p50Ms, p99Ms, cpuMicros, bytes } = result
  return { name, values: [perSecond, p50Ms, p99Ms, cpuMicros, bytes / 1024] }
}

/** Changes an object every few milliseconds; returns what ends it. */
function startChanging(server: ServerUnderTest, namespace: string): () => Promise<void> {
  const stop = new AbortController()
  const changing = (async () => {
    const { send, socket } = await openConnection(server)
    for (let turn = 0; !stop.signal.aborted; turn++) {
      const { status, text } = await send(change(namespace, 'object-000250', turn))
      if (status >= 400) throw new Error(`The server answered ${status}: ${text.slice(0, 500)}`)
      await pause(CHANGE_EVERY_MS)
    }
    socket.destroy()
  })()
  return () => {
    stop.abort()
    return changing
  }
}

async function measureWrites(server: ServerUnderTest): Promise<Figures> {
  const rows: Row[] = []
  for (const clients of [1, 16, 64]) {
    const request = (turn: number): Buffer => post('written', `w-${clients}-${turn}`)
    rows.push(await loadRow(server, `CREATE, ${clients} clients`, { clients, request }))
  }
  const update = (turn: number): Buffer => change('small', objectName(turn % 500), turn)
  rows.push(await loadRow(server, 'PATCH (merge), 16 clients', { clients: 16, request: update }))
  return { title: 'durable writes', columns: LOAD_COLUMNS, rows }
}

interface Watching {
  readonly name: string
  readonly watchers: number
  /** Each watcher looks at one of these, chosen in turn; they change in turn. */
  readonly objects: number
  /** Absent: as fast as deliveries keep up. */
  readonly eventsPerSecond?: number
}

const WATCHES: readonly Watching[] = [
  { name: '100 connected, all match', watchers: 100, objects: 1, eventsPerSecond: 100 },
  { name: '1,000 connected, 100 match', watchers: 1000, objects: 10, eventsPerSecond: 100 },
  { name: '1,000 connected, all match', watchers: 1000, objects: 1 },
]

/** Without a pace, how many events may be on their way. */
const MAX_UNDERWAY = 4

async function measureWatches(server: ServerUnderTest): Promise<Figures> {
  const rows: Row[] = []
  for (const watching of WATCHES) rows.push(await watchRow(server, watching))
  return {
    title: 'watch, from sending the change to its arrival at watchers with a connection each',
    columns: ['', 'events/s', 'deliveries/s', 'received of each', 'p50 ms', 'p99 ms', 'server CPU us per delivery'],
    rows,
  }
}

/** Each event carries the moment it was sent; every watcher tells how long it took to arrive. */
async function watchRow(server: ServerUnderTest, watching: Watching): Promise<Row> {
  const { name, watchers, objects, eventsPerSecond } = watching
  const delays: number[] = []
  const sockets: { destroy(): void }[] = []
  for (let at = 0; at < watchers; at++) sockets.push(await openWatch(server, objectName(at % objects), delays))
  const { send, socket } = await openConnection(server)
  await pause(500)
  delays.length = 0
  const before = await server.usage()
  const start = performance.now()
  const expected = watchers / objects
  let sent = 0
  while (performance.now() - start < RUN_MS) {
    await send(change('watched', objectName(sent % objects), sent++))
    if (eventsPerSecond === undefined) {
      // The server may have disconnected a slow watcher, which then gets no more of these events.
      while ((sent - MAX_UNDERWAY) * expected > delays.length && performance.now() - start < RUN_MS) await pause(1)
    } else await pause(Math.max(0, start + (sent * 1000) / eventsPerSecond - performance.now()))
  }
  const spentMs = performance.now() - start
  const delivered = delays.length
  await pause(500)
  const { cpuMs } = await server.usage()
  for (const each of [socket, ...sockets]) each.destroy()
  const values = [
    (sent * 1000) / spentMs,
    (delivered * 1000) / spentMs,
    delays.length / sent,
    quantile(delays, 0.5),
    quantile(delays, 0.99),
    ((cpuMs - before.cpuMs) * 1000) / delays.length,
  ]
  return { name, values }
}

async function openWatch(server: ServerUnderTest, object: string, delays: number[]): Promise<{ destroy(): void }> {
  const { socket } = await openConnection(server)
  socket.removeAllListeners('data')
  let unfinished = ''
  socket.on('data', (piece: Buffer) => {
    const lines = (unfinished + piece.toString('latin1')).split('\n')
    unfinished = lines.pop() ?? ''
    for (const line of lines) {
      const sentMs = /"turn":"\d+ ([\d.]+)"/.exec(line)?.[1]
      if (sentMs !== undefined) delays.push(performance.now() - Number(sentMs))
    }
  })
  const path = `${collectionOf('watched')}?watch=true&fieldSelector=metadata.name%3D${object}`
  socket.write(encodeRequest({ path }))
  return socket
}

/** How large the collection is from which pages are read; with the last but one, memory and restarts are measured. */
const SIZES = [1000, 10_000, 50_000, 100_000] as const
const RESTART_AT = 50_000

/** The same questions while a collection grows. Pages must not notice. */
async function measureSizes(start: StartServer, folder: string): Promise<Figures[]> {
  const pages: Row[] = []
  const memory: Row[] = []
  let server = await start(folder)
  try {
    let stored = 0
    for (const size of SIZES) {
      const more = Array.from({ length: size - stored }, (_, index) => post('default', objectName(stored + index)))
      await sendAll(server, more)
      stored = size
      for (const [name, request] of await pageRequests(server)) {
        pages.push(await loadRow(server, `${name} of ${size.toLocaleString('en-US')}`, { clients: 4, request }))
      }
      if (size !== RESTART_AT) continue
      const written = await server.usage()
      await server.stop()
      server = await start(folder)
      await pause(IDLE_AFTER_MS)
      const restarted = await server.usage()
      memory.push({
        name: `${size.toLocaleString('en-US')} objects of 1 KiB`,
        values: [written.residentMb, written.anonymousMb, server.readyMs, restarted.residentMb, restarted.anonymousMb],
      })
    }
  } finally {
    await server.stop()
  }
  return [
    { title: 'pages of 500, by the size of the collection', columns: LOAD_COLUMNS, rows: pages },
    {
      title: 'many objects',
      columns: [
        '',
        'resident MB after writing',
        'without file pages',
        'restart: ready ms',
        'restart: resident MB',
        'without file pages',
      ],
      rows: memory,
    },
  ]
}

/** The first page, and the one that it leads to. */
async function pageRequests(server: ServerUnderTest): Promise<readonly (readonly [string, () => Buffer])[]> {
  const path = `${collectionOf('default')}?limit=500`
  const first = encodeRequest({ path })
  const next = encodeRequest({ path: `${path}&continue=${encodeURIComponent(await continueToken(server, path))}` })
  return [
    ['first page', () => first],
    ['second page', () => next],
  ]
}

async function continueToken(server: ServerUnderTest, path: string): Promise<string> {
  const { send, socket } = await openConnection(server, { keepText: true })
  const { text } = await send(encodeRequest({ path }))
  socket.destroy()
  const token = /"continue":"([^"]+)"/.exec(text)?.[1]
  if (token === undefined) throw new Error(`A page without a token for the next: ${text.slice(0, 500)}`)
  return token
}
