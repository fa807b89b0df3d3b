/** Attacks by a user with all permissions: expensive bodies, patches, selectors, lists and watches. */
import { connect as connectHttp2 } from 'node:http2'

import { credentials, type Target } from '../program.ts'
import { openConnection, RawClient, type RawRequest } from '../raw-http.ts'
import { type Attack, type AttackContext, inLanes, rest } from './attack.ts'
import { DOCUMENT_NAMES, documentNamed } from './documents.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CROWD = '/api/v1/namespaces/crowd/configmaps'
/** As many as upstream's own scale tests have of a kind, and a half. */
const CROWD_SIZE = 50_000

/** Sends what `next` gives, again and again, on `lanes` connections. */
async function ask(context: AttackContext, lanes: number, next: (turn: number) => RawRequest): Promise<void> {
  const { target, signal, tally } = context
  let turn = 0
  await inLanes(context, lanes, async () => {
    const client = new RawClient(target, credentials('user'))
    try {
      while (!signal.aborted) {
        tally.sent++
        const { status } = await client.send(next(turn++))
        tally.answered(status)
      }
    } finally {
      client.close()
    }
  })
}

async function create(target: Target, objects: Iterable<readonly [path: string, object: unknown]>): Promise<void> {
  const queue = objects[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    const client = new RawClient(target, credentials('root'))
    for (let next = queue.next(); next.done !== true; next = queue.next()) {
      const [path, object] = next.value
      const { status, body } = await client.send({ method: 'POST', path, body: JSON.stringify(object) })
      if (status !== 201 && status !== 409) throw new Error(`${status} ${body.toString().slice(0, 300)}`)
    }
    client.close()
  }
  await Promise.all(Array.from({ length: 16 }, lane))
}

function* crowd(count: number): Generator<readonly [string, unknown]> {
  for (let n = 0; n < count; n++) {
    const metadata = { name: `m-${n}`, labels: { part: `p-${n % 100}`, n: String(n) } }
    yield [CROWD, { metadata, data: { text: `${n} `.repeat(40) } }]
  }
}

async function createCrowd(target: Target, scale: number): Promise<void> {
  if (await isThere(target, `${CROWD}/m-${Math.ceil(CROWD_SIZE * scale) - 1}`)) return
  await create(target, [['/api/v1/namespaces', { metadata: { name: 'crowd' } }]])
  await create(target, crowd(Math.ceil(CROWD_SIZE * scale)))
}

async function isThere(target: Target, path: string): Promise<boolean> {
  const client = new RawClient(target, credentials('root'))
  const { status } = await client.send({ path })
  client.close()
  return status === 200
}

function documents(filter: RegExp): Attack['run'] {
  const names = DOCUMENT_NAMES.filter((name) => filter.test(name))
  return (context) =>
    ask(context, 4, (turn) => {
      const { contentType, body } = documentNamed(names[turn % names.length] ?? '')
      const headers = { 'content-type': contentType }
      if (!contentType.includes('apply')) return { method: 'POST', path: MAPS, headers, body }
      return { method: 'PATCH', path: `${MAPS}/hostile?fieldManager=a&force=true`, headers, body }
    })
}

/** A map as large as may be, so that each change of it costs. */
const LARGE_MAP = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`key-${n}`, 'x'.repeat(20)]))

const OPERATIONS: readonly (() => unknown)[] = [
  () => Array.from({ length: 10_000 }, (_, n) => ({ op: 'add', path: `/data/key-${n}`, value: 'y' })),
  () => Array.from({ length: 10_000 }, () => ({ op: 'test', path: '/metadata/name', value: 'patched' })),
  () => [
    { op: 'add', path: '/metadata/annotations', value: { a: 'x'.repeat(1000) } },
    ...Array.from({ length: 9999 }, (_, n) => ({ op: 'copy', from: '/data', path: `/data/c${n}` })),
  ],
  () => Array.from({ length: 10_001 }, () => ({ op: 'remove', path: '/data/a' })),
  () => Array.from({ length: 10_000 }, (_, n) => ({ op: 'move', from: `/data/key-${n}`, path: `/data/key-${n + 1}` })),
]

