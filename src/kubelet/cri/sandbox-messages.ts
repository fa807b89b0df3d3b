/** What is asked and told of sandboxes, the places in which the containers of a pod run. Tables of CRI v1: names, types, numbers. */
import { defineMessage, type Message } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

export interface PodSandboxMetadata {
  readonly name: string
  readonly uid: string
  readonly namespace: string
  readonly attempt: number
}

export interface DNSConfig {
  readonly servers: string[]
  readonly searches: string[]
  readonly options: string[]
}

export interface PortMapping {
  readonly protocol: number
  readonly containerPort: number
  readonly hostPort: number
  readonly hostIp: string
}

export interface IDMapping {
  readonly hostId: number
  readonly containerId: number
  readonly length: number
}

export interface UserNamespace {
  readonly mode: number
  readonly uids: IDMapping[]
  readonly gids: IDMapping[]
}

export interface NamespaceOption {
  readonly network: number
  readonly pid: number
  readonly ipc: number
  readonly targetId: string
  readonly usernsOptions: UserNamespace | undefined
}

export interface SELinuxOption {
  readonly user: string
  readonly role: string
  readonly type: string
  readonly level: string
}

export interface Int64Value {
  readonly value: Int64
}

export interface SecurityProfile {
  readonly profileType: number
  readonly localhostRef: string
}

export interface LinuxSandboxSecurityContext {
  readonly namespaceOptions: NamespaceOption | undefined
  readonly selinuxOptions: SELinuxOption | undefined
  readonly runAsUser: Int64Value | undefined
  readonly runAsGroup: Int64Value | undefined
  readonly readonlyRootfs: boolean
  readonly supplementalGroups: Int64[]
  readonly supplementalGroupsPolicy: number
  readonly privileged: boolean
  readonly seccomp: SecurityProfile | undefined
  readonly apparmor: SecurityProfile | undefined
  readonly seccompProfilePath: string
}

export interface HugepageLimit {
  readonly pageSize: string
  readonly limit: Int64
}

export interface LinuxContainerResources {
  readonly cpuPeriod: Int64
  readonly cpuQuota: Int64
  readonly cpuShares: Int64
  readonly memoryLimitInBytes: Int64
  readonly oomScoreAdj: Int64
  readonly cpusetCpus: string
  readonly cpusetMems: string
  readonly hugepageLimits: HugepageLimit[]
  readonly unified: Map<string, string>
  readonly memorySwapLimitInBytes: Int64
}

export interface LinuxPodSandboxConfig {
  readonly cgroupParent: string
  readonly securityContext: LinuxSandboxSecurityContext | undefined
  readonly sysctls: Map<string, string>
  readonly overhead: LinuxContainerResources | undefined
  readonly resources: LinuxContainerResources | undefined
}

export interface PodSandboxConfig {
  readonly metadata: PodSandboxMetadata | undefined
  readonly hostname: string
  readonly logDirectory: string
  readonly dnsConfig: DNSConfig | undefined
  readonly portMappings: PortMapping[]
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly linux: LinuxPodSandboxConfig | undefined
}

export interface PodIP {
  readonly ip: string
}

export interface PodSandboxNetworkStatus {
  readonly ip: string
  readonly additionalIps: PodIP[]
}

export interface Namespace {
  readonly options: NamespaceOption | undefined
}

export interface LinuxPodSandboxStatus {
  readonly namespaces: Namespace | undefined
}

export interface PodSandboxStatus {
  readonly id: string
  readonly metadata: PodSandboxMetadata | undefined
  readonly state: number
  readonly createdAt: Int64
  readonly network: PodSandboxNetworkStatus | undefined
  readonly linux: LinuxPodSandboxStatus | undefined
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly runtimeHandler: string
}

export interface PodSandbox {
  readonly id: string
  readonly metadata: PodSandboxMetadata | undefined
  readonly state: number
  readonly createdAt: Int64
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly runtimeHandler: string
}

export interface PodSandboxStateValue {
  readonly state: number
}

export interface PodSandboxFilter {
  readonly id: string
  readonly state: PodSandboxStateValue | undefined
  readonly labelSelector: Map<string, string>
}

