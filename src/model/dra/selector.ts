/**
 * Evaluates device selectors: CEL expressions about one `device`, in device classes and claims. Pure: the scheduler
 * calls `matches` for each device.
 */
import type { DeviceAttribute, DeviceCapacity } from '#apis/resource/v1.ts'
import { createEnvironment, type Environment } from '#cel/environment.ts'
import { toQuantity } from '#cel/libraries/quantity.ts'
import { toSemver } from '#cel/libraries/semver.ts'
import { BOOL, type CelType, describeType, type MapType, opaque, type SimpleType } from '#cel/type.ts'
import { Failure, MapValue, typeNameOf, type Result, type Value } from '#cel/value.ts'
import { EntryMap, mapOfEntries } from '#cel/values/map.ts'

import { evaluateOnce } from '../expressions/activation.ts'
import {
  type CompiledExpression,
  compileExpression,
  type Demand,
  type UnfitExpression,
} from '../expressions/compile.ts'
import { declareObject } from '../expressions/declared-type.ts'

/** The cost limits of one selector: at compilation, and for one device. */
export const MAX_SELECTOR_COST = 1_000_000

const MAX_DOMAIN_LENGTH = 63
const MAX_ID_LENGTH = 32
const MAX_DRIVER_LENGTH = 63
const MAX_ATTRIBUTE_LENGTH = 64
const MAX_ATTRIBUTES = 32

const bounded = (kind: SimpleType['kind'], maxSize: number): SimpleType => ({ kind, maxSize })

const byName = (keyLength: number, value: CelType, boundsFields = false): MapType => ({
  kind: 'map',
  key: bounded('string', keyLength),
  value,
  maxSize: MAX_ATTRIBUTES,
  boundsFields,
})

const ATTRIBUTES = byName(MAX_DOMAIN_LENGTH, byName(MAX_ID_LENGTH, bounded('dyn', MAX_ATTRIBUTE_LENGTH), true))
const CAPACITY = byName(MAX_DOMAIN_LENGTH, byName(MAX_ID_LENGTH, opaque('kubernetes.Quantity')))

/** With the gate DRAConsumableCapacity a device also has allowMultipleAllocations. */
function createSelectorEnvironment(hasMultipleAllocations: boolean): Environment {
  const device = declareObject('kubernetes.DRADevice', {
    driver: bounded('string', MAX_DRIVER_LENGTH),
    attributes: ATTRIBUTES,
    capacity: CAPACITY,
    ...(hasMultipleAllocations && { allowMultipleAllocations: bounded('bool', 1) }),
  })
  return createEnvironment({ variables: { device }, hasBind: true })
}

const environments = [false, true].map(createSelectorEnvironment)

/** An attribute may be a boolean, which is known only at evaluation. */
const TRUTH: Demand = {
  accepts: ({ kind }) => kind === 'bool' || kind === 'dyn',
  refusal: (type) => `must evaluate to ${describeType(BOOL)} or the unknown type, not ${describeType(type)}`,
}

export function compileSelector(source: string, hasMultipleAllocations = true): CompiledExpression | UnfitExpression {
  return compileExpression(environments[hasMultipleAllocations ? 1 : 0] as Environment, source, TRUTH)
}

/** The inputs of a selector. */
export interface Device {
  readonly driver: string
  readonly allowMultipleAllocations?: boolean
  readonly attributes?: Readonly<Record<string, DeviceAttribute>>
  readonly capacity?: Readonly<Record<string, DeviceCapacity>>
}

/** True if the device matches. Throws Error with upstream's text if the evaluation fails. */
export function matches(selector: CompiledExpression, device: Device): boolean {
  const { driver, allowMultipleAllocations = false, attributes = {}, capacity = {} } = device
  const variable = mapOfEntries([
    ['driver', driver],
    ['allowMultipleAllocations', allowMultipleAllocations],
    ['attributes', byDomain(driver, attributes, attributeValue)],
    ['capacity', byDomain(driver, capacity, ({ value }) => toQuantity(value))],
  ])
  const { value, error } = evaluateOnce(selector, { device: variable }, MAX_SELECTOR_COST)
  if (error !== undefined) throw new Error(error)
  if (typeof value === 'boolean') return value
  throw new Error(
    `CEL result of type ${typeNameOf(value)} could not be converted to bool: type conversion error from '${typeNameOf(value)}' to 'bool'`,
  )
}

/** Unknown domains exist and are empty. */
class Domains extends MapValue {
  readonly #domains: ReadonlyMap<string, EntryMap>

  constructor(domains: ReadonlyMap<string, EntryMap>) {
    super()
    this.#domains = domains
  }

  get size(): number {
    return this.#domains.size
  }

  get(key: Value): Result {
    return (typeof key === 'string' ? this.#domains.get(key) : undefined) ?? NOTHING
  }

  keys(): Iterable<Value> {
    return this.#domains.keys()
  }
}

const NOTHING = new EntryMap()

function byDomain<T>(driver: string, values: Readonly<Record<string, T>>, read: (value: T) => Result): Domains {
  const domains = new Map<string, EntryMap>()
  for (const [name, raw] of Object.entries(values)) {
    const slash = name.indexOf('/')
    const domain = slash < 0 ? driver : name.slice(0, slash)
    let map = domains.get(domain)
    if (map === undefined) domains.set(domain, (map = new EntryMap()))
    const value = read(raw)
    if (value instanceof Failure) throw new Error(`attribute ${name}: ${value.message}`)
    map.set(name.slice(slash + 1), value)
  }
  return new Domains(domains)
}

function attributeValue({ int, bool, string, version }: DeviceAttribute): Result {
  const plain = int ?? bool ?? string
  if (plain !== undefined) return plain
  if (version === undefined) return new Failure('unsupported attribute value')
  const parsed = toSemver(version, false)
  return parsed instanceof Failure ? new Failure(`parse semantic version: ${parsed.message}`) : parsed
}
