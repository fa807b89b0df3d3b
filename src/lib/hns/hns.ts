/**
 * The interface of Windows' Host Networking Service: calls with a method, a path and a JSON document, for networks,
 * endpoints and policy lists.
 */

export interface HnsAnswer {
  readonly Success?: boolean
  readonly Error?: string
  readonly Output?: unknown
}

export type HnsCall = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<HnsAnswer>

export interface HnsSubnet {
  readonly AddressPrefix?: string
  readonly GatewayAddress?: string
  /** Only taken where there is a gateway. */
  readonly Policies?: readonly object[]
}

export interface HnsNetwork {
  readonly ID: string
  readonly Name: string
  /** `Overlay`, `L2Bridge`, `NAT` … */
  readonly Type: string
  readonly NetworkAdapterName?: string
  readonly Subnets?: readonly HnsSubnet[]
}

/** One document comes without a list around it. */
export function documentsOf<T>({ Output }: HnsAnswer): T[] {
  if (Output === undefined || Output === null) return []
  return (Array.isArray(Output) ? Output : [Output]) as T[]
}

/** Rejects with what the service says is wrong. */
export async function createHnsNetwork(call: HnsCall, network: Omit<HnsNetwork, 'ID'>): Promise<HnsNetwork> {
  const answer = await call('POST', '/networks', network)
  if (answer.Success === false || answer.Error !== undefined)
    throw new Error(`The network ${network.Name} cannot be made: ${answer.Error ?? 'HNS does not say why'}`)
  return documentsOf<HnsNetwork>(answer)[0] ?? { ...network, ID: '' }
}
