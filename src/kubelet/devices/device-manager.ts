/**
 * Device manager: allocates devices of device plugins at admission, NUMA-aligned where requested, and writes a
 * checkpoint before the pod continues.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { ContainerAllocateResponse, type Device } from '#apis/wire/device-plugin.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import { readIntactCheckpoint, writeCheckpoint } from '../checkpoint/checkpoint.ts'
import type { PluginHandler } from '../plugins/plugin-watcher.ts'
import { mergeRunOptions, NO_RUN_OPTIONS, type RunContainerOptions } from '../pod/run-options.ts'
import { type Hint, hintsFor } from '../topology/hints.ts'
import { DEVICE_STATE, type DeviceEntry, NO_NODE } from './device-checkpoint.ts'
import { byNearness, candidatesOf } from './device-picking.ts'
import { type DeviceAmounts, DevicePlugins, type DevicePluginsOptions } from './device-plugins.ts'

export type DeviceManagerOptions = Omit<DevicePluginsOptions, 'onDevices'>

/** The devices of one resource that a container has. */
interface DeviceAllocation {
  readonly ids: readonly string[]
  /** The plugin's response. */
  readonly response: Buffer
}

const CHECKPOINT = 'kubelet_internal_checkpoint'

type SomeContainer = Container | EphemeralContainer

export class DeviceManager {
  readonly #options: DeviceManagerOptions
  readonly #plugins: DevicePlugins
  /** By pod, container and resource. */
  readonly #allocations = new Map<string, Map<string, Map<string, DeviceAllocation>>>()

  constructor(options: DeviceManagerOptions) {
    this.#options = options
    this.#plugins = new DevicePlugins({ ...options, onDevices: () => this.#write() })
  }

  /** Handles plugins found through their sockets. */
  get handler(): PluginHandler {
    return this.#plugins
  }

  /** Capacity and allocatable of the node. */
  get amounts(): DeviceAmounts {
    return this.#plugins.amounts
  }

  /** All devices by resource. */
  get all(): ReadonlyMap<string, ReadonlyMap<string, Device>> {
    return this.#plugins.all
  }

  /** Reads the checkpoint, then accepts registrations. */
  async start(): Promise<void> {
    const { dir } = this.#options
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const entries = await readdir(dir, { withFileTypes: true })
    for (const entry of entries) if (entry.isSocket()) await rm(join(dir, entry.name), { force: true })
    // Without a state, pods have no devices until they are admitted again.
    const state = await readIntactCheckpoint(join(dir, CHECKPOINT), DEVICE_STATE)
    for (const entry of state?.PodDeviceEntries ?? []) this.#restore(entry)
    await this.#plugins.start(Object.keys(state?.RegisteredDevices ?? {}))
  }

