/**
 * Starts kube-apiserver in the test process and calls it over TLS. The client is Node's, so that our client cannot hide
 * defects of the server. `WIRE_REFERENCE=https://host:port` runs the same tests against another server, such as
 * upstream's, which must accept the tokens below.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request as httpsRequest } from 'node:https'
import { enableCompileCache } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Writable } from 'node:stream'

import { type Clock, realClock } from '#lib/clock.ts'
import { type Random, secureRandom } from '#lib/random.ts'
import { type Authority, createAuthority } from '#lib/x509/authority.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
export type Json = any

/** The user of a request: the bearer of a token in the token file, or an anonymous client. */
export type Asker = 'admin' | 'jane' | 'nobody'

export interface Ask {
  /** Text and bytes go as they are, anything else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly as?: Asker
  /** Default: HTTP/1.1. */
  readonly http2?: boolean
  /** Called with all that came so far; true: enough, close the connection. */
  readonly enough?: (text: string, bytes: Buffer) => boolean
}

export interface Got {
  readonly status: number
  /** By lower-case name; several of one name are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** Each value of a header that may be sent several times. */
  all(name: string): string[]
  readonly bytes: Buffer
  readonly text: string
  json(): Json
}

export interface Wire extends AsyncDisposable {
  readonly url: string
  readonly isReference: boolean
  /** Signs client certificates that the server believes. */
  readonly clients: Authority
  readonly dir: string
  /** The log of the server so far. */
  log(): string
  request(method: string, path: string, ask?: Ask): Promise<Got>
  /** A request that must succeed. */
  must(method: string, path: string, body?: unknown, ask?: Omit<Ask, 'body'>): Promise<Json>
  /** Creates a namespace with its default ServiceAccount, because no controllers run. */
  namespace(): Promise<string>
  /** The events of a watch: until there are `count`, or until the server ends it. */
  watch(path: string, count: number, ask?: Ask): Promise<{ type: string; object: Json }[]>
  stop(): Promise<void>
}

export interface WireOptions {
  readonly flags?: readonly string[]
  readonly clock?: Clock
  readonly random?: Random
}

/** Options of a test that needs a server of its own with special flags, clock or randomness: only ours can be had so. */
export const ofOurs: { readonly skip: boolean } = { skip: process.env['WIRE_REFERENCE'] !== undefined }

const TOKENS: Readonly<Record<Asker, string>> = { admin: 'admin-token', jane: 'jane-token', nobody: '' }

const FLAGS = [
  '--datastore=memory',
  '--bind-address=127.0.0.1',
  '--cert-dir=certs',
  '--secure-port=0',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--authorization-mode=Node,RBAC',
  '--service-account-signing-key-file=sa.key',
  '--service-account-key-file=sa.pub',
  '--service-account-issuer=https://kubernetes.default.svc',
  '--client-ca-file=ca.crt',
  '--token-auth-file=tokens.csv',
]