const operationTexts = OPERATIONS.map((make) => {
  let text: string | undefined
  return () => (text ??= JSON.stringify(make()))
})

function nestedPatch(depth: number): string {
  return `{"metadata":${'{"annotations":'.repeat(depth)}{}${'}'.repeat(depth)}}`
}

const deepPatch = nestedPatch(9000)

/** A list selector of some 50 KiB: about all that a request line may have. */
const longSelector = `labelSelector=${encodeURIComponent(`n in (${Array.from({ length: 5000 }, (_, n) => `v-${n}`).join(',')})`)}`
const manyTerms = `labelSelector=${encodeURIComponent(Array.from({ length: 2500 }, (_, n) => `l${n}!=v`).join(','))}`
const manyFields = `fieldSelector=${encodeURIComponent(Array.from({ length: 1500 }, (_, n) => `metadata.name!=n${n}`).join(','))}`
const evilPattern = `labelSelector=${encodeURIComponent(`a=${'a'.repeat(20_000)}!`)}`
const selectors = [longSelector, manyTerms, manyFields, evilPattern]

export const REQUEST_ATTACKS: Readonly<Record<string, Attack>> = {
  'json-bodies': {
    what: 'bodies of 3 MiB in JSON: deep, wide, many names, long numbers, escapes',
    run: documents(/^(?!YAML|apply)/),
  },
  'yaml-bodies': {
    what: 'bodies of 3 MiB in YAML: many keys, aliases, merges, bombs',
    run: documents(/^(YAML|apply)/),
  },
  patches: {
    what: '10,000 JSON patch operations on 20,000 keys, copy bombs, deep strategic merges',
    prepare: (target) => create(target, [[MAPS, { metadata: { name: 'patched' }, data: LARGE_MAP }]]),
    run: (context) =>
      ask(context, 4, (turn) => {
        const path = `${MAPS}/patched?fieldManager=m${turn % 50}`
        if (turn % 3 === 2) {
          const contentType = `application/${turn % 2 === 0 ? 'strategic-merge' : 'merge'}-patch+json`
          return { method: 'PATCH', path, headers: { 'content-type': contentType }, body: deepPatch }
        }
        const text = operationTexts[turn % operationTexts.length] ?? (() => '[]')
        return { method: 'PATCH', path, headers: { 'content-type': 'application/json-patch+json' }, body: text() }
      }),
  },
  selectors: {
    what: 'label and field selectors of 50 KiB over many objects',
    prepare: (target, scale) => createCrowd(target, scale / 10),
    run: (context) => ask(context, 4, (turn) => ({ path: `${CROWD}?${selectors[turn % selectors.length]}` })),
  },
  'giant-lists': {
    what: '50,000 objects listed without limit by 6 clients, in four forms',
    prepare: createCrowd,
    run: (context) =>
      ask(context, 6, (turn) => {
        const forms = ['application/json', 'application/vnd.kubernetes.protobuf', 'application/yaml', TABLE] as const
        const accept = forms[turn % forms.length] ?? TABLE
        return { path: CROWD, headers: { accept, ...(turn % 2 === 0 && { 'accept-encoding': 'gzip' }) } }
      }),
  },
  'unread-lists': {
    what: '50,000 objects listed on 100 connections that read nothing',
    minMs: 50_000,
    isCut: true,
    prepare: createCrowd,
    run: (context) => inLanes(context, 100 * context.scale, () => askUnread(context, CROWD)),
  },
  'stalled-watchers': {
    what: '300 watchers that read nothing, under 200 changes of 8 KiB a second',
    minMs: 50_000,
    isCut: true,
    async run(context) {
      const watchers = inLanes(context, 300 * context.scale, () => askUnread(context, `${MAPS}?watch=1`))
      await Promise.all([watchers, changeOften(context, 200)])
    },
  },
  'many-watches': {
    what: '2,000 watches with selectors of their own on 20 HTTP/2 connections, under 50 changes a second',
    async run(context) {
      const watchers = inLanes(context, 20 * context.scale, (lane) => watchMany(context, lane))
      await Promise.all([watchers, changeOften(context, 50)])
    },
  },
  'many-streams': {
    what: 'lists of 500 on 100 streams of 20 HTTP/2 connections at a time',
    prepare: (target, scale) => createCrowd(target, scale / 50),
    run: (context) =>
      inLanes(context, 20 * context.scale, async () => {
        const { target, signal, tally } = context
        const session = connectHttp2(`https://localhost:${target.port}`, { ca: target.ca })
        session.on('error', () => undefined)
        try {
          while (!signal.aborted && !session.destroyed) {
            await Promise.all(Array.from({ length: 100 }, () => getOver(session, `${CROWD}?limit=500`, context)))
            tally.sent += 100
          }
        } finally {
          session.destroy()
        }
      }),
  },
}

