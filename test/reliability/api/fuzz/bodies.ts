/**
 * Request bodies for the fuzzer: objects as JSON, YAML or protobuf, the four patch types, and corrupted forms of all.
 */
import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { Random } from '#lib/random.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { anyValue, oneIn, pick, RawNumber, STRANGE_KEYS } from './values.ts'

export interface Body {
  readonly contentType: string
  readonly bytes: Buffer
}

type Json = Record<string, unknown>

const MARK = '\u0001raw:'

/** As JSON, with the numbers that only their text can say. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) =>
    member instanceof RawNumber ? `${MARK}${member.text}` : member,
  )
  return (text ?? 'null').replaceAll(/"\\u0001raw:([^"]*)"/g, '$1')
}

export function objectBody(random: Random, gvk: GroupVersionKind, object: Json): Body {
  switch (random.int(8)) {
    case 0:
    case 1:
      return { contentType: 'application/yaml', bytes: Buffer.from(yamlText(random, object)) }
    case 2:
    case 3: {
      const bytes = protobufBytes(gvk, object)
      if (bytes !== undefined) return { contentType: 'application/vnd.kubernetes.protobuf', bytes }
      return { contentType: 'application/json', bytes: Buffer.from(jsonText(object)) }
    }
    default:
      return { contentType: 'application/json', bytes: Buffer.from(jsonText(object)) }
  }
}

function yamlText(random: Random, object: Json): string {
  const plain = JSON.parse(jsonText(object).replaceAll(/:\d{300,}/g, ':1')) as unknown
  if (oneIn(random, 6)) return `a: &x [1, 2]\nb: *x\n<<: {c: d}\n${jsonText(plain)}`
  const text = oneIn(random, 3) ? jsonText(plain) : safeYaml(plain)
  return oneIn(random, 8) ? `---\n# text\n${text}\n---\nb: c\n` : text
}

function safeYaml(value: unknown): string {
  try {
    return stringifyYaml(value)
  } catch {
    return jsonText(value)
  }
}

/** Undefined when the object is so wrong that it has no such form. */
function protobufBytes(gvk: GroupVersionKind, object: Json): Buffer | undefined {
  const schema = schemaFor(gvk)
  if (schema === undefined) return undefined
  try {
    const plain = JSON.parse(jsonText(object)) as unknown
    const canonical = decodeValue(schema, plain, 'Ignore', { offences: [] })
    return encodeProtobuf(schema, gvk, canonical as JsonObject)
  } catch {
    return undefined
  }
}

/** A patch of one of the four kinds for an object like `object`. */
export function patchBody(random: Random, object: Json): Body {
  switch (random.int(4)) {
    case 0:
      return { contentType: 'application/json-patch+json', bytes: Buffer.from(jsonText(jsonPatch(random, object))) }
    case 1:
      return { contentType: 'application/merge-patch+json', bytes: Buffer.from(jsonText(partOf(random, object))) }
    case 2:
      return {
        contentType: 'application/strategic-merge-patch+json',
        bytes: Buffer.from(jsonText(withDirectives(random, partOf(random, object)))),
      }
    default: {
      const text = oneIn(random, 2) ? jsonText(object) : yamlText(random, object)
      return { contentType: 'application/apply-patch+yaml', bytes: Buffer.from(text) }
    }
  }
}

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test', 'zork'] as const

function jsonPatch(random: Random, object: Json): unknown {
  if (oneIn(random, 20)) return anyValue(random)
  return Array.from({ length: oneIn(random, 60) ? 200 : 1 + random.int(4) }, () => {
    const operation: Json = { op: pick(random, OPERATIONS), path: pointerIn(random, object) }
    if (!oneIn(random, 4)) operation['value'] = anyValue(random)
    if (oneIn(random, 2)) operation['from'] = pointerIn(random, object)
    return operation
  })
}

function pointerIn(random: Random, object: Json): string {
  if (oneIn(random, 10)) return pick(random, ['', '/', '//', '/~2', '/metadata/labels/-', '/-1', 'a', '/__proto__/x'])
  let at: unknown = object
  let pointer = ''
  while (typeof at === 'object' && at !== null && !(at instanceof RawNumber)) {
    const keys = [...Object.keys(at), ...(Array.isArray(at) ? ['-', '99', '-1', '01'] : ['zork', '__proto__'])]
    const key = pick(random, keys)
    pointer += `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!Object.hasOwn(at, key) || oneIn(random, 4)) break
    at = (at as Json)[key]
  }
  return pointer
}

/** Some members of the object. */
function partOf(random: Random, object: Json): unknown {
  if (oneIn(random, 20)) return anyValue(random)
  return Object.fromEntries(Object.entries(object).filter(() => !oneIn(random, 3)))
}

function withDirectives(random: Random, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof RawNumber) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => withDirectives(random, item))
    return oneIn(random, 6)
      ? [...items, { $patch: pick(random, ['replace', 'delete', 'merge', 'zork', 1, null]) }]
      : items
  }
  const entries = Object.entries(value).map(([key, member]) => [key, withDirectives(random, member)] as const)
  if (oneIn(random, 6)) {
    const key = pick(random, ['$patch', '$retainKeys', '$setElementOrder/containers', '$deleteFromPrimitiveList/args'])
    return Object.fromEntries([
      ...entries,
      [key, pick<unknown>(random, ['replace', 'delete', ['a'], [{ name: 'a' }], null, 1])],
    ])
  }
  return Object.fromEntries(entries)
}

/** Corrupts bytes as a faulty connection or encoder would. */
export function broken(random: Random, bytes: Buffer): Buffer {
  const at = random.int(bytes.length + 1)
  switch (random.int(8)) {
    case 0:
      return bytes.subarray(0, at)
    case 1:
      return Buffer.concat([bytes, pick(random, [Buffer.from('}'), Buffer.from(' garbage'), Buffer.from('\0'), bytes])])
    case 2: {
      const copy = Buffer.from(bytes)
      for (let flips = 1 + random.int(4); flips > 0 && copy.length > 0; flips--)
        copy[random.int(copy.length)] = random.int(256)
      return copy
    }
    case 3:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.int(16)), bytes.subarray(at)])
    case 4:
      return Buffer.concat([Buffer.from('\ufeff'), bytes])
    case 5:
      return Buffer.from(bytes.toString('latin1').replace('"', `"${pick(random, STRANGE_KEYS)}":1,"`), 'latin1')
    case 6:
      return Buffer.from(bytes.toString('utf16le'), 'utf16le')
    default:
      return random.bytes(random.int(300))
  }
}
