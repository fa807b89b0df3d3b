/**
 * Records the positions of values in a YAML text, for errors with line numbers. The positions are stored outside of the
 * values.
 */

/** Both counted from 1. */
export interface YamlSpot {
  readonly line: number
  readonly column: number
}

/** Offsets into the text, and what a plain scalar looked like before it became a number or a boolean. */
export interface YamlMember {
  readonly key: number
  readonly value: number
  readonly written?: string
}

export interface YamlRepeat {
  readonly container: object
  readonly key: string
  /** Where the key stands again. */
  readonly at: number
}

/** Filled by `parseYaml`; of a value with merge keys, each member is where it was written. */
export class YamlPlaces {
  readonly #members = new Map<object, Map<string | number, YamlMember>>()
  readonly #repeats: YamlRepeat[] = []
  #lineStarts: readonly number[] = [0]

  /** The text that offsets refer to. */
  setText(text: string): void {
    this.#lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  }

  note(container: object, key: string | number, member: YamlMember): void {
    let members = this.#members.get(container)
    if (!members) this.#members.set(container, (members = new Map()))
    members.set(key, member)
  }

  noteRepeat(repeat: YamlRepeat): void {
    this.#repeats.push(repeat)
  }

  /** Keys that are written twice in one mapping, in the order of the text. */
  get repeats(): readonly YamlRepeat[] {
    return this.#repeats
  }

  member(container: object, key: string | number): YamlMember | undefined {
    return this.#members.get(container)?.get(key)
  }

  spot(offset: number): YamlSpot {
    let low = 0
    let high = this.#lineStarts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#lineStarts[middle] as number) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (this.#lineStarts[low] as number) + 1 }
  }
}
