/**
 * The type of refusal cases: for each kind a valid object, and changes with which the server must refuse it. Cases are
 * written by hand; `record.ts` writes the responses of kube-apiserver v1.36.4 to `<group>/answers.json`.
 */
import type { Kind } from '#apis/kinds.ts'

export type Json = Record<string, unknown>

/** Members by JSON pointer (`/metadata/labels/a~1b`, `/spec/ports/0/port`, `/spec/ports/-`); `undefined` removes one. */
export type Changes = Readonly<Record<string, unknown>>

export interface Trial {
  /** The fault (or apparent fault) as a sentence, unique within its kind. */
  readonly why: string
  /**
   * `create` by default. `update` puts a changed copy of the stored object, `update status` puts it to a subresource,
   * `create binding` posts `body` to one of the stored object.
   */
  readonly on?: 'create' | 'update' | `update ${string}` | `create ${string}`
  /** Changes of the object that is stored first. */
  readonly stored?: Changes
  /** Updates of the stored object, in order, for fields that a creation cannot set, such as the status. */
  readonly since?: readonly Since[]
  /** The faults: changes of the valid object, or of the stored one in an update. */
  readonly set?: Changes
  /** Sent instead of a changed object; text is sent as it is. */
  readonly body?: unknown
}

export interface Refusal extends Trial {
  /** Our message if upstream prints Go structs or source paths. */
  readonly ours?: Ours
}

/** Other words in the messages, or other parts of the answer. */
export interface Ours extends Partial<Refused> {
  readonly because: string
  readonly instead?: readonly [upstream: string | RegExp, ours: string]
}

export interface Since {
  readonly on: 'update' | `update ${string}`
  readonly set: Changes
}

export interface Given {
  readonly kind: Kind
  readonly object: Json
}

/** For answers in which upstream prints one of its Go structs: what we print there, the object as its user writes it. */
export function printing(text: string): Ours {
  return { because: 'upstream prints a Go struct', instead: [/\[?\{"(?:[A-Z]|labels").*\}\]?/s, text] }
}

/** For answers in which upstream prints the difference of two Go structs, line by line. */
export function differing(...lines: readonly string[]): Ours {
  const ours = lines.map((line) => `\n  ${line}`).join('')
  return { because: 'upstream prints the difference of two Go structs', instead: [/\n@@.*?\n(?=,|]|$)/s, ours] }
}

export interface KindCases {
  readonly kind: Kind
  /** Objects that must be there before. */
  readonly given?: readonly Given[]
  /** Accepted as it is. In the namespace `default` unless it names another. */
  readonly valid: Json
  readonly refused: readonly Refusal[]
  /** Apparent faults that upstream accepts, because it repairs, drops or ignores them. */
  readonly taken?: readonly Trial[]
}

interface Cause {
  readonly reason: string
  readonly message: string
  readonly field: string
}

/** The compared parts of a Status. */
export interface Refused {
  readonly code: number
  readonly reason?: string
  readonly message: string
  readonly details?: { readonly name?: string; readonly kind?: string; readonly causes?: readonly Cause[] }
}

/** The answers of one group: by version and kind, by the sentence of the case. */
export type Answers = Record<string, Record<string, Refused>>

/** The folder of a group: `core`, `apps`, `rbac`. */
export function groupFolder({ group }: Kind): string {
  return group === '' ? 'core' : (group.split('.')[0] ?? group)
}

export function answersKey({ version, kind }: Kind): string {
  return `${version}/${kind}`
}

/** A copy of `object` with the changes made; objects on the way to a member are made when they are missing. */
export function withChanges(object: Json, changes: Changes = {}): Json {
  const copy = structuredClone(object)
  for (const [pointer, value] of Object.entries(changes)) change(copy, pointer, value)
  return copy
}

function change(object: Json, pointer: string, value: unknown): void {
  const names = pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = names.pop()
  if (last === undefined) throw new Error(`"${pointer}" is no JSON pointer: begin it with "/"`)
  const holder = names.reduce<unknown>((at, name) => ((at as Json)[name] ??= {}), object) as Json
  if (Array.isArray(holder) && last === '-') holder.push(value)
  else if (Array.isArray(holder) && value === undefined) holder.splice(Number(last), 1)
  else if (value === undefined) delete holder[last]
  else holder[last] = value
}
