/**
 * Credential provider plugins: programs that return registry credentials (KEP-2133 and KEP-4412). The kubelet caches
 * each response for the duration that the response or the configuration specifies.
 */
import { createHash } from 'node:crypto'

import type { Pod, ServiceAccount } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { durationMs } from '#lib/go/duration.ts'
import type { Logger } from '#lib/log/log.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { type Coordinates, coordinatesOf, type Credential } from './credential.ts'
import { matchesImage } from './image-match.ts'
import type { ProviderConfig, TokenAttributes } from './provider-config.ts'

export interface CredentialRequest {
  readonly image: string
  readonly serviceAccountToken?: string
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>
}

type Auths = Readonly<Record<string, { readonly username?: string; readonly password?: string }>>

export interface CredentialResponse {
  readonly cacheKeyType: string
  readonly cacheDuration?: string
  readonly auth?: Auths
}

export interface CredentialProviderOptions {
  readonly config: ProviderConfig
  readonly clock: Clock
  readonly log: Logger
  readonly meters: KubeletMeters
  /** Runs the plugin. */
  readonly run: (request: CredentialRequest) => Promise<CredentialResponse>
  readonly serviceAccount: (namespace: string, name: string) => Promise<ServiceAccount>
  readonly token: (pod: Pod, audience: string) => Promise<string>
}

interface Remembered {
  readonly auth: Auths
  readonly untilMs: number
}

/** The service account whose token is passed to the plugin. */
interface Account {
  readonly token: string
  readonly annotations: Readonly<Record<string, string>>
  readonly coordinates: Coordinates
  /** Distinguishes cache entries of accounts. */
  readonly key: string
}

/** A source of registry credentials. */
export type CredentialSource = Pick<CredentialProvider, 'credentialsFor'>

const GLOBAL = '<global>'

export class CredentialProvider {
  readonly #options: CredentialProviderOptions
  readonly #remembered = new Map<string, Remembered>()
  /** Running plugin calls, by request. */
  readonly #running = new Map<string, Promise<CredentialResponse>>()

  constructor(options: CredentialProviderOptions) {
    this.#options = options
  }

  /**
   * Credentials that match the image, longest pattern first. Empty when the plugin does not handle the image, or
   * fails.
   */
  async credentialsFor(pod: Pod, image: string): Promise<Credential[]> {
    const { config, log } = this.#options
    if (!config.matchImages.some((pattern) => matchesImage(pattern, image))) return []
    try {
      const account =
        config.tokenAttributes === undefined ? undefined : await this.#account(pod, config.tokenAttributes)
      if (account === 'none') return []
      const auth = await this.#provide(account, image)
      const source = account === undefined ? {} : { serviceAccount: account.coordinates }
      return Object.entries(auth)
        .filter(([pattern]) => matchesImage(pattern, image))
        .sort(([a], [b]) => b.length - a.length)
        .map(([, { username = '', password = '' }]) => ({ auth: { username, password }, ...source }))
    } catch (error) {
      log.error(error, 'Failed to provide credentials for image', { provider: config.name, image })
      return []
    }
  }

  async #provide(account: Account | undefined, image: string): Promise<Auths> {
    const { config } = this.#options
    const nowMs = this.#options.clock.now()
    for (const [key, { untilMs }] of this.#remembered) if (untilMs < nowMs) this.#remembered.delete(key)
    for (const base of [image, registryOf(image), GLOBAL]) {
      const known = this.#remembered.get(keyOf(base, account))
      if (known !== undefined) return known.auth
    }
    const response = await this.#ask(image, account)
    this.#refuseToken(response, account)
    const { cacheKeyType, cacheDuration, auth = {} } = response
    const base = baseOf(cacheKeyType, image)
    const holdsMs = durationMs(cacheDuration ?? config.defaultCacheDuration ?? '0s')
    if (holdsMs > 0) this.#remembered.set(keyOf(base, account), { auth, untilMs: nowMs + holdsMs })
    return auth
  }

  /** `none`: the plugin is not called for this pod. */
  async #account(pod: Pod, attributes: TokenAttributes): Promise<Account | 'none' | undefined> {
    const { namespace = '' } = pod.metadata
    const { serviceAccountName: name = '' } = pod.spec
    if (name === '') return attributes.requireServiceAccount === true ? 'none' : undefined
    const { metadata } = await this.#options.serviceAccount(namespace, name).catch((cause: Error) => {
      throw new Error(`failed to get service account: ${cause.message}`, { cause })
    })
    const annotations = annotationsOf(metadata.annotations ?? {}, attributes)
    if (annotations === undefined) return 'none'
    const token = await this.#options.token(pod, attributes.serviceAccountTokenAudience).catch((cause: Error) => {
      throw new Error(`failed to get service account token: ${cause.message}`, { cause })
    })
    const hash = attributes.cacheType === 'Token' ? hashOf(token) : ''
    const coordinates = coordinatesOf({ ...metadata, namespace, name })
    return { token, annotations, coordinates, key: JSON.stringify([namespace, name, metadata.uid, annotations, hash]) }
  }

  async #ask(image: string, account: Account | undefined): Promise<CredentialResponse> {
    const { config, run, clock, meters } = this.#options
    const key = JSON.stringify([image, account === undefined ? '' : hashOf(account.token), account?.annotations])
    const running = this.#running.get(key)
    if (running !== undefined) return running
    const startMs = clock.elapsed()
    const { token = '', annotations = {} } = account ?? {}
    const response = run({
      image,
      ...(token !== '' && { serviceAccountToken: token }),
      ...(Object.keys(annotations).length > 0 && { serviceAccountAnnotations: annotations }),
    })
      .catch((error: unknown) => {
        meters.family('kubelet_credential_provider_plugin_errors_total').labels(config.name).inc()
        throw error
      })
      .finally(() => {
        this.#running.delete(key)
        const durations = meters.family('kubelet_credential_provider_plugin_duration').labels(config.name)
        durations.observe((clock.elapsed() - startMs) / 1000)
      })
    this.#running.set(key, response)
    return response
  }

  /** Rejects a token used as password, because it may expire before the cache entry. */
  #refuseToken({ auth = {} }: CredentialResponse, account: Account | undefined): void {
    if (account === undefined || this.#options.config.tokenAttributes?.cacheType === 'Token') return
    if (Object.values(auth).every(({ password }) => password !== account.token)) return
    throw new Error(
      "credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'",
    )
  }
}

/** Undefined when a required annotation is missing. */
function annotationsOf(
  all: Readonly<Record<string, string>>,
  attributes: TokenAttributes,
): Account['annotations'] | undefined {
  const { requiredServiceAccountAnnotationKeys: needed = [], optionalServiceAccountAnnotationKeys: more = [] } =
    attributes
  if (needed.some((key) => all[key] === undefined)) return undefined
  const keys = [...needed, ...more.filter((key) => all[key] !== undefined)].sort()
  return Object.fromEntries(keys.map((key) => [key, all[key] ?? '']))
}

const registryOf = (image: string): string => image.split('/')[0] ?? ''

const keyOf = (base: string, account: Account | undefined): string => JSON.stringify([base, account?.key ?? ''])

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

function baseOf(type: string, image: string): string {
  if (type === 'Image') return image
  if (type === 'Registry') return registryOf(image)
  if (type === 'Global') return GLOBAL
  throw new Error(`credential provider plugin did not return a valid cacheKeyType: ${type}`)
}
