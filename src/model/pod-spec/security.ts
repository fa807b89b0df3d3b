/** Security contexts of pods and containers: as whom they run and what the kernel lets them do. */
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { userId } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { oneOf, validateDescendingPath } from './checks.ts'
import type { PodOptions } from './rules.ts'
import { validateWindowsOptions } from './windows.ts'

const MAX_SYSCTL_BYTES = 253
/** PATH_MAX without the zero at the end. */
const MAX_PROFILE_BYTES = 4095

function validateId(field: string, id: number | undefined): FieldError[] {
  return id === undefined ? [] : complaining(field, id, userId(id))
}

export interface SecurityLimits {
  /** Whether users of the container are users of the host. */
  readonly hostUsers: boolean
  readonly allowPrivileged: boolean
}

/** The security context of one container. */
export function validateSecurityContext(
  path: string,
  context: SecurityContext | undefined,
  limits: SecurityLimits,
): FieldError[] {
  if (context === undefined) return []
  const { privileged, procMount } = context
  const errors: FieldError[] = []
  if (privileged === true && !limits.allowPrivileged) {
    errors.push(forbidden(child(path, 'privileged'), 'disallowed by cluster policy'))
  }
  errors.push(...validateId(child(path, 'runAsUser'), context.runAsUser))
  errors.push(...validateId(child(path, 'runAsGroup'), context.runAsGroup))
  errors.push(...oneOf(child(path, 'procMount'), procMount, ['Default', 'Unmasked']))
  if (limits.hostUsers && procMount === 'Unmasked') {
    const complaint = '`hostUsers` must be false to use `Unmasked`'
    errors.push(invalid(child(path, 'procMount'), asJson(procMount), complaint))
  }
  return [
    ...errors,
    ...validateSeccompProfile(child(path, 'seccompProfile'), context.seccompProfile),
    ...validateEscalation(path, context),
    ...validateWindowsOptions(child(path, 'windowsOptions'), context.windowsOptions),
    ...validateAppArmorProfile(child(path, 'appArmorProfile'), context.appArmorProfile),
  ]
}

/** Privileges that include escalation contradict forbidding it. */
function validateEscalation(path: string, context: SecurityContext): FieldError[] {
  if (context.allowPrivilegeEscalation !== false) return []
  const errors: FieldError[] = []
  if (context.privileged === true) {
    const complaint = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
    errors.push(invalid(path, context, complaint))
  }
  for (const capability of context.capabilities?.add ?? []) {
    if (capability !== 'CAP_SYS_ADMIN') continue
    const complaint = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
    errors.push(invalid(path, context, complaint))
  }
  return errors
}

/** The security context of the pod. */
export function validatePodSecurity(path: string, spec: PodSpec, options: PodOptions): FieldError[] {
  const { securityContext: context } = spec
  if (context === undefined) return []
  const groups = child(path, 'supplementalGroups')
  return [
    ...validateId(child(path, 'fsGroup'), context.fsGroup),
    ...validateId(child(path, 'runAsUser'), context.runAsUser),
    ...validateId(child(path, 'runAsGroup'), context.runAsGroup),
    ...(context.supplementalGroups ?? []).flatMap((id, at) => validateId(index(groups, at), id)),
    ...(spec.shareProcessNamespace === true && spec.hostPID === true
      ? [
          invalid(
            child(path, 'shareProcessNamespace'),
            true,
            'ShareProcessNamespace and HostPID cannot both be enabled',
          ),
        ]
      : []),
    ...validateSysctls(child(path, 'sysctls'), spec, options),
    ...oneOf(child(path, 'fsGroupChangePolicy'), context.fsGroupChangePolicy, ['Always', 'OnRootMismatch']),
    ...validateSeccompProfile(child(path, 'seccompProfile'), context.seccompProfile),
    ...validateWindowsOptions(child(path, 'windowsOptions'), context.windowsOptions),
    ...validateAppArmorProfile(child(path, 'appArmorProfile'), context.appArmorProfile),
    ...oneOf(child(path, 'supplementalGroupsPolicy'), context.supplementalGroupsPolicy, ['Merge', 'Strict']),
    ...oneOf(
      child(path, 'seLinuxChangePolicy'),
      context.seLinuxChangePolicy,
      options.onlyRecursiveSELinux ? ['Recursive'] : ['MountOption', 'Recursive'],
    ),
  ]
}

