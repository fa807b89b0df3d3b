/**
 * How other servers describe what they serve. Of OpenAPI v2 we keep what belongs to their group versions, to be merged
 * into our own document; of v3 only where the documents are, because those are passed on as they are. A server that has
 * only v2 gets that converted. Asked when an APIService becomes available and every minute; what was known stays until
 * there is something newer. Follows upstream's kube-aggregator/pkg/controllers/openapi and openapiv3, v1.36.
 */
import type { Swagger } from '#apiserver/aggregated.ts'
import { type OpenApiDocument, openApiDocument } from '#apiserver/openapi/v3.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { isJsonObject } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
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
  /** Asks the server of an APIService, soon; forgets one that has gone. */
  readonly look: (name: string) => void
  swaggers(): readonly Swagger[]
  /** By name of the document: its URL, and the APIService whose server has it. */
  index(): ReadonlyMap<string, Indexed>
  close(): Promise<void>
}

export interface Indexed {
  readonly url: string
  readonly apiService: string
  /** Made here; absent: to be had from the other server. */
  readonly document?: OpenApiDocument
}

interface Described {
  readonly swagger: Swagger | undefined
  readonly etag: string | undefined
  readonly index: ReadonlyMap<string, Omit<Indexed, 'apiService'>>
}

const REFRESH_MS = 60_000
const BACKOFF = { baseMs: 1000, capMs: REFRESH_MS }
const TIMEOUT_MS = 60_000
/** About twice what the API server itself says of all its kinds: parsing more would hold everybody up. */
const LIMIT_BYTES = 8 << 20
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
      // Looked at again when it becomes available.
      if (remote?.isAvailable !== true) return
      note(name, await describe(options.frontProxy, remote, known.get(name)))
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

async function describe(frontProxy: FrontProxy, remote: Remote, before: Described | undefined): Promise<Described> {
  const url = frontProxy.locate(remote)
  const asked: Omit<Question, 'path' | 'accept'> = { user: USER, timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES }
  const v3 = await frontProxy.ask(remote, url, { ...asked, path: '/openapi/v3', accept: '' })
  if (v3.status !== 200 && v3.status !== 404) throw new Error(`no index of OpenAPI v3, http error: ${v3.status}`)
  const index = v3.status === 200 ? readIndex(v3.body) : undefined
  const { etag } = before ?? {}
  const wanted = { ...asked, path: '/openapi/v2', accept: 'application/json', ...(etag !== undefined && { etag }) }
  const v2 = await frontProxy.ask(remote, url, wanted)
  if (v2.status === 304 && before !== undefined) return { ...before, index: index ?? before.index }
  if (v2.status === 404) return { swagger: undefined, etag: undefined, index: index ?? new Map() }
  if (v2.status !== 200) throw new Error(`failed to retrieve openAPI spec, http error: ${v2.status}`)
  const swagger = filterSwagger(parseJson(v2.body), `/apis/${remote.group}/${remote.version}/`)
  return { swagger, etag: v2.headers.etag, index: index ?? converted(remote, swagger) }
}

function converted({ group, version }: Remote, swagger: Swagger | undefined): Described['index'] {
  if (swagger === undefined) return new Map()
  const name = `apis/${group}/${version}`
  const document = openApiDocument(encodeJson(convertToV3(swagger)))
  return new Map([[name, { url: `/openapi/v3/${name}?hash=${document.hash}`, document }]])
}

/** Only what is where such documents are: anything else is no place to send clients to. */
export function readIndex(body: Buffer): Described['index'] {
  const document: unknown = parseJson(body)
  const paths = isJsonObject(document) ? document['paths'] : undefined
  if (!isJsonObject(paths)) throw new Error('the index of OpenAPI v3 has no paths')
  const found = Object.entries(paths).flatMap(([name, entry]) => {
    const url = isJsonObject(entry) ? entry['serverRelativeURL'] : undefined
    return typeof url === 'string' && url.startsWith('/openapi/v3/') ? [[name, { url }] as const] : []
  })
  return new Map(found)
}
