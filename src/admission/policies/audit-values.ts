/** Collects the audit annotations of policies: the distinct values of each key, in order. */
import type { Attributes } from '#apiserver/registry/admission.ts'

const MAX_VALUE_BYTES = 10 * 1024

export class AuditValues {
  readonly #values = new Map<string, Set<string>>()

  add(key: string, value: string): void {
    let values = this.#values.get(key)
    if (values === undefined) this.#values.set(key, (values = new Set()))
    const bytes = Buffer.from(value)
    values.add(bytes.length > MAX_VALUE_BYTES ? bytes.toString('utf8', 0, MAX_VALUE_BYTES) : value)
  }

  publish({ annotate }: Attributes): void {
    for (const [key, values] of this.#values) annotate?.(key, [...values].join(', '))
  }
}
