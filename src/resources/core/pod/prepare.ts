/** Prepares a pod before validation: initial status, label-derived selectors, profiles. */
import type { Pod } from '#apis/core/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import type { LabelSelector, LabelSelectorRequirement } from '#meta/label-selector.ts'
import { timeOf } from '#meta/time.ts'
import { computeQosClass } from '#model/pod-resources.ts'
import { podAffinityTerms } from '#model/pod-spec/affinity.ts'
import { alignServiceAccount } from '#model/pod-spec/defaults.ts'
import { dropDisabledPodFields } from '#model/pod-spec/gated-fields.ts'

import { syncAppArmor } from './app-armor.ts'

export function preparePodCreate(pod: Pod, context: WriteContext): void {
  // Admission may have set the service account.
  alignServiceAccount(pod.spec)
  dropDisabledPodFields(pod.spec, undefined, context)
  pod.status = { phase: 'Pending', qosClass: computeQosClass(pod.spec) }
  if ((pod.spec.schedulingGates ?? []).length > 0) {
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastProbeTime: null,
        lastTransitionTime: timeOf(context.clock.now()),
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ]
  }
  mergeLabelKeys(pod, context)
  syncAppArmor(pod)
}

export function preparePodUpdate(next: Pod, old: Pod, context: WriteContext): void {
  alignServiceAccount(next.spec)
  dropDisabledPodFields(next.spec, old.spec, context)
}

/** matchLabelKeys and mismatchLabelKeys become part of the selectors, once. */
function mergeLabelKeys({ metadata, spec }: Pod, { isEnabled }: WriteContext): void {
  const { labels = {} } = metadata
  for (const { labelSelector, matchLabelKeys, mismatchLabelKeys } of podAffinityTerms(spec.affinity)) {
    merge(labelSelector, matchLabelKeys, 'In', labels)
    merge(labelSelector, mismatchLabelKeys, 'NotIn', labels)
  }
  const spread = 'MatchLabelKeysInPodTopologySpread'
  if (!isEnabled(spread) || !isEnabled(`${spread}SelectorMerge`)) return
  for (const { labelSelector, matchLabelKeys } of spec.topologySpreadConstraints ?? []) {
    merge(labelSelector, matchLabelKeys, 'In', labels)
  }
}

/** Without a selector no pod matches. */
function merge(
  selector: LabelSelector | undefined,
  keys: readonly string[] = [],
  operator: LabelSelectorRequirement['operator'],
  labels: Readonly<Record<string, string>>,
): void {
  if (selector === undefined) return
  const more = keys
    .filter((key) => Object.hasOwn(labels, key))
    .map((key) => ({ key, operator, values: [labels[key] ?? ''] }))
  if (more.length > 0) selector.matchExpressions = [...(selector.matchExpressions ?? []), ...more]
}
