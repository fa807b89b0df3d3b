/** Validates security contexts of pods and containers. */
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { userId } from '#meta/validation/names.ts'
import { oneOf } from '#meta/validation/rules.ts'

import { validateDescendingPath } from './checks.ts'
import type { PodOptions } from './rules.ts'
import { validateWindowsOptions } from './windows.ts'

const MAX_SYSCTL_BYTES = 253
/** PATH_MAX without the terminating zero. */
const MAX_PROFILE_BYTES = 4095

function validateId(path: FieldPath, id: number | undefined): FieldError[] {
  return id === undefined ? [] : path.check(id, userId)
}

export interface SecurityLimits {
  /** True if the container shares the host's user namespace. */
  readonly hostUsers: boolean
  readonly allowPrivileged: boolean
}

/** The security context of one container. */
export function validateSecurityContext(
  path: FieldPath,
  context: SecurityContext | undefined,
  limits: SecurityLimits,
): FieldError[] {
  if (context === undefined) return []
  const { privileged, procMount } = context
  return collectErrors(
    privileged === true &&
      !limits.allowPrivileged &&
      path.child('privileged').forbidden('disallowed by cluster policy'),
    validateId(path.child('runAsUser'), context.runAsUser),
    validateId(path.child('runAsGroup'), context.runAsGroup),
    oneOf(path.child('procMount'), procMount, ['Default', 'Unmasked']),
    limits.hostUsers &&
      procMount === 'Unmasked' &&
      path.child('procMount').invalid(asJson(procMount), '`hostUsers` must be false to use `Unmasked`'),
    validateSeccompProfile(path.child('seccompProfile'), context.seccompProfile),
    validateEscalation(path, context),
    validateWindowsOptions(path.child('windowsOptions'), context.windowsOptions),
    validateAppArmorProfile(path.child('appArmorProfile'), context.appArmorProfile),
  )
}

/** Privileges that include escalation contradict forbidding it. */
function validateEscalation(path: FieldPath, context: SecurityContext): FieldError[] {
  if (context.allowPrivilegeEscalation !== false) return []
  const errors: FieldError[] = []
  if (context.privileged === true) {
    const complaint = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
    errors.push(path.invalid(context, complaint))
  }
  for (const capability of context.capabilities?.add ?? []) {
    if (capability !== 'CAP_SYS_ADMIN') continue
    const complaint = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
    errors.push(path.invalid(context, complaint))
  }
  return errors
}

/** The security context of the pod. */
export function validatePodSecurity(path: FieldPath, spec: PodSpec, options: PodOptions): FieldError[] {
  const { securityContext: context } = spec
  if (context === undefined) return []
  const groups = path.child('supplementalGroups')
  return collectErrors(
    validateId(path.child('fsGroup'), context.fsGroup),
    validateId(path.child('runAsUser'), context.runAsUser),
    validateId(path.child('runAsGroup'), context.runAsGroup),
    groups.each(context.supplementalGroups, validateId),
    spec.shareProcessNamespace === true &&
      spec.hostPID === true &&
      path.child('shareProcessNamespace').invalid(true, 'ShareProcessNamespace and HostPID cannot both be enabled'),
    validateSysctls(path.child('sysctls'), spec, options),
    oneOf(path.child('fsGroupChangePolicy'), context.fsGroupChangePolicy, ['Always', 'OnRootMismatch']),
    validateSeccompProfile(path.child('seccompProfile'), context.seccompProfile),
    validateWindowsOptions(path.child('windowsOptions'), context.windowsOptions),
    validateAppArmorProfile(path.child('appArmorProfile'), context.appArmorProfile),
    oneOf(path.child('supplementalGroupsPolicy'), context.supplementalGroupsPolicy, ['Merge', 'Strict']),
    oneOf(
      path.child('seLinuxChangePolicy'),
      context.seLinuxChangePolicy,
      options.onlyRecursiveSELinux ? ['Recursive'] : ['MountOption', 'Recursive'],
    ),
  )
}

