/**
 * A simulated Host Compute Network service on a clock. As on Windows, a network gets its addresses and MACs after a
 * delay.
 */
import type { Clock } from '#lib/clock.ts'
import type { HcnNetwork, HcnPolicy, HostComputeNetworks } from '#lib/hns/hcn.ts'

export interface SimulatedHcnOptions {
  readonly clock: Clock
  readonly address: string
  readonly mac: string
  /** Until a new network knows where it is; never with Infinity. */
  readonly afterMs?: number
}

export class SimulatedHcn implements HostComputeNetworks {
  readonly networks: HcnNetwork[] = []
  readonly journal: string[] = []
  readonly #options: SimulatedHcnOptions
  #next = 1

  constructor(options: SimulatedHcnOptions) {
    this.#options = options
  }

  async list(): Promise<readonly HcnNetwork[]> {
    return structuredClone(this.networks)
  }

  async create(network: Omit<HcnNetwork, 'ID'>): Promise<void> {
    const { clock, address, mac, afterMs = 1000 } = this.#options
    const ID = `net-${this.#next++}`
    this.journal.push(`create ${network.Name}`)
    this.networks.push({ ...network, ID })
    if (afterMs === Infinity) return
    clock.after(afterMs, () =>
      this.#change(ID, (policies) => [
        ...policies,
        { Type: 'DrMacAddress', Settings: { Address: mac } },
        { Type: 'ProviderAddress', Settings: { ProviderAddress: address } },
      ]),
    )
  }

  async remove(id: string): Promise<void> {
    const at = this.networks.findIndex(({ ID }) => ID === id)
    if (at >= 0) this.journal.push(`remove ${this.networks.splice(at, 1)[0]?.Name}`)
  }

  async add(id: string, policies: readonly HcnPolicy[]): Promise<void> {
    this.journal.push(...policies.map((policy) => `add ${describe(policy)}`))
    this.#change(id, (all) => [...all, ...policies])
  }

  async take(id: string, policies: readonly HcnPolicy[]): Promise<void> {
    this.journal.push(...policies.map((policy) => `take ${describe(policy)}`))
    const gone = new Set(policies.map((policy) => JSON.stringify(policy)))
    this.#change(id, (all) => all.filter((policy) => !gone.has(JSON.stringify(policy))))
  }

  #change(id: string, change: (policies: readonly HcnPolicy[]) => readonly HcnPolicy[]): void {
    const at = this.networks.findIndex(({ ID }) => ID === id)
    const found = this.networks[at]
    if (found !== undefined) this.networks[at] = { ...found, Policies: change(found.Policies ?? []) }
  }
}

function describe({ Type, Settings = {} }: HcnPolicy): string {
  const { DestinationPrefix, ProviderAddress } = Settings
  return DestinationPrefix === undefined ? Type : [Type, DestinationPrefix, 'by', ProviderAddress].join(' ')
}
