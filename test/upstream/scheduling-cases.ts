/** Generates random clusters and pods from a seed, with every scheduling constraint in combination. */
import type { Node, Pod, PodSpec } from '#apis/core/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Draw, HOST, type Loose, NAMESPACES, ZONE } from './draw.ts'
import { type Claim, type Given, podVolumes, volumesOf } from './scheduling-volumes.ts'

/** The emphasis of a generated cluster. */
export const FLAVOURS = ['rules', 'priorities', 'volumes', 'everything'] as const

type Flavour = (typeof FLAVOURS)[number]

export interface SchedulingCase {
  readonly flavour: Flavour
  /** The objects besides nodes and pods. */
  readonly given: readonly Given[]
  readonly nodes: readonly Loose<Node>[]
  /** With their node. */
  readonly placed: readonly Loose<Pod>[]
  /** To be decided about, one after the other. */
  readonly pods: readonly Loose<Pod>[]
  readonly claims: readonly Claim[]
}

const APPS = ['web', 'db', 'cache', 'batch']
/** Priority classes of different values; pods of the last one never preempt. */
const CLASSES = { low: -10, middle: 100, high: 10_000, polite: 10_000 }
export const PRIORITIES: readonly Given[] = Object.entries(CLASSES).map(([name, value]) => [
  PriorityClasses,
  { metadata: { name }, value, ...(name === 'polite' && { preemptionPolicy: 'Never' }) },
])

export function schedulingCase(seed: number, podCount: number): SchedulingCase {
  const draw = new Draw(createSeededRandom(seed))
  const flavour = FLAVOURS[seed % FLAVOURS.length] as Flavour
  const hasVolumes = flavour === 'volumes' || flavour === 'everything'
  const isTight = flavour === 'priorities' || flavour === 'everything'
  const count = draw.of([1, 2, 3, 5, 8, 20, 60, 200])
  const zones = draw.of([1, 2, 3, 4])
  const nodes = Array.from({ length: count }, (_, at) => nodeOf(draw, at, { zones, isTight }))
  const names = nodes.map(({ metadata }) => metadata?.name ?? '')
  const { given, claims } = hasVolumes ? volumesOf(draw, { nodes, zones }) : { given: [], claims: [] }
  const wanted = { names, claims, hasPriority: isTight }
  const crowd = draw.below(count * (isTight ? 6 : 3)) + 1
  const placed = Array.from({ length: crowd }, (_, at) =>
    podOf(draw, `placed-${at}`, { ...wanted, isPlain: draw.chance(0.6), node: draw.of(names) }),
  )
  const taken = new Set<string>()
  for (const { spec } of placed) keepOnePerPort(spec as PodSpec, taken)
  const pods = Array.from({ length: podCount }, (_, at) =>
    podOf(draw, `pod-${at}`, { ...wanted, isPlain: draw.chance(isTight ? 0.6 : 0.25), node: '' }),
  )
  return { flavour, given: [...given, ...(isTight ? budgetsOf(draw) : [])], nodes, placed, pods, claims }
}

/**
 * Removes pods that share a host port on a node. Upstream counts the port as free as soon as it simulates the removal
 * of one of them. No scheduled pods can be in that state.
 */
function keepOnePerPort({ nodeName, containers }: PodSpec, taken: Set<string>): void {
  for (const container of containers) {
    const id = `${nodeName} ${container.ports?.[0]?.hostPort}`
    if (taken.has(id)) delete container.ports
    else if (container.ports !== undefined) taken.add(id)
  }
}

