/** Every flag of kube-proxy, with upstream's names, types and defaults. Most stand for a field of its configuration. */
import { FEATURE_GATES } from '#control-plane/flags/gates.ts'
import { SERVER_LOG_FLAGS } from '#control-plane/flags/general-flags.ts'
import { describeGates, featureGates, type FeatureGates } from '#lib/flags/feature-gates.ts'
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { formatDuration, parseDuration } from '#lib/flags/go-literals.ts'
import { bool, customKind, float32, int32, type Kind, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { type GivenProxyConfiguration, withProxyDefaults } from '#proxy/configuration.ts'

/** What is no part of the configuration, by the names of the flags. */
export interface ProxySettings {
  readonly cleanup: boolean
  readonly config: string
  readonly 'feature-gates': FeatureGates
  readonly 'hostname-override': string
  readonly 'init-only': boolean
  readonly master: string
  readonly 'write-config-to': string
}

const OWN_FLAGS: FlagsOf<ProxySettings> & FlagGroup = {
  cleanup: flag(bool, false, 'Removes the rules of kube-proxy and exits'),
  config: flag(string, '', 'File with a KubeProxyConfiguration; flags that stand for its fields are ignored then'),
  'feature-gates': flag(featureGates(FEATURE_GATES), new Map(), describeGates(FEATURE_GATES)),
  'hostname-override': flag(string, '', 'Name of the node; default: that of the machine'),
  'init-only': flag(bool, false, 'Does what needs full privileges and exits; CAP_NET_ADMIN is enough afterwards'),
  master: flag(string, '', 'Address of the API server; counts more than what the kubeconfig says'),
  'write-config-to': flag(string, '', 'Writes the default configuration to this file and exits'),
  'boot-id-file': idle(string, '/proc/sys/kernel/random/boot_id', 'there is no cadvisor'),
  'machine-id-file': idle(string, '/etc/machine-id,/var/lib/dbus/machine-id', 'there is no cadvisor'),
  'ipvs-exclude-cidrs': unsupported(strings, [], 'there is no mode ipvs'),
}

const word = (type: string): Kind<string> => customKind(type, String, String)
const durationWord: Kind<string> = {
  type: 'duration',
  hint: 'duration',
  parse: (text) => formatDuration(parseDuration(text)),
  print: String,
  plain: ['0s'],
}

/** Fields of the configuration that have a flag, by its name. */
const FIELDS = {
  'bind-address': [word('ip'), 'bindAddress'],
  'bind-address-hard-fail': [bool, 'bindAddressHardFail'],
  'cluster-cidr': [string, 'clusterCIDR'],
  'config-sync-period': [durationWord, 'configSyncPeriod'],
  'conntrack-max-per-core': [int32, 'conntrack.maxPerCore'],
  'conntrack-min': [int32, 'conntrack.min'],
  'conntrack-tcp-be-liberal': [bool, 'conntrack.tcpBeLiberal'],
  'conntrack-tcp-timeout-close-wait': [durationWord, 'conntrack.tcpCloseWaitTimeout'],
  'conntrack-tcp-timeout-established': [durationWord, 'conntrack.tcpEstablishedTimeout'],
  'conntrack-udp-timeout': [durationWord, 'conntrack.udpTimeout'],
  'conntrack-udp-timeout-stream': [durationWord, 'conntrack.udpStreamTimeout'],
  'detect-local-mode': [word('LocalMode'), 'detectLocalMode'],
  'healthz-bind-address': [word('ipport'), 'healthzBindAddress'],
  'iptables-localhost-nodeports': [bool, 'iptables.localhostNodePorts'],
  'iptables-masquerade-bit': [int32, 'iptables.masqueradeBit'],
  'iptables-min-sync-period': [durationWord, 'iptables.minSyncPeriod'],
  'iptables-sync-period': [durationWord, 'iptables.syncPeriod'],
  'ipvs-min-sync-period': [durationWord, 'ipvs.minSyncPeriod'],
  'ipvs-scheduler': [string, 'ipvs.scheduler'],
  'ipvs-strict-arp': [bool, 'ipvs.strictARP'],
  'ipvs-sync-period': [durationWord, 'ipvs.syncPeriod'],
  'ipvs-tcp-timeout': [durationWord, 'ipvs.tcpTimeout'],
  'ipvs-tcpfin-timeout': [durationWord, 'ipvs.tcpFinTimeout'],
  'ipvs-udp-timeout': [durationWord, 'ipvs.udpTimeout'],
  'kube-api-burst': [int32, 'clientConnection.burst'],
  'kube-api-content-type': [string, 'clientConnection.contentType'],
  'kube-api-qps': [float32, 'clientConnection.qps'],
  kubeconfig: [string, 'clientConnection.kubeconfig'],
  'masquerade-all': [bool, 'nftables.masqueradeAll'],
  'metrics-bind-address': [word('ipport'), 'metricsBindAddress'],
  'nodeport-addresses': [strings, 'nodePortAddresses'],
  'oom-score-adj': [int32, 'oomScoreAdj'],
  'pod-bridge-interface': [string, 'detectLocal.bridgeInterface'],
  'pod-interface-name-prefix': [string, 'detectLocal.interfaceNamePrefix'],
  profiling: [bool, 'enableProfiling'],
  'proxy-mode': [word('ProxyMode'), 'mode'],
  'show-hidden-metrics-for-version': [string, 'showHiddenMetricsForVersion'],
} as const satisfies Readonly<Record<string, readonly [kind: object, field: string]>>

/** Those of iptables are those of nftables too, as far as it has them. */
const ALSO: Readonly<Record<string, string>> = {
  'iptables-masquerade-bit': 'nftables.masqueradeBit',
  'iptables-min-sync-period': 'nftables.minSyncPeriod',
  'iptables-sync-period': 'nftables.syncPeriod',
  'masquerade-all': 'iptables.masqueradeAll',
}

function configurationFlags(): FlagGroup {
  const defaults = withProxyDefaults() as unknown as GivenProxyConfiguration
  const rows = Object.entries(FIELDS).map(([name, [kind, field]]) => {
    const initial = valueAt(defaults, field)
    // Upstream's flag says more than its configuration.
    const shown = name === 'ipvs-min-sync-period' ? '1s' : initial
    return [name, flag(kind as Kind<unknown>, shown, `${field} of the KubeProxyConfiguration`)] as const
  })
  return Object.fromEntries(rows)
}

function valueAt(config: GivenProxyConfiguration, field: string): unknown {
  return field.split('.').reduce<unknown>((at, name) => (at as GivenProxyConfiguration | undefined)?.[name], config)
}

/** Where what a flag says goes; none for flags that are no part of the configuration. */
export function fieldsOf(name: string): string[] {
  if (!Object.hasOwn(FIELDS, name)) return []
  return [FIELDS[name as keyof typeof FIELDS][1], ...(ALSO[name] === undefined ? [] : [ALSO[name]])]
}

export const PROXY_FLAGS: FlagGroups = {
  'kube-proxy': { ...OWN_FLAGS, ...configurationFlags(), ...SERVER_LOG_FLAGS },
}
