/** The rules of a pod template, and what workloads ask of theirs. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { matchesLabels, type Selector } from '#meta/labels.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { validateAnnotations, validateLabels } from '#meta/validation/rules.ts'

import { validatePodAnnotations, validateProfilesAgree } from './annotations.ts'
import { validatePodSpec } from './pod-spec.ts'
import type { PodOptions } from './rules.ts'

/** Upstream names labels and annotations as if they were outside of `metadata`. */
export function validatePodTemplate(template: PodTemplateSpec, path: string, options: PodOptions): FieldError[] {
  const { metadata, spec } = template
  return [
    ...validateLabels(child(path, 'labels'), metadata.labels),
    ...validateAnnotations(child(path, 'annotations'), metadata.annotations),
    ...validatePodAnnotations(child(path, 'annotations'), template, options),
    ...validatePodSpec(spec, child(path, 'spec'), options),
    ...validateProfilesAgree(child(path, 'spec'), template),
    ...((spec.ephemeralContainers ?? []).length === 0
      ? []
      : [forbidden(child(path, 'spec', 'ephemeralContainers'), 'ephemeral containers not allowed in pod template')]),
  ]
}

/** That a workload's selector, unless it selects everything, matches its template's labels. */
export function validateTemplateLabels(template: PodTemplateSpec, selector: Selector, path: string): FieldError[] {
  const { labels } = template.metadata
  if (matchesLabels(selector, labels ?? {})) return []
  return [invalid(child(path, 'metadata', 'labels'), labels, '`selector` does not match template `labels`')]
}

export interface TemplateOwner {
  readonly selector: Selector
  /** As the complaint about a deadline names it: `ReplicaSet` for Deployments too. */
  readonly kind: 'ReplicaSet' | 'ReplicationController'
  readonly options: PodOptions
}

/** A template of pods that run for ever: labels match, the rules of templates, restartPolicy Always, no deadline. */
export function validatePodTemplateForSelector(
  template: PodTemplateSpec | undefined,
  path: string,
  { selector, kind, options }: TemplateOwner,
): FieldError[] {
  if (template === undefined) return [required(path)]
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec
  return [
    ...validateTemplateLabels(template, selector, path),
    ...validatePodTemplate(template, path, options),
    ...(restartPolicy === 'Always'
      ? []
      : [notSupported(child(path, 'spec', 'restartPolicy'), asJson(restartPolicy), ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden(child(path, 'spec', 'activeDeadlineSeconds'), `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ]
}
