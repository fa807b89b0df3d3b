/**
 * Lens: how one version of a custom resource shows what is stored. Objects stay as they were written, in whichever version
 * and by whichever schema that was; a lens converts, prunes and fills in defaults when somebody looks. Most objects are
 * already as they are to be shown: that is found out once, and then the stored entry itself is what everybody gets.
 */
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { failure } from '#meta/status-errors.ts'

import type { ByteMemo } from './byte-memo.ts'
import { createEntryMaker, type Entry, type EntryMaker, parseBody } from './entry.ts'
import type { CustomRules, Resource } from './resource.ts'

/** Each lens remembers under a name of its own: what another schema made is never mistaken for its own. */
let made = 0

export class Lens {
  /** Tells it from every other lens there ever was. */
  readonly name: string = `lens:${++made}`
  readonly #resource: Resource
  readonly #custom: CustomRules
  readonly #memos: ByteMemo
  readonly #maker: EntryMaker
  readonly #apiVersion: string
  readonly #asking = new Map<Entry, Promise<void>>()

  constructor(resource: Resource, custom: CustomRules, keyPrefix: string, memos: ByteMemo) {
    this.#resource = resource
    this.#custom = custom
    this.#memos = memos
    this.#apiVersion = apiVersionOf(resource.kind)
    const nothing = (): never => {
      throw new Error('A lens reads no bytes')
    }
    this.#maker = createEntryMaker({
      prefix: typeMetaPrefix(resource.kind),
      keyPrefix,
      open: nothing,
      decode: nothing,
      fields: () => ({}),
    })
  }

  /** Whether somebody else has to be asked before objects can be looked at. */
  get asks(): boolean {
    return this.#custom.ask !== undefined
  }

  /** The entry as this version shows it. With `asks`, only of what was prepared, or needs no preparation. */
  look(entry: Entry): Entry {
    if (entry.seenBy === this) return entry
    const known = this.#known(entry)
    if (known !== undefined) return known
    if (this.#needsAsking(entry)) throw failure({ code: 500, message: 'the object has not been converted yet' })
    return this.#keep(entry, this.#custom.show(this.#wholeOf(entry)))
  }

  /** Asks for the conversion of all that need it, in one go; then they can be looked at. Throws StatusError. */
  async prepare(entries: readonly Entry[]): Promise<void> {
    const { ask } = this.#custom
    if (ask === undefined) return
    const isUnknown = (entry: Entry): boolean =>
      entry.seenBy !== this && this.#known(entry) === undefined && this.#needsAsking(entry)
    const unknown = entries.filter(isUnknown)
    // Who watches the same asks for the same at the same moment.
    const waiting = new Set(unknown.flatMap((entry) => this.#asking.get(entry) ?? []))
    const rest = unknown.filter((entry) => !this.#asking.has(entry))
    if (rest.length > 0) waiting.add(this.#ask(rest, ask))
    await Promise.all(waiting)
  }

  #ask(entries: readonly Entry[], ask: NonNullable<CustomRules['ask']>): Promise<void> {
    const asking = (async () => {
      try {
        const shown = await ask(entries.map((entry) => this.#wholeOf(entry)))
        for (const [at, entry] of entries.entries()) this.#keep(entry, shown[at] as KubeObject)
      } finally {
        for (const entry of entries) this.#asking.delete(entry)
      }
    })()
    for (const entry of entries) this.#asking.set(entry, asking)
    return asking
  }

  /** `field selectors` of the version, as text. */
  fieldOf(entry: Entry, field: string): string {
    if (field === 'metadata.name') return entry.name
    if (field === 'metadata.namespace') return entry.namespace
    const shown = this.look(entry)
    const name = `fields:${this.name}`
    let fields = shown.memo.get(name) as Record<string, string | undefined> | undefined
    if (fields === undefined) {
      const selectors = Object.entries(this.#resource.fieldSelectors ?? {})
      fields = Object.fromEntries(selectors.map(([label, read]) => [label, read(shown.object)]))
      shown.memo.set(name, fields)
    }
    return fields[field] ?? ''
  }

  /** That the entry was just made of an object that was as this version shows it. */
  wrote(entry: Entry): void {
    if (this.#custom.storedAs === this.#apiVersion) entry.seenBy = this
  }

  /** Whether what is stored is just what would be stored if it were written now. */
  isCurrent(entry: Entry): boolean {
    return entry.apiVersion === this.#custom.storedAs && this.look(entry) === entry
  }

  #needsAsking({ apiVersion }: Entry): boolean {
    return this.asks && apiVersion !== this.#apiVersion
  }

  #known(entry: Entry): Entry | undefined {
    const known = entry.memo.get(this.name) as Entry | undefined
    return known ?? this.#memos.get<Entry>(entry.memo, `${this.name}:kept`)
  }

  #wholeOf(entry: Entry): KubeObject {
    const { kind } = this.#resource.kind
    return { kind, apiVersion: entry.apiVersion ?? this.#apiVersion, ...parseBody(entry.body) }
  }

  #keep(entry: Entry, object: KubeObject): Entry {
    const { kind } = this.#resource.kind
    const own = withoutVersion({ ...object, kind, apiVersion: this.#apiVersion })
    const shown = this.#maker.written(entry.key, encodeJson(own), own, entry.modRevision)
    if (shown.body === entry.body) {
      if (entry.seenBy === undefined) entry.seenBy = this
      else entry.memo.set(this.name, entry)
      return entry
    }
    // What was asked for is kept for as long as its entry; what can be made again only while there is room.
    if (this.asks) entry.memo.set(this.name, shown)
    else this.#memos.keep(entry.memo, `${this.name}:kept`, { value: shown, bytes: shown.bytes })
    return shown
  }
}

function withoutVersion({ metadata, ...rest }: KubeObject): KubeObject {
  const { resourceVersion: _, ...bare } = metadata
  const { kind, apiVersion, ...others } = rest as Partial<KubeObject>
  return { kind, apiVersion, metadata: bare, ...others } as KubeObject
}
