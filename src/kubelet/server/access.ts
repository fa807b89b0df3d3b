/**
 * Authenticates and authorizes requests to the kubelet's port, by client certificate or by reviews of the API server.
 * Answers of the API server are cached.
 */
import { anonymous } from '#auth/access.ts'
import { createClientCertAuthenticator } from '#auth/authenticators/client-cert.ts'
import { createAuthenticator } from '#auth/authenticators/index.ts'
import { createWebhookTokenAuthenticator } from '#auth/authenticators/webhook.ts'
import { type Authorizer, resourceAccess } from '#auth/authorizer.ts'
import { createWebhookAuthorizer } from '#auth/authorizers/webhook.ts'
import type { User } from '#auth/user.ts'
import type { ApiClient } from '#client/api-client.ts'
import { reviewing } from '#component/reviews.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Certificate } from '#lib/x509/certificate.ts'
import { StatusError } from '#meta/status.ts'
import { needsCreate } from '#model/kubelet-paths.ts'

export interface Refusal {
  readonly status: 401 | 403
  readonly text: string
}

export interface AccessOptions {
  readonly client: ApiClient
  readonly node: string
  /** Authorities of trusted client certificates; they may change. */
  readonly authorities: () => readonly Certificate[]
  /** True if requests without credentials count as `system:anonymous`. */
  readonly allowsAnonymous: boolean
  /** Default: the API server reviews all tokens and access. */
  readonly rules?: AccessRules
}

/** `authentication` and `authorization` of a KubeletConfiguration. */
export interface AccessRules {
  /** Review bearer tokens with the API server. */
  readonly reviewsTokens: boolean
  readonly tokenMs: number
  /** Allow everything to authenticated callers. */
  readonly allowsAll: boolean
  readonly allowedMs: number
  readonly deniedMs: number
}

const RULES: AccessRules = {
  reviewsTokens: true,
  tokenMs: 120_000,
  allowsAll: false,
  allowedMs: 300_000,
  deniedMs: 30_000,
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/**
 * Subresources by the first path segment; one permission suffices. Other paths need `proxy`, which permits
 * everything.
 */
const SUBRESOURCES: Readonly<Record<string, readonly string[]>> = {
  pods: ['pods', 'proxy'],
  runningpods: ['pods', 'proxy'],
  healthz: ['healthz', 'proxy'],
  configz: ['configz', 'proxy'],
  stats: ['stats'],
  metrics: ['metrics'],
  logs: ['log'],
  checkpoint: ['checkpoint'],
  statusz: ['statusz'],
  flagz: ['configz'],
}

export class Access {
  readonly #options: AccessOptions
  readonly #authenticate: (exchange: Exchange) => Promise<User | undefined> | User | undefined
  readonly #authorizer: Authorizer | undefined

  constructor(options: AccessOptions) {
    const { client, authorities, rules = RULES } = options
    const { clock } = client
    this.#options = options
    const ttlMs = rules.tokenMs
    const send = reviewing(client, 'authentication', 'tokenreviews')
    this.#authenticate = createAuthenticator({
      requests: [createClientCertAuthenticator({ clock, authorities })],
      tokens: rules.reviewsTokens ? [createWebhookTokenAuthenticator({ clock, send, apiAudiences: [], ttlMs })] : [],
      apiAudiences: [],
    }).authenticate
    const { allowedMs: authorizedTtlMs, deniedMs: unauthorizedTtlMs } = rules
    this.#authorizer = rules.allowsAll
      ? undefined
      : createWebhookAuthorizer({
          clock,
          send: reviewing(client, 'authorization', 'subjectaccessreviews'),
          authorizedTtlMs,
          unauthorizedTtlMs,
        })
  }

  /** Undefined: the request is allowed. `first` is the first segment of its path, decoded. */
  async authorize(exchange: Exchange, first: string): Promise<Refusal | undefined> {
    const caller = await this.#callerOf(exchange)
    if (caller === undefined) return { status: 401, text: 'Unauthorized' }
    if (this.#authorizer === undefined) return undefined
    const verb = needsCreate(first) ? 'create' : (VERBS[exchange.method] ?? '')
    const subresources = (Object.hasOwn(SUBRESOURCES, first) ? SUBRESOURCES[first] : undefined) ?? ['proxy']
    for (const subresource of subresources) {
      const access = resourceAccess({
        verb,
        group: '',
        version: 'v1',
        resource: 'nodes',
        subresource,
        name: this.#options.node,
      })
      const { allowed, error } = await this.#authorizer.authorize(caller, access)
      if (allowed) return undefined
      if (error !== undefined) throw new Error(error)
    }
    const what = `verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}]`
    return { status: 403, text: `Forbidden (user=${caller.name}, ${what})` }
  }

  /** Undefined: the credentials are wrong, or there are none and anonymous requests are refused. */
  async #callerOf(exchange: Exchange): Promise<User | undefined> {
    try {
      const user = await this.#authenticate(exchange)
      return user ?? (this.#options.allowsAnonymous ? anonymous : undefined)
    } catch (error) {
      if (error instanceof StatusError) return undefined
      throw error
    }
  }
}
