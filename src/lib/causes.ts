/**
 * The causes of an asynchronous piece of work: the objects whose changes led to it. A write that happens within the work
 * can name them, although no function between passes them on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** `deployments.apps/default/web@812`: resource, namespace (if any), name and resourceVersion. */
export type Cause = string

/** More say no more to people. */
export const MAX_CAUSES = 8

/** The header of a write that lists its causes, comma-separated. */
export const CAUSES_HEADER = 'hyperkube-because'

/** The length of a cause in the header: the longest names of Kubernetes fit. */
const MAX_CAUSE_BYTES = 300

/** Visible ASCII without the separator. */
const HEADER_CAUSE = /^[!-+\--~]+$/

const active = new AsyncLocalStorage<readonly Cause[]>()

const NONE: readonly Cause[] = []

/** Those of the work that calls. */
export function activeCauses(): readonly Cause[] {
  return active.getStore() ?? NONE
}

/** Runs `work`, and all that follows from it, with these causes. */
export function withCauses<T>(causes: readonly Cause[], work: () => T): T {
  return active.run(causes, work)
}

/** Adds a cause to the active ones: work after a timer names what it acts on. */
export function withCause<T>(cause: Cause, work: () => T): T {
  const others = activeCauses().filter((other) => other !== cause)
  return withCauses([cause, ...others].slice(0, MAX_CAUSES), work)
}

/** The active causes as a header; undefined without any. Leaves out a cause that a header cannot carry. */
export function causesHeader(): string | undefined {
  const causes = activeCauses()
  if (causes.length === 0) return undefined
  const sent = causes.filter(fitsHeader)
  return sent.length === 0 ? undefined : sent.slice(0, MAX_CAUSES).join(',')
}

/** The causes in a header; undefined if one of them is malformed or there are too many. */
export function parseCausesHeader(text: string): readonly Cause[] | undefined {
  if (text.length > MAX_CAUSES * (MAX_CAUSE_BYTES + 2)) return undefined
  // A repeated header arrives joined with a comma and a space.
  const causes = text.split(',').map((one) => one.trim())
  return causes.length <= MAX_CAUSES && causes.every(fitsHeader) ? causes : undefined
}

function fitsHeader(cause: Cause): boolean {
  return cause.length <= MAX_CAUSE_BYTES && HEADER_CAUSE.test(cause)
}

interface Caused {
  readonly metadata: { readonly namespace?: string; readonly name?: string; readonly resourceVersion?: string }
}

export function causeOf(
  { group, plural }: { readonly group: string; readonly plural: string },
  { metadata: { namespace = '', name = '', resourceVersion = '' } }: Caused,
): Cause {
  const resource = group === '' ? plural : `${plural}.${group}`
  return `${resource}/${namespace === '' ? '' : `${namespace}/`}${name}@${resourceVersion}`
}

/** The causes of keys that wait for work. */
export class KeyCauses {
  /** Keys share arrays, which are never changed: one event may add thousands of keys. */
  readonly #causes = new Map<string, readonly Cause[]>()
  /** Keys of attempts that wait for a time. */
  readonly #waiting = new Set<string>()

  add(key: string, causes: readonly Cause[]): void {
    if (causes.length === 0) return
    const known = this.#causes.get(key)
    if (known === undefined) this.#causes.set(key, causes)
    else if (known.length < MAX_CAUSES) {
      const fresh = causes.filter((cause) => !known.includes(cause))
      if (fresh.length > 0) this.#causes.set(key, [...known, ...fresh].slice(0, MAX_CAUSES))
    }
  }

  /** The key comes back after a time. */
  wait(key: string): void {
    this.#waiting.add(key)
  }

  /** The causes since the last call. Without any, a key that has waited has that of `own`: the version it acts on. */
  take(key: string, own: () => Cause | undefined = () => undefined): readonly Cause[] {
    const causes = this.#causes.get(key)
    this.#causes.delete(key)
    const hasWaited = this.#waiting.delete(key)
    if (causes !== undefined) return causes
    const cause = hasWaited ? own() : undefined
    return cause === undefined ? NONE : [cause]
  }
}
