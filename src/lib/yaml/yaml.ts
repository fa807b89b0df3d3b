/**
 * Parses YAML as Kubernetes does (sigs.k8s.io/yaml over go-yaml v2): JSON values, YAML 1.1 scalars, string keys only.
 * js-yaml parses the structure; this file and scalar.ts interpret it.
 */
import { type Event, EVENT_ID, getScalarValue, SCALAR_STYLE, type ScalarEvent } from 'js-yaml'

import { type JsonObject, type JsonValue, setMember } from '../json/value.ts'
import { YamlError } from './error.ts'
import { MAX_YAML_DEPTH, readYamlEvents } from './events.ts'
import type { YamlPlaces } from './places.ts'
import { formatFloat, resolveScalar, type Scalar } from './scalar.ts'

export { stringifyYaml, writeYaml } from './write.ts'

export interface YamlParseOptions {
  /** Takes what the strict mode of go-yaml complains of: `line 4: key "a" already set in map`, 100 at most. */
  readonly duplicates?: string[]
  /** How many UTF-16 units the text may have. */
  readonly maxLength?: number
  /**
   * How many characters may be read a second time, for texts that are not quite YAML. More is an error with code
   * `effort`. Default: enough for every text people write.
   */
  readonly maxRetriedLength?: number
  /** Only `true` and `false` are booleans, as YAML 1.2 and go-yaml v3 have it; `yes` and `on` are text. */
  readonly plainBooleans?: boolean
  /** Takes where everything stands. */
  readonly places?: YamlPlaces
}

/** Over any manifest. Servers bound the body before, and far lower. */
const MAX_LENGTH = 64 * 2 ** 20

const MAX_DUPLICATES = 100

/**
 * Reads the first document; the rest of the text is not looked at. An empty one is null. Of repeated keys the last
 * counts. Integers that a double cannot hold are bigints, up to uint64. Throws a YamlError.
 */
export function parseYaml(input: string | Buffer, options: YamlParseOptions = {}): JsonValue {
  const whole = decode(input, options.maxLength ?? MAX_LENGTH)
  const { text, events } = readYamlEvents(whole.slice(0, firstDocumentEnd(whole)), options.maxRetriedLength)
  const root = buildTree(text, events)
  if (!root) return null
  const { duplicates, places, plainBooleans = false } = options
  places?.setText(text)
  const reader: Reader = { text, duplicates, places, plainBooleans, active: new Set(), nodes: 0, aliased: 0 }
  return convert(reader, root, { depth: 0, inAlias: false })
}

/** Reads every document of a stream as kubectl does, without the empty ones. Lines are counted within each document. */
export function parseYamlAll(input: string | Buffer, options: YamlParseOptions = {}): JsonValue[] {
  const documents = splitYaml(decode(input, options.maxLength ?? MAX_LENGTH))
  return documents.map((document) => parseYaml(document, options)).filter((value) => value !== null)
}

/** The documents of a stream: the texts between lines with `---` and blanks only. */
export function splitYaml(text: string): string[] {
  return text.split(/^---[ \t\r]*(?:\n|$)/m).filter((document) => document.trim() !== '')
}

function decode(input: string | Buffer, maxLength: number): string {
  if (input.length > maxLength) throw new YamlError('limit', `yaml: document is larger than ${maxLength} bytes`)
  const text = typeof input === 'string' ? input : input.toString('utf8')
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** Where the first document ends: a marker line after its content or after its own start marker. */
function firstDocumentEnd(text: string): number {
  let started = false
  let from = 0
  for (const { 0: marker, index } of text.matchAll(/^(?:---|\.\.\.)(?=[ \t\r\n]|$)/gm)) {
    started ||= /^[ \t]*[^#%\s]/m.test(text.slice(from, index))
    if (started) return index
    started = marker === '---'
    from = index + marker.length
  }
  return text.length
}

interface Node {
  readonly kind: 'scalar' | 'sequence' | 'mapping' | 'alias'
  /** Where in the text the node begins; that of the node before it for an empty one. */
  readonly start: number
  readonly tag: string
  readonly anchor: string
  /** Items, or alternating keys and values. */
  readonly children: Node[]
  /** The target of an alias. */
  readonly target: Node | undefined
  readonly scalar: ScalarEvent | undefined
}

/** The content of the first document, if there is any. */
function buildTree(text: string, events: readonly Event[]): Node | undefined {
  const anchors = new Map<string, Node>()
  const open: Node[] = []
  let root: Node | undefined
  let last = 0
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) {
      if (root) return root
      continue
    }
    if (event.type === EVENT_ID.POP) {
      open.pop()
      continue
    }
    const node = createNode(text, event, { anchors, last })
    last = node.start
    open.at(-1)?.children.push(node)
    root ??= node
    if (node.anchor !== '' && node.kind !== 'alias') anchors.set(node.anchor, node)
    if (node.kind === 'sequence' || node.kind === 'mapping') open.push(node)
  }
  return root
}

