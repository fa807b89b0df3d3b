/**
 * Injects faults between clients and the API server: refused, delayed or conflicting requests, lost responses, and
 * broken watches. A fault affects authenticated requests of every client, including controllers, scheduler, nodes and
 * the test itself, unless it names a user.
 */
import { type Answer, type Call, type Interfere, isStream, letGo } from '#component/requests/call.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { failure, modifiedError } from '#meta/status-errors.ts'
import type { StatusReason } from '#meta/status.ts'

/** Selects requests; absent fields match all. */
export interface RequestAim {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`: one or several. */
  readonly verb?: string | readonly string[]
  /** The plural, with group and subresource if needed: `pods`, `deployments.apps`, `pods/status`. */
  readonly resource?: string
  readonly namespace?: string
  readonly name?: string
  /** `jane`, `system:node:node-0`, `system:serviceaccount:kube-system:deployment-controller`. */
  readonly user?: string
  /** Ends after this many requests. */
  readonly times?: number
  /** Ends after this time on the cluster's clock. */
  readonly lastingMs?: number
}

export type ApiFault =
  /** Refuses without any effect. Default: 500. */
  | ({
      readonly type: 'api-error'
      readonly code?: number
      readonly reason?: StatusReason
      readonly message?: string
      readonly retryAfterSeconds?: number
    } & RequestAim)
  /** A write conflict: 409, "the object has been modified". Only affects writes to existing objects. */
  | ({ readonly type: 'api-conflict' } & RequestAim)
  /** Starts the request after a delay; it may miss its deadline. */
  | ({ readonly type: 'api-delay'; readonly delayMs: number } & RequestAim)
  /** Executes the request, but breaks the response. */
  | ({ readonly type: 'api-lost-answer' } & RequestAim)
  /** Breaks watches: running ones now, and new ones after this time. */
  | ({ readonly type: 'watch-cut'; readonly afterMs?: number } & RequestAim)

const TYPES: Readonly<Record<ApiFault['type'], true>> = {
  'api-error': true,
  'api-conflict': true,
  'api-delay': true,
  'api-lost-answer': true,
  'watch-cut': true,
}

export function isApiFault(fault: { readonly type: string }): fault is ApiFault {
  return Object.hasOwn(TYPES, fault.type)
}

interface ActiveFault {
  readonly fault: ApiFault
  left: number
  readonly untilMs: number
}

interface RunningWatch {
  readonly call: Call
  cut(): void
}

/** The faults of one server. */
export class ApiFaults {
  readonly #clock: Clock
  readonly #active = new Set<ActiveFault>()
  readonly #watches = new Set<RunningWatch>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns a function that ends the fault. */
  inject(fault: ApiFault): () => void {
    const { times = Infinity, lastingMs = Infinity } = fault
    const active = { fault, left: times, untilMs: this.#clock.now() + lastingMs }
    this.#active.add(active)
    if (fault.type === 'watch-cut') for (const watch of this.#watches) if (this.#meets(active, watch.call)) watch.cut()
    return () => void this.#active.delete(active)
  }

  /** In order of injection; the last one wins. */
  readonly interfere: Interfere = async (call, answer) => {
    let isLost = false
    let cutMs = Infinity
    for (const active of this.#active) {
      const { fault } = active
      if (!this.#meets(active, call)) continue
      if (fault.type === 'api-delay') await sleep(this.#clock, fault.delayMs, call.signal)
      else if (fault.type === 'watch-cut') cutMs = Math.min(cutMs, fault.afterMs ?? 0)
      else if (fault.type === 'api-lost-answer') isLost = true
      else throw refusal(fault, call)
    }
    const made = await answer()
    if (isLost) return lost(made)
    return call.info.verb === 'watch' ? this.#watched(call, made, cutMs) : made
  }

  /** Whether the fault applies; counts the request. */
  #meets(active: ActiveFault, call: Call): boolean {
    const { fault } = active
    if (this.#clock.now() >= active.untilMs) this.#active.delete(active)
    else if (isAimedAt(fault, call)) {
      if (--active.left <= 0) this.#active.delete(active)
      return true
    }
    return false
  }

  #watched(call: Call, answer: Answer, cutMs: number): Answer {
    if (!isStream(answer)) return answer
    return {
      ...answer,
      stream: async (out) => {
        const watch = { call, cut: () => out.abort() }
        const timer = cutMs === Infinity ? undefined : this.#clock.after(cutMs, watch.cut)
        this.#watches.add(watch)
        try {
          await answer.stream(out)
        } finally {
          this.#watches.delete(watch)
          timer?.cancel()
        }
      },
    }
  }
}

const CHANGES: ReadonlySet<string> = new Set(['update', 'patch', 'delete'])

function isAimedAt({ type, verb, resource, namespace, name, user }: ApiFault, call: Call): boolean {
  const { info } = call
  const is = (wanted: string | undefined, has: string): boolean => wanted === undefined || wanted === has
  const own = [info.resource, `${info.resource}.${info.group}`]
  const resources = info.subresource === '' ? own : own.map((each) => `${each}/${info.subresource}`)
  return (
    info.isResource &&
    (type !== 'watch-cut' || info.verb === 'watch') &&
    (type !== 'api-conflict' || CHANGES.has(info.verb)) &&
    (verb === undefined || [verb].flat().includes(info.verb)) &&
    (resource === undefined || resources.includes(resource)) &&
    is(namespace, info.namespace) &&
    is(name, info.name) &&
    is(user, call.user.name)
  )
}

function refusal(fault: ApiFault & { type: 'api-error' | 'api-conflict' }, { info }: Call): Error {
  const { group, resource, name } = info
  if (fault.type === 'api-conflict') return modifiedError({ group, resource }, name)
  const { code = 500, reason, message = 'a fault was injected', retryAfterSeconds } = fault
  const details = { ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) }
  return failure({ code, message, details, reason: reason ?? REASONS[code] })
}

/** Upstream's reasons. */
const REASONS: Readonly<Record<number, StatusReason>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

function lost(answer: Answer): Answer {
  letGo(answer)
  const stream: Extract<Answer, { stream: unknown }>['stream'] = async (out) => out.abort()
  return { status: 200, contentType: 'application/json', stream }
}
