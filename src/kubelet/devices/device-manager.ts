/**
 * Device plugins: they register on a socket of the kubelet's, tell their devices as long as they are there, and are asked what a
 * container needs to use those it got. Who has which is on the disk before the pod goes on.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import { createGrpcServer, handleUnary } from '#lib/grpc/server.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import { callText } from '../cri/call-text.ts'
import { type ContainerGrant, mergeGrants, NO_GRANT } from '../grants/container-grant.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PluginHandler } from '../plugins/plugin-watcher.ts'
import type { PluginInfo } from '../plugins/registration.ts'
import { type Hint, hintsFor } from '../topology/hints.ts'
import { type DeviceEntry, NOWHERE, readDeviceState, writeDeviceState } from './device-checkpoint.ts'
import { byNearness, candidatesOf } from './device-picking.ts'
import {
  allocate,
  allocatedContainer,
  getOptions,
  getPreferredAllocation,
  listAndWatch,
  type PluginDevice,
  type PluginOptions,
  preStartContainer,
  register,
  type RegisterRequest,
} from './device-plugin-service.ts'

export interface DeviceManagerOptions {
  /** `device-plugins`. */
  readonly dir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly meters: KubeletMeters
  /** What the node has of them has changed. */
  readonly onChange: () => void
}

interface Endpoint {
  readonly client: GrpcClient
  readonly options: PluginOptions
  /** Since when it does not answer. */
  stoppedMs: number | undefined
}

/** What one container has of one resource. */
interface Held {
  readonly ids: readonly string[]
  /** The plugin's answer. */
  readonly response: Buffer
}

export interface Amounts {
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
}

const CHECKPOINT = 'kubelet_internal_checkpoint'
const SOCKET = 'kubelet.sock'
const VERSION = 'v1beta1'
const CALL_MS = 10_000
const PRE_START_MS = 30_000
/** A plugin that has gone may come back as long. */
const GRACE_MS = 300_000

type SomeContainer = Container | EphemeralContainer

export class DeviceManager implements PluginHandler {
  readonly #options: DeviceManagerOptions
  readonly #endpoints = new Map<string, Endpoint>()
  /** By resource, then by id. */
  readonly #devices = new Map<string, Map<string, PluginDevice>>()
  /** By pod, container and resource. */
  readonly #held = new Map<string, Map<string, Map<string, Held>>>()
  /** Told once more, as 0: nobody else takes them from the node. */
  readonly #gone = new Set<string>()

  constructor(options: DeviceManagerOptions) {
    this.#options = options
  }

