/**
 * A transport with the credentials of a ClientConfig on every request. It reads token and certificate files again over
 * time, because they are renewed, and runs a credential plugin again after a 401.
 */
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest, type UpgradeResult } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { basicOf, tlsOf } from '#model/kubeconfig/credentials.ts'
import type { ClientConfig, ReadText } from '#model/kubeconfig/reading.ts'

import type { Transport } from '../api-client.ts'
import { createExecPlugin, type ExecCredentials, type ExecPlugin, type RunPlugin } from './exec-plugin.ts'
import { createOidcSource } from './oidc.ts'

export interface Connection {
  readonly transport: Transport
  readonly server: string
  /** Upgrades to another protocol, on a dedicated connection. */
  upgrade(request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult>
  /** The credentials, for connections that the caller opens. */
  identity(): Promise<Credentials>
  /** Connects ahead of the first request. */
  prepare(): void
  /** Makes the next request read all files again. */
  refresh(): void
  /** Closes all connections. */
  close(): void
}

/** The TLS client certificate and the headers that authenticate us. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly tls: ClientTls
}

export interface ConnectionTools {
  readonly clock: Clock
  readonly readFile: ReadText
  /** The environment of plugins. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly run?: RunPlugin
  /** Why plugins cannot read standard input, if something else reads it. */
  readonly stdinUse?: string | undefined
  /** Saves renewed tokens to the kubeconfig. Default: they are not saved. */
  readonly writeFile?: (path: string, text: string) => Promise<void>
  /** For short-lived programs: loading HTTP/2 costs them more time than it saves. */
  readonly http1Only?: boolean
  /** Called when a new certificate or a plugin fails. */
  readonly onError?: (error: unknown) => void
}

/** As client-go: it reads tokens again every minute, ten seconds early, and certificates every five minutes. */
const TOKEN_MS = 50_000
const CERTIFICATE_MS = 5 * 60_000

/** Throws ConfigError for an unsupported configuration. */
export async function openConnection(config: ClientConfig, tools: ConnectionTools): Promise<Connection> {
  const { cluster } = config
  checkSupport(config)
  const server = (cluster.server ?? '').includes('://') ? (cluster.server ?? '') : `http://${cluster.server ?? ''}`
  // Credentials are never sent over plain HTTP.
  const isSecure = server.startsWith('https:')
  const { clock, readFile, env = {}, run, stdinUse, onError } = tools
  const plugin = isSecure
    ? createExecPlugin(config, { clock, env, stdinUse, ...(run !== undefined && { run }) })
    : undefined
  const read = (): Promise<ClientTls> => (isSecure ? tlsOf(config, readFile) : Promise.resolve({}))
  const tls = new RenewedValue(clock, CERTIFICATE_MS, read)
  const client = createHttpClient({ clock, tls: await tls.get(), http1Only: tools.http1Only ?? false })
  const own = isSecure ? tokenSource(config, tools) : undefined
  const oidc = isSecure
    ? await createOidcSource(config, { clock, readFile, persist: savesAuthProvider(config, tools) })
    : undefined
  const token = own === undefined ? oidc && (() => oidc.token()) : () => own.get()
  const identity = new Identity(config, { plugin, token, client, tls, onError })
  return {
    server,
    transport: { request: (request) => identity.send(request) },
    upgrade: (request) => identity.upgrade(request),
    identity: () => identity.credentials(),
    // A plugin may return another client certificate.
    prepare: () => void (plugin === undefined && client.prepare(server)),
    refresh() {
      tls.expire()
      own?.expire()
    },
    close() {
      client.close()
      oidc?.close()
    },
  }
}

/** Returns a function that saves the new configuration of an auth provider in its kubeconfig. */
function savesAuthProvider(
  { origin }: ClientConfig,
  { readFile, writeFile }: ConnectionTools,
): ((config: Readonly<Record<string, string>>) => Promise<void>) | undefined {
  if (origin === undefined || writeFile === undefined) return undefined
  const { file, user } = origin
  return async (config) => {
    const { withAuthProvider } = await import('./kubeconfig.ts')
    await writeFile(file, withAuthProvider(await readFile(file), user, config))
  }
}

function checkSupport({ cluster }: ClientConfig): void {
  const { 'proxy-url': proxy = '', 'insecure-skip-tls-verify': insecure } = cluster
  if (proxy !== '') throw new ConfigError(`proxy-url "${proxy}" is not supported: connections are made directly`)
  const ca = cluster['certificate-authority'] ?? cluster['certificate-authority-data'] ?? ''
  if (insecure === true && ca !== '') {
    throw new ConfigError('specifying a root certificates file with the insecure flag is not allowed')
  }
}

