/** `v1beta1` of device plugins: tables of names, types and numbers. Plugins register with the kubelet, which then asks them. */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type Message, type MessageOf } from '#lib/protobuf/message.ts'

const TEXTS = { key: 'string', value: 'string' } as const
const message = <const F extends Readonly<Record<string, Field>>>(fields: F): Message<MessageOf<F>> =>
  defineMessage(fields)
const nothing: Message<object> = defineMessage({})

export interface PluginOptions {
  readonly preStartRequired: boolean
  readonly getPreferredAllocationAvailable: boolean
}

export interface RegisterRequest {
  readonly version: string
  /** A socket in the folder of the kubelet's. */
  readonly endpoint: string
  readonly resourceName: string
  readonly options: PluginOptions | undefined
}

export interface PluginDevice {
  readonly id: string
  readonly health: string
  readonly topology: { readonly nodes: { readonly id: number | bigint }[] } | undefined
}

export interface AllocatedContainer {
  readonly envs: Map<string, string>
  readonly mounts: { readonly containerPath: string; readonly hostPath: string; readonly readOnly: boolean }[]
  readonly devices: { readonly containerPath: string; readonly hostPath: string; readonly permissions: string }[]
  readonly annotations: Map<string, string>
  readonly cdiDevices: { readonly name: string }[]
}

type Unary<Q, R> = Method<Q, Input<Q>, R, Input<R>>

const pluginOptions: Message<PluginOptions> = defineMessage({
  preStartRequired: [1, 'bool'],
  getPreferredAllocationAvailable: [2, 'bool'],
})

const pluginDevice: Message<PluginDevice> = message({
  id: [1, 'string'],
  health: [2, 'string'],
  topology: [3, message({ nodes: [1, message({ id: [1, 'int64'] }), 'repeated'] })],
})

/** Kept on the disk as it was answered. */
export const allocatedContainer: Message<AllocatedContainer> = message({
  envs: [1, TEXTS],
  mounts: [2, message({ containerPath: [1, 'string'], hostPath: [2, 'string'], readOnly: [3, 'bool'] }), 'repeated'],
  devices: [
    3,
    message({ containerPath: [1, 'string'], hostPath: [2, 'string'], permissions: [3, 'string'] }),
    'repeated',
  ],
  annotations: [4, TEXTS],
  cdiDevices: [5, message({ name: [1, 'string'] }), 'repeated'],
})

const SERVICE = '/v1beta1.DevicePlugin/'
const ids = message({ deviceIds: [1, 'string', 'repeated'] })

export const register: Unary<RegisterRequest, object> = defineMethod(
  '/v1beta1.Registration/Register',
  message({
    version: [1, 'string'],
    endpoint: [2, 'string'],
    resourceName: [3, 'string'],
    options: [4, pluginOptions],
  }),
  nothing,
)
export const getOptions: Unary<object, PluginOptions> = defineMethod(
  `${SERVICE}GetDevicePluginOptions`,
  nothing,
  pluginOptions,
)
export const listAndWatch: Unary<object, { readonly devices: PluginDevice[] }> = defineMethod(
  `${SERVICE}ListAndWatch`,
  nothing,
  message({ devices: [1, pluginDevice, 'repeated'] }),
)
export const allocate: Unary<
  { readonly containerRequests: { readonly deviceIds: string[] }[] },
  { readonly containerResponses: AllocatedContainer[] }
> = defineMethod(
  `${SERVICE}Allocate`,
  message({ containerRequests: [1, ids, 'repeated'] }),
  message({ containerResponses: [1, allocatedContainer, 'repeated'] }),
)
export const preStartContainer: Unary<{ readonly deviceIds: string[] }, object> = defineMethod(
  `${SERVICE}PreStartContainer`,
  ids,
  nothing,
)

interface PreferredRequest {
  readonly available: string[]
  readonly mustInclude: string[]
  readonly size: number
}

export const getPreferredAllocation: Unary<
  { readonly containerRequests: PreferredRequest[] },
  { readonly containerResponses: { readonly deviceIds: string[] }[] }
> = defineMethod(
  `${SERVICE}GetPreferredAllocation`,
  message({
    containerRequests: [
      1,
      message({ available: [1, 'string', 'repeated'], mustInclude: [2, 'string', 'repeated'], size: [3, 'int32'] }),
      'repeated',
    ],
  }),
  message({ containerResponses: [1, ids, 'repeated'] }),
)
