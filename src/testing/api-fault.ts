/**
 * What is to go wrong between a client and the API server: requests that are refused, late, in conflict or whose answer is
 * lost, and watches that break off. A fault meets requests that were let in, of everybody: of programs outside, of
 * controllers, scheduler and nodes in the process, and of the test itself, unless it says whose.
 */
import { type Answer, type Call, type Interfere, isStream, letGo } from '#apiserver/call.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { failure, modifiedError } from '#meta/status-errors.ts'
import type { StatusReason } from '#meta/status.ts'

/** Which requests a fault is about; what is left out matches all. */
export interface RequestAim {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`: one of them, or several. */
  readonly verb?: string | readonly string[]
  /** The plural, with its group and subresource where they matter: `pods`, `deployments.apps`, `pods/status`. */
  readonly resource?: string
  readonly namespace?: string
  readonly name?: string
  /** `jane`, `system:node:node-0`, `system:serviceaccount:kube-system:deployment-controller`. */
  readonly user?: string
  /** After so many requests the fault is over. */
  readonly times?: number
  /** After so long, by the cluster's clock, the fault is over. */
  readonly lastingMs?: number
}

export type ApiFault =
  /** Refused, without anything having happened. Default: 500. */
  | ({
      readonly type: 'api-error'
      readonly code?: number
      readonly reason?: StatusReason
      readonly message?: string
      readonly retryAfterSeconds?: number
    } & RequestAim)
  /** As if somebody else had been faster: 409, "the object has been modified". Only writes of what is there meet it. */
  | ({ readonly type: 'api-conflict' } & RequestAim)
  /** Begun only after so long; what has a deadline may miss it. */
  | ({ readonly type: 'api-delay'; readonly delayMs: number } & RequestAim)
  /** Done, but the answer breaks off: the client does not know. */
  | ({ readonly type: 'api-lost-answer' } & RequestAim)
  /** Watches break off: those that run now, and new ones so long after their start. */
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

interface Active {
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
  readonly #active = new Set<Active>()
  readonly #watches = new Set<RunningWatch>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns what ends it. */
  inject(fault: ApiFault): () => void {
    const { times = Infinity, lastingMs = Infinity } = fault
    const active = { fault, left: times, untilMs: this.#clock.now() + lastingMs }
    this.#active.add(active)
    if (fault.type === 'watch-cut') for (const watch of this.#watches) if (this.#meets(active, watch.call)) watch.cut()
    return () => void this.#active.delete(active)
  }

  /** Faults in the order in which they came: the last has the last word. */
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

  /** Whether it is about the request, which counts as one of its times then. */
  #meets(active: Active, call: Call): boolean {
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

/** What upstream calls them. */
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
