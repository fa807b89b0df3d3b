/** The settings of a worker node, and values derived from them without access to the machine. */
import { CrashError } from './outcome.ts'
import { PROCESS_NAMES, type ProcessName } from './process-names.ts'

export interface NodeSettings {
  readonly clusterCidr: string
  readonly clusterDomain: string
  readonly serviceCidr: string
  readonly dnsServiceIp: string
  /** The provider of the pod network: `flannel` or `canal`. */
  readonly cniComponent: string
  readonly cniMode: string
  readonly kubeletOptions: readonly string[]
  readonly kubeProxyOptions: readonly string[]
  /** Flags of kube-network-policies; undefined: it does not run. Linux only. */
  readonly networkPolicyOptions?: readonly string[] | undefined
  readonly nodeIp: string
  readonly nodeName: string
  readonly cloudProvider?: string | undefined
  /** Decoded contents of files. */
  readonly cloudConfig?: string | undefined
  readonly registryConfig?: string | undefined
  /** The VNI and port of the overlay; flannel's defaults for the platform if undefined. */
  readonly vni?: number | undefined
  readonly port?: number | undefined
}

export interface PodNetworkKind {
  /** The name of the network on the machine and in both files. */
  readonly name: string
  /** flannel's backend type. */
  readonly backend: 'vxlan' | 'host-gw'
  /** The machine's name for it. */
  readonly type: string
}

const KINDS: Readonly<Record<string, PodNetworkKind>> = {
  'win-overlay': { name: 'vxlan0', backend: 'vxlan', type: 'overlay' },
  'win-bridge': { name: 'cbr0', backend: 'host-gw', type: 'l2bridge' },
  vxlan: { name: 'cbr0', backend: 'vxlan', type: 'vxlan' },
  'host-gw': { name: 'cbr0', backend: 'host-gw', type: 'host-gw' },
}

/** Normalized: names are compared in lower case. */
export function tidySettings(settings: NodeSettings): NodeSettings {
  return { ...settings, nodeName: settings.nodeName.toLowerCase(), cniMode: settings.cniMode.toLowerCase() }
}

/** In start order. */
export function wantedProcesses({ networkPolicyOptions }: NodeSettings): readonly ProcessName[] {
  return networkPolicyOptions === undefined ? THE_THREE : PROCESS_NAMES
}

/** Every worker runs these. */
const THE_THREE = PROCESS_NAMES.filter((name) => name !== 'kube-network-policies')

export function podNetworkKind({
  cniComponent,
  cniMode,
}: Pick<NodeSettings, 'cniComponent' | 'cniMode'>): PodNetworkKind {
  if (cniComponent !== 'flannel' && cniComponent !== 'canal')
    throw new CrashError(`There is no "${cniComponent}" for nodes of this kind; use flannel or canal`)
  const kind = KINDS[cniMode]
  if (kind === undefined) throw new CrashError(`Unknown CNI mode "${cniMode}"; use ${Object.keys(KINDS).join(', ')}`)
  return kind
}
