/** The paths of files and folders on a worker. */
import type { ProcessName } from './process-names.ts'

export interface Layout {
  /** Created if missing. */
  readonly folders: readonly string[]
  readonly kubernetesBin: string
  readonly cniBin: string
  /** Only if the runtime is configured separately. */
  readonly cniConf: string
  readonly netConf: string
  /** The subnet file, which flanneld writes. */
  readonly subnetFile: string
  readonly cloudConfig: string
  readonly registryConfig: string
  readonly nodeKubeconfig: string
  /** Certificates and keys, and the authority of the server. */
  readonly certificates: string
  readonly serverCa: string
  /** Present after registration; and the last plan, which applies while the server is unreachable. */
  readonly connectedMark: string
  /** Identifies this machine to the server; made here. */
  readonly credential: string
  readonly lastPlan: string
  /** The path of a file in a plan. */
  readonly planPath: (path: string) => string
  /** Emptied when the node is removed. */
  readonly remains: readonly string[]
  /** The program of each process. */
  readonly program: (name: ProcessName) => string
  /** The output of a last attempt, by day, so that old files can be deleted. */
  readonly lastWords: (name: string, day: string) => string
  readonly azureCli: string
}

/** Marks programs that could not be replaced because they were running. */
export const CLEAN_MARK = 'need_clean.tip'

export const windowsLayout: Layout = {
  folders: ['C:\\etc\\rancher', 'C:\\etc\\kubernetes', 'C:\\etc\\cni'],
  kubernetesBin: 'C:\\etc\\kubernetes\\bin',
  cniBin: 'C:\\etc\\cni\\bin',
  cniConf: 'C:\\etc\\cni\\conf\\cni.conf',
  netConf: 'C:\\etc\\kube-flannel\\net-conf.json',
  subnetFile: 'C:\\run\\flannel\\subnet.env',
  cloudConfig: 'C:\\etc\\kubernetes\\cloud-config',
  registryConfig: 'C:\\var\\lib\\kubelet\\config.json',
  nodeKubeconfig: 'C:\\etc\\kubernetes\\ssl\\kubecfg-kube-node.yaml',
  certificates: 'C:\\etc\\kubernetes\\ssl',
  serverCa: 'C:\\etc\\kubernetes\\ssl\\certs\\serverca',
  connectedMark: 'C:\\etc\\rancher\\connected',
  credential: 'C:\\etc\\rancher\\credential',
  lastPlan: 'C:\\etc\\rancher\\plan.json',
  planPath: (path) => path,
  remains: [
    ...['cni', 'kubernetes', 'rancher', 'kube-flannel'].map((name) => `C:\\etc\\${name}`),
    'C:\\run\\flannel',
    'C:\\var\\log',
    ...['rancher', 'kubelet', 'cni', 'etcd'].map((name) => `C:\\var\\lib\\${name}`),
  ],
  program: (name) =>
    name === 'flanneld' ? 'C:\\etc\\cni\\bin\\flanneld.exe' : `C:\\etc\\kubernetes\\bin\\${name}.exe`,
  lastWords: (name, day) => `C:\\var\\log\\rancher\\${day}\\${name}.log`,
  azureCli: 'C:\\Program Files (x86)\\Microsoft SDKs\\Azure\\CLI2\\wbin\\az.cmd',
}

/** `root` is `/` except for nodes that share a machine. */
export function linuxLayout(root: string): Layout {
  const at = (path: string): string => `${root.replace(/\/+$/, '')}${path}`
  return {
    folders: ['/etc/kubernetes', '/etc/kube-flannel'].map(at),
    kubernetesBin: at('/usr/local/lib/hyperkube/bin'),
    cniBin: at('/usr/local/lib/hyperkube/cni-bin'),
    cniConf: '',
    netConf: at('/etc/kube-flannel/net-conf.json'),
    subnetFile: at('/run/flannel/subnet.env'),
    cloudConfig: at('/etc/kubernetes/cloud-config'),
    registryConfig: at('/var/lib/kubelet/config.json'),
    nodeKubeconfig: at('/etc/kubernetes/ssl/kubecfg-kube-node.yaml'),
    certificates: at('/etc/kubernetes/ssl'),
    serverCa: at('/etc/kubernetes/ssl/certs/serverca'),
    connectedMark: at('/var/lib/hyperkube/node/connected'),
    credential: at('/var/lib/hyperkube/node/credential'),
    lastPlan: at('/var/lib/hyperkube/node/plan.json'),
    planPath: at,
    remains: [
      '/etc/kubernetes',
      '/etc/kube-flannel',
      '/run/flannel',
      '/var/lib/kubelet',
      '/var/lib/hyperkube/node',
      '/var/log/hyperkube',
    ].map(at),
    program: (name) => at(`/usr/local/lib/hyperkube/bin/${name}`),
    lastWords: (name, day) => at(`/var/log/hyperkube/${day}/${name}.log`),
    azureCli: '/usr/bin/az',
  }
}
