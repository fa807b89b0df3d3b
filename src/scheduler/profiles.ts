/**
 * Creates profiles: instantiates each plugin once and adds it to every extension point that it implements and that
 * enables it.
 */
import { expandPoints, extendsPoint, type PluginSets, type Point, scoreWeights } from './framework/extension-points.ts'
import type { Handle, Plugin } from './framework/framework.ts'
import type { EnabledPlugin, Profile } from './framework/profile.ts'
import { DEFAULT_PLUGINS, PLUGIN_GATES, PLUGINS } from './plugins/index.ts'

/** The configuration of a profile. */
export interface ProfileSettings {
  readonly name: string
  readonly percentageOfNodesToScore: number
  /** `multiPoint` and single extension points. */
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

/** The plugins of each extension point. Throws upstream's texts for an invalid configuration. */
export function pointsOf({ name, plugins }: ProfileSettings): ReadonlyMap<Point, readonly string[]> {
  const points = expandPoints(plugins)
  scoreWeights(plugins)
  const sorting = points.get('queueSort')?.length ?? 0
  const whose = `for profile with scheduler name "${name}"`
  if (sorting !== 1) throw new Error(`only one queue sort plugin required ${whose}, but got ${sorting}`)
  if ((points.get('bind') ?? []).length === 0) throw new Error(`at least one bind plugin is needed ${whose}`)
  return points
}

/** Throws upstream's texts for an invalid configuration. */
export function createProfile(settings: ProfileSettings, handle: Handle): Profile {
  const { name, percentageOfNodesToScore, plugins, args } = settings
  const points = pointsOf(settings)
  const weights = scoreWeights(plugins)
  const made = new Map<string, EnabledPlugin>()
  // In upstream's order of plugins.
  for (const plugin of new Set([...points.values()].flat())) {
    const factory = PLUGINS.find((one) => one.name === plugin)
    const gate = PLUGIN_GATES.get(plugin)
    if (factory === undefined || (gate !== undefined && !handle.isEnabled(gate))) continue
    made.set(plugin, { name: plugin, plugin: factory.create(handle, args[plugin] ?? {}) })
  }
  const at = (point: Point, ...members: readonly (keyof Plugin)[]): EnabledPlugin[] =>
    (points.get(point) ?? [])
      .flatMap((plugin) => made.get(plugin) ?? [])
      .filter(({ plugin }) => members.some((member) => plugin[member] !== undefined))
  const filter = at('filter', 'filter', 'preFilter')
  // Our plugins may use preFilter where upstream's look up the pod for every node.
  const finders = filter.filter(
    ({ name: own, plugin }) => plugin.preFilter !== undefined && !extendsPoint(own, 'preFilter'),
  )
  return {
    name,
    percentageOfNodesToScore,
    plugins: [...made.values()],
    preEnqueue: at('preEnqueue', 'preEnqueue'),
    // Exists: the configuration was validated.
    queueSort: at('queueSort', 'compare')[0] as EnabledPlugin,
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
