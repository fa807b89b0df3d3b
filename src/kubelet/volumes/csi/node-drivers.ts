/** Writes the CSI drivers of a node to its CSINode, and their node IDs and topology labels to the Node. */
import { Nodes } from '#apis/core/v1.ts'
import { type CSINode, type CSINodeDriver, CSINodes } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import { compareText, goJson, goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'

export interface DriverOfNode {
  readonly name: string
  readonly nodeId: string
  /** 0 means unlimited. */
  readonly maxVolumes: number
  readonly topology: ReadonlyMap<string, string>
}

const NODE_ID = 'csi.volume.kubernetes.io/nodeid'
const MAX_COUNT = 2 ** 31 - 1

/** The drivers with this one added; undefined when nothing changes. Pure. */
export function withDriver(drivers: readonly CSINodeDriver[], driver: DriverOfNode): CSINodeDriver[] | undefined {
  const { name, nodeId: nodeID, maxVolumes, topology } = driver
  const topologyKeys = [...topology.keys()].sort(compareText)
  const count = Math.min(maxVolumes, MAX_COUNT)
  const wanted = { name, nodeID, topologyKeys, ...(count > 0 && { allocatable: { count } }) }
  const there = drivers.find((one) => one.name === name)
  const isSame =
    there?.nodeID === nodeID &&
    [...(there.topologyKeys ?? [])].sort(compareText).join('\n') === topologyKeys.join('\n') &&
    (there.allocatable?.count ?? 0) === count
  return isSame ? undefined : [...drivers.filter((one) => one.name !== name), wanted]
}

/** The annotation with the driver's node IDs; null when empty. Pure. */
export function nodeIdsWith(text: string | undefined, name: string, nodeId: string | undefined): string | null {
  const ids = new Map(Object.entries(JSON.parse(text === undefined || text === '' ? '{}' : text) as object))
  if (nodeId === undefined) ids.delete(name)
  else ids.set(name, nodeId)
  const sorted = [...ids].sort(([a], [b]) => compareText(a, b))
  return sorted.length === 0 ? null : goJson(Object.fromEntries(sorted))
}

export interface NodeDriversOptions {
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly random: Random
  readonly nodeName: string
}

const RETRY = { baseMs: 10, factor: 6, capMs: 2160, jitter: 0.1 }
const TRIES = 4

export class NodeDrivers {
  readonly #options: NodeDriversOptions

  constructor(options: NodeDriversOptions) {
    this.#options = options
  }

  async install(driver: DriverOfNode): Promise<void> {
    if (driver.nodeId === '') throw new Error('error adding CSI driver node info: driverNodeID must not be empty')
    await this.#retry(() => this.#label(driver.name, driver.nodeId, driver.topology))
    await this.update(driver)
  }

  /** For a changed topology or volume limit. */
  update(driver: DriverOfNode): Promise<void> {
    return this.#retry(() => this.#write((drivers) => withDriver(drivers, driver)))
  }

  async uninstall(name: string): Promise<void> {
    const without = (drivers: readonly CSINodeDriver[]): CSINodeDriver[] | undefined =>
      drivers.some((one) => one.name === name) ? drivers.filter((one) => one.name !== name) : undefined
    await this.#retry(() => this.#write(without))
    await this.#retry(() => this.#label(name, undefined, new Map()))
  }

  async #write(change: (drivers: readonly CSINodeDriver[]) => CSINodeDriver[] | undefined): Promise<void> {
    const { client, nodeName: name } = this.#options
    const there: CSINode = await client.get(CSINodes, { name })
    const drivers = change(there.spec.drivers ?? [])
    if (drivers !== undefined) await client.update(CSINodes, { ...there, spec: { drivers } })
  }

  async #label(driver: string, nodeId: string | undefined, topology: ReadonlyMap<string, string>): Promise<void> {
    const { client, nodeName: name } = this.#options
    const { annotations = {}, labels: there = {} } = (await client.get(Nodes, { name })).metadata
    for (const [key, value] of topology) {
      const other = there[key]
      if (other === undefined || other === value) continue
      const texts = `driver reported ${goQuote(key)}:${goQuote(value)} but existing label is ${goQuote(key)}:${goQuote(other)}`
      throw new Error(`detected topology value collision: ${texts}`)
    }
    const ids = nodeIdsWith(annotations[NODE_ID], driver, nodeId)
    const labels = Object.fromEntries([...topology].filter(([key, value]) => there[key] !== value))
    if (ids === (annotations[NODE_ID] ?? null) && Object.keys(labels).length === 0) return
    const value = { metadata: { annotations: { [NODE_ID]: ids }, labels } }
    await client.patch(Nodes, { name }, { type: 'strategic', value })
  }

  /** Retries, because other clients write the objects too. */
  async #retry(work: () => Promise<void>): Promise<void> {
    const { client, random } = this.#options
    const backoff = createBackoff(random, RETRY)
    for (let left = TRIES; ; left--) {
      try {
        return await work()
      } catch (error) {
        if (left === 1) throw error
        await sleep(client.clock, backoff.next())
      }
    }
  }
}
