/** The ResourceSlice resource: a part of a driver's pool of devices, with the nodes that can use them. */
import {
  type Device,
  type ResourcePool,
  type ResourceSlice,
  ResourceSlices,
  type ResourceSliceSpec,
} from '#apis/resource/v1.ts'
import { type ResourceSlice as OldResourceSlice, ResourceSlices as OldResourceSlices } from '#apis/resource/v1beta1.ts'
import { ResourceSlices as NearResourceSlices } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { goQuote } from '#lib/go/text.ts'
import { firstByKey } from '#lib/repetition.ts'
import type { KubeObject } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/nodes/affinity.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

import { listFields, validateCounters, validateDevice, validateNodeName, validateOnlyTrue } from './device.ts'
import { validateSet } from './lists.ts'
import { validatePoolName } from './names.ts'

const MAX_DEVICES = 128
/** Devices with taints, counters or value lists are larger. */
const MAX_LARGE_DEVICES = 64
const MAX_COUNTER_SETS = 8

export const resourceSlice: Resource<ResourceSlice> = defineResource<ResourceSlice>({
  kind: ResourceSlices,
  generation: 'spec',
  otherVersions: [
    { kind: NearResourceSlices, applyDefaults: applySliceDefaults },
    {
      kind: OldResourceSlices,
      applyDefaults(object, context) {
        const devices = (object as OldResourceSlice).spec.devices ?? []
        for (const { basic } of devices) if (basic !== undefined) defaultDevice(basic, context)
      },
    },
  ],
  applyDefaults: applySliceDefaults,
  prepareCreate: ({ spec }, context) => dropGatedFields(spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropGatedFields(spec, old.spec, context),
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => validateSpec(next.spec, old.spec),
  warnings: ({ spec: { driver } }) =>
    driver === driver.toLowerCase()
      ? []
      : [`spec.driver: driver names should be lowercase; ${goQuote(driver)} contains uppercase characters`],
  fieldSelectors: {
    'spec.nodeName': ({ spec }) => spec.nodeName ?? '',
    'spec.driver': ({ spec }) => spec.driver,
  },
  indexedFields: ['spec.nodeName'],
  unknownField: (label) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${label}`,
  columns: [
    nameColumn,
    { name: 'Node', value: ({ spec }) => spec.nodeName ?? '' },
    { name: 'Driver', value: ({ spec }) => spec.driver },
    { name: 'Pool', value: ({ spec }) => spec.pool.name },
    ageColumn,
  ],
  deleteAnswersObject: true,
})

function applySliceDefaults(object: KubeObject, context: RuleContext): void {
  for (const device of (object as ResourceSlice).spec.devices ?? []) defaultDevice(device, context)
}

type DefaultedFields = Pick<Device, 'taints' | 'nodeAllocatableResourceMappings'>

function defaultDevice(
  { taints = [], nodeAllocatableResourceMappings = {} }: DefaultedFields,
  context: RuleContext,
): void {
  for (const taint of taints) taint.timeAdded ??= timeOf(context.clock.now())
  for (const mapping of Object.values(nodeAllocatableResourceMappings)) mapping.allocationMultiplier ??= '1'
}

/** Drops device fields of disabled `gates`, unless an old device has one of them. */
interface GatedFields {
  readonly gates: readonly string[]
  readonly isUsed: (device: Device) => boolean
  readonly drop: (device: Device) => void
}

function gated(gates: readonly string[], ...names: readonly (keyof Device)[]): GatedFields {
  return {
    gates,
    isUsed: (device) => names.some((name) => device[name] !== undefined),
    drop(device) {
      for (const name of names) delete device[name]
    },
  }
}

const gatedFields: readonly GatedFields[] = [
  gated(['DRADeviceTaints'], 'taints'),
  gated(['DRAPartitionableDevices'], 'consumesCounters', 'nodeName', 'nodeSelector', 'allNodes'),
  gated(
    ['DRADeviceBindingConditions', 'DRAResourceClaimDeviceStatus'],
    'bindingConditions',
    'bindingFailureConditions',
    'bindsToNode',
  ),
  {
    gates: ['DRAConsumableCapacity'],
    isUsed: ({ allowMultipleAllocations, capacity = {} }) =>
      allowMultipleAllocations !== undefined ||
      Object.values(capacity).some(({ requestPolicy }) => requestPolicy !== undefined),
    drop(device) {
      delete device.allowMultipleAllocations
      for (const capacity of Object.values(device.capacity ?? {})) delete capacity.requestPolicy
    },
  },
  gated(['DRANodeAllocatableResources'], 'nodeAllocatableResourceMappings'),
  {
    gates: ['DRAListTypeAttributes'],
    isUsed: hasListAttribute,
    drop({ attributes = {} }) {
      for (const attribute of Object.values(attributes)) for (const name of listFields) delete attribute[name]
    },
  },
]

function hasListAttribute({ attributes = {} }: Device): boolean {
  return Object.values(attributes).some((one) => listFields.some((name) => one[name] !== undefined))
}

const PARTITIONS = 'DRAPartitionableDevices'

function dropGatedFields(
  spec: ResourceSliceSpec,
  old: ResourceSliceSpec | undefined,
  { isEnabled }: RuleContext,
): void {
  const partitioned = (old?.sharedCounters ?? []).length > 0 || old?.perDeviceNodeSelection !== undefined
  for (const { gates, isUsed, drop } of gatedFields) {
    const isPartition = gates.includes(PARTITIONS)
    const kept = (old?.devices ?? []).some(isUsed) || (isPartition && partitioned)
    if (gates.every(isEnabled) || kept) continue
    for (const device of spec.devices ?? []) drop(device)
    if (!isPartition) continue
    delete spec.sharedCounters
    delete spec.perDeviceNodeSelection
  }
}

function validateSpec(spec: ResourceSliceSpec, old?: ResourceSliceSpec): FieldError[] {
  const { devices, sharedCounters, perDeviceNodeSelection } = spec
  const isLarge = (device: Device): boolean =>
    (device.taints ?? []).length > 0 || (device.consumesCounters ?? []).length > 0 || hasListAttribute(device)
  const oldDevices = firstByKey(old?.devices ?? [], ({ name }) => name)
  return collectErrors(
    validateDriverName(fieldPath('spec.driver'), spec.driver),
    validatePool(fieldPath('spec.pool'), spec.pool),
    old !== undefined && validateFixed(spec, old),
    validatePlacement(spec),
    sharedCounters !== undefined &&
      devices !== undefined &&
      fieldPath('spec').invalid('', 'only one of `sharedCounters` or `devices` is allowed'),
    validateSet(fieldPath('spec.devices'), devices, devices?.some(isLarge) === true ? MAX_LARGE_DEVICES : MAX_DEVICES, {
      check: (path, device) =>
        validateDevice(path, device, oldDevices.get(device.name), perDeviceNodeSelection === true),
      identity: ({ name }) => name,
    }),
    validateSet(fieldPath('spec.sharedCounters'), sharedCounters, MAX_COUNTER_SETS, {
      check: (path, { name, counters }) => validateCounters(path, 'name', name, counters),
      identity: ({ name }) => name,
    }),
  )
}

function validatePool(path: FieldPath, { name, resourceSliceCount: count, generation }: ResourcePool): FieldError[] {
  return collectErrors(
    validatePoolName(path.child('name'), name),
    !(count > 0) && path.child('resourceSliceCount').invalid(count, 'must be greater than zero'),
    generation < 0 && path.child('generation').invalid(generation, 'must be greater than or equal to zero'),
  )
}

function validateFixed(next: ResourceSliceSpec, old: ResourceSliceSpec): FieldError[] {
  return [
    ...immutable(fieldPath('spec.pool.name'), next.pool.name, old.pool.name),
    ...immutable(fieldPath('spec.driver'), next.driver, old.driver),
    ...immutable(fieldPath('spec.nodeName'), next.nodeName, old.nodeName),
  ]
}

const PLACES = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'

function validatePlacement(spec: ResourceSliceSpec): FieldError[] {
  const { nodeName, nodeSelector, allNodes, perDeviceNodeSelection: perDevice } = spec
  const set = [
    ...((nodeName ?? '') === '' ? [] : ['`nodeName`']),
    ...(nodeSelector === undefined ? [] : ['`nodeSelector`']),
    ...(allNodes === true ? ['`allNodes`'] : []),
    ...(perDevice === true ? ['`perDeviceNodeSelection`'] : []),
  ]
  return collectErrors(
    nodeName === '' && fieldPath('spec.nodeName').invalid('', 'must be either unset or set to a non-empty string'),
    validateNodeName(fieldPath('spec.nodeName'), nodeName),
    nodeSelector !== undefined && validateOneTerm(fieldPath('spec.nodeSelector'), nodeSelector),
    validateOnlyTrue(fieldPath('spec.allNodes'), allNodes),
    validateOnlyTrue(fieldPath('spec.perDeviceNodeSelection'), perDevice),
    set.length === 0 && fieldPath('spec').required(PLACES),
    set.length > 1 && fieldPath('spec').invalid(`{${set.join(', ')}}`, `${PLACES}, but multiple fields are set`),
  )
}

function validateOneTerm(path: FieldPath, selector: NonNullable<ResourceSliceSpec['nodeSelector']>): FieldError[] {
  const terms = selector.nodeSelectorTerms ?? []
  const detail = 'must have exactly one node selector term'
  return collectErrors(
    validateNodeSelector(path, selector),
    terms.length !== 1 && path.child('nodeSelectorTerms').invalid(selector.nodeSelectorTerms, detail),
  )
}
