/**
 * A connection as a ClientConfig describes it: a transport that says who we are with every request. What files hold is read
 * again while it lives, because tokens and certificates are renewed; a plugin is asked anew when the server says 401.
 */
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest, type UpgradeResult } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { basicOf, tlsOf } from '#model/kubeconfig/credentials.ts'
import type { ClientConfig, ReadText } from '#model/kubeconfig/reading.ts'

import type { Transport } from './api-client.ts'
import { createExecPlugin, type ExecCredentials, type ExecPlugin, type RunPlugin } from './exec-plugin.ts'
import { createOidcSource } from './oidc.ts'

export interface Connection {
  readonly transport: Transport
  readonly server: string
  /** Goes on with another protocol, on a connection of its own. */
  upgrade(request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult>
  /** Who we are, for connections that somebody else makes. */
  identity(): Promise<Credentials>
  /** Begins to connect, for those who will ask something in a moment. */
  prepare(): void
  /** What files hold is read again with the next request, however new what is known of them is. */
  refresh(): void
  /** Ends everything that goes through it. */
  close(): void
}

/** What a connection shows of us: in its handshake, and with every request. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly tls: ClientTls
}

export interface ConnectionTools {
  readonly clock: Clock
  readonly readFile: ReadText
  /** For plugins. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly run?: RunPlugin
  /** Why plugins may not read standard input, where something else does. */
  readonly stdinUse?: string | undefined
  /** Keeps tokens that were renewed in the kubeconfig; default: nobody does. */
  readonly writeFile?: (path: string, text: string) => Promise<void>
  /** For programs that ask little and soon end: HTTP/2 takes longer to load than it saves them. */
  readonly http1Only?: boolean
  /** Told when a new certificate or a plugin cannot be used. */
  readonly onError?: (error: unknown) => void
}

/** As upstream's client: tokens are re-read every minute, ten seconds early; certificates every five minutes. */
const TOKEN_MS = 50_000
const CERTIFICATE_MS = 5 * 60_000

/** Throws ConfigError for what cannot be used. */
export async function openConnection(config: ClientConfig, tools: ConnectionTools): Promise<Connection> {
  const { cluster } = config
  checkSupport(config)
  const server = (cluster.server ?? '').includes('://') ? (cluster.server ?? '') : `http://${cluster.server ?? ''}`
  // Who we are is told to nobody who could be overheard.
  const isSecure = server.startsWith('https:')
  const { clock, readFile, env = {}, run, stdinUse, onError } = tools
  const plugin = isSecure
    ? createExecPlugin(config, { clock, env, stdinUse, ...(run !== undefined && { run }) })
    : undefined
  const read = (): Promise<ClientTls> => (isSecure ? tlsOf(config, readFile) : Promise.resolve({}))
  const tls = new Renewed(clock, CERTIFICATE_MS, read)
  const client = createHttpClient({ clock, tls: await tls.get(), http1Only: tools.http1Only ?? false })
  const own = isSecure ? tokenSource(config, tools) : undefined
  const oidc = isSecure
    ? await createOidcSource(config, { clock, readFile, persist: keeper(config, tools) })
    : undefined
  const token = own === undefined ? oidc && (() => oidc.token()) : () => own.get()
  const identity = new Identity(config, { plugin, token, client, tls, onError })
  return {
    server,
    transport: { request: (request) => identity.send(request) },
    upgrade: (request) => identity.upgrade(request),
    identity: () => identity.credentials(),
    // A plugin may have another certificate to show.
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

/** What keeps the new words of an auth provider where the old ones stand. */
function keeper(
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

/** A value that is made anew when it is old, by whoever asks for it first. The old one stays when that fails. */
class Renewed<T> {
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

function tokenSource({ user }: ClientConfig, { clock, readFile }: ConnectionTools): Renewed<string> | undefined {
  const { token = '', tokenFile = '' } = user
  if (tokenFile !== '') return new Renewed(clock, TOKEN_MS, async () => (await readFile(tokenFile)).trim())
  return token === '' ? undefined : new Renewed(clock, Infinity, () => Promise.resolve(token))
}

interface IdentityParts {
  readonly plugin: ExecPlugin | undefined
  readonly token: (() => Promise<string>) | undefined
  readonly client: HttpClient
  readonly tls: Renewed<ClientTls>
  readonly onError: ((error: unknown) => void) | undefined
}

interface Shown {
  readonly own: ClientTls
  readonly credentials: ExecCredentials | undefined
  /** Both together, and as text. */
  readonly tls: ClientTls
  readonly text: string
}

class Identity {
  readonly #parts: IdentityParts
  readonly #fixed: Readonly<Record<string, string | readonly string[]>>
  #shown: Shown | undefined

  constructor(config: ClientConfig, parts: IdentityParts) {
    this.#parts = parts
    const isSecure = (config.cluster.server ?? '').startsWith('https:')
    this.#fixed = { ...impersonation(config), ...(isSecure && basicOf(config.user)) }
  }

  async send(request: HttpRequest): ReturnType<HttpClient['request']> {
    const { plugin, client, onError } = this.#parts
    const { headers, credentials } = await this.#prove()
    const response = await client.request({ ...request, headers: { ...headers, ...request.headers } })
    if (response.status === 401 && credentials !== undefined)
      void plugin?.refused(credentials).catch((error: unknown) => onError?.(error))
    return response
  }

  async upgrade(request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult> {
    const { headers } = await this.#prove()
    return this.#parts.client.upgrade({ ...request, headers: { ...headers, ...request.headers } })
  }

  async credentials(): Promise<Credentials> {
    const { headers, tls } = await this.#prove()
    return { headers, tls }
  }

  async #prove(): Promise<Credentials & { readonly credentials: ExecCredentials | undefined }> {
    const { plugin, token } = this.#parts
    const credentials = await plugin?.credentials().catch((cause: Error) => {
      throw new ConfigError(`getting credentials: ${cause.message}`, { cause })
    })
    const tls = await this.#show(credentials)
    const bearer = (await token?.()) ?? credentials?.token
    const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    return { headers: { ...this.#fixed, ...authorization }, tls, credentials }
  }

  /** New connections have the newest certificate. */
  async #show(credentials: ExecCredentials | undefined): Promise<ClientTls> {
    const own = await this.#parts.tls.get()
    // Both stay the same objects until they are read again: this is done for every request.
    if (own === this.#shown?.own && credentials === this.#shown.credentials) return this.#shown.tls
    const { certificate, key } = credentials ?? {}
    const tls = { ...own, ...(certificate !== undefined && { certificate }), ...(key !== undefined && { key }) }
    const text = JSON.stringify(tls)
    const isNew = this.#shown !== undefined || certificate !== undefined
    if (text !== this.#shown?.text && isNew) this.#parts.client.reloadTls(tls)
    this.#shown = { own, credentials, tls, text }
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
