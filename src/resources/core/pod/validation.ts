/** The rules of a pod that templates do not have. */
import type { Pod } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { child, type FieldError, forbidden, index } from '#meta/validation/field-error.ts'
import { validatePodAnnotations, validateProfilesAgree } from '#model/pod-spec/annotations.ts'
import { validateImageSpace } from '#model/pod-spec/containers.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import { validatePodSpec } from '#model/pod-spec/pod-spec.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'

export function validatePodCreate(pod: Pod, context: RuleContext): FieldError[] {
  const { spec } = pod
  const errors = validatePod(pod, podOptions(context))
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'))
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'))
  }
  return [...errors, ...validateProfilesAgree('spec', pod)]
}

/** What holds at all times. Metadata as such is the store's. */
export function validatePod(pod: Pod, options: PodOptions): FieldError[] {
  const { metadata, spec } = pod
  return [
    ...validatePodAnnotations('metadata.annotations', pod, options),
    ...validatePodSpec(spec, 'spec', options, metadata),
    ...validateTokens(pod),
    ...(spec.containers ?? []).flatMap((one, at) => validateImageSpace(index('spec.containers', at), one)),
    ...(spec.initContainers ?? []).flatMap((one, at) => validateImageSpace(index('spec.initContainers', at), one)),
  ]
}

/** Tokens are of an account; without one there is nothing to issue. */
function validateTokens({ spec }: Pod): FieldError[] {
  if ((spec.serviceAccountName ?? '') !== '') return []
  return (spec.volumes ?? []).flatMap(({ projected }, at) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }, sourceAt) => {
      if (serviceAccountToken === undefined) return []
      const source = index(child(index('spec.volumes', at), 'projected', 'sources'), sourceAt)
      const complaint = 'must not be specified when serviceAccountName is not set'
      return [forbidden(child(source, 'serviceAccountToken'), complaint)]
    }),
  )
}
