/**
 * What a kubelet asks of whatever runs its containers: CRI v1, one method a call. From the one table here come the client
 * of containerd and its like (`client.ts`), and the server in front of a runtime of our own (`server.ts`).
 */
import type { CallOptions } from '#lib/grpc/client.ts'
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type MessageOf } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

import {
  type Container,
  container,
  type ContainerConfig,
  containerConfig,
  type ContainerFilter,
  containerFilter,
  type ContainerStatus,
  containerStatus,
  type ImageSpec,
  imageSpec,
} from './container-messages.ts'
import {
  type AuthConfig,
  authConfig,
  type Image,
  image,
  type ImageFilter,
  imageFilter,
  type LinuxRuntimeConfiguration,
  linuxRuntimeConfiguration,
  type RuntimeConfig,
  runtimeConfig,
  type RuntimeFeatures,
  runtimeFeatures,
  type RuntimeHandler,
  runtimeHandler,
  type RuntimeStatus,
  runtimeStatus,
} from './runtime-messages.ts'
import {
  type LinuxContainerResources,
  linuxContainerResources,
  type PodSandbox,
  podSandbox,
  type PodSandboxConfig,
  podSandboxConfig,
  type PodSandboxFilter,
  podSandboxFilter,
  type PodSandboxStatus,
  podSandboxStatus,
} from './sandbox-messages.ts'
import {
  type ContainerStats,
  containerStats,
  type ContainerStatsFilter,
  containerStatsFilter,
  type FilesystemUsage,
  filesystemUsage,
  type PodSandboxStats,
  podSandboxStats,
  type PodSandboxStatsFilter,
  podSandboxStatsFilter,
} from './stats-messages.ts'

export interface ContainerEvent {
  readonly containerId: string
  readonly containerEventType: number
  readonly createdAt: Int64
  readonly podSandboxStatus: PodSandboxStatus | undefined
  readonly containersStatuses: ContainerStatus[]
}

/** Fails with `GrpcError`, as the runtime says it. */
type Call<Q, R> = (request: Input<Q>, options?: CallOptions) => Promise<R>

export interface Runtime {
  readonly version: Call<
    { readonly version: string },
    {
      readonly version: string
      readonly runtimeName: string
      readonly runtimeVersion: string
      readonly runtimeApiVersion: string
    }
  >
  readonly runPodSandbox: Call<
    { readonly config: PodSandboxConfig | undefined; readonly runtimeHandler: string },
    { readonly podSandboxId: string }
  >
  readonly stopPodSandbox: Call<{ readonly podSandboxId: string }, object>
  readonly removePodSandbox: Call<{ readonly podSandboxId: string }, object>
  readonly podSandboxStatus: Call<
    { readonly podSandboxId: string; readonly verbose: boolean },
    {
      readonly status: PodSandboxStatus | undefined
      readonly info: Map<string, string>
      readonly containersStatuses: ContainerStatus[]
      readonly timestamp: Int64
    }
  >
  readonly listPodSandbox: Call<{ readonly filter: PodSandboxFilter | undefined }, { readonly items: PodSandbox[] }>
  readonly createContainer: Call<
    {
      readonly podSandboxId: string
      readonly config: ContainerConfig | undefined
      readonly sandboxConfig: PodSandboxConfig | undefined
    },
    { readonly containerId: string }
  >
  readonly startContainer: Call<{ readonly containerId: string }, object>
  readonly stopContainer: Call<{ readonly containerId: string; readonly timeout: Int64 }, object>
  readonly removeContainer: Call<{ readonly containerId: string }, object>
  readonly listContainers: Call<{ readonly filter: ContainerFilter | undefined }, { readonly containers: Container[] }>
  readonly containerStatus: Call<
    { readonly containerId: string; readonly verbose: boolean },
    { readonly status: ContainerStatus | undefined; readonly info: Map<string, string> }
  >
  readonly updateContainerResources: Call<
    {
      readonly containerId: string
      readonly linux: LinuxContainerResources | undefined
      readonly annotations: Map<string, string>
    },
    object
  >
  readonly reopenContainerLog: Call<{ readonly containerId: string }, object>
  readonly execSync: Call<
    { readonly containerId: string; readonly cmd: string[]; readonly timeout: Int64 },
    { readonly stdout: Buffer; readonly stderr: Buffer; readonly exitCode: number }
  >
  readonly exec: Call<
    {
      readonly containerId: string
      readonly cmd: string[]
      readonly tty: boolean
      readonly stdin: boolean
      readonly stdout: boolean
      readonly stderr: boolean
    },
    { readonly url: string }
  >
  readonly attach: Call<
    {
      readonly containerId: string
      readonly stdin: boolean
      readonly tty: boolean
      readonly stdout: boolean
      readonly stderr: boolean
    },
    { readonly url: string }
  >
  readonly portForward: Call<{ readonly podSandboxId: string; readonly port: number[] }, { readonly url: string }>
  readonly containerStats: Call<{ readonly containerId: string }, { readonly stats: ContainerStats | undefined }>
  readonly listContainerStats: Call<
    { readonly filter: ContainerStatsFilter | undefined },
    { readonly stats: ContainerStats[] }
  >
  readonly podSandboxStats: Call<{ readonly podSandboxId: string }, { readonly stats: PodSandboxStats | undefined }>
  readonly listPodSandboxStats: Call<
    { readonly filter: PodSandboxStatsFilter | undefined },
    { readonly stats: PodSandboxStats[] }
  >
  readonly updateRuntimeConfig: Call<{ readonly runtimeConfig: RuntimeConfig | undefined }, object>
  readonly status: Call<
    { readonly verbose: boolean },
    {
      readonly status: RuntimeStatus | undefined
      readonly info: Map<string, string>
      readonly runtimeHandlers: RuntimeHandler[]
      readonly features: RuntimeFeatures | undefined
    }
  >
  readonly checkpointContainer: Call<
    { readonly containerId: string; readonly location: string; readonly timeout: Int64 },
    object
  >
  readonly getContainerEvents: (request: object, options?: CallOptions) => AsyncIterable<ContainerEvent>
  readonly runtimeConfig: Call<object, { readonly linux: LinuxRuntimeConfiguration | undefined }>
  readonly updatePodSandboxResources: Call<
    {
      readonly podSandboxId: string
      readonly overhead: LinuxContainerResources | undefined
      readonly resources: LinuxContainerResources | undefined
    },
    object
  >
  readonly listImages: Call<{ readonly filter: ImageFilter | undefined }, { readonly images: Image[] }>
  readonly imageStatus: Call<
    { readonly image: ImageSpec | undefined; readonly verbose: boolean },
    { readonly image: Image | undefined; readonly info: Map<string, string> }
  >
  readonly pullImage: Call<
    {
      readonly image: ImageSpec | undefined
      readonly auth: AuthConfig | undefined
      readonly sandboxConfig: PodSandboxConfig | undefined
    },
    { readonly imageRef: string }
  >
  readonly removeImage: Call<{ readonly image: ImageSpec | undefined }, object>
  readonly imageFsInfo: Call<
    object,
    { readonly imageFilesystems: FilesystemUsage[]; readonly containerFilesystems: FilesystemUsage[] }
  >
}

