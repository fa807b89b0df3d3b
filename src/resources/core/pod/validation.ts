/** Validates a pod by the rules that do not apply to pod templates. */
import type { Pod } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { validatePodAnnotations, validateProfilesAgree } from '#model/pod-spec/annotations.ts'
import { validateImageSpace } from '#model/pod-spec/containers/containers.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import { validatePodSpec } from '#model/pod-spec/pod-spec.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'

export function validatePodCreate(pod: Pod, context: RuleContext): FieldError[] {
  const { spec } = pod
  return collectErrors(
    validatePod(pod, podOptions(context)),
    (spec.ephemeralContainers ?? []).length > 0 &&
      fieldPath('spec.ephemeralContainers').forbidden('cannot be set on create'),
    (spec.nodeName ?? '') !== '' &&
      (spec.schedulingGates ?? []).length > 0 &&
      fieldPath('spec.nodeName').forbidden('cannot be set until all schedulingGates have been cleared'),
    validateProfilesAgree(fieldPath('spec'), pod),
  )
}

/** The rules of create and update. The store validates metadata. */
export function validatePod(pod: Pod, options: PodOptions): FieldError[] {
  const { metadata, spec } = pod
  return [
    ...validatePodAnnotations(fieldPath('metadata.annotations'), pod, options),
    ...validatePodSpec(spec, fieldPath('spec'), options, metadata),
    ...validateTokens(pod),
    ...fieldPath('spec.containers').each(spec.containers, validateImageSpace),
    ...fieldPath('spec.initContainers').each(spec.initContainers, validateImageSpace),
  ]
}

/** Tokens belong to a service account, which is required. */
function validateTokens({ spec }: Pod): FieldError[] {
  if ((spec.serviceAccountName ?? '') !== '') return []
  return fieldPath('spec.volumes').each(spec.volumes, (path, { projected }) =>
    path.child('projected.sources').each(projected?.sources, (source, { serviceAccountToken }) => {
      if (serviceAccountToken === undefined) return []
      const complaint = 'must not be specified when serviceAccountName is not set'
      return [source.child('serviceAccountToken').forbidden(complaint)]
    }),
  )
}
