/** One device in a slice: what it is, what it can do, where it can be used and what it takes from others. */
import type {
  Counter,
  Device,
  DeviceAttribute,
  DeviceCounterConsumption,
  DeviceTaint,
  NodeAllocatableResourceMapping,
} from '#apis/resource/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import { semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import {
  asJson,
  child,
  type FieldError,
  index,
  invalid,
  notFound,
  notInSet,
  required,
  tooLong,
  tooMany,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/node-affinity.ts'
import { validateDnsLabel } from '#model/pod-spec/checks.ts'
import { isNativeResource } from '#model/pod-spec/resource-names.ts'

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

/** `old` is the device of the same name; `placed` that each device says itself where it can be used. */
export function validateDevice(path: string, device: Device, old: Device | undefined, placed: boolean): FieldError[] {
  const at = (name: string): string => child(path, name)
  const { attributes, capacity, taints, consumesCounters } = device
  const sameTaints = old !== undefined && semanticEqual(old.taints, taints)
  return [
    ...validateDnsLabel(at('name'), device.name),
    ...validateCounts(path, device),
    ...validateEntries(at('attributes'), attributes, validateAttributeName, validateAttribute),
    ...validateEntries(at('capacity'), capacity, validateAttributeName, (field, one) =>
      validateCapacity(field, one, device.allowMultipleAllocations === true),
    ),
    ...(sameTaints
      ? []
      : validateList(at('taints'), taints, MAX_TAINTS, (field, taint) => validateTaint(field, taint))),
    ...validateSet(at('consumesCounters'), consumesCounters, MAX_CONSUMPTIONS, {
      check: validateConsumption,
      identity: ({ counterSet }) => counterSet,
    }),
    ...(placed ? validatePlacement(path, device) : validateNotPlaced(path, device)),
    ...validateBindingConditions(path, device),
    ...validateEntries(
      at('nodeAllocatableResourceMappings'),
      device.nodeAllocatableResourceMappings,
      () => [],
      (field, mapping) => validateMapping(field, mapping, device),
    ),
  ]
}

function validateCounts(path: string, { attributes = {}, capacity = {} }: Device): FieldError[] {
  const total = Object.keys(attributes).length + Object.keys(capacity).length
  const values = Object.values(attributes).reduce((sum, one) => sum + valueCount(one), 0)
  const refuse = (count: number, limit: number, what: string): FieldError[] =>
    count > limit ? [invalid(path, count, `the total number of ${what} must not exceed ${limit}`)] : []
  return [
    ...refuse(total, MAX_ATTRIBUTES_AND_CAPACITIES, 'attributes and capacities'),
    ...refuse(values, MAX_ATTRIBUTE_VALUES, 'attribute values'),
  ]
}

function valueCount(attribute: DeviceAttribute): number {
  return listFields.reduce((sum, name) => sum + (attribute[name] ?? []).length, 0) || 1
}

const valueFields = ['bool', 'int', 'string', 'version', ...listFields] as const

function validateAttribute(path: string, attribute: DeviceAttribute): FieldError[] {
  const { string, version, strings = [], versions = [] } = attribute
  const count = valueFields.filter((name) => attribute[name] !== undefined).length
  const each = (name: string, values: readonly string[], check: typeof validateText): FieldError[] =>
    values.flatMap((value, at) => check(index(child(path, name), at), value))
  const empty = listFields.filter((name) => attribute[name]?.length === 0)
  return [
    ...(string === undefined ? [] : validateText(child(path, 'string'), string)),
    ...(version === undefined ? [] : validateVersion(child(path, 'version'), version)),
    ...empty.map((name) => invalid(child(path, name), [], 'must not be empty if specified')),
    ...each('strings', strings, validateText),
    ...each('versions', versions, validateVersion),
    ...(count === 1 ? [] : [invalid(path, count === 0 ? '' : attribute, 'exactly one value must be specified')]),
  ]
}

function validateText(field: string, value: string): FieldError[] {
  return byteLength(value) > MAX_VALUE_BYTES ? [tooLong(field, MAX_VALUE_BYTES)] : []
}

