/** Keeps a connection to each identity provider (AuthProvider) with which users can log in. */
import { createHttpClient } from '#lib/http/client.ts'

import { type AuthProvider, AuthProviders, type OidcProviderSpec } from '../../kinds/auth-provider.ts'
import type { ManagementObjects } from '../../objects.ts'
import { ProviderError } from '../provider-error.ts'
import { Provider, type ProviderClient } from './provider.ts'

/** Makes the HTTP client of a provider. `certificateAuthority` is PEM; undefined: the public authorities. */
export type CreateClient = (certificateAuthority: string | undefined) => ProviderClient

interface Connection {
  readonly client: ProviderClient
  readonly provider: Provider
}

interface Entry {
  readonly version: string
  readonly madeMs: number
  readonly connecting: Promise<Connection>
}

/** Discovery document and keys are read again after this time: withdrawn keys must not stay valid for ever. */
const REFRESH_MS = 3_600_000
const CONNECT_TIMEOUT_MS = 10_000

export class Providers {
  readonly #objects: ManagementObjects
  readonly #createClient: CreateClient
  readonly #entries = new Map<string, Entry>()

  constructor(objects: ManagementObjects, createClient: CreateClient = createClientFor(objects)) {
    this.#objects = objects
    this.#createClient = createClient
  }

  /** Those that are not disabled. */
  list(): readonly AuthProvider[] {
    return this.#objects.list(AuthProviders).filter(({ spec }) => spec.disabled !== true)
  }

  /** Undefined if there is none of this type or it is disabled. Throws ProviderError if its Secret is missing. */
  async get(name: string): Promise<Provider | undefined> {
    const object = this.#objects.get(AuthProviders, name)
    if (object === undefined || object.spec.disabled === true || object.spec.type !== 'oidc') return undefined
    const { resourceVersion: version = '' } = object.metadata
    const known = this.#entries.get(name)
    const now = this.#objects.clock.elapsed()
    if (known?.version === version && now - known.madeMs < REFRESH_MS) return (await known.connecting).provider
    const connecting = this.#connect(object.spec)
    const entry = { version, madeMs: now, connecting }
    this.#entries.set(name, entry)
    // Log-ins that are under way go on.
    void known?.connecting.then(({ client }) => client.retire()).catch(() => undefined)
    try {
      return (await connecting).provider
    } catch (error) {
      if (this.#entries.get(name) === entry) this.#entries.delete(name)
      throw error
    }
  }

  async #connect(spec: OidcProviderSpec): Promise<Connection> {
    const clientSecret = spec.clientSecretName === undefined ? '' : await this.#clientSecret(spec.clientSecretName)
    const authority = spec.certificateAuthority
    const client = this.#createClient(authority === undefined || authority === '' ? undefined : authority)
    return { client, provider: new Provider({ spec, clock: this.#objects.clock, client, clientSecret }) }
  }

  async #clientSecret(name: string): Promise<string> {
    const data = (await this.#objects.secret(name))?.data?.['clientSecret']
    if (data === undefined) throw new ProviderError(`The Secret "${name}" has no key "clientSecret"`)
    return Buffer.from(data, 'base64').toString()
  }

  async close(): Promise<void> {
    const connections = await Promise.allSettled([...this.#entries.values()].map(({ connecting }) => connecting))
    for (const connection of connections) if (connection.status === 'fulfilled') connection.value.client.close()
    this.#entries.clear()
  }
}

function createClientFor({ clock }: ManagementObjects): CreateClient {
  return (ca) =>
    createHttpClient({ clock, connectTimeoutMs: CONNECT_TIMEOUT_MS, ...(ca !== undefined && { tls: { ca } }) })
}