/** A value that the first caller after `periodMs` renews. If that fails, the old value stays. */
class RenewedValue<T> {
  readonly #clock: Clock
  readonly #periodMs: number
  readonly #make: () => Promise<T>
  #value: T | undefined
  #madeMs = -Infinity

  constructor(clock: Clock, periodMs: number, make: () => Promise<T>) {
    this.#clock = clock
    this.#periodMs = periodMs
    this.#make = make
  }

  expire(): void {
    this.#madeMs = -Infinity
  }

  async get(): Promise<T> {
    if (this.#value !== undefined && this.#clock.elapsed() - this.#madeMs < this.#periodMs) return this.#value
    this.#madeMs = this.#clock.elapsed()
    try {
      this.#value = await this.#make()
    } catch (error) {
      if (this.#value === undefined) throw error
    }
    return this.#value
  }
}

function tokenSource({ user }: ClientConfig, { clock, readFile }: ConnectionTools): RenewedValue<string> | undefined {
  const { token = '', tokenFile = '' } = user
  if (tokenFile !== '') return new RenewedValue(clock, TOKEN_MS, async () => (await readFile(tokenFile)).trim())
  return token === '' ? undefined : new RenewedValue(clock, Infinity, () => Promise.resolve(token))
}

interface IdentityParts {
  readonly plugin: ExecPlugin | undefined
  readonly token: (() => Promise<string>) | undefined
  readonly client: HttpClient
  readonly tls: RenewedValue<ClientTls>
  readonly onError: ((error: unknown) => void) | undefined
}

interface PresentedIdentity {
  readonly own: ClientTls
  readonly credentials: ExecCredentials | undefined
  /** The certificate of the files or of the plugin, and its JSON for comparison. */
  readonly tls: ClientTls
  readonly text: string
}

class Identity {
  readonly #parts: IdentityParts
  readonly #fixed: Readonly<Record<string, string | readonly string[]>>
  #presented: PresentedIdentity | undefined

  constructor(config: ClientConfig, parts: IdentityParts) {
    this.#parts = parts
    const isSecure = (config.cluster.server ?? '').startsWith('https:')
    this.#fixed = { ...impersonation(config), ...(isSecure && basicOf(config.user)) }
  }

  async send(request: HttpRequest): ReturnType<HttpClient['request']> {
    const { plugin, client, onError } = this.#parts
    const { headers, credentials } = await this.#authenticate()
    const response = await client.request({ ...request, headers: { ...headers, ...request.headers } })
    if (response.status === 401 && credentials !== undefined)
      void plugin?.refused(credentials).catch((error: unknown) => onError?.(error))
    return response
  }

  async upgrade(request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult> {
    const { headers } = await this.#authenticate()
    return this.#parts.client.upgrade({ ...request, headers: { ...headers, ...request.headers } })
  }

  async credentials(): Promise<Credentials> {
    const { headers, tls } = await this.#authenticate()
    return { headers, tls }
  }

  async #authenticate(): Promise<Credentials & { readonly credentials: ExecCredentials | undefined }> {
    const { plugin, token } = this.#parts
    const credentials = await plugin?.credentials().catch((cause: Error) => {
      throw new ConfigError(`getting credentials: ${cause.message}`, { cause })
    })
    const tls = await this.#presentTls(credentials)
    const bearer = (await token?.()) ?? credentials?.token
    const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    return { headers: { ...this.#fixed, ...authorization }, tls, credentials }
  }

  /** Uses the newest certificate for new connections. */
  async #presentTls(credentials: ExecCredentials | undefined): Promise<ClientTls> {
    const own = await this.#parts.tls.get()
    // Both objects stay identical until they are read again, so this check is cheap on every request.
    if (own === this.#presented?.own && credentials === this.#presented.credentials) return this.#presented.tls
    const { certificate, key } = credentials ?? {}
    const tls = { ...own, ...(certificate !== undefined && { certificate }), ...(key !== undefined && { key }) }
    const text = JSON.stringify(tls)
    const isNew = this.#presented !== undefined || certificate !== undefined
    if (text !== this.#presented?.text && isNew) this.#parts.client.reloadTls(tls)
    this.#presented = { own, credentials, tls, text }
    return tls
  }
}

function impersonation({ user }: ClientConfig): Readonly<Record<string, string | readonly string[]>> {
  const { as = '', 'as-uid': uid = '', 'as-groups': groups = [], 'as-user-extra': extra = {} } = user
  if (as === '') return {}
  const extras = Object.entries(extra).map(([key, values]) => [
    `impersonate-extra-${encodeURIComponent(key).toLowerCase()}`,
    values,
  ])
  return {
    'impersonate-user': as,
    ...(uid !== '' && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': groups }),
    ...(Object.fromEntries(extras) as Record<string, readonly string[]>),
  }
}
