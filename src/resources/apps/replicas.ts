/** Validation rules that Deployments and ReplicaSets share. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplateForSelector } from '#model/pod-spec/pod-template.ts'

import { isEmptySelector, selectorOf } from '../workload.ts'

interface SelectorAndTemplate {
  readonly selector: LabelSelector | null
  readonly template: PodTemplateSpec
}

/** A non-empty selector, and a pod template that it matches. */
export function validateSelectedTemplate(
  { selector, template }: SelectorAndTemplate,
  old: PodTemplateSpec | undefined,
  context: RuleContext,
): FieldError[] {
  const meant = selectorOf(selector)
  const options = podTemplateOptions(context, old)
  return [
    ...validateSelector(selector, 'deployment'),
    ...(meant === undefined
      ? [fieldPath('spec.selector').invalid(selector, 'invalid label selector')]
      : validatePodTemplateForSelector(template, fieldPath('spec.template'), {
          selector: meant,
          kind: 'ReplicaSet',
          options,
        })),
  ]
}

/** `kind`: the name in the error for an empty selector. */
export function validateSelector(selector: LabelSelector | null, kind: string): FieldError[] {
  if (selector === null) return [fieldPath('spec.selector').required()]
  const errors = validateLabelSelector(fieldPath('spec.selector'), selector)
  if (!isEmptySelector(selector)) return errors
  return [...errors, fieldPath('spec.selector').invalid(selector, `empty selector is invalid for ${kind}`)]
}

interface TerminatingCount {
  terminatingReplicas?: number
}

/** A count behind a feature gate. */
export function dropTerminatingReplicas(
  next: TerminatingCount | undefined,
  old: TerminatingCount | undefined,
  { isEnabled }: RuleContext,
): void {
  if (next === undefined || isEnabled('DeploymentReplicaSetTerminatingReplicas')) return
  if (old?.terminatingReplicas === undefined) delete next.terminatingReplicas
}
