/** Validates pod templates, and the additional rules of workloads for them. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { matchesLabels, type Selector } from '#meta/labels.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { validateAnnotations, validateLabels } from '#meta/validation/rules.ts'

import { validatePodAnnotations, validateProfilesAgree } from './annotations.ts'
import { validatePodSpec } from './pod-spec.ts'
import type { PodOptions } from './rules.ts'

/** Upstream's paths of labels and annotations lack `metadata`. */
export function validatePodTemplate(template: PodTemplateSpec, path: FieldPath, options: PodOptions): FieldError[] {
  const { metadata, spec } = template
  return collectErrors(
    validateLabels(path.child('labels'), metadata.labels),
    validateAnnotations(path.child('annotations'), metadata.annotations),
    validatePodAnnotations(path.child('annotations'), template, options),
    validatePodSpec(spec, path.child('spec'), options),
    validateProfilesAgree(path.child('spec'), template),
    (spec.ephemeralContainers ?? []).length !== 0 &&
      path.child('spec.ephemeralContainers').forbidden('ephemeral containers not allowed in pod template'),
  )
}

/** Requires that a workload's selector matches its template's labels, unless it selects everything. */
export function validateTemplateLabels(template: PodTemplateSpec, selector: Selector, path: FieldPath): FieldError[] {
  const { labels } = template.metadata
  if (matchesLabels(selector, labels ?? {})) return []
  return [path.child('metadata.labels').invalid(labels, '`selector` does not match template `labels`')]
}

export interface TemplateOwner {
  readonly selector: Selector
  /** The name in the error about a deadline: `ReplicaSet` for Deployments too. */
  readonly kind: 'ReplicaSet' | 'ReplicationController'
  readonly options: PodOptions
}

/** A template of long-running pods: labels match, template rules, restartPolicy Always, no deadline. */
export function validatePodTemplateForSelector(
  template: PodTemplateSpec | undefined,
  path: FieldPath,
  { selector, kind, options }: TemplateOwner,
): FieldError[] {
  if (template === undefined) return [path.required()]
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec
  return collectErrors(
    validateTemplateLabels(template, selector, path),
    validatePodTemplate(template, path, options),
    restartPolicy !== 'Always' && path.child('spec.restartPolicy').notSupported(asJson(restartPolicy), ['Always']),
    activeDeadlineSeconds !== undefined &&
      path.child('spec.activeDeadlineSeconds').forbidden(`activeDeadlineSeconds in ${kind} is not Supported`),
  )
}
