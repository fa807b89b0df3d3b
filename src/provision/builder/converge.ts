/**
 * Brings a cluster to the state in its cluster.yml, in stages. Each stage is planned from the observed state, applied
 * and recorded.
 */
import type { Clock } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'

import { applyPlan, type Progress, StepError } from '../apply/apply.ts'
import { observeCluster } from '../apply/observe.ts'
import type { DesiredCluster } from '../desired.ts'
import { planCluster } from '../plan/plan.ts'
import type { PlanOptions } from '../plan/planning.ts'
import { planAfterwards } from '../plan/renewal.ts'
import type { Plan } from '../plan/step.ts'
import { progressLine } from './progress.ts'
import type { Session } from './session.ts'

/** Learns of every plan before it is applied, and of its steps. */
export interface StepWatcher {
  planned(plan: Plan): void
  progressed(progress: Progress): void
}

export interface ConvergeOptions {
  readonly say: (text: string) => void
  /** True if the start of a step should be printed. */
  readonly isDebug?: boolean
  readonly watcher?: StepWatcher
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Returns the number of completed steps. Throws ProgramError with the cause of a failure. */
export async function converge(session: Session, options: PlanOptions, bringing: ConvergeOptions): Promise<number> {
  if (session.restoring !== undefined)
    throw new ProgramError(
      `Restoring snapshot "${session.restoring}" was begun and not ended: run "etcd snapshot-restore --name ${session.restoring}" again`,
    )
  const sent = await uploadProgram(session, bringing.say)
  let done = 0
  for (const stage of session.stages) {
    await session.begin(stage)
    await session.saveKubeconfig(stage)
    const desired = await session.desired(stage)
    // Nodes leave with the first stage.
    const wanted = stage === session.stage ? desired : { ...desired, leaving: [] }
    const plan = await planFor(session, wanted, options, bringing.clock)
    // The same for every stage.
    if (stage === session.stage) for (const note of plan.notes) bringing.say(`note: ${note}`)
    done += await applyChecked(session, plan, bringing)
    if (stage.after !== undefined) done += await applyChecked(session, planAfterwards(stage.after), bringing)
    // The first control plane of the file may respond now.
    if (done > 0) await session.saveKubeconfig(stage)
  }
  await session.finish()
  await clearPrograms(session, sent, bringing.signal)
  return done
}

const CLEAR_MS = 60_000

/** Every service runs the new program by now. A failure here only leaves files on a disk. */
async function clearPrograms({ connections }: Session, names: readonly string[], signal: AbortSignal): Promise<void> {
  const clear = async (name: string): Promise<void> => {
    const command = [`${await connections.program(name)}/bin/hyperkube`, 'machine', 'old-programs']
    await (await connections.machine(name)).run({ command, timeoutMs: CLEAR_MS }, signal)
  }
  await Promise.allSettled(names.map(clear))
}

export async function planFor(
  { connections, api }: Session,
  desired: DesiredCluster,
  options: PlanOptions,
  clock: Clock,
): Promise<Plan> {
  const sight = { reach: (name: string) => connections.reach(name), api, clock }
  return planCluster(desired, await observeCluster(desired, sight), options)
}

/** Throws ProgramError if the plan is blocked or a step failed. */
export async function applyChecked(
  { connections, api }: Session,
  plan: Plan,
  { say, isDebug = false, watcher, clock, signal }: ConvergeOptions,
): Promise<number> {
  if (plan.faults.length > 0)
    throw new ProgramError(`Nothing was changed:\n${plan.faults.map((text) => `  ${text}`).join('\n')}`)
  const site = { machine: (name: string) => connections.machine(name), api, clock }
  watcher?.planned(plan)
  const tell = (progress: Progress): void => {
    watcher?.progressed(progress)
    const line = progressLine(progress, isDebug)
    if (line !== undefined) say(line)
  }
  const { done, failures } = await applyPlan(plan, site, tell, signal).catch((error: unknown) => {
    if (error instanceof StepError)
      throw new ProgramError(`${error.message}\nRun it again to finish the work.`, { cause: error })
    throw error
  })
  if (failures.length > 0) {
    const list = failures.map(({ message }) => `  ${message}`).join('\n')
    throw new ProgramError(`Provisioning incomplete:\n${list}\nRun it again to finish the work.`)
  }
  return done
}

/**
 * Uploads the program to machines without this version and resolves to their names. The plan reports unreachable
 * machines.
 */
export async function uploadProgram(
  { cluster, leaving, connections }: Session,
  say: (text: string) => void,
): Promise<string[]> {
  const sent: string[] = []
  const bring = async (name: string): Promise<void> => {
    if ((await connections.reach(name)) !== undefined) return
    await connections.machine(name)
    sent.push(name)
    say(`[program] ${name}: sent`)
  }
  const names = new Set([...cluster.nodes, ...leaving].map(({ hostname_override: name }) => name))
  await Promise.allSettled([...names].map(bring))
  const here = new Set(cluster.nodes.map(({ hostname_override: name }) => name))
  return sent.filter((name) => here.has(name))
}
