/**
 * Connects to device plugins, which register on the kubelet's socket and stream their devices. The kubelet calls them
 * for preferred allocations and container settings.
 */
import { join } from 'node:path'

import {
  ContainerAllocateResponse,
  type ContainerPreferredAllocationRequest,
  type Device,
  DevicePlugin,
  type DevicePluginOptions,
  type RegisterRequest,
  Registration,
} from '#apis/wire/device-plugin.ts'
import type { PluginInfo } from '#apis/wire/plugin-registration.ts'
import { callText } from '#cri/call-text.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import { createGrpcServer, handleUnary } from '#lib/grpc/server.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Input } from '#lib/protobuf/message.ts'
import type { Random } from '#lib/random.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PluginHandler } from '../plugins/plugin-watcher.ts'

export interface DevicePluginsOptions {
  /** `device-plugins`. */
  readonly dir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly meters: KubeletMeters
  /** Called when the amounts of the node have changed. */
  readonly onChange: () => void
  /** Called when a plugin has reported its devices, to write the checkpoint. */
  readonly onDevices: () => Promise<void>
}

interface Endpoint {
  readonly client: GrpcClient
  readonly options: DevicePluginOptions
  /** When the plugin stopped answering. */
  stoppedMs: number | undefined
}

export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
}

const SOCKET = 'kubelet.sock'
const VERSION = 'v1beta1'
const CALL_MS = 10_000
const PRE_START_MS = 30_000
/** Time in which a stopped plugin may return. */
const GRACE_MS = 300_000

export class DevicePlugins implements PluginHandler {
  readonly #options: DevicePluginsOptions
  readonly #endpoints = new Map<string, Endpoint>()
  /** By resource, then by ID. */
  readonly #devices = new Map<string, Map<string, Device>>()
  /** Resources reported with 0 once more, because only the kubelet removes them from the Node. */
  readonly #gone = new Set<string>()

  constructor(options: DevicePluginsOptions) {
    this.#options = options
  }

