/**
 * The client for aggregated servers. It verifies TLS for the name of the Service. It sends user headers, which the
 * servers trust because of the front-proxy client certificate.
 */
import { allowedAddress, isKubeletAddress, type Network } from '#apiserver/connect/address-rule.ts'
import { dialText } from '#apiserver/connect/dial-text.ts'
import { hostPort } from '#apiserver/connect/kubelet-location.ts'
import type { ServiceDirectory } from '#apiserver/connect/service-directory.ts'
import type { User } from '#auth/user.ts'
import type { RequestHeaders } from '#component/forwarding/headers.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { type ClientTls } from '#lib/http/dial.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { ResponseHead } from '#lib/http/response.ts'

import type { Remote } from './roster.ts'

/** PEM. */
export interface FrontProxyCertificate {
  readonly certificate: string
  readonly key: string
}

export interface FrontProxyOptions {
  readonly clock: Clock
  readonly directory: ServiceDirectory
  readonly network: Network
  /** Returns the same object until it is renewed; undefined: no client certificate. */
  readonly certificate: () => FrontProxyCertificate | undefined
}

/** A request of the server itself. */
export interface Question {
  readonly path: string
  readonly accept: string
  readonly user: string
  readonly groups?: readonly string[]
  /** The server answers 304 if the response would be unchanged. */
  readonly etag?: string
  readonly timeoutMs: number
  /** The limit of the response; 0: its body is ignored. */
  readonly limitBytes: number
}

export interface Reply extends ResponseHead {
  readonly body: Buffer
}

export interface FrontProxy {
  /** `https://host:port` of one of the servers. Throws an Error with upstream's text if there is none. */
  locate(remote: Remote): string
  clientOf(remote: Remote): HttpClient
  /** Rejects with an Error in the words of Go's network library. */
  ask(remote: Remote, url: string, question: Question): Promise<Reply>
  /** New connections use the current APIService; those of a deleted one are closed. */
  forget(name: string): void
  close(): void
}

const CONNECT_TIMEOUT_MS = 10_000

export function createFrontProxy(options: FrontProxyOptions): FrontProxy {
  const { clock, directory, network } = options
  const clients = new Map<string, Connected>()
  const clientOf = (remote: Remote): HttpClient => {
    const certificate = options.certificate()
    const known = clients.get(remote.name)
    const terms = termsOf(remote)
    if (known?.certificate === certificate && known?.terms === terms) return known.client
    const tls = tlsOf(remote, certificate)
    known?.client.reloadTls(tls)
    const resolve = (host: string): Promise<string> => allowedAddress(host, network, isKubeletAddress)
    const client = known?.client ?? createHttpClient({ clock, tls, resolve, connectTimeoutMs: CONNECT_TIMEOUT_MS })
    clients.set(remote.name, { client, certificate, terms })
    return client
  }
  return {
    locate(remote) {
      const { host, port } = directory.resolve(remote.service)
      return `https://${hostPort(host, port)}`
    },
    clientOf,
    async ask(remote, url, question) {
      const client = clientOf(remote)
      try {
        return await ask(client, url, question)
      } catch (cause) {
        // The peer of an open connection may be gone: the next request makes a new one.
        if (isLate(cause)) client.reloadTls(tlsOf(remote, options.certificate()))
        const when = isLate(cause) ? ' (Client.Timeout exceeded while awaiting headers)' : ''
        const text = failureText(cause, new URL(url).host)
        throw new Error(`Get "${url}${question.path}": ${text}${when}`, { cause })
      }
    },
    forget(name) {
      clients.get(name)?.client.retire()
      clients.delete(name)
    },
    close: () => clients.forEach(({ client }) => client.close()),
  }
}

interface Connected {
  readonly client: HttpClient
  /** Its inputs. */
  readonly certificate: FrontProxyCertificate | undefined
  readonly terms: string
}

/** The expected server identity. */
function termsOf({ spec, service }: Remote): string {
  return [service.namespace, service.name, spec.insecureSkipTLSVerify === true, spec.caBundle].join('/')
}

function tlsOf({ spec, service }: Remote, shown: FrontProxyCertificate | undefined): ClientTls {
  const { caBundle = '', insecureSkipTLSVerify = false } = spec
  return {
    serverName: `${service.name}.${service.namespace}.svc`,
    insecure: insecureSkipTLSVerify,
    ...(caBundle !== '' && { ca: Buffer.from(caBundle, 'base64').toString('latin1') }),
    ...shown,
  }
}

async function ask(client: HttpClient, url: string, question: Question): Promise<Reply> {
  const { path, accept, user, groups = [], etag, timeoutMs, limitBytes } = question
  const headers = {
    ...(accept !== '' && { accept }),
    ...(etag !== undefined && { 'if-none-match': etag }),
    ...userHeaders({ name: user, uid: '', groups, extra: {} }),
  }
  const response = await client.request({ url, path, headers, timeoutMs })
  const { status, headers: answered, version } = response
  if (limitBytes > 0) return { status, headers: answered, version, body: await response.bytes(limitBytes) }
  response.discard()
  return { status, headers: answered, version, body: Buffer.alloc(0) }
}

function isLate(cause: unknown): boolean {
  return cause instanceof HttpError && cause.code === 'timeout'
}

/** `host` is host and port. */
export function failureText(cause: unknown, host: string): string {
  return isLate(cause) ? 'context deadline exceeded' : dialText(cause, host)
}

/** The user headers for a server that trusts this one. One header per value, as upstream. */
export function userHeaders({ name, uid, groups, extra }: User): RequestHeaders {
  return {
    'x-remote-user': name,
    ...(uid !== '' && { 'x-remote-uid': uid }),
    ...(groups.length > 0 && { 'x-remote-group': groups }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [`x-remote-extra-${escapeKey(key)}`, values] as const),
    ),
  }
}

/** Percent-encodes bytes that are not allowed in header names. */
function escapeKey(key: string): string {
  return [...Buffer.from(key)]
    .map((byte) => {
      const char = String.fromCharCode(byte)
      return /[A-Za-z0-9!#$&'*+.^_`|~-]/.test(char) ? char : `%${byte.toString(16).padStart(2, '0')}`
    })
    .join('')
}
