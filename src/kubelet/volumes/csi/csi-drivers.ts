/** CSI drivers of this node: registered through their sockets and listed in CSINode while they exist. */
import type { CSIDriver } from '#apis/storage/v1.ts'
import type { PluginInfo } from '#apis/wire/plugin-registration.ts'
import { type Clock, every } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import type { KubeletMeters } from '../../metrics/kubelet-families.ts'
import type { PluginHandler } from '../../plugins/plugin-watcher.ts'
import { CSI_PLUGIN } from './csi-names.ts'
import { type CountCall, createNodeServiceClient, type NodeService } from './csi-node-service.ts'
import type { DriverOfNode, NodeDrivers } from './node-drivers.ts'

export interface CsiDriversOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly nodeDrivers: NodeDrivers
  /** The CSIDriver from the API server. */
  readonly object: (name: string) => CSIDriver | undefined
  readonly signal: AbortSignal
  readonly meters: KubeletMeters
}

interface Registered {
  readonly endpoint: string
  readonly version: readonly number[]
  readonly client: GrpcClient
  readonly service: NodeService
  updatedMs: number
}

/** Interval of the check for due updates; the API does not allow shorter update periods. */
const LOOK_MS = 10_000

export class CsiDrivers implements PluginHandler {
  readonly #options: CsiDriversOptions
  readonly #drivers = new Map<string, Registered>()
  /** Called for each newly registered driver. */
  onRegistered: (name: string) => void = () => undefined

  constructor(options: CsiDriversOptions) {
    this.#options = options
    const { clock, signal } = options
    const timer = every(clock, LOOK_MS, () => void this.#updateDue())
    signal.addEventListener('abort', () => {
      timer.cancel()
      for (const { client } of this.#drivers.values()) client.close()
    })
  }

  /** Throws when no such driver is registered. */
  service(name: string): NodeService {
    const driver = this.#drivers.get(name)
    if (name === '') throw new Error('driver name is empty')
    if (driver === undefined) throw new Error(`driver name ${name} not found in the list of registered CSI drivers`)
    return driver.service
  }

  validate(plugin: PluginInfo): void {
    try {
      this.#versionOf('ValidatePlugin', plugin)
    } catch (error) {
      const { message } = error as Error
      const which = `CSI Driver ${plugin.name} at endpoint ${plugin.endpoint}`
      throw new Error(`validation failed for ${which}: ${message}`, { cause: error })
    }
  }

  #versionOf(caller: string, { name, supportedVersions: versions }: PluginInfo): readonly number[] {
    const failed = `${CSI_PLUGIN}: ${caller} for CSI driver ${goQuote(name)} failed.`
    if (versions.length === 0) throw new Error(`${failed} Plugin returned an empty list for supported versions`)
    const version = highestVersion(versions)
    if (version === undefined) {
      const list = `[${versions.map(goQuote).join(' ')}]`
      const why = `could not find a highest supported version from versions (${list}) reported by this driver`
      throw new Error(`${failed} None of the versions specified ${list} are supported. err=${why}`)
    }
    const other = this.#drivers.get(name)
    if (other !== undefined && compareVersions(other.version, version) >= 0) {
      const there = goQuote(other.version.join('.'))
      const why = `Another driver with the same name is already registered with a higher supported version: ${there}`
      throw new Error(`${failed} ${why}`)
    }
    return version
  }

  async register(plugin: PluginInfo): Promise<void> {
    const { name, endpoint } = plugin
    const { clock, random, nodeDrivers } = this.#options
    const version = this.#versionOf('RegisterPlugin', plugin)
    this.#drivers.get(name)?.client.close()
    const client = createGrpcClient({ targets: [{ path: endpoint }], clock, random })
    const service = createNodeServiceClient(client, countCalls(name, this.#options))
    this.#drivers.set(name, { endpoint, version, client, service, updatedMs: clock.now() })
    try {
      await nodeDrivers.install(await driverOfNode(name, service))
    } catch (error) {
      await this.deregister(plugin).catch(() => undefined)
      throw error
    }
    this.onRegistered(name)
  }

  async deregister({ name, endpoint }: PluginInfo): Promise<void> {
    const driver = this.#drivers.get(name)
    if (driver?.endpoint !== endpoint) return
    this.#drivers.delete(name)
    driver.client.close()
    await this.#options.nodeDrivers.uninstall(name)
  }

  /** Updates the allocatable count of drivers with nodeAllocatableUpdatePeriodSeconds. */
  async #updateDue(): Promise<void> {
    const { clock, log, nodeDrivers, object } = this.#options
    for (const [name, driver] of this.#drivers) {
      const periodSeconds = object(name)?.spec.nodeAllocatableUpdatePeriodSeconds
      if (periodSeconds === undefined || clock.now() - driver.updatedMs < periodSeconds * 1000) continue
      driver.updatedMs = clock.now()
      try {
        await nodeDrivers.update(await driverOfNode(name, driver.service))
      } catch (error) {
        log.error(error, 'Failed to update CSIDriver', { driver: name })
      }
    }
  }
}

/** Measures the duration of driver calls, by status code. */
function countCalls(driver: string, { clock, meters }: CsiDriversOptions): CountCall {
  const durations = meters.family('csi_operations_seconds')
  return async (path, call) => {
    const startMs = clock.elapsed()
    let code = 'OK'
    try {
      return await call()
    } catch (error) {
      const name = error instanceof GrpcError ? error.code : 'unknown'
      code = name[0]?.toUpperCase() + name.slice(1)
      throw error
    } finally {
      durations.labels(driver, path, code, 'false').observe((clock.elapsed() - startMs) / 1000)
    }
  }
}

async function driverOfNode(name: string, service: NodeService): Promise<DriverOfNode> {
  const { nodeId, maxVolumesPerNode, accessibleTopology } = await service.getInfo({})
  return { name, nodeId, maxVolumes: Number(maxVolumesPerNode), topology: accessibleTopology?.segments ?? new Map() }
}

/** The highest version 1.x; undefined without one. Pure. */
export function highestVersion(versions: readonly string[]): readonly number[] | undefined {
  const parsed = versions
    .filter((text) => /^v?\d+(\.\d+)*/.test(text))
    .map((text) => (/\d+(\.\d+)*/.exec(text)?.[0] ?? '').split('.').map(Number))
  return parsed.filter(([major]) => major === 1).sort((a, b) => compareVersions(b, a))[0]
}

function compareVersions(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
