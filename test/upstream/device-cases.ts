/** Generates random devices, and pods that claim them, from a seed. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type {
  Device,
  DeviceClass,
  DeviceConstraint,
  DeviceRequest,
  ExactDeviceRequest,
  ResourceClaim,
  ResourceSlice,
  ResourceSliceSpec,
} from '#apis/resource/v1.ts'
import type { DeviceTaintRule } from '#apis/resource/v1beta2.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Draw } from './draw.ts'

export const SPACE = 'devices'

type Made<T> = Pick<T, Extract<keyof T, 'metadata' | 'spec'>>

export interface DeviceCase {
  readonly nodes: readonly (Made<Node> & { readonly status: object })[]
  readonly slices: readonly Made<ResourceSlice>[]
  readonly rules: readonly Made<DeviceTaintRule>[]
  /** In order: the claims that come with a pod, and the pod. */
  readonly pods: readonly { readonly claims: readonly Made<ResourceClaim>[]; readonly pod: Made<Pod> }[]
}

const DRIVERS = ['a.example.com', 'b.example.com'] as const
export const RESOURCE = 'example.com/dev'

const parameters = { kind: 'Config' }
const opaque = { driver: DRIVERS[0], parameters }

export const CLASSES: readonly Made<DeviceClass>[] = [
  { metadata: { name: 'any' }, spec: {} },
  {
    metadata: { name: 'a' },
    spec: {
      selectors: [{ cel: { expression: `device.driver == '${DRIVERS[0]}'` } }],
      extendedResourceName: RESOURCE,
      config: [{ opaque }],
    },
  },
  {
    metadata: { name: 'b' },
    spec: { selectors: [{ cel: { expression: `device.driver == '${DRIVERS[1]}'` } }], config: [{ opaque }] },
  },
]

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

export function deviceCase(seed: number, podCount: number): DeviceCase {
  const draw = new Draw(createSeededRandom(seed))
  const nodes = times(draw.of([1, 1, 2, 3, 5]), (at) => nodeOf(draw, at))
  const names = nodes.map(({ metadata }) => metadata.name ?? '')
  const slices = [
    ...names.flatMap((name) => DRIVERS.flatMap((driver) => (draw.chance(0.7) ? localPool(draw, driver, name) : []))),
    ...(draw.chance(0.5) ? farPool(draw, names) : []),
  ]
  const known: string[] = []
  const rules = draw.chance(0.6) ? times(1 + draw.below(2), (at) => ruleOf(draw, at, slices)) : []
  return { nodes, slices, rules, pods: times(podCount, (at) => podOf(draw, at, known)) }
}

/** About all devices of a driver, of a pool, or one, or those of the same name in all pools. */
function ruleOf(draw: Draw, at: number, slices: DeviceCase['slices']): Made<DeviceTaintRule> {
  const { driver, pool, devices = [] } = slices.length === 0 ? NOWHERE : draw.of(slices).spec
  const deviceSelector = {
    ...draw.maybe(0.6, () => ({ driver })),
    ...draw.maybe(0.5, () => ({ pool: pool.name })),
    ...draw.maybe(0.6, () => ({ device: devices.length === 0 ? 'none' : draw.of(devices).name })),
  }
  const taint = {
    key: draw.of(['k', 'other']),
    effect: draw.of(['NoSchedule', 'NoExecute', 'None']),
    ...draw.maybe(0.5, () => ({ value: 'v' })),
  }
  return { metadata: { name: `rule-${at}` }, spec: { deviceSelector, taint } }
}

const NOWHERE: ResourceSliceSpec = {
  driver: DRIVERS[0],
  pool: { name: 'none', generation: 1, resourceSliceCount: 1 },
}

function nodeOf(draw: Draw, at: number): DeviceCase['nodes'][0] {
  const name = `n${at}`
  const allocatable = { cpu: '16', memory: '64Gi', pods: '50', ...draw.maybe(0.15, () => ({ [RESOURCE]: '2' })) }
  const labels = { 'kubernetes.io/hostname': name, zone: draw.of(['x', 'y']) }
  return { metadata: { name, labels }, spec: {}, status: { allocatable, capacity: allocatable } }
}