export async function startWire(options: WireOptions = {}): Promise<Wire> {
  const reference = process.env['WIRE_REFERENCE']
  const clients = createAuthority({ commonName: 'clients' }, { clock: realClock, random: secureRandom })
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-wire-'))
  const started = reference === undefined ? await startProgram(dir, clients, options) : undefined
  const url = reference ?? started?.url ?? ''
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  const request: Wire['request'] = (method, path, ask = {}) =>
    ask.http2 === true ? viaHttp2(url, method, path, ask) : viaHttp1(url, { method, path, agent }, ask)
  const must: Wire['must'] = async (method, path, body, ask) => {
    const got = await request(method, path, { ...ask, body })
    assert.ok(got.status >= 200 && got.status < 300, `${method} ${path}: ${got.status} ${got.text}`)
    return got.json()
  }
  const stop = async (): Promise<void> => {
    agent.destroy()
    await started?.stop()
    rmSync(dir, { recursive: true })
  }
  return {
    url,
    isReference: reference !== undefined,
    clients,
    dir,
    log: () => started?.log() ?? '',
    request,
    must,
    async namespace() {
      const { metadata } = await must('POST', '/api/v1/namespaces', { metadata: { generateName: 'wire-' } })
      const name = metadata.name as string
      await must('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
      return name
    },
    async watch(path, count, ask = {}) {
      const lines = (text: string): string[] => text.split('\n').slice(0, -1)
      const got = await request('GET', path, { ...ask, enough: (text) => lines(text).length >= count })
      assert.equal(got.status, 200, got.text)
      return lines(got.text).map((line) => JSON.parse(line) as { type: string; object: Json })
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function startProgram(
  dir: string,
  clients: Authority,
  { flags = [], clock = realClock, random = secureRandom }: WireOptions,
): Promise<{ url: string; log(): string; stop(): Promise<unknown> }> {
  const key = createKey('ecdsa-p256')
  writeFileSync(join(dir, 'sa.key'), keyToPem(key), { mode: 0o600 })
  writeFileSync(join(dir, 'sa.pub'), keyToPem(key))
  writeFileSync(join(dir, 'ca.crt'), clients.certificatePem)
  const tokens = `${TOKENS.admin},admin,admin,"system:masters"\n${TOKENS.jane},jane,jane\n`
  writeFileSync(join(dir, 'tokens.csv'), tokens, { mode: 0o600 })
  const controller = new AbortController()
  const ready = Promise.withResolvers<string>()
  let told = ''
  const context = {
    path: ['kube-apiserver'],
    args: [...FLAGS, ...flags],
    env: {},
    cwd: dir,
    stdin: () => process.stdin,
    stdout: sink(() => undefined),
    stderr: sink((text) => {
      told += text
      const port = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(told)?.[1]
      if (port !== undefined) ready.resolve(`https://127.0.0.1:${port}`)
    }),
    clock,
    random,
    readFile: (path: string) => readFile(resolve(dir, path), 'utf8'),
  }
  // Each file of tests is a process of its own: compiled once for all, the program loads in a third of the time.
  enableCompileCache(join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube'))
  const { apiserver } = await import('#cmd/apiserver.ts')
  const ended = apiserver.run(context, controller.signal)
  ended.then(
    (code) => ready.reject(new Error(`Ended with ${code}: ${told}`)),
    (error: unknown) => ready.reject(error as Error),
  )
  return {
    url: await ready.promise,
    log: () => told,
    stop() {
      controller.abort(new Error('SIGTERM'))
      return ended
    },
  }
}

function sink(take: (text: string) => void): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      take(chunk.toString())
      done()
    },
  })
}

function bodyOf(body: unknown): string | Buffer | undefined {
  return body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
}

function headersOf({ body, headers = {}, as = 'admin' }: Ask): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = { 'user-agent': 'wire/1' }
  if (TOKENS[as] !== '') all['authorization'] = `Bearer ${TOKENS[as]}`
  const sent = bodyOf(body)
  if (sent !== undefined) all['content-type'] = 'application/json'
  // Node would send the body of a DELETE without saying how long it is.
  if (sent !== undefined) all['content-length'] = String(Buffer.byteLength(sent))
  for (const [name, value] of Object.entries(headers)) all[name] = typeof value === 'string' ? value : [...value]
  return all
}

function gotOf(status: number, pairs: readonly (readonly [string, string])[], bytes: Buffer): Got {
  const headers: Record<string, string> = {}
  for (const [name, value] of pairs) headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  const text = bytes.toString()
  return {
    status,
    headers,
    all: (name) => pairs.filter(([one]) => one === name).map(([, value]) => value),
    bytes,
    text,
    json: (): Json => JSON.parse(text),
  }
}

function isEnough({ enough }: Ask, chunks: readonly Buffer[]): boolean {
  if (enough === undefined) return false
  const bytes = Buffer.concat(chunks)
  return enough(bytes.toString(), bytes)
}

function viaHttp1(url: string, where: { method: string; path: string; agent: Agent }, ask: Ask): Promise<Got> {
  const { promise, resolve: done, reject } = Promise.withResolvers<Got>()
  const { hostname, port } = new URL(url)
  // A path is sent as it is: what a URL would tidy up is often what is being tested.
  const outgoing = httpsRequest({ ...where, hostname, port, headers: headersOf(ask) }, (answer) => {
    const chunks: Buffer[] = []
    const end = (): void => {
      const pairs = answer.rawHeaders.flatMap((name, index, raw) =>
        index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? ''] as const] : [],
      )
      done(gotOf(answer.statusCode ?? 0, pairs, Buffer.concat(chunks)))
    }
    answer.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (!isEnough(ask, chunks)) return
      end()
      outgoing.destroy()
    })
    answer.on('end', end)
    answer.on('error', reject)
  })
  outgoing.on('error', reject)
  outgoing.end(bodyOf(ask.body))
  return promise
}

