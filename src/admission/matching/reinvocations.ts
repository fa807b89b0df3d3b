/** Who has been asked about a write, and what they made of the object: for the second round of one plugin. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'

export class Reinvocations {
  readonly #asked = new Set<string>()
  readonly #awake = new Set<string>()
  #left: string | undefined

  /** May be asked again, when something changes from now on. */
  add(id: string): void {
    this.#asked.add(id)
  }

  /** Something changed: those asked so far want to see it. */
  wakeAll(): void {
    for (const id of this.#asked) this.#awake.add(id)
    this.#asked.clear()
  }

  isAwake(id: string): boolean {
    return this.#awake.has(id)
  }

  keep({ object }: Attributes): void {
    // Nobody would be asked again.
    this.#left = this.#asked.size === 0 ? undefined : encodeJson(object)
  }

  /** Whether others have changed the object since it was kept. */
  isOther({ object }: Attributes): boolean {
    return this.#left !== undefined && this.#left !== encodeJson(object)
  }
}
