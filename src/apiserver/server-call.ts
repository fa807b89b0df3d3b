/**
 * The call of a request that came in. A class and not a literal with accessors: the engine keeps each of those as a table
 * of its own, which takes longer to make than all else that is done before a request is dispatched.
 */
import type { Exchange } from '#lib/http/exchange.ts'

import type { AuditTrail } from './audit/trail.ts'
import { forbiddenAccess } from './authorizers/authorizer.ts'
import type { Call } from './call.ts'
import type { Authorize } from './filters/access.ts'
import type { LargeBodies } from './filters/large-bodies.ts'
import type { RequestMeter } from './metrics/requests.ts'
import type { User } from './registry/resource.ts'
import type { RequestInfo } from './request-info.ts'

export interface CallParts {
  readonly context: {
    readonly bodies: LargeBodies
    readonly warnings: string[]
    readonly auditId: string
    readonly meter: RequestMeter
  }
  readonly exchange: Exchange
  readonly request: { readonly info: RequestInfo; readonly query: URLSearchParams }
  readonly user: User
  readonly audit: AuditTrail | undefined
  readonly authorize: Authorize
  readonly deadlineMs: number | undefined
}

/** Read once, whoever asks: shared with calls that were made of this one. */
interface Body {
  reading: Promise<Buffer> | undefined
  bytes: number
}

/** Without private names: a call that differs in something has this one as its prototype, see `otherwise`. */
export class ServerCall implements Call {
  readonly method: string
  readonly info: RequestInfo
  readonly query: URLSearchParams
  readonly exchange: Exchange
  readonly user: User
  readonly auditId: string
  readonly deadlineMs: number | undefined
  readonly audit: AuditTrail | undefined
  private readonly parts: CallParts
  private readonly read: Body = { reading: undefined, bytes: 0 }

  constructor(parts: CallParts) {
    this.method = parts.exchange.method
    this.info = parts.request.info
    this.query = parts.request.query
    this.exchange = parts.exchange
    this.user = parts.user
    this.auditId = parts.context.auditId
    this.deadlineMs = parts.deadlineMs
    this.audit = parts.audit
    this.parts = parts
  }

  header(name: string): string {
    const value = this.exchange.headers[name]
    return typeof value === 'string' ? value : (value?.join(', ') ?? '')
  }

  body(): Promise<Buffer> {
    return (this.read.reading ??= readBody(this.parts, this.read))
  }

  get bodyBytes(): number {
    return this.read.bytes
  }

  get signal(): AbortSignal {
    return this.exchange.signal
  }

  async demand(verb: string): Promise<void> {
    const { request, user, authorize } = this.parts
    if (verb === request.info.verb) return
    const wanted = { ...request.info, verb }
    const { allowed, reason } = await authorize(user, wanted)
    if (!allowed) throw forbiddenAccess(user, wanted, reason)
  }

  warn(text: string): void {
    const { warnings } = this.parts.context
    if (!warnings.includes(text)) warnings.push(text)
  }
}

async function readBody({ context, exchange, request, user, audit }: CallParts, read: Body): Promise<Buffer> {
  const { bodies, meter } = context
  const bytes = await bodies.read(exchange, user.name)
  read.bytes = bytes.length
  meter.bodyRead(bytes.length)
  if (request.info.verb === 'patch') audit?.patch(bytes)
  return bytes
}
