/**
 * Benchmarks custom resources: the cost of large CustomResourceDefinitions, how many of them a server supports, and the
 * speed of their objects beside built-in kinds. The definitions are those of real operators, from the Go module proxy.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { load as parseYaml } from 'js-yaml'

import { type Bench, quantile } from './bench.ts'
import { type Connection, encodeRequest, openConnection, pause, runLoad, sendAll } from './http-load.ts'
import { type ServerUnderTest, startOurs, type StartServer, startTheirs } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

export const bench: Bench = {
  about: 'definitions of custom resources, many of them, and their objects beside ConfigMaps',
  async run({ reference }) {
    const ours = await measureServer(startOurs)
    if (!reference) return ours.map(toTable)
    const theirs = await measureServer(startTheirs)
    return ours.map((figures, at) => (theirs[at] === undefined ? toTable(figures) : besides(figures, theirs[at])))
  },
}

async function measureServer(start: StartServer): Promise<readonly Figures[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-'))
  const within = async (name: string, measure: (server: ServerUnderTest) => Promise<Figures>): Promise<Figures> => {
    const server = await start(join(folder, name))
    try {
      return await measure(server)
    } finally {
      await server.stop()
    }
  }
  try {
    return [
      await within('operators', measureOperators),
      await within('many', measureMany),
      await within('objects', measureObjects),
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Definition {
  readonly metadata: { readonly name: string }
}

const OPERATORS = [
  ['cert-manager', 'github.com/cert-manager/cert-manager@v1.19.1', 'deploy/crds'],
  [
    'prometheus-operator',
    'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    'example/prometheus-operator-crd-full',
  ],
  ['argo-workflows', 'github.com/argoproj/argo-workflows/v3@v3.7.3', 'manifests/base/crds/full'],
] as const

/** No store takes more in one object. */
const MAX_BYTES = 1_400_000

function definitionsIn(module: string, folder: string): string[] {
  const env = { ...process.env, GOFLAGS: '-mod=mod', GONOSUMDB: '*' }
  const done = spawnSync('go', ['mod', 'download', '-json', module], { cwd: tmpdir(), env, encoding: 'utf8' })
  const { Dir } = JSON.parse(done.stdout || '{}') as { Dir?: string }
  if (Dir === undefined) throw new Error(`${module} cannot be had: ${done.stderr}`)
  const files = readdirSync(join(Dir, folder)).filter((name) => name.includes('_') && name.endsWith('.yaml'))
  const texts = files.map((name) => JSON.stringify(parseYaml(readFileSync(join(Dir, folder, name), 'utf8'))))
  return texts.filter((text) => text.length < MAX_BYTES)
}

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

const define = (body: string): Buffer => encodeRequest({ method: 'POST', path: DEFINITIONS, body })

/** Creates the definitions of one operator after the other, while another client continuously sends small requests. */
async function measureOperators(server: ServerUnderTest): Promise<Figures> {
  const rows: Figures['rows'][number][] = []
  for (const [name, module, folder] of OPERATORS) {
    const texts = definitionsIn(module, folder)
    const sending = await openConnection(server)
    const other = startOther(server)
    const took: number[] = []
    for (const text of texts) {
      const { metadata } = JSON.parse(text) as Definition
      const start = performance.now()
      await accepted(sending, define(text))
      await untilEstablished(server, [metadata.name])
      took.push(performance.now() - start)
    }
    const waits = await other()
    sending.socket.destroy()
    const kilobytes = texts.reduce((sum, text) => sum + text.length, 0) / 1024
    rows.push({ name, values: [texts.length, kilobytes, Math.max(...took), quantile(took, 0.5), Math.max(...waits)] })
  }
  const columns = ['', 'definitions', 'KB', 'slowest ms', 'median ms', 'longest wait of another ms']
  return { title: 'definitions of operators, each from its creation until it is established', columns, rows }
}

async function accepted({ send }: Connection, request: Buffer): Promise<void> {
  const { status, text } = await send(request)
  if (status >= 400) throw new Error(`The server answered ${status}: ${text.slice(0, 1000)}`)
}

/** GETs one after the other; the function that is returned ends them and tells how long each took. */
function startOther(server: ServerUnderTest): () => Promise<number[]> {
  const stop = new AbortController()
  const request = encodeRequest({ path: '/api/v1/namespaces/default' })
  const asking = (async () => {
    const waits: number[] = []
    const connection = await openConnection(server)
    while (!stop.signal.aborted) {
      const start = performance.now()
      await accepted(connection, request)
      waits.push(performance.now() - start)
      await pause(1)
    }
    connection.socket.destroy()
    return waits
  })()
  return () => {
    stop.abort()
    return asking
  }
}

async function untilEstablished(server: ServerUnderTest, names: readonly string[]): Promise<void> {
  const { send, socket } = await openConnection(server, { keepText: true })
  for (const name of names) {
    const request = encodeRequest({ path: `${DEFINITIONS}/${name}` })
    for (;;) {
      const { text } = await send(request)
      if (/"type":"Established","status":"True"/.test(text.replaceAll(/\s/g, ''))) break
      await pause(2)
    }
  }
  socket.destroy()
}

const MANY = 500

/** About 20 KB: a hundred described fields. */
function largeDefinition(index: number): string {
  const field = (at: number): [string, object] => [
    `field${at}`,
    { type: 'string', maxLength: 64, description: `What field ${at} of kind ${index} says. `.repeat(4) },
  ]
  const properties = Object.fromEntries(Array.from({ length: 110 }, (_, at) => field(at)))
  return definition(`kind${index}`, `Kind${index}`, { type: 'object', properties })
}

