/**
 * JSON Patch (RFC 6902) as evanphx/json-patch v4 has it, which Kubernetes uses: negative indexes count from the end, a
 * null member is no different from none, and so `replace` may add a member and `copy` of a missing one gives null.
 * The document and the patch are left alone: containers are copied on the way to a change, once per patch.
 */
import { isJsonObject, JsonNumber, type JsonObject, type JsonValue, setMember } from './json-value.ts'
import { stringifyJson } from './json.ts'

/**
 * `malformed`: not a patch. `path`: an operation's place is not there. `test`: a test failed. `operations`, `copies`:
 * over the limits.
 */
export type JsonPatchErrorCode = 'malformed' | 'path' | 'test' | 'operations' | 'copies'

/** The message is evanphx/json-patch's. */
export class JsonPatchError extends Error {
  readonly code: JsonPatchErrorCode

  constructor(code: JsonPatchErrorCode, message: string) {
    super(message)
    this.name = 'JsonPatchError'
    this.code = code
  }
}

export interface JsonPatchLimits {
  readonly maxOperations: number
  /** How many bytes of JSON the `copy` operations of a patch may add together. */
  readonly maxCopyBytes: number
}

/** Kubernetes' own. */
export const DEFAULT_PATCH_LIMITS: JsonPatchLimits = { maxOperations: 10_000, maxCopyBytes: 3 * 2 ** 20 }

type Container = JsonObject | JsonValue[]

interface Patching {
  root: JsonValue
  readonly limits: JsonPatchLimits
  /** Containers made here, which nobody else holds: they may be changed in place. */
  owned: Set<Container>
  copiedBytes: number
}

/** Throws a JsonPatchError. */
export function applyJsonPatch(
  document: JsonValue,
  patch: JsonValue,
  limits: JsonPatchLimits = DEFAULT_PATCH_LIMITS,
): JsonValue {
  if (!Array.isArray(patch))
    throw malformed(`json: cannot unmarshal ${kindOf(patch)} into Go value of type jsonpatch.Patch`)
  if (patch.length > limits.maxOperations) {
    const message = `The allowed maximum operations in a JSON patch is ${limits.maxOperations}, got ${patch.length}`
    throw new JsonPatchError('operations', message)
  }
  const patching: Patching = { root: document, limits, owned: new Set(), copiedBytes: 0 }
  for (const operation of patch) {
    if (!isJsonObject(operation)) {
      throw malformed(`json: cannot unmarshal ${kindOf(operation)} into Go value of type jsonpatch.Operation`)
    }
    const kind = typeof operation.op === 'string' ? operation.op : 'unknown'
    const apply = Object.hasOwn(OPERATIONS, kind) ? OPERATIONS[kind] : undefined
    if (!apply) throw malformed(`Unexpected kind: ${kind}`)
    apply(patching, operation)
  }
  return patching.root
}

function malformed(message: string): JsonPatchError {
  return new JsonPatchError('malformed', message)
}

