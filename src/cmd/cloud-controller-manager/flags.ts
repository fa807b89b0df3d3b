/** Every flag of cloud-controller-manager, in upstream's groups. */
import { LOOP_NAMES } from '#cloud/loops.ts'
import {
  DELEGATED_AUTHENTICATION_FLAGS,
  DELEGATED_AUTHORIZATION_FLAGS,
  type DelegationValues,
} from '#component/flags/delegation-flags.ts'
import {
  FEATURE_FLAGS,
  type FeatureValues,
  GENERIC_FLAGS,
  type GenericValues,
  SERVER_LOG_FLAGS,
} from '#component/flags/general-flags.ts'
import { leaderElectionFlags, type LeaderElectionValues } from '#component/flags/leader-election-flags.ts'
import { METRICS_FLAGS, type MetricsValues } from '#component/flags/metrics-flags.ts'
import { componentServingFlags, SERVING_FLAGS, type ServingValues } from '#component/flags/serving-flags.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import { type FlagGroup, idle, unsupported } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { strings } from '#lib/flags/list-kinds.ts'

const MIGRATION = {
  'enable-leader-migration': 'bool unsupported: cloud controllers never ran in another manager here',
  'leader-migration-config': 'string unsupported: cloud controllers never ran in another manager here',
} as const

const GENERIC = {
  'allocate-node-cidrs': 'bool Allocate pod CIDRs of nodes and create routes for them',
  'cidr-allocator-type': 'string =RangeAllocator idle: kube-controller-manager allocates pod CIDRs of nodes',
  'cloud-config': 'string Configuration file of the provider; empty for none',
  'cloud-provider':
    'string The provider: "local" (load balancers and routes on the nodes themselves), "none", or a module that exports createProvider: a path or a package name',
  'cluster-cidr': 'string CIDR of pods; other routes are left alone',
  'cluster-name': 'string =kubernetes Name of the cluster for the provider',
  'configure-cloud-routes': 'bool =true Create routes for pod CIDRs at the provider',
  'controller-start-interval': 'duration idle: controllers start after their caches have synced',
  controllers: 'strings =* Controllers to run',
  'external-cloud-volume-plugin': 'string unsupported: volumes are the task of CSI drivers',
  'kube-api-burst': 'int32 =30 Burst of requests of a controller',
  'kube-api-content-type': 'string =application/vnd.kubernetes.protobuf idle: requests are sent as JSON',
  'kube-api-qps': 'float32 =20 Maximum sustained requests per second of a controller',
  'min-resync-period': 'duration =12h0m0s idle: watches are reliable and need no resync',
  'node-monitor-period': 'duration =5s Interval for checking the machines of nodes',
  'route-reconciliation-period': 'duration =10s Interval for reconciling routes',
  'use-service-account-credentials': 'bool Use a separate ServiceAccount for each controller',
} as const

const NODES = {
  'concurrent-node-status-updates': 'int32 idle: nodes are updated one after the other',
  'concurrent-node-syncs': 'int32 =1 Number of nodes to sync concurrently',
} as const

const SERVICES = {
  'concurrent-service-syncs': 'int32 =1 Number of Services to sync concurrently',
} as const

const IPAM = {
  'node-cidr-mask-size': 'int32 idle: kube-controller-manager allocates pod CIDRs of nodes',
  'node-cidr-mask-size-ipv4': 'int32 idle: kube-controller-manager allocates pod CIDRs of nodes',
  'node-cidr-mask-size-ipv6': 'int32 idle: kube-controller-manager allocates pod CIDRs of nodes',
  'service-cluster-ip-range': 'string idle: kube-controller-manager allocates pod CIDRs of nodes',
} as const

const MISC = {
  kubeconfig: 'string Kubeconfig with the API server and the credentials',
  master: 'string URL of the API server; overrides the kubeconfig',
  'node-status-update-frequency': 'duration =5m0s Interval for updating node addresses',
} as const

/** The settings by flag name; durations in milliseconds. */
export interface CloudSettings
  extends
    LeaderElectionValues,
    ServingValues,
    DelegationValues,
    MetricsValues,
    RowValues<typeof GENERIC>,
    RowValues<typeof NODES>,
    RowValues<typeof SERVICES>,
    RowValues<typeof MISC>,
    Pick<GenericValues, 'feature-gates'>,
    Pick<FeatureValues, 'profiling'> {}

const WEBHOOKS = 'there are no cloud webhooks'

const DEBUGGING: FlagGroup = flagRows({
  'contention-profiling': 'bool unsupported: contention profiling does not exist in Node',
})

/** Flags of the webhook port, which never opens: each is rejected unless it has its default. */
function webhookServing(): FlagGroup {
  const names = 'bind-address cert-dir disable-http2-serving secure-port tls-cert-file tls-cipher-suites'
  const more = 'tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key'
  const port = 10_260
  return Object.fromEntries(
    `${names} ${more}`.split(' ').flatMap((name) => {
      const like = SERVING_FLAGS[name]
      const own: Readonly<Record<string, unknown>> = { 'secure-port': port, 'cert-dir': '' }
      const initial = own[name] ?? like?.initial
      return like === undefined ? [] : [[`webhook-${name}`, idle(like.kind, initial, WEBHOOKS)]]
    }),
  )
}

export const CLOUD_FLAGS: FlagGroups = {
  debugging: { ...DEBUGGING, profiling: FEATURE_FLAGS.profiling },
  'leader-migration': flagRows(MIGRATION),
  generic: {
    ...leaderElectionFlags('cloud-controller-manager'),
    ...flagRows(
      GENERIC,
      {},
      {
        controllers: {
          usage: `Controllers to run: "*" enables all, "-foo" disables foo.\nControllers: ${Object.keys(LOOP_NAMES).join(', ')}`,
        },
      },
    ),
    'feature-gates': GENERIC_FLAGS['feature-gates'],
  },
  'cloud-node-controller': flagRows(NODES),
  'service-lb-controller': flagRows(SERVICES),
  webhook: { webhooks: unsupported(strings, [], WEBHOOKS) },
  'webhook serving': webhookServing(),
  'secure serving': componentServingFlags('cloud-controller-manager', 10_258),
  authentication: DELEGATED_AUTHENTICATION_FLAGS,
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  'node-ipam-controller': flagRows(IPAM),
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
  misc: flagRows(MISC),
}
