/** Owners that the server said do not exist: a uid never comes back, so that many dependents need one question. */
import type { Identity } from './identity.ts'

/** As upstream: what was asked long ago is asked again. */
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