const NUMBER = '(?:0|[1-9]\\d*)'
const PRE_RELEASE = `(?:${NUMBER}|\\d*[a-zA-Z-][0-9a-zA-Z-]*)`
const BUILD = '[0-9a-zA-Z-]+'
const SEMVER = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-${PRE_RELEASE}(?:\\.${PRE_RELEASE})*)?(?:\\+${BUILD}(?:\\.${BUILD})*)?$`,
)

function validateVersion(field: string, value: string): FieldError[] {
  const isVersion = byteLength(value) <= 2 * MAX_VALUE_BYTES && SEMVER.test(value)
  return [
    ...(isVersion ? [] : [invalid(field, value, 'must be a string compatible with semver.org spec 2.0.0')]),
    ...validateText(field, value),
  ]
}

/** An effect that was there before is let pass: `old` may come from a release that knew more of them. */
export function validateTaint(path: string, { key, value = '', effect }: DeviceTaint, old?: DeviceTaint): FieldError[] {
  const field = child(path, 'effect')
  const isKept = old?.effect === effect
  return [
    ...validateLabelName(child(path, 'key'), key),
    ...(value === '' ? [] : complaining(child(path, 'value'), value, labelValue(value))),
    ...(effect === '' && !isKept ? [required(field)] : []),
    ...(effect === '' || isKept || taintEffects.includes(effect)
      ? []
      : [notInSet(field, asJson(effect), taintEffects)]),
  ]
}

function validateConsumption(path: string, { counterSet, counters }: DeviceCounterConsumption): FieldError[] {
  return validateCounters(path, 'counterSet', counterSet, counters)
}

/** A set of counters: its name, in the field called `nameField`, and what it counts. */
export function validateCounters(
  path: string,
  nameField: string,
  name: string,
  counters: Readonly<Record<string, Counter>> = {},
): FieldError[] {
  const field = child(path, 'counters')
  const count = Object.keys(counters).length
  return [
    ...(name === '' ? [required(child(path, nameField))] : validateDnsLabel(child(path, nameField), name)),
    ...(count === 0 ? [required(field)] : []),
    ...(count > MAX_COUNTERS
      ? [tooMany(field, count, MAX_COUNTERS)]
      : validateEntries(field, counters, validateDnsLabel)),
  ]
}

const PLACES =
  'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec'

function validatePlacement(path: string, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  const set = [
    ...(nodeName === undefined || nodeName === '' ? [] : ['`nodeName`']),
    ...(nodeSelector === undefined ? [] : ['`nodeSelector`']),
    ...(allNodes === true ? ['`allNodes`'] : []),
  ]
  return [
    ...(nodeName === '' ? [invalid(child(path, 'nodeName'), '', 'must not be empty')] : []),
    ...validateNodeName(child(path, 'nodeName'), nodeName),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(child(path, 'nodeSelector'), nodeSelector)),
    ...validateOnlyTrue(child(path, 'allNodes'), allNodes),
    ...(set.length === 0 ? [required(path, PLACES)] : []),
    ...(set.length > 1 ? [invalid(path, `{${set.join(', ')}}`, PLACES)] : []),
  ]
}

/** Empty and absent are somebody else's to refuse. */
export function validateNodeName(field: string, name = ''): FieldError[] {
  return name === '' ? [] : complaining(field, name, dns1123Subdomain(name))
}

export function validateOnlyTrue(field: string, value: boolean | undefined): FieldError[] {
  return value === false ? [invalid(field, value, 'must be either unset or set to true')] : []
}

function validateNotPlaced(path: string, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  if (nodeName === undefined && nodeSelector === undefined && allNodes === undefined) return []
  const detail =
    '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  return [invalid(path, null, detail)]
}

function validateMapping(
  path: string,
  mapping: NodeAllocatableResourceMapping,
  { capacity = {} }: Device,
): FieldError[] {
  const { allocationMultiplier: multiplier, capacityKey } = mapping
  const name = path.slice(path.lastIndexOf('[') + 1, -1)
  const errors = isNativeResource(name) ? [] : [invalid(path, asJson(name), 'must be a node allocatable resource name')]
  if (multiplier === undefined && capacityKey === undefined) {
    return [...errors, invalid(path, '', 'at least one of allocationMultiplier or capacityKey must be set')]
  }
  if (multiplier !== undefined && quantitySign(parseQuantity(multiplier)) <= 0) {
    errors.push(invalid(child(path, 'allocationMultiplier'), multiplier, 'must be positive'))
  }
  const field = child(path, 'capacityKey')
  if (capacityKey === '') errors.push(invalid(field, '', 'capacityKey must not be an empty string'))
  else if (capacityKey !== undefined && !Object.hasOwn(capacity, capacityKey)) {
    errors.push(notFound(field, asJson(capacityKey)))
  }
  return errors
}
