/** What is asked and told of the runtime itself, and of images. Tables of CRI v1: names, types, numbers. */
import { defineMessage, type Message } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

import { type ImageSpec, imageSpec } from './container-messages.ts'
import { type Int64Value, int64Value } from './sandbox-messages.ts'

export interface RuntimeCondition {
  readonly type: string
  readonly status: boolean
  readonly reason: string
  readonly message: string
}

export interface RuntimeStatus {
  readonly conditions: RuntimeCondition[]
}

export interface RuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts: boolean
  readonly userNamespaces: boolean
}

export interface RuntimeHandler {
  readonly name: string
  readonly features: RuntimeHandlerFeatures | undefined
}

export interface RuntimeFeatures {
  readonly supplementalGroupsPolicy: boolean
  readonly userNamespacesHostNetwork: boolean
}

export interface NetworkConfig {
  readonly podCidr: string
}

export interface RuntimeConfig {
  readonly networkConfig: NetworkConfig | undefined
}

export interface LinuxRuntimeConfiguration {
  readonly cgroupDriver: number
}

export interface Image {
  readonly id: string
  readonly repoTags: string[]
  readonly repoDigests: string[]
  readonly size: Int64
  readonly uid: Int64Value | undefined
  readonly username: string
  readonly spec: ImageSpec | undefined
  readonly pinned: boolean
}

export interface ImageFilter {
  readonly image: ImageSpec | undefined
}

export interface AuthConfig {
  readonly username: string
  readonly password: string
  readonly auth: string
  readonly serverAddress: string
  readonly identityToken: string
  readonly registryToken: string
}

export const runtimeCondition: Message<RuntimeCondition> = defineMessage({
  type: [1, 'string'],
  status: [2, 'bool'],
  reason: [3, 'string'],
  message: [4, 'string'],
})
export const runtimeStatus: Message<RuntimeStatus> = defineMessage({ conditions: [1, runtimeCondition, 'repeated'] })
export const runtimeHandlerFeatures: Message<RuntimeHandlerFeatures> = defineMessage({
  recursiveReadOnlyMounts: [1, 'bool'],
  userNamespaces: [2, 'bool'],
})
export const runtimeHandler: Message<RuntimeHandler> = defineMessage({
  name: [1, 'string'],
  features: [2, runtimeHandlerFeatures],
})
export const runtimeFeatures: Message<RuntimeFeatures> = defineMessage({
  supplementalGroupsPolicy: [1, 'bool'],
  userNamespacesHostNetwork: [2, 'bool'],
})
export const networkConfig: Message<NetworkConfig> = defineMessage({ podCidr: [1, 'string'] })
export const runtimeConfig: Message<RuntimeConfig> = defineMessage({ networkConfig: [1, networkConfig] })
export const linuxRuntimeConfiguration: Message<LinuxRuntimeConfiguration> = defineMessage({
  cgroupDriver: [1, 'enum'],
})
export const image: Message<Image> = defineMessage({
  id: [1, 'string'],
  repoTags: [2, 'string', 'repeated'],
  repoDigests: [3, 'string', 'repeated'],
  size: [4, 'uint64'],
  uid: [5, int64Value],
  username: [6, 'string'],
  spec: [7, imageSpec],
  pinned: [8, 'bool'],
})
export const imageFilter: Message<ImageFilter> = defineMessage({ image: [1, imageSpec] })
export const authConfig: Message<AuthConfig> = defineMessage({
  username: [1, 'string'],
  password: [2, 'string'],
  auth: [3, 'string'],
  serverAddress: [4, 'string'],
  identityToken: [5, 'string'],
  registryToken: [6, 'string'],
})
