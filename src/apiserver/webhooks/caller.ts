/**
 * Calls webhooks: one POST of a review to a URL or to a Service, one review back, within a time and a size. Connections are
 * kept and shared by all webhooks that trust the same authorities. Redirects are not followed: the one who configures a
 * webhook shall not choose what this server asks others (CVE-2020-8561).
 */
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import type { Random } from '#lib/random.ts'
import type { Decoded } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { StatusError } from '#meta/status.ts'

import type { Network } from '../connect/address-rule.ts'
import { dialText } from '../connect/dial-text.ts'
import type { RequestHeaders } from '../connect/forwarded-headers.ts'
import { serviceEndpoint } from '../connect/service-endpoint.ts'
import type { ObjectReader } from '../registry/resource.ts'
import { answeredFailure, readReview } from './answer.ts'

/** As configurations have it: exactly one of URL and Service, and the authorities to trust in base64. */
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
  /** What is sent, and what is expected back: the same kind in the same version. */
  readonly review: GroupVersionKind
  readonly timeoutMs: number
  /** The request that waits for the answer. */
  readonly signal?: AbortSignal
  /** Sent besides the caller's own, and in place of those: credentials. */
  readonly headers?: RequestHeaders
  /** Default: what one object and a patch of all of it need. */
  readonly limitBytes?: number
}

export interface WebhookCaller {
  /** Throws WebhookError, and nothing else. */
  call(call: WebhookCall): Promise<Decoded>
  close(): void
}

/** Why there is no answer, in upstream's words. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** `client`: the configuration is of no use; `call`: all else. */
  readonly phase: 'client' | 'call'
  /** As which HTTP status it counts: that of the answer, or 503 when there was none. */
  readonly status: number

  constructor(phase: WebhookError['phase'], message: string, cause?: unknown) {
    super(message, { cause })
    this.phase = phase
    this.status = phase === 'client' ? 500 : cause instanceof StatusError ? (cause.status.code ?? 500) : 503
  }
}

/** Who the server is to a webhook. */
export interface CallerCredentials {
  /** PEM of a client certificate and of its key. */
  readonly certificate?: string
  readonly key?: string
  readonly headers: RequestHeaders
}

export interface WebhookCallerParts {
  readonly clock: Clock
  readonly random: Random
  /** Where Services and their endpoints are found. */
  readonly objects: ObjectReader
  /** Default: the machine's. */
  readonly network?: Pick<Network, 'routeTo'> | undefined
  /** By `<host>:<port>`, where a Service is `<name>.<namespace>.svc`. Default: the server shows none. */
  readonly credentialsFor?: ((hostPort: string) => CallerCredentials | undefined) | undefined
}

const LIMIT_BYTES = 8 << 20

/** Bundles of authorities whose connections are kept; cert-manager and its like bring a new one with each rotation. */
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
    // Those used last are the last.
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

/** Services are known by `<name>.<namespace>.svc`, in URLs and in certificates. */
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
    // One connection for each request under way, so that calls spread over the endpoints of a Service.
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

/** Posts one review to a URL and reads the review that comes back. Throws WebhookError, and nothing else. */
export async function postReview(client: HttpClient, url: string, call: ReviewPost): Promise<Decoded> {
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

/** The URL as upstream's client calls it: a clean path, and how long the webhook has. */
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
