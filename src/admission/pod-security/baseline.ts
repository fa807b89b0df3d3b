/**
 * The checks of the baseline Pod Security Standard, which prevents known privilege escalations. Texts are upstream's
 * (pod-security-admission/policy, v1.36).
 */
import type { Lifecycle, PodSpec, Probe } from '#apis/core/v1.ts'
import { compareText, goQuote } from '#lib/go/text.ts'

import { allContainers, type Check, distinct, named, plural, quoted, settersOf } from './violation.ts'

const APP_ARMOR_PREFIX = 'container.apparmor.security.beta.kubernetes.io/'

export const appArmorProfile: Check = (spec, { annotations = {} }) => {
  const isBad = (type: string): boolean => type !== 'RuntimeDefault' && type !== 'Localhost'
  const setters = settersOf(spec, ({ appArmorProfile }) => appArmorProfile !== undefined && isBad(appArmorProfile.type))
  const forbidden = Object.entries(annotations)
    .filter(([key, value]) => key.startsWith(APP_ARMOR_PREFIX) && !isAllowedAppArmor(value))
    .map(([key, value]) => `${key}=${goQuote(value)}`)
    .sort(compareText)
  if (setters === undefined && forbidden.length === 0) return undefined
  const types = distinct((setters?.contexts ?? []).flatMap(({ appArmorProfile }) => appArmorProfile?.type ?? []))
  const values = [...types, ...forbidden]
  const who = [
    ...(setters === undefined ? [] : [setters.text]),
    ...(forbidden.length === 0 ? [] : [plural('annotation', 'annotations', forbidden.length)]),
  ]
  return {
    reason: plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', values.length),
    detail: `${who.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`,
  }
}

function isAllowedAppArmor(value: string): boolean {
  return value === '' || value === 'runtime/default' || value.startsWith('localhost/')
}

const DEFAULT_CAPABILITIES = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
])

export const capabilities: Check = (spec) => {
  const bad = allContainers(spec)
    .map((container) => ({
      container,
      added: (container.securityContext?.capabilities?.add ?? []).filter((one) => !DEFAULT_CAPABILITIES.has(one)),
    }))
    .filter(({ added }) => added.length > 0)
  if (bad.length === 0) return undefined
  const who = named(bad.map(({ container }) => container))
  const added = quoted(distinct(bad.flatMap((one) => one.added)))
  return {
    reason: 'non-default capabilities',
    detail: `${who} must not include ${added} in securityContext.capabilities.add`,
  }
}

export const hostNamespaces: Check = (spec) => {
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true)
  if (shared.length === 0) return undefined
  return { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') }
}

export const hostPathVolumes: Check = ({ volumes = [] }) => {
  const bad = volumes.filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name)
  if (bad.length === 0) return undefined
  return { reason: 'hostPath volumes', detail: `${plural('volume', 'volumes', bad.length)} ${quoted(bad)}` }
}

export const hostPorts: Check = (spec) => {
  const portsOf = ({ ports = [] }: ReturnType<typeof allContainers>[number]): string[] =>
    ports.flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]))
  const bad = allContainers(spec).filter((container) => portsOf(container).length > 0)
  if (bad.length === 0) return undefined
  const ports = distinct(bad.flatMap(portsOf))
  const uses = plural('uses', 'use', bad.length)
  const what = plural('hostPort', 'hostPorts', ports.length)
  return { reason: 'hostPort', detail: `${named(bad)} ${uses} ${what} ${ports.join(', ')}` }
}

type Handler = Pick<Probe, 'httpGet' | 'tcpSocket'> | undefined

function hostsOf(...handlers: readonly Handler[]): string[] {
  return handlers.flatMap((handler) =>
    [handler?.httpGet?.host, handler?.tcpSocket?.host].filter((host) => host !== undefined && host !== ''),
  ) as string[]
}

export const hostProbes: Check = (spec) => {
  const hosts = (container: ReturnType<typeof allContainers>[number]): string[] => {
    const { livenessProbe, readinessProbe, startupProbe } = container
    const { postStart, preStop }: Lifecycle = container.lifecycle ?? {}
    return hostsOf(livenessProbe, readinessProbe, startupProbe, postStart, preStop)
  }
  const bad = allContainers(spec).filter((container) => hosts(container).length > 0)
  if (bad.length === 0) return undefined
  const names = distinct(bad.map(({ name }) => name))
  const found = distinct(bad.flatMap(hosts))
  const who = `${plural('container', 'containers', names.length)} ${quoted(names)}`
  const what = plural('probe or lifecycle host', 'probe or lifecycle hosts', found.length)
  return {
    reason: 'probe or lifecycle host',
    detail: `${who} ${plural('uses', 'use', names.length)} ${what} ${quoted(found)}`,
  }
}