  /** Reads who has what, and takes registrations from then on. */
  async start(): Promise<void> {
    const { dir, clock, log, signal } = this.#options
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const entries = await readdir(dir, { withFileTypes: true })
    for (const entry of entries) if (entry.isSocket()) await rm(join(dir, entry.name), { force: true })
    const state = await readDeviceState(join(dir, CHECKPOINT))
    for (const entry of state?.PodDeviceEntries ?? []) this.#remember(entry)
    for (const resource of Object.keys(state?.RegisteredDevices ?? {})) this.#gone.add(resource)
    const handlers = [handleUnary(register, (request) => this.#registered(request))]
    const onError = (error: unknown): void => log.error(error, 'Bad registration request from device plugin')
    const server = createGrpcServer({ handlers, clock, onError })
    await server.listen({ path: join(dir, SOCKET) })
    signal.addEventListener('abort', () => {
      void server.stop(0)
      for (const { client } of this.#endpoints.values()) client.close()
    })
  }

  #remember({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: DeviceEntry): void {
    const ids = Object.values(DeviceIDs).flat()
    this.#hold(PodUID, ContainerName, ResourceName, { ids, response: Buffer.from(AllocResp, 'base64') })
  }

  #hold(uid: string, container: string, resource: string, held: Held): void {
    const ofPod = this.#held.get(uid) ?? new Map<string, Map<string, Held>>()
    const ofContainer = ofPod.get(container) ?? new Map<string, Held>()
    this.#held.set(uid, ofPod.set(container, ofContainer.set(resource, held)))
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
      .unary(getOptions, {}, { timeoutMs: CALL_MS, waitForReady: true })
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

  /** Until the plugin ends; its devices are unhealthy then. */
  async #watch(resource: string, endpoint: Endpoint): Promise<void> {
    const { clock, log, signal, onChange } = this.#options
    try {
      for await (const { devices } of endpoint.client.serverStream(listAndWatch, {}, { signal })) {
        this.#devices.set(resource, new Map(devices.map((device) => [device.id, device])))
        onChange()
        await this.#write()
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

  /** Undefined when nobody has registered it. */
  #healthy(resource: string): ReadonlySet<string> | undefined {
    const endpoint = this.#endpoints.get(resource)
    const devices = this.#devices.get(resource)
    if (endpoint === undefined || devices === undefined) return undefined
    if (endpoint.stoppedMs !== undefined) return new Set()
    return new Set([...devices.values()].filter(({ health }) => health === 'Healthy').map(({ id }) => id))
  }

  /** Of the node. */
  get amounts(): Amounts {
    const capacity = Object.fromEntries([...this.#gone].map((resource) => [resource, '0']))
    const allocatable = { ...capacity }
    for (const [resource, devices] of this.#devices) {
      capacity[resource] = String(devices.size)
      allocatable[resource] = String(this.#healthy(resource)?.size ?? 0)
    }
    return { capacity, allocatable }
  }

  /** By resource: all there are, and at which nodes of memory. */
  get all(): ReadonlyMap<string, ReadonlyMap<string, PluginDevice>> {
    return this.#devices
  }

  heldBy(uid: string, container: string): ReadonlyMap<string, Held> {
    return this.#held.get(uid)?.get(container) ?? new Map()
  }

  uids(): readonly string[] {
    return [...this.#held.keys()]
  }

  #isDevice(resource: string): boolean {
    return this.#devices.has(resource) || this.#taken(resource).size > 0
  }

  #taken(resource: string): Set<string> {
    const pods = [...this.#held.values()].flatMap((containers) => [...containers.values()])
    return new Set(pods.flatMap((resources) => resources.get(resource)?.ids ?? []))
  }

  /** What the container asks for of what plugins offer. */
  asksOf({ resources }: SomeContainer): [resource: string, count: number][] {
    return Object.entries(resources?.limits ?? {})
      .filter(([resource]) => this.#isDevice(resource))
      .map(([resource, amount]) => [resource, quantityValue(parseQuantity(amount))])
  }

  #free(resource: string): string[] {
    const taken = this.#taken(resource)
    return [...(this.#healthy(resource) ?? [])].filter((id) => !taken.has(id))
  }

  /** Of each resource that it asks for; undefined: it does not matter where. `nodes`: of memory, all of the machine. */
  hints(pod: Pod, container: SomeContainer, nodes: readonly number[]): (readonly Hint[] | undefined)[] {
    return this.asksOf(container).map(([resource, count]) => {
      const devices = [...(this.#devices.get(resource)?.values() ?? [])]
      const isPlaced = devices.some(({ topology }) => (topology?.nodes.length ?? 0) > 0)
      if (!isPlaced || count === 0) return undefined
      const placesOf = (ids: ReadonlySet<string>): number[][] =>
        devices
          .filter(({ id }) => ids.has(id))
          .map(({ topology }) => (topology?.nodes ?? []).map(({ id }) => Number(id)))
      const held = this.heldBy(pod.metadata.uid ?? '', container.name).get(resource)
      if (held !== undefined && held.ids.length !== count) return []
      const free = new Set(this.#free(resource))
      const reusable = this.#reusable(pod, container.name, resource)
      return hintsFor({
        nodes,
        count,
        all: placesOf(new Set(devices.map(({ id }) => id))),
        available: placesOf(held === undefined ? free : new Set(held.ids)),
        reusable: placesOf(held === undefined ? reusable : new Set()),
      })
    })
  }

  /** `nodes`: of memory, at which they should be. Rejects with what the pod is refused for. */
  async allocate(pod: Pod, container: SomeContainer, nodes: readonly number[] | undefined): Promise<void> {
    const { uid = '' } = pod.metadata
    let isChanged = false
    for (const [resource, required] of this.asksOf(container)) {
      const ids = await this.#choose(pod, container, { resource, required, nodes })
      if (ids === undefined || ids.length === 0) continue
      this.#hold(uid, container.name, resource, { ids, response: await this.#ask(resource, ids) })
      isChanged = true
    }
    if (isChanged) await this.#write()
  }

  async #choose(
    pod: Pod,
    { name }: SomeContainer,
    { resource, required, nodes }: { resource: string; required: number; nodes: readonly number[] | undefined },
  ): Promise<readonly string[] | undefined> {
    const { uid = '' } = pod.metadata
    const held = this.heldBy(uid, name).get(resource)
    const found = candidatesOf({
      who: `pod "${uid}" container "${name}"`,
      resource,
      required,
      has: held === undefined ? undefined : new Set(held.ids),
      healthy: this.#healthy(resource),
      reusable: this.#reusable(pod, name, resource),
      taken: this.#taken(resource),
    })
    if (found === undefined) return undefined
    const { chosen, needed, available } = found
    if (needed === 0) return chosen
    const nodesOf = (id: string): number[] =>
      (this.#devices.get(resource)?.get(id)?.topology?.nodes ?? []).map(({ id: node }) => Number(node))
    const { near, others } = byNearness(available, nodesOf, nodes)
    const pool = near.length > needed ? near : available
    const preferred = await this.#prefer(resource, {
      available: [...pool, ...chosen],
      mustInclude: chosen,
      size: required,
    })
    const first = near.length > needed || near.length === 0 ? preferred : []
    const order = [
      ...first.filter((id) => pool.includes(id)),
      ...near,
      ...preferred.filter((id) => others.includes(id)),
      ...others,
    ]
    return [...chosen, ...new Set(order)].slice(0, required)
  }

  /** Those of init containers that come before it and end. */
  #reusable({ spec, metadata: { uid = '' } }: Pod, container: string, resource: string): Set<string> {
    const { initContainers = [], containers } = spec
    const free = new Set<string>()
    for (const each of [...initContainers, ...containers]) {
      if (each.name === container) break
      const ids = this.heldBy(uid, each.name).get(resource)?.ids ?? []
      const ends = initContainers.includes(each) && each.restartPolicy !== 'Always'
      for (const id of ids)
        if (ends) free.add(id)
        else free.delete(id)
    }
    return free
  }

  async #prefer(
    resource: string,
    request: { available: string[]; mustInclude: readonly string[]; size: number },
  ): Promise<readonly string[]> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint?.options.getPreferredAllocationAvailable !== true) return []
    const { containerResponses } = await endpoint.client
      .unary(getPreferredAllocation, { containerRequests: [request] }, { timeoutMs: CALL_MS })
      .catch((error: unknown) => {
        throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${callText(error)}`, {
          cause: error,
        })
      })
    return containerResponses[0]?.deviceIds ?? []
  }

  async #ask(resource: string, deviceIds: readonly string[]): Promise<Buffer> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint === undefined) throw new Error(`unknown Device Plugin ${resource}`)
    const { clock, meters } = this.#options
    const startMs = clock.elapsed()
    const { containerResponses } = await endpoint.client
      .unary(allocate, { containerRequests: [{ deviceIds: [...deviceIds] }] }, { timeoutMs: CALL_MS })
      .catch((error: unknown) => {
        throw new Error(callText(error), { cause: error })
      })
    const durations = meters.family('kubelet_device_plugin_alloc_duration_seconds')
    durations.labels(resource).observe((clock.elapsed() - startMs) / 1000)
    const [response] = containerResponses
    if (response === undefined) throw new Error(`no containers return in allocation response ${resource}`)
    return allocatedContainer.encode(response)
  }

  async grantOf(pod: Pod, container: SomeContainer): Promise<ContainerGrant> {
    const { uid = '' } = pod.metadata
    const grants: ContainerGrant[] = []
    const before = this.heldBy(uid, container.name)
    // Whoever was admitted and has nothing lost it with the file.
    const isLost = this.asksOf(container).some(([resource, count]) => count > 0 && !before.has(resource))
    if (isLost) await this.allocate(pod, container, undefined)
    for (const [resource, held] of this.heldBy(uid, container.name)) {
      await this.#preStart(resource, held.ids)
      const { envs, mounts, devices, annotations, cdiDevices } = allocatedContainer.decode(held.response)
      grants.push({
        ...NO_GRANT,
        envs,
        mounts: mounts.map(({ readOnly, ...mount }) => ({ ...mount, readonly: readOnly })),
        devices,
        annotations,
        cdiDevices: cdiDevices.map(({ name }) => name),
      })
    }
    return mergeGrants(grants)
  }

  async #preStart(resource: string, deviceIds: readonly string[]): Promise<void> {
    const endpoint = this.#endpoints.get(resource)
    if (endpoint === undefined) throw new Error(`endpoint not found in cache for a registered resource: ${resource}`)
    if (!endpoint.options.preStartRequired) return
    const options = { timeoutMs: PRE_START_MS }
    await endpoint.client.unary(preStartContainer, { deviceIds: [...deviceIds] }, options).catch((error: unknown) => {
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${callText(error)}`, { cause: error })
    })
  }

  async release(uid: string): Promise<void> {
    if (this.#held.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { dir, clock, log } = this.#options
    const entries = [...this.#held].flatMap(([PodUID, containers]) =>
      [...containers].flatMap(([ContainerName, resources]) =>
        Array.from(resources, ([ResourceName, { ids, response }]) => ({
          PodUID,
          ContainerName,
          ResourceName,
          DeviceIDs: this.#placed(ResourceName, ids),
          AllocResp: response.toString('base64'),
        })),
      ),
    )
    const registered = [...this.#devices.keys()].map((name) => [name, [...(this.#healthy(name) ?? [])]] as const)
    const state = {
      PodDeviceEntries: entries.length === 0 ? null : entries,
      RegisteredDevices: Object.fromEntries(registered),
    }
    await clock.during(writeDeviceState(join(dir, CHECKPOINT), state)).catch((error: unknown) => {
      log.error(error, 'Failed to write checkpoint file')
    })
  }

  #placed(resource: string, ids: readonly string[]): Record<string, string[]> {
    const places: Record<string, string[]> = {}
    for (const id of ids) {
      const nodes = this.#devices.get(resource)?.get(id)?.topology?.nodes ?? []
      const at = nodes.length === 0 ? [NOWHERE] : nodes.map((node) => Number(node.id))
      for (const node of at) (places[node] ??= []).push(id)
    }
    return places
  }
}

/** `example.com/gpu`: of a domain that is not Kubernetes' own. */
function isExtendedName(name: string): boolean {
  const [domain = '', rest = ''] = name.split('/')
  return rest !== '' && domain.includes('.') && domain !== 'kubernetes.io' && !domain.endsWith('.kubernetes.io')
}
