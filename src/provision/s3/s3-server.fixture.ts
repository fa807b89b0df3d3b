/**
 * A small S3 server for tests: keeps objects in memory, verifies signatures independently of our code, and fails on
 * command.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface S3Server {
  readonly endpoint: string
  readonly objects: Map<string, { readonly content: Buffer; readonly meta: string }>
  /** Faults for the next requests, in order. */
  readonly faults: Fault[]
  /** The received requests: `PUT /bucket/key`. */
  readonly requests: string[]
}

/** Reject it, disconnect during a body, send wrong bytes, or fail. */
export type Fault = 'refuse' | 'cut' | 'spoil' | 'fail'

export const TEST_KEYS: { readonly accessKey: string; readonly secretKey: string } = {
  accessKey: 'AKTEST',
  secretKey: 'secret/of+the/test',
}

const PAGE = 2

export interface S3Options {
  readonly host?: string
  /** PEM. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

export async function startS3(
  closing: AsyncDisposableStack,
  { host = '127.0.0.1', tls }: S3Options = {},
): Promise<S3Server> {
  const state: Omit<S3Server, 'endpoint'> = { objects: new Map(), faults: [], requests: [] }
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response, state).catch(() => request.socket.destroy())
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  server.listen(0, host)
  await once(server, 'listening')
  closing.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    ...state,
    endpoint: `${tls === undefined ? 'http://' : ''}${host}:${(server.address() as AddressInfo).port}`,
  }
}

type State = Omit<S3Server, 'endpoint'>

async function handle(request: IncomingMessage, response: ServerResponse, state: State): Promise<void> {
  const { method = '', url = '' } = request
  const path = decodeURIComponent(new URL(url, 'http://s3').pathname)
  state.requests.push(`${method} ${path}`)
  const fault = state.faults.shift()
  if (fault === 'cut' && method === 'PUT') return void request.once('data', () => request.socket.destroy())
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  if (fault === 'fail') return void response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')
  const problem = fault === 'refuse' ? 'AccessDenied' : problemOf(request, body)
  if (problem !== undefined) {
    response.writeHead(403).end(`<Error><Code>${problem}</Code><Message>No &amp; no</Message></Error>`)
    return
  }
  const { status, content, meta = '' } = answerTo(request, body, path, state)
  const sent = fault === 'spoil' ? Buffer.from(content.map((byte) => byte ^ 1)) : content
  response.writeHead(status, {
    'x-amz-meta-sha256': meta,
    ...(method !== 'DELETE' && { 'content-length': sent.length }),
  })
  if (fault === 'cut') response.write(sent.subarray(0, sent.length / 2), () => request.socket.destroy())
  else response.end(sent)
}

interface Answer {
  readonly status: number
  readonly content: Buffer
  readonly meta?: string
}

function answerTo(
  { method, url = '', headers }: IncomingMessage,
  body: Buffer,
  path: string,
  { objects }: State,
): Answer {
  const nothing = Buffer.alloc(0)
  if (method === 'PUT') {
    objects.set(path, { content: body, meta: String(headers['x-amz-meta-sha256']) })
    return { status: 200, content: nothing }
  }
  if (method === 'DELETE') {
    objects.delete(path)
    return { status: 204, content: nothing }
  }
  const query = new URL(url, 'http://s3').searchParams
  if (query.get('list-type') === '2') return { status: 200, content: Buffer.from(page(path, objects, query)) }
  const found = objects.get(path)
  return found === undefined
    ? { status: 404, content: Buffer.from('<Error><Code>NoSuchKey</Code></Error>') }
    : { status: 200, ...found }
}

function page(bucket: string, objects: S3Server['objects'], query: URLSearchParams): string {
  const prefix = query.get('prefix') ?? ''
  const keys = [...objects.keys()].map((path) => path.slice(bucket.length)).toSorted()
  const inside = keys.filter((key) => key.startsWith(prefix) && !key.slice(prefix.length).includes('/'))
  const from = Number(query.get('continuation-token') ?? 0)
  const contents = inside.slice(from, from + PAGE).map((key) => {
    const size = objects.get(`${bucket}${key}`)?.content.length
    return `<Contents><Key>${key.replaceAll('&', '&amp;')}</Key><Size>${size}</Size></Contents>`
  })
  const more = inside.length > from + PAGE ? `<NextContinuationToken>${from + PAGE}</NextContinuationToken>` : ''
  return `<?xml version="1.0"?><ListBucketResult>${contents.join('')}${more}</ListBucketResult>`
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=(?<id>\w+)\/(?<day>\d{8})\/(?<region>[\w-]+)\/s3\/aws4_request, ?SignedHeaders=(?<names>[\w;-]+), ?Signature=(?<signature>\w{64})$/

function problemOf(request: IncomingMessage, body: Buffer): string | undefined {
  const { headers } = request
  const signed = AUTHORIZATION.exec(headers.authorization ?? '')?.groups as Record<SignedPart, string> | undefined
  if (signed === undefined) return 'MissingSecurityHeader'
  if (signed.id !== TEST_KEYS.accessKey) return 'InvalidAccessKeyId'
  if (headers['x-amz-content-sha256'] !== digest(body)) return 'XAmzContentSHA256Mismatch'
  if (!String(headers['x-amz-date']).startsWith(signed.day)) return 'AuthorizationHeaderMalformed'
  const isRight = timingSafeEqual(signatureOf(request, signed), Buffer.from(signed.signature, 'hex'))
  return isRight ? undefined : 'SignatureDoesNotMatch'
}

type SignedPart = 'id' | 'day' | 'region' | 'names' | 'signature'

/** Recomputes the signature from the received request, by the service's documentation. */
function signatureOf(
  { method, url = '', headers }: IncomingMessage,
  { day, region, names }: Record<SignedPart, string>,
): Buffer {
  const [path = '', query = ''] = url.split('?')
  let canonical = `${method}\n${path}\n${query.split('&').toSorted().join('&')}\n`
  for (const name of names.split(';')) canonical += `${name}:${String(headers[name])}\n`
  canonical += `\n${names}\n${String(headers['x-amz-content-sha256'])}`
  const scope = `${day}/${region}/s3/aws4_request`
  const toSign = `AWS4-HMAC-SHA256\n${String(headers['x-amz-date'])}\n${scope}\n${digest(canonical)}`
  let key = createHmac('sha256', `AWS4${TEST_KEYS.secretKey}`).update(day).digest()
  for (const part of [region, 's3', 'aws4_request', toSign]) key = createHmac('sha256', key).update(part).digest()
  return key
}

function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