function definition(singular: string, kind: string, spec: object): string {
  return JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.bench.example.com` },
    spec: {
      group: 'bench.example.com',
      scope: 'Namespaced',
      names: { plural: `${singular}s`, singular, kind },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  })
}

async function measureMany(server: ServerUnderTest): Promise<Figures> {
  const before = await server.usage()
  const start = performance.now()
  const texts = Array.from({ length: MANY }, (_, index) => largeDefinition(index))
  await sendAll(server, texts.map(define))
  const names = texts.map((text) => (JSON.parse(text) as Definition).metadata.name)
  await untilEstablished(server, names)
  const establishedMs = performance.now() - start
  await pause(5000)
  const after = await server.usage()
  const values = [establishedMs, after.cpuMs - before.cpuMs, after.residentMb, after.anonymousMb]
  return {
    title: `${MANY} definitions of 20 KB`,
    columns: ['', 'all established ms', 'server CPU ms', 'resident MB 5 s later', 'without file pages'],
    rows: [{ name: 'many', values }],
  }
}

const COLLECTIONS = [
  ['ConfigMap', '/api/v1/namespaces/default/configmaps', 'v1', 'data'],
  ['custom resource', '/apis/bench.example.com/v1/namespaces/default/things', 'bench.example.com/v1', 'spec'],
] as const

/** The same 1 KiB in both kinds. */
function objectText(kind: string, apiVersion: string, part: string, name: string): string {
  const noise = createHash('sha512').update(name).digest('hex')
  const content = { noise: noise + noise.split('').toReversed().join(''), text: 'configuration '.repeat(16) }
  return JSON.stringify({ kind, apiVersion, metadata: { name, labels: { app: 'bench' } }, [part]: content })
}

async function measureObjects(server: ServerUnderTest): Promise<Figures> {
  const text = { type: 'string' }
  const things = definition('thing', 'Thing', { type: 'object', properties: { noise: text, text } })
  await sendAll(server, [define(things)])
  await untilEstablished(server, ['things.bench.example.com'])
  // Upstream holds the first objects of a new kind for two seconds.
  await pause(3000)
  const rows: Figures['rows'][number][] = []
  for (const [name, path, apiVersion, part] of COLLECTIONS) {
    const kind = part === 'data' ? 'ConfigMap' : 'Thing'
    const post = (object: string): Buffer =>
      encodeRequest({ method: 'POST', path, body: objectText(kind, apiVersion, part, object) })
    const run = async (what: string, clients: number, request: (turn: number) => Buffer): Promise<void> => {
      const { perSecond, p50Ms, p99Ms, cpuMicros } = await runLoad(server, {
        clients,
        request,
        warmUpMs: 1500,
        durationMs: 2500,
      })
      rows.push({ name: `${what} ${name}`, values: [perSecond, p50Ms, p99Ms, cpuMicros] })
    }
    const there = Array.from({ length: 500 }, (_, index) => post(`there-${String(index).padStart(3, '0')}`))
    await sendAll(server, there)
    await run('GET', 32, () => encodeRequest({ path: `${path}/there-000` }))
    await run('LIST 500', 4, () => encodeRequest({ path: `${path}?limit=500` }))
    rows.push({ name: `WATCH, 100 clients, ${name}`, values: await measureWatch(server, path) })
    await run('CREATE', 16, (turn) => post(`written-${turn}`))
  }
  return {
    title: 'objects of 1 KiB',
    columns: ['', 'per second', 'p50 ms', 'p99 ms', 'server CPU us each'],
    rows: rows.toSorted((a, b) => a.name.localeCompare(b.name)),
  }
}

const WATCHERS = 100
const WATCH_MS = 2500
/** How many changes may be on their way to all who watch. */
const MAX_UNDERWAY = 4

/** One object changes as fast as all who watch it keep up. Each change says when it was sent. */
async function measureWatch(server: ServerUnderTest, path: string): Promise<number[]> {
  const delays: number[] = []
  const watchers = await Promise.all(
    Array.from({ length: WATCHERS }, async () => {
      const { socket } = await openConnection(server)
      socket.removeAllListeners('data')
      socket.on('data', (piece: Buffer) => {
        for (const [, sentMs] of piece.toString('latin1').matchAll(/"sent":"([\d.]+)"/g)) {
          delays.push(performance.now() - Number(sentMs))
        }
      })
      socket.write(encodeRequest({ path: `${path}?watch=true&fieldSelector=metadata.name%3Dthere-000` }))
      return socket
    }),
  )
  const headers = { 'content-type': 'application/merge-patch+json' }
  const change = (): Buffer => {
    const body = JSON.stringify({ metadata: { annotations: { sent: performance.now().toFixed(3) } } })
    return encodeRequest({ method: 'PATCH', path: `${path}/there-000`, body, headers })
  }
  const { send, socket } = await openConnection(server)
  await pause(500)
  const before = await server.usage()
  const start = performance.now()
  for (let sent = 1; performance.now() - start < WATCH_MS; sent++) {
    await send(change())
    while ((sent - MAX_UNDERWAY) * WATCHERS > delays.length) await pause(1)
  }
  const spentMs = performance.now() - start
  const { cpuMs } = await server.usage()
  for (const one of [socket, ...watchers]) one.destroy()
  const cpuMicros = ((cpuMs - before.cpuMs) * 1000) / delays.length
  return [(delays.length * 1000) / spentMs, quantile(delays, 0.5), quantile(delays, 0.99), cpuMicros]
}
