/**
 * Tracks the elements of nftables sets and maps. If several Services use the same key, the first one gets it; when that
 * Service is gone, the next one does. Each text is stored once, because there may be very many. Pure.
 */

/** `<set> <key>` or `<map> <key> : <value>`. */
type Element = string

export class Elements {
  readonly #ofService: (service: string) => readonly Element[]
  readonly #services: () => Iterable<string>
  /** By `<container> <key>`. */
  readonly #shown = new Map<string, Element>()
  /** Keys with several claims: all of them; the first one counts. */
  readonly #rivals = new Map<string, string[]>()
  /** The changes for the next script. */
  readonly #deleted = new Map<string, Element>()
  readonly #added = new Map<string, Element>()

  /** `ofService` returns the current rendering of a Service. */
  constructor(services: () => Iterable<string>, ofService: (service: string) => readonly Element[]) {
    this.#services = services
    this.#ofService = ofService
  }

  /** Replaces the elements of the Service. */
  change(service: string, before: readonly Element[], after: readonly Element[]): void {
    if (before.length === after.length && before.every((element, at) => element === after[at])) return
    const [old, wanted] = [byKey(before), byKey(after)]
    for (const key of old.keys()) if (!wanted.has(key)) this.#release(service, key)
    for (const [key, element] of wanted) {
      const had = old.get(key)
      if (had !== element) this.#claim(service, key, { element, isOwn: had !== undefined })
    }
  }

  get shown(): Iterable<Element> {
    return this.#shown.values()
  }

  get added(): Iterable<Element> {
    return this.#added.values()
  }

  get deleted(): Iterable<Element> {
    return this.#deleted.values()
  }

  applied(): void {
    this.#deleted.clear()
    this.#added.clear()
  }

  #claim(
    service: string,
    key: string,
    { element, isOwn }: { readonly element: Element; readonly isOwn: boolean },
  ): void {
    const rivals = this.#rivals.get(key)
    const shown = this.#shown.get(key)
    if (shown === undefined || (rivals === undefined ? isOwn : rivals[0] === service)) this.#show(key, element)
    else if (rivals === undefined) this.#rivals.set(key, [this.#ownerOf(key, service), service])
    else if (!rivals.includes(service)) rivals.push(service)
  }

  #release(service: string, key: string): void {
    const rivals = this.#rivals.get(key)
    if (rivals === undefined) {
      this.#hide(key)
      this.#shown.delete(key)
      return
    }
    const wasShown = rivals[0] === service
    rivals.splice(rivals.indexOf(service), 1)
    if (rivals.length === 1) this.#rivals.delete(key)
    const next = wasShown ? this.#ofService(rivals[0] ?? '').find((one) => keyOf(one) === key) : undefined
    if (next !== undefined) this.#show(key, next)
  }

  /** Finds the owner by search, because conflicts are rare. */
  #ownerOf(key: string, other: string): string {
    for (const service of this.#services())
      if (service !== other && this.#ofService(service).some((one) => keyOf(one) === key)) return service
    return ''
  }

  #show(key: string, element: Element): void {
    if (this.#shown.get(key) === element) return
    this.#hide(key)
    this.#shown.set(key, element)
    if (this.#deleted.get(key) === element) this.#deleted.delete(key)
    else this.#added.set(key, element)
  }

  #hide(key: string): void {
    const shown = this.#shown.get(key)
    if (shown === undefined) return
    if (this.#added.has(key)) this.#added.delete(key)
    else this.#deleted.set(key, shown)
  }
}

export function keyOf(element: Element): string {
  const at = element.indexOf(' : ')
  return at < 0 ? element : element.slice(0, at)
}

function byKey(elements: readonly Element[]): Map<string, Element> {
  return new Map(elements.map((one) => [keyOf(one), one]))
}
