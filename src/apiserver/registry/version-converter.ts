/**
 * VersionConverter: shows stored custom resources in one version. On a read it converts, prunes and defaults the
 * object; an object that needs no change shares its stored entry.
 */
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { failure } from '#meta/status-errors.ts'

import type { ByteMemo } from './byte-memo.ts'
import { createEntryMaker, type Entry, type EntryMaker, parseBody } from './entry.ts'
import type { CustomRules, Resource } from './resource.ts'

/** Each converter has a unique name, so that it never uses results of another schema. */
let made = 0

export class VersionConverter {
  /** Unique among all converters of the process. */
  readonly name: string = `converter:${++made}`
  readonly #resource: Resource
  readonly #custom: CustomRules
  readonly #memos: ByteMemo
  readonly #maker: EntryMaker
  readonly #apiVersion: string
  readonly #converting = new Map<Entry, Promise<void>>()

  constructor(resource: Resource, custom: CustomRules, keyPrefix: string, memos: ByteMemo) {
    this.#resource = resource
    this.#custom = custom
    this.#memos = memos
    this.#apiVersion = apiVersionOf(resource.kind)
    const nothing = (): never => {
      throw new Error('A version converter reads no stored bytes')
    }
    this.#maker = createEntryMaker({
      prefix: typeMetaPrefix(resource.kind),
      keyPrefix,
      open: nothing,
      decode: nothing,
      fields: () => ({}),
    })
  }

  /** True if conversion needs a webhook. */
  get isRemote(): boolean {
    return this.#custom.ask !== undefined
  }

  /** The entry in this version. With `isRemote`, only for entries that were prepared or need no conversion. */
  convert(entry: Entry): Entry {
    if (entry.unchangedBy === this) return entry
    const known = this.#known(entry)
    if (known !== undefined) return known
    if (this.#needsWebhook(entry)) throw failure({ code: 500, message: 'the object has not been converted yet' })
    return this.#keep(entry, this.#custom.show(this.#wholeOf(entry)))
  }

  /** Converts all entries that need it in one call, for `convert`. Throws StatusError. */
  async prepare(entries: readonly Entry[]): Promise<void> {
    const { ask } = this.#custom
    if (ask === undefined) return
    const isUnknown = (entry: Entry): boolean =>
      entry.unchangedBy !== this && this.#known(entry) === undefined && this.#needsWebhook(entry)
    const unknown = entries.filter(isUnknown)
    // Concurrent watchers need the same conversions.
    const waiting = new Set(unknown.flatMap((entry) => this.#converting.get(entry) ?? []))
    const rest = unknown.filter((entry) => !this.#converting.has(entry))
    if (rest.length > 0) waiting.add(this.#ask(rest, ask))
    await Promise.all(waiting)
  }

  #ask(entries: readonly Entry[], ask: NonNullable<CustomRules['ask']>): Promise<void> {
    const converting = (async () => {
      try {
        const shown = await ask(entries.map((entry) => this.#wholeOf(entry)))
        for (const [at, entry] of entries.entries()) this.#keep(entry, shown[at] as KubeObject)
      } finally {
        for (const entry of entries) this.#converting.delete(entry)
      }
    })()
    for (const entry of entries) this.#converting.set(entry, converting)
    return converting
  }

  /** The field selectors of the version, as text. */
  fieldOf(entry: Entry, field: string): string {
    if (field === 'metadata.name') return entry.name
    if (field === 'metadata.namespace') return entry.namespace
    const shown = this.convert(entry)
    const name = `fields:${this.name}`
    let fields = shown.memo.get(name) as Record<string, string | undefined> | undefined
    if (fields === undefined) {
      const selectors = Object.entries(this.#resource.fieldSelectors ?? {})
      fields = Object.fromEntries(selectors.map(([label, read]) => [label, read(shown.object)]))
      shown.memo.set(name, fields)
    }
    return fields[field] ?? ''
  }

  /** Notes that the entry was just written in the form of this version. */
  noteWritten(entry: Entry): void {
    if (this.#custom.storedAs === this.#apiVersion) entry.unchangedBy = this
  }

  /** True if the stored value equals what a write would store now. */
  isCurrent(entry: Entry): boolean {
    return entry.apiVersion === this.#custom.storedAs && this.convert(entry) === entry
  }

  #needsWebhook({ apiVersion }: Entry): boolean {
    return this.isRemote && apiVersion !== this.#apiVersion
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
      if (entry.unchangedBy === undefined) entry.unchangedBy = this
      else entry.memo.set(this.name, entry)
      return entry
    }
    // Webhook results are kept as long as their entry; others can be computed again and are evicted when memory is
    // short.
    if (this.isRemote) entry.memo.set(this.name, shown)
    else this.#memos.keep(entry.memo, `${this.name}:kept`, { value: shown, bytes: shown.bytes })
    return shown
  }
}

function withoutVersion({ metadata, ...rest }: KubeObject): KubeObject {
  const { resourceVersion: _, ...bare } = metadata
  const { kind, apiVersion, ...others } = rest as Partial<KubeObject>
  return { kind, apiVersion, metadata: bare, ...others } as KubeObject
}
