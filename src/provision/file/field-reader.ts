/** Reads a YAML value by its table: converts valid values, adds defaults and reports all errors with lines. */
import { isDeepStrictEqual } from 'node:util'

import { closest } from '#lib/nearest.ts'
import type { YamlPlaces, YamlSpot } from '#lib/yaml/places.ts'

import { type Field, keysByName } from './field.ts'

/** A fault or notice about a file. */
export interface Fault {
  /** Both counted from 1. */
  readonly line: number
  readonly column: number
  /** Such as `nodes[0].address`; empty for the whole file. */
  readonly path: string
  readonly text: string
}

const PENDING = 'Not supported yet'

/** One reading of one file. Rules may add faults by path afterwards. */
export class Reading {
  readonly faults: Fault[] = []
  readonly notices: Fault[] = []
  readonly #positions: YamlPlaces
  readonly #root: Readonly<Record<string, Field>>
  readonly #spots = new Map<string, YamlSpot>([['', { line: 1, column: 1 }]])
  readonly #paths = new Map<object, string>()
  #elsewhere: Map<string, string[]> | undefined

  constructor(root: Readonly<Record<string, Field>>, positions: YamlPlaces) {
    this.#root = root
    this.#positions = positions
  }

  /** Reads the whole file. */
  readFile(value: unknown): unknown {
    if (value === null) {
      this.fault('', 'The file is empty; "hyperkube build config" creates one')
      return undefined
    }
    const read = this.#readObject({ kind: 'object', about: '', members: this.#root }, value, '')
    for (const { container, key, at } of this.#positions.repeats) {
      const path = join(this.#paths.get(container) ?? '', key)
      this.faults.push({ ...this.#positions.spot(at), path, text: `"${key}" is given twice; keep one of them` })
    }
    return read
  }

  fault(path: string, text: string): void {
    this.faults.push({ ...this.#spotOf(path), path, text })
  }

  notice(path: string, text: string): void {
    this.notices.push({ ...this.#spotOf(path), path, text })
  }

  /** True if there is no fault at, inside or around any of these paths. */
  isSound(paths: readonly string[]): boolean {
    return !this.faults.some(({ path }) => paths.some((looked) => isWithin(path, looked) || isWithin(looked, path)))
  }

  /** True if the file has this key, even with an empty value. */
  isGiven(path: string): boolean {
    return this.#spots.has(path)
  }

  /** For a path that is not in the file: the position of its nearest ancestor. */
  #spotOf(path: string): YamlSpot {
    for (let at = path; ; at = at.slice(0, Math.max(at.lastIndexOf('.'), at.lastIndexOf('['), 0))) {
      const spot = this.#spots.get(at)
      if (spot) return spot
    }
  }

  #readMember(field: Field, holder: { container: object; key: string | number; path: string }): unknown {
    const { container, key, path } = holder
    const position = this.#positions.member(container, key)
    const raw = (container as Record<string | number, unknown>)[key]
    if (position) this.#spots.set(path, this.#positions.spot(isNested(raw) ? position.key : position.value))
    return this.#read(field, asWritten(field, raw, position?.written), path)
  }

  #read(field: Field, raw: unknown, path: string): unknown {
    if (isUnset(field, raw)) return this.#absent(field, path)
    const before = this.faults.length
    const value = this.#readKind(field, raw, path)
    // An invalid value is read as missing, so that the rest can be validated.
    if (this.faults.length > before) return value ?? this.#absentQuietly(field, path)
    const complaint = checkField(field, value)
    if (complaint !== undefined) {
      this.fault(path, complaint)
      return this.#absentQuietly(field, path)
    }
    const pending = field.pending === true ? PENDING : field.pending
    const note = pending && !isDeepStrictEqual(value, field.default) ? pending : field.notice?.(value)
    if (note !== undefined) this.notice(path, note)
    return field.normalize?.(value) ?? value
  }

  #absent(field: Field, path: string): unknown {
    if (field.required) return undefined
    if (field.default !== undefined) return field.default
    if (field.kind === 'object' && !field.optional) return this.#readObject(field, {}, path)
    return undefined
  }

  /** No further faults are needed here. */
  #absentQuietly(field: Field, path: string): unknown {
    const faultCount = this.faults.length
    const value = this.#absent(field, path)
    this.faults.length = faultCount
    return value
  }

  #readKind(field: Field, raw: unknown, path: string): unknown {
    switch (field.kind) {
      case 'object':
        return this.#readObject(field, raw, path)
      case 'list':
        return this.#readList(field, raw, path)
      case 'map':
        return this.#readMap(field, raw, path)
      case 'document':
        if (isMapping(raw)) return raw
        this.fault(path, `Must be a mapping, not ${describe(raw)}`)
        return undefined
      default:
        return this.#readScalar(field, raw, path)
    }
  }

  #readScalar(field: Field, raw: unknown, path: string): unknown {
    const value = READERS[field.kind as keyof typeof READERS](raw)
    if (value === undefined) this.fault(path, `Must be ${NOUNS[field.kind]}, not ${describe(raw)}`)
    return value
  }

