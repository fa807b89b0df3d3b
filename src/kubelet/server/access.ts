/**
 * Who may ask a kubelet for what: callers show a client certificate of the cluster's authority or a token, and the API
 * server is asked who they are and what they may do. What it said holds for a while.
 */
import { TokenReviews } from '#apis/authentication/v1.ts'
import { SubjectAccessReviews } from '#apis/authorization/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange, Peer } from '#lib/http/exchange.ts'
import { type Certificate, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { needsCreate } from '#model/kubelet-paths.ts'

export interface Caller {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export interface Refusal {
  readonly status: 401 | 403
  readonly text: string
}

export interface AccessOptions {
  readonly client: ApiClient
  readonly node: string
  /** Whose certificates are taken for what they say; they may change. */
  readonly authorities: () => readonly Certificate[]
  /** Whether those who show nothing are somebody too: `system:anonymous`. */
  readonly allowsAnonymous: boolean
  /** Default: all of it is asked of the API server. */
  readonly rules?: AccessRules
}

/** `authentication` and `authorization` of a KubeletConfiguration. */
export interface AccessRules {
  /** Whether tokens are looked at. */
  readonly reviewsTokens: boolean
  readonly tokenMs: number
  /** Whether whoever is somebody may do everything. */
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
/** More callers than a node has; whoever makes up tokens fills nothing else. */
const MAX_REMEMBERED = 1000

const ANONYMOUS: Caller = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} }

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** By the first part of the path; any of them suffices. All others need `proxy`, which is the right to everything. */
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
  readonly #rules: AccessRules
  readonly #callers: Memory<Caller | undefined>
  readonly #verdicts: Memory<boolean>

  constructor(options: AccessOptions) {
    this.#options = options
    this.#rules = options.rules ?? RULES
    this.#callers = new Memory(options.client.clock)
    this.#verdicts = new Memory(options.client.clock)
  }

  /** Undefined: the request is allowed. `first` is the first segment of its path, decoded. */
  async authorize(exchange: Exchange, first: string): Promise<Refusal | undefined> {
    const caller = await this.#callerOf(exchange)
    if (caller === undefined) return { status: 401, text: 'Unauthorized' }
    if (this.#rules.allowsAll) return undefined
    const verb = needsCreate(first) ? 'create' : (VERBS[exchange.method] ?? '')
    const subresources = (Object.hasOwn(SUBRESOURCES, first) ? SUBRESOURCES[first] : undefined) ?? ['proxy']
    for (const subresource of subresources) if (await this.#may(caller, verb, subresource)) return undefined
    const what = `verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}]`
    return { status: 403, text: `Forbidden (user=${caller.name}, ${what})` }
  }

  async #callerOf({ peer, headers }: Exchange): Promise<Caller | undefined> {
    const shown = this.#certified(peer)
    if (shown !== undefined) return shown
    const token = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]
    const { reviewsTokens, tokenMs } = this.#rules
    if (token !== undefined && reviewsTokens) return this.#callers.get(token, tokenMs, () => this.#review(token))
    const showsNothing = headers.authorization === undefined || !reviewsTokens
    return this.#options.allowsAnonymous && showsNothing ? ANONYMOUS : undefined
  }

  #certified(peer: Peer): Caller | undefined {
    if (peer.certificate === undefined || !peer.isTrusted) return undefined
    try {
      const [leaf, ...others] = peer.chain().map((der) => parseCertificate(der))
      if (leaf === undefined) return undefined
      const { authorities: roots, client } = this.#options
      verifyChain(leaf, { roots: roots(), intermediates: others, nowMs: client.clock.now(), usage: 'client auth' })
      const { commonName, organizations } = leaf.subject
      if (commonName === '') return undefined
      return { name: commonName, uid: '', groups: [...organizations, 'system:authenticated'], extra: {} }
    } catch {
      // What cannot be read or trusted proves nothing.
      return undefined
    }
  }

  async #review(token: string): Promise<Caller | undefined> {
    const { status } = await this.#options.client.create(TokenReviews, { metadata: {}, spec: { token } })
    if (status?.authenticated !== true) return undefined
    const { username = '', uid = '', groups = [], extra = {} } = status.user ?? {}
    return { name: username, uid, groups, extra }
  }

  #may(caller: Caller, verb: string, subresource: string): Promise<boolean> {
    const { client, node } = this.#options
    const key = JSON.stringify([caller, verb, subresource])
    const { allowedMs, deniedMs } = this.#rules
    const holdsMs = (isAllowed: boolean): number => (isAllowed ? allowedMs : deniedMs)
    return this.#verdicts.get(key, holdsMs, async () => {
      const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: node }
      const groups = [...caller.groups]
      const extra = Object.fromEntries(Object.entries(caller.extra).map(([name, values]) => [name, [...values]]))
      const spec = { user: caller.name, uid: caller.uid, groups, extra, resourceAttributes }
      const { status } = await client.create(SubjectAccessReviews, { metadata: {}, spec })
      return status?.allowed ?? false
    })
  }
}

/** Answers that hold for a while; the oldest go first. */
class Memory<T> {
  readonly #clock: Clock
  readonly #known = new Map<string, { readonly value: T; readonly untilMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** What cannot be found out is not remembered. */
  async get(key: string, holdsMs: number | ((value: T) => number), find: () => Promise<T>): Promise<T> {
    const known = this.#known.get(key)
    if (known !== undefined && this.#clock.elapsed() < known.untilMs) return known.value
    const value = await find()
    const ms = typeof holdsMs === 'number' ? holdsMs : holdsMs(value)
    this.#known.delete(key)
    this.#known.set(key, { value, untilMs: this.#clock.elapsed() + ms })
    const [oldest] = this.#known.keys()
    if (this.#known.size > MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
    return value
  }
}
