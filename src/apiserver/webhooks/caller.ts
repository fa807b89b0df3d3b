/**
 * Calls webhooks: POSTs a review to a URL or a Service, with limits of time and size. Redirects are not followed,
 * because a webhook must not choose other targets for this server (CVE-2020-8561).
 */
import type { RequestHeaders } from '#component/forwarding/headers.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import type { Random } from '#lib/random.ts'
import type { DecodedObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { StatusError } from '#meta/status.ts'

import type { Network } from '../connect/address-rule.ts'
import { dialText } from '../connect/dial-text.ts'
import { serviceEndpoint } from '../connect/service-endpoint.ts'
import type { ObjectReader } from '../registry/resource.ts'
import { answeredFailure, readReview } from './answer.ts'

/** The client configuration: exactly one of URL and Service, and the authorities in base64. */
export interface WebhookClientConfig {
  readonly url?: string
  readonly service?: {
    readonly namespace: string
    readonly name: string
    readonly path?: string
    readonly port?: number
  }
  readonly caBundle?: string
}

export interface WebhookCall {
  readonly config: WebhookClientConfig
  /** JSON of the review. */
  readonly body: string
  /** The kind and version of both reviews. */
  readonly review: GroupVersionKind
  readonly timeoutMs: number
  /** The signal of the waiting request. */
  readonly signal?: AbortSignal
  /** Additional headers that replace the caller's own: credentials. */
  readonly headers?: RequestHeaders
  /** The size limit; by default enough for one object and a patch of all of it. */
  readonly limitBytes?: number
}

export interface WebhookCaller {
  /** Throws WebhookError, and nothing else. */
  call(call: WebhookCall): Promise<DecodedObject>
  close(): void
}

/** The reason of a failed call, with upstream's text. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** `client`: the configuration is unusable; `call`: all other errors. */
  readonly phase: 'client' | 'call'
  /** The HTTP status: that of the response, or 503 without one. */
  readonly status: number

  constructor(phase: WebhookError['phase'], message: string, cause?: unknown) {
    super(message, { cause })
    this.phase = phase
    this.status = phase === 'client' ? 500 : cause instanceof StatusError ? (cause.status.code ?? 500) : 503
  }
}

/** The server's credentials for webhooks. */
export interface CallerCredentials {
  /** PEM of a client certificate and of its key. */
  readonly certificate?: string
  readonly key?: string
  readonly headers: RequestHeaders
}

export interface WebhookCallerParts {
  readonly clock: Clock
  readonly random: Random
  /** Resolves Services to endpoints. */
  readonly objects: ObjectReader
  /** The machine's resolver by default. */
  readonly network?: Pick<Network, 'routeTo'> | undefined
  /** By `<host>:<port>`, where a Service is `<name>.<namespace>.svc`. Default: no credentials. */
  readonly credentialsFor?: ((hostPort: string) => CallerCredentials | undefined) | undefined
}

const LIMIT_BYTES = 8 << 20

/** The maximum number of authority bundles with open connections; cert-manager and others rotate bundles. */
const MAX_CLIENTS = 200

const HEADERS = {
  accept: 'application/json, */*',
  'content-type': 'application/json',
  'user-agent': 'kube-apiserver-admission',
}

export function createWebhookCaller(parts: WebhookCallerParts): WebhookCaller {
  const clients = new Map<string, HttpClient>()
  const clientOf = (config: WebhookClientConfig, credentials: CallerCredentials | undefined): HttpClient => {
    const { service, caBundle = '' } = config
    const { certificate = '', key: privateKey = '' } = credentials ?? {}
    const key = JSON.stringify([service === undefined, caBundle, certificate, privateKey])
    const client = clients.get(key) ?? openClient(parts, config, credentials)
    // Least recently used first.
    clients.delete(key)
    clients.set(key, client)
    if (clients.size > MAX_CLIENTS) retireOldest(clients)
    return client
  }
  return {
    async call(call) {
      const url = urlOf(call)
      const credentials = parts.credentialsFor?.(hostPortOf(url))
      return postReview(clientOf(call.config, credentials), url, { ...call, headers: credentials?.headers ?? {} })
    },
    close() {
      for (const client of clients.values()) client.close()
      clients.clear()
    },
  }
}

