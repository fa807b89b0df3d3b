/** The iptables backend for one address family. It never flushes or moves foreign rules. */
import {
  type IptablesOptions,
  type IptablesTable,
  listIptables,
  restoreIptables,
  saveIptables,
} from '#lib/net/iptables.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend, FailureFamily, SyncOutcome } from '../backend.ts'
import type { Route } from '../routing.ts'
import { IptablesLedger, type SavedRules } from './ledger.ts'
import { removalOf } from './removal.ts'
import { CANARY, type IptablesSettings, natTail, TABLES } from './skeleton.ts'

export interface IptablesBackendOptions {
  readonly settings: IptablesSettings
  /** Prefixes the programs, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
}

export function createIptablesBackend(options: IptablesBackendOptions): Backend {
  return new IptablesBackend(options)
}

/** Rules that show whether each table is intact: a chain, and the end of one of its lines. */
const SIGNS: readonly (readonly [table: IptablesTable, chain: string, ending: string])[] = [
  ['mangle', CANARY, CANARY],
  ['nat', 'PREROUTING', '-j KUBE-SERVICES'],
  ['filter', 'FORWARD', '-j KUBE-FORWARD'],
]
/** The last rule of the Service chain: others may have flushed the chain but kept the jump to it. */
const LAST_SIGN = ['nat', 'KUBE-SERVICES', '-j KUBE-NODEPORTS'] as const

class IptablesBackend implements Backend {
  readonly family: IpFamily
  readonly #ledger: IptablesLedger
  readonly #where: IptablesOptions
  #settings: IptablesSettings

  constructor({ settings, within = [] }: IptablesBackendOptions) {
    this.#settings = settings
    this.family = settings.family
    this.#where = { family: settings.family, within }
    this.#ledger = new IptablesLedger(settings)
  }

  set(service: string, routes: readonly Route[] = []): void {
    this.#ledger.set(service, routes)
  }

  /** Unassigned Service addresses get no rules in this mode, as upstream. */
  setServiceCidrs(): void {}

  setNodePortIps(nodePortIps: readonly string[] | undefined): void {
    this.#settings = { ...this.#settings, nodePortIps }
    this.#ledger.configure(this.#settings)
  }

  async sync(isFull: boolean): Promise<SyncOutcome> {
    const script = isFull ? this.#ledger.everything(await this.#found()) : this.#ledger.changes()
    if (script === undefined) return { isFull }
    await restoreIptables(script.text, this.#where)
    this.#ledger.applied()
    return { isFull, iptables: script.counts }
  }

  failureFamilies(isFull: boolean): readonly FailureFamily[] {
    const every = 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total'
    return isFull ? [every] : [every, 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total']
  }

  async isIntact(): Promise<boolean> {
    const hasLast = natTail(this.#settings).length > 0
    for (const [table, chain, ending] of hasLast ? [...SIGNS, LAST_SIGN] : SIGNS) {
      const text = await listIptables(table, chain, this.#where)
      if (text?.split('\n').some((line) => line.trimEnd().endsWith(ending)) !== true) return false
    }
    return true
  }

  remove(): Promise<void> {
    return removeIptablesRules(this.#where)
  }

  async #found(): Promise<SavedRules> {
    const [nat, filter] = [
      await saveIptables('nat', isRelevant, this.#where),
      await saveIptables('filter', isRelevant, this.#where),
    ]
    return { nat, filter }
  }
}

/** Selects chains, and rules of built-in chains. */
function isRelevant(line: string): boolean {
  return line.startsWith(':') || /^-A (?:INPUT|FORWARD|OUTPUT|PREROUTING|POSTROUTING) /.test(line)
}

/** Removes kube-proxy's iptables rules, ours or upstream's. Does nothing if there are none. */
export async function removeIptablesRules(where: IptablesOptions): Promise<void> {
  for (const table of TABLES) {
    const removal = removalOf(table, await saveIptables(table, () => true, where))
    if (removal !== undefined) await restoreIptables(removal, where)
  }
}
