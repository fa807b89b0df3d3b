/** Evaluates the pod failure policy and the success policy of a Job. Pure. */
import type { Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule } from '#apis/batch/v1.ts'
import type { ContainerStatus, Pod } from '#apis/core/v1.ts'

import { countCommon, countIndexes, type Indexes, parseIndexes } from './indexes.ts'

export interface FailureVerdict {
  /** Whether the failure counts towards the backoff limits. */
  readonly isCounted: boolean
  readonly action?: string
  /** Why the Job fails because of it. */
  readonly message?: string
}

/** Applies the first matching rule. */
export function applyFailurePolicy({ spec }: Job, pod: Pod): FailureVerdict {
  for (const [index, rule] of (spec.podFailurePolicy?.rules ?? []).entries()) {
    const cause = causeFor(rule, pod)
    if (cause === undefined) continue
    const { action } = rule
    if (action === 'Ignore') return { isCounted: false, action }
    if (action !== 'FailJob') return { isCounted: true, action }
    return { isCounted: true, action, message: `${cause} matching ${action} rule at index ${index}` }
  }
  return { isCounted: true }
}

function causeFor(
  { onExitCodes, onPodConditions }: PodFailurePolicyRule,
  { status, metadata }: Pod,
): string | undefined {
  const name = `${metadata.namespace}/${metadata.name}`
  if (onExitCodes !== undefined) {
    const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]
    const container = all.find((one) => fits(onExitCodes, one))
    const code = container?.state?.terminated?.exitCode
    return container === undefined
      ? undefined
      : `Container ${container.name} for pod ${name} failed with exit code ${code}`
  }
  const condition = status.conditions?.find((one) =>
    onPodConditions?.some((pattern) => pattern.type === one.type && pattern.status === one.status),
  )
  return condition === undefined ? undefined : `Pod ${name} has condition ${condition.type}`
}

function fits(
  { containerName, operator, values }: PodFailurePolicyOnExitCodesRequirement,
  { name, state }: ContainerStatus,
): boolean {
  const code = state?.terminated?.exitCode ?? 0
  if (code === 0 || (containerName !== undefined && containerName !== name)) return false
  return operator === 'In' ? values.includes(code) : operator === 'NotIn' && !values.includes(code)
}

/** The message if the success policy is met. */
export function successMessage({ spec }: Job, succeeded: Indexes): string | undefined {
  if (succeeded.length === 0) return undefined
  const at = (spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) {
      return succeededCount !== undefined && countIndexes(succeeded) >= succeededCount
    }
    const wanted = parseIndexes(succeededIndexes, spec.completions ?? 0)
    const met = countCommon(wanted, succeeded)
    return (
      wanted.length > 0 && (met === countIndexes(wanted) || (succeededCount !== undefined && met >= succeededCount))
    )
  })
  return at < 0 ? undefined : `Matched rules at index ${at}`
}
