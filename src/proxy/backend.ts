/** The interface of a proxy backend, which turns routes into kernel rules for one address family. */
import type { IpFamily } from '#model/services.ts'

import type { Route } from './routing.ts'

export interface SyncOutcome {
  readonly isFull: boolean
  /** For iptables, by table: written rules and total rules. Absent: nothing was written. */
  readonly iptables?: Readonly<Record<'nat' | 'filter', { readonly written: number; readonly total: number }>>
}

/** Metric families for failed syncs. */
export type FailureFamily =
  | 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total'
  | 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total'
  | 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total'

export interface Backend {
  readonly family: IpFamily
  /** Sets the routes of a Service (`namespace/name`) for the next `sync`; undefined: it is deleted. */
  set(service: string, routes: readonly Route[] | undefined): void
  /** Sets the Service CIDRs for the next full sync. */
  setServiceCidrs(cidrs: readonly string[]): void
  /** Sets the node port addresses for the next full sync; undefined: all. */
  setNodePortIps(ips: readonly string[] | undefined): void
  /** Writes the rules. `full`: independent of the current state. Throws on failure; the next sync must then be full. */
  sync(full: boolean): Promise<SyncOutcome>
  /** The metric families for a failed sync. */
  failureFamilies(isFull: boolean): readonly FailureFamily[]
  /** Whether the rules are still complete. */
  isIntact(): Promise<boolean>
  /** Removes all own rules. Does nothing if there are none. */
  remove(): Promise<void>
}
