/**
 * The causes of an asynchronous piece of work: the objects whose changes led to it. A write that happens within the work
 * can name them, although no function between passes them on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** `deployments.apps/default/web@812`: resource, namespace (if any), name and resourceVersion. */
export type Cause = string

/** More say no more to people. */
export const MAX_CAUSES = 8

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
  readonly #causes = new Map<string, Set<Cause>>()

  add(key: string, cause: Cause): void {
    const causes = this.#causes.get(key)
    if (causes === undefined) this.#causes.set(key, new Set([cause]))
    else if (causes.size < MAX_CAUSES) causes.add(cause)
  }

  /** The causes since the last call. */
  take(key: string): readonly Cause[] {
    const causes = this.#causes.get(key)
    if (causes === undefined) return NONE
    this.#causes.delete(key)
    return [...causes]
  }
}
