/** The client of the gRPC service Node of CSI v1: message tables, and one method per call. */
import type { CallOptions, GrpcClient } from '#lib/grpc/client.ts'
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type Message, type MessageOf } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

export interface VolumeCapability {
  readonly block: object | undefined
  readonly mount:
    | { readonly fsType: string; readonly mountFlags: string[]; readonly volumeMountGroup: string }
    | undefined
  readonly accessMode: { readonly mode: number } | undefined
}

const TEXTS = { key: 'string', value: 'string' } as const
const nothing: Message<object> = defineMessage({})

const volumeCapability: Message<VolumeCapability> = defineMessage({
  block: [1, nothing],
  mount: [
    2,
    defineMessage({ fsType: [1, 'string'], mountFlags: [2, 'string', 'repeated'], volumeMountGroup: [3, 'string'] }),
  ],
  accessMode: [3, defineMessage({ mode: [1, 'enum'] })],
})

export interface StageRequest {
  readonly volumeId: string
  readonly publishContext: Map<string, string>
  readonly stagingTargetPath: string
  readonly volumeCapability: VolumeCapability | undefined
  readonly secrets: Map<string, string>
  readonly volumeContext: Map<string, string>
}

export interface PublishRequest extends StageRequest {
  readonly targetPath: string
  readonly readonly: boolean
}

export interface ExpandRequest {
  readonly volumeId: string
  readonly volumePath: string
  readonly capacityRange: { readonly requiredBytes: Int64; readonly limitBytes: Int64 } | undefined
  readonly stagingTargetPath: string
  readonly volumeCapability: VolumeCapability | undefined
  readonly secrets: Map<string, string>
}

export interface VolumeUsage {
  readonly available: Int64
  readonly total: Int64
  readonly used: Int64
  /** 1: bytes, 2: inodes. */
  readonly unit: number
}

export interface NodeInfo {
  readonly nodeId: string
  readonly maxVolumesPerNode: Int64
  readonly accessibleTopology: { readonly segments: Map<string, string> } | undefined
}

/** Node capabilities of a driver. */
export const CAPABILITY = {
  stage: 1,
  stats: 2,
  expand: 3,
  condition: 4,
  singleNodeMultiWriter: 5,
  mountGroup: 6,
} as const

function method<Q, R>(name: string, request: Message<Q>, response: Message<R>): Method<Q, Input<Q>, R, Input<R>> {
  return defineMethod(`/csi.v1.Node/${name}`, request, response)
}

const message = <const F extends Readonly<Record<string, Field>>>(fields: F): Message<MessageOf<F>> =>
  defineMessage(fields)

interface VolumeCondition {
  readonly abnormal: boolean
  readonly message: string
}

/** The calls with their methods. */
export interface NodeMethods {
  readonly getInfo: NodeMethod<object, NodeInfo>
  readonly getCapabilities: NodeMethod<
    object,
    { readonly capabilities: { readonly rpc: { readonly type: number } | undefined }[] }
  >
  readonly stage: NodeMethod<StageRequest, object>
  readonly unstage: NodeMethod<{ readonly volumeId: string; readonly stagingTargetPath: string }, object>
  readonly publish: NodeMethod<PublishRequest, object>
  readonly unpublish: NodeMethod<{ readonly volumeId: string; readonly targetPath: string }, object>
  readonly getStats: NodeMethod<
    { readonly volumeId: string; readonly volumePath: string; readonly stagingTargetPath: string },
    { readonly usage: VolumeUsage[]; readonly volumeCondition: VolumeCondition | undefined }
  >
  readonly expand: NodeMethod<ExpandRequest, { readonly capacityBytes: Int64 }>
}

type NodeMethod<Q, R> = Method<Q, Input<Q>, R, Input<R>>

export const NODE_METHODS: NodeMethods = {
  getInfo: method(
    'NodeGetInfo',
    nothing,
    message({
      nodeId: [1, 'string'],
      maxVolumesPerNode: [2, 'int64'],
      accessibleTopology: [3, defineMessage({ segments: [1, TEXTS] })],
    }),
  ),
  getCapabilities: method(
    'NodeGetCapabilities',
    nothing,
    message({ capabilities: [1, message({ rpc: [1, message({ type: [1, 'enum'] })] }), 'repeated'] }),
  ),
  stage: method(
    'NodeStageVolume',
    message({
      volumeId: [1, 'string'],
      publishContext: [2, TEXTS],
      stagingTargetPath: [3, 'string'],
      volumeCapability: [4, volumeCapability],
      secrets: [5, TEXTS],
      volumeContext: [6, TEXTS],
    }),
    nothing,
  ),
  unstage: method('NodeUnstageVolume', message({ volumeId: [1, 'string'], stagingTargetPath: [2, 'string'] }), nothing),
  publish: method(
    'NodePublishVolume',
    message({
      volumeId: [1, 'string'],
      publishContext: [2, TEXTS],
      stagingTargetPath: [3, 'string'],
      targetPath: [4, 'string'],
      volumeCapability: [5, volumeCapability],
      readonly: [6, 'bool'],
      secrets: [7, TEXTS],
      volumeContext: [8, TEXTS],
    }),
    nothing,
  ),
  unpublish: method('NodeUnpublishVolume', message({ volumeId: [1, 'string'], targetPath: [2, 'string'] }), nothing),
  getStats: method(
    'NodeGetVolumeStats',
    message({ volumeId: [1, 'string'], volumePath: [2, 'string'], stagingTargetPath: [3, 'string'] }),
    message({
      usage: [
        1,
        message({ available: [1, 'int64'], total: [2, 'int64'], used: [3, 'int64'], unit: [4, 'enum'] }),
        'repeated',
      ],
      volumeCondition: [2, message({ abnormal: [1, 'bool'], message: [2, 'string'] })],
    }),
  ),
  expand: method(
    'NodeExpandVolume',
    message({
      volumeId: [1, 'string'],
      volumePath: [2, 'string'],
      capacityRange: [3, message({ requiredBytes: [1, 'int64'], limitBytes: [2, 'int64'] })],
      stagingTargetPath: [4, 'string'],
      volumeCapability: [5, volumeCapability],
      secrets: [6, TEXTS],
    }),
    message({ capacityBytes: [1, 'int64'] }),
  ),
}

/** Client of a driver's socket. Fails with `GrpcError`. */
export type NodeService = {
  readonly [K in keyof NodeMethods]: NodeMethods[K] extends NodeMethod<infer Q, infer R>
    ? (request: Input<Q>) => Promise<R>
    : never
}

/** Upstream's timeout. */
const TIMEOUT_MS = 120_000

/** Runs a call and measures it. */
export type CountCall = <T>(path: string, call: () => Promise<T>) => Promise<T>

export function createNodeServiceClient(client: GrpcClient, count: CountCall = (_, call) => call()): NodeService {
  const options: CallOptions = { timeoutMs: TIMEOUT_MS, waitForReady: true }
  const calls = Object.entries(NODE_METHODS).map(([name, each]) => [
    name,
    (request: object) => count(each.path, () => client.unary(each as NodeMethod<object, object>, request, options)),
  ])
  return Object.fromEntries(calls) as NodeService
}
