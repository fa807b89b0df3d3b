/**
 * Caches which owners do not exist, as the server reported. A uid is never reused, so one request serves many
 * dependents.
 */
import type { Identity } from './identity.ts'

/** As upstream: the least recently used entry is dropped. */
const MEMORY = 500

export class AbsentOwners {
  readonly #known = new Set<string>()

  add(identity: Identity): void {
    const key = keyOf(identity)
    this.#known.delete(key)
    this.#known.add(key)
    if (this.#known.size > MEMORY) this.#known.delete(this.#known.values().next().value ?? '')
  }

  has(identity: Identity): boolean {
    return this.#known.has(keyOf(identity))
  }
}

function keyOf({ apiVersion, kind, namespace, name, uid }: Identity): string {
  return [apiVersion, kind, namespace, name, uid].join('\n')
}
