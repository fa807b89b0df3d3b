/** The settings of a Windows worker's set-up, and values derived from them. Pure. */
import { parseCidr } from '#lib/net/cidr.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'

import type { PodNetworkKind } from '../../settings.ts'

export interface SetupSettings {
  readonly baseDir: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  readonly interfaceName: string
  /** The Kubernetes version without `v`. */
  readonly release: string
  readonly nanoServerImageTag: string
  readonly serverCoreImageTag: string
  readonly networkMode: 'overlay' | 'l2bridge'
  readonly vni: number
  readonly port: number
  /** SHA-256 of downloads, in hex. The default is the published checksum. */
  readonly digests: DownloadDigests
  /** Runs instead of flannel's program. */
  readonly ownFlanneld?: { readonly program: string; readonly args: readonly string[] } | undefined
}

export interface DownloadDigests {
  readonly kubernetes?: string
  readonly cni?: string
  /** flannel publishes no checksums. */
  readonly flanneld?: string
}

export const SETUP_DEFAULTS: SetupSettings = {
  baseDir: 'c:\\k',
  clusterCidr: '10.244.0.0/16',
  serviceCidr: '10.10.0.0/16',
  interfaceName: 'Ethernet0',
  release: KUBERNETES_VERSION.slice(1),
  nanoServerImageTag: '10.0.17763.802',
  serverCoreImageTag: 'ltsc2019',
  networkMode: 'overlay',
  vni: 4096,
  port: 4789,
  digests: {},
}

/** The smallest VNI that Windows accepts, and the only port. */
const LEAST_VNI = 4096
const ONLY_PORT = 4789

/** All faults that can be found without the machine. */
export function faultsOf(settings: SetupSettings): string[] {
  const { baseDir, clusterCidr, serviceCidr, release, vni, port } = settings
  return [
    ...(/^[A-Za-z]:\\[^\\"<>|?*]/.test(baseDir) ? [] : [`"${baseDir}" is not a folder; use one like c:\\k`]),
    ...(parseCidr(clusterCidr)?.family === 4 ? [] : [`"${clusterCidr}" is not an IPv4 range (cluster CIDR)`]),
    ...(parseCidr(serviceCidr)?.family === 4 ? [] : [`"${serviceCidr}" is not an IPv4 range (service CIDR)`]),
    ...(/^\d+\.\d+\.\d+$/.test(release)
      ? []
      : [`"${release}" is not a Kubernetes release; use one like ${SETUP_DEFAULTS.release}`]),
    ...(vni >= LEAST_VNI ? [] : [`VNI ${vni} is too small: Windows supports networks from ${LEAST_VNI} on`]),
    ...(port === ONLY_PORT ? [] : [`Port ${port} is not possible: Windows supports VXLAN on port ${ONLY_PORT} only`]),
    ...downloadFaults(settings),
  ]
}

function downloadFaults({ digests, ownFlanneld, networkMode }: SetupSettings): string[] {
  const malformed = Object.entries(digests).filter(([, digest]) => !SHA256.test(digest))
  return [
    ...malformed.map(([name, digest]) => `"${digest}" is not a SHA-256 of ${name}; use 64 hexadecimal digits`),
    ...(ownFlanneld !== undefined && networkMode === 'l2bridge' ? [OVERLAY_ONLY] : []),
    ...(ownFlanneld === undefined && digests.flanneld === undefined ? [NO_FLANNELD_DIGEST] : []),
  ]
}

const OVERLAY_ONLY =
  '"hyperkube flanneld" supports only the network mode overlay: use --own-flanneld=false with --flanneld-sha256 for l2bridge'
const SHA256 = /^[0-9a-f]{64}$/i
const NO_FLANNELD_DIGEST =
  'flannel publishes no checksum of flanneld.exe: set --flanneld-sha256 to one that you trust, or leave --own-flanneld on'

export function networkKind({ networkMode }: Pick<SetupSettings, 'networkMode'>): PodNetworkKind {
  return networkMode === 'overlay'
    ? { name: 'vxlan0', backend: 'vxlan', type: 'overlay' }
    : { name: 'cbr0', backend: 'host-gw', type: 'l2bridge' }
}

/** Kubelets up to 1.23 use Docker; later ones need containerd. */
export function usesDocker({ release }: Pick<SetupSettings, 'release'>): boolean {
  return minorOf(release) < 24
}

export function minorOf(release: string): number {
  return Number(release.split('.')[1] ?? 0)
}

export interface SetupPaths {
  /** The administrator's kubeconfig, which a person puts there; only `setup` and `reset` read it. */
  readonly kubeconfig: string
  /** Written after access to the base folder is restricted to administrators. */
  readonly accessMark: string
  readonly bootstrapKubeconfig: string
  /** Written by kubelet. */
  readonly kubeletKubeconfig: string
  readonly kubeProxyKubeconfig: string
  readonly flannelKubeconfig: string
  readonly clientAuthority: string
  /** The certificate directory of kubelet. */
  readonly pki: string
  readonly archive: string
  readonly kubernetes: string
  readonly bin: string
  /** The installed release; written last. */
  readonly releaseMark: string
  readonly cni: string
  readonly cniArchive: string
  readonly cniMark: string
  readonly cniConf: string
  readonly flanneld: string
  readonly netConf: string
  readonly flannelFolder: string
  readonly pause: string
  readonly logs: string
  readonly sourceVip: string
  /** The records of allocated addresses. */
  readonly reservations: string
  readonly resolvConf: string
  /** The settings with which a service was created. */
  readonly serviceFile: (name: string) => string
  readonly wrapper: (name: string) => string
}

export function setupPaths({ baseDir, networkMode }: Pick<SetupSettings, 'baseDir' | 'networkMode'>): SetupPaths {
  const at = (path: string): string => `${baseDir.replace(/\\+$/, '')}\\${path}`
  return {
    kubeconfig: at('kubeconfig'),
    accessMark: at('access'),
    bootstrapKubeconfig: at('bootstrap.kubeconfig'),
    kubeletKubeconfig: at('kubelet.kubeconfig'),
    kubeProxyKubeconfig: at('kube-proxy.kubeconfig'),
    flannelKubeconfig: at('flannel.kubeconfig'),
    clientAuthority: at('client-ca.crt'),
    pki: at('pki'),
    archive: at('kubernetes-node-windows-amd64.tar.gz'),
    kubernetes: at('kubernetes'),
    bin: at('kubernetes\\node\\bin'),
    releaseMark: at('kubernetes\\release'),
    cni: at('cni'),
    cniArchive: at('cni-plugins.tgz'),
    cniMark: at('cni\\release'),
    cniConf: at('cni\\config\\cni.conf'),
    flanneld: at('flanneld.exe'),
    netConf: 'C:\\etc\\kube-flannel\\net-conf.json',
    flannelFolder: 'C:\\etc\\kube-flannel',
    pause: at('pause'),
    logs: at('logs'),
    sourceVip: at('sourceVip.json'),
    reservations: `C:\\var\\lib\\cni\\networks\\${networkKind({ networkMode }).name}`,
    resolvConf: 'C:\\etc\\resolv.conf',
    serviceFile: (name) => at(`${name}Svc.json`),
    wrapper: (name) => at(`${name}Svc.exe`),
  }
}