/** Some protect those that they are about. */
function budgetsOf(draw: Draw): Given[] {
  return Array.from({ length: draw.below(4) }, (_, at): Given => {
    const metadata = { namespace: draw.of(NAMESPACES), name: `budget-${at}` }
    const selector = draw.of([
      { matchLabels: { app: draw.of(APPS) } },
      { matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
    ])
    const status = { disruptionsAllowed: draw.below(3), currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }
    return [PodDisruptionBudgets, { metadata, spec: { selector, maxUnavailable: 1 }, status }]
  })
}

function nodeOf(
  draw: Draw,
  at: number,
  { zones, isTight }: { readonly zones: number; readonly isTight: boolean },
): Loose<Node> {
  const name = `node-${at}`
  const labels = {
    [HOST]: name,
    ...draw.maybe(0.9, () => ({ [ZONE]: `zone-${at % zones}` })),
    ...draw.maybe(0.5, () => ({ disk: draw.of(['ssd', 'hdd']) })),
    ...draw.maybe(0.3, () => ({ size: String(draw.below(10)) })),
  }
  const taint = (): object => ({
    key: draw.of(['a', 'b']),
    ...draw.maybe(0.5, () => ({ value: draw.of(['x', 'y']) })),
    effect: draw.of(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  })
  const allocatable = {
    cpu: draw.of(isTight ? ['1', '2', '4'] : ['1', '4', '7500m', '16', '64']),
    memory: draw.of(isTight ? ['2Gi', '8Gi', '64Gi'] : ['1Gi', '10Gi', '64Gi', '256Gi']),
    pods: draw.of(isTight ? ['3', '6', '110'] : ['5', '20', '110', '110']),
    ...draw.maybe(0.3, () => ({ 'ephemeral-storage': '2Gi' })),
    ...draw.maybe(0.3, () => ({ 'example.com/gpu': draw.of(['1', '4']) })),
  }
  const images = Array.from({ length: draw.below(4) }, () => ({
    names: [`example.com/${draw.of(APPS)}:v1`],
    sizeBytes: draw.of([10, 30, 200, 900, 2000]) * 1024 * 1024,
  }))
  return {
    metadata: { name, labels },
    spec: {
      ...draw.maybe(0.1, () => ({ unschedulable: true })),
      ...draw.maybe(0.25, () => ({ taints: [taint()] })),
    },
    status: { allocatable, capacity: allocatable, images },
  }
}

interface Wanted {
  readonly isPlain: boolean
  readonly hasPriority: boolean
  readonly claims: readonly Claim[]
  readonly names: readonly string[]
  readonly node: string
}

function podOf(draw: Draw, name: string, { isPlain, hasPriority, names, claims, node }: Wanted): Loose<Pod> {
  const app = draw.of(APPS)
  const namespace = draw.of(NAMESPACES)
  // Those that are there are mostly less important than those that come.
  const classes = node === '' ? ['middle', 'high', 'high', 'polite'] : ['low', 'low', 'middle', 'high']
  const labels = { app, ...draw.maybe(0.4, () => ({ tier: draw.of(['front', 'back']) })) }
  const resources = (): object => ({
    requests: {
      ...draw.maybe(0.7, () => ({ cpu: draw.of(['50m', '100m', '400m', '1', '3']) })),
      ...draw.maybe(0.6, () => ({ memory: draw.of(['64Mi', '300Mi', '1Gi', '6Gi']) })),
      ...draw.maybe(0.1, () => ({ 'ephemeral-storage': '1Gi' })),
    },
    ...draw.maybe(0.08, () => ({ limits: { 'example.com/gpu': '1' }, requests: { 'example.com/gpu': '1' } })),
  })
  const container = (at: number): object => ({
    name: `c${at}`,
    image: draw.of([`example.com/${app}:v1`, 'other']),
    resources: resources(),
    ...(at === 0 && draw.maybe(0.15, () => ({ ports: [{ containerPort: 80, hostPort: draw.of([8080, 9090]) }] }))),
  })
  const spec = {
    containers: Array.from({ length: 1 + draw.below(2) }, (_, at) => container(at)),
    ...(node !== '' && { nodeName: node }),
    ...(hasPriority && draw.maybe(0.8, () => ({ priorityClassName: draw.of(classes) }))),
    ...(claims.length > 0 &&
      draw.maybe(node === '' ? 0.7 : 0.4, () => ({ volumes: podVolumes(draw, claims, namespace) }))),
    ...(isPlain ? {} : wishesOf(draw, names)),
  }
  return { metadata: { namespace, name, labels }, spec }
}

function wishesOf(draw: Draw, names: readonly string[]): object {
  return {
    ...draw.maybe(0.15, () => ({ nodeSelector: { disk: draw.of(['ssd', 'hdd']) } })),
    ...draw.maybe(0.4, () => ({ tolerations: [tolerationOf(draw)] })),
    ...draw.maybe(0.6, () => ({
      affinity: {
        ...draw.maybe(0.5, () => ({ nodeAffinity: nodeAffinityOf(draw, names) })),
        ...draw.maybe(0.4, () => ({ podAffinity: companyOf(draw) })),
        ...draw.maybe(0.4, () => ({ podAntiAffinity: companyOf(draw) })),
      },
    })),
    ...draw.maybe(0.4, () => ({ topologySpreadConstraints: spreadOf(draw) })),
  }
}

function tolerationOf(draw: Draw): object {
  return draw.chance(0.2)
    ? { operator: 'Exists' }
    : {
        key: draw.of(['a', 'b']),
        ...draw.of([{ operator: 'Exists' }, { operator: 'Equal', value: draw.of(['x', 'y']) }]),
        ...draw.maybe(0.4, () => ({ effect: draw.of(['NoSchedule', 'PreferNoSchedule', 'NoExecute']) })),
      }
}

function nodeAffinityOf(draw: Draw, names: readonly string[]): object {
  const expression = (): object =>
    draw.of([
      { key: 'disk', operator: 'In', values: ['ssd'] },
      { key: 'disk', operator: 'Exists' },
      { key: 'disk', operator: 'DoesNotExist' },
      { key: 'size', operator: 'Gt', values: ['4'] },
      { key: ZONE, operator: 'NotIn', values: ['zone-0'] },
      { key: ZONE, operator: 'In', values: ['zone-0', 'zone-1'] },
    ])
  const field = (): object => ({ key: 'metadata.name', operator: draw.of(['In', 'NotIn']), values: [draw.of(names)] })
  const term = (): object => ({
    matchExpressions: [expression()],
    ...draw.maybe(0.2, () => ({ matchFields: [field()] })),
  })
  return {
    ...draw.maybe(0.5, () => ({
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: Array.from({ length: 1 + draw.below(2) }, term),
      },
    })),
    ...draw.maybe(0.7, () => ({
      preferredDuringSchedulingIgnoredDuringExecution: Array.from({ length: 1 + draw.below(2) }, () => ({
        weight: 1 + draw.below(100),
        preference: term(),
      })),
    })),
  }
}

function companyOf(draw: Draw): object {
  const term = (): object => ({
    labelSelector: draw.of([
      { matchLabels: { app: draw.of(APPS) } },
      { matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
      { matchExpressions: [{ key: 'app', operator: 'In', values: [draw.of(APPS), draw.of(APPS)] }] },
    ]),
    topologyKey: draw.of([ZONE, HOST, 'disk']),
    ...draw.of([
      {},
      {},
      { namespaces: ['one'] },
      { namespaceSelector: {} },
      { namespaceSelector: { matchLabels: { n: 'two' } } },
    ]),
  })
  return {
    ...draw.maybe(0.5, () => ({
      requiredDuringSchedulingIgnoredDuringExecution: Array.from({ length: 1 + draw.below(2) }, term),
    })),
    ...draw.maybe(0.6, () => ({
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 + draw.below(100), podAffinityTerm: term() }],
    })),
  }
}

function spreadOf(draw: Draw): object[] {
  const keys = draw.of([[ZONE], [HOST], [ZONE, HOST], ['disk']])
  return keys.map((topologyKey) => {
    const whenUnsatisfiable = draw.of(['DoNotSchedule', 'ScheduleAnyway'])
    return {
      maxSkew: 1 + draw.below(3),
      topologyKey,
      whenUnsatisfiable,
      labelSelector: { matchLabels: { app: draw.of(APPS) } },
      ...(whenUnsatisfiable === 'DoNotSchedule' && draw.maybe(0.2, () => ({ minDomains: 1 + draw.below(4) }))),
      ...draw.maybe(0.2, () => ({ nodeAffinityPolicy: draw.of(['Honor', 'Ignore']) })),
      ...draw.maybe(0.2, () => ({ nodeTaintsPolicy: draw.of(['Honor', 'Ignore']) })),
      ...draw.maybe(0.2, () => ({ matchLabelKeys: ['tier'] })),
    }
  })
}
