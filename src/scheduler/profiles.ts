/** Profiles made ready: every plugin of one is made once and takes part wherever it has something to say. */
import type { Handle, Plugin } from './framework.ts'
import { DEFAULT_PLUGINS, PLUGINS } from './plugins/index.ts'
import type { Enabled, Profile, Scoring } from './profile.ts'

/** What is configured of a profile. */
export interface ProfileSettings {
  readonly name: string
  readonly percentageOfNodesToScore: number
  /** In order, with what their points count. */
  readonly plugins: readonly (readonly [name: string, weight?: number])[]
  /** By plugin. */
  readonly args: Readonly<Record<string, object>>
}

export const DEFAULT_PROFILE: ProfileSettings = {
  name: 'default-scheduler',
  percentageOfNodesToScore: 0,
  plugins: DEFAULT_PLUGINS,
  args: {},
}

/** Throws when nothing sorts the queue. */
export function createProfile(
  { name, percentageOfNodesToScore, plugins, args }: ProfileSettings,
  handle: Handle,
): Profile {
  const made: Scoring[] = plugins.flatMap(([plugin, weight = 0]) => {
    const factory = PLUGINS.find((one) => one.name === plugin)
    return factory === undefined ? [] : [{ name: plugin, weight, plugin: factory.create(handle, args[plugin] ?? {}) }]
  })
  const having = (...points: readonly (keyof Plugin)[]): Enabled[] =>
    made.filter(({ plugin }) => points.some((point) => plugin[point] !== undefined))
  const [queueSort] = having('compare')
  if (queueSort === undefined) throw new Error(`no queue sort plugin in profile ${name}`)
  // What was found out about a pod says itself whether it has more to say.
  const withCases = having('preFilter')
  return {
    name,
    percentageOfNodesToScore,
    plugins: made,
    preEnqueue: having('preEnqueue'),
    queueSort,
    preFilter: withCases,
    filter: having('filter', 'preFilter'),
    postFilter: having('postFilter'),
    score: made.filter(
      ({ plugin, weight }) => weight > 0 && (plugin.score !== undefined || plugin.preScore !== undefined),
    ),
    reserve: withCases,
    permit: having('permit'),
    preBind: withCases,
    bind: having('bind'),
    postBind: having('postBind'),
  }
}
