/** The changes that each profile of `kubectl debug` makes, by the kind of debugging target. Pure. */
import type { Container, EphemeralContainer, Pod, PodSpec, SecurityContext } from '#apis/core/v1.ts'

/** An ephemeral container in the pod, a copy of the pod, or a new pod on a node. */
export type DebugStyle = 'ephemeral' | 'copy' | 'node'

export interface CopyOptions {
  readonly labels: boolean
  readonly annotations: boolean
  readonly liveness: boolean
  readonly readiness: boolean
  readonly startup: boolean
  readonly initContainers: boolean
}

interface Profile {
  /** The new container. */
  readonly security: Partial<Record<DebugStyle, Security>>
  /** Host namespaces, and the root file system of the node. */
  readonly hostNamespaces?: boolean
  readonly hostRoot?: boolean
  /** Copies keep everything except their labels. */
  readonly keepsCopies?: boolean
}

type Security = (before: SecurityContext | undefined) => SecurityContext | undefined

const none: Security = () => undefined

function adding(...capabilities: string[]): Security {
  return (before) => {
    const { add = [], ...rest } = before?.capabilities ?? {}
    return { ...before, capabilities: { ...rest, add: [...add, ...capabilities] } }
  }
}

const restricted: Security = () => ({
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  allowPrivilegeEscalation: false,
  seccompProfile: { type: 'RuntimeDefault' },
})

const privileged: Security = (before) => ({ ...before, privileged: true })

function everywhere(security: Security): Profile['security'] {
  return { ephemeral: security, copy: security, node: security }
}

const PROFILES: Readonly<Record<string, Profile>> = {
  legacy: { security: {}, hostNamespaces: true, hostRoot: true, keepsCopies: true },
  general: {
    security: { ephemeral: adding('SYS_PTRACE'), copy: adding('SYS_PTRACE'), node: none },
    hostNamespaces: true,
    hostRoot: true,
  },
  baseline: { security: everywhere(none) },
  restricted: { security: everywhere(restricted) },
  netadmin: { security: everywhere(adding('NET_ADMIN', 'NET_RAW')), hostNamespaces: true },
  sysadmin: { security: everywhere(privileged), hostNamespaces: true, hostRoot: true },
}

export function isProfile(name: string): boolean {
  return Object.hasOwn(PROFILES, name)
}

export interface ProfileOptions {
  readonly profile: string
  readonly style: DebugStyle
  /** The name of the new container. */
  readonly container: string
  readonly keeping: CopyOptions
}

/** The pod with the changes of the profile. */
export function withProfile(pod: Pod, { profile: name, style, container, keeping }: ProfileOptions): Pod {
  const profile = PROFILES[name] as Profile
  const security = profile.security[style]
  let { metadata, spec } = pod
  if (security !== undefined) spec = withSecurity(spec, container, security)
  if (style === 'node') spec = onNode(spec, container, profile)
  if (style === 'copy' && profile.keepsCopies === true) metadata = without(metadata, 'labels')
  if (style === 'copy' && profile.keepsCopies !== true) {
    if (!keeping.labels) metadata = without(metadata, 'labels')
    if (!keeping.annotations) metadata = without(metadata, 'annotations')
    spec = { shareProcessNamespace: true, ...keptIn(spec, keeping) }
  }
  return { ...pod, metadata, spec }
}

function without<T extends object>(object: T, key: keyof T): T {
  const { [key]: _, ...rest } = object
  return rest as T
}

function keptIn(spec: PodSpec, { liveness, readiness, startup, initContainers }: CopyOptions): PodSpec {
  const containers = spec.containers.map((one) => {
    let kept = one
    if (!liveness) kept = without(kept, 'livenessProbe')
    if (!readiness) kept = without(kept, 'readinessProbe')
    return startup ? kept : without(kept, 'startupProbe')
  })
  return { ...(initContainers ? spec : without(spec, 'initContainers')), containers }
}

function withSecurity(spec: PodSpec, name: string, security: Security): PodSpec {
  const change = <C extends Container | EphemeralContainer>(one: C): C => {
    if (one.name !== name) return one
    const { securityContext, ...rest } = one
    const next = security(securityContext)
    return (next === undefined ? rest : { ...rest, securityContext: next }) as C
  }
  return {
    ...spec,
    containers: spec.containers.map(change),
    ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(change) }),
    ...(spec.ephemeralContainers !== undefined && { ephemeralContainers: spec.ephemeralContainers.map(change) }),
  }
}

const ROOT_VOLUME = 'host-root'

function onNode(spec: PodSpec, name: string, { hostNamespaces, hostRoot }: Profile): PodSpec {
  const containers = spec.containers.map((one) =>
    one.name === name
      ? { ...one, volumeMounts: [...(one.volumeMounts ?? []), { mountPath: '/host', name: ROOT_VOLUME }] }
      : one,
  )
  return {
    ...spec,
    ...(hostNamespaces === true && { hostNetwork: true, hostPID: true, hostIPC: true }),
    ...(hostRoot === true && {
      containers,
      volumes: [...(spec.volumes ?? []), { name: ROOT_VOLUME, hostPath: { path: '/' } }],
    }),
  }
}