  #readObject(field: Field, raw: unknown, path: string): unknown {
    const members = field.members ?? {}
    if (!isMapping(raw)) {
      const known = Object.keys(members).slice(0, 3).join(', ')
      this.fault(path, `Must be a mapping with keys such as ${known}, not ${describe(raw)}`)
      return undefined
    }
    this.#paths.set(raw, path)
    const given = this.#nameKeys(field, raw, path)
    const out: Record<string, unknown> = {}
    for (const [name, member] of Object.entries(members)) {
      const key = given.get(name)
      const inner = join(path, name)
      const value =
        key === undefined ? this.#absent(member, inner) : this.#readMember(member, { container: raw, key, path: inner })
      if (value !== undefined) out[name] = value
      else if (member.required && !this.faults.some((fault) => fault.path === inner)) {
        this.faults.push({ ...this.#spotOf(path), path: inner, text: `"${name}" is missing: ${member.about}` })
      }
    }
    return out
  }

  /** Maps the file's keys to members; unknown keys are faults. */
  #nameKeys(field: Field, raw: Readonly<Record<string, unknown>>, path: string): Map<string, string> {
    const members = field.members ?? {}
    const spelled = new Map<string, string>()
    for (const [name, { aliases = [] }] of Object.entries(members)) {
      for (const spelling of [name, ...aliases]) spelled.set(field.anyCase ? spelling.toLowerCase() : spelling, name)
    }
    const given = new Map<string, string>()
    for (const key of Object.keys(raw)) {
      const name = spelled.get(field.anyCase ? key.toLowerCase() : key)
      const before = name === undefined ? undefined : given.get(name)
      if (name === undefined) this.#unknown(raw, key, { path, known: [...spelled.keys()] })
      else if (before === undefined) given.set(name, key)
      else this.#faultAtKey(raw, key, join(path, key), `"${key}" and "${before}" are the same key; keep one of them`)
    }
    return given
  }

  #unknown(container: object, key: string, { path, known }: { path: string; known: readonly string[] }): void {
    this.#elsewhere ??= keysByName(this.#root)
    const near = closest(key, known)
    const positions = this.#elsewhere.get(key)
    const hint =
      near !== undefined
        ? `did you mean "${near}"?`
        : positions !== undefined
          ? `it belongs ${positions[0] === '' ? 'at the top of the file' : `under "${positions[0]}"`}`
          : `known here are ${known.slice(0, MAX_LISTED).join(', ')}${known.length > MAX_LISTED ? ', …' : ''}`
    this.#faultAtKey(container, key, join(path, key), `Unknown key "${key}"; ${hint}`)
  }

  #faultAtKey(container: object, key: string | number, path: string, complaint: string): void {
    const position = this.#positions.member(container, key)
    const spot = position ? this.#positions.spot(position.key) : this.#spotOf(path)
    this.faults.push({ ...spot, path, text: complaint })
  }

  #readList(field: Field, raw: unknown, path: string): unknown {
    if (!Array.isArray(raw)) {
      const name = path.slice(path.lastIndexOf('.') + 1)
      const hint = isNested(raw) ? 'begin each item with "- "' : `write "${name}: [${String(raw)}]"`
      this.fault(path, `Must be a list; ${hint}`)
      return undefined
    }
    const of = field.of as Field
    const items = raw.map((item: unknown, index) => {
      const inner = `${path}[${index}]`
      if (item !== null) return this.#readMember(of, { container: raw, key: index, path: inner })
      this.#faultAtKey(raw, index, inner, 'The item is empty; remove it or fill it in')
      return undefined
    })
    return items.filter((item) => item !== undefined)
  }

  #readMap(field: Field, raw: unknown, path: string): unknown {
    if (!isMapping(raw)) {
      this.fault(path, `Must be a mapping of names to values, not ${describe(raw)}`)
      return undefined
    }
    this.#paths.set(raw, path)
    const of = field.of as Field
    const entries = Object.keys(raw).map((key) => {
      const value = this.#readMember(of, { container: raw, key, path: join(path, key) })
      return [key, value ?? (of.kind === 'text' ? '' : value)]
    })
    return Object.fromEntries(entries) as unknown
  }
}