type Table = Readonly<Record<string, Field>>
type Rpc<Q, R> = Method<Q, Input<Q>, R, Input<R>>

const of =
  (service: string) =>
  <const Q extends Table, const R extends Table>(
    name: string,
    request: Q,
    response: R,
  ): Rpc<MessageOf<Q>, MessageOf<R>> =>
    defineMethod(`/runtime.v1.${service}/${name}`, defineMessage(request), defineMessage(response))

const runtimeCall = of('RuntimeService')
const imageCall = of('ImageService')

type MethodOf<F> = F extends (request: infer Q, ...rest: never[]) => Promise<infer R> | AsyncIterable<infer R>
  ? Method<unknown, Q, R, unknown>
  : never

export type Methods = { readonly [K in keyof Runtime]: MethodOf<Runtime[K]> }

export const METHODS: Methods = {
  version: runtimeCall(
    'Version',
    { version: [1, 'string'] },
    {
      version: [1, 'string'],
      runtimeName: [2, 'string'],
      runtimeVersion: [3, 'string'],
      runtimeApiVersion: [4, 'string'],
    },
  ),
  runPodSandbox: runtimeCall(
    'RunPodSandbox',
    { config: [1, podSandboxConfig], runtimeHandler: [2, 'string'] },
    { podSandboxId: [1, 'string'] },
  ),
  stopPodSandbox: runtimeCall('StopPodSandbox', { podSandboxId: [1, 'string'] }, {}),
  removePodSandbox: runtimeCall('RemovePodSandbox', { podSandboxId: [1, 'string'] }, {}),
  podSandboxStatus: runtimeCall(
    'PodSandboxStatus',
    { podSandboxId: [1, 'string'], verbose: [2, 'bool'] },
    {
      status: [1, podSandboxStatus],
      info: [2, { key: 'string', value: 'string' }],
      containersStatuses: [3, containerStatus, 'repeated'],
      timestamp: [4, 'int64'],
    },
  ),
  listPodSandbox: runtimeCall(
    'ListPodSandbox',
    { filter: [1, podSandboxFilter] },
    { items: [1, podSandbox, 'repeated'] },
  ),
  createContainer: runtimeCall(
    'CreateContainer',
    { podSandboxId: [1, 'string'], config: [2, containerConfig], sandboxConfig: [3, podSandboxConfig] },
    { containerId: [1, 'string'] },
  ),
  startContainer: runtimeCall('StartContainer', { containerId: [1, 'string'] }, {}),
  stopContainer: runtimeCall('StopContainer', { containerId: [1, 'string'], timeout: [2, 'int64'] }, {}),
  removeContainer: runtimeCall('RemoveContainer', { containerId: [1, 'string'] }, {}),
  listContainers: runtimeCall(
    'ListContainers',
    { filter: [1, containerFilter] },
    { containers: [1, container, 'repeated'] },
  ),
  containerStatus: runtimeCall(
    'ContainerStatus',
    { containerId: [1, 'string'], verbose: [2, 'bool'] },
    { status: [1, containerStatus], info: [2, { key: 'string', value: 'string' }] },
  ),
  updateContainerResources: runtimeCall(
    'UpdateContainerResources',
    {
      containerId: [1, 'string'],
      linux: [2, linuxContainerResources],
      annotations: [4, { key: 'string', value: 'string' }],
    },
    {},
  ),
  reopenContainerLog: runtimeCall('ReopenContainerLog', { containerId: [1, 'string'] }, {}),
  execSync: runtimeCall(
    'ExecSync',
    { containerId: [1, 'string'], cmd: [2, 'string', 'repeated'], timeout: [3, 'int64'] },
    { stdout: [1, 'bytes'], stderr: [2, 'bytes'], exitCode: [3, 'int32'] },
  ),
  exec: runtimeCall(
    'Exec',
    {
      containerId: [1, 'string'],
      cmd: [2, 'string', 'repeated'],
      tty: [3, 'bool'],
      stdin: [4, 'bool'],
      stdout: [5, 'bool'],
      stderr: [6, 'bool'],
    },
    { url: [1, 'string'] },
  ),
  attach: runtimeCall(
    'Attach',
    { containerId: [1, 'string'], stdin: [2, 'bool'], tty: [3, 'bool'], stdout: [4, 'bool'], stderr: [5, 'bool'] },
    { url: [1, 'string'] },
  ),
  portForward: runtimeCall(
    'PortForward',
    { podSandboxId: [1, 'string'], port: [2, 'int32', 'repeated'] },
    { url: [1, 'string'] },
  ),
  containerStats: runtimeCall('ContainerStats', { containerId: [1, 'string'] }, { stats: [1, containerStats] }),
  listContainerStats: runtimeCall(
    'ListContainerStats',
    { filter: [1, containerStatsFilter] },
    { stats: [1, containerStats, 'repeated'] },
  ),
  podSandboxStats: runtimeCall('PodSandboxStats', { podSandboxId: [1, 'string'] }, { stats: [1, podSandboxStats] }),
  listPodSandboxStats: runtimeCall(
    'ListPodSandboxStats',
    { filter: [1, podSandboxStatsFilter] },
    { stats: [1, podSandboxStats, 'repeated'] },
  ),
  updateRuntimeConfig: runtimeCall('UpdateRuntimeConfig', { runtimeConfig: [1, runtimeConfig] }, {}),
  status: runtimeCall(
    'Status',
    { verbose: [1, 'bool'] },
    {
      status: [1, runtimeStatus],
      info: [2, { key: 'string', value: 'string' }],
      runtimeHandlers: [3, runtimeHandler, 'repeated'],
      features: [4, runtimeFeatures],
    },
  ),
  checkpointContainer: runtimeCall(
    'CheckpointContainer',
    { containerId: [1, 'string'], location: [2, 'string'], timeout: [3, 'int64'] },
    {},
  ),
  getContainerEvents: runtimeCall(
    'GetContainerEvents',
    {},
    {
      containerId: [1, 'string'],
      containerEventType: [2, 'enum'],
      createdAt: [3, 'int64'],
      podSandboxStatus: [4, podSandboxStatus],
      containersStatuses: [5, containerStatus, 'repeated'],
    },
  ),
  runtimeConfig: runtimeCall('RuntimeConfig', {}, { linux: [1, linuxRuntimeConfiguration] }),
  updatePodSandboxResources: runtimeCall(
    'UpdatePodSandboxResources',
    { podSandboxId: [1, 'string'], overhead: [2, linuxContainerResources], resources: [3, linuxContainerResources] },
    {},
  ),
  listImages: imageCall('ListImages', { filter: [1, imageFilter] }, { images: [1, image, 'repeated'] }),
  imageStatus: imageCall(
    'ImageStatus',
    { image: [1, imageSpec], verbose: [2, 'bool'] },
    { image: [1, image], info: [2, { key: 'string', value: 'string' }] },
  ),
  pullImage: imageCall(
    'PullImage',
    { image: [1, imageSpec], auth: [2, authConfig], sandboxConfig: [3, podSandboxConfig] },
    { imageRef: [1, 'string'] },
  ),
  removeImage: imageCall('RemoveImage', { image: [1, imageSpec] }, {}),
  imageFsInfo: imageCall(
    'ImageFsInfo',
    {},
    { imageFilesystems: [1, filesystemUsage, 'repeated'], containerFilesystems: [2, filesystemUsage, 'repeated'] },
  ),
}
