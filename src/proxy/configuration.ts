/** What kube-proxy is told: KubeProxyConfiguration v1alpha1, in upstream's order of fields, with its defaults. Pure. */
import { parseCidr, parseIp } from '#lib/cidr.ts'
import {
  type ConfigKind,
  defineConfig,
  flag,
  optional,
  readConfig,
  scalar,
  struct,
  text,
  texts,
} from '#meta/config-kind.ts'

const int32 = scalar('int32')
const duration = scalar('duration', 'v1.Duration')
const optionalInt = optional(int32)

const GROUP_VERSION = 'kubeproxy.config.k8s.io/v1alpha1'

const CONFIGURATION: ConfigKind = defineConfig(
  'KubeProxyConfiguration',
  [GROUP_VERSION],
  'v1alpha1.KubeProxyConfiguration',
  {
    featureGates: { type: 'map', values: flag },
    clientConnection: struct('v1alpha1.ClientConnectionConfiguration', {
      kubeconfig: text,
      acceptContentTypes: text,
      contentType: text,
      qps: scalar('float64', 'float32'),
      burst: int32,
    }),
    logging: { type: 'any', goType: 'v1.LoggingConfiguration' },
    hostnameOverride: text,
    bindAddress: text,
    healthzBindAddress: text,
    metricsBindAddress: text,
    bindAddressHardFail: flag,
    enableProfiling: flag,
    showHiddenMetricsForVersion: text,
    mode: text,
    iptables: struct('v1alpha1.KubeProxyIPTablesConfiguration', {
      masqueradeBit: optionalInt,
      masqueradeAll: flag,
      localhostNodePorts: optional(flag),
      syncPeriod: duration,
      minSyncPeriod: duration,
    }),
    ipvs: struct('v1alpha1.KubeProxyIPVSConfiguration', {
      syncPeriod: duration,
      minSyncPeriod: duration,
      scheduler: text,
      excludeCIDRs: texts,
      strictARP: flag,
      tcpTimeout: duration,
      tcpFinTimeout: duration,
      udpTimeout: duration,
    }),
    nftables: struct('v1alpha1.KubeProxyNFTablesConfiguration', {
      masqueradeBit: optionalInt,
      masqueradeAll: flag,
      syncPeriod: duration,
      minSyncPeriod: duration,
    }),
    winkernel: struct('v1alpha1.KubeProxyWinkernelConfiguration', {
      networkName: text,
      sourceVip: text,
      enableDSR: flag,
      rootHnsEndpointName: text,
      forwardHealthCheckVip: flag,
    }),
    detectLocalMode: text,
    detectLocal: struct('v1alpha1.DetectLocalConfiguration', { bridgeInterface: text, interfaceNamePrefix: text }),
    clusterCIDR: text,
    nodePortAddresses: texts,
    oomScoreAdj: optionalInt,
    conntrack: struct('v1alpha1.KubeProxyConntrackConfiguration', {
      maxPerCore: optionalInt,
      min: optionalInt,
      tcpEstablishedTimeout: optional(duration),
      tcpCloseWaitTimeout: optional(duration),
      tcpBeLiberal: flag,
      udpTimeout: duration,
      udpStreamTimeout: duration,
    }),
    configSyncPeriod: duration,
    portRange: text,
    windowsRunAsService: flag,
  },
)

interface Periods {
  readonly syncPeriod: string
  readonly minSyncPeriod: string
}

interface MasqueradingPeriods extends Periods {
  readonly masqueradeBit: number
  readonly masqueradeAll: boolean
}

/** With every default. Durations are as Go prints them. */
export interface ProxyConfiguration {
  readonly featureGates: Readonly<Record<string, boolean>>
  readonly clientConnection: {
    readonly kubeconfig: string
    readonly acceptContentTypes: string
    readonly contentType: string
    readonly qps: number
    readonly burst: number
  }
  readonly logging?: object
  readonly hostnameOverride: string
  readonly bindAddress: string
  readonly healthzBindAddress: string
  readonly metricsBindAddress: string
  readonly bindAddressHardFail: boolean
  readonly enableProfiling: boolean
  readonly showHiddenMetricsForVersion: string
  readonly mode: string
  readonly iptables: MasqueradingPeriods & { readonly localhostNodePorts: boolean }
  readonly ipvs: Periods & {
    readonly scheduler: string
    readonly excludeCIDRs: readonly string[]
    readonly strictARP: boolean
    readonly tcpTimeout: string
    readonly tcpFinTimeout: string
    readonly udpTimeout: string
  }
  readonly nftables: MasqueradingPeriods
  readonly winkernel: object
  readonly detectLocalMode: string
  readonly detectLocal: { readonly bridgeInterface: string; readonly interfaceNamePrefix: string }
  readonly clusterCIDR: string
  readonly nodePortAddresses: readonly string[]
  readonly oomScoreAdj: number
  readonly conntrack: {
    readonly maxPerCore: number
    readonly min: number
    readonly tcpEstablishedTimeout: string
    readonly tcpCloseWaitTimeout: string
    readonly tcpBeLiberal: boolean
    readonly udpTimeout: string
    readonly udpStreamTimeout: string
  }
  readonly configSyncPeriod: string
  readonly portRange: string
}

