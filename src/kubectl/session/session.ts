/**
 * The connection to the server, opened on first use: server, credentials, namespace and discovery. `#send` handles
 * every request: warnings, timeout and `-v` logs. Kubeconfig and connection modules are loaded on use, because loading
 * them takes as long as loading all other modules.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import type { Connection } from '#client/connection/connection.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import type { ProgramContext } from '#lib/program.ts'
import type { ClientConfig, Kubeconfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

import { ConnectionError, ExitError } from '../errors.ts'
import type { GlobalValues } from './client-config.ts'
import type { Mapper } from './mapper.ts'
import type { PluginPolicy } from './preference.ts'
import type { Rest } from './rest.ts'

export interface SessionOptions extends Pick<ProgramContext, 'env' | 'cwd' | 'stderr' | 'clock'> {
  readonly flags: GlobalValues
  readonly signal: AbortSignal
  /** The policy for credential plugins; all are allowed without it. */
  readonly policy?: PluginPolicy
  /** The command reads manifests from standard input, so credential plugins may not use it. */
  readonly readsManifests?: boolean
  /** The session reads the state at this moment; absent: now. */
  readonly moment?: string
}

export interface Namespace {
  readonly namespace: string
  /** The user set `--namespace`: objects of other namespaces are errors. */
  readonly isExplicit: boolean
}

export class Session {
  readonly #options: SessionOptions
  /** The session whose connection this one uses. */
  readonly #present: Session | undefined
  readonly #warned: Set<string>
  #config: Promise<ClientConfig> | undefined
  #connection: Promise<Connection> | undefined
  #client: Promise<ApiClient> | undefined
  #mapper: Promise<Mapper> | undefined

  constructor(options: SessionOptions, present?: Session) {
    this.#options = options
    this.#present = present
    this.#warned = present === undefined ? new Set() : present.#warned
  }

