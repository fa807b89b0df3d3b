/** Lists all conversion rules, for versions that differ from the storage version in more than apiVersion. */
import { customResourceDefinitionRule } from './custom-resource-definition.ts'
import { deviceRules } from './device.ts'
import { eventRule } from './event.ts'
import { horizontalPodAutoscalerRule } from './horizontal-pod-autoscaler/rule.ts'
import type { Rule } from './rule.ts'

export const rules: readonly Rule[] = [
  horizontalPodAutoscalerRule,
  eventRule,
  ...deviceRules,
  customResourceDefinitionRule,
]
