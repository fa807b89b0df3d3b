/** Profiles made ready: every plugin of one is made once and takes part wherever it has something to say and is enabled. */
import { expandPoints, extendsPoint, type PluginSets, type Point, scoreWeights } from './extension-points.ts'
import type { Handle, Plugin } from './framework.ts'
import { DEFAULT_PLUGINS, PLUGIN_GATES, PLUGINS } from './plugins/index.ts'
import type { Enabled, Profile } from './profile.ts'

/** What is configured of a profile. */
export interface ProfileSettings {
  readonly name: string
  readonly percentageOfNodesToScore: number
  /** For all points at once, and for some. */
  readonly plugins: PluginSets
  /** By plugin. */
  readonly args: Readonly<Record<string, object>>
}

export const DEFAULT_PROFILE: ProfileSettings = {
  name: 'default-scheduler',
  percentageOfNodesToScore: 0,
  plugins: { multiPoint: { enabled: DEFAULT_PLUGINS.map(([name, weight = 0]) => ({ name, weight })) } },
  args: {},
}

/** Who has a say where. Throws upstream's texts for what cannot be. */
export function pointsOf({ name, plugins }: ProfileSettings): ReadonlyMap<Point, readonly string[]> {
  const points = expandPoints(plugins)
  scoreWeights(plugins)
  const sorting = points.get('queueSort')?.length ?? 0
  const whose = `for profile with scheduler name "${name}"`
  if (sorting !== 1) throw new Error(`only one queue sort plugin required ${whose}, but got ${sorting}`)
  if ((points.get('bind') ?? []).length === 0) throw new Error(`at least one bind plugin is needed ${whose}`)
  return points
}

/** Throws upstream's texts for what cannot be. */
export function createProfile(settings: ProfileSettings, handle: Handle): Profile {
  const { name, percentageOfNodesToScore, plugins, args } = settings
  const points = pointsOf(settings)
  const weights = scoreWeights(plugins)
  const made = new Map<string, Enabled>()
  // In the order of upstream's list, which is that of the points.
  for (const plugin of new Set([...points.values()].flat())) {
    const factory = PLUGINS.find((one) => one.name === plugin)
    const gate = PLUGIN_GATES.get(plugin)
    if (factory === undefined || (gate !== undefined && !handle.isEnabled(gate))) continue
    made.set(plugin, { name: plugin, plugin: factory.create(handle, args[plugin] ?? {}) })
  }
  const at = (point: Point, ...members: readonly (keyof Plugin)[]): Enabled[] =>
    (points.get(point) ?? [])
      .flatMap((plugin) => made.get(plugin) ?? [])
      .filter(({ plugin }) => members.some((member) => plugin[member] !== undefined))
  const filter = at('filter', 'filter', 'preFilter')
  // Ours may look a pod up once where upstream's does it at every node.
  const finders = filter.filter(
    ({ name: own, plugin }) => plugin.preFilter !== undefined && !extendsPoint(own, 'preFilter'),
  )
  return {
    name,
    percentageOfNodesToScore,
    plugins: [...made.values()],
    preEnqueue: at('preEnqueue', 'preEnqueue'),
    // There is one, or there would be no points.
    queueSort: at('queueSort', 'compare')[0] as Enabled,
    preFilter: [...at('preFilter', 'preFilter'), ...finders],
    filter,
    postFilter: at('postFilter', 'postFilter'),
    score: at('score', 'score', 'preScore').map((one) => ({ ...one, weight: weights.get(one.name) ?? 1 })),
    reserve: at('reserve', 'preFilter'),
    permit: at('permit', 'permit'),
    preBind: at('preBind', 'preFilter'),
    bind: at('bind', 'bind'),
    postBind: at('postBind', 'postBind'),
  }
}
