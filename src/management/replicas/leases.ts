/**
 * Renews the Lease of this replica, with its address, and reads those of other replicas. A replica that cannot renew
 * its Lease considers itself cut off from the datastore.
 */
import { type Lease, Leases } from '#apis/coordination/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Logger } from '#lib/log/log.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import { MANAGEMENT_NAMESPACE } from '../objects.ts'
import { NeighbourTable } from './neighbours.ts'

export interface ReplicaLeasesOptions {
  readonly client: ApiClient
  readonly log: Logger
  readonly id: string
  /** Host and port where other replicas reach this one. */
  readonly address: string
  /** Called after each look with the other replicas that are alive: address by id. */
  readonly onLook: (others: ReadonlyMap<string, string>) => void
  /** Called when this replica is cut off from the datastore, and when it is back. */
  readonly onCutOff: (isCutOff: boolean) => void
}

const RENEW_MS = 3000
const REQUEST_MS = 5000
/** Less than the life of a Lease: this replica must stop before the others count it as gone. */
export const CUT_OFF_MS = 12_000
export const LEASE_MS = 15_000

const LABEL = 'management.hyperkube.io/server-replica'
const ADDRESS = 'management.hyperkube.io/address'
const PREFIX = 'server-replica-'

export class ReplicaLeases {
  readonly #options: ReplicaLeasesOptions
  readonly #table: NeighbourTable
  #task: PeriodicTask | undefined
  #renewedMs = -Infinity
  #isCutOff = false

  constructor(options: ReplicaLeasesOptions) {
    this.#options = options
    this.#table = new NeighbourTable(LEASE_MS)
  }

  /** Resolves when the Lease exists and the others are known. */
  async start(): Promise<void> {
    const { client, log } = this.#options
    await this.#look()
    const { clock } = client
    const onError = (error: unknown): void => log.error(error, 'Failed to renew the lease of this replica')
    const beat = (): Promise<void> => this.#look().finally(() => this.#compare())
    this.#task = runPeriodically({ clock, periodMs: RENEW_MS, onError }, beat)
  }

  /** False: this replica has not reached the datastore for a while, and may not know what has changed. */
  get isCurrent(): boolean {
    return this.#options.client.clock.elapsed() - this.#renewedMs < CUT_OFF_MS
  }

  /** Whether the replica with this id is alive, as far as this one knows. */
  isAlive(id: string): boolean {
    return id === this.#options.id || this.#table.alive(this.#options.client.clock.elapsed()).has(id)
  }

  /** Deletes the Lease, so that the others know at once. */
  async stop(): Promise<void> {
    await this.#task?.stop()
    const { client, id, log } = this.#options
    const where = { namespace: MANAGEMENT_NAMESPACE, name: PREFIX + id }
    await client.delete(Leases, where, { signal: this.#limit() }).catch((error: unknown) => {
      log.info('Failed to delete the lease of this replica', { err: (error as Error).message })
    })
  }

  async #look(): Promise<void> {
    const { client, onLook } = this.#options
    const startedMs = client.clock.elapsed()
    await this.#renew()
    this.#renewedMs = startedMs
    const selection = { namespace: MANAGEMENT_NAMESPACE, labelSelector: `${LABEL}=true` }
    const { items } = await client.list(Leases, { ...selection, signal: this.#limit() })
    const nowMs = client.clock.elapsed()
    this.#table.learn(items.filter((lease) => idOf(lease) !== this.#options.id).map(noteOf), nowMs)
    onLook(this.#table.alive(nowMs))
    await this.#deleteExpired(nowMs)
  }

  async #renew(): Promise<void> {
    const { client, id, address } = this.#options
    const where = { namespace: MANAGEMENT_NAMESPACE, name: PREFIX + id }
    const now = microTimeOf(client.clock.now())
    const spec = { holderIdentity: id, leaseDurationSeconds: LEASE_MS / 1000, renewTime: now }
    const signal = this.#limit()
    try {
      await client.patch(Leases, where, { type: 'merge', value: { spec } }, { signal })
    } catch (error) {
      if (!isNotFound(error)) throw error
      const metadata = { ...where, labels: { [LABEL]: 'true' }, annotations: { [ADDRESS]: address } }
      await client.create(Leases, { metadata, spec: { ...spec, acquireTime: now } }, { signal })
    }
  }

  /** Every replica does it; for the later ones there is nothing left. */
  async #deleteExpired(nowMs: number): Promise<void> {
    const { client } = this.#options
    for (const id of this.#table.expired(nowMs)) {
      const where = { namespace: MANAGEMENT_NAMESPACE, name: PREFIX + id }
      await client.delete(Leases, where, { signal: this.#limit() }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    }
  }

  #compare(): void {
    const isCutOff = !this.isCurrent
    if (isCutOff === this.#isCutOff) return
    this.#isCutOff = isCutOff
    this.#options.onCutOff(isCutOff)
  }

  #limit(): AbortSignal {
    const controller = new AbortController()
    const abort = (): void => controller.abort(new Error(`no answer within ${REQUEST_MS / 1000} s`))
    this.#options.client.clock.after(REQUEST_MS, abort, { background: true })
    return controller.signal
  }
}

function idOf({ metadata }: Lease): string {
  return (metadata.name ?? '').slice(PREFIX.length)
}

function noteOf(lease: Lease): { id: string; address: string; renewal: string } {
  const { metadata, spec } = lease
  return { id: idOf(lease), address: metadata.annotations?.[ADDRESS] ?? '', renewal: spec.renewTime ?? '' }
}
