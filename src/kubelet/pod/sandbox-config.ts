/** Builds the CRI PodSandboxConfig of a pod. Pure. */
import type { Pod, PodSpec } from '#apis/core/v1.ts'
import type { DNSConfig, NamespaceOption, PodSandboxConfig, PortMapping, UserNamespace } from '#apis/wire/cri.ts'
import { GROUPS_POLICY, NAMESPACE, PROFILE, PROTOCOL } from '#cri/codes.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { cgroupParent, type Enforcement, overheadResources, sandboxResources } from './linux-resources.ts'
import type { PodFacts } from './pod-of-node.ts'

export interface UserRange {
  /** The host ID of the pod's root. */
  readonly first: number
  readonly length: number
}

/** Labels by which a kubelet recognizes its sandboxes and containers. */
export const LABELS = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const

export interface SandboxInput {
  readonly pod: Pod
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot' | 'podLogsDir' | 'clusterDomain'> & Enforcement
  readonly dns: DNSConfig
  /** The number of previous sandboxes. */
  readonly attempt: number
  /** Time at which the kubelet first saw the pod, with nanoseconds. */
  readonly seen: string
  /** Its user ID range. Default: the node's users. */
  readonly users?: UserRange | undefined
}

export function sandboxConfig({ pod, facts, dns, attempt, seen, users }: SandboxInput): Input<PodSandboxConfig> {
  const { metadata, spec } = pod
  const { name = '', namespace = '', uid = '', annotations = {} } = metadata
  const { kernel } = hostnameOf(pod, facts.clusterDomain)
  return {
    metadata: { name, uid, namespace, attempt },
    hostname: spec.hostNetwork === true ? '' : kernel,
    logDirectory: podLogDirectory(pod, facts.podLogsDir),
    dnsConfig: dns,
    portMappings: portMappings(spec),
    labels: new Map([...Object.entries(metadata.labels ?? {}), ...podLabels(pod)]),
    annotations: new Map(
      Object.entries({ 'kubernetes.io/config.seen': seen, 'kubernetes.io/config.source': 'api', ...annotations }),
    ),
    linux: {
      cgroupParent: cgroupParent(pod, facts),
      securityContext: sandboxSecurity(spec, users),
      sysctls: new Map((spec.securityContext?.sysctls ?? []).map((sysctl) => [sysctl.name, sysctl.value])),
      overhead: overheadResources(pod, facts),
      resources: sandboxResources(pod, facts),
    },
  }
}

export function podLabels({ metadata: { name = '', namespace = '', uid = '' } }: Pod): [string, string][] {
  return [
    [LABELS.podName, name],
    [LABELS.podNamespace, namespace],
    [LABELS.podUid, uid],
  ]
}

export function podLogDirectory({ metadata: { name = '', namespace = '', uid = '' } }: Pod, dir: string): string {
  return `${dir}/${namespace}_${name}_${uid}`
}

/** Limits of the kernel. */
const MAX_HOSTNAME = 63
const MAX_FQDN = 64

/** Throws when the FQDN is requested and too long. */
export function hostnameOf(
  { metadata, spec }: Pod,
  clusterDomain: string,
): { readonly hostname: string; readonly domain: string; readonly kernel: string } {
  const { name = '', namespace = '' } = metadata
  const wanted = spec.hostnameOverride ?? spec.hostname ?? name
  const hostname = wanted.length <= MAX_HOSTNAME ? wanted : wanted.slice(0, MAX_HOSTNAME).replace(/[-.]+$/, '')
  const { subdomain = '' } = spec
  const isPlain = subdomain === '' || spec.hostnameOverride !== undefined
  const domain = isPlain ? '' : `${subdomain}.${namespace}.svc.${clusterDomain}`
  if (domain === '' || spec.setHostnameAsFQDN !== true) return { hostname, domain, kernel: hostname }
  const kernel = `${hostname}.${domain}`
  if (kernel.length <= MAX_FQDN) return { hostname, domain, kernel }
  const amounts = `FQDN ${kernel} is too long (${MAX_FQDN} characters is the max, ${kernel.length} characters requested)`
  throw new Error(`failed to construct FQDN from pod hostname and cluster domain, ${amounts}`)
}

function portMappings({ containers }: PodSpec): Input<PortMapping>[] {
  return containers.flatMap(({ ports = [] }) => {
    const seen = new Set<string>()
    return ports.flatMap(({ name, containerPort, hostPort = 0, hostIP = '', protocol = 'TCP' }) => {
      const family = hostIP === '' ? 'any' : hostIP.includes(':') ? 'v6' : 'v4'
      const key = name ?? `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`
      if (seen.has(key)) return []
      seen.add(key)
      return { protocol: PROTOCOL[protocol as keyof typeof PROTOCOL], containerPort, hostPort, hostIp: hostIP }
    })
  })
}

/** The node's user namespace, or the pod's, whose root is the first ID of the range. */
function usersOf(range: UserRange | undefined): Input<UserNamespace> {
  if (range === undefined) return { mode: NAMESPACE.node }
  const mappings = [{ hostId: range.first, containerId: 0, length: range.length }]
  return { mode: NAMESPACE.pod, uids: mappings, gids: mappings }
}

interface Namespaces {
  /** The target container of an ephemeral container. */
  readonly targetId?: string | undefined
  /** The user namespace of the sandbox. */
  readonly users?: Input<UserNamespace> | undefined
}

/** Namespaces of the containers of a pod. */
export function namespacesOf(
  spec: PodSpec,
  { targetId, users = usersOf(undefined) }: Namespaces = {},
): Input<NamespaceOption> {
  const { hostNetwork = false, hostPID = false, hostIPC = false, shareProcessNamespace = false } = spec
  const own = shareProcessNamespace ? NAMESPACE.pod : NAMESPACE.container
  const isTargeted = targetId !== undefined && !hostPID && !shareProcessNamespace
  return {
    network: hostNetwork ? NAMESPACE.node : NAMESPACE.pod,
    pid: isTargeted ? NAMESPACE.target : hostPID ? NAMESPACE.node : own,
    ipc: hostIPC ? NAMESPACE.node : NAMESPACE.pod,
    targetId: isTargeted ? targetId : '',
    usernsOptions: users,
  }
}

/** fsGroup first, then the supplemental groups. */
export function groupsOf({ securityContext }: PodSpec): number[] {
  const { fsGroup, supplementalGroups = [] } = securityContext ?? {}
  return [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups]
}

export function groupsPolicyOf({ securityContext }: PodSpec): number {
  return securityContext?.supplementalGroupsPolicy === 'Strict' ? GROUPS_POLICY.strict : GROUPS_POLICY.merge
}

type SandboxSecurity = NonNullable<NonNullable<Input<PodSandboxConfig>['linux']>['securityContext']>

function sandboxSecurity(spec: PodSpec, users: UserRange | undefined): SandboxSecurity {
  const { runAsUser, runAsGroup, seLinuxOptions } = spec.securityContext ?? {}
  const all = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
  return {
    namespaceOptions: namespacesOf(spec, { users: usersOf(users) }),
    selinuxOptions: seLinuxOptions,
    ...(runAsUser !== undefined && { runAsUser: { value: runAsUser } }),
    ...(runAsGroup !== undefined && { runAsGroup: { value: runAsGroup } }),
    supplementalGroups: groupsOf(spec),
    supplementalGroupsPolicy: groupsPolicyOf(spec),
    privileged: all.some(({ securityContext }) => securityContext?.privileged === true),
    seccomp: { profileType: PROFILE.runtimeDefault },
  }
}
