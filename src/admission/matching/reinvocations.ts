/** Records which webhooks a write has invoked, and decides which of them reinvocation calls a second time. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'

export class Reinvocations {
  readonly #invoked = new Set<string>()
  readonly #due = new Set<string>()
  #left: string | undefined

  /** Marks a webhook as eligible for reinvocation if something changes later. */
  add(id: string): void {
    this.#invoked.add(id)
  }

  /** The object changed: the webhooks invoked so far become due. */
  wakeAll(): void {
    for (const id of this.#invoked) this.#due.add(id)
    this.#invoked.clear()
  }

  isAwake(id: string): boolean {
    return this.#due.has(id)
  }

  keep({ object }: Attributes): void {
    // No webhook would be invoked again.
    this.#left = this.#invoked.size === 0 ? undefined : encodeJson(object)
  }

  /** True if others have changed the object since it was saved. */
  isOther({ object }: Attributes): boolean {
    return this.#left !== undefined && this.#left !== encodeJson(object)
  }
}
