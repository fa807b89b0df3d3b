/** KubeProxyConfiguration v1alpha1 as one table in upstream's field order: see `#meta/config-rows.ts`. Pure. */
import { parseCidr, parseIp } from '#lib/net/cidr.ts'
import { type ConfigTable, defineConfig, readConfig } from '#meta/config-kind.ts'
import type { Complete } from '#meta/config-rows.ts'

const GROUP_VERSION = 'kubeproxy.config.k8s.io/v1alpha1'

const STRUCTS = {
  'v1alpha1.KubeProxyConfiguration': {
    featureGates: 'map[string]bool ={}',
    clientConnection: 'v1alpha1.ClientConnectionConfiguration',
    logging: 'v1.LoggingConfiguration',
    hostnameOverride: 'string =',
    bindAddress: 'string =0.0.0.0 --bind-address:ip',
    healthzBindAddress: 'string = --healthz-bind-address:ipport',
    metricsBindAddress: 'string = --metrics-bind-address:ipport',
    bindAddressHardFail: 'bool =false --bind-address-hard-fail',
    enableProfiling: 'bool =false --profiling',
    showHiddenMetricsForVersion: 'string = --show-hidden-metrics-for-version',
    mode: 'string = --proxy-mode:ProxyMode',
    iptables: 'v1alpha1.KubeProxyIPTablesConfiguration',
    ipvs: 'v1alpha1.KubeProxyIPVSConfiguration',
    nftables: 'v1alpha1.KubeProxyNFTablesConfiguration',
    winkernel: 'v1alpha1.KubeProxyWinkernelConfiguration',
    detectLocalMode: 'string = --detect-local-mode:LocalMode',
    detectLocal: 'v1alpha1.DetectLocalConfiguration',
    clusterCIDR: 'string = --cluster-cidr',
    nodePortAddresses: '[]string = --nodeport-addresses',
    oomScoreAdj: '*int32 =-999 --oom-score-adj',
    conntrack: 'v1alpha1.KubeProxyConntrackConfiguration',
    configSyncPeriod: 'v1.Duration =15m0s --config-sync-period',
    portRange: 'string =',
    windowsRunAsService: 'bool',
  },
  'v1alpha1.ClientConnectionConfiguration': {
    kubeconfig: 'string = --kubeconfig',
    acceptContentTypes: 'string =',
    contentType: 'string =application/vnd.kubernetes.protobuf --kube-api-content-type',
    qps: 'float32 =5 --kube-api-qps',
    burst: 'int32 =10 --kube-api-burst',
  },
  'v1alpha1.KubeProxyIPTablesConfiguration': {
    masqueradeBit: '*int32 =14 --iptables-masquerade-bit',
    masqueradeAll: 'bool =false --masquerade-all',
    localhostNodePorts: '*bool =true --iptables-localhost-nodeports',
    syncPeriod: 'v1.Duration =30s --iptables-sync-period',
    minSyncPeriod: 'v1.Duration =1s --iptables-min-sync-period',
  },
  'v1alpha1.KubeProxyIPVSConfiguration': {
    syncPeriod: 'v1.Duration =30s --ipvs-sync-period',
    minSyncPeriod: 'v1.Duration =0s --ipvs-min-sync-period',
    scheduler: 'string = --ipvs-scheduler',
    excludeCIDRs: '[]string =',
    strictARP: 'bool =false --ipvs-strict-arp',
    tcpTimeout: 'v1.Duration =0s --ipvs-tcp-timeout',
    tcpFinTimeout: 'v1.Duration =0s --ipvs-tcpfin-timeout',
    udpTimeout: 'v1.Duration =0s --ipvs-udp-timeout',
  },
  'v1alpha1.KubeProxyNFTablesConfiguration': {
    masqueradeBit: '*int32 =14 --iptables-masquerade-bit',
    masqueradeAll: 'bool =false --masquerade-all',
    syncPeriod: 'v1.Duration =30s --iptables-sync-period',
    minSyncPeriod: 'v1.Duration =1s --iptables-min-sync-period',
  },
  'v1alpha1.KubeProxyWinkernelConfiguration': {
    networkName: 'string',
    sourceVip: 'string',
    enableDSR: 'bool',
    rootHnsEndpointName: 'string',
    forwardHealthCheckVip: 'bool',
  },
  'v1alpha1.DetectLocalConfiguration': {
    bridgeInterface: 'string = --pod-bridge-interface',
    interfaceNamePrefix: 'string = --pod-interface-name-prefix',
  },
  'v1alpha1.KubeProxyConntrackConfiguration': {
    maxPerCore: '*int32 =32768 --conntrack-max-per-core',
    min: '*int32 =131072 --conntrack-min',
    tcpEstablishedTimeout: '*v1.Duration =24h0m0s --conntrack-tcp-timeout-established',
    tcpCloseWaitTimeout: '*v1.Duration =1h0m0s --conntrack-tcp-timeout-close-wait',
    tcpBeLiberal: 'bool =false --conntrack-tcp-be-liberal',
    udpTimeout: 'v1.Duration =0s --conntrack-udp-timeout',
    udpStreamTimeout: 'v1.Duration =0s --conntrack-udp-timeout-stream',
  },
} as const

