/**
 * The interface of Windows' Host Compute Network service, which has networks and endpoints as documents with policies.
 * Policies can be added and removed while a network is in use.
 */

export interface HcnPolicy {
  readonly Type: string
  readonly Settings?: Readonly<Record<string, unknown>>
}

export interface HcnSubnet {
  readonly IpAddressPrefix: string
  readonly Policies?: readonly HcnPolicy[]
  readonly Routes?: readonly { readonly NextHop: string; readonly DestinationPrefix: string }[]
}

export interface HcnNetwork {
  readonly ID: string
  readonly Name: string
  /** `Overlay`, `L2Bridge` … */
  readonly Type: string
  readonly Ipams?: readonly { readonly Type?: string; readonly Subnets?: readonly HcnSubnet[] }[]
  readonly Policies?: readonly HcnPolicy[]
  readonly SchemaVersion?: { readonly Major: number; readonly Minor: number }
}

export interface HostComputeNetworks {
  list(): Promise<readonly HcnNetwork[]>
  /** Rejects with what the service says is wrong. */
  create(network: Omit<HcnNetwork, 'ID'>): Promise<void>
  /** There may be none. */
  remove(id: string): Promise<void>
  add(id: string, policies: readonly HcnPolicy[]): Promise<void>
  take(id: string, policies: readonly HcnPolicy[]): Promise<void>
}
