/**
 * What one decoding run knows: where it is in the document, what it has to complain about. Two kinds of complaint:
 * offences (unknown and repeated fields, collected) and mismatches (values of the wrong type; the first one is what
 * the whole run fails with, but only at its end, as in Go).
 */
import { goQuote } from '#lib/go-text.ts'
import { JsonNumber, type JsonDuplicate } from '#lib/json-value.ts'

import { CodecError, MAX_NESTING, tooDeep, tooManyParts } from './error.ts'

/** How many offences are kept, and told, of one document: upstream's number. */
const MAX_OFFENCES = 100

/** A struct's field on the way down. */
export interface FieldFrame {
  readonly name: string
  /** As type errors name it: with the Go name of the member that JSON inlines in front, if there is one. */
  readonly errorName: string
  /** The Go name of the struct, without its package. */
  readonly owner: string
}

/** A struct's field, a map's key or a list's index. */
type Frame = FieldFrame | string | number

interface SharedState {
  readonly frames: Frame[]
  readonly left: { structs: number }
}

export class DecodeState {
  /** What is at `depth` and beyond is left over from before. */
  readonly frames: Frame[]
  depth = 0
  /** True when what is empty goes, whoever tells it from nothing. */
  settles = false
  /** False under Ignore: no offence is looked for. */
  readonly collect: boolean
  readonly #offences = new Set<string>()
  /** Repeated keys by the path of the object that has them; undefined when there is none. */
  readonly #duplicates: ReadonlyMap<string, readonly JsonDuplicate[]> | undefined
  #mismatch: CodecError | undefined
  /** Set in a part that is decoded on its own: the struct that errors name, whatever is inside. */
  #owner: string | undefined

  /** How many structs may still come. One counter for a run and the parts decoded on their own. */
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

  /** To be called for every struct that is made: much can come of little text. Throws when it is too much or too deep. */
  countStruct(): void {
    if (--this.#left.structs < 0) throw tooManyParts()
    if (this.depth > MAX_NESTING) throw tooDeep()
  }

  /** Decodes a part as a run of its own, in which nothing is collected and the first mismatch ends everything. */
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

  /** The repeated keys of the object at hand. */
  duplicatesHere(): readonly JsonDuplicate[] | undefined {
    return this.#duplicates?.get(this.path())
  }

  /** Tells of the keys that were repeated when `before` different keys of the object had been read. */
  repeated(duplicates: readonly JsonDuplicate[], before: number, knows: (key: string) => boolean): void {
    for (const { path, parent, before: position } of duplicates) {
      if (position !== before) continue
      if (knows(parent === '' ? path : path.slice(parent.length + 1))) this.#offend('duplicate field', path)
    }
  }

  /**
   * Notes that the value at hand is not of the Go type. `exact`: the type is a number, so that the text of the number
   * is what is wrong.
   */
  mismatch(value: unknown, goType: string, exact = false): void {
    this.#mismatch ??= this.mismatchError(value, goType, exact)
  }

  mismatchError(value: unknown, goType: string, exact = false): CodecError {
    const owner = this.#owner ?? this.#field()?.owner
    const where = owner === undefined ? 'value' : `struct field ${owner}.${this.#errorPath()}`
    return new CodecError('type', `json: cannot unmarshal ${goWord(value, exact)} into Go ${where} of type ${goType}`)
  }

  /** Notes an error that names no place, such as broken base64. */
  fault(message: string): void {
    this.#mismatch ??= new CodecError('type', message)
  }

  /** Where the run is, as offences tell it: `spec.containers[0]`. */
  path(): string {
    let path = ''
    for (let at = 0; at < this.depth; at++) {
      const frame = this.frames[at] as Frame
      if (typeof frame === 'number') path += `[${frame}]`
      else path = joinPath(path, typeof frame === 'string' ? frame : frame.name)
    }
    return path
  }

  /** The innermost field the run is in. */
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

/** What Go calls a JSON value. `exact`: with the text of a number. */
export function goWord(value: unknown, exact: boolean): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'number' || typeof value === 'bigint') return exact ? `number ${value}` : 'number'
  if (value instanceof JsonNumber) return exact ? `number ${value.text}` : 'number'
  return 'object'
}

/** How values of one schema are decoded. */
export interface Step {
  /** Never gets null. After a mismatch the result means nothing, as the run will fail. */
  readonly decode: (state: DecodeState, value: unknown) => unknown
  /** A new zero value each time. */
  readonly zero: () => unknown
  /** What `omitempty` leaves out, in canonical form. Always false for types Go never leaves out. */
  readonly isEmpty: (value: unknown) => boolean
}
