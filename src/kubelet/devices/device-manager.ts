/**
 * Who has which devices of plugins: chosen when a pod is admitted, near to each other where that is asked for, and on the disk before the
 * pod goes on.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import { type ContainerGrant, mergeGrants, NO_GRANT } from '../grants/container-grant.ts'
import type { PluginHandler } from '../plugins/plugin-watcher.ts'
import { type Hint, hintsFor } from '../topology/hints.ts'
import { type DeviceEntry, NOWHERE, readDeviceState, writeDeviceState } from './device-checkpoint.ts'
import { byNearness, candidatesOf } from './device-picking.ts'
import { allocatedContainer, type PluginDevice } from './device-plugin-service.ts'
import { type Amounts, DevicePlugins, type DevicePluginsOptions } from './device-plugins.ts'

export type DeviceManagerOptions = Omit<DevicePluginsOptions, 'onDevices'>

/** What one container has of one resource. */
interface Held {
  readonly ids: readonly string[]
  /** The plugin's answer. */
  readonly response: Buffer
}

const CHECKPOINT = 'kubelet_internal_checkpoint'

type SomeContainer = Container | EphemeralContainer

export class DeviceManager {
  readonly #options: DeviceManagerOptions
  readonly #plugins: DevicePlugins
  /** By pod, container and resource. */
  readonly #held = new Map<string, Map<string, Map<string, Held>>>()

  constructor(options: DeviceManagerOptions) {
    this.#options = options
    this.#plugins = new DevicePlugins({ ...options, onDevices: () => this.#write() })
  }

  /** For those that are found by their sockets. */
  get handler(): PluginHandler {
    return this.#plugins
  }

  /** Of the node. */
  get amounts(): Amounts {
    return this.#plugins.amounts
  }

  /** By resource: all there are, and at which nodes of memory. */
  get all(): ReadonlyMap<string, ReadonlyMap<string, PluginDevice>> {
    return this.#plugins.all
  }

  /** Reads who has what, and takes registrations from then on. */
  async start(): Promise<void> {
    const { dir } = this.#options
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const entries = await readdir(dir, { withFileTypes: true })
    for (const entry of entries) if (entry.isSocket()) await rm(join(dir, entry.name), { force: true })
    const state = await readDeviceState(join(dir, CHECKPOINT))
    for (const entry of state?.PodDeviceEntries ?? []) this.#remember(entry)
    await this.#plugins.start(Object.keys(state?.RegisteredDevices ?? {}))
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

  heldBy(uid: string, container: string): ReadonlyMap<string, Held> {
    return this.#held.get(uid)?.get(container) ?? new Map()
  }

  uids(): readonly string[] {
    return [...this.#held.keys()]
  }

  #isDevice(resource: string): boolean {
    return this.all.has(resource) || this.#taken(resource).size > 0
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
    return [...(this.#plugins.healthy(resource) ?? [])].filter((id) => !taken.has(id))
  }

  /** Of each resource that it asks for; undefined: it does not matter where. `nodes`: of memory, all of the machine. */
  hints(pod: Pod, container: SomeContainer, nodes: readonly number[]): (readonly Hint[] | undefined)[] {
    return this.asksOf(container).map(([resource, count]) => {
      const devices = [...(this.all.get(resource)?.values() ?? [])]
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
      this.#hold(uid, container.name, resource, { ids, response: await this.#plugins.allocate(resource, ids) })
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

  async grantOf(pod: Pod, container: SomeContainer): Promise<ContainerGrant> {
    const { uid = '' } = pod.metadata
    const grants: ContainerGrant[] = []
    const before = this.heldBy(uid, container.name)
    // Whoever was admitted and has nothing lost it with the file.
    const isLost = this.asksOf(container).some(([resource, count]) => count > 0 && !before.has(resource))
    if (isLost) await this.allocate(pod, container, undefined)
    for (const [resource, held] of this.heldBy(uid, container.name)) {
      await this.#plugins.preStart(resource, held.ids)
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
    const registered = [...this.all.keys()].map((name) => [name, [...(this.#plugins.healthy(name) ?? [])]] as const)
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
      const nodes = this.all.get(resource)?.get(id)?.topology?.nodes ?? []
      const at = nodes.length === 0 ? [NOWHERE] : nodes.map((node) => Number(node.id))
      for (const node of at) (places[node] ??= []).push(id)
    }
    return places
  }
}
