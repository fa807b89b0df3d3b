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
    'ip Address that the cluster uses to reach this server. Default: --bind-address, or the address of the default interface.',
  'cors-allowed-origins':
    'strings Regular expressions of the origins whose web pages may call this server. Each must anchor the start and the end of the host: //example\\.com(:|$)',
  'emulated-version': 'strings Version whose behavior the server emulates. Only "kube=1.36" is supported.',
  'external-hostname': 'string Host name of this server in the URLs of its documents.',
  'feature-gates': 'gates Feature gates',
  'max-mutating-requests-inflight':
    'int =200 Adds up with --max-requests-inflight to the number of seats. Without priority and fairness: maximum number of concurrent writes (0: no limit).',
  'max-requests-inflight':
    'int =400 Adds up with --max-mutating-requests-inflight to the number of seats. Without priority and fairness: maximum number of concurrent reads (0: no limit).',
  'min-request-timeout':
    'int =1800 Minimum timeout in seconds of a watch that sets none. The server picks a random value up to twice as long.',
  'request-timeout': 'duration =1m0s Maximum duration of a request. Watches are exempt.',
  'shutdown-delay-duration': 'duration Time to keep serving before the server stops, while /readyz fails.',
  'strict-transport-security-directives':
    'strings Directives of the header Strict-Transport-Security. If empty, the header is not sent.',
  'emulation-forward-compatible': 'bool unsupported: the server does not emulate other versions',
  'goaway-chance': 'float unsupported: the server does not close HTTP/2 connections at random',
  'livez-grace-period': 'duration idle: the server listens only after its start is complete',
  'min-compatibility-version': 'strings unsupported: the server does not emulate other versions',
  'runtime-config-emulation-forward-compatible': 'bool unsupported: the server does not emulate other versions',
  'shutdown-send-retry-after': 'bool unsupported: a stopping server accepts no new connections',
  'shutdown-watch-termination-grace-period': 'duration unsupported: watches end when the server stops',
  'storage-initialization-timeout': 'duration =1m0s idle: the server listens only after its storage is ready',
} as const

export interface GenericValues extends RowValues<typeof GENERIC, ServerKinds> {}

export const GENERIC_FLAGS: FlagsOf<GenericValues> & FlagGroup = flagRows(GENERIC, KINDS, {
  'feature-gates': { usage: describeGates(FEATURE_GATES) },
})

const FEATURES = {
  'contention-profiling': 'bool unsupported: the process has no locks to profile',
  'debug-socket-path': 'string unsupported: profile with "node --inspect"',
  'enable-priority-and-fairness':
    'bool =true If true, flow schemas and priority levels queue requests. Otherwise the --max-…-inflight flags limit them.',
  profiling:
    'bool =true If true, serve /debug. /debug/flags/v sets the log verbosity. Take profiles with "node --inspect".',
} as const

export interface FeatureValues extends RowValues<typeof FEATURES> {}

export const FEATURE_FLAGS: FlagsOf<FeatureValues> & FlagGroup = flagRows(FEATURES)

export const SERVER_LOG_FLAGS: FlagGroup = {
  ...LOG_FLAGS,
  ...flagRows(
    {
      'log-json-info-buffer-size': 'quantity =0 idle: log lines are written without a buffer',
      'log-text-info-buffer-size': 'quantity =0 idle: log lines are written without a buffer',
    },
    KINDS,
  ),
}

const TRACES = {
  'tracing-config-file': 'string File with the endpoint and the sampling rate of request traces.',
} as const

export interface TraceValues extends RowValues<typeof TRACES> {}

export const TRACE_FLAGS: FlagsOf<TraceValues> & FlagGroup = flagRows(TRACES)

export const EGRESS_FLAGS: FlagGroup = flagRows({
  'egress-selector-config-file': 'string unsupported: the server opens all connections directly',
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
  'allow-privileged': 'bool If true, allow privileged containers.',
  'event-ttl': 'duration =1h0m0s Time to keep events.',
  'kubelet-certificate-authority':
    'string PEM file with the certificate authority of kubelets. If empty, their certificates are not verified.',
  'kubelet-client-certificate': 'string PEM file with the client certificate for kubelets.',
  'kubelet-client-key': 'string PEM file with the key of --kubelet-client-certificate.',
  'kubelet-port': 'uint =10250 Port of kubelets whose Node does not specify one.',
  'kubelet-preferred-address-types':
    'strings =Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP Preferred types of node addresses, most preferred first.',
  'kubelet-timeout': 'duration =5s Timeout for connecting to a kubelet.',
  'proxy-client-cert-file': 'string PEM file with the client certificate for aggregated API servers.',
  'proxy-client-key-file': 'string PEM file with the key of --proxy-client-cert-file.',
  'service-account-signing-key-file': 'string PEM file with the private key that signs ServiceAccount tokens.',
  'service-cluster-ip-range':
    'string CIDR block of Service addresses, or one of each IP family. The first is the default.',
  'service-node-port-range': 'portRange =30000-32767 Ports for Services of type NodePort, both ends included.',
  'aggregator-reject-forwarding-redirect':
    'bool =true unsupported: the server never passes on redirects of aggregated API servers',
  'apiserver-count': 'int =1 Number of API servers in the cluster, for --endpoint-reconciler-type=master-count.',
  'coordinated-leadership-lease-duration':
    'duration =15s Time that other servers wait for the leader to renew the lease of leader election.',
  'coordinated-leadership-renew-deadline':
    'duration =10s Time after which a leader that cannot renew the lease of leader election gives up.',
  'coordinated-leadership-retry-period':
    'duration =2s Time between attempts to acquire or renew the lease of leader election.',
  'enable-aggregator-routing':
    'bool idle: the server always calls aggregated API servers and webhooks at the endpoints of their Service',
  'enable-logs-handler': 'bool unsupported: the server does not serve log files',
  'endpoint-reconciler-type':
    'string =lease How servers maintain the endpoints of the Service "kubernetes": lease, master-count or none.',
  'insecure-port': 'int unsupported: all ports use TLS',
  'kubelet-read-only-port': 'uint =10255 idle: the server never uses the read-only port of kubelets',
  'kubernetes-service-node-port': 'int unsupported: the Service "kubernetes" is of type ClusterIP',
  'max-connection-bytes-per-sec': 'int64 unsupported: the server does not limit the rate of connections',
  'peer-advertise-ip': 'string unsupported: servers do not pass requests on to each other',
  'peer-advertise-port': 'string unsupported: servers do not pass requests on to each other',
  'peer-ca-file': 'string unsupported: servers do not pass requests on to each other',
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
