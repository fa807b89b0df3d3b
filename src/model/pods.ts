/** Questions about pods that controllers, the scheduler and kubelets all ask. */
import type { Container, ContainerRestartRule, Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { findCondition, isConditionTrue } from '#meta/conditions.ts'
import { epochMsOf } from '#meta/time.ts'

/** Whether it takes traffic. */
export function isReady({ status }: Pick<Pod, 'status'>): boolean {
  return isConditionTrue(conditionsOf(status.conditions), 'Ready')
}

/** Ready for at least that long. */
export function isAvailable(pod: Pick<Pod, 'status'>, minReadySeconds: number, nowMs: number): boolean {
  if (!isReady(pod)) return false
  if (minReadySeconds === 0) return true
  const since = findCondition(conditionsOf(pod.status.conditions), 'Ready')?.lastTransitionTime
  return since !== undefined && epochMsOf(since) + minReadySeconds * 1000 <= nowMs
}

/** Its containers have ended for good. */
export function isTerminal({ status }: Pick<Pod, 'status'>): boolean {
  return isTerminalPhase(status.phase)
}

export function isTerminalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** Nothing of it runs any more, and nothing will. */
export function isOver({ metadata, status }: Pick<Pod, 'status' | 'metadata'>): boolean {
  if (isTerminalPhase(status.phase)) return true
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
  const isStill = all.every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined)
  return metadata.deletionTimestamp !== undefined && isStill
}

/** Neither ended nor about to be: what a controller counts. */
export function isActive(pod: Pick<Pod, 'status' | 'metadata'>): boolean {
  return !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined
}

/** A node has been found for it. */
export function isScheduled({ spec }: Pick<Pod, 'spec'>): boolean {
  return (spec.nodeName ?? '') !== ''
}

/** Conditions of pods may carry null for a time, where others have nothing. */
export function conditionsOf(
  conditions: readonly PodCondition[] | undefined,
): (Omit<PodCondition, 'lastTransitionTime'> & { lastTransitionTime?: string })[] {
  return (conditions ?? []).map(({ lastTransitionTime, ...rest }) =>
    lastTransitionTime === null ? rest : { ...rest, lastTransitionTime },
  )
}

/** Whether a container that ended with this code starts again: by its rules, its own policy, the policy of its pod. */
export function shouldRestart(container: Container, spec: PodSpec, exitCode: number): boolean {
  if (container.restartPolicy !== undefined) {
    const action = matchingRule(container, exitCode)?.action
    if (action === 'Restart' || action === 'RestartAllContainers') return true
  }
  switch (container.restartPolicy ?? spec.restartPolicy) {
    case 'OnFailure':
      return exitCode !== 0
    case 'Never':
      return false
    default:
      return true
  }
}

/** The first of a container's rules that speaks of this exit code. */
export function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false
    return (exitCodes?.operator === 'In' && listed) || (exitCodes?.operator === 'NotIn' && !listed)
  })
}

/** Whether some container, by ending, may start all of them again. */
export function allMayRestart({ containers, initContainers = [] }: PodSpec): boolean {
  return [...initContainers, ...(containers ?? [])].some(({ restartPolicyRules }) =>
    restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers'),
  )
}
