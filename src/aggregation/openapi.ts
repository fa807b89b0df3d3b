/**
 * OpenAPI of aggregated servers. Their v2 documents are merged into ours. Their v3 documents are proxied, so only the
 * addresses are kept. For a server without v3, its v2 document is converted. Documents are fetched when an APIService
 * becomes available and every minute. Follows upstream's kube-aggregator/pkg/controllers/openapi and openapiv3, v1.36.
 */
import type { Swagger } from '#apiserver/aggregated.ts'
import { type OpenApiDocument, openApiDocument } from '#apiserver/openapi/v3.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { isJsonObject } from '#lib/json/value.ts'
import { runInSlices } from '#lib/time-slicing.ts'
import { WorkQueue } from '#lib/work-queue.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'

import type { FrontProxy, Question } from './front-proxy.ts'
import type { Remote, Roster } from './roster.ts'
import { filterSwagger } from './swagger.ts'
import { convertToV3 } from './v2-to-v3.ts'

export interface RemoteOpenApiOptions {
  readonly clock: Clock
  readonly roster: Pick<Roster, 'remote'>
  readonly frontProxy: FrontProxy
  readonly onError: (error: unknown, name: string) => void
}

export interface RemoteOpenApi {
  /** Schedules a fetch for an APIService; drops a deleted one. */
  readonly look: (name: string) => void
  swaggers(): readonly Swagger[]
  /** By name of the document: its URL, and its APIService. */
  index(): ReadonlyMap<string, Indexed>
  close(): Promise<void>
}

export interface Indexed {
  readonly url: string
  readonly apiService: string
  /** A converted document; absent: it is proxied. */
  readonly document?: OpenApiDocument
}

interface Described {
  readonly swagger: Swagger | undefined
  readonly etag: string | undefined
  readonly index: ReadonlyMap<string, Omit<Indexed, 'apiService'>>
}

const NOTHING: Described = { swagger: undefined, etag: undefined, index: new Map() }

const REFRESH_MS = 60_000
const BACKOFF = { baseMs: 1000, capMs: REFRESH_MS }
const TIMEOUT_MS = 60_000
/** Several times the size of the API server's own document; parsing more would block the event loop. */
const LIMIT_BYTES = 4 << 20
const USER = 'system:aggregator'

export function startRemoteOpenApi(options: RemoteOpenApiOptions): RemoteOpenApi {
  const { clock, roster } = options
  const known = new Map<string, Described>()
  let swaggers: readonly Swagger[] | undefined
  let index: ReadonlyMap<string, Indexed> | undefined
  const note = (name: string, described: Described | undefined): void => {
    if (described === undefined) known.delete(name)
    else known.set(name, described)
    swaggers = undefined
    index = undefined
  }
  const queue = new WorkQueue<string>({ clock, rateLimiter: createItemBackoff(BACKOFF) })
  const ended = new AbortController()
  const running = queue.run({
    workers: 1,
    signal: ended.signal,
    async handle(name) {
      const remote = roster.remote(name)
      // Fetched again when it becomes available.
      if (remote?.isAvailable !== true) return
      const { frontProxy } = options
      const url = frontProxy.locate(remote)
      const index = await fetchIndex(frontProxy, remote, url)
      if (index !== undefined) note(name, { ...NOTHING, ...known.get(name), index })
      const described = await fetchSwagger(frontProxy, remote, url, known.get(name))
      note(name, index === undefined ? { ...described, index: converted(remote, described.swagger) } : described)
      return { requeueAfterMs: REFRESH_MS }
    },
    onError: (error, name) => (ended.signal.aborted ? undefined : options.onError(error, name)),
  })
  return {
    look(name) {
      if (roster.remote(name) !== undefined) queue.add(name)
      else if (known.has(name)) note(name, undefined)
    },
    swaggers: () =>
      (swaggers ??= [...known.values()].flatMap(({ swagger }) => (swagger === undefined ? [] : [swagger]))),
    index: () => (index ??= mergeIndexes(known)),
    close() {
      ended.abort()
      return running
    },
  }
}

function mergeIndexes(known: ReadonlyMap<string, Described>): ReadonlyMap<string, Indexed> {
  const entries = [...known].flatMap(([apiService, described]) =>
    [...described.index].map(([name, indexed]) => [name, { ...indexed, apiService }] as const),
  )
  return new Map(entries)
}

const ASKED: Omit<Question, 'path' | 'accept'> = { user: USER, timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES }

/** The addresses of the v3 documents; undefined if the server has no v3. */
async function fetchIndex(
  frontProxy: FrontProxy,
  remote: Remote,
  url: string,
): Promise<Described['index'] | undefined> {
  const { status, body } = await frontProxy.ask(remote, url, { ...ASKED, path: '/openapi/v3', accept: '' })
  if (status === 404) return undefined
  if (status !== 200) throw new Error(`no index of OpenAPI v3, http error: ${status}`)
  return readIndex(body)
}

async function fetchSwagger(
  frontProxy: FrontProxy,
  remote: Remote,
  url: string,
  before: Described = NOTHING,
): Promise<Described> {
  const { etag, index } = before
  const wanted = { ...ASKED, path: '/openapi/v2', accept: 'application/json', ...(etag !== undefined && { etag }) }
  const { status, body, headers } = await frontProxy.ask(remote, url, wanted)
  if (status === 304 && etag !== undefined) return before
  if (status === 404) return { ...NOTHING, index }
  if (status !== 200) throw new Error(`failed to retrieve openAPI spec, http error: ${status}`)
  const swagger = filterSwagger(JSON.parse(body.toString()), `/apis/${remote.group}/${remote.version}/`)
  // A value without a form in both formats would break the whole document.
  const { encodeOpenApiV2 } = await import('#apiserver/openapi/v2-protobuf.ts')
  if (swagger !== undefined) await runInSlices(encodeOpenApiV2(swagger))
  return { swagger, etag: headers.etag, index }
}

function converted({ group, version }: Remote, swagger: Swagger | undefined): Described['index'] {
  if (swagger === undefined) return new Map()
  const name = `apis/${group}/${version}`
  const document = openApiDocument(encodeJson(convertToV3(swagger)))
  return new Map([[name, { url: `/openapi/v3/${name}?hash=${document.hash}`, document }]])
}

/** Only paths of such documents: clients must not be sent elsewhere. */
export function readIndex(body: Buffer): Described['index'] {
  const document: unknown = JSON.parse(body.toString())
  const paths = isJsonObject(document) ? document['paths'] : undefined
  if (!isJsonObject(paths)) throw new Error('the index of OpenAPI v3 has no paths')
  const found = Object.entries(paths).flatMap(([name, entry]) => {
    const url = isJsonObject(entry) ? entry['serverRelativeURL'] : undefined
    return typeof url === 'string' && url.startsWith('/openapi/v3/') ? [[name, { url }] as const] : []
  })
  return new Map(found)
}
