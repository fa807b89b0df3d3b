/** The flag groups "generic", "features", "logs", "traces", "egress selector", "cloud provider" and "misc". */
import { describeGates, featureGates, type FeatureGates } from '#lib/flags/feature-gates.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'
import { type Kind, oneOf, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'

import { type PortRange, portRange } from './flag-kinds.ts'
import { FEATURE_GATES } from './gates.ts'

interface ServerKinds {
  readonly external: Kind<'' | 'external'>
  readonly gates: Kind<FeatureGates>
  readonly portRange: Kind<PortRange>
  readonly quantity: Kind<string>
}

const gates = featureGates(FEATURE_GATES)

const KINDS: ServerKinds = {
  external: oneOf('', 'external'),
  // Gates may have a component prefix, `kube:WatchList=false`; only that one exists here.
  gates: {
    ...gates,
    type: 'colonSeparatedMultimapStringString',
    hint: 'colonSeparatedMultimapStringString',
    parse: (text) => gates.parse(text.replaceAll(/(^|,)\s*kube:/g, '$1')),
  },
  portRange,
  quantity: { ...string, type: 'quantity', hint: 'quantity', plain: ['0'] },
}

const GENERIC = {
  'advertise-address':
    'ip Address under which the cluster reaches this server; default: --bind-address, or that of the default interface',
  'cors-allowed-origins':
    'strings Regular expressions for origins of web pages that may call this server; each must say where the host begins and ends: //example\\.com(:|$)',
  'emulated-version': 'strings Version to behave as; only "kube=1.36"',
  'external-hostname': 'string Name under which others reach this server, for addresses in its documents',
  'feature-gates': 'gates Feature gates',
  'max-mutating-requests-inflight':
    'int =200 With --max-requests-inflight, how many seats requests have; without priority and fairness, how many writes run at once (0: no limit)',
  'max-requests-inflight':
    'int =400 With --max-mutating-requests-inflight, how many seats requests have; without priority and fairness, how many reads run at once (0: no limit)',
  'min-request-timeout': 'int =1800 Seconds a watch lasts that does not say, and up to twice as long by chance',
  'request-timeout': 'duration =1m0s How long a request may take, watches excepted',
  'shutdown-delay-duration': 'duration How long to go on serving, with /readyz failing, before stopping',
  'strict-transport-security-directives': 'strings Directives of the header Strict-Transport-Security; none: no header',
  'emulation-forward-compatible': 'bool unsupported: there is no emulation of other versions',
  'goaway-chance': 'float unsupported: clients are not sent away by chance',
  'livez-grace-period': 'duration idle: the server listens when its start is complete',
  'min-compatibility-version': 'strings unsupported: there is no emulation of other versions',
  'runtime-config-emulation-forward-compatible': 'bool unsupported: there is no emulation of other versions',
  'shutdown-send-retry-after': 'bool unsupported: a server that stops accepts no more connections',
  'shutdown-watch-termination-grace-period': 'duration unsupported: watches end when the server stops',
  'storage-initialization-timeout': 'duration =1m0s idle: the server listens when its storage is ready',
} as const

export interface GenericValues extends RowValues<typeof GENERIC, ServerKinds> {}

export const GENERIC_FLAGS: FlagsOf<GenericValues> & FlagGroup = flagRows(GENERIC, KINDS, {
  'feature-gates': { usage: describeGates(FEATURE_GATES) },
})

const FEATURES = {
  'contention-profiling': 'bool unsupported: there are no locks to profile',
  'debug-socket-path': 'string unsupported: profile with "node --inspect"',
  'enable-priority-and-fairness':
    'bool =true Whether flow schemas and priority levels decide whose turn it is; otherwise the two --max-…-inflight flags limit requests',
  profiling:
    'bool =true Whether /debug answers: /debug/flags/v sets how much the log says; profiles are taken with "node --inspect"',
} as const

export interface FeatureValues extends RowValues<typeof FEATURES> {}

export const FEATURE_FLAGS: FlagsOf<FeatureValues> & FlagGroup = flagRows(FEATURES)

export const SERVER_LOG_FLAGS: FlagGroup = {
  ...LOG_FLAGS,
  ...flagRows(
    {
      'log-json-info-buffer-size': 'quantity =0 idle: lines are written as they come',
      'log-text-info-buffer-size': 'quantity =0 idle: lines are written as they come',
    },
    KINDS,
  ),
}

const TRACES = {
  'tracing-config-file': 'string File that says where spans of requests go, and how many traces begin here',
} as const

export interface TraceValues extends RowValues<typeof TRACES> {}

export const TRACE_FLAGS: FlagsOf<TraceValues> & FlagGroup = flagRows(TRACES)

export const EGRESS_FLAGS: FlagGroup = flagRows({
  'egress-selector-config-file': 'string unsupported: connections are made directly',
})

/** Removed from upstream; the values keep their meaning. */
export const CLOUD_FLAGS: FlagGroup = flagRows(
  {
    'cloud-config': 'string unsupported: cloud providers are external',
    'cloud-provider': 'external idle: cloud providers are external',
  },
  KINDS,
  { 'cloud-config': { hidden: true }, 'cloud-provider': { hidden: true } },
)

const MISC = {
  'allow-privileged': 'bool Whether containers may be privileged',
  'event-ttl': 'duration =1h0m0s How long events are kept',
  'kubelet-certificate-authority':
    'string PEM file with the authority of kubelets; none: their certificates are not checked',
  'kubelet-client-certificate': 'string PEM file with our certificate for kubelets',
  'kubelet-client-key': 'string PEM file with the key of --kubelet-client-certificate',
  'kubelet-port': 'uint =10250 Port of kubelets whose Node does not say',
  'kubelet-preferred-address-types':
    'strings =Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP Types of node addresses, in the order in which they are tried',
  'kubelet-timeout': 'duration =5s How long a connection to a kubelet may take to be made',
  'proxy-client-cert-file': 'string PEM file with our certificate for aggregated servers',
  'proxy-client-key-file': 'string PEM file with the key of --proxy-client-cert-file',
  'service-account-signing-key-file': 'string PEM file with the private key that signs ServiceAccount tokens',
  'service-cluster-ip-range':
    'string Block of addresses for Services, or two of both families, the first being the default',
  'service-node-port-range': 'portRange =30000-32767 Ports for Services on every node, both ends included',
  'aggregator-reject-forwarding-redirect':
    'bool =true unsupported: redirects of aggregated servers are never passed on',
  'apiserver-count': 'int =1 Servers expected in the cluster, for --endpoint-reconciler-type=master-count',
  'coordinated-leadership-lease-duration':
    'duration =15s How long servers keep away from the lease of the server that elects leaders',
  'coordinated-leadership-renew-deadline':
    'duration =10s How long the server that elects leaders goes on without renewing its lease',
  'coordinated-leadership-retry-period':
    'duration =2s How long servers wait between attempts to get or renew that lease',
  'enable-aggregator-routing':
    'bool idle: aggregated servers and webhooks are always called at the endpoints of their Service',
  'enable-logs-handler': 'bool unsupported: logs are not served',
  'endpoint-reconciler-type':
    'string =lease How servers find each other for the endpoints of the Service "kubernetes" (lease, master-count, none)',
  'insecure-port': 'int unsupported: there is no port without TLS',
  'kubelet-read-only-port': 'uint =10255 idle: the read-only port of kubelets is never used',
  'kubernetes-service-node-port': 'int unsupported: the Service "kubernetes" is of type ClusterIP',
  'max-connection-bytes-per-sec': 'int64 unsupported: connections are not throttled',
  'peer-advertise-ip': 'string unsupported: requests are not passed on between servers',
  'peer-advertise-port': 'string unsupported: requests are not passed on between servers',
  'peer-ca-file': 'string unsupported: requests are not passed on between servers',
  'service-account-signing-endpoint': 'string unsupported: use --service-account-signing-key-file',
} as const

export interface MiscValues extends RowValues<typeof MISC, ServerKinds> {}

export const MISC_FLAGS: FlagsOf<MiscValues> & FlagGroup = flagRows(MISC, KINDS, {
  'apiserver-count': { deprecated: 'apiserver-count is deprecated and will be removed in a future version.' },
  'enable-logs-handler': { deprecated: 'Log handler functionality is deprecated' },
  'insecure-port': { hidden: true },
  'kubelet-port': { deprecated: 'kubelet-port is deprecated and will be removed.' },
  'kubelet-read-only-port': { deprecated: 'kubelet-read-only-port is deprecated and will be removed.' },
})
