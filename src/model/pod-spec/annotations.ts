/** Validates the annotations of pods that have a meaning: mirror pods, deletion cost, and old profiles. */
import type { AppArmorProfile, PodSpec, SeccompProfile, Toleration } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'

import { validateTolerations } from '../nodes/taints.ts'
import { validateDescendingPath } from './checks.ts'
import type { PodLike, PodOptions } from './rules.ts'
import { containersOf, isWindows } from './walk.ts'

/** Marks the mirror pod of a static pod. */
export const MIRROR_POD = 'kubernetes.io/config.mirror'
export const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost'
const TOLERATIONS = 'scheduler.alpha.kubernetes.io/tolerations'
export const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod'
export const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/'
export const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/'

const LOCALHOST = 'localhost/'

type Annotations = Readonly<Record<string, string>>

export function isMirrorPod({ annotations }: ObjectMeta): boolean {
  return annotationOf(annotations, MIRROR_POD) !== undefined
}

export function annotationOf(annotations: Annotations | undefined, name: string): string | undefined {
  return annotations !== undefined && Object.hasOwn(annotations, name) ? annotations[name] : undefined
}

/** The deletion cost of a pod. Undefined for an invalid value; 0 if unset. */
export function deletionCostOf(annotations: Annotations | undefined): number | undefined {
  const text = annotationOf(annotations, DELETION_COST)
  if (text === undefined) return 0
  if (!/^(?:0|-[0-9]+|[1-9][0-9]*)$/.test(text)) return undefined
  const cost = Number(text)
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : undefined
}

/** The rules of those annotations; `path` is that of all annotations. */
export function validatePodAnnotations(
  path: FieldPath,
  { metadata, spec }: PodLike,
  options: PodOptions,
): FieldError[] {
  const annotations = metadata.annotations ?? {}
  const errors: FieldError[] = []
  const mirror = annotationOf(annotations, MIRROR_POD)
  if (mirror !== undefined && (spec.nodeName ?? '') === '') {
    errors.push(path.key(MIRROR_POD).invalid(mirror, 'must set spec.nodeName if mirror pod annotation is set'))
  }
  const tolerations = validateTolerationsText(path, annotationOf(annotations, TOLERATIONS) ?? '', options)
  const cost: FieldError[] = []
  if (!options.invalidDeletionCost && deletionCostOf(annotations) === undefined) {
    cost.push(path.key(DELETION_COST).invalid(annotations[DELETION_COST], 'must be a 32bit integer'))
  }
  return [
    ...errors,
    ...tolerations,
    ...cost,
    ...validateSeccomp(path, annotations),
    ...validateAppArmor(path, annotations, spec),
  ]
}

/** The old annotation for tolerations. */
function validateTolerationsText(path: FieldPath, text: string, options: PodOptions): FieldError[] {
  if (text === '') return []
  try {
    const tolerations = JSON.parse(text) as unknown
    if (!Array.isArray(tolerations)) throw new Error('a list of tolerations is expected')
    return validateTolerations(path.child(TOLERATIONS), tolerations as Toleration[], options.tolerationComparisons)
  } catch (error) {
    return [path.invalid(TOLERATIONS, (error as Error).message)]
  }
}

function validateSeccomp(path: FieldPath, annotations: Annotations): FieldError[] {
  const pod = annotationOf(annotations, SECCOMP_POD)
  return collectErrors(
    pod !== undefined && validateSeccompText(path.child(SECCOMP_POD), pod),
    Object.entries(annotations)
      .filter(([name]) => name.startsWith(SECCOMP_CONTAINER))
      .flatMap(([name, text]) => validateSeccompText(path.child(name), text)),
  )
}

function validateSeccompText(path: FieldPath, text: string): FieldError[] {
  if (text === 'runtime/default' || text === 'docker/default' || text === 'unconfined') return []
  if (text.startsWith(LOCALHOST)) return validateDescendingPath(path, text.slice(LOCALHOST.length))
  return [path.invalid(text, 'must be a valid seccomp profile')]
}

function validateAppArmor(path: FieldPath, annotations: Annotations, spec: PodSpec): FieldError[] {
  const names = new Set(containersOf(spec).map(({ container }) => container.name))
  return Object.entries(annotations)
    .filter(([name]) => name.startsWith(APP_ARMOR))
    .flatMap(([name, text]) => {
      const container = name.slice(APP_ARMOR.length)
      const errors = names.has(container) ? [] : [path.key(name).invalid(container, 'container not found')]
      const known = text === '' || text === 'runtime/default' || text === 'unconfined' || text.startsWith(LOCALHOST)
      return known ? errors : [...errors, path.key(name).invalid(text, `invalid AppArmor profile name: "${text}"`)]
    })
}

/** The field for an AppArmor annotation; undefined for an invalid one. */
export function appArmorOf(text: string): AppArmorProfile | undefined {
  if (text === 'unconfined') return { type: 'Unconfined' }
  if (text === 'runtime/default') return { type: 'RuntimeDefault' }
  const localhostProfile = text.startsWith(LOCALHOST) ? text.slice(LOCALHOST.length) : ''
  return localhostProfile === '' ? undefined : { type: 'Localhost', localhostProfile }
}

interface Profile {
  readonly type: string
  readonly localhostProfile?: string
}

/** True if a profile's field and annotation agree. */
function validateAgreement(path: FieldPath, what: string, profile: Profile, text: string): FieldError[] {
  const other = path.child('type').forbidden(`${what} type in annotation and field must match`)
  const texts: Record<string, readonly string[]> = {
    Unconfined: ['unconfined'],
    RuntimeDefault: what === 'seccomp' ? ['runtime/default', 'docker/default'] : ['runtime/default'],
  }
  const wanted = Object.hasOwn(texts, profile.type) ? texts[profile.type] : undefined
  if (wanted !== undefined) return wanted.includes(text) ? [] : [other]
  if (profile.type !== 'Localhost') return []
  if (!text.startsWith(LOCALHOST)) return [other]
  if (text.slice(LOCALHOST.length) === profile.localhostProfile) return []
  return [path.child('localhostProfile').forbidden(`${what} profile in annotation and field must match`)]
}

/** On create, profiles given both ways must agree; `path` is that of the spec. */
export function validateProfilesAgree(path: FieldPath, { metadata, spec }: PodLike): FieldError[] {
  const { annotations } = metadata
  const pod = spec.securityContext
  const check = (at: FieldPath, what: string, profile: Profile | undefined, name: string): FieldError[] => {
    const text = annotationOf(annotations, name)
    return profile === undefined || text === undefined ? [] : validateAgreement(at, what, profile, text)
  }
  const containers = containersOf(spec, path)
  const seccomp = (at: FieldPath, profile: SeccompProfile | undefined, name: string): FieldError[] =>
    check(at.child('securityContext.seccompProfile'), 'seccomp', profile, name)
  return [
    ...seccomp(path, pod?.seccompProfile, SECCOMP_POD),
    ...containers.flatMap(({ container, path: at }) =>
      seccomp(at, container.securityContext?.seccompProfile, SECCOMP_CONTAINER + container.name),
    ),
    ...(isWindows(spec) ? [] : containers).flatMap(({ container, path: at }) =>
      check(
        at.child('securityContext.appArmorProfile'),
        'apparmor',
        container.securityContext?.appArmorProfile ?? pod?.appArmorProfile,
        APP_ARMOR + container.name,
      ),
    ),
  ]
}