export const podSandboxMetadata: Message<PodSandboxMetadata> = defineMessage({
  name: [1, 'string'],
  uid: [2, 'string'],
  namespace: [3, 'string'],
  attempt: [4, 'uint32'],
})
export const dNSConfig: Message<DNSConfig> = defineMessage({
  servers: [1, 'string', 'repeated'],
  searches: [2, 'string', 'repeated'],
  options: [3, 'string', 'repeated'],
})
export const portMapping: Message<PortMapping> = defineMessage({
  protocol: [1, 'enum'],
  containerPort: [2, 'int32'],
  hostPort: [3, 'int32'],
  hostIp: [4, 'string'],
})
export const iDMapping: Message<IDMapping> = defineMessage({
  hostId: [1, 'uint32'],
  containerId: [2, 'uint32'],
  length: [3, 'uint32'],
})
export const userNamespace: Message<UserNamespace> = defineMessage({
  mode: [1, 'enum'],
  uids: [2, iDMapping, 'repeated'],
  gids: [3, iDMapping, 'repeated'],
})
export const namespaceOption: Message<NamespaceOption> = defineMessage({
  network: [1, 'enum'],
  pid: [2, 'enum'],
  ipc: [3, 'enum'],
  targetId: [4, 'string'],
  usernsOptions: [5, userNamespace],
})
export const sELinuxOption: Message<SELinuxOption> = defineMessage({
  user: [1, 'string'],
  role: [2, 'string'],
  type: [3, 'string'],
  level: [4, 'string'],
})
export const int64Value: Message<Int64Value> = defineMessage({ value: [1, 'int64'] })
export const securityProfile: Message<SecurityProfile> = defineMessage({
  profileType: [1, 'enum'],
  localhostRef: [2, 'string'],
})
export const linuxSandboxSecurityContext: Message<LinuxSandboxSecurityContext> = defineMessage({
  namespaceOptions: [1, namespaceOption],
  selinuxOptions: [2, sELinuxOption],
  runAsUser: [3, int64Value],
  runAsGroup: [8, int64Value],
  readonlyRootfs: [4, 'bool'],
  supplementalGroups: [5, 'int64', 'repeated'],
  supplementalGroupsPolicy: [11, 'enum'],
  privileged: [6, 'bool'],
  seccomp: [9, securityProfile],
  apparmor: [10, securityProfile],
  seccompProfilePath: [7, 'string'],
})
export const hugepageLimit: Message<HugepageLimit> = defineMessage({ pageSize: [1, 'string'], limit: [2, 'uint64'] })
export const linuxContainerResources: Message<LinuxContainerResources> = defineMessage({
  cpuPeriod: [1, 'int64'],
  cpuQuota: [2, 'int64'],
  cpuShares: [3, 'int64'],
  memoryLimitInBytes: [4, 'int64'],
  oomScoreAdj: [5, 'int64'],
  cpusetCpus: [6, 'string'],
  cpusetMems: [7, 'string'],
  hugepageLimits: [8, hugepageLimit, 'repeated'],
  unified: [9, { key: 'string', value: 'string' }],
  memorySwapLimitInBytes: [10, 'int64'],
})
export const linuxPodSandboxConfig: Message<LinuxPodSandboxConfig> = defineMessage({
  cgroupParent: [1, 'string'],
  securityContext: [2, linuxSandboxSecurityContext],
  sysctls: [3, { key: 'string', value: 'string' }],
  overhead: [4, linuxContainerResources],
  resources: [5, linuxContainerResources],
})
export const podSandboxConfig: Message<PodSandboxConfig> = defineMessage({
  metadata: [1, podSandboxMetadata],
  hostname: [2, 'string'],
  logDirectory: [3, 'string'],
  dnsConfig: [4, dNSConfig],
  portMappings: [5, portMapping, 'repeated'],
  labels: [6, { key: 'string', value: 'string' }],
  annotations: [7, { key: 'string', value: 'string' }],
  linux: [8, linuxPodSandboxConfig],
})
export const podIP: Message<PodIP> = defineMessage({ ip: [1, 'string'] })
export const podSandboxNetworkStatus: Message<PodSandboxNetworkStatus> = defineMessage({
  ip: [1, 'string'],
  additionalIps: [2, podIP, 'repeated'],
})
export const namespace: Message<Namespace> = defineMessage({ options: [2, namespaceOption] })
export const linuxPodSandboxStatus: Message<LinuxPodSandboxStatus> = defineMessage({ namespaces: [1, namespace] })
export const podSandboxStatus: Message<PodSandboxStatus> = defineMessage({
  id: [1, 'string'],
  metadata: [2, podSandboxMetadata],
  state: [3, 'enum'],
  createdAt: [4, 'int64'],
  network: [5, podSandboxNetworkStatus],
  linux: [6, linuxPodSandboxStatus],
  labels: [7, { key: 'string', value: 'string' }],
  annotations: [8, { key: 'string', value: 'string' }],
  runtimeHandler: [9, 'string'],
})
export const podSandbox: Message<PodSandbox> = defineMessage({
  id: [1, 'string'],
  metadata: [2, podSandboxMetadata],
  state: [3, 'enum'],
  createdAt: [4, 'int64'],
  labels: [5, { key: 'string', value: 'string' }],
  annotations: [6, { key: 'string', value: 'string' }],
  runtimeHandler: [7, 'string'],
})
export const podSandboxStateValue: Message<PodSandboxStateValue> = defineMessage({ state: [1, 'enum'] })
export const podSandboxFilter: Message<PodSandboxFilter> = defineMessage({
  id: [1, 'string'],
  state: [2, podSandboxStateValue],
  labelSelector: [3, { key: 'string', value: 'string' }],
})
