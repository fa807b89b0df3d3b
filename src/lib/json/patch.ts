/**
 * Applies JSON Patches (RFC 6902) as evanphx/json-patch v4 does, which Kubernetes uses. Negative indexes count from the
 * end. Null counts as absent, so `replace` may add a member and `copy` of a missing member gives null.
 *
 * The document and the patch stay unchanged. Containers on the way to a change are copied once per patch. So the cost
 * grows with the sum of the two sizes, not with their product.
 */
import { ChunkedList } from '../collections/chunked-list.ts'
import { runAtOnce, shouldYield, type Steps } from '../time-slicing.ts'
import { stringifyJson } from './json.ts'
import { isJsonObject, JsonNumber, type JsonObject, type JsonValue, setMember } from './value.ts'

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
  /** Containers made here, which are in one place of the result only: they may be changed in place. */
  readonly owned: Set<Container>
  /** The elements of long arrays that operations insert into and remove from; the arrays themselves are out of date. */
  readonly lists: Map<JsonValue[], ChunkedList<JsonValue>>
  copiedBytes: number
}

/** Arrays from this length on become lists in chunks when an element is inserted or removed. */
const LONG_ARRAY = 4096

/** Throws a JsonPatchError. */
export function applyJsonPatch(document: JsonValue, patch: JsonValue, limits?: JsonPatchLimits): JsonValue {
  return runAtOnce(applyJsonPatchInSteps(document, patch, limits))
}