function missing(message: string): JsonPatchError {
  return new JsonPatchError('path', `${message}: missing value`)
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (value instanceof JsonNumber || typeof value === 'bigint') return 'number'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

const OPERATIONS: Readonly<Record<string, (patching: Patching, operation: JsonObject) => void>> = {
  add(patching, operation) {
    const path = pointer(operation, 'add', 'path')
    const place = find(patching, path)
    if (!place) throw missing(`add operation does not apply: doc is missing path: "${path}"`)
    insert(place, valueOf(operation), `error in add for path: '${path}'`)
  },

  remove(patching, operation) {
    const path = pointer(operation, 'remove', 'path')
    const place = find(patching, path)
    if (!place) throw missing(`remove operation does not apply: doc is missing path: "${path}"`)
    take(place, `error in remove for path: '${path}'`)
  },

  replace(patching, operation) {
    const path = pointer(operation, 'replace', 'path')
    const value = valueOf(operation)
    if (path === '') return replaceRoot(patching, value)
    const place = find(patching, path)
    if (!place) throw missing(`replace operation does not apply: doc is missing path: ${path}`)
    const { container, key } = place
    if (!Array.isArray(container)) return setMember(container, key, value)
    const index = indexIn(container, key)
    if (index === undefined) throw missing(`replace operation does not apply: doc is missing key: ${path}`)
    container[index] = value
  },

  move(patching, operation) {
    const from = pointer(operation, 'move', 'from')
    const source = find(patching, from)
    if (!source) throw missing(`move operation does not apply: doc is missing from path: ${from}`)
    const value = take(source, `error in move for path: '${source.key}'`)
    const path = pointer(operation, 'move', 'path')
    const place = find(patching, path)
    if (!place) throw missing(`move operation does not apply: doc is missing destination path: ${path}`)
    insert(place, value, `error in move for path: '${path}'`)
  },

  copy(patching, operation) {
    const from = pointer(operation, 'copy', 'from')
    const source = find(patching, from)
    if (!source) throw missing(`copy operation does not apply: doc is missing from path: ${from}`)
    const value = read(source, `error in copy for from: '${from}'`)
    const path = pointer(operation, 'copy', 'path')
    chargeCopy(patching, value)
    // The value is in two places now: neither may be changed in place any more.
    patching.owned = new Set()
    const place = find(patching, path)
    if (!place) throw missing(`copy operation does not apply: doc is missing destination path: ${path}`)
    insert(place, value, 'error while adding value during copy')
  },

  test(patching, operation) {
    const path = pointer(operation, 'test', 'path')
    const place = path === '' ? undefined : find(patching, path)
    if (path !== '' && !place) throw missing(`test operation does not apply: is missing path: ${path}`)
    const actual = place ? read(place, `error in test for path: '${path}'`) : patching.root
    if (jsonEqual(actual, valueOf(operation))) return
    throw new JsonPatchError('test', `testing value ${path} failed: test failed`)
  },
}

function pointer(operation: JsonObject, kind: string, field: 'path' | 'from'): string {
  const value = operation[field]
  if (typeof value === 'string') return value
  throw missing(`${kind} operation failed to decode ${field}`)
}

/** An operation without a value has the value null. */
function valueOf(operation: JsonObject): JsonValue {
  return Object.hasOwn(operation, 'value') ? (operation.value ?? null) : null
}

function replaceRoot(patching: Patching, value: JsonValue): void {
  if (!isContainer(value)) throw new JsonPatchError('path', 'replace operation value must be object or array')
  patching.root = value
}

function isContainer(value: JsonValue | undefined): value is Container {
  return Array.isArray(value) || isJsonObject(value)
}

function chargeCopy(patching: Patching, value: JsonValue): void {
  // A missing value and null alike cost nothing in the original.
  if (value !== null) patching.copiedBytes += Buffer.byteLength(stringifyJson(value))
  const limit = patching.limits.maxCopyBytes
  if (patching.copiedBytes <= limit) return
  const message = `Unable to complete the copy, the accumulated size increase of copy is ${patching.copiedBytes}, exceeding the limit ${limit}`
  throw new JsonPatchError('copies', message)
}

/** A member or element that may be there or not, of a container that is and may be changed. */
interface Place {
  readonly container: Container
  readonly key: string
}

/** Undefined when there is no such container. */
function find(patching: Patching, path: string): Place | undefined {
  const steps = path.split('/').map((step) => step.replaceAll(/~[01]/g, (code) => (code === '~1' ? '/' : '~')))
  const key = steps.pop() as string
  // Like the original, whatever stands before the first slash is not looked at.
  if (steps.length === 0 || !isContainer(patching.root)) return undefined
  let container = (patching.root = own(patching, patching.root))
  for (const step of steps.slice(1)) {
    const inner = getOwn(container, step)
    if (!isContainer(inner)) return undefined
    const copy = own(patching, inner)
    if (copy !== inner) put(container, step, copy)
    container = copy
  }
  return { container, key }
}

function own(patching: Patching, container: Container): Container {
  if (patching.owned.has(container)) return container
  const copy = Array.isArray(container) ? [...container] : copyObject(container)
  patching.owned.add(copy)
  return copy
}

/** Spreading keeps an own `__proto__` as what it is. */
function copyObject(object: JsonObject): JsonObject {
  return { ...object }
}

function getOwn(container: Container, key: string): JsonValue | undefined {
  if (!Array.isArray(container)) return Object.hasOwn(container, key) ? container[key] : undefined
  const index = indexIn(container, key)
  return index === undefined ? undefined : container[index]
}

function put(container: Container, key: string, value: JsonValue): void {
  if (Array.isArray(container)) container[indexIn(container, key) as number] = value
  else setMember(container, key, value)
}

/** The index an element is at, counted from the end when negative. */
function indexIn(array: readonly JsonValue[], key: string, length: number = array.length): number | undefined {
  if (!/^[-+]?\d{1,18}$/.test(key)) return undefined
  const index = Number(key)
  const actual = index < 0 ? index + length : index
  return actual >= 0 && actual < length ? actual + 0 : undefined
}

function isIndex(key: string): boolean {
  return /^[-+]?\d+$/.test(key)
}

function badIndex(context: string, key: string): JsonPatchError {
  const reason = isIndex(key)
    ? `Unable to access invalid index: ${Number(key)}: invalid index referenced`
    : `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`
  return new JsonPatchError('path', `${context}: ${reason}`)
}

function read({ container, key }: Place, context: string): JsonValue {
  if (!Array.isArray(container)) return getOwn(container, key) ?? null
  const index = indexIn(container, key)
  if (index === undefined) throw badIndex(context, key)
  return container[index] as JsonValue
}

function insert({ container, key }: Place, value: JsonValue, context: string): void {
  if (!Array.isArray(container)) return setMember(container, key, value)
  if (key === '-') return void container.push(value)
  const index = indexIn(container, key, container.length + 1)
  if (index === undefined)
    throw badIndex(`${context}${isIndex(key) ? '' : `: value was not a proper array index: '${key}'`}`, key)
  container.splice(index, 0, value)
}

function take({ container, key }: Place, context: string): JsonValue {
  if (Array.isArray(container)) {
    const index = indexIn(container, key)
    if (index === undefined) throw badIndex(context, key)
    return container.splice(index, 1)[0] as JsonValue
  }
  if (!Object.hasOwn(container, key)) throw missing(`${context}: Unable to remove nonexistent key: ${key}`)
  const value = container[key] as JsonValue
  delete container[key]
  return value
}

/** Deeper values are not compared: the machine's stack ends somewhere. */
const MAX_DEPTH = 2_000

/** Whether two values are the same, whatever the order of their members. Kept numbers are the same as their value. */
export function jsonEqual(left: JsonValue, right: JsonValue, depth = 0): boolean {
  if (left === right) return true
  if (depth > MAX_DEPTH) throw new JsonPatchError('malformed', 'Value nests too deep to be compared')
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false
    return left.every((item, index) => jsonEqual(item, right[index] as JsonValue, depth + 1))
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return sameNumber(left, right)
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => {
    return Object.hasOwn(right, key) && jsonEqual(left[key] as JsonValue, right[key] as JsonValue, depth + 1)
  })
}

function sameNumber(left: JsonValue, right: JsonValue): boolean {
  if (!(left instanceof JsonNumber) && !(right instanceof JsonNumber)) return false
  return typeof left !== 'string' && typeof right !== 'string' && Number(left) === Number(right)
}
