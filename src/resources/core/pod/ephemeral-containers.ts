/**
 * The `ephemeralcontainers` subresource of pods: adds debugging containers to a running pod. Nothing else may change.
 */
import type { EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { PartRules } from '#apiserver/registry/resource.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { differencesText } from '#meta/validation/differences.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { isMirrorPod } from '#model/pod-spec/annotations.ts'
import { dropDisabledPodFields } from '#model/pod-spec/gated-fields.ts'
import { podOptions } from '#model/pod-spec/options.ts'

import { sameContainer, sameSpec } from './same-spec.ts'
import { validateAnnotationUpdate } from './update.ts'
import { validatePod } from './validation.ts'

export const ephemeralContainers: PartRules<Pod> = {
  prepareUpdate(next, old, context) {
    const { ephemeralContainers: containers } = next.spec
    next.spec = { ...old.spec }
    if (containers === undefined) delete next.spec.ephemeralContainers
    else next.spec.ephemeralContainers = containers
    next.status = old.status
    next.metadata = keptMetadata(next.metadata, old.metadata)
    dropDisabledPodFields(next.spec, old.spec, context)
    growGeneration(next, old)
  },
  validateUpdate(next, old, context) {
    if (isMirrorPod(old.metadata)) return [fieldPath('[]').forbidden('static pods do not support ephemeral containers')]
    const options = podOptions(context, old)
    return [
      ...validatePod(next, options),
      ...validateAnnotationUpdate(next, old, options),
      ...(old.spec.ephemeralContainers ?? []).flatMap((one) => validateKept(one, next)),
    ]
  },
}

function validateKept(old: EphemeralContainer, { spec }: Pod): FieldError[] {
  const field = fieldPath('spec.ephemeralContainers')
  const next = spec.ephemeralContainers?.findLast(({ name }) => name === old.name)
  const existing = `existing ephemeral containers "${old.name}"`
  if (next === undefined) return [field.forbidden(`${existing} may not be removed\n`)]
  const same = sameContainer(old, next) && old.targetContainerName === next.targetContainerName
  return same ? [] : [field.forbidden(`${existing} may not be changed\n${differencesText(`${field}`, old, next)}`)]
}

/** The stored metadata, except for fields of the request. */
export function keptMetadata({ managedFields, resourceVersion }: ObjectMeta, old: ObjectMeta): ObjectMeta {
  const { managedFields: _, ...kept } = old
  return {
    ...kept,
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(managedFields !== undefined && { managedFields }),
  }
}

export function growGeneration(next: Pod, old: Pod): void {
  if (!sameSpec(next.spec, old.spec)) next.metadata.generation = (old.metadata.generation ?? 0) + 1
}