type ContentEvent = Exclude<Event, { type: typeof EVENT_ID.DOCUMENT | typeof EVENT_ID.POP }>

interface TreeState {
  readonly anchors: ReadonlyMap<string, Node>
  readonly last: number
}

function createNode(text: string, event: ContentEvent, { anchors, last }: TreeState): Node {
  const anchor = event.anchorStart < 0 ? '' : text.slice(event.anchorStart, event.anchorEnd)
  const base = { anchor, tag: '', start: startOf(event, last), children: [], target: undefined, scalar: undefined }
  if (event.type === EVENT_ID.ALIAS) {
    const target = anchors.get(anchor)
    if (!target) throw new YamlError('syntax', `yaml: unknown anchor '${anchor}' referenced`)
    return { ...base, kind: 'alias', target }
  }
  const tag = event.tagStart < 0 ? '' : text.slice(event.tagStart, event.tagEnd)
  if (event.type === EVENT_ID.SCALAR) return { ...base, tag, kind: 'scalar', scalar: event }
  return { ...base, tag, kind: event.type === EVENT_ID.SEQUENCE ? 'sequence' : 'mapping' }
}

function startOf(event: ContentEvent, last: number): number {
  if (event.type === EVENT_ID.ALIAS) return event.anchorStart
  const properties = [event.anchorStart, event.tagStart].filter((start) => start >= 0)
  if (properties.length > 0) return Math.min(...properties)
  if (event.type !== EVENT_ID.SCALAR) return event.start
  // The text of a block scalar begins on the line after its indicator, which counts.
  const isBlock = event.style === SCALAR_STYLE.LITERAL_BLOCK || event.style === SCALAR_STYLE.FOLDED_BLOCK
  if (event.valueStart < 0 || event.valueStart === event.valueEnd) return last
  return isBlock ? event.valueStart - 1 : event.valueStart
}

interface Reader {
  readonly text: string
  readonly duplicates: string[] | undefined
  readonly plainBooleans: boolean
  readonly places: YamlPlaces | undefined
  /** The targets of the aliases being followed. */
  readonly active: Set<Node>
  nodes: number
  aliased: number
}

interface Position {
  readonly depth: number
  readonly inAlias: boolean
}

function convert(reader: Reader, node: Node, position: Position): JsonValue {
  count(reader, position)
  switch (node.kind) {
    case 'alias':
      return followAlias(reader, node, (target) => convert(reader, target, deeper(position, true)))
    case 'sequence': {
      const items = node.children.map((item) => convert(reader, item, deeper(position)))
      for (const [index, item] of node.children.entries()) notePlace(reader, items, index, { key: item, value: item })
      return items
    }
    case 'mapping': {
      const object: JsonObject = {}
      fillMapping(reader, node, { ...position, object, keys: new Set() })
      return object
    }
    default:
      return jsonScalar(scalarOf(reader, node))
  }
}

function deeper({ depth, inAlias }: Position, alias = inAlias): Position {
  if (depth >= MAX_YAML_DEPTH) throw new YamlError('depth', `yaml: exceeded max depth of ${MAX_YAML_DEPTH}`)
  return { depth: depth + 1, inAlias: alias }
}

/** From here on go-yaml wonders, with more and more nodes coming from fewer and fewer aliases, whether it is a bomb. */
const FREE_NODES = 400_000
const MAX_NODES = 1_000_000

function count(reader: Reader, position: Position): void {
  reader.nodes++
  if (position.inAlias) reader.aliased++
  const ratio = reader.nodes > FREE_NODES ? 0.9 : 0.99
  const suspicious = reader.aliased > 100 && reader.nodes > 1_000 && reader.aliased / reader.nodes > ratio
  if (suspicious || (position.inAlias && reader.nodes > MAX_NODES)) {
    throw new YamlError('limit', 'yaml: document contains excessive aliasing')
  }
}

function followAlias<T>(reader: Reader, alias: Node, visit: (target: Node) => T): T {
  const target = alias.target as Node
  if (reader.active.has(target)) throw new YamlError('syntax', `yaml: anchor '${alias.anchor}' value contains itself`)
  reader.active.add(target)
  const result = visit(target)
  reader.active.delete(target)
  return result
}

interface MappingPlace extends Position {
  readonly object: JsonObject
  /** The keys set so far, as YAML has them: 1 is not "1". */
  readonly keys: Set<Scalar['value']>
}

function fillMapping(reader: Reader, node: Node, position: MappingPlace): void {
  const own = new Set<string>()
  for (let index = 0; index < node.children.length; index += 2) {
    const [key, value] = node.children.slice(index, index + 2) as [Node, Node]
    if (isMerge(reader, key)) {
      merge(reader, value, position)
      continue
    }
    const name = keyOf(reader, key, position)
    const member = convert(reader, value, deeper(position))
    if (position.keys.has(name.value)) noteDuplicate(reader, name.value, value)
    position.keys.add(name.value)
    const text = keyText(name)
    if (own.has(text)) reader.places?.noteRepeat({ container: position.object, key: text, at: key.start })
    own.add(text)
    notePlace(reader, position.object, text, { key, value })
    setMember(position.object, text, member)
  }
}

