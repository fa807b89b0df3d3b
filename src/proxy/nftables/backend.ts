/** The nftables backend: one table for each address family. */
import type { Clock } from '#lib/clock.ts'
import { applyNft, deleteNftTable, listNft, listNftTable, NftError, type NftOptions } from '#lib/net/nft.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend, FailureFamily, SyncOutcome } from '../backend.ts'
import type { Route } from '../routing.ts'
import { type ExistingTable, Ledger } from './ledger.ts'
import { renderRoutes, type RenderSettings } from './rendering.ts'
import { CANARY, familyWord, type TableSettings } from './skeleton.ts'

export interface NftBackendOptions {
  readonly settings: TableSettings & Pick<RenderSettings, 'nodeIp'>
  readonly clock: Clock
  readonly nft?: NftOptions
  /** Called if obsolete objects could not be deleted yet. */
  readonly onCleanupFailure?: (error: unknown) => void
}

const NOTHING: ExistingTable = { chains: [], sets: [] }

export function createNftBackend(options: NftBackendOptions): Backend {
  return new NftBackend(options)
}

class NftBackend implements Backend {
  readonly family: IpFamily
  readonly #options: NftBackendOptions
  readonly #ledger: Ledger
  /** `ip kube-proxy`, split. */
  readonly #table: readonly ['ip' | 'ip6', string]
  #settings: NftBackendOptions['settings']

  constructor(options: NftBackendOptions) {
    this.#options = options
    this.#settings = options.settings
    this.family = options.settings.family
    this.#table = [familyWord(this.family), options.settings.table]
    this.#ledger = new Ledger(options.settings)
  }

  set(service: string, routes: readonly Route[] = []): void {
    this.#ledger.set(service, routes.length === 0 ? undefined : renderRoutes(routes, this.#settings))
  }

  setServiceCidrs(serviceCidrs: readonly string[]): void {
    this.#configure({ serviceCidrs })
  }

  setNodePortIps(nodePortIps: readonly string[] | undefined): void {
    this.#configure({ nodePortIps })
  }

  async sync(isFull: boolean): Promise<SyncOutcome> {
    await this.#clean()
    const script = isFull ? await this.#applyAll() : this.#ledger.changes()
    if (!isFull && script !== undefined) await applyNft(script, this.#options.nft)
    this.#ledger.applied(this.#options.clock.elapsed())
    return { isFull }
  }

  failureFamilies(): readonly FailureFamily[] {
    return ['kubeproxy_sync_proxy_rules_nftables_sync_failures_total']
  }

  async isIntact(): Promise<boolean> {
    const text = await listNft([`list chain ${this.#table.join(' ')} ${CANARY}`], this.#options.nft)
    return text?.includes('jump services') ?? false
  }

  remove(): Promise<void> {
    return deleteNftTable(...this.#table, this.#options.nft)
  }

  #configure(change: Partial<TableSettings>): void {
    this.#settings = { ...this.#settings, ...change }
    this.#ledger.configure(this.#settings)
  }

  async #applyAll(): Promise<string> {
    const { nft } = this.#options
    const script = this.#ledger.everything(await this.#found())
    try {
      await applyNft(script, nft)
      return script
    } catch (error) {
      if (error instanceof NftError && error.code === 'missing') throw error
      // The existing table has another layout.
      const anew = this.#ledger.everything(NOTHING, { anew: true })
      await applyNft(anew, nft)
      return anew
    }
  }

  async #found(): Promise<ExistingTable> {
    const objects = (await listNftTable(...this.#table, { ...this.#options.nft, terse: true })) ?? []
    const named = (kind: string): string[] =>
      objects.flatMap((one) => (one[kind] as { readonly name?: string } | undefined)?.name ?? [])
    return { chains: named('chain'), sets: named('set') }
  }

  async #clean(): Promise<void> {
    const { clock, nft, onCleanupFailure } = this.#options
    const cleaning = this.#ledger.cleaning(clock.elapsed())
    if (cleaning === undefined) return
    this.#ledger.cleaned(cleaning.chains)
    // The next full sync finds leftovers again.
    await applyNft(cleaning.text, nft).catch((error: unknown) => onCleanupFailure?.(error))
  }
}
