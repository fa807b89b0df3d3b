/**
 * The call of an incoming request. It is a class, not an object literal with accessors: V8 creates a separate hidden
 * class for each such literal, which is slow.
 */
import type { Authorize } from '#auth/access.ts'
import { forbiddenAccess } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import type { ActiveRequest } from './active-request.ts'
import type { AuditNotes, Call } from './call.ts'

export interface CallParts {
  readonly request: Pick<
    ActiveRequest,
    'exchange' | 'info' | 'query' | 'user' | 'trail' | 'auditId' | 'bodies' | 'warnings' | 'meter'
  >
  readonly authorize: Authorize
  readonly deadlineMs: number | undefined
}

/** Read once; shared with calls derived from this one. */
interface Body {
  reading: Promise<Buffer> | undefined
  bytes: number
}

/** No private names: a derived call has this one as its prototype, see `otherwise`. */
export class ServerCall implements Call {
  readonly method: string
  readonly info: RequestInfo
  readonly query: URLSearchParams
  readonly exchange: Exchange
  readonly user: User
  readonly auditId: string
  readonly deadlineMs: number | undefined
  readonly audit: AuditNotes | undefined
  private readonly parts: CallParts
  private readonly read: Body = { reading: undefined, bytes: 0 }

  constructor(parts: CallParts) {
    const { request } = parts
    this.method = request.exchange.method
    this.info = request.info
    this.query = request.query
    this.exchange = request.exchange
    this.user = request.user
    this.auditId = request.auditId
    this.deadlineMs = parts.deadlineMs
    this.audit = request.trail
    this.parts = parts
  }

  header(name: string): string {
    const value = this.exchange.headers[name]
    return typeof value === 'string' ? value : (value?.join(', ') ?? '')
  }

  body(): Promise<Buffer> {
    return (this.read.reading ??= readBody(this.parts.request, this.read))
  }

  get bodyBytes(): number {
    return this.read.bytes
  }

  get signal(): AbortSignal {
    return this.exchange.signal
  }

  async demand(verb: string): Promise<void> {
    const { request, authorize } = this.parts
    const { info, user } = request
    if (verb === info.verb) return
    const wanted = { ...info, verb }
    const { allowed, reason } = await authorize(user, wanted)
    if (!allowed) throw forbiddenAccess(user, wanted, reason)
  }

  warn(text: string): void {
    const { warnings } = this.parts.request
    if (!warnings.includes(text)) warnings.push(text)
  }
}

async function readBody(
  { bodies, meter, exchange, info, user, trail }: CallParts['request'],
  read: Body,
): Promise<Buffer> {
  const bytes = await bodies.read(exchange, user.name)
  read.bytes = bytes.length
  meter.bodyRead(bytes.length)
  if (info.verb === 'patch') trail?.patch(bytes)
  return bytes
}
