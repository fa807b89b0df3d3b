/** What a worker is told to be, and what follows from it without looking at the machine. */
import { CrashError } from './outcome.ts'
import { PROCESS_NAMES, type ProcessName } from './process-names.ts'

export interface NodeSettings {
  readonly clusterCidr: string
  readonly clusterDomain: string
  readonly serviceCidr: string
  readonly dnsServiceIp: string
  /** `flannel` or `canal`: who makes the network of pods. */
  readonly cniComponent: string
  readonly cniMode: string
  readonly kubeletOptions: readonly string[]
  readonly kubeProxyOptions: readonly string[]
  /** Of kube-network-policies; undefined: it is not to run here. Linux only. */
  readonly networkPolicyOptions?: readonly string[] | undefined
  readonly nodeIp: string
  readonly nodeName: string
  readonly cloudProvider?: string | undefined
  /** Contents of files, decoded. */
  readonly cloudConfig?: string | undefined
  readonly registryConfig?: string | undefined
  /** Of the overlay; flannel's own for the system unless said. */
  readonly vni?: number | undefined
  readonly port?: number | undefined
}

export interface PodNetworkKind {
  /** Of the network on the machine and in both files. */
  readonly name: string
  /** Of flannel. */
  readonly backend: 'vxlan' | 'host-gw'
  /** As the machine calls it. */
  readonly type: string
}

const KINDS: Readonly<Record<string, PodNetworkKind>> = {
  'win-overlay': { name: 'vxlan0', backend: 'vxlan', type: 'overlay' },
  'win-bridge': { name: 'cbr0', backend: 'host-gw', type: 'l2bridge' },
  vxlan: { name: 'cbr0', backend: 'vxlan', type: 'vxlan' },
  'host-gw': { name: 'cbr0', backend: 'host-gw', type: 'host-gw' },
}

/** As the supervisor uses them: names are compared in lower case everywhere. */
export function tidySettings(settings: NodeSettings): NodeSettings {
  return { ...settings, nodeName: settings.nodeName.toLowerCase(), cniMode: settings.cniMode.toLowerCase() }
}

/** In order. */
export function wantedProcesses({ networkPolicyOptions }: NodeSettings): readonly ProcessName[] {
  return networkPolicyOptions === undefined ? THE_THREE : PROCESS_NAMES
}

/** Every worker has these. */
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
