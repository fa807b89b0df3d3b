/** Validates a device of a ResourceSlice: attributes, capacity, node selection and counters. */
import type {
  Counter,
  Device,
  DeviceAttribute,
  DeviceCounterConsumption,
  DeviceTaint,
  NodeAllocatableResourceMapping,
} from '#apis/resource/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { validateDnsLabel, validateLabelName } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/nodes/affinity.ts'
import { isNativeResource } from '#model/pod-spec/containers/resource-names.ts'

import { validateCapacity } from './capacity.ts'
import { taintEffects, validateBindingConditions } from './device-config.ts'
import { validateEntries, validateList, validateSet } from './lists.ts'
import { validateAttributeName } from './names.ts'

const MAX_ATTRIBUTES_AND_CAPACITIES = 32
const MAX_ATTRIBUTE_VALUES = 48
const MAX_VALUE_BYTES = 64
const MAX_TAINTS = 16
const MAX_CONSUMPTIONS = 2
const MAX_COUNTERS = 32

export const listFields = ['bools', 'ints', 'strings', 'versions'] as const

/** `old` is the device with the same name; `placed` means that each device selects its nodes. */
export function validateDevice(
  path: FieldPath,
  device: Device,
  old: Device | undefined,
  placed: boolean,
): FieldError[] {
  const at = (name: string): FieldPath => path.child(name)
  const { attributes, capacity, taints, consumesCounters } = device
  const sameTaints = old !== undefined && semanticEqual(old.taints, taints)
  return collectErrors(
    validateDnsLabel(at('name'), device.name),
    validateCounts(path, device),
    validateEntries(at('attributes'), attributes, validateAttributeName, validateAttribute),
    validateEntries(at('capacity'), capacity, validateAttributeName, (field, one) =>
      validateCapacity(field, one, device.allowMultipleAllocations === true),
    ),
    !sameTaints && validateList(at('taints'), taints, MAX_TAINTS, (field, taint) => validateTaint(field, taint)),
    validateSet(at('consumesCounters'), consumesCounters, MAX_CONSUMPTIONS, {
      check: validateConsumption,
      identity: ({ counterSet }) => counterSet,
    }),
    placed ? validatePlacement(path, device) : validateNotPlaced(path, device),
    validateBindingConditions(path, device),
    validateEntries(
      at('nodeAllocatableResourceMappings'),
      device.nodeAllocatableResourceMappings,
      () => [],
      (field, mapping, name) => validateMapping(field, mapping, name, device),
    ),
  )
}

function validateCounts(path: FieldPath, { attributes = {}, capacity = {} }: Device): FieldError[] {
  const total = Object.keys(attributes).length + Object.keys(capacity).length
  const values = Object.values(attributes).reduce((sum, one) => sum + valueCount(one), 0)
  const refuse = (count: number, limit: number, what: string): FieldError[] =>
    count > limit ? [path.invalid(count, `the total number of ${what} must not exceed ${limit}`)] : []
  return [
    ...refuse(total, MAX_ATTRIBUTES_AND_CAPACITIES, 'attributes and capacities'),
    ...refuse(values, MAX_ATTRIBUTE_VALUES, 'attribute values'),
  ]
}

function valueCount(attribute: DeviceAttribute): number {
  return listFields.reduce((sum, name) => sum + (attribute[name] ?? []).length, 0) || 1
}

const valueFields = ['bool', 'int', 'string', 'version', ...listFields] as const

function validateAttribute(path: FieldPath, attribute: DeviceAttribute): FieldError[] {
  const { string, version, strings = [], versions = [] } = attribute
  const count = valueFields.filter((name) => attribute[name] !== undefined).length
  const each = (name: string, values: readonly string[], check: typeof validateText): FieldError[] =>
    path.child(name).each(values, check)
  const empty = listFields.filter((name) => attribute[name]?.length === 0)
  return collectErrors(
    string !== undefined && validateText(path.child('string'), string),
    version !== undefined && validateVersion(path.child('version'), version),
    empty.map((name) => path.child(name).invalid([], 'must not be empty if specified')),
    each('strings', strings, validateText),
    each('versions', versions, validateVersion),
    count !== 1 && path.invalid(count === 0 ? '' : attribute, 'exactly one value must be specified'),
  )
}

function validateText(path: FieldPath, value: string): FieldError[] {
  return byteLength(value) > MAX_VALUE_BYTES ? [path.tooLong(MAX_VALUE_BYTES)] : []
}

