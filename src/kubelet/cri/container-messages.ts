/** What is asked and told of containers. Tables of CRI v1: names, types, numbers. */
import { defineMessage, type Message } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

import {
  type IDMapping,
  iDMapping,
  type Int64Value,
  int64Value,
  type LinuxContainerResources,
  linuxContainerResources,
  type NamespaceOption,
  namespaceOption,
  type SELinuxOption,
  sELinuxOption,
  type SecurityProfile,
  securityProfile,
} from './sandbox-messages.ts'

export interface ContainerMetadata {
  readonly name: string
  readonly attempt: number
}

export interface ImageSpec {
  readonly image: string
  readonly annotations: Map<string, string>
  readonly userSpecifiedImage: string
  readonly runtimeHandler: string
  readonly imageRef: string
}

export interface KeyValue {
  readonly key: string
  readonly value: Buffer
}

export interface Mount {
  readonly containerPath: string
  readonly hostPath: string
  readonly readonly: boolean
  readonly selinuxRelabel: boolean
  readonly propagation: number
  readonly uidMappings: IDMapping[]
  readonly gidMappings: IDMapping[]
  readonly recursiveReadOnly: boolean
  readonly image: ImageSpec | undefined
  readonly imageSubPath: string
}

export interface Device {
  readonly containerPath: string
  readonly hostPath: string
  readonly permissions: string
}

export interface Capability {
  readonly addCapabilities: string[]
  readonly dropCapabilities: string[]
  readonly addAmbientCapabilities: string[]
}

export interface LinuxContainerSecurityContext {
  readonly capabilities: Capability | undefined
  readonly privileged: boolean
  readonly namespaceOptions: NamespaceOption | undefined
  readonly selinuxOptions: SELinuxOption | undefined
  readonly runAsUser: Int64Value | undefined
  readonly runAsGroup: Int64Value | undefined
  readonly runAsUsername: string
  readonly readonlyRootfs: boolean
  readonly supplementalGroups: Int64[]
  readonly supplementalGroupsPolicy: number
  readonly noNewPrivs: boolean
  readonly maskedPaths: string[]
  readonly readonlyPaths: string[]
  readonly seccomp: SecurityProfile | undefined
  readonly apparmor: SecurityProfile | undefined
  readonly apparmorProfile: string
  readonly seccompProfilePath: string
}

export interface LinuxContainerConfig {
  readonly resources: LinuxContainerResources | undefined
  readonly securityContext: LinuxContainerSecurityContext | undefined
}

export interface CDIDevice {
  readonly name: string
}

export interface ContainerConfig {
  readonly metadata: ContainerMetadata | undefined
  readonly image: ImageSpec | undefined
  readonly command: string[]
  readonly args: string[]
  readonly workingDir: string
  readonly envs: KeyValue[]
  readonly mounts: Mount[]
  readonly devices: Device[]
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly logPath: string
  readonly stdin: boolean
  readonly stdinOnce: boolean
  readonly tty: boolean
  readonly linux: LinuxContainerConfig | undefined
  readonly cdiDevices: CDIDevice[]
  readonly stopSignal: number
}

export interface ContainerResources {
  readonly linux: LinuxContainerResources | undefined
}

export interface LinuxContainerUser {
  readonly uid: Int64
  readonly gid: Int64
  readonly supplementalGroups: Int64[]
}

export interface ContainerUser {
  readonly linux: LinuxContainerUser | undefined
}

export interface ContainerStatus {
  readonly id: string
  readonly metadata: ContainerMetadata | undefined
  readonly state: number
  readonly createdAt: Int64
  readonly startedAt: Int64
  readonly finishedAt: Int64
  readonly exitCode: number
  readonly image: ImageSpec | undefined
  readonly imageRef: string
  readonly reason: string
  readonly message: string
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly mounts: Mount[]
  readonly logPath: string
  readonly resources: ContainerResources | undefined
  readonly imageId: string
  readonly user: ContainerUser | undefined
  readonly stopSignal: number
}

export interface Container {
  readonly id: string
  readonly podSandboxId: string
  readonly metadata: ContainerMetadata | undefined
  readonly image: ImageSpec | undefined
  readonly imageRef: string
  readonly state: number
  readonly createdAt: Int64
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
  readonly imageId: string
}

export interface ContainerStateValue {
  readonly state: number
}

export interface ContainerFilter {
  readonly id: string
  readonly state: ContainerStateValue | undefined
  readonly podSandboxId: string
  readonly labelSelector: Map<string, string>
}