function notePlace(reader: Reader, container: object, name: string | number, member: { key: Node; value: Node }): void {
  if (!reader.places) return
  const { key, value } = member
  const isPlain = value.scalar?.style === SCALAR_STYLE.PLAIN && value.scalar.valueStart >= 0
  const written = isPlain ? { written: getScalarValue(reader.text, value.scalar) } : {}
  reader.places.note(container, name, { key: key.start, value: value.start, ...written })
}

function isMerge(reader: Reader, key: Node): boolean {
  if (!key.scalar || key.scalar.style !== SCALAR_STYLE.PLAIN) return false
  return (key.tag === '' || key.tag === '!!merge') && getScalarValue(reader.text, key.scalar) === '<<'
}

/** Adds the members of one mapping or of several, the first of which then counts most. */
function merge(reader: Reader, value: Node, position: MappingPlace): void {
  const sources = value.kind === 'sequence' ? value.children.toReversed() : [value]
  for (const source of sources) {
    const mapping = source.kind === 'alias' ? source.target : source
    if (mapping?.kind !== 'mapping') {
      throw new YamlError('value', 'yaml: map merge requires map or sequence of maps as the value')
    }
    count(reader, position)
    const inner = { ...position, ...deeper(position, position.inAlias || source.kind === 'alias') }
    if (source.kind === 'alias') followAlias(reader, source, (target) => fillMapping(reader, target, inner))
    else fillMapping(reader, mapping, inner)
  }
}

function keyOf(reader: Reader, key: Node, position: Position): Scalar {
  const node = key.kind === 'alias' ? (key.target as Node) : key
  if (node.kind !== 'scalar') throw new YamlError('value', 'yaml: invalid map key: maps and lists cannot be keys')
  count(reader, position)
  return scalarOf(reader, node)
}

/** As sigs.k8s.io/yaml makes strings of keys: its floats go through 32 bits. */
function keyText({ kind, value }: Scalar): string {
  if (kind === 'float') return formatFloat(value as number, 32)
  if (kind === 'null') throw new YamlError('value', 'unsupported map key of type: %!s(<nil>), key: <nil>')
  return String(value)
}

function noteDuplicate(reader: Reader, key: Scalar['value'], value: Node): void {
  if (!reader.duplicates || reader.duplicates.length >= MAX_DUPLICATES) return
  const shown = typeof key === 'string' ? JSON.stringify(key) : String(key)
  reader.duplicates.push(`line ${lineAt(reader.text, value.start)}: key ${shown} already set in map`)
}

function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}

const TAGS: Readonly<Record<string, Scalar['kind']>> = {
  '!!str': 'str',
  '!!bool': 'bool',
  '!!int': 'int',
  '!!float': 'float',
  '!!null': 'null',
  '!!timestamp': 'timestamp',
}

function scalarOf(reader: Reader, node: Node): Scalar {
  const event = node.scalar as ScalarEvent
  const text = event.valueStart < 0 ? '' : getScalarValue(reader.text, event)
  const tag = node.tag.replace(/^!<tag:yaml\.org,2002:(.*)>$/, '!!$1')
  const isPlain = event.style === SCALAR_STYLE.PLAIN
  if (tag === '') return isPlain ? plainScalar(reader, text) : { kind: 'str', value: text }
  if (tag === '!!binary') return { kind: 'str', value: decodeBinary(text) }
  const wanted = Object.hasOwn(TAGS, tag) ? TAGS[tag] : undefined
  return wanted === undefined || wanted === 'str' ? { kind: 'str', value: text } : coerce(text, wanted, tag)
}

function plainScalar({ plainBooleans }: Reader, text: string): Scalar {
  const found = resolveScalar(text)
  const isText = plainBooleans && found.kind === 'bool' && !/^(true|false)$/i.test(text)
  return isText ? { kind: 'str', value: text } : found
}

function decodeBinary(text: string): string {
  const packed = text.replaceAll(/[\r\n]/g, '')
  if (!/^(?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?$/.test(packed)) {
    throw new YamlError('value', 'yaml: !!binary value contains invalid base64 data')
  }
  return Buffer.from(packed, 'base64').toString('utf8')
}

function coerce(text: string, wanted: Scalar['kind'], tag: string): Scalar {
  const found = resolveScalar(text)
  if (found.kind === wanted) return found
  if (wanted === 'float' && found.kind === 'int') return { kind: 'float', value: Number(found.value) }
  throw new YamlError('value', `yaml: cannot decode !!${found.kind} \`${text}\` as a ${tag}`)
}

function jsonScalar({ value }: Scalar): JsonValue {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  const shown = Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  throw new YamlError('value', `json: unsupported value: ${shown}`)
}