  /** A session that reads the state at a moment over the same connection. It needs no `close`. */
  at(moment: string): Session {
    return new Session({ ...this.#options, moment }, this)
  }

  /** The moment that the session reads; undefined: now. */
  get moment(): string | undefined {
    return this.#options.moment
  }

  /** The session of the present over the same connection. */
  get present(): Session {
    return this.#present ?? this
  }

  /** A session of the present without `--as`. It needs `close`. */
  withoutImpersonation(): Session {
    const noFlags = { as: '', 'as-uid': '', 'as-group': [], 'as-user-extra': [] }
    const { moment: _, ...options } = this.#options
    return new Session({ ...options, flags: { ...options.flags, ...noFlags } })
  }

  /** The number of distinct warnings from the server. */
  get warningCount(): number {
    return this.#warned.size
  }

  get signal(): AbortSignal {
    return this.#options.signal
  }

  /** Throws ConfigError, KubectlError. */
  config(): Promise<ClientConfig> {
    this.#config ??= this.#readConfig()
    return this.#config
  }

  /** The contents of the kubeconfig files. */
  async rawConfig(): Promise<Kubeconfig> {
    return (await import('./client-config.ts')).rawConfig(this.#options.flags, this.#sources())
  }

  async namespace(): Promise<Namespace> {
    const { flags } = this.#options
    if (flags.namespace !== '') return { namespace: flags.namespace, isExplicit: true }
    await (await import('./client-config.ts')).confirmConfig(flags, this.#sources())
    return { namespace: (await this.config()).namespace || 'default', isExplicit: false }
  }

  /** The server URL from the kubeconfig: `https://10.0.0.1:6443`. */
  async server(): Promise<string> {
    return (await this.connection()).server
  }

  client(): Promise<ApiClient> {
    this.#client ??= this.#openClient()
    return this.#client
  }

  async rest(): Promise<Rest> {
    const [client, { Rest }] = await Promise.all([this.client(), import('./rest.ts')])
    return new Rest(client, this.signal)
  }

  mapper(): Promise<Mapper> {
    this.#mapper ??= this.#openMapper()
    return this.#mapper
  }

  connection(): Promise<Connection> {
    this.#connection ??= this.#present?.connection() ?? this.#connect()
    return this.#connection
  }

  /** Closes the connection, which sessions of other moments share. */
  async close(): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined)
    connection?.close()
  }

  /** Prints each distinct warning once, like upstream. */
  warn(text: string): void {
    if (this.#warned.has(text)) return
    this.#warned.add(text)
    this.#options.stderr.write(`Warning: ${text}\n`)
  }

  async #readConfig(): Promise<ClientConfig> {
    const { flags } = this.#options
    const { clientConfig, requestTimeoutMs } = await import('./client-config.ts')
    requestTimeoutMs(flags['request-timeout'])
    return clientConfig(flags, this.#sources())
  }

  #sources(): { env: SessionOptions['env']; cwd: string; readFile: (path: string) => Promise<string> } {
    const { env, cwd } = this.#options
    // Synchronous, because nothing else runs here and the promise API takes longer to load than the file to read.
    return { env, cwd, readFile: async (path) => readFileSync(resolve(cwd, path), 'utf8') }
  }

  async #connect(): Promise<Connection> {
    const { clock, policy, readsManifests } = this.#options
    const writeFile = async (path: string, text: string): Promise<void> =>
      (await import('#lib/files/atomic-file.ts')).writeFileAtomically(path, text, { mode: 0o600 })
    const [config, { openConnection }] = await Promise.all([this.config(), import('#client/connection/connection.ts')])
    const run = policy === undefined ? undefined : (await import('../kuberc/plugin-policy.ts')).runAllowed(policy)
    const stdinUse = readsManifests === true ? 'used by stdin resource manifest reader' : undefined
    const tools = { ...this.#sources(), clock, writeFile, http1Only: true, stdinUse }
    return openConnection(config, { ...tools, ...(run && { run }) })
  }

  async #openClient(): Promise<ApiClient> {
    const { clock, flags, signal, moment } = this.#options
    const timeoutMs = (await import('./client-config.ts')).requestTimeoutMs(flags['request-timeout'])
    const connection = await this.connection()
    // The TLS handshake runs while other modules load.
    connection.prepare()
    const { server } = connection
    const { ApiClient } = await import('#client/api-client.ts')
    const present = new ApiClient({
      server,
      clock,
      userAgent: userAgent('kubectl'),
      transport: { request: (request) => this.#send(request, timeoutMs) },
    })
    const client = moment === undefined ? present : present.at(moment)
    if (flags['match-server-version']) {
      await (await import('./matching-version.ts')).requireSameVersion(client, signal)
    }
    return client
  }

  async #openMapper(): Promise<Mapper> {
    const { flags, signal, cwd, stderr, moment } = this.#options
    const [client, server, { Mapper }] = await Promise.all([this.client(), this.server(), import('./mapper.ts')])
    const hostFolder = server.replace(/^\w+:\/\//, '').replaceAll(/[^\w.-]/g, '_')
    const cacheFile = resolve(cwd, join(flags['cache-dir'], 'discovery', hostFolder, 'aggregated.json'))
    // Only warnings from the server count for --warnings-as-errors.
    const onAmbiguous = (text: string): void => void stderr.write(`Warning: ${text}\n`)
    // The past has the kinds of that time.
    const isCached = flags['cache-dir'] !== '' && moment === undefined
    return new Mapper({ client, signal, onAmbiguous, ...(isCached && { cacheFile }) })
  }

  async #send(request: HttpRequest, timeoutMs: number): Promise<HttpResponse> {
    const { transport } = await this.connection()
    const { flags } = this.#options
    const limited = timeoutMs > 0 ? { ...request, timeoutMs } : request
    const log = flags.v >= 6 ? (await import('./request-log.ts')).logRequest : undefined
    const done = log?.(limited, { level: flags.v, ...this.#options })
    try {
      const response = await transport.request(limited)
      for (const text of warningsIn(response.headers['warning'])) this.warn(text)
      if (this.#options.moment !== undefined && isNoStatus(response)) await this.#requirePast(String(request.url))
      return done === undefined ? response : done.answered(response)
    } catch (error) {
      done?.failed(error)
      throw error instanceof HttpError ? connectionError(request, error) : error
    }
  }

  /** Throws ExitError if the server has no paths of the past. */
  async #requirePast(path: string): Promise<void> {
    const { transport } = await this.connection()
    const url = path.replace(/(\/past\/[^/]+)\/.*$/, '$1/api')
    const response = await transport.request({ method: 'GET', url, signal: this.signal })
    const isMissing = isNoStatus(response)
    response.discard()
    if (isMissing) throw new ExitError(1, 'error: the server keeps no past: only hyperkube serves it')
  }
}

/** True for a path that no API serves. */
function isNoStatus({ status, headers }: HttpResponse): boolean {
  return status === 404 && headers['content-type']?.includes('json') !== true
}

/** Parses warnings of the form `299 - "text"`. */
export function warningsIn(header: string | readonly string[] | undefined): string[] {
  const text = typeof header === 'string' ? header : (header ?? []).join(', ')
  return [...text.matchAll(/(\d{3}) \S+ "((?:[^"\\]|\\.)*)"/g)]
    .filter(([, code]) => code === '299')
    .map(([, , quoted = '']) => quoted.replaceAll(/\\(.)/g, '$1'))
}

function connectionError({ method = 'GET', url }: HttpRequest, error: HttpError): Error {
  const verb = `${method.slice(0, 1)}${method.slice(1).toLowerCase()}`
  return new ConnectionError(verb, String(url), reasonOf(error, new URL(url)), { cause: error })
}

/** The reason for a failed connection, in Go's words if there are any. */
function reasonOf(error: HttpError, { hostname, port, protocol }: URL): string {
  const { code = '', address = hostname } = (error.cause ?? {}) as NodeJS.ErrnoException & { address?: string }
  const number = port === '' ? (protocol === 'https:' ? '443' : '80') : port
  const host = address.includes(':') && !address.startsWith('[') ? `[${address}]` : address
  if (code === 'ECONNREFUSED') return `dial tcp ${host}:${number}: connect: connection refused`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `dial tcp: lookup ${hostname}: no such host`
  if (error.code === 'timeout') {
    return 'net/http: request canceled (Client.Timeout exceeded while awaiting headers)'
  }
  if (UNTRUSTED.has(code)) return 'tls: failed to verify certificate: x509: certificate signed by unknown authority'
  return error.message
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])