const NUMBER = '(?:0|[1-9]\\d*)'
const PRE_RELEASE = `(?:${NUMBER}|\\d*[a-zA-Z-][0-9a-zA-Z-]*)`
const BUILD = '[0-9a-zA-Z-]+'
const SEMVER = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-${PRE_RELEASE}(?:\\.${PRE_RELEASE})*)?(?:\\+${BUILD}(?:\\.${BUILD})*)?$`,
)

function validateVersion(path: FieldPath, value: string): FieldError[] {
  const isVersion = byteLength(value) <= 2 * MAX_VALUE_BYTES && SEMVER.test(value)
  return collectErrors(
    !isVersion && path.invalid(value, 'must be a string compatible with semver.org spec 2.0.0'),
    validateText(path, value),
  )
}

/** An old unknown effect is accepted, because a newer release may have written it. */
export function validateTaint(
  path: FieldPath,
  { key, value = '', effect }: DeviceTaint,
  old?: DeviceTaint,
): FieldError[] {
  const field = path.child('effect')
  const isKept = old?.effect === effect
  return collectErrors(
    validateLabelName(path.child('key'), key),
    value !== '' && path.child('value').check(value, labelValue),
    effect === '' && !isKept && field.required(),
    effect !== '' && !isKept && !taintEffects.includes(effect) && field.notInSet(asJson(effect), taintEffects),
  )
}

function validateConsumption(path: FieldPath, { counterSet, counters }: DeviceCounterConsumption): FieldError[] {
  return validateCounters(path, 'counterSet', counterSet, counters)
}

/** A counter set: its name, in the field `nameField`, and its counters. */
export function validateCounters(
  path: FieldPath,
  nameField: string,
  name: string,
  counters: Readonly<Record<string, Counter>> = {},
): FieldError[] {
  const field = path.child('counters')
  const count = Object.keys(counters).length
  return collectErrors(
    name === '' ? path.child(nameField).required() : validateDnsLabel(path.child(nameField), name),
    count === 0 && field.required(),
    count > MAX_COUNTERS ? field.tooMany(count, MAX_COUNTERS) : validateEntries(field, counters, validateDnsLabel),
  )
}

const PLACES =
  'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec'

function validatePlacement(path: FieldPath, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  const set = [
    ...(nodeName === undefined || nodeName === '' ? [] : ['`nodeName`']),
    ...(nodeSelector === undefined ? [] : ['`nodeSelector`']),
    ...(allNodes === true ? ['`allNodes`'] : []),
  ]
  return collectErrors(
    nodeName === '' && path.child('nodeName').invalid('', 'must not be empty'),
    validateNodeName(path.child('nodeName'), nodeName),
    nodeSelector !== undefined && validateNodeSelector(path.child('nodeSelector'), nodeSelector),
    validateOnlyTrue(path.child('allNodes'), allNodes),
    set.length === 0 && path.required(PLACES),
    set.length > 1 && path.invalid(`{${set.join(', ')}}`, PLACES),
  )
}

/** Other rules reject empty and absent values. */
export function validateNodeName(path: FieldPath, name = ''): FieldError[] {
  return name === '' ? [] : path.check(name, dns1123Subdomain)
}

export function validateOnlyTrue(path: FieldPath, value: boolean | undefined): FieldError[] {
  return value === false ? [path.invalid(value, 'must be either unset or set to true')] : []
}

function validateNotPlaced(path: FieldPath, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  if (nodeName === undefined && nodeSelector === undefined && allNodes === undefined) return []
  const detail =
    '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  return [path.invalid(null, detail)]
}

function validateMapping(
  path: FieldPath,
  mapping: NodeAllocatableResourceMapping,
  name: string,
  { capacity = {} }: Device,
): FieldError[] {
  const { allocationMultiplier: multiplier, capacityKey } = mapping
  const errors = isNativeResource(name) ? [] : [path.invalid(asJson(name), 'must be a node allocatable resource name')]
  if (multiplier === undefined && capacityKey === undefined) {
    return [...errors, path.invalid('', 'at least one of allocationMultiplier or capacityKey must be set')]
  }
  if (multiplier !== undefined && quantitySign(parseQuantity(multiplier)) <= 0) {
    errors.push(path.child('allocationMultiplier').invalid(multiplier, 'must be positive'))
  }
  const field = path.child('capacityKey')
  if (capacityKey === '') errors.push(field.invalid('', 'capacityKey must not be an empty string'))
  else if (capacityKey !== undefined && !Object.hasOwn(capacity, capacityKey)) {
    errors.push(field.notFound(asJson(capacityKey)))
  }
  return errors
}
