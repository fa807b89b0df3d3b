/** Annotations that mean something to pods: mirror pods, deletion cost, and profiles from before there were fields. */
import type { AppArmorProfile, PodSpec, SeccompProfile, Toleration } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { child, type FieldError, forbidden, invalid, key } from '#meta/validation/field-error.ts'

import { validateTolerations } from '../taints.ts'
import { validateDescendingPath } from './checks.ts'
import type { PodLike, PodOptions } from './rules.ts'
import { containersOf, isWindows } from './walk.ts'

/** Marks the image of a pod that a kubelet runs from a file of its own. */
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

/** What a pod loses less by being deleted than others. Undefined when it is set and no 32-bit integer; 0 when unset. */
export function deletionCostOf(annotations: Annotations | undefined): number | undefined {
  const text = annotationOf(annotations, DELETION_COST)
  if (text === undefined) return 0
  if (!/^(?:0|-[0-9]+|[1-9][0-9]*)$/.test(text)) return undefined
  const cost = Number(text)
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : undefined
}

/** The rules of those annotations; `path` is that of all annotations. */
export function validatePodAnnotations(path: string, { metadata, spec }: PodLike, options: PodOptions): FieldError[] {
  const annotations = metadata.annotations ?? {}
  const errors: FieldError[] = []
  const mirror = annotationOf(annotations, MIRROR_POD)
  if (mirror !== undefined && (spec.nodeName ?? '') === '') {
    errors.push(invalid(key(path, MIRROR_POD), mirror, 'must set spec.nodeName if mirror pod annotation is set'))
  }
  const tolerations = validateTolerationsText(path, annotationOf(annotations, TOLERATIONS) ?? '', options)
  const cost: FieldError[] = []
  if (!options.invalidDeletionCost && deletionCostOf(annotations) === undefined) {
    cost.push(invalid(key(path, DELETION_COST), annotations[DELETION_COST], 'must be a 32bit integer'))
  }
  return [
    ...errors,
    ...tolerations,
    ...cost,
    ...validateSeccomp(path, annotations),
    ...validateAppArmor(path, annotations, spec),
  ]
}

/** Tolerations as an annotation had them long ago. */
function validateTolerationsText(path: string, text: string, options: PodOptions): FieldError[] {
  if (text === '') return []
  try {
    const tolerations = JSON.parse(text) as unknown
    if (!Array.isArray(tolerations)) throw new Error('a list of tolerations is expected')
    return validateTolerations(child(path, TOLERATIONS), tolerations as Toleration[], options.tolerationComparisons)
  } catch (error) {
    return [invalid(path, TOLERATIONS, (error as Error).message)]
  }
}

function validateSeccomp(path: string, annotations: Annotations): FieldError[] {
  const pod = annotationOf(annotations, SECCOMP_POD)
  return [
    ...(pod === undefined ? [] : validateSeccompText(child(path, SECCOMP_POD), pod)),
    ...Object.entries(annotations)
      .filter(([name]) => name.startsWith(SECCOMP_CONTAINER))
      .flatMap(([name, text]) => validateSeccompText(child(path, name), text)),
  ]
}

function validateSeccompText(field: string, text: string): FieldError[] {
  if (text === 'runtime/default' || text === 'docker/default' || text === 'unconfined') return []
  if (text.startsWith(LOCALHOST)) return validateDescendingPath(field, text.slice(LOCALHOST.length))
  return [invalid(field, text, 'must be a valid seccomp profile')]
}

function validateAppArmor(path: string, annotations: Annotations, spec: PodSpec): FieldError[] {
  const names = new Set(containersOf(spec).map(({ container }) => container.name))
  return Object.entries(annotations)
    .filter(([name]) => name.startsWith(APP_ARMOR))
    .flatMap(([name, text]) => {
      const container = name.slice(APP_ARMOR.length)
      const errors = names.has(container) ? [] : [invalid(key(path, name), container, 'container not found')]
      const known = text === '' || text === 'runtime/default' || text === 'unconfined' || text.startsWith(LOCALHOST)
      return known ? errors : [...errors, invalid(key(path, name), text, `invalid AppArmor profile name: "${text}"`)]
    })
}

/** The field an AppArmor annotation stands for; undefined when it says nothing sensible. */
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

/** Whether a profile's field and its annotation say the same. */
function validateAgreement(path: string, what: string, profile: Profile, text: string): FieldError[] {
  const other = forbidden(child(path, 'type'), `${what} type in annotation and field must match`)
  const texts: Record<string, readonly string[]> = {
    Unconfined: ['unconfined'],
    RuntimeDefault: what === 'seccomp' ? ['runtime/default', 'docker/default'] : ['runtime/default'],
  }
  const wanted = Object.hasOwn(texts, profile.type) ? texts[profile.type] : undefined
  if (wanted !== undefined) return wanted.includes(text) ? [] : [other]
  if (profile.type !== 'Localhost') return []
  if (!text.startsWith(LOCALHOST)) return [other]
  if (text.slice(LOCALHOST.length) === profile.localhostProfile) return []
  return [forbidden(child(path, 'localhostProfile'), `${what} profile in annotation and field must match`)]
}

/** On create, profiles given both ways must agree; `path` is that of the spec. */
export function validateProfilesAgree(path: string, { metadata, spec }: PodLike): FieldError[] {
  const { annotations } = metadata
  const pod = spec.securityContext
  const check = (at: string, what: string, profile: Profile | undefined, name: string): FieldError[] => {
    const text = annotationOf(annotations, name)
    return profile === undefined || text === undefined ? [] : validateAgreement(at, what, profile, text)
  }
  const containers = containersOf(spec, path)
  const seccomp = (at: string, profile: SeccompProfile | undefined, name: string): FieldError[] =>
    check(child(at, 'securityContext', 'seccompProfile'), 'seccomp', profile, name)
  return [
    ...seccomp(path, pod?.seccompProfile, SECCOMP_POD),
    ...containers.flatMap(({ container, path: at }) =>
      seccomp(at, container.securityContext?.seccompProfile, SECCOMP_CONTAINER + container.name),
    ),
    ...(isWindows(spec) ? [] : containers).flatMap(({ container, path: at }) =>
      check(
        child(at, 'securityContext', 'appArmorProfile'),
        'apparmor',
        container.securityContext?.appArmorProfile ?? pod?.appArmorProfile,
        APP_ARMOR + container.name,
      ),
    ),
  ]
}
