/** How plugins of a node introduce themselves: `pluginregistration.Registration` v1, served by the plugin on a socket of its own. */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Input, type Message } from '#lib/protobuf/message.ts'

export interface PluginInfo {
  /** `CSIPlugin`, `DRAPlugin` or `DevicePlugin`. */
  readonly type: string
  readonly name: string
  /** The socket on which it does its work; that on which it was found when empty. */
  readonly endpoint: string
  readonly supportedVersions: string[]
}

export interface RegistrationStatus {
  readonly pluginRegistered: boolean
  readonly error: string
}

type Unary<Q, R> = Method<Q, Input<Q>, R, Input<R>>

const nothing: Message<object> = defineMessage({})

const pluginInfo: Message<PluginInfo> = defineMessage({
  type: [1, 'string'],
  name: [2, 'string'],
  endpoint: [3, 'string'],
  supportedVersions: [4, 'string', 'repeated'],
})

const registrationStatus: Message<RegistrationStatus> = defineMessage({
  pluginRegistered: [1, 'bool'],
  error: [2, 'string'],
})

export const getInfo: Unary<object, PluginInfo> = defineMethod(
  '/pluginregistration.Registration/GetInfo',
  nothing,
  pluginInfo,
)

export const notifyRegistrationStatus: Unary<RegistrationStatus, object> = defineMethod(
  '/pluginregistration.Registration/NotifyRegistrationStatus',
  registrationStatus,
  nothing,
)
