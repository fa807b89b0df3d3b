/** Predicates about pods, such as readiness and termination, for controllers, scheduler and kubelets. */
import type { Container, ContainerRestartRule, Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { findCondition, isConditionTrue } from '#meta/conditions.ts'
import { epochMsOf } from '#meta/time.ts'

/** True if it receives traffic. */
export function isReady({ status }: Pick<Pod, 'status'>): boolean {
  return isConditionTrue(conditionsOf(status.conditions), 'Ready')
}

/** Ready for at least the given time. */
export function isAvailable(pod: Pick<Pod, 'status'>, minReadySeconds: number, nowMs: number): boolean {
  if (!isReady(pod)) return false
  if (minReadySeconds === 0) return true
  const since = findCondition(conditionsOf(pod.status.conditions), 'Ready')?.lastTransitionTime
  return since !== undefined && epochMsOf(since) + minReadySeconds * 1000 <= nowMs
}

/** Its containers have terminated permanently. */
export function isTerminal({ status }: Pick<Pod, 'status'>): boolean {
  return isTerminalPhase(status.phase)
}

export function isTerminalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** Nothing of it runs now or later. */
export function isOver({ metadata, status }: Pick<Pod, 'status' | 'metadata'>): boolean {
  if (isTerminalPhase(status.phase)) return true
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
  const isStill = all.every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined)
  return metadata.deletionTimestamp !== undefined && isStill
}

/** Neither terminated nor deleted: the pods that a controller counts. */
export function isActive(pod: Pick<Pod, 'status' | 'metadata'>): boolean {
  return !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined
}

/** It has a node. */
export function isScheduled({ spec }: Pick<Pod, 'spec'>): boolean {
  return (spec.nodeName ?? '') !== ''
}

/** Times in pod conditions may be null. */
export function conditionsOf(
  conditions: readonly PodCondition[] | undefined,
): (Omit<PodCondition, 'lastTransitionTime'> & { lastTransitionTime?: string })[] {
  return (conditions ?? []).map(({ lastTransitionTime, ...rest }) =>
    lastTransitionTime === null ? rest : { ...rest, lastTransitionTime },
  )
}

/** Decides whether a container with this exit code restarts: by its rules, its policy, or the pod's policy. */
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

/** The first rule of a container that matches the exit code. */
export function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false
    return (exitCodes?.operator === 'In' && listed) || (exitCodes?.operator === 'NotIn' && !listed)
  })
}

/** True if a container may trigger a restart of all. */
export function allMayRestart({ containers, initContainers = [] }: PodSpec): boolean {
  return [...initContainers, ...(containers ?? [])].some(({ restartPolicyRules }) =>
    restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers'),
  )
}
