/**
 * The state of one decoding run: its position in the document, and its errors. Unknown and duplicate fields are
 * collected. The first value of a wrong type makes the run fail at its end, as in Go.
 */
import { goQuote } from '#lib/go/text.ts'
import { JsonNumber, type JsonDuplicate } from '#lib/json/value.ts'

import { CodecError, MAX_NESTING, tooDeep, tooManyParts } from './error.ts'

/** Upstream's maximum number of reported offences per document. */
const MAX_OFFENCES = 100

/** A struct field on the current path. */
export interface FieldFrame {
  readonly name: string
  /** The name in type errors: with the Go name of an inlined member in front. */
  readonly errorName: string
  /** The Go name of the struct, without its package. */
  readonly owner: string
}

/** A struct field, map key or list index. */
type Frame = FieldFrame | string | number

interface SharedState {
  readonly frames: Frame[]
  readonly left: { structs: number }
}

export class DecodeState {
  /** Entries from `depth` on are stale. */
  readonly frames: Frame[]
  depth = 0
  /** True if empty values are dropped, even where they differ from absent ones. */
  settles = false
  /** False under Ignore: offences are not collected. */
  readonly collect: boolean
  readonly #offences = new Set<string>()
  /** Duplicate keys by the path of their object; undefined without any. */
  readonly #duplicates: ReadonlyMap<string, readonly JsonDuplicate[]> | undefined
  #mismatch: CodecError | undefined
  /** Set in a separately decoded part: the struct in its errors. */
  #owner: string | undefined

  /** The remaining number of structs, shared by a run and its separately decoded parts. */
  readonly #left: { structs: number }

  constructor(collect: boolean, duplicates: readonly JsonDuplicate[], shared: SharedState) {
    this.frames = shared.frames
    this.#left = shared.left
    this.collect = collect
    this.#duplicates =
      collect && duplicates.length > 0 ? Map.groupBy(duplicates, (duplicate) => duplicate.parent) : undefined
  }

  get offences(): string[] {
    return [...this.#offences]
  }

  /** Throws the first mismatch, if there was one. */
  finish(): void {
    if (this.#mismatch !== undefined) throw this.#mismatch
  }

  /** Called for every new struct, because a short text can produce many. Throws if the limits are exceeded. */
  countStruct(): void {
    if (--this.#left.structs < 0) throw tooManyParts()
    if (this.depth > MAX_NESTING) throw tooDeep()
  }

  /** Decodes a part as a separate run, which collects nothing and fails at the first mismatch. */
  apart(run: (inner: DecodeState) => unknown): unknown {
    const inner = new DecodeState(false, [], { frames: this.frames, left: this.#left })
    inner.depth = this.depth
    inner.settles = this.settles
    inner.#owner = this.#owner ?? this.#field()?.owner
    const result = run(inner)
    inner.finish()
    return result
  }

  unknownField(key: string): void {
    if (this.collect) this.#offend('unknown field', joinPath(this.path(), key))
  }

  /** The duplicate keys of the current object. */
  duplicatesHere(): readonly JsonDuplicate[] | undefined {
    return this.#duplicates?.get(this.path())
  }

  /** Reports the keys that were duplicates after `before` distinct keys of the object. */
  repeated(duplicates: readonly JsonDuplicate[], before: number, knows: (key: string) => boolean): void {
    for (const { path, parent, before: position } of duplicates) {
      if (position !== before) continue
      if (knows(parent === '' ? path : path.slice(parent.length + 1))) this.#offend('duplicate field', path)
    }
  }

  /**
   * Records that the current value does not have the Go type. `exact`: the type is a number, so the error contains the
   * text of the value.
   */
  mismatch(value: unknown, goType: string, exact = false): void {
    this.#mismatch ??= this.mismatchError(value, goType, exact)
  }

  mismatchError(value: unknown, goType: string, exact = false): CodecError {
    const owner = this.#owner ?? this.#field()?.owner
    const where = owner === undefined ? 'value' : `struct field ${owner}.${this.#errorPath()}`
    return new CodecError('type', `json: cannot unmarshal ${goWord(value, exact)} into Go ${where} of type ${goType}`)
  }

  /** Records an error without a path, such as invalid base64. */
  fault(message: string): void {
    this.#mismatch ??= new CodecError('type', message)
  }

  /** The current path in the form of offences: `spec.containers[0]`. */
  path(): string {
    let path = ''
    for (let at = 0; at < this.depth; at++) {
      const frame = this.frames[at] as Frame
      if (typeof frame === 'number') path += `[${frame}]`
      else path = joinPath(path, typeof frame === 'string' ? frame : frame.name)
    }
    return path
  }

  /** The innermost field of the current path. */
  #field(): FieldFrame | undefined {
    for (let at = this.depth - 1; at >= 0; at--) {
      const frame = this.frames[at] as Frame
      if (isField(frame)) return frame
    }
    return undefined
  }

  #errorPath(): string {
    return this.frames
      .slice(0, this.depth)
      .filter(isField)
      .map((frame) => frame.errorName)
      .join('.')
  }

  #offend(what: string, path: string): void {
    if (this.#offences.size < MAX_OFFENCES) this.#offences.add(`${what} ${goQuote(path)}`)
  }
}

function isField(frame: Frame): frame is FieldFrame {
  return typeof frame === 'object'
}

function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

/** Go's name of a JSON value. `exact`: with the text of a number. */
export function goWord(value: unknown, exact: boolean): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'number' || typeof value === 'bigint') return exact ? `number ${value}` : 'number'
  if (value instanceof JsonNumber) return exact ? `number ${value.text}` : 'number'
  return 'object'
}

/** The decoder of values of one schema. */
export interface Step {
  /** Never gets null. The result after a mismatch is meaningless, because the run will fail. */
  readonly decode: (state: DecodeState, value: unknown) => unknown
  /** A new zero value each time. */
  readonly zero: () => unknown
  /** True for values that `omitempty` omits, in canonical form. Always false for types that Go never omits. */
  readonly isEmpty: (value: unknown) => boolean
}