const sysctlPart = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const sysctlPattern = `^(${sysctlPart}[\\./])*${sysctlPart}$`
const sysctlRegex = new RegExp(sysctlPattern)

function validateSysctls(field: FieldPath, spec: PodSpec, { sharedSysctls }: PodOptions): FieldError[] {
  const seen = new Set<string>()
  return field.each(spec.securityContext?.sysctls, (itemPath, { name }) => {
    const path = itemPath.child('name')
    const errors: FieldError[] = []
    if (name === '') errors.push(path.required())
    else if (byteLength(name) > MAX_SYSCTL_BYTES || !sysctlRegex.test(name)) {
      const complaint = `must have at most ${MAX_SYSCTL_BYTES} characters and match regex ${sysctlPattern}`
      errors.push(path.invalid(name, complaint))
    } else if (seen.has(name)) errors.push(path.duplicate(name))
    seen.add(name)
    const shared = sharedSysctls ? undefined : sharedNamespaceOf(name, spec)
    if (shared !== undefined) errors.push(path.invalid(name, `may not be specified when '${shared}' is true`))
    return errors
  })
}

const ipcSysctls = new Set(
  'sem shmall shmmax shmmni shm_rmid_forced shm msgmax msgmnb msgmni msg'.split(' ').map((name) => `kernel.${name}`),
)

/** The host namespace field that the sysctl would affect; undefined if the pod does not share it. */
export function sharedNamespaceOf(sysctl: string, spec: PodSpec): 'hostNetwork' | 'hostIPC' | undefined {
  const name = dottedSysctl(sysctl).split('*', 1)[0] ?? ''
  if (spec.hostNetwork === true && name.startsWith('net.')) return 'hostNetwork'
  const ipc = ipcSysctls.has(name) || name.startsWith('fs.mqueue.')
  return spec.hostIPC === true && ipc ? 'hostIPC' : undefined
}

/** With slashes, dots are part of names: `net/ipv4/conf/eth0.1` is `net.ipv4.conf.eth0/1`. */
function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0]
  if (first !== '/') return name
  return name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/'))
}

export function validateSeccompProfile(path: FieldPath, profile: SeccompProfile | undefined): FieldError[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const errors =
    type === ''
      ? [path.child('type').required('type is required when seccompProfile is set')]
      : oneOf(path.child('type'), type, ['Localhost', 'RuntimeDefault', 'Unconfined'])
  const field = path.child('localhostProfile')
  if (type === 'Localhost') {
    if (localhostProfile !== undefined) return [...errors, ...validateDescendingPath(field, localhostProfile)]
    return [...errors, field.required('must be set when seccomp type is Localhost')]
  }
  if (localhostProfile === undefined) return errors
  return [...errors, field.invalid(profile, 'can only be set when seccomp type is Localhost')]
}

export function validateAppArmorProfile(path: FieldPath, profile: AppArmorProfile | undefined): FieldError[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const field = path.child('localhostProfile')
  if (type === 'Localhost') return validateLocalProfile(field, localhostProfile)
  if (type === 'RuntimeDefault' || type === 'Unconfined') {
    if (localhostProfile === undefined) return []
    return [field.invalid(asJson(localhostProfile), 'can only be set when AppArmor type is Localhost')]
  }
  if (type === '') return [path.child('type').required('type is required when appArmorProfile is set')]
  return [path.child('type').notSupported(asJson(type), ['Localhost', 'RuntimeDefault', 'Unconfined'])]
}

function validateLocalProfile(path: FieldPath, profile: string | undefined): FieldError[] {
  const missing = path.required('must be set when AppArmor type is Localhost')
  if (profile === undefined) return [missing]
  return collectErrors(
    profile.trim() !== profile
      ? path.invalid(profile, 'must not be padded with whitespace')
      : profile === '' && missing,
    byteLength(profile) > MAX_PROFILE_BYTES && path.tooLong(MAX_PROFILE_BYTES),
  )
}