function viaHttp2(url: string, method: string, path: string, ask: Ask): Promise<Got> {
  const { promise, resolve: done, reject } = Promise.withResolvers<Got>()
  const session = connectHttp2(url, { rejectUnauthorized: false })
  session.on('error', reject)
  const stream = session.request({ ...headersOf(ask), ':method': method, ':path': path })
  const chunks: Buffer[] = []
  let status = 0
  let pairs: [string, string][] = []
  stream.on('response', (headers) => {
    status = headers[':status'] ?? 0
    pairs = Object.entries(headers)
      .filter(([name]) => !name.startsWith(':'))
      .flatMap(([name, value]) => [value ?? ''].flat().map((one): [string, string] => [name, one]))
  })
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (isEnough(ask, chunks)) stream.close()
  })
  stream.on('error', reject)
  stream.on('close', () => {
    session.close()
    done(gotOf(status, pairs, Buffer.concat(chunks)))
  })
  stream.end(bodyOf(ask.body))
  return promise
}

/** Expects a Status with the code and with the given reason, message or details. */
export async function refused(
  answer: Promise<Got>,
  code: number,
  expected: { reason?: string | undefined; message?: string | RegExp; details?: unknown; causes?: unknown },
): Promise<Json> {
  const got = await answer
  assert.equal(got.status, code, got.text)
  const body = got.json()
  assert.equal(body.kind, 'Status', got.text)
  assert.equal(body.code, code)
  if ('reason' in expected) assert.equal(body.reason, expected.reason, got.text)
  if (typeof expected.message === 'string') assert.equal(body.message, expected.message)
  else if (expected.message !== undefined) assert.match(body.message as string, expected.message)
  if ('details' in expected) assert.deepEqual(body.details, expected.details)
  if ('causes' in expected) assert.deepEqual(body.details?.causes, expected.causes)
  return body
}

export const PATCHES = {
  json: { 'content-type': 'application/json-patch+json' },
  merge: { 'content-type': 'application/merge-patch+json' },
  strategic: { 'content-type': 'application/strategic-merge-patch+json' },
  apply: { 'content-type': 'application/apply-patch+yaml' },
} as const

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** One field of a protobuf message: a number or truth as a varint, anything else by its length. */
export function field(number: number, value: number | boolean | string | Buffer): Buffer {
  if (typeof value === 'number' || typeof value === 'boolean') {
    return Buffer.from([...varint(number << 3), ...varint(Number(value))])
  }
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes])
}

export function message(...fields: readonly Buffer[]): Buffer {
  return Buffer.concat(fields)
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))]
}

/** The protobuf envelope: magic bytes, kind and object. */
export function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const type = message(field(1, apiVersion), field(2, kind))
  return message(Buffer.from('k8s\0'), field(1, type), field(2, raw), field(3, ''), field(4, ''))
}

/** A message taken apart, as deep as one level: the values of each field in their order. */
export function fieldsOf(bytes: Buffer): Map<number, (number | Buffer)[]> {
  const found = new Map<number, (number | Buffer)[]>()
  let at = 0
  const read = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const tag = read()
    const isBytes = (tag & 7) === 2
    assert.ok(isBytes || (tag & 7) === 0, `A wire type that is not expected: ${tag & 7}`)
    const length = read()
    const value = isBytes ? bytes.subarray(at, (at += length)) : length
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value])
  }
  return found
}

/** The kind and the object inside an envelope. */
export function openEnvelope(bytes: Buffer): { kind: string; raw: Buffer } {
  assert.equal(bytes.subarray(0, 4).toString(), 'k8s\0')
  const whole = fieldsOf(bytes.subarray(4))
  const type = fieldsOf(whole.get(1)?.[0] as Buffer)
  return { kind: String(type.get(2)?.[0]), raw: whole.get(2)?.[0] as Buffer }
}