/** Asks, and reads nothing of the answer. Whether the server has had enough shows when something is sent again. */
async function askUnread({ target, signal, tally }: AttackContext, path: string): Promise<void> {
  const { socket } = await openConnection(target)
  socket.pause()
  tally.sent++
  const token = credentials('user')['authorization'] ?? ''
  const request = `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${token}\r\n\r\n`
  socket.write(request)
  await rest(600_000, signal)
  // The first is answered by a reset, of which the second hears.
  for (let tries = 0; tries < 3 && !socket.destroyed; tries++) {
    socket.write(request)
    await rest(300)
  }
  if (socket.destroyed) tally.cut++
  socket.destroy()
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

type Session = ReturnType<typeof connectHttp2>

function getOver(session: Session, path: string, { tally }: AttackContext): Promise<void> {
  return new Promise((resolve) => {
    const stream = session.request({ ':path': path, ...credentials('user') })
    stream.on('response', (headers) => tally.answered(headers[':status'] ?? 0))
    stream.on('error', () => undefined)
    stream.on('close', resolve)
    stream.resume()
  })
}

async function watchMany({ target, signal, tally }: AttackContext, lane: number): Promise<void> {
  const session = connectHttp2(`https://localhost:${target.port}`, { ca: target.ca })
  session.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => session.on('close', resolve))
  for (let n = 0; n < 100; n++) {
    const selector = encodeURIComponent(`part notin (a${lane},b${n}),n!=${n}`)
    const stream = session.request({ ':path': `${MAPS}?watch=1&labelSelector=${selector}`, ...credentials('user') })
    stream.on('response', (headers) => tally.answered(headers[':status'] ?? 0))
    stream.on('error', () => undefined)
    stream.resume()
    tally.sent++
  }
  await Promise.race([ended, rest(600_000, signal)])
  session.destroy()
}

/** Updates of a few objects, at a steady rate. */
async function changeOften({ target, signal }: AttackContext, perSecond: number): Promise<void> {
  const lanes = 8
  const text = 'z'.repeat(8000)
  const lane = async (n: number): Promise<void> => {
    const client = new RawClient(target, credentials('root'))
    const path = `${MAPS}/changed-${n}?fieldManager=change`
    const headers = { 'content-type': 'application/apply-patch+yaml' }
    for (let turn = 0; !signal.aborted; turn++) {
      const metadata = { name: `changed-${n}` }
      const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { turn: String(turn), text } })
      await Promise.all([
        client.send({ method: 'PATCH', path, headers, body }).catch(() => undefined),
        rest((1000 * lanes) / perSecond, signal),
      ])
    }
    client.close()
  }
  await Promise.all(Array.from({ length: lanes }, (_, n) => lane(n)))
}
