/**
 * From a decision to a pod on its node. The pod counts as there at once; then everybody who has a say may prepare the
 * ground, wait, or refuse, and the API server is told. Whatever goes wrong, what was reserved is given back.
 */
import { sleep } from '#lib/clock.ts'
import { durationOfMs } from '#meta/duration.ts'

import type { Case, Cases, Handle, PluginRefusal, Verdict, Wait } from './framework.ts'
import type { NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'
import type { Enabled, Profile } from './profile.ts'

export interface Choice {
  readonly profile: Profile
  readonly pod: PodInfo
  readonly node: NodeInfo
  readonly cases: Cases
}

/** In order; those that had reserved when one refuses give back, last first. */
export function reserve({ profile, node, cases }: Choice): PluginRefusal | undefined {
  for (const [at, { name }] of profile.reserve.entries()) {
    const verdict = cases.get(name)?.reserve?.(node)
    if (verdict === undefined) continue
    // Nothing has been written: it takes no time.
    void Promise.all(giveBack(profile.reserve.slice(0, at + 1), node, cases))
    return { ...verdict, plugin: name }
  }
  return undefined
}

/** A promise where it takes time. */
export function unreserve({ profile, node, cases }: Choice): Promise<unknown> | undefined {
  const undoing = giveBack(profile.reserve, node, cases)
  return undoing.length === 0 ? undefined : Promise.all(undoing)
}

function giveBack(plugins: readonly Enabled[], node: NodeInfo, cases: Cases): readonly Promise<void>[] {
  return plugins.toReversed().flatMap(({ name }) => cases.get(name)?.unreserve?.(node) ?? [])
}

/** Who want to wait, by name, and why, in upstream's words. */
export interface Waiting {
  readonly waits: readonly (readonly [plugin: string, wait: Wait])[]
  readonly reason: string
}

/** What all say who may hold the pod back; nobody waits yet. Undefined: nobody wants to. */
export function askPermission({ profile, pod, node }: Choice): PluginRefusal | Waiting | undefined {
  const waits: (readonly [string, Wait])[] = []
  for (const { name, plugin } of profile.permit) {
    const verdict = plugin.permit?.(pod, node)
    if (verdict === undefined) continue
    if ('code' in verdict) return wrapped('Permit', name, verdict)
    waits.push([name, verdict])
  }
  const last = waits.at(-1)?.[1]
  if (last === undefined) return undefined
  return { waits, reason: `${last.reason}, one or more plugins asked to wait and no plugin rejected pod` }
}

/** All who want to wait, together: resolves when the last allows, or the first refuses. Undefined: nobody wants to. */
export function permit(
  choice: Choice,
  { clock }: Pick<Handle, 'clock'>,
): PluginRefusal | Promise<PluginRefusal | undefined> | undefined {
  const permission = askPermission(choice)
  if (permission === undefined || 'code' in permission) return permission
  const over = new AbortController()
  const verdicts = permission.waits.map(([plugin, wait]) => waitFor(plugin, wait, clock, over.signal))
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

/** Whether somebody still has to prepare the ground; until then the pod is nominated. */
export function willWait({ profile, node, cases }: Choice): boolean {
  return profile.preBind.some(({ name }) => cases.get(name)?.willPreBind?.(node) === true)
}

export async function preBind(
  { profile, node, cases }: Choice,
  signal: AbortSignal,
): Promise<PluginRefusal | undefined> {
  for (const { name } of profile.preBind) {
    const own: Case | undefined = cases.get(name)
    if (own?.preBind === undefined) continue
    const verdict = await own.preBind(node, signal)
    if (verdict !== undefined) return wrapped('PreBind', name, verdict)
  }
  return undefined
}

/** By the first who says that it is theirs to bind. */
export async function bind({ profile, pod, node }: Choice, signal: AbortSignal): Promise<PluginRefusal | undefined> {
  for (const { name, plugin } of profile.bind) {
    const doing = plugin.bind?.(pod, node.name, signal)
    if (doing === undefined) continue
    const verdict = await doing
    return verdict === undefined ? undefined : wrapped('Bind', name, verdict)
  }
  return { code: 'error', reasons: ['no bind plugin'], plugin: '' }
}

/** What broke is told with the place where it broke; a refusal speaks for itself. */
function wrapped(point: string, plugin: string, { code, reasons }: NonNullable<Verdict>): PluginRefusal {
  if (code !== 'error') return { code, reasons, plugin }
  return { code, reasons: [`running ${point} plugin "${plugin}": ${reasons.join(', ')}`], plugin }
}
