/** What turns routes into rules of a kernel, for one family of addresses. */
import type { IpFamily } from '#model/services.ts'

import type { Route } from './routing.ts'

export interface SyncOutcome {
  readonly isFull: boolean
  /** Of iptables, by table: how many rules were written, and how many there are. Not said: nothing was written. */
  readonly iptables?: Readonly<Record<'nat' | 'filter', { readonly written: number; readonly total: number }>>
}

/** Families of counters of rounds that failed. */
export type FailureFamily =
  | 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total'
  | 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total'
  | 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total'

export interface Backend {
  readonly family: IpFamily
  /** What a Service (`namespace/name`) is routed to from the next `sync` on; undefined: it has gone. */
  set(service: string, routes: readonly Route[] | undefined): void
  /** Blocks that belong to Services; with the next full sync. */
  setServiceCidrs(cidrs: readonly string[]): void
  /** Addresses at which node ports are served, undefined for all; with the next full sync. */
  setNodePortIps(ips: readonly string[] | undefined): void
  /** Brings the kernel's rules about. `full`: whatever is there. Throws when it could not; the next one must be full then. */
  sync(full: boolean): Promise<SyncOutcome>
  /** What counts a round that failed. */
  failureFamilies(isFull: boolean): readonly FailureFamily[]
  /** Whether nobody has taken rules away. */
  isIntact(): Promise<boolean>
  /** Takes away all that is its own. Harmless where there is nothing. */
  remove(): Promise<void>
}