/** With every default applied. Durations as Go prints them. */
export interface ProxyConfiguration extends Complete<typeof STRUCTS, 'v1alpha1.KubeProxyConfiguration'> {}

export const PROXY_CONFIGURATION: ConfigTable<ProxyConfiguration> = defineConfig(
  ['KubeProxyConfiguration', 'v1alpha1.KubeProxyConfiguration'],
  [GROUP_VERSION],
  STRUCTS,
)

export type GivenProxyConfiguration = Readonly<Record<string, unknown>>

const HEALTHZ_PORT = 10_256
const METRICS_PORT = 10_249

/** Throws upstream's texts. `warn` gets the problems that lenient decoding ignores. */
export function readProxyConfiguration(source: string, warn: (message: string) => void): GivenProxyConfiguration {
  const { kind: _, apiVersion: __, ...given } = readConfig(source, [PROXY_CONFIGURATION], { warn }).value
  return given
}

export function withProxyDefaults(given: GivenProxyConfiguration = {}): ProxyConfiguration {
  const merged = PROXY_CONFIGURATION.withDefaults(given)
  const isV6 = parseIp(merged.bindAddress, { sloppy: true })?.family === 6
  const [any, own] = isV6 ? ['[::]', '[::1]'] : ['0.0.0.0', '127.0.0.1']
  return {
    ...merged,
    healthzBindAddress: withPort(merged.healthzBindAddress, any, HEALTHZ_PORT),
    metricsBindAddress: withPort(merged.metricsBindAddress, own, METRICS_PORT),
  }
}

/** For `/configz` and `--write-config-to`. */
export function shownProxyConfiguration(config: ProxyConfiguration): object {
  return { apiVersion: GROUP_VERSION, kind: PROXY_CONFIGURATION.kind, ...config }
}

/** Validation errors, in upstream's words where users know them; empty: valid. */
export function proxyConfigurationErrors(config: ProxyConfiguration): string[] {
  const { mode, detectLocalMode, detectLocal, nodePortAddresses, conntrack } = config
  const wrong = (field: string, value: string, why: string): string =>
    `KubeProxyConfiguration.${field}: Invalid value: ${JSON.stringify(value)}: ${why}`
  const cidrs = config.clusterCIDR.split(',').filter((one) => one !== '')
  return [
    ...(['', 'iptables', 'ipvs', 'nftables'].includes(mode)
      ? []
      : [
          wrong(
            'ProxyMode',
            mode,
            'must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
          ),
        ]),
    ...(parseIp(config.bindAddress, { sloppy: true }) === undefined
      ? [wrong('BindAddress', config.bindAddress, 'not a valid textual representation of an IP address')]
      : []),
    ...(LOCAL_MODES.includes(detectLocalMode)
      ? []
      : [wrong('DetectLocalMode', detectLocalMode, `must be ${LOCAL_MODES.join(', ')}`)]),
    ...(detectLocalMode === 'BridgeInterface' && detectLocal.bridgeInterface === ''
      ? ['KubeProxyConfiguration.InterfaceName: Invalid value: "": must not be empty']
      : []),
    ...(detectLocalMode === 'InterfaceNamePrefix' && detectLocal.interfaceNamePrefix === ''
      ? ['KubeProxyConfiguration.InterfacePrefix: Invalid value: "": must not be empty']
      : []),
    ...(cidrs.length > 2
      ? [wrong('ClusterCIDR', config.clusterCIDR, 'only one CIDR allowed or a valid DualStack CIDR')]
      : []),
    ...cidrs.flatMap((one) => (isCidr(one) ? [] : [wrong('ClusterCIDR', one, 'must be a valid CIDR block')])),
    ...nodePortAddresses.flatMap((one) =>
      isCidr(one) || (one === 'primary' && nodePortAddresses.length === 1)
        ? []
        : [wrong('NodePortAddresses', one, 'must be a valid CIDR')],
    ),
    ...[config.iptables, config.nftables].flatMap(({ masqueradeBit }) =>
      masqueradeBit < 0 || masqueradeBit > 31
        ? [wrong('MasqueradeBit', String(masqueradeBit), 'must be within the range [0, 31]')]
        : [],
    ),
    ...(config.oomScoreAdj < -1000 || config.oomScoreAdj > 1000
      ? [wrong('OOMScoreAdj', String(config.oomScoreAdj), 'must be within the range [-1000, 1000]')]
      : []),
    ...(conntrack.maxPerCore < 0 || conntrack.min < 0
      ? ['KubeProxyConfiguration.KubeConntrackConfiguration: Invalid value: must be greater than or equal to 0']
      : []),
  ]
}

const LOCAL_MODES = ['', 'ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix']

function isCidr(text: string): boolean {
  return parseCidr(text, { sloppy: true }) !== undefined
}

function withPort(address: string, otherwise: string, port: number): string {
  if (address === '') return `${otherwise}:${port}`
  const ip = parseIp(address, { sloppy: true })
  if (ip === undefined) return address
  return ip.family === 6 ? `[${address}]:${port}` : `${address}:${port}`
}
