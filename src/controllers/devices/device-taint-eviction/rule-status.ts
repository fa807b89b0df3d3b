/** Computes the status of a DeviceTaintRule: how many pods it evicts, or would evict. Pure. */
import type { DeviceTaintRule } from '#apis/resource/v1beta2.ts'

/** The effect of a rule. */
export interface RuleImpact {
  readonly publishedDevices: number
  readonly allocatedDevices: number
  readonly pods: number
  readonly namespaces: number
  /** Since the start of the controller. */
  readonly evicted: number
}

export interface RuleCondition {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

export function ruleCondition({ spec: { taint } }: DeviceTaintRule, reach: RuleImpact): RuleCondition {
  const base = conditionFor(taint.effect, reach)
  const { evicted } = reach
  const past = evicted === 0 ? '' : `${counted(evicted, 'pod', 'pods')} evicted since starting the controller.`
  return { ...base, message: [base.message, past].filter((part) => part !== '').join(' ') }
}

function conditionFor(effect: string, reach: RuleImpact): RuleCondition {
  const { publishedDevices, allocatedDevices, pods, namespaces, evicted } = reach
  const places = counted(namespaces, 'namespace', 'different namespaces')
  if (effect === 'NoExecute') {
    if (pods === 0) return { status: 'False', reason: evicted > 0 ? 'Completed' : 'NotStarted', message: '' }
    const message = `${counted(pods, 'pod needs', 'pods need')} to be evicted in ${places}.`
    return { status: 'True', reason: 'PodsPendingEviction', message }
  }
  if (effect === 'None') {
    const selected = `${counted(publishedDevices, 'published device', 'published devices')} selected. ${counted(allocatedDevices, 'allocated device', 'allocated devices')} selected.`
    const would = `${counted(pods, 'pod', 'pods')} would be evicted in ${places} if the effect was NoExecute.`
    const message = `${selected} ${would} This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.`
    return { status: 'False', reason: 'NoEffect', message }
  }
  return { status: 'False', reason: 'OtherEffect', message: 'Eviction only happens for the NoExecute effect.' }
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}
