/**
 * Compares every discovery document (aggregated and not) and every OpenAPI document (v2 and v3) of upstream's
 * kube-apiserver and ours: `node test/upstream/openapi.ts`. Descriptions are ignored; lists are compared in order,
 * except for those that OpenAPI treats as sets.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { ask, type Server, startOurs } from './ours.ts'
import { startReference } from './reference.ts'

type Json = unknown
type JsonMap = Readonly<Record<string, Json>>

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
/** The number of differences that are printed for each document. */
const SHOWN = 20

interface Document {
  readonly path: string
  readonly accept?: string
}

/**
 * Repeats a request while the document is missing, because upstream's server creates its documents after it is ready.
 */
async function get(server: Server, document: Document): Promise<Json> {
  for (let turn = 1; ; turn++) {
    const { status, body } = await ask(server, document)
    if (status === 200) return body
    if (turn === MAX_TURNS) return { status, body }
    await sleep(realClock, TURN_MS)
  }
}

const MAX_TURNS = 20
const TURN_MS = 500

/** All documents of upstream's server; the indices show which ones only our server has. */
async function documentsOf(server: Server): Promise<Document[]> {
  const groups = (await get(server, { path: '/apis' })) as { groups: { versions: { groupVersion: string }[] }[] }
  const versions = groups.groups.flatMap((group) => group.versions.map(({ groupVersion }) => `/apis/${groupVersion}`))
  const index = (await get(server, { path: '/openapi/v3' })) as { paths: Record<string, unknown> }
  return [
    { path: '/api' },
    { path: '/apis' },
    { path: '/api', accept: AGGREGATED },
    { path: '/apis', accept: AGGREGATED },
    ...['/api/v1', ...versions].map((path) => ({ path })),
    { path: '/openapi/v2' },
    { path: '/openapi/v3' },
    ...Object.keys(index.paths).map((path) => ({ path: `/openapi/v3/${path}` })),
  ]
}

/** Fields that always differ, or that have our own texts. */
const MASKED = new Set(['description', 'serverAddress', 'serverRelativeURL'])
/** Accepted differences, each with its reason. */
const LISTED: readonly (readonly [place: RegExp, reason: string])[] = [
  [
    /^\/definitions\/io\.k8s\.apimachinery\.pkg\.apis\.meta\.v1\.(?:DeleteOptions|WatchEvent)\/x-kubernetes-group-version-kind/,
    'upstream lists every group version that its programs know, we list those that are served',
  ],
]
/** Lists whose order has no meaning in OpenAPI. */
const SETS = new Set(['required', 'enum', 'consumes', 'produces', 'schemes'])

function differences(theirs: Json, ours: Json, at = ''): string[] {
  if (LISTED.some(([place]) => place.test(at))) return []
  if (isMap(theirs) && isMap(ours)) {
    const names = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].filter((name) => !MASKED.has(name))
    return names.flatMap((name) => {
      const [left, right] = [theirs[name], ours[name]].map((value) => (SETS.has(name) ? sorted(value) : value))
      return differences(left, right, `${at}/${name}`)
    })
  }
  if (Array.isArray(theirs) && Array.isArray(ours)) {
    const length = Math.max(theirs.length, ours.length)
    return Array.from({ length }, (_, index) => differences(theirs[index], ours[index], `${at}/${index}`)).flat()
  }
  if (theirs === ours) return []
  return [`    ${at}: ${short(theirs)} / ${short(ours)}`]
}

/** Inlines parameters, because upstream refers to common ones and we repeat them. */
function withParameters(document: Json): Json {
  if (!isMap(document) || !isMap(document['parameters'])) return document
  const { parameters, ...rest } = document
  return JSON.parse(JSON.stringify(rest), (_key, value: Json) => {
    const reference = isMap(value) ? value['$ref'] : undefined
    if (typeof reference !== 'string' || !reference.startsWith('#/parameters/')) return value
    return parameters[reference.slice('#/parameters/'.length)]
  })
}

/**
 * Replaces `allOf` with a single reference by that reference. Upstream needs `allOf` for descriptions, which are not
 * compared.
 */
function withPlainReferences(document: Json): Json {
  return JSON.parse(JSON.stringify(document), (_key, value: Json) => {
    if (!isMap(value) || !Array.isArray(value['allOf']) || value['allOf'].length !== 1) return value
    const { allOf, ...rest } = value
    const [only] = allOf as Json[]
    return isMap(only) ? { ...rest, ...only } : value
  })
}

function isMap(value: Json): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function sorted(value: Json): Json {
  return Array.isArray(value) ? value.map((one) => JSON.stringify(one)).sort() : value
}

function short(value: Json): string {
  const text = value === undefined ? 'not there' : JSON.stringify(value)
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}

async function compare(theirs: Server, ours: Server): Promise<number> {
  const documents = await documentsOf(theirs)
  let differing = 0
  for (const document of documents) {
    const [left, right] = await Promise.all([get(theirs, document), get(ours, document)])
    const [upstreams, own] = [left, right].map((one) => withPlainReferences(withParameters(one)))
    const lines = differences(upstreams, own)
    if (lines.length === 0) continue
    differing++
    process.stdout.write(`${document.path}${document.accept === undefined ? '' : ' (aggregated)'}: ${lines.length}\n`)
    process.stdout.write(`${lines.slice(0, SHOWN).join('\n')}\n`)
  }
  process.stdout.write(`\n${documents.length} documents, ${differing} differ from upstream\n`)
  return differing === 0 ? 0 : 1
}

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-openapi-'))
  const started: Server[] = []
  const start = async (server: Promise<Server>): Promise<Server> => {
    started.push(await server)
    return server
  }
  try {
    const theirs = await start(startReference(join(folder, 'theirs')))
    return await compare(theirs, await start(startOurs(join(folder, 'ours'))))
  } finally {
    await Promise.all(started.map((server) => server.stop()))
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
