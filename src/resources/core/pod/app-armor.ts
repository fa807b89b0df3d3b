/**
 * AppArmor profiles given as annotations, as before v1.30: on create they become fields. Whoever relied on the
 * annotation is told so.
 */
import type { Pod } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { annotationOf, APP_ARMOR, appArmorOf } from '#model/pod-spec/annotations.ts'
import { validateAppArmorProfile } from '#model/pod-spec/security.ts'
import { containersOf, isWindows } from '#model/pod-spec/walk.ts'
import { appArmorWarning } from '#model/pod-spec/warnings.ts'

/**
 * Annotations that had no field, by pod. Once copied they can no longer be told from those that had one; only the
 * object that is being created remembers, and for as long as it lives.
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
    const profile = validateAppArmorProfile('', given).length === 0 ? given : undefined
    if (profile !== undefined && semanticEqual(profile, pod.spec.securityContext?.appArmorProfile)) continue
    if (profile !== undefined) container.securityContext = { ...container.securityContext, appArmorProfile: profile }
    names.push(name)
  }
  relied.set(pod, names)
}

export function appArmorWarnings(pod: Pod): string[] {
  return (relied.get(pod) ?? []).map((name) => appArmorWarning('metadata.annotations', name))
}
