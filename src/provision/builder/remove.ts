/** Removes a cluster from its machines. */
import { applyPlan, type Progress } from '../apply/apply.ts'
import { observeCluster } from '../apply/observe.ts'
import { planRemoval } from '../plan/removal.ts'
import type { Plan } from '../plan/step.ts'
import type { ConvergeOptions } from './converge.ts'
import { progressLine } from './progress.ts'
import type { Session } from './session.ts'

/** Unreachable machines are notes of the plan. */
export async function planRemove(session: Session, clock: ConvergeOptions['clock']): Promise<Plan> {
  const { connections, api, stage } = session
  const desired = await session.desired(stage)
  const { hosts } = await observeCluster(desired, { reach: (name) => connections.reach(name), api, clock })
  return planRemoval(desired, hosts)
}

/** Resolves to the problems of machines that could not be restored. */
export async function removeCluster(
  session: Session,
  { say, isDebug = false, watcher, clock, signal }: ConvergeOptions,
): Promise<readonly string[]> {
  const { connections, api } = session
  const plan = await planRemove(session, clock)
  watcher?.planned(plan)
  const report = (progress: Progress): void => {
    watcher?.progressed(progress)
    const line = progressLine(progress, isDebug)
    if (line !== undefined) say(line)
  }
  const site = { machine: (name: string) => connections.machine(name), api, clock }
  const { failures } = await applyPlan(plan, site, report, signal)
  return [...plan.notes, ...failures.map(({ message }) => message)]
}
