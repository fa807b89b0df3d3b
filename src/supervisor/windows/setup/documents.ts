/** Writes the configuration files and program flags of a Windows worker. Pure. */
import { subnetOf, type Subnet } from '../../pod-network.ts'
import { minorOf, networkKind, type SetupPaths, type SetupSettings, usesDocker } from './settings.ts'

export function netConfDocument(settings: SetupSettings): object {
  const { name, backend } = networkKind(settings)
  const options = backend === 'vxlan' ? { VNI: settings.vni, Port: settings.port } : {}
  return { Network: settings.clusterCidr, Backend: { Name: name, Type: backend, ...options } }
}

/** The API server and its authority. */
export interface ClusterEndpoint {
  readonly server: string
  /** PEM. */
  readonly certificateAuthority: string
}

/** The address of the machine, at which others reach it. */
export interface Management extends Subnet {
  /** The current name of the adapter. */
  readonly adapter: string
}

export function cniDocument(settings: SetupSettings, management: Management): object {
  const { clusterCidr, serviceCidr, networkMode } = settings
  const isBridge = networkMode === 'l2bridge'
  const exceptions = [clusterCidr, serviceCidr, ...(isBridge ? [subnetOf(management)] : [])]
  const policy = (Value: object): object => ({ Name: 'EndpointPolicy', Value })
  const route = (DestinationPrefix: string): object => policy({ Type: 'ROUTE', DestinationPrefix, NeedEncap: true })
  return {
    cniVersion: '0.3.0',
    name: networkKind(settings).name,
    type: 'flannel',
    capabilities: { dns: true },
    delegate: {
      type: isBridge ? 'win-bridge' : 'win-overlay',
      policies: [
        policy({ Type: 'OutBoundNAT', ExceptionList: exceptions }),
        route(serviceCidr),
        ...(isBridge ? [route(`${management.address}/32`)] : []),
      ],
    },
  }
}

/** The host-local configuration that reserves an address of the node. */
export function reservationDocument(settings: SetupSettings, subnet: string): object {
  return {
    cniVersion: '0.3.0',
    name: networkKind(settings).name,
    ipam: { type: 'host-local', ranges: [[{ subnet }]], dataDir: '/var/lib/cni/networks' },
  }
}

/** The network that creates the virtual switch before anything depends on connections. */
export function externalNetwork({ networkMode }: SetupSettings, adapter: string): object {
  const isOverlay = networkMode === 'overlay'
  return {
    Type: isOverlay ? 'Overlay' : 'L2Bridge',
    Name: 'External',
    NetworkAdapterName: adapter,
    Subnets: [
      {
        AddressPrefix: '192.168.255.0/30',
        GatewayAddress: '192.168.255.1',
        ...(isOverlay && { Policies: [{ Type: 'VSID', VSID: 9999 }] }),
      },
    ],
  }
}

/** A kubeconfig with one cluster and one token. JSON is valid YAML. */
export function kubeconfigDocument({ server, certificateAuthority }: ClusterEndpoint, token: string): string {
  const name = 'kubernetes'
  const cluster = { server, 'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64') }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  })
}

interface Node {
  readonly settings: SetupSettings
  readonly paths: SetupPaths
  readonly name: string
  readonly address: string
}

export function flanneldFlags({ paths, address }: Node): string[] {
  return [`--kubeconfig-file=${paths.flannelKubeconfig}`, `--iface=${address}`, '--ip-masq=1', '--kube-subnet-mgr=1']
}

/** Without these flags upstream's kubelet allows all requests of all clients. */
const ACCESS_FLAGS = [
  '--anonymous-auth=false',
  '--authentication-token-webhook=true',
  '--authorization-mode=Webhook',
  '--read-only-port=0',
]

export function kubeletFlags({ settings, paths, name, address }: Node, clusterDns: string): string[] {
  const conf = paths.cniConf.slice(0, paths.cniConf.lastIndexOf('\\'))
  const always = [
    `--hostname-override=${name}`,
    '--v=6',
    `--cluster-dns=${clusterDns}`,
    `--bootstrap-kubeconfig=${paths.bootstrapKubeconfig}`,
    `--kubeconfig=${paths.kubeletKubeconfig}`,
    `--cert-dir=${paths.pki}`,
    '--rotate-certificates=true',
    ...ACCESS_FLAGS,
    `--client-ca-file=${paths.clientAuthority}`,
    '--cgroups-per-qos=false',
    '--enforce-node-allocatable=',
    `--node-ip=${address}`,
  ]
  const docker = [
    '--pod-infra-container-image=kubeletwin/pause',
    '--image-pull-progress-deadline=20m',
    '--network-plugin=cni',
    `--cni-bin-dir=${paths.cni}`,
    `--cni-conf-dir=${conf}`,
  ]
  const containerd = ['--container-runtime-endpoint=npipe:////./pipe/containerd-containerd']
  // Removed in 1.26; the output goes to the log of the service anyway.
  const logs = [`--log-dir=${paths.logs}\\kubelet`, '--logtostderr=false']
  return [...always, ...(usesDocker(settings) ? docker : containerd), ...(minorOf(settings.release) < 26 ? logs : [])]
}

/** `sourceVip` is undefined if packets need none. */
export function kubeProxyFlags({ settings, paths, name }: Node, sourceVip: string | undefined): string[] {
  // The dual-stack gate was removed in 1.25.
  const gates = ['WinOverlay=true', ...(minorOf(settings.release) < 25 ? ['IPv6DualStack=false'] : [])]
  return [
    '--v=4',
    '--proxy-mode=kernelspace',
    `--hostname-override=${name}`,
    `--kubeconfig=${paths.kubeProxyKubeconfig}`,
    `--network-name=${networkKind(settings).name}`,
    `--cluster-cidr=${settings.clusterCidr}`,
    ...(sourceVip === undefined ? [] : [`--source-vip=${sourceVip}`, `--feature-gates=${gates.join(',')}`]),
  ]
}

/** A process that does nothing while the pod exists. */
export const PAUSE_DOCKERFILE: string = [
  'FROM mcr.microsoft.com/windows/nanoserver:latest',
  'CMD cmd /c ping -t localhost > nul',
  '',
].join('\n')
