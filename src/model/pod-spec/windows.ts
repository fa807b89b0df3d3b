/** Validates Windows security options, and refuses fields that the pod's operating system does not support. */
import type { PodSpec, SecurityContext, WindowsSecurityContextOptions } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

import { containersOf } from './walk.ts'

const MAX_CREDENTIAL_SPEC_KIB = 64
const MAX_DOMAIN_BYTES = 256
const MAX_USER_BYTES = 104

const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u
const dnsPart = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?'
const dnsName = new RegExp(`^${dnsPart}(?:\\.${dnsPart})*$`)

export function validateWindowsOptions(
  path: FieldPath,
  options: WindowsSecurityContextOptions | undefined,
): FieldError[] {
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: spec, runAsUserName: user } = options ?? {}
  return collectErrors(
    name !== undefined && path.child('gmsaCredentialSpecName').check(asJson(name), () => dns1123Subdomain(name)),
    spec !== undefined && validateCredentialSpec(path.child('gmsaCredentialSpec'), spec),
    user !== undefined && path.child('runAsUserName').check(asJson(user), () => userNameComplaints(user)),
  )
}

function validateCredentialSpec(path: FieldPath, spec: string): FieldError[] {
  if (spec === '') return [path.invalid(asJson(spec), 'gmsaCredentialSpec cannot be an empty string')]
  if (byteLength(spec) <= MAX_CREDENTIAL_SPEC_KIB * 1024) return []
  return [path.invalid(asJson(spec), `gmsaCredentialSpec size must be under ${MAX_CREDENTIAL_SPEC_KIB} KiB`)]
}

/** `DOMAIN\user`; the domain is optional. */
function userNameComplaints(name: string): string[] {
  if (name === '') return ['runAsUserName cannot be an empty string']
  // oxlint-disable-next-line no-control-regex -- the expression searches for control characters
  if (/[\0-\x1f\x7f]/.test(name)) return ['runAsUserName cannot contain control characters']
  const parts = name.split('\\')
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const domain = parts.length === 2 ? parts[0] : undefined
  return [...domainComplaints(domain), ...userComplaints(parts.at(-1) ?? '')]
}

function domainComplaints(domain: string | undefined): string[] {
  if (domain === undefined) return []
  const complaints: string[] = []
  if (byteLength(domain) >= MAX_DOMAIN_BYTES) {
    complaints.push(`runAsUserName's Domain length must be under ${MAX_DOMAIN_BYTES} characters`)
  }
  if (!netBios.test(domain) && !dnsName.test(domain)) {
    complaints.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
  }
  return complaints
}

function userComplaints(user: string): string[] {
  const complaints: string[] = []
  if (user === '') complaints.push("runAsUserName's User cannot be empty")
  else if (byteLength(user) > MAX_USER_BYTES) {
    complaints.push(`runAsUserName's User length must not be longer than ${MAX_USER_BYTES} characters`)
  }
  if (/^[. ]+$/.test(user)) complaints.push("runAsUserName's User cannot contain only periods or spaces")
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    complaints.push(`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`)
  }
  return complaints
}

/** Host processes: all containers of a pod or none, in the host network, if the cluster allows it. */
export function validateHostProcess(path: FieldPath, spec: PodSpec, allowPrivileged: boolean): FieldError[] {
  const podWide = spec.securityContext?.windowsOptions?.hostProcess
  const containers = containersOf(spec, path).map(({ container, path: at }) => ({
    at: at.child('securityContext.windowsOptions.hostProcess'),
    own: container.securityContext?.windowsOptions?.hostProcess,
  }))
  const complaint = `pod hostProcess value must be identical if both are specified, was ${podWide}`
  const errors = containers
    .filter(({ own }) => podWide !== undefined && own !== undefined && podWide !== own)
    .map(({ at, own }) => at.invalid(own, complaint))
  const hostProcesses = containers.filter(({ own }) => own ?? podWide ?? false).length
  if (hostProcesses === 0) return errors
  return [...errors, ...validateHostProcesses(path, spec, hostProcesses === containers.length, allowPrivileged)]
}

function validateHostProcesses(path: FieldPath, spec: PodSpec, all: boolean, allowPrivileged: boolean): FieldError[] {
  return collectErrors(
    !all &&
      path.invalid('', 'If pod contains any hostProcess containers then all containers must be HostProcess containers'),
    spec.hostNetwork !== true &&
      path.child('hostNetwork').invalid(false, 'hostNetwork must be true if pod contains any hostProcess containers'),
    !allowPrivileged && path.forbidden('hostProcess containers are disallowed by cluster policy'),
  )
}

/** The operating system of a pod, and the fields it excludes. */
export function validateOs(path: FieldPath, spec: PodSpec): FieldError[] {
  const { os } = spec
  if (os === undefined) return []
  const field = path.child('os')
  if (os.name === '') return [field.child('name').required()]
  if (os.name === 'linux') return refuseWindowsFields(path, spec)
  if (os.name === 'windows') return refuseLinuxFields(path, spec)
  return [field.notInSet(asJson(os.name), ['linux', 'windows'])]
}

function refuseWindowsFields(path: FieldPath, spec: PodSpec): FieldError[] {
  const contexts = [{ container: spec, path }, ...containersOf(spec, path)]
  return contexts
    .filter(({ container }) => container.securityContext?.windowsOptions !== undefined)
    .map(({ path: at }) =>
      at.child('securityContext.windowsOptions').forbidden('windows options cannot be set for a linux pod'),
    )
}

/** In upstream's order; a name without a dot is a field of the spec itself. */
const podFields = [
  'securityContext.appArmorProfile',
  'securityContext.seLinuxOptions',
  'hostUsers',
  'hostPID',
  'hostIPC',
  'securityContext.seccompProfile',
  'securityContext.fsGroup',
  'securityContext.fsGroupChangePolicy',
  'securityContext.sysctls',
  'shareProcessNamespace',
  'securityContext.runAsUser',
  'securityContext.runAsGroup',
  'securityContext.supplementalGroups',
  'securityContext.supplementalGroupsPolicy',
  'securityContext.seLinuxChangePolicy',
]

const containerFields = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const satisfies readonly (keyof SecurityContext)[]

function refuseLinuxFields(path: FieldPath, spec: PodSpec): FieldError[] {
  const refused = (path: FieldPath): FieldError => path.forbidden('cannot be set for a windows pod')
  const values: Record<string, unknown> = {
    ...spec,
    ...Object.fromEntries(
      Object.entries(spec.securityContext ?? {}).map(([name, value]) => [`securityContext.${name}`, value]),
    ),
  }
  const isSet = (name: string): boolean =>
    values[name] !== undefined && !((name === 'hostPID' || name === 'hostIPC') && values[name] === false)
  return [
    ...podFields.filter(isSet).map((name) => refused(path.child(name))),
    ...containersOf(spec, path).flatMap(({ container, path: at }) =>
      containerFields
        .filter((name) => container.securityContext?.[name] !== undefined)
        .map((name) => refused(at.child('securityContext').child(name))),
    ),
  ]
}
