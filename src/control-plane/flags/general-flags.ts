/** The groups "generic", "features", "logs", "traces", "egress selector", "cloud provider" and "misc". */
import { describeGates, featureGates, type FeatureGates } from '#lib/flags/feature-gates.ts'
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, float, int, type Kind, oneOf, string, uint } from '#lib/flags/kinds.ts'
import { ip, strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'

import { type PortRange, portRange } from './flag-kinds.ts'
import { FEATURE_GATES } from './gates.ts'
import { int64 } from './serving-flags.ts'

export interface GenericValues {
  readonly 'advertise-address': string
  readonly 'cors-allowed-origins': readonly string[]
  readonly 'emulated-version': readonly string[]
  readonly 'external-hostname': string
  readonly 'feature-gates': FeatureGates
  readonly 'max-mutating-requests-inflight': number
  readonly 'max-requests-inflight': number
  readonly 'min-request-timeout': number
  readonly 'request-timeout': number
  readonly 'shutdown-delay-duration': number
  readonly 'strict-transport-security-directives': readonly string[]
}

const gates = featureGates(FEATURE_GATES)

/** Gates may be written with the component they are about, `kube:WatchList=false`; there is only that one here. */
const componentGates: Kind<FeatureGates> = {
  ...gates,
  type: 'colonSeparatedMultimapStringString',
  hint: 'colonSeparatedMultimapStringString',
  parse: (text) => gates.parse(text.replaceAll(/(^|,)\s*kube:/g, '$1')),
}

export const GENERIC_FLAGS: FlagsOf<GenericValues> & FlagGroup = {
  'advertise-address': flag(
    ip,
    '',
    'Address under which the cluster reaches this server; default: --bind-address, or that of the default interface',
  ),
  'cors-allowed-origins': flag(
    strings,
    [],
    'Regular expressions for origins of web pages that may call this server; each must say where the host begins and ends: //example\\.com(:|$)',
  ),
  'emulated-version': flag(strings, [], 'Version to behave as; only "kube=1.36"'),
  'external-hostname': flag(string, '', 'Name under which others reach this server, for addresses in its documents'),
  'feature-gates': flag(componentGates, new Map(), describeGates(FEATURE_GATES)),
  'max-mutating-requests-inflight': flag(
    int,
    200,
    'With --max-requests-inflight, how many seats requests have; without priority and fairness, how many writes run at once (0: no limit)',
  ),
  'max-requests-inflight': flag(
    int,
    400,
    'With --max-mutating-requests-inflight, how many seats requests have; without priority and fairness, how many reads run at once (0: no limit)',
  ),
  'min-request-timeout': flag(int, 1800, 'Seconds a watch lasts that does not say, and up to twice as long by chance'),
  'request-timeout': flag(duration, 60_000, 'How long a request may take, watches excepted'),
  'shutdown-delay-duration': flag(duration, 0, 'How long to go on serving, with /readyz failing, before stopping'),
  'strict-transport-security-directives': flag(
    strings,
    [],
    'Directives of the header Strict-Transport-Security; none: no header',
  ),

  'emulation-forward-compatible': unsupported(bool, false, 'there is no emulation of other versions'),
  'goaway-chance': unsupported(float, 0, 'clients are not sent away by chance'),
  'livez-grace-period': idle(duration, 0, 'the server listens when its start is complete'),
  'min-compatibility-version': unsupported(strings, [], 'there is no emulation of other versions'),
  'runtime-config-emulation-forward-compatible': unsupported(bool, false, 'there is no emulation of other versions'),
  'shutdown-send-retry-after': unsupported(bool, false, 'a server that stops accepts no more connections'),
  'shutdown-watch-termination-grace-period': unsupported(duration, 0, 'watches end when the server stops'),
  'storage-initialization-timeout': idle(duration, 60_000, 'the server listens when its storage is ready'),
}

export interface FeatureValues {
  readonly 'enable-priority-and-fairness': boolean
  readonly profiling: boolean
}

export const FEATURE_FLAGS: FlagsOf<FeatureValues> & FlagGroup = {
  'contention-profiling': unsupported(bool, false, 'there are no locks to profile'),
  'debug-socket-path': unsupported(string, '', 'profile with "node --inspect"'),
  'enable-priority-and-fairness': flag(
    bool,
    true,
    'Whether flow schemas and priority levels decide whose turn it is; otherwise the two --max-…-inflight flags limit requests',
  ),
  profiling: flag(
    bool,
    true,
    'Whether /debug answers: /debug/flags/v sets how much the log says; profiles are taken with "node --inspect"',
  ),
}

const quantity: Kind<string> = { ...string, type: 'quantity', hint: 'quantity', plain: ['0'] }

export const SERVER_LOG_FLAGS: FlagGroup = {
  ...LOG_FLAGS,
  'log-json-info-buffer-size': idle(quantity, '0', 'lines are written as they come'),
  'log-text-info-buffer-size': idle(quantity, '0', 'lines are written as they come'),
}

export interface TraceValues {
  readonly 'tracing-config-file': string
}

export const TRACE_FLAGS: FlagsOf<TraceValues> & FlagGroup = {
  'tracing-config-file': flag(string, '', 'File that says where spans of requests go, and how many traces begin here'),
}

export const EGRESS_FLAGS: FlagGroup = {
  'egress-selector-config-file': unsupported(string, '', 'connections are made directly'),
}

/** Gone from upstream; what is left is what its values mean today. */
export const CLOUD_FLAGS: FlagGroup = {
  'cloud-config': unsupported(string, '', 'cloud providers are external', { hidden: true }),
  'cloud-provider': idle(oneOf('', 'external'), '', 'cloud providers are external', { hidden: true }),
}

export interface MiscValues {
  readonly 'allow-privileged': boolean
  readonly 'apiserver-count': number
  readonly 'coordinated-leadership-lease-duration': number
  readonly 'coordinated-leadership-renew-deadline': number
  readonly 'coordinated-leadership-retry-period': number
  readonly 'endpoint-reconciler-type': string
  readonly 'event-ttl': number
  readonly 'kubelet-certificate-authority': string
  readonly 'kubelet-client-certificate': string
  readonly 'kubelet-client-key': string
  readonly 'kubelet-port': number
  readonly 'kubelet-preferred-address-types': readonly string[]
  readonly 'kubelet-timeout': number
  readonly 'proxy-client-cert-file': string
  readonly 'proxy-client-key-file': string
  readonly 'service-account-signing-key-file': string
  readonly 'service-cluster-ip-range': string
  readonly 'service-node-port-range': PortRange
}

const ADDRESS_TYPES = ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP']

export const MISC_FLAGS: FlagsOf<MiscValues> & FlagGroup = {
  'allow-privileged': flag(bool, false, 'Whether containers may be privileged'),
  'event-ttl': flag(duration, 3_600_000, 'How long events are kept'),
  'kubelet-certificate-authority': flag(
    string,
    '',
    'PEM file with the authority of kubelets; none: their certificates are not checked',
  ),
  'kubelet-client-certificate': flag(string, '', 'PEM file with our certificate for kubelets'),
  'kubelet-client-key': flag(string, '', 'PEM file with the key of --kubelet-client-certificate'),
  'kubelet-port': flag(uint, 10_250, 'Port of kubelets whose Node does not say', {
    deprecated: 'kubelet-port is deprecated and will be removed.',
  }),
  'kubelet-preferred-address-types': flag(
    strings,
    ADDRESS_TYPES,
    'Types of node addresses, in the order in which they are tried',
  ),
  'kubelet-timeout': flag(duration, 5_000, 'How long a connection to a kubelet may take to be made'),
  'proxy-client-cert-file': flag(string, '', 'PEM file with our certificate for aggregated servers'),
  'proxy-client-key-file': flag(string, '', 'PEM file with the key of --proxy-client-cert-file'),
  'service-account-signing-key-file': flag(
    string,
    '',
    'PEM file with the private key that signs ServiceAccount tokens',
  ),
  'service-cluster-ip-range': flag(
    string,
    '',
    'Block of addresses for Services, or two of both families, the first being the default',
  ),
  'service-node-port-range': flag(
    portRange,
    { first: 30_000, last: 32_767 },
    'Ports for Services on every node, both ends included',
  ),

  'aggregator-reject-forwarding-redirect': unsupported(
    bool,
    true,
    'redirects of aggregated servers are never passed on',
  ),
  'apiserver-count': flag(int, 1, 'Servers expected in the cluster, for --endpoint-reconciler-type=master-count', {
    deprecated: 'apiserver-count is deprecated and will be removed in a future version.',
  }),
  'coordinated-leadership-lease-duration': flag(
    duration,
    15_000,
    'How long servers keep away from the lease of the server that elects leaders',
  ),
  'coordinated-leadership-renew-deadline': flag(
    duration,
    10_000,
    'How long the server that elects leaders goes on without renewing its lease',
  ),
  'coordinated-leadership-retry-period': flag(
    duration,
    2_000,
    'How long servers wait between attempts to get or renew that lease',
  ),
  'enable-aggregator-routing': idle(
    bool,
    false,
    'aggregated servers and webhooks are always called at the endpoints of their Service',
  ),
  'enable-logs-handler': unsupported(bool, false, 'logs are not served', {
    deprecated: 'Log handler functionality is deprecated',
  }),
  'endpoint-reconciler-type': flag(
    string,
    'lease',
    'How servers find each other for the endpoints of the Service "kubernetes" (lease, master-count, none)',
  ),
  'insecure-port': unsupported(int, 0, 'there is no port without TLS', { hidden: true }),
  'kubelet-read-only-port': idle(uint, 10_255, 'the read-only port of kubelets is never used', {
    deprecated: 'kubelet-read-only-port is deprecated and will be removed.',
  }),
  'kubernetes-service-node-port': unsupported(int, 0, 'the Service "kubernetes" is of type ClusterIP'),
  'max-connection-bytes-per-sec': unsupported(int64, 0, 'connections are not throttled'),
  'peer-advertise-ip': unsupported(string, '', 'requests are not passed on between servers'),
  'peer-advertise-port': unsupported(string, '', 'requests are not passed on between servers'),
  'peer-ca-file': unsupported(string, '', 'requests are not passed on between servers'),
  'service-account-signing-endpoint': unsupported(string, '', 'use --service-account-signing-key-file'),
}
