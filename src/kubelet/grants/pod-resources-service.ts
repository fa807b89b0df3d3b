/** `v1` of the pod resources API: tables of names, types and numbers. */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type Message, type MessageOf } from '#lib/protobuf/message.ts'

const message = <const F extends Readonly<Record<string, Field>>>(fields: F): Message<MessageOf<F>> =>
  defineMessage(fields)

type Unary<Q, R> = Method<Q, Input<Q>, R, Input<R>>

interface Topology {
  readonly nodes: { readonly id: number | bigint }[]
}

export interface ContainerDevices {
  readonly resourceName: string
  readonly deviceIds: string[]
  readonly topology: Topology | undefined
}

export interface ContainerMemory {
  readonly memoryType: string
  readonly size: number | bigint
  readonly topology: Topology | undefined
}

interface ClaimResource {
  readonly cdiDevices: { readonly name: string }[]
  readonly driverName: string
  readonly poolName: string
  readonly deviceName: string
  readonly shareId: string | undefined
}

export interface DynamicResource {
  readonly claimName: string
  readonly claimNamespace: string
  readonly claimResources: ClaimResource[]
}

export interface ContainerResources {
  readonly name: string
  readonly devices: ContainerDevices[]
  readonly cpuIds: (number | bigint)[]
  readonly memory: ContainerMemory[]
  readonly dynamicResources: DynamicResource[]
}

export interface PodResources {
  readonly name: string
  readonly namespace: string
  readonly containers: ContainerResources[]
}

const nothing: Message<object> = defineMessage({})
const topology: Message<Topology> = message({ nodes: [1, message({ id: [1, 'int64'] }), 'repeated'] })
const devices: Message<ContainerDevices> = message({
  resourceName: [1, 'string'],
  deviceIds: [2, 'string', 'repeated'],
  topology: [3, topology],
})
const memory: Message<ContainerMemory> = message({
  memoryType: [1, 'string'],
  size: [2, 'uint64'],
  topology: [3, topology],
})
const claimResource: Message<ClaimResource> = message({
  cdiDevices: [1, message({ name: [1, 'string'] }), 'repeated'],
  driverName: [2, 'string'],
  poolName: [3, 'string'],
  deviceName: [4, 'string'],
  shareId: [5, 'string', 'optional'],
})
const dynamicResource: Message<DynamicResource> = message({
  claimName: [2, 'string'],
  claimNamespace: [3, 'string'],
  claimResources: [4, claimResource, 'repeated'],
})
const podResources: Message<PodResources> = message({
  name: [1, 'string'],
  namespace: [2, 'string'],
  containers: [
    3,
    message({
      name: [1, 'string'],
      devices: [2, devices, 'repeated'],
      cpuIds: [3, 'int64', 'repeated'],
      memory: [4, memory, 'repeated'],
      dynamicResources: [5, dynamicResource, 'repeated'],
    }),
    'repeated',
  ],
})

const SERVICE = '/v1.PodResourcesLister/'

export const listPodResources: Unary<object, { readonly podResources: PodResources[] }> = defineMethod(
  `${SERVICE}List`,
  nothing,
  message({ podResources: [1, podResources, 'repeated'] }),
)

export interface AllocatableResources {
  readonly devices: ContainerDevices[]
  readonly cpuIds: (number | bigint)[]
  readonly memory: ContainerMemory[]
}

export const getAllocatableResources: Unary<object, AllocatableResources> = defineMethod(
  `${SERVICE}GetAllocatableResources`,
  nothing,
  message({ devices: [1, devices, 'repeated'], cpuIds: [2, 'int64', 'repeated'], memory: [3, memory, 'repeated'] }),
)

export const getPodResources: Unary<
  { readonly podName: string; readonly podNamespace: string },
  { readonly podResources: PodResources | undefined }
> = defineMethod(
  `${SERVICE}Get`,
  message({ podName: [1, 'string'], podNamespace: [2, 'string'] }),
  message({ podResources: [1, podResources] }),
)
