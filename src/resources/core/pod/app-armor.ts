/** Copies AppArmor annotations from before v1.30 to fields on creation, with a warning. */
import type { Pod } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { annotationOf, APP_ARMOR, appArmorOf } from '#model/pod-spec/annotations.ts'
import { validateAppArmorProfile } from '#model/pod-spec/security.ts'
import { containersOf, isWindows } from '#model/pod-spec/walk.ts'
import { appArmorWarning } from '#model/pod-spec/warnings/warnings.ts'

/**
 * Annotations without a field, by pod. After the copy they cannot be distinguished, so this map remembers them for the
 * lifetime of the created object.
 */
const relied = new WeakMap<Pod, string[]>()

/** Changes the pod. */
export function syncAppArmor(pod: Pod): void {
  if (isWindows(pod.spec)) return
  const names: string[] = []
  for (const { container } of containersOf(pod.spec)) {
    const name = APP_ARMOR + container.name
    const text = annotationOf(pod.metadata.annotations, name)
    if (text === undefined || container.securityContext?.appArmorProfile !== undefined) continue
    const given = appArmorOf(text)
    const profile = validateAppArmorProfile(fieldPath(''), given).length === 0 ? given : undefined
    if (profile !== undefined && semanticEqual(profile, pod.spec.securityContext?.appArmorProfile)) continue
    if (profile !== undefined) container.securityContext = { ...container.securityContext, appArmorProfile: profile }
    names.push(name)
  }
  relied.set(pod, names)
}

export function appArmorWarnings(pod: Pod): string[] {
  return (relied.get(pod) ?? []).map((name) => appArmorWarning(fieldPath('metadata.annotations'), name))
}