export const privileged: Check = (spec) => {
  const bad = allContainers(spec).filter(({ securityContext }) => securityContext?.privileged === true)
  if (bad.length === 0) return undefined
  return { reason: 'privileged', detail: `${named(bad)} must not set securityContext.privileged=true` }
}

export const procMount: Check = (spec) => {
  const typeOf = (container: ReturnType<typeof allContainers>[number]): string =>
    container.securityContext?.procMount ?? 'Default'
  const bad = allContainers(spec).filter((container) => typeOf(container) !== 'Default')
  if (bad.length === 0) return undefined
  const types = quoted(distinct(bad.map(typeOf)))
  return { reason: 'procMount', detail: `${named(bad)} must not set securityContext.procMount to ${types}` }
}

/** In a user namespace, a pod's root is unprivileged on the host. */
export function unlessUserNamespace(check: Check): Check {
  return (spec, metadata) => (spec.hostUsers === false ? undefined : check(spec, metadata))
}

/** `since`: types that became allowed later. */
export function seLinuxOptions(...since: readonly string[]): Check {
  const allowed = new Set(['', 'container_t', 'container_init_t', 'container_kvm_t', ...since])
  return (spec: PodSpec) => {
    const setters = settersOf(spec, ({ seLinuxOptions: options }) => {
      if (options === undefined) return false
      return !allowed.has(options.type ?? '') || (options.user ?? '') !== '' || (options.role ?? '') !== ''
    })
    if (setters === undefined) return undefined
    const options = setters.contexts.flatMap((context) => context.seLinuxOptions ?? [])
    const types = distinct(options.map(({ type = '' }) => type).filter((type) => !allowed.has(type)))
    const what = [
      ...(types.length === 0 ? [] : [`${plural('type', 'types', types.length)} ${quoted(types)}`]),
      ...(options.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
      ...(options.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
    ]
    return {
      reason: 'seLinuxOptions',
      detail: `${setters.text} set forbidden securityContext.seLinuxOptions: ${what.join('; ')}`,
    }
  }
}

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod'
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/'

/** Before v1.19 profiles were annotations. */
export const seccompAnnotations: Check = (spec, { annotations = {} }) => {
  const keys = [SECCOMP_POD, ...allContainers(spec).map(({ name }) => SECCOMP_CONTAINER + name)]
  const bad = distinct(
    keys
      .filter((key) => Object.hasOwn(annotations, key) && !isAllowedSeccomp(annotations[key] ?? ''))
      .map((key) => `${key}=${goQuote(annotations[key] ?? '')}`),
  )
  if (bad.length === 0) return undefined
  const what = plural('annotation', 'annotations', bad.length)
  return { reason: 'seccompProfile', detail: `forbidden ${what} ${bad.join(', ')}` }
}

function isAllowedSeccomp(value: string): boolean {
  return value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/')
}

export function isSeccompType(type: string): boolean {
  return type === 'Localhost' || type === 'RuntimeDefault'
}

export const seccompProfile: Check = (spec) => {
  const setters = settersOf(
    spec,
    ({ seccompProfile: profile }) => profile !== undefined && !isSeccompType(profile.type),
  )
  if (setters === undefined) return undefined
  const types = distinct(setters.contexts.flatMap((context) => context.seccompProfile?.type ?? []))
  return {
    reason: 'seccompProfile',
    detail: `${setters.text} must not set securityContext.seccompProfile.type to ${quoted(types)}`,
  }
}

/** The sysctls that were always safe, and those that became safe later. */
export function sysctls(...since: readonly string[]): Check {
  const allowed = new Set([
    'kernel.shm_rmid_forced',
    'net.ipv4.ip_local_port_range',
    'net.ipv4.tcp_syncookies',
    'net.ipv4.ping_group_range',
    'net.ipv4.ip_unprivileged_port_start',
    ...since,
  ])
  return ({ securityContext }) => {
    const bad = (securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !allowed.has(name))
    return bad.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: bad.join(', ') }
  }
}

export const windowsHostProcess: Check = (spec) => {
  const setters = settersOf(spec, ({ windowsOptions }) => windowsOptions?.hostProcess === true)
  if (setters === undefined) return undefined
  return {
    reason: 'hostProcess',
    detail: `${setters.text} must not set securityContext.windowsOptions.hostProcess=true`,
  }
}
