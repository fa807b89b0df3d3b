/**
 * Runs the Reserve, Permit, PreBind and Bind plugins for an assignment. If one rejects the pod, the caller calls
 * `unreserve`.
 */
import { sleep } from '#lib/clock.ts'
import { durationOfMs } from '#lib/go/duration.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { CycleState, Handle, PluginRefusal, PluginState, Verdict, Wait } from '../framework/framework.ts'
import type { EnabledPlugin, Profile } from '../framework/profile.ts'

export interface Assignment {
  readonly profile: Profile
  readonly pod: PodInfo
  readonly node: NodeInfo
  readonly cycleState: CycleState
}

/** Runs Reserve plugins in order. If one rejects the pod, unreserves all that ran, last first. */
export function reserve({ profile, node, cycleState }: Assignment): PluginRefusal | undefined {
  for (const [at, { name }] of profile.reserve.entries()) {
    const verdict = cycleState.get(name)?.reserve?.(node)
    if (verdict === undefined) continue
    // Nothing has been written yet, so this needs no wait.
    void Promise.all(unreserveAll(profile.reserve.slice(0, at + 1), node, cycleState))
    return { ...verdict, plugin: name }
  }
  return undefined
}

/** Returns a promise only if a plugin has something to undo asynchronously. */
export function unreserve({ profile, node, cycleState }: Assignment): Promise<unknown> | undefined {
  const undoing = unreserveAll(profile.reserve, node, cycleState)
  return undoing.length === 0 ? undefined : Promise.all(undoing)
}

function unreserveAll(
  plugins: readonly EnabledPlugin[],
  node: NodeInfo,
  cycleState: CycleState,
): readonly Promise<void>[] {
  return plugins.toReversed().flatMap(({ name }) => cycleState.get(name)?.unreserve?.(node) ?? [])
}

/** The plugins that wait, by name, and upstream's message. */
export interface PermitWait {
  readonly waits: readonly (readonly [plugin: string, wait: Wait])[]
  readonly reason: string
}

/** Runs all Permit plugins without waiting. Undefined: all approve. */
export function runPermitPlugins({ profile, pod, node }: Assignment): PluginRefusal | PermitWait | undefined {
  const waits: (readonly [string, Wait])[] = []
  for (const { name, plugin } of profile.permit) {
    const verdict = plugin.permit?.(pod, node)
    if (verdict === undefined) continue
    if ('code' in verdict) return withExtensionPoint('Permit', name, verdict)
    waits.push([name, verdict])
  }
  const last = waits.at(-1)?.[1]
  if (last === undefined) return undefined
  return { waits, reason: `${last.reason}, one or more plugins asked to wait and no plugin rejected pod` }
}

/**
 * Waits for all Permit plugins: resolves when the last one approves or the first one rejects. Undefined: none waits.
 */
export function permit(
  assignment: Assignment,
  { clock }: Pick<Handle, 'clock'>,
): PluginRefusal | Promise<PluginRefusal | undefined> | undefined {
  const outcome = runPermitPlugins(assignment)
  if (outcome === undefined || 'code' in outcome) return outcome
  const over = new AbortController()
  const verdicts = outcome.waits.map(([plugin, wait]) => waitFor(plugin, wait, clock, over.signal))
  const refused = Promise.withResolvers<PluginRefusal>()
  for (const verdict of verdicts) void verdict.then((one) => one !== undefined && refused.resolve(one))
  const all = Promise.all(verdicts).then(() => undefined)
  return Promise.race([refused.promise, all]).finally(() => over.abort())
}

async function waitFor(
  plugin: string,
  wait: Wait,
  clock: Handle['clock'],
  over: AbortSignal,
): Promise<PluginRefusal | undefined> {
  const own = new AbortController()
  const end = AbortSignal.any([over, own.signal])
  const late = `rejected due to timeout after waiting ${durationOfMs(wait.timeoutMs)} at plugin ${plugin}`
  const timeout = sleep(clock, wait.timeoutMs, end).then(
    (): Verdict => ({ code: 'unschedulable', reasons: [late] }),
    () => undefined,
  )
  const verdict = await Promise.race([wait.decided(end), timeout])
  own.abort()
  return verdict === undefined ? undefined : { ...verdict, plugin }
}

/** Whether a PreBind plugin has work to do; the pod is nominated until then. */
export function hasPreBindWork({ profile, node, cycleState }: Assignment): boolean {
  return profile.preBind.some(({ name }) => cycleState.get(name)?.willPreBind?.(node) === true)
}

export async function preBind(
  { profile, node, cycleState }: Assignment,
  signal: AbortSignal,
): Promise<PluginRefusal | undefined> {
  for (const { name } of profile.preBind) {
    const own: PluginState | undefined = cycleState.get(name)
    if (own?.preBind === undefined) continue
    const verdict = await own.preBind(node, signal)
    if (verdict !== undefined) return withExtensionPoint('PreBind', name, verdict)
  }
  return undefined
}

/** The first plugin that handles this pod binds it. */
export async function bind(
  { profile, pod, node }: Assignment,
  signal: AbortSignal,
): Promise<PluginRefusal | undefined> {
  for (const { name, plugin } of profile.bind) {
    const doing = plugin.bind?.(pod, node.name, signal)
    if (doing === undefined) continue
    const verdict = await doing
    return verdict === undefined ? undefined : withExtensionPoint('Bind', name, verdict)
  }
  return { code: 'error', reasons: ['no bind plugin'], plugin: '' }
}

/** Names plugin and extension point in an error; a rejection keeps its reasons. */
function withExtensionPoint(point: string, plugin: string, { code, reasons }: NonNullable<Verdict>): PluginRefusal {
  if (code !== 'error') return { code, reasons, plugin }
  return { code, reasons: [`running ${point} plugin "${plugin}": ${reasons.join(', ')}`], plugin }
}