/** The number of suggested keys if none is similar. */
const MAX_LISTED = 12

const NOUNS: Readonly<Record<string, string>> = {
  text: 'text',
  whole: 'a whole number',
  number: 'a number',
  flag: 'true or false',
  amount: 'a whole number or a share such as "10%"',
}

/** Converts values of each kind; undefined if invalid. Numbers may be quoted. */
const READERS = {
  text: (raw: unknown) => (isNested(raw) ? undefined : String(raw)),
  whole: (raw: unknown) => readNumber(raw, /^-?\d{1,15}$/),
  number: (raw: unknown) => readNumber(raw, /^-?\d{1,15}(\.\d+)?$/),
  flag: (raw: unknown) => (typeof raw === 'boolean' ? raw : FLAGS.get(String(raw))),
  amount: (raw: unknown) => {
    const share = /^\d{1,3}%$/.test(String(raw)) ? String(raw) : undefined
    return share ?? readNumber(raw, /^\d{1,9}$/)
  },
} as const

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

function readNumber(raw: unknown, pattern: RegExp): number | undefined {
  return !isNested(raw) && pattern.test(String(raw)) ? Number(raw) : undefined
}

function checkField(field: Field, value: unknown): string | undefined {
  if (field.oneOf && !field.oneOf.includes(value as string)) {
    const near = closest(String(value), field.oneOf)
    const all = `must be one of ${field.oneOf.join(', ')}`
    return `"${String(value)}" ${all}${near === undefined ? '' : `; did you mean "${near}"?`}`
  }
  const { min, max } = field
  if (typeof value === 'number' && ((min !== undefined && value < min) || (max !== undefined && value > max))) {
    if (max === undefined) return `${value} is too small; the least is ${min}`
    return `${value} is not between ${min ?? '-∞'} and ${max}`
  }
  return field.check?.(value)
}

/** Text keeps its source form, even if YAML would parse it as a number or boolean. */
function asWritten(field: Field, raw: unknown, written: string | undefined): unknown {
  const isScalar = typeof raw === 'number' || typeof raw === 'bigint' || typeof raw === 'boolean'
  return field.kind === 'text' && isScalar ? (written ?? String(raw)) : raw
}

function isUnset(field: Field, raw: unknown): boolean {
  if (field.optional && isMapping(raw)) return isBlank(raw)
  return raw === undefined || raw === null || raw === '' || (raw === 0 && field.zeroIsUnset === true)
}

/** The form in which tools write an unset object. */
function isBlank(raw: unknown): boolean {
  return isNested(raw) ? Object.values(raw as object).every(isBlank) : !raw
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || (path.startsWith(outer) && /^[.[]/.test(path.slice(outer.length)))
}

function isNested(raw: unknown): boolean {
  return typeof raw === 'object' && raw !== null
}

function isMapping(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return isNested(raw) && !Array.isArray(raw)
}

function describe(raw: unknown): string {
  if (Array.isArray(raw)) return 'a list'
  if (isNested(raw)) return 'a mapping'
  return JSON.stringify(typeof raw === 'bigint' ? String(raw) : raw)
}

export function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