export const containerMetadata: Message<ContainerMetadata> = defineMessage({
  name: [1, 'string'],
  attempt: [2, 'uint32'],
})
export const imageSpec: Message<ImageSpec> = defineMessage({
  image: [1, 'string'],
  annotations: [2, { key: 'string', value: 'string' }],
  userSpecifiedImage: [18, 'string'],
  runtimeHandler: [19, 'string'],
  imageRef: [20, 'string'],
})
export const keyValue: Message<KeyValue> = defineMessage({ key: [1, 'string'], value: [2, 'bytes'] })
export const mount: Message<Mount> = defineMessage({
  containerPath: [1, 'string'],
  hostPath: [2, 'string'],
  readonly: [3, 'bool'],
  selinuxRelabel: [4, 'bool'],
  propagation: [5, 'enum'],
  uidMappings: [6, iDMapping, 'repeated'],
  gidMappings: [7, iDMapping, 'repeated'],
  recursiveReadOnly: [8, 'bool'],
  image: [9, imageSpec],
  imageSubPath: [10, 'string'],
})
export const device: Message<Device> = defineMessage({
  containerPath: [1, 'string'],
  hostPath: [2, 'string'],
  permissions: [3, 'string'],
})
export const capability: Message<Capability> = defineMessage({
  addCapabilities: [1, 'string', 'repeated'],
  dropCapabilities: [2, 'string', 'repeated'],
  addAmbientCapabilities: [3, 'string', 'repeated'],
})
export const linuxContainerSecurityContext: Message<LinuxContainerSecurityContext> = defineMessage({
  capabilities: [1, capability],
  privileged: [2, 'bool'],
  namespaceOptions: [3, namespaceOption],
  selinuxOptions: [4, sELinuxOption],
  runAsUser: [5, int64Value],
  runAsGroup: [12, int64Value],
  runAsUsername: [6, 'string'],
  readonlyRootfs: [7, 'bool'],
  supplementalGroups: [8, 'int64', 'repeated'],
  supplementalGroupsPolicy: [17, 'enum'],
  noNewPrivs: [11, 'bool'],
  maskedPaths: [13, 'string', 'repeated'],
  readonlyPaths: [14, 'string', 'repeated'],
  seccomp: [15, securityProfile],
  apparmor: [16, securityProfile],
  apparmorProfile: [9, 'string'],
  seccompProfilePath: [10, 'string'],
})
export const linuxContainerConfig: Message<LinuxContainerConfig> = defineMessage({
  resources: [1, linuxContainerResources],
  securityContext: [2, linuxContainerSecurityContext],
})
export const cDIDevice: Message<CDIDevice> = defineMessage({ name: [1, 'string'] })
export const containerConfig: Message<ContainerConfig> = defineMessage({
  metadata: [1, containerMetadata],
  image: [2, imageSpec],
  command: [3, 'string', 'repeated'],
  args: [4, 'string', 'repeated'],
  workingDir: [5, 'string'],
  envs: [6, keyValue, 'repeated'],
  mounts: [7, mount, 'repeated'],
  devices: [8, device, 'repeated'],
  labels: [9, { key: 'string', value: 'string' }],
  annotations: [10, { key: 'string', value: 'string' }],
  logPath: [11, 'string'],
  stdin: [12, 'bool'],
  stdinOnce: [13, 'bool'],
  tty: [14, 'bool'],
  linux: [15, linuxContainerConfig],
  cdiDevices: [17, cDIDevice, 'repeated'],
  stopSignal: [18, 'enum'],
})
export const containerResources: Message<ContainerResources> = defineMessage({ linux: [1, linuxContainerResources] })
export const linuxContainerUser: Message<LinuxContainerUser> = defineMessage({
  uid: [1, 'int64'],
  gid: [2, 'int64'],
  supplementalGroups: [3, 'int64', 'repeated'],
})
export const containerUser: Message<ContainerUser> = defineMessage({ linux: [1, linuxContainerUser] })
export const containerStatus: Message<ContainerStatus> = defineMessage({
  id: [1, 'string'],
  metadata: [2, containerMetadata],
  state: [3, 'enum'],
  createdAt: [4, 'int64'],
  startedAt: [5, 'int64'],
  finishedAt: [6, 'int64'],
  exitCode: [7, 'int32'],
  image: [8, imageSpec],
  imageRef: [9, 'string'],
  reason: [10, 'string'],
  message: [11, 'string'],
  labels: [12, { key: 'string', value: 'string' }],
  annotations: [13, { key: 'string', value: 'string' }],
  mounts: [14, mount, 'repeated'],
  logPath: [15, 'string'],
  resources: [16, containerResources],
  imageId: [17, 'string'],
  user: [18, containerUser],
  stopSignal: [19, 'enum'],
})
export const container: Message<Container> = defineMessage({
  id: [1, 'string'],
  podSandboxId: [2, 'string'],
  metadata: [3, containerMetadata],
  image: [4, imageSpec],
  imageRef: [5, 'string'],
  state: [6, 'enum'],
  createdAt: [7, 'int64'],
  labels: [8, { key: 'string', value: 'string' }],
  annotations: [9, { key: 'string', value: 'string' }],
  imageId: [10, 'string'],
})
export const containerStateValue: Message<ContainerStateValue> = defineMessage({ state: [1, 'enum'] })
export const containerFilter: Message<ContainerFilter> = defineMessage({
  id: [1, 'string'],
  state: [2, containerStateValue],
  podSandboxId: [3, 'string'],
  labelSelector: [4, { key: 'string', value: 'string' }],
})
