/** What Deployments and the ReplicaSets they make have in common. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplateForSelector } from '#model/pod-spec/pod-template.ts'

import { isEmptySelector, selectorOf } from '../workload.ts'

interface Selecting {
  readonly selector: LabelSelector | null
  readonly template: PodTemplateSpec
}

/** A selector that selects something, and a template of pods that it selects. */
export function validateSelectedTemplate(
  { selector, template }: Selecting,
  old: PodTemplateSpec | undefined,
  context: RuleContext,
): FieldError[] {
  const meant = selectorOf(selector)
  const options = podTemplateOptions(context, old)
  return [
    ...validateSelector(selector, 'deployment'),
    ...(meant === undefined
      ? [invalid('spec.selector', selector, 'invalid label selector')]
      : validatePodTemplateForSelector(template, 'spec.template', { selector: meant, kind: 'ReplicaSet', options })),
  ]
}

/** `kind`: as the complaint about an empty selector names it. */
export function validateSelector(selector: LabelSelector | null, kind: string): FieldError[] {
  if (selector === null) return [required('spec.selector')]
  const errors = validateLabelSelector('spec.selector', selector)
  if (!isEmptySelector(selector)) return errors
  return [...errors, invalid('spec.selector', selector, `empty selector is invalid for ${kind}`)]
}

interface Terminating {
  terminatingReplicas?: number
}

/** A count that only exists behind its gate. */
export function dropTerminatingReplicas(
  next: Terminating | undefined,
  old: Terminating | undefined,
  { isEnabled }: RuleContext,
): void {
  if (next === undefined || isEnabled('DeploymentReplicaSetTerminatingReplicas')) return
  if (old?.terminatingReplicas === undefined) delete next.terminatingReplicas
}