/** Of one node: one or two slices, with counters or without, sometimes flawed. */
function localPool(draw: Draw, driver: string, node: string): Made<ResourceSlice>[] {
  const name = `${node}-${driver.slice(0, 1)}`
  const count = draw.of([1, 1, 2])
  const hasCounters = draw.chance(0.3)
  const total = count + (hasCounters ? 1 : 0) + (draw.chance(0.08) ? 1 : 0)
  const pool = { name, generation: 2, resourceSliceCount: total }
  const isDoubled = draw.chance(0.05)
  const part = (at: number, more: Partial<ResourceSliceSpec>): Made<ResourceSlice> => ({
    metadata: { name: `${name}-${at}` },
    spec: { driver, pool, nodeName: node, ...more },
  })
  const counters = { units: { value: draw.of(['2', '3', '4']) }, memory: { value: '10Gi' } }
  const stale = { ...part(9, { devices: [{ name: 'stale' }] }), spec: {} }
  return [
    ...times(count, (at) =>
      part(at, {
        devices: times(draw.below(5), (of) => deviceOf(draw, isDoubled ? `d${of}` : `d${at}${of}`, hasCounters)),
      }),
    ),
    ...(hasCounters ? [part(8, { sharedCounters: [{ name: 'set', counters }] })] : []),
    ...(draw.chance(0.1)
      ? [{ ...stale, spec: { driver, pool: { ...pool, generation: 1 }, nodeName: node, devices: [{ name: 'stale' }] } }]
      : []),
  ]
}

/** That several nodes can use. */
function farPool(draw: Draw, nodes: readonly string[]): Made<ResourceSlice>[] {
  const pool = { name: 'far', generation: 1, resourceSliceCount: 1 }
  const devices = times(draw.below(4), (at) => deviceOf(draw, `f${at}`, false))
  const expression = { key: 'zone', operator: 'In', values: [draw.of(['x', 'y'])] }
  const nodeSelector = { nodeSelectorTerms: [{ matchExpressions: [expression] }] }
  const place = draw.of<Partial<ResourceSliceSpec>>([
    { allNodes: true, devices },
    { nodeSelector, devices },
    {
      perDeviceNodeSelection: true,
      devices: devices.map((one) => ({
        ...one,
        ...draw.of([{ allNodes: true }, { nodeSelector }, { nodeName: draw.of(nodes) }]),
      })),
    },
  ])
  return [{ metadata: { name: 'far' }, spec: { driver: draw.of(DRIVERS), pool, ...place } }]
}

function deviceOf(draw: Draw, name: string, hasCounters: boolean): Device {
  const policy = draw.of([
    {},
    { requestPolicy: { default: '1Gi', validRange: { min: '1Gi', step: '1Gi' } } },
    { requestPolicy: { default: '2Gi', validValues: ['2Gi', '4Gi'] } },
  ])
  const isShared = draw.chance(0.25)
  const units = draw.of(['1', '2'])
  return {
    name,
    attributes: {
      model: { string: draw.of(['x', 'y']) },
      index: { int: draw.below(4) },
      ...draw.maybe(0.8, () => ({ 'other.example.com/side': { string: draw.of(['left', 'right']) } })),
      ...draw.maybe(0.5, () => ({ firmware: { version: draw.of(['1.2.3', '2.0.0']) } })),
    },
    ...draw.maybe(0.6, () => ({ capacity: { memory: { value: '4Gi', ...(isShared ? policy : {}) } } })),
    ...(isShared && { allowMultipleAllocations: true }),
    ...draw.maybe(0.15, () => ({
      taints: [{ key: 'k', value: draw.of(['v', 'w']), effect: draw.of(['NoSchedule', 'NoExecute']) }],
    })),
    ...(hasCounters &&
      draw.chance(0.8) && {
        consumesCounters: [
          {
            counterSet: draw.chance(0.03) ? 'none' : 'set',
            counters: { units: { value: units }, memory: { value: '3Gi' } },
          },
        ],
      }),
  }
}

