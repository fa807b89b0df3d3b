/**
 * Compiles CEL attributes: a variable and the fields or elements selected from it. Each attempted selection costs 1; an
 * optional one costs 1 only if it finds a value.
 */
import {
  Double,
  Failure,
  ListValue,
  MAX_INT64,
  MapValue,
  Optional,
  Uint,
  goTypeOf,
  isInt,
  typeNameOf,
  type Result,
  type Value,
} from '../value.ts'
import { JsonMap, fromJson, isJsonObject, type Adapter } from '../values/json.ts'
import { showValue } from '../values/show.ts'
import { ObjectView } from '../values/typed.ts'
import { charge, chargeSteps, type Attribute, type Evaluate, type Frame, type Step } from './frame.ts'

/** An attribute from a head, which is evaluated in full, and its steps. */
export function attributeOf(head: Evaluate, steps: readonly Step[] = []): Attribute {
  return {
    resolve: steps.length === 0 ? head : (fieldPath(head, steps) ?? ((frame) => follow(frame, head(frame), steps))),
    isChoice: false,
    qualify: (step) => attributeOf(head, [...steps, step]),
  }
}

/** `condition ? truthy : falsy`, which further selections pass through. */
export function choiceOf(condition: Evaluate, truthy: Attribute, falsy: Attribute): Attribute {
  return {
    resolve(frame) {
      const choice = condition(frame)
      if (choice === true) return truthy.resolve(frame)
      if (choice === false) return falsy.resolve(frame)
      return choice instanceof Failure ? choice : new Failure('no such overload')
    },
    isChoice: true,
    qualify: (step) => choiceOf(condition, truthy.qualify(step), falsy.qualify(step)),
  }
}

function follow(frame: Frame, start: Result, steps: readonly Step[]): Result {
  if (start instanceof Failure) return start
  const isTest = steps.at(-1)?.isTest === true
  let value: Value = start
  let isOptional = false
  if (value instanceof Optional) {
    if (value.value === undefined) return isTest ? false : value
    value = value.value
    isOptional = true
  }
  for (const step of steps) {
    isOptional ||= step.isOptional
    const found: Result | undefined = isOptional ? takeOptional(frame, value, step) : take(frame, value, step)
    if (found === undefined) return isTest ? false : Optional.none
    if (found instanceof Failure) return found
    value = found
  }
  if (!isOptional) return value
  return isTest ? true : new Optional(value)
}

/** Undefined: not there, which costs nothing. */
function takeOptional(frame: Frame, value: Value, { key }: Step): Result | undefined {
  const at = key(frame)
  const found = at instanceof Failure ? at : find(value, at)
  if (found !== undefined && !(found instanceof Failure)) charge(frame, 1)
  return found
}

function take(frame: Frame, value: Value, { key, isTest }: Step): Result {
  const at = key(frame)
  charge(frame, 1)
  if (at instanceof Failure) return at
  const found = find(value, at)
  if (isTest) return found instanceof Failure ? found : found !== undefined
  return found === undefined ? missing(value, at) : found
}

function missing(value: Value, key: Value): Failure {
  return new Failure(`${value instanceof ListValue ? 'index out of bounds' : 'no such key'}: ${showValue(key)}`)
}

/** Returns the value at a key; undefined if there is none. */
function find(value: Value, key: Value): Result | undefined {
  if (value instanceof MapValue) return isKey(key) ? value.get(key) : unusable(key)
  if (value instanceof ListValue) return findIndex(value, key)
  return isKey(key) ? undefined : unusable(key)
}

export const isKey = (key: Value): boolean => typeof key !== 'object' || key instanceof Uint || key instanceof Double
export const unusable = (key: Value): Failure => new Failure(`invalid qualifier type: ${goTypeOf(key)}`)

function findIndex(list: ListValue, key: Value): Result | undefined {
  const index = indexOf(key)
  if (index instanceof Failure) return index
  return index >= 0 && index < list.size ? list.at(index) : undefined
}

function indexOf(key: Value): number | Failure {
  if (isInt(key)) return Number(key)
  if (key instanceof Double && Number.isInteger(key.value)) return key.value
  if (key instanceof Uint && key.value <= MAX_INT64) return Number(key.value)
  if (key instanceof Double || key instanceof Uint)
    return new Failure(`unsupported index value ${showValue(key)} in list`)
  return new Failure(`unsupported index type '${typeNameOf(key)}' in list`)
}

/**
 * The usual case, made fast: names after names. JSON is walked without a view for each step; whatever is not plainly there
 * takes the long way, which also knows what to say about it.
 */
function fieldPath(head: Evaluate, steps: readonly Step[]): Evaluate | undefined {
  const names = steps.map(({ constant, isOptional, isTest }) => (isOptional || isTest ? undefined : constant))
  if (!names.every((name): name is string => typeof name === 'string' && !(name in Object.prototype))) return undefined
  const declared = declaredPath(steps)
  return (frame) => {
    const value = head(frame)
    if (value instanceof JsonMap) {
      const json = walk(value.json, names)
      if (json !== undefined) {
        chargeSteps(frame, names.length)
        return fromJson(json)
      }
    } else if (value instanceof ObjectView && declared !== undefined && value.type.name === declared.root) {
      const json = walk(value.json, declared.keys)
      if (json !== undefined && json !== null) {
        chargeSteps(frame, names.length)
        return declared.adapt(json)
      }
    }
    return follow(frame, value, steps)
  }
}

/** Declared fields all the way: the type it begins with, the keys in JSON, and how the last one is made a value. */
interface DeclaredPath {
  readonly root: string
  readonly keys: readonly string[]
  readonly adapt: Adapter
}

function declaredPath(steps: readonly Step[]): DeclaredPath | undefined {
  const fields = steps.map(({ field }) => field)
  if (!fields.every((field) => field !== undefined && !(field.key in Object.prototype))) return undefined
  const [first, last] = [fields[0], fields.at(-1)]
  if (first === undefined || last === undefined) return undefined
  return { root: first.owner, keys: fields.map((field) => field?.key ?? ''), adapt: last.adapt }
}

function walk(start: unknown, keys: readonly string[]): unknown {
  let json = start
  for (let at = 0; at < keys.length; at++) {
    if (!isJsonObject(json)) return undefined
    json = json[keys[at] as string]
  }
  return json
}
