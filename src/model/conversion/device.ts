/**
 * Converts `resource.k8s.io/v1beta1`, which has the fields of a device in `basic`, and has no `exactly` around the
 * fields of a request.
 */
import type { JsonObject } from '#lib/json/value.ts'

import { changeAt, type Rule, takeMembers } from './rule.ts'

const exactFields = [
  'deviceClassName',
  'selectors',
  'allocationMode',
  'count',
  'adminAccess',
  'tolerations',
  'capacity',
] as const

const deviceFields = [
  'attributes',
  'capacity',
  'consumesCounters',
  'nodeName',
  'nodeSelector',
  'allNodes',
  'taints',
  'bindsToNode',
  'bindingConditions',
  'bindingFailureConditions',
  'allowMultipleAllocations',
  'nodeAllocatableResourceMappings',
] as const

/** Any inline field creates an `exactly`, valid or not; validation follows. */
function nestRequest(request: JsonObject): JsonObject {
  const exactly = takeMembers(request, exactFields)
  // The class is written even if empty.
  const isRequested = Object.values(exactly).some((value) => value !== '' && value !== null)
  return isRequested ? { ...request, exactly } : request
}

function inlineRequest(request: JsonObject): JsonObject {
  const { exactly, ...rest } = request
  return { ...rest, ...(exactly as JsonObject | undefined) }
}

function nestDevice(device: JsonObject): JsonObject {
  const basic = takeMembers(device, deviceFields)
  return { ...device, basic }
}

function inlineDevice(device: JsonObject): JsonObject {
  const { basic, ...rest } = device
  return { ...rest, ...(basic as JsonObject | undefined) }
}

/** These are no pointers in v1beta1: zero means absent there, and must stay so. */
const withoutZeros = (spec: JsonObject): JsonObject => {
  if (spec['nodeName'] === '') delete spec['nodeName']
  if (spec['allNodes'] === false) delete spec['allNodes']
  return spec
}

function versionsOf(kind: string): Pick<Rule, 'spoke' | 'hub'> {
  return {
    spoke: { group: 'resource.k8s.io', version: 'v1beta1', kind },
    hub: { group: 'resource.k8s.io', version: 'v1', kind },
  }
}

/** A kind with device requests at `path`. */
function requestRule(kind: string, path: readonly string[]): Rule {
  const prefix = `${path.join('.')}.devices.requests[]`
  const requests = [...path, 'devices', 'requests', '[]']
  return {
    ...versionsOf(kind),
    differences: [...exactFields, 'exactly'].map((field) => `${prefix}.${field}`).sort(),
    toHub(claim) {
      changeAt(claim, requests, nestRequest)
      return claim
    },
    fromHub(claim) {
      changeAt(claim, requests, inlineRequest)
      return claim
    },
  }
}

const resourceSliceRule: Rule = {
  ...versionsOf('ResourceSlice'),
  differences: [
    'spec.allNodes',
    'spec.nodeName',
    ...[...deviceFields, 'basic'].map((field) => `spec.devices[].${field}`).sort(),
  ].sort(),
  toHub(slice) {
    changeAt(slice, ['spec', 'devices', '[]'], inlineDevice)
    changeAt(slice, ['spec'], withoutZeros)
    return slice
  },
  fromHub(slice) {
    changeAt(slice, ['spec', 'devices', '[]'], nestDevice)
    return slice
  },
}

export const deviceRules: readonly Rule[] = [
  requestRule('ResourceClaim', ['spec']),
  requestRule('ResourceClaimTemplate', ['spec', 'spec']),
  resourceSliceRule,
]