  /** Accepts registrations from now on. `before` are the resources of the last run. */
  async start(before: readonly string[]): Promise<void> {
    const { dir, clock, log, signal } = this.#options
    for (const resource of before) this.#gone.add(resource)
    const handlers = [handleUnary(Registration.register, (request) => this.#registered(request))]
    const onError = (error: unknown): void => log.error(error, 'Bad registration request from device plugin')
    const server = createGrpcServer({ handlers, clock, onError })
    await server.listen({ path: join(dir, SOCKET) })
    signal.addEventListener('abort', () => {
      void server.stop(0)
      for (const { client } of this.#endpoints.values()) client.close()
    })
  }

  async #registered({ version, endpoint, resourceName }: RegisterRequest): Promise<object> {
    if (version !== VERSION) {
      const text = `requested API version ${JSON.stringify(version)} is not supported by kubelet. Supported version is [${JSON.stringify(VERSION)}]`
      throw new GrpcError('unknown', text)
    }
    if (!isExtendedName(resourceName)) {
      throw new GrpcError('unknown', `the ResourceName ${JSON.stringify(resourceName)} is invalid`)
    }
    await this.#connect(resourceName, join(this.#options.dir, endpoint))
    return {}
  }

  validate({ name, supportedVersions }: PluginInfo): void {
    if (!supportedVersions.includes(VERSION)) {
      const list = `[${supportedVersions.join(' ')}]`
      throw new Error(`manager version, ${VERSION}, is not among plugin supported versions ${list}`)
    }
    if (isExtendedName(name)) return
    throw new Error(`invalid name of device plugin socket: the ResourceName ${JSON.stringify(name)} is invalid`)
  }

  register({ name, endpoint }: PluginInfo): Promise<void> {
    return this.#connect(name, endpoint)
  }

  async deregister({ name }: PluginInfo): Promise<void> {
    this.#endpoints.get(name)?.client.close()
  }

  async #connect(resource: string, path: string): Promise<void> {
    const { clock, random, meters } = this.#options
    meters.family('kubelet_device_plugin_registration_total').labels(resource).inc()
    const client = createGrpcClient({ targets: [{ path }], clock, random, connectTimeoutMs: CALL_MS })
    const options = await client
      .unary(DevicePlugin.getDevicePluginOptions, {}, { timeoutMs: CALL_MS, waitForReady: true })
      .catch((error: Error) => {
        client.close()
        throw new GrpcError('unknown', `failed to get device plugin options: ${callText(error)}`)
      })
    this.#endpoints.get(resource)?.client.close()
    const endpoint: Endpoint = { client, options, stoppedMs: undefined }
    this.#endpoints.set(resource, endpoint)
    this.#gone.delete(resource)
    void this.#watch(resource, endpoint)
  }

  /** Runs until the plugin ends, whose devices are then unhealthy. */
  async #watch(resource: string, endpoint: Endpoint): Promise<void> {
    const { clock, log, signal, onChange, onDevices } = this.#options
    try {
      for await (const { devices } of endpoint.client.serverStream(DevicePlugin.listAndWatch, {}, { signal })) {
        this.#devices.set(resource, new Map(devices.map((device) => [device.id, device])))
        onChange()
        await onDevices()
      }
    } catch (error) {
      if (!signal.aborted) log.error(error, 'ListAndWatch ended unexpectedly for device plugin', { resource })
    }
    endpoint.client.close()
    if (signal.aborted || this.#endpoints.get(resource) !== endpoint) return
    endpoint.stoppedMs = clock.now()
    clock.after(GRACE_MS, () => this.#forget(resource, endpoint), { background: true })
    onChange()
  }

  #forget(resource: string, endpoint: Endpoint): void {
    if (this.#endpoints.get(resource) !== endpoint) return
    this.#endpoints.delete(resource)
    this.#devices.delete(resource)
    this.#gone.add(resource)
    this.#options.onChange()
  }

  /** Undefined when the resource is not registered. */
  healthy(resource: string): ReadonlySet<string> | undefined {
    const endpoint = this.#endpoints.get(resource)
    const devices = this.#devices.get(resource)
    if (endpoint === undefined || devices === undefined) return undefined
    if (endpoint.stoppedMs !== undefined) return new Set()
    return new Set([...devices.values()].filter(({ health }) => health === 'Healthy').map(({ id }) => id))
  }

  /** Capacity and allocatable of the node. */
  get amounts(): DeviceAmounts {
    const capacity = Object.fromEntries([...this.#gone].map((resource) => [resource, '0']))
    const allocatable = { ...capacity }
    for (const [resource, devices] of this.#devices) {
      capacity[resource] = String(devices.size)
      allocatable[resource] = String(this.healthy(resource)?.size ?? 0)
    }
    return { capacity, allocatable }
  }

  /** All devices by resource. */
  get all(): ReadonlyMap<string, ReadonlyMap<string, Device>> {
    return this.#devices
  }

  /** The devices that the plugin prefers; empty if it has no preference. */
  async prefer(resource: string, request: Input<ContainerPreferredAllocationRequest>): Promise<readonly string[]> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint?.options.getPreferredAllocationAvailable !== true) return []
    const { containerResponses } = await endpoint.client
      .unary(DevicePlugin.getPreferredAllocation, { containerRequests: [request] }, { timeoutMs: CALL_MS })
      .catch((error: unknown) => {
        throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${callText(error)}`, {
          cause: error,
        })
      })
    return containerResponses[0]?.deviceIds ?? []
  }

  /** Calls Allocate and returns the encoded response. */
  async allocate(resource: string, deviceIds: readonly string[]): Promise<Buffer> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint === undefined) throw new Error(`unknown Device Plugin ${resource}`)
    const { clock, meters } = this.#options
    const startMs = clock.elapsed()
    const { containerResponses } = await endpoint.client
      .unary(DevicePlugin.allocate, { containerRequests: [{ devicesIds: [...deviceIds] }] }, { timeoutMs: CALL_MS })
      .catch((error: unknown) => {
        throw new Error(callText(error), { cause: error })
      })
    const durations = meters.family('kubelet_device_plugin_alloc_duration_seconds')
    durations.labels(resource).observe((clock.elapsed() - startMs) / 1000)
    const [response] = containerResponses
    if (response === undefined) throw new Error(`no containers return in allocation response ${resource}`)
    return ContainerAllocateResponse.encode(response)
  }

  /** Call before a container with these devices starts. */
  async preStart(resource: string, deviceIds: readonly string[]): Promise<void> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint === undefined) throw new Error(`endpoint not found in cache for a registered resource: ${resource}`)
    if (!endpoint.options.preStartRequired) return
    const options = { timeoutMs: PRE_START_MS }
    await endpoint.client
      .unary(DevicePlugin.preStartContainer, { devicesIds: [...deviceIds] }, options)
      .catch((error: unknown) => {
        throw new Error(`device plugin PreStartContainer rpc failed with err: ${callText(error)}`, { cause: error })
      })
  }
}

/** True for names such as `example.com/gpu`, outside of Kubernetes' domains. */
function isExtendedName(name: string): boolean {
  const [domain = '', rest = ''] = name.split('/')
  return rest !== '' && domain.includes('.') && domain !== 'kubernetes.io' && !domain.endsWith('.kubernetes.io')
}
