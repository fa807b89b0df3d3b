/**
 * The extension points by upstream's names, and their ordered plugin lists. Plugins of `multiPoint` and of single
 * points are merged into one list for each.
 */

/** In upstream's order; the last two belong to gates that are off. */
export const POINTS = [
  'preFilter',
  'filter',
  'postFilter',
  'reserve',
  'preScore',
  'score',
  'preBind',
  'bind',
  'postBind',
  'permit',
  'preEnqueue',
  'queueSort',
  'placementGenerate',
  'placementScore',
] as const

export type Point = (typeof POINTS)[number]

export interface PluginSetting {
  readonly name: string
  readonly weight?: number
}

export interface PluginSet {
  readonly enabled?: readonly PluginSetting[]
  /** `*`: all default plugins. */
  readonly disabled?: readonly PluginSetting[]
}

export type PluginSets = Readonly<Partial<Record<Point | 'multiPoint', PluginSet>>>

/** Every plugin of upstream with its extension points. */
const EXTENDS: Readonly<Record<string, readonly Point[]>> = {
  SchedulingGates: ['preEnqueue'],
  PrioritySort: ['queueSort'],
  NodeUnschedulable: ['filter'],
  NodeName: ['filter'],
  TaintToleration: ['filter', 'preScore', 'score'],
  NodeAffinity: ['preFilter', 'filter', 'preScore', 'score'],
  NodePorts: ['preFilter', 'filter'],
  NodeResourcesFit: ['preFilter', 'filter', 'preScore', 'score', 'placementScore'],
  VolumeRestrictions: ['preFilter', 'filter'],
  NodeVolumeLimits: ['preFilter', 'filter'],
  VolumeBinding: ['preFilter', 'filter', 'reserve', 'preScore', 'score', 'preBind'],
  VolumeZone: ['preFilter', 'filter'],
  PodTopologySpread: ['preFilter', 'filter', 'preScore', 'score'],
  InterPodAffinity: ['preFilter', 'filter', 'preScore', 'score'],
  DynamicResources: ['preEnqueue', 'preFilter', 'filter', 'postFilter', 'reserve', 'score', 'preBind'],
  DefaultPreemption: ['preEnqueue', 'postFilter'],
  NodeResourcesBalancedAllocation: ['preScore', 'score'],
  ImageLocality: ['score'],
  DefaultBinder: ['bind'],
  NodeDeclaredFeatures: ['preFilter', 'filter'],
  GangScheduling: ['preEnqueue', 'permit'],
  TopologyPlacementGenerator: ['placementGenerate'],
  PodGroupPodsCount: ['placementScore'],
}

export function extendsPoint(plugin: string, point: Point): boolean {
  return EXTENDS[plugin]?.includes(point) === true
}

/** The plugin names of each point, in order. Throws upstream's texts for an invalid set. */
export function expandPoints(sets: PluginSets): ReadonlyMap<Point, readonly string[]> {
  const all = sets.multiPoint?.enabled ?? []
  const own = new Map(POINTS.map((point) => [point, namesAt(sets, point)]))
  const [unknown] = all.filter(({ name }) => !Object.hasOwn(EXTENDS, name))
  if (unknown !== undefined) throw new Error(`${typeName('preFilter')} "${unknown.name}" does not exist`)
  return new Map(POINTS.map((point) => [point, withMultiPoint(own.get(point) ?? [], sets, point)]))
}

function namesAt(sets: PluginSets, point: Point): string[] {
  const names: string[] = []
  for (const { name } of sets[point]?.enabled ?? []) {
    if (!Object.hasOwn(EXTENDS, name)) throw new Error(`${typeName(point)} "${name}" does not exist`)
    if (!extendsPoint(name, point)) throw new Error(`plugin "${name}" does not extend ${typeName(point)} plugin`)
    if (names.includes(name)) throw new Error(`plugin "${name}" already registered as "${typeName(point)}"`)
    names.push(name)
  }
  return names
}

/** First the point's own plugins that are also default, then those of all points, then the point's other plugins. */
function withMultiPoint(own: readonly string[], sets: PluginSets, point: Point): string[] {
  const disabled = new Set((sets[point]?.disabled ?? []).map(({ name }) => name))
  if (disabled.has('*')) return [...own]
  const everywhere = (sets.multiPoint?.enabled ?? [])
    .map(({ name }) => name)
    .filter((name) => extendsPoint(name, point) && !disabled.has(name))
  const twice = everywhere.find((name, at) => everywhere.indexOf(name) !== at)
  if (twice !== undefined) throw new Error(`plugin "${twice}" already registered as "${typeName(point)}"`)
  const overriding = own.filter((name) => everywhere.includes(name))
  return [
    ...overriding,
    ...everywhere.filter((name) => !own.includes(name)),
    ...own.filter((name) => !overriding.includes(name)),
  ]
}

/** `PreFilterPlugin`. */
function typeName(point: Point): string {
  return `${point.slice(0, 1).toUpperCase()}${point.slice(1)}Plugin`
}

/** The maximum sum of weights in upstream. */
const MAX_TOTAL = 2n ** 63n - 1n

/** The weight of each plugin: that of `score`, else that of multiPoint, else 1. */
export function scoreWeights(sets: PluginSets): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  let total = 0n
  for (const { name, weight = 0 } of [...(sets.score?.enabled ?? []), ...(sets.multiPoint?.enabled ?? [])]) {
    if (weights.has(name) || !extendsPoint(name, 'score')) continue
    weights.set(name, weight === 0 ? 1 : weight)
    total += BigInt(weight === 0 ? 1 : weight) * 100n
    if (total > MAX_TOTAL) throw new Error('total score of Score plugins could overflow')
  }
  return weights
}