export type GivenProxyConfiguration = Readonly<Record<string, unknown>>

const HEALTHZ_PORT = 10_256
const METRICS_PORT = 10_249

const DEFAULTS: ProxyConfiguration = {
  featureGates: {},
  clientConnection: {
    kubeconfig: '',
    acceptContentTypes: '',
    contentType: 'application/vnd.kubernetes.protobuf',
    qps: 5,
    burst: 10,
  },
  hostnameOverride: '',
  bindAddress: '0.0.0.0',
  healthzBindAddress: '',
  metricsBindAddress: '',
  bindAddressHardFail: false,
  enableProfiling: false,
  showHiddenMetricsForVersion: '',
  mode: '',
  iptables: {
    masqueradeBit: 14,
    masqueradeAll: false,
    localhostNodePorts: true,
    syncPeriod: '30s',
    minSyncPeriod: '1s',
  },
  ipvs: {
    syncPeriod: '30s',
    minSyncPeriod: '0s',
    scheduler: '',
    excludeCIDRs: [],
    strictARP: false,
    tcpTimeout: '0s',
    tcpFinTimeout: '0s',
    udpTimeout: '0s',
  },
  nftables: { masqueradeBit: 14, masqueradeAll: false, syncPeriod: '30s', minSyncPeriod: '1s' },
  winkernel: {},
  detectLocalMode: '',
  detectLocal: { bridgeInterface: '', interfaceNamePrefix: '' },
  clusterCIDR: '',
  nodePortAddresses: [],
  oomScoreAdj: -999,
  conntrack: {
    maxPerCore: 32_768,
    min: 131_072,
    tcpEstablishedTimeout: '24h0m0s',
    tcpCloseWaitTimeout: '1h0m0s',
    tcpBeLiberal: false,
    udpTimeout: '0s',
    udpStreamTimeout: '0s',
  },
  configSyncPeriod: '15m0s',
  portRange: '',
}

/** Throws upstream's texts. `warn` is told what only a lenient reader takes. */
export function readProxyConfiguration(source: string, warn: (message: string) => void): GivenProxyConfiguration {
  return readConfig(source, [CONFIGURATION], { warn }).value
}

export function withProxyDefaults(given: GivenProxyConfiguration = {}): ProxyConfiguration {
  const merged = merge(DEFAULTS as unknown as GivenProxyConfiguration, given) as unknown as ProxyConfiguration
  const isV6 = parseIp(merged.bindAddress, { sloppy: true })?.family === 6
  const [any, own] = isV6 ? ['[::]', '[::1]'] : ['0.0.0.0', '127.0.0.1']
  return {
    ...merged,
    healthzBindAddress: withPort(merged.healthzBindAddress, any, HEALTHZ_PORT),
    metricsBindAddress: withPort(merged.metricsBindAddress, own, METRICS_PORT),
  }
}

/** On `/configz`, and in the file of `--write-config-to`. */
export function shownProxyConfiguration(config: ProxyConfiguration): object {
  return { apiVersion: GROUP_VERSION, kind: CONFIGURATION.kind, ...config }
}

/** What is wrong with it, in upstream's words as far as they are known to users; none: nothing is. */
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

/** What is empty is as good as not said. */
function merge(defaults: GivenProxyConfiguration, given: GivenProxyConfiguration): GivenProxyConfiguration {
  const isStruct = (value: unknown): value is GivenProxyConfiguration =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = Object.entries(given).flatMap(([name, value]) => {
    const known = defaults[name]
    if (name === 'kind' || name === 'apiVersion' || value === '' || value === undefined || value === '0s') return []
    return [[name, isStruct(known) && isStruct(value) ? merge(known, value) : value]]
  })
  return { ...defaults, ...(Object.fromEntries(entries) as GivenProxyConfiguration) }
}
