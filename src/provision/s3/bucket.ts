/**
 * Reads and writes a folder in a bucket of S3 or a compatible service. Interrupted requests are retried, rejected ones
 * are not.
 */
import type { IncomingHttpHeaders } from 'node:http'

import { type Clock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import { encodePath, encodeQuery, sign } from './signature.ts'

export interface BucketLocation {
  /** A host, optionally with a port. Uses TLS unless it begins with `http://`. */
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  /** Without slashes at its ends; empty: the bucket itself. */
  readonly folder: string
  /** Empty: requests are not signed. */
  readonly accessKey: string
  readonly secretKey: string
  /** PEM; empty: the public authorities. */
  readonly authority: string
}

export interface Content {
  readonly size: number
  /** In hex. */
  readonly sha256: string
  /** From the beginning at each call. */
  readonly bytes: () => AsyncIterable<Buffer>
}

/** S3 rejected the request. */
class BucketError extends Error {
  override readonly name = 'BucketError'
}

interface BucketRequest {
  readonly method: string
  /** The key of the object; empty: the bucket. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: Content
}

const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const DIGEST_HEADER = 'x-amz-meta-sha256'
const TRIES = 3
const PAUSE_MS = 1000
const MAX_ANSWER_BYTES = 16 << 20

export class Bucket {
  readonly #location: BucketLocation
  readonly #clock: Clock
  readonly #pauseMs: number
  readonly #client: HttpClient
  readonly #prefix: string

  /** `pauseMs`: the pause before the first retry; it doubles. */
  constructor(location: BucketLocation, clock: Clock, pauseMs: number = PAUSE_MS) {
    this.#location = location
    this.#clock = clock
    this.#pauseMs = pauseMs
    const tls = location.authority === '' ? {} : { ca: location.authority }
    this.#client = createHttpClient({ clock, tls, http1Only: true })
    this.#prefix = location.folder === '' ? '' : `${location.folder}/`
  }

  async put(name: string, content: Content, signal: AbortSignal): Promise<void> {
    const headers = { [DIGEST_HEADER]: content.sha256 }
    await this.#finish({ method: 'PUT', key: this.#prefix + name, headers, content }, signal)
  }

  /** `take` receives the whole content again after an interruption. Rejects if the object does not exist. */
  async get(
    name: string,
    take: (bytes: AsyncIterable<Buffer>, sha256: string | undefined) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#insist(async () => {
      const { body, headers } = await this.#send({ method: 'GET', key: this.#prefix + name }, signal)
      await take(body, digestIn(headers))
    }, signal)
  }

  /** The objects directly in the folder. */
  async list(signal: AbortSignal): Promise<{ readonly name: string; readonly size: number }[]> {
    const found: { name: string; size: number }[] = []
    const prefix = this.#prefix
    for (let token: string | undefined = ''; token !== undefined;) {
      const query = { 'list-type': '2', prefix, delimiter: '/', ...(token !== '' && { 'continuation-token': token }) }
      const text: string = await this.#insist(async () => {
        const answer = await (await this.#send({ method: 'GET', key: '', query }, signal)).text(MAX_ANSWER_BYTES)
        // Otherwise an unreadable answer would look like an empty folder.
        if (!answer.includes('<ListBucketResult')) throw new Error(`${this.#location.endpoint} answers with no list`)
        return answer
      }, signal)
      for (const entry of tagsIn(text, 'Contents')) {
        const [name = '', size = ''] = ['Key', 'Size'].map((tag) => tagsIn(entry, tag)[0] ?? '')
        if (name.length > prefix.length) found.push({ name: name.slice(prefix.length), size: Number(size) })
      }
      ;[token] = tagsIn(text, 'NextContinuationToken')
    }
    return found
  }

  /** Also succeeds if the object does not exist. */
  async delete(name: string, signal: AbortSignal): Promise<void> {
    await this.#finish({ method: 'DELETE', key: this.#prefix + name }, signal)
  }

  close(): void {
    this.#client.close()
  }

  #finish(ask: BucketRequest, signal: AbortSignal): Promise<string> {
    return this.#insist(async () => (await this.#send(ask, signal)).text(MAX_ANSWER_BYTES), signal)
  }

  async #insist<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await task()
      } catch (error) {
        if (error instanceof BucketError || signal.aborted || tries === TRIES) throw error
        await sleep(this.#clock, this.#pauseMs * 2 ** (tries - 1), signal)
      }
    }
  }

  /** Rejects on failure; with BucketError if a retry is pointless. */
  async #send(
    { method, key, query = {}, headers = {}, content }: BucketRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { accessKey, region, bucket } = this.#location
    const { origin, host, root } = addressOf(this.#location)
    const path = encodePath(root + key)
    const unsigned = { method, host, path, query, headers, sha256: content?.sha256 ?? EMPTY_SHA256 }
    const credentials = { ...this.#location, region: region === '' ? DEFAULT_REGION : region }
    const sent = accessKey === '' ? headers : sign(unsigned, credentials, this.#clock.now())
    const search = encodeQuery(query)
    const answer = await this.#client.request({
      method,
      url: `${origin}/`,
      path: search === '' ? path : `${path}?${search}`,
      headers: { ...sent, ...(content && { 'content-length': String(content.size) }) },
      ...(content && { body: content.bytes() }),
      signal,
    })
    if (answer.status < 300) return answer
    const text = await answer.text(MAX_ANSWER_BYTES).catch(() => '')
    const details = ['Code', 'Message'].map((tag) => tagsIn(text, tag)[0] ?? '').filter(Boolean)
    const message = `${method} ${key || bucket}: ${host} answers ${answer.status} ${details.join(': ')}`.trim()
    throw answer.status >= 500 || answer.status === 429 ? new Error(message) : new BucketError(message)
  }
}

const DEFAULT_REGION = 'us-east-1'

/** Amazon has a host for each bucket; other services use one host. */
function addressOf({ endpoint, bucket, region }: BucketLocation): { origin: string; host: string; root: string } {
  const [, scheme = 'https://', given = ''] = /^(https?:\/\/)?([^/]*)/.exec(endpoint) ?? []
  const regional = region !== '' && given === 's3.amazonaws.com' ? `s3.${region}.amazonaws.com` : given
  const isAmazon = regional.endsWith('.amazonaws.com')
  const host = isAmazon ? `${bucket}.${regional}` : regional
  return { origin: `${scheme}${host}`, host: host.replace(/:(?:443|80)$/, ''), root: isAmazon ? '/' : `/${bucket}/` }
}

function digestIn(headers: IncomingHttpHeaders): string | undefined {
  const value = headers[DIGEST_HEADER]
  return typeof value === 'string' ? value : undefined
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * The contents of elements with that name. S3's answers have no attributes, and no nested elements of the same name.
 */
function tagsIn(xml: string, tag: string): string[] {
  const found = [...xml.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))].map(([, text = '']) => text)
  return found.map((text) =>
    text.includes('<') ? text : text.replaceAll(/&(\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole),
  )
}