const SELECTORS = [
  `device.attributes['a.example.com'].model == 'x'`,
  `device.driver.startsWith('a') && device.attributes[device.driver].index > 0`,
  `device.attributes[device.driver].index < 2`,
  `has(device.attributes['other.example.com'].side) && device.attributes['other.example.com'].side == 'left'`,
  `device.attributes[device.driver].index >= 0 && 'memory' in device.capacity[device.driver] && device.capacity[device.driver].memory.compareTo(quantity('2Gi')) > 0`,
  `device.allowMultipleAllocations == true`,
]

function wishOf(draw: Draw, isOnlyOne: boolean): ExactDeviceRequest {
  const isAll = !isOnlyOne && draw.chance(0.12)
  return {
    deviceClassName: draw.chance(0.02) ? 'none' : draw.of(['any', 'a', 'b']),
    ...(isAll
      ? { allocationMode: 'All' }
      : { allocationMode: 'ExactCount', count: isOnlyOne ? 1 : draw.of([1, 1, 2, 3]) }),
    ...draw.maybe(0.4, () => ({ selectors: [{ cel: { expression: draw.of(SELECTORS) } }] })),
    ...draw.maybe(0.3, () => ({
      tolerations: [draw.of([{ operator: 'Exists' }, { key: 'k', operator: 'Equal', value: 'v' }])],
    })),
    ...draw.maybe(0.2, () => ({ capacity: { requests: { memory: draw.of(['1Gi', '1500Mi', '3Gi', '8Gi']) } } })),
  }
}

function requestOf(draw: Draw, at: number, isOnlyOne: boolean): DeviceRequest {
  const name = `r${at}`
  if (draw.chance(0.7)) return { name, exactly: wishOf(draw, isOnlyOne) }
  return {
    name,
    firstAvailable: times(draw.of([1, 2, 3]), (of) => ({ name: `s${of}`, ...wishOf(draw, isOnlyOne) })),
  }
}

function claimOf(draw: Draw, name: string): Made<ResourceClaim> {
  const constraint = draw.of<DeviceConstraint | undefined>([
    undefined,
    undefined,
    { matchAttribute: 'other.example.com/side' },
    { matchAttribute: 'a.example.com/index', requests: ['r0'] },
    { distinctAttribute: 'other.example.com/side' },
  ])
  // Of several devices for one request upstream compares only the last.
  const isOnlyOne = constraint?.distinctAttribute !== undefined
  const requests = times(draw.of([1, 1, 2, 3]), (at) => requestOf(draw, at, isOnlyOne))
  const config = draw.of([[{ opaque }], [{ opaque, requests: ['r0'] }], [{ opaque, requests: ['r0'] }, { opaque }]])
  return {
    metadata: { namespace: SPACE, name },
    spec: {
      devices: {
        requests,
        ...(constraint !== undefined && { constraints: [constraint] }),
        ...draw.maybe(0.3, () => ({ config })),
      },
    },
  }
}

/** `known`: claims that were made before, which several may use. */
function podOf(draw: Draw, at: number, known: string[]): DeviceCase['pods'][0] {
  const name = `p${at}`
  const isExtended = draw.chance(0.2)
  const shared = draw.chance(0.12) && known.length > 0 ? [draw.of(known)] : []
  const own = times(isExtended ? draw.below(2) : draw.of([1, 1, 2]), (of) => claimOf(draw, `${name}-${of}`))
  known.push(...own.map(({ metadata }) => metadata.name ?? ''))
  const resource = draw.of([RESOURCE, 'deviceclass.resource.kubernetes.io/b'])
  const asked = { [resource]: `${draw.of([1, 1, 2])}` }
  const resources = { requests: { cpu: '100m', ...(isExtended && asked) }, limits: isExtended ? asked : {} }
  const used = [...shared, ...own.map(({ metadata }) => metadata.name ?? '')]
  return {
    claims: own,
    pod: {
      metadata: { namespace: SPACE, name },
      spec: {
        containers: [{ name: 'c', image: 'img:1', resources }],
        ...(draw.chance(0.2) && {
          initContainers: [
            { name: 'i', image: 'img:1', resources: isExtended ? { requests: asked, limits: asked } : {} },
          ],
        }),
        resourceClaims: used.map((resourceClaimName, of) => ({ name: `c${of}`, resourceClaimName })),
        schedulingGates: [{ name: 'later' }],
      },
    },
  }
}