const sysctlPart = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const sysctlPattern = `^(${sysctlPart}[\\./])*${sysctlPart}$`
const sysctlRegex = new RegExp(sysctlPattern)

function validateSysctls(field: string, spec: PodSpec, { sharedSysctls }: PodOptions): FieldError[] {
  const seen = new Set<string>()
  return (spec.securityContext?.sysctls ?? []).flatMap(({ name }, at) => {
    const path = child(index(field, at), 'name')
    const errors: FieldError[] = []
    if (name === '') errors.push(required(path))
    else if (byteLength(name) > MAX_SYSCTL_BYTES || !sysctlRegex.test(name)) {
      const complaint = `must have at most ${MAX_SYSCTL_BYTES} characters and match regex ${sysctlPattern}`
      errors.push(invalid(path, name, complaint))
    } else if (seen.has(name)) errors.push(duplicate(path, name))
    seen.add(name)
    const shared = sharedSysctls ? undefined : sharedNamespaceOf(name, spec)
    if (shared !== undefined) errors.push(invalid(path, name, `may not be specified when '${shared}' is true`))
    return errors
  })
}

const ipcSysctls = new Set(
  'sem shmall shmmax shmmni shm_rmid_forced shm msgmax msgmnb msgmni msg'.split(' ').map((name) => `kernel.${name}`),
)

/** The field by which the pod shares with the host what the sysctl would change; undefined when it does not. */
export function sharedNamespaceOf(sysctl: string, spec: PodSpec): 'hostNetwork' | 'hostIPC' | undefined {
  const name = dottedSysctl(sysctl).split('*', 1)[0] ?? ''
  if (spec.hostNetwork === true && name.startsWith('net.')) return 'hostNetwork'
  const ipc = ipcSysctls.has(name) || name.startsWith('fs.mqueue.')
  return spec.hostIPC === true && ipc ? 'hostIPC' : undefined
}

/** Written with slashes, dots are part of names: `net/ipv4/conf/eth0.1` is `net.ipv4.conf.eth0/1`. */
function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0]
  if (first !== '/') return name
  return name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/'))
}

export function validateSeccompProfile(path: string, profile: SeccompProfile | undefined): FieldError[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const errors =
    type === ''
      ? [required(child(path, 'type'), 'type is required when seccompProfile is set')]
      : oneOf(child(path, 'type'), type, ['Localhost', 'RuntimeDefault', 'Unconfined'])
  const field = child(path, 'localhostProfile')
  if (type === 'Localhost') {
    if (localhostProfile !== undefined) return [...errors, ...validateDescendingPath(field, localhostProfile)]
    return [...errors, required(field, 'must be set when seccomp type is Localhost')]
  }
  if (localhostProfile === undefined) return errors
  return [...errors, invalid(field, profile, 'can only be set when seccomp type is Localhost')]
}

export function validateAppArmorProfile(path: string, profile: AppArmorProfile | undefined): FieldError[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const field = child(path, 'localhostProfile')
  if (type === 'Localhost') return validateLocalProfile(field, localhostProfile)
  if (type === 'RuntimeDefault' || type === 'Unconfined') {
    if (localhostProfile === undefined) return []
    return [invalid(field, asJson(localhostProfile), 'can only be set when AppArmor type is Localhost')]
  }
  if (type === '') return [required(child(path, 'type'), 'type is required when appArmorProfile is set')]
  return [notSupported(child(path, 'type'), asJson(type), ['Localhost', 'RuntimeDefault', 'Unconfined'])]
}

function validateLocalProfile(field: string, profile: string | undefined): FieldError[] {
  const missing = required(field, 'must be set when AppArmor type is Localhost')
  if (profile === undefined) return [missing]
  const errors: FieldError[] = []
  if (profile.trim() !== profile) errors.push(invalid(field, profile, 'must not be padded with whitespace'))
  else if (profile === '') errors.push(missing)
  if (byteLength(profile) > MAX_PROFILE_BYTES) errors.push(tooLong(field, MAX_PROFILE_BYTES))
  return errors
}