  #restore({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: DeviceEntry): void {
    const ids = Object.values(DeviceIDs).flat()
    this.#setAllocation(PodUID, ContainerName, ResourceName, { ids, response: Buffer.from(AllocResp, 'base64') })
  }

  #setAllocation(uid: string, container: string, resource: string, allocation: DeviceAllocation): void {
    const ofPod = this.#allocations.get(uid) ?? new Map<string, Map<string, DeviceAllocation>>()
    const ofContainer = ofPod.get(container) ?? new Map<string, DeviceAllocation>()
    this.#allocations.set(uid, ofPod.set(container, ofContainer.set(resource, allocation)))
  }

  allocationsOf(uid: string, container: string): ReadonlyMap<string, DeviceAllocation> {
    return this.#allocations.get(uid)?.get(container) ?? new Map()
  }

  uids(): readonly string[] {
    return [...this.#allocations.keys()]
  }

  #isDevice(resource: string): boolean {
    return this.all.has(resource) || this.#taken(resource).size > 0
  }

  #taken(resource: string): Set<string> {
    const pods = [...this.#allocations.values()].flatMap((containers) => [...containers.values()])
    return new Set(pods.flatMap((resources) => resources.get(resource)?.ids ?? []))
  }

  /** The plugin resources that the container requests. */
  requestsOf({ resources }: SomeContainer): [resource: string, count: number][] {
    return Object.entries(resources?.limits ?? {})
      .filter(([resource]) => this.#isDevice(resource))
      .map(([resource, amount]) => [resource, quantityValue(parseQuantity(amount))])
  }

  #free(resource: string): string[] {
    const taken = this.#taken(resource)
    return [...(this.#plugins.healthy(resource) ?? [])].filter((id) => !taken.has(id))
  }

  /** Hints per requested resource; undefined: no preference. `nodes` are all NUMA nodes of the machine. */
  hints(pod: Pod, container: SomeContainer, nodes: readonly number[]): (readonly Hint[] | undefined)[] {
    return this.requestsOf(container).map(([resource, count]) => {
      const devices = [...(this.all.get(resource)?.values() ?? [])]
      const isPlaced = devices.some(({ topology }) => (topology?.nodes.length ?? 0) > 0)
      if (!isPlaced || count === 0) return undefined
      const nodesOfUnits = (ids: ReadonlySet<string>): number[][] =>
        devices
          .filter(({ id }) => ids.has(id))
          .map(({ topology }) => (topology?.nodes ?? []).map(({ id }) => Number(id)))
      const allocation = this.allocationsOf(pod.metadata.uid ?? '', container.name).get(resource)
      if (allocation !== undefined && allocation.ids.length !== count) return []
      const free = new Set(this.#free(resource))
      const reusable = this.#reusable(pod, container.name, resource)
      return hintsFor({
        nodes,
        count,
        all: nodesOfUnits(new Set(devices.map(({ id }) => id))),
        available: nodesOfUnits(allocation === undefined ? free : new Set(allocation.ids)),
        reusable: nodesOfUnits(allocation === undefined ? reusable : new Set()),
      })
    })
  }

  /** `nodes` are the preferred NUMA nodes. Rejects with the reason of the rejection. */
  async allocate(pod: Pod, container: SomeContainer, nodes: readonly number[] | undefined): Promise<void> {
    const { uid = '' } = pod.metadata
    let isChanged = false
    for (const [resource, required] of this.requestsOf(container)) {
      const ids = await this.#choose(pod, container, { resource, required, nodes })
      if (ids === undefined || ids.length === 0) continue
      this.#setAllocation(uid, container.name, resource, { ids, response: await this.#plugins.allocate(resource, ids) })
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
    const allocation = this.allocationsOf(uid, name).get(resource)
    const found = candidatesOf({
      who: `pod "${uid}" container "${name}"`,
      resource,
      required,
      has: allocation === undefined ? undefined : new Set(allocation.ids),
      healthy: this.#plugins.healthy(resource),
      reusable: this.#reusable(pod, name, resource),
      taken: this.#taken(resource),
    })
    if (found === undefined) return undefined
    const { chosen, needed, available } = found
    if (needed === 0) return chosen
    const nodesOf = (id: string): number[] =>
      (this.all.get(resource)?.get(id)?.topology?.nodes ?? []).map(({ id: node }) => Number(node))
    const { near, others } = byNearness(available, nodesOf, nodes)
    const pool = near.length > needed ? near : available
    const preferred = await this.#plugins.prefer(resource, {
      availableDeviceIds: [...pool, ...chosen],
      mustIncludeDeviceIds: chosen,
      allocationSize: required,
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

  /** Devices of earlier init containers that will have ended. */
  #reusable({ spec, metadata: { uid = '' } }: Pod, container: string, resource: string): Set<string> {
    const { initContainers = [], containers } = spec
    const free = new Set<string>()
    for (const each of [...initContainers, ...containers]) {
      if (each.name === container) break
      const ids = this.allocationsOf(uid, each.name).get(resource)?.ids ?? []
      const ends = initContainers.includes(each) && each.restartPolicy !== 'Always'
      for (const id of ids)
        if (ends) free.add(id)
        else free.delete(id)
    }
    return free
  }

  async getResources(pod: Pod, container: SomeContainer): Promise<RunContainerOptions> {
    const { uid = '' } = pod.metadata
    const runOptions: RunContainerOptions[] = []
    const before = this.allocationsOf(uid, container.name)
    // An admitted pod without devices lost them with the checkpoint.
    const isLost = this.requestsOf(container).some(([resource, count]) => count > 0 && !before.has(resource))
    if (isLost) await this.allocate(pod, container, undefined)
    for (const [resource, allocation] of this.allocationsOf(uid, container.name)) {
      await this.#plugins.preStart(resource, allocation.ids)
      const { envs, mounts, devices, annotations, cdiDevices } = ContainerAllocateResponse.decode(allocation.response)
      runOptions.push({
        ...NO_RUN_OPTIONS,
        envs,
        mounts: mounts.map(({ readOnly, ...mount }) => ({ ...mount, readonly: readOnly })),
        devices,
        annotations,
        cdiDevices: cdiDevices.map(({ name }) => name),
      })
    }
    return mergeRunOptions(runOptions)
  }

  async release(uid: string): Promise<void> {
    if (this.#allocations.delete(uid)) await this.#write()
  }

  async #write(): Promise<void> {
    const { dir, clock, log } = this.#options
    const entries = [...this.#allocations].flatMap(([PodUID, containers]) =>
      [...containers].flatMap(([ContainerName, resources]) =>
        Array.from(resources, ([ResourceName, { ids, response }]) => ({
          PodUID,
          ContainerName,
          ResourceName,
          DeviceIDs: this.#idsByNode(ResourceName, ids),
          AllocResp: response.toString('base64'),
        })),
      ),
    )
    const registered = [...this.all.keys()].map((name) => [name, [...(this.#plugins.healthy(name) ?? [])]] as const)
    const state = {
      PodDeviceEntries: entries.length === 0 ? null : entries,
      RegisteredDevices: Object.fromEntries(registered),
    }
    await clock.during(writeCheckpoint(join(dir, CHECKPOINT), DEVICE_STATE, state)).catch((error: unknown) => {
      log.error(error, 'Failed to write checkpoint file')
    })
  }

  #idsByNode(resource: string, ids: readonly string[]): Record<string, string[]> {
    const byNode: Record<string, string[]> = {}
    for (const id of ids) {
      const nodes = this.all.get(resource)?.get(id)?.topology?.nodes ?? []
      const at = nodes.length === 0 ? [NO_NODE] : nodes.map((node) => Number(node.id))
      for (const node of at) (byNode[node] ??= []).push(id)
    }
    return byNode
  }
}
