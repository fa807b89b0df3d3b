/**
 * Tracks the expected state of the server and compares it with the actual state. It knows the object after each
 * acknowledged write, or two possible objects after a write without a response.
 */

/** Undefined: there is no such object. */
export type Content = string | undefined

export interface Found {
  readonly content: Content
  readonly version: number
}

interface Promised {
  content: Content
  version: number
  /** Present while a write has no answer. */
  attempted?: { readonly content: Content }
}

export interface Acknowledged {
  readonly name: string
  readonly version: number
  readonly content: Content
}

export class Ledger {
  readonly #objects = new Map<string, Promised>()
  /** Every write that was acknowledged with a version of its own. */
  readonly acknowledged: Acknowledged[] = []
  readonly problems: string[] = []
  /** The highest version that a client has received. */
  highest = 0
  unanswered = 0

  contentOf(name: string): Content {
    return this.#objects.get(name)?.content
  }

  versionOf(name: string): number {
    return this.#objects.get(name)?.version ?? 0
  }

  /** A write is about to be sent. Returns what to call when it was acknowledged; never called, its outcome is unknown. */
  attempt(name: string, content: Content): (version: number | undefined) => void {
    const object = this.#objects.get(name) ?? { content: undefined, version: 0 }
    this.#objects.set(name, object)
    object.attempted = { content }
    this.unanswered++
    const before = this.highest
    return (version) => {
      this.unanswered--
      delete object.attempted
      object.content = content
      if (version === undefined) return
      object.version = version
      this.acknowledged.push({ name, version, content })
      if (version <= before) this.problems.push(`${name}: version ${version} was given after ${before} had been seen`)
      this.highest = Math.max(this.highest, version)
    }
  }

  /** All there is, as the server shows it at `version`; what was unknown is known from then on. */
  compare(found: ReadonlyMap<string, Found>, version: number): void {
    if (version < this.highest) this.problems.push(`the list is at ${version}; ${this.highest} had been seen`)
    this.highest = Math.max(this.highest, version)
    for (const [name, object] of this.#objects) {
      const { content, version: own } = found.get(name) ?? { content: undefined, version: 0 }
      const isKept = content === object.content && (content === undefined || own === object.version)
      const isAttempted = object.attempted !== undefined && content === object.attempted.content
      if (!isKept && !isAttempted) {
        const attempted = object.attempted === undefined ? '' : `, attempted ${object.attempted.content}`
        this.problems.push(
          `${name}: acknowledged ${object.content} at ${object.version}${attempted}, found ${content} at ${own}`,
        )
      }
      delete object.attempted
      Object.assign(object, { content, version: own })
    }
    for (const name of found.keys()) if (!this.#objects.has(name)) this.problems.push(`${name}: nobody wrote it`)
  }
}