/** The same in steps, which may pause between operations. */
export function* applyJsonPatchInSteps(
  document: JsonValue,
  patch: JsonValue,
  limits: JsonPatchLimits = DEFAULT_PATCH_LIMITS,
): Steps<JsonValue> {
  if (!Array.isArray(patch))
    throw malformed(`json: cannot unmarshal ${kindOf(patch)} into Go value of type jsonpatch.Patch`)
  if (patch.length > limits.maxOperations) {
    const message = `The allowed maximum operations in a JSON patch is ${limits.maxOperations}, got ${patch.length}`
    throw new JsonPatchError('operations', message)
  }
  const patching: Patching = { root: document, limits, owned: new Set(), lists: new Map(), copiedBytes: 0 }
  for (const operation of patch) {
    if (!isJsonObject(operation)) {
      throw malformed(`json: cannot unmarshal ${kindOf(operation)} into Go value of type jsonpatch.Operation`)
    }
    const kind = typeof operation.op === 'string' ? operation.op : 'unknown'
    const apply = Object.hasOwn(OPERATIONS, kind) ? OPERATIONS[kind] : undefined
    if (!apply) throw malformed(`Unexpected kind: ${kind}`)
    apply(patching, operation)
    if (shouldYield()) yield
  }
  for (const array of patching.lists.keys()) writeBack(patching, array)
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
    insert(patching, place, valueOf(operation), `error in add for path: '${path}'`)
  },

  remove(patching, operation) {
    const path = pointer(operation, 'remove', 'path')
    const place = find(patching, path)
    if (!place) throw missing(`remove operation does not apply: doc is missing path: "${path}"`)
    take(patching, place, `error in remove for path: '${path}'`)
  },

  replace(patching, operation) {
    const path = pointer(operation, 'replace', 'path')
    const value = valueOf(operation)
    if (path === '') return replaceRoot(patching, value)
    const place = find(patching, path)
    if (!place) throw missing(`replace operation does not apply: doc is missing path: ${path}`)
    if (!put(patching, place, value)) {
      throw missing(`replace operation does not apply: doc is missing key: ${path}`)
    }
  },

  move(patching, operation) {
    const from = pointer(operation, 'move', 'from')
    const source = find(patching, from)
    if (!source) throw missing(`move operation does not apply: doc is missing from path: ${from}`)
    const value = take(patching, source, `error in move for path: '${source.key}'`)
    const path = pointer(operation, 'move', 'path')
    const place = find(patching, path)
    if (!place) throw missing(`move operation does not apply: doc is missing destination path: ${path}`)
    insert(patching, place, value, `error in move for path: '${path}'`)
  },

  copy(patching, operation) {
    const from = pointer(operation, 'copy', 'from')
    const source = find(patching, from)
    if (!source) throw missing(`copy operation does not apply: doc is missing from path: ${from}`)
    const value = upToDate(patching, read(patching, source, `error in copy for from: '${from}'`))
    const path = pointer(operation, 'copy', 'path')
    chargeCopy(patching, value)
    const place = find(patching, path)
    if (!place) throw missing(`copy operation does not apply: doc is missing destination path: ${path}`)
    insert(patching, place, copyValue(patching, value), 'error while adding value during copy')
  },

  test(patching, operation) {
    const path = pointer(operation, 'test', 'path')
    const place = path === '' ? undefined : find(patching, path)
    if (path !== '' && !place) throw missing(`test operation does not apply: is missing path: ${path}`)
    const actual = place ? read(patching, place, `error in test for path: '${path}'`) : patching.root
    if (jsonEqual(upToDate(patching, actual), valueOf(operation))) return
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
interface Target {
  readonly container: Container
  readonly key: string
}

/** Undefined when there is no such container. */
function find(patching: Patching, path: string): Target | undefined {
  const last = path.lastIndexOf('/')
  if (last < 0 || !isContainer(patching.root)) return undefined
  let container = (patching.root = own(patching, patching.root))
  // Step by step, so that a path of a million steps costs no more than those that exist. Like upstream, it ignores text before
  // the first slash.
  for (let slash = path.indexOf('/'), end = 0; slash < last; slash = end) {
    end = path.indexOf('/', slash + 1)
    const step = unescaped(path.slice(slash + 1, end))
    const inner = getOwn(patching, { container, key: step })
    if (!isContainer(inner)) return undefined
    const copy = own(patching, inner)
    if (copy !== inner) put(patching, { container, key: step }, copy)
    container = copy
  }
  return { container, key: unescaped(path.slice(last + 1)) }
}

function unescaped(step: string): string {
  return step.replaceAll(/~[01]/g, (code) => (code === '~1' ? '/' : '~'))
}

function own(patching: Patching, container: Container): Container {
  return patching.owned.has(container) ? container : duplicate(patching, container)
}

function duplicate(patching: Patching, container: Container): Container {
  const copy = Array.isArray(container) ? [...container] : copyObject(container)
  patching.owned.add(copy)
  return copy
}

/** Spreading keeps an own `__proto__` as what it is. */
function copyObject(object: JsonObject): JsonObject {
  return { ...object }
}

/**
 * A copy that shares no container with `value`. Both may be changed afterwards; `chargeCopy` bounds the cost of all
 * copies of a patch.
 */
function copyValue(patching: Patching, value: JsonValue): JsonValue {
  if (!isContainer(value)) return value
  const root = duplicate(patching, value)
  const pending: Container[] = [root]
  const copyInner = (inner: Container): Container => {
    const copy = duplicate(patching, inner)
    pending.push(copy)
    return copy
  }
  for (let copy = pending.pop(); copy !== undefined; copy = pending.pop()) {
    if (Array.isArray(copy)) copyItems(copy, copyInner)
    else copyMembers(copy, copyInner)
  }
  return root
}

function copyItems(array: JsonValue[], copyInner: (inner: Container) => Container): void {
  for (const [at, item] of array.entries()) if (isContainer(item)) array[at] = copyInner(item)
}

function copyMembers(object: JsonObject, copyInner: (inner: Container) => Container): void {
  for (const [key, member] of Object.entries(object)) if (isContainer(member)) setMember(object, key, copyInner(member))
}

function getOwn(patching: Patching, { container, key }: Target): JsonValue | undefined {
  if (!Array.isArray(container)) return Object.hasOwn(container, key) ? container[key] : undefined
  const index = indexIn(key, lengthOf(patching, container))
  if (index === undefined) return undefined
  const list = patching.lists.get(container)
  return list === undefined ? container[index] : list.get(index)
}

/** False when the container is an array without such an element. */
function put(patching: Patching, { container, key }: Target, value: JsonValue): boolean {
  if (!Array.isArray(container)) {
    setMember(container, key, value)
    return true
  }
  const index = indexIn(key, lengthOf(patching, container))
  if (index === undefined) return false
  const list = patching.lists.get(container)
  if (list === undefined) container[index] = value
  else list.set(index, value)
  return true
}

function lengthOf({ lists }: Patching, array: readonly JsonValue[]): number {
  return lists.get(array as JsonValue[])?.length ?? array.length
}

/** The list that changes instead of a long array; undefined for a short one, which is changed itself. */
function listFor({ lists }: Patching, array: JsonValue[]): ChunkedList<JsonValue> | undefined {
  if (array.length < LONG_ARRAY) return lists.get(array)
  const list = lists.get(array) ?? new ChunkedList(array)
  lists.set(array, list)
  return list
}

function writeBack({ lists }: Patching, array: JsonValue[]): void {
  const items = lists.get(array)?.toArray()
  if (items === undefined) return
  lists.delete(array)
  array.length = items.length
  for (let at = 0; at < items.length; at++) array[at] = items[at] as JsonValue
}

/** `value` with every array in it written back, for a reader of the whole. */
function upToDate(patching: Patching, value: JsonValue): JsonValue {
  if (patching.lists.size === 0 || !isContainer(value)) return value
  const pending: Container[] = [value]
  for (let container = pending.pop(); container !== undefined; container = pending.pop()) {
    if (Array.isArray(container)) writeBack(patching, container)
    for (const inner of Object.values(container)) if (isContainer(inner)) pending.push(inner)
  }
  return value
}

/** The index that `key` means in an array of `length` elements, counted from the end when negative. */
function indexIn(key: string, length: number): number | undefined {
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

function read(patching: Patching, place: Target, context: string): JsonValue {
  const value = getOwn(patching, place)
  if (value === undefined && Array.isArray(place.container)) throw badIndex(context, place.key)
  return value ?? null
}

function insert(patching: Patching, { container, key }: Target, value: JsonValue, context: string): void {
  if (!Array.isArray(container)) return setMember(container, key, value)
  const length = lengthOf(patching, container)
  const index = key === '-' ? length : indexIn(key, length + 1)
  if (index === undefined)
    throw badIndex(`${context}${isIndex(key) ? '' : `: value was not a proper array index: '${key}'`}`, key)
  const list = listFor(patching, container)
  if (list === undefined) container.splice(index, 0, value)
  else list.insert(index, value)
}

function take(patching: Patching, { container, key }: Target, context: string): JsonValue {
  if (Array.isArray(container)) {
    const index = indexIn(key, lengthOf(patching, container))
    if (index === undefined) throw badIndex(context, key)
    const list = listFor(patching, container)
    return list === undefined ? (container.splice(index, 1)[0] as JsonValue) : list.remove(index)
  }
  if (!Object.hasOwn(container, key)) throw missing(`${context}: Unable to remove nonexistent key: ${key}`)
  const value = container[key] as JsonValue
  delete container[key]
  return value
}

/** Deeper values are not compared: the machine's stack ends somewhere. */
const MAX_DEPTH = 2_000

/** True if two values are equal, whatever the order of their members. Kept numbers equal their value. */
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