function hostPortOf(url: string): string {
  const { protocol, hostname, port } = new URL(url)
  return `${hostname}:${port || (protocol === 'http:' ? '80' : '443')}`
}

function retireOldest(clients: Map<string, HttpClient>): void {
  const [oldest] = clients
  if (oldest === undefined) return
  clients.delete(oldest[0])
  oldest[1].retire()
}

/** Services are named `<name>.<namespace>.svc` in URLs and in certificates. */
const SERVICE_HOST = /^(?<name>[^.]+)\.(?<namespace>[^.]+)\.svc$/

function openClient(
  parts: WebhookCallerParts,
  { service, caBundle = '' }: WebhookClientConfig,
  { certificate, key }: Partial<CallerCredentials> = {},
): HttpClient {
  const ca = Buffer.from(caBundle, 'base64').toString('latin1')
  if (ca !== '' && !ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new WebhookError('client', 'unable to load root certificates: unable to parse bytes as PEM block')
  }
  const { clock, random, objects, network } = parts
  return createHttpClient({
    clock,
    // One connection per concurrent request, so that calls spread over the endpoints of a Service.
    http1Only: true,
    tls: {
      ...(ca !== '' && { ca }),
      ...(certificate !== undefined && { certificate }),
      ...(key !== undefined && { key }),
    },
    ...(service !== undefined && {
      async resolve(host: string, port: number) {
        const { name = '', namespace = '' } = SERVICE_HOST.exec(host)?.groups ?? {}
        const found = await serviceEndpoint(objects, { namespace, name, port }, random)
        return network?.routeTo === undefined ? found : { ...found, host: network.routeTo(found.host) }
      },
    }),
  })
}

export type ReviewPost = Omit<WebhookCall, 'config'>

/** Posts one review to a URL and parses the response. Throws WebhookError, and nothing else. */
export async function postReview(client: HttpClient, url: string, call: ReviewPost): Promise<DecodedObject> {
  const response = await post(client, url, call)
  const text = await bodyOf(response, call)
  try {
    if (response.status < 200 || response.status > 206) throw answeredFailure(response, text)
    return readReview(response, text, call.review)
  } catch (cause) {
    throw new WebhookError('call', (cause as Error).message, cause)
  }
}

function urlOf({ config: { url, service }, timeoutMs }: WebhookCall): string {
  if (service === undefined) return reviewUrl(new URL(url ?? ''), timeoutMs)
  const base = new URL(`https://${service.name}.${service.namespace}.svc${service.path ?? ''}`)
  return reviewUrl(base, timeoutMs, `${base.hostname}:${service.port ?? 443}`)
}

/** The URL as upstream's client calls it: a clean path and the timeout parameter. */
export function reviewUrl(base: URL, timeoutMs: number, host: string = base.host): string {
  const path = base.pathname.replaceAll(/\/+/g, '/').replace(/(?!^)\/$/, '')
  return `${base.protocol}//${host}${path}?timeout=${Math.ceil(timeoutMs / 1000)}s`
}

async function post(client: HttpClient, url: string, call: ReviewPost): Promise<HttpResponse> {
  const { body, timeoutMs, signal, headers } = call
  try {
    return await client.request({
      method: 'POST',
      url,
      headers: { ...HEADERS, ...headers },
      body,
      timeoutMs,
      ...(signal !== undefined && { signal }),
    })
  } catch (cause) {
    throw new WebhookError('call', `Post "${url}": ${failureText(cause, new URL(url).host)}`, cause)
  }
}

async function bodyOf(response: HttpResponse, { limitBytes = LIMIT_BYTES }: ReviewPost): Promise<string> {
  try {
    return await response.text(limitBytes)
  } catch (cause) {
    const why = cause instanceof HttpError && cause.code === 'broken' ? 'unexpected EOF' : failureText(cause, '')
    const message = `unexpected error when reading response body. Please retry. Original error: ${why}`
    throw new WebhookError('call', message, cause)
  }
}

function failureText(error: unknown, address: string): string {
  if (error instanceof HttpError && error.code === 'timeout') return 'context deadline exceeded'
  if (error instanceof HttpError && error.code === 'aborted') return 'context canceled'
  return dialText(error, address)
}
