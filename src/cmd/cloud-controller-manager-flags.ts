/** Every flag of cloud-controller-manager, in upstream's groups. */
import { LOOP_NAMES } from '#cloud/loops.ts'
import {
  DELEGATED_AUTHENTICATION_FLAGS,
  DELEGATED_AUTHORIZATION_FLAGS,
  type DelegationValues,
} from '#control-plane/flags/delegation-flags.ts'
import { FEATURE_FLAGS, GENERIC_FLAGS, SERVER_LOG_FLAGS } from '#control-plane/flags/general-flags.ts'
import { leaderElectionFlags, type LeaderElectionValues } from '#control-plane/flags/leader-election-flags.ts'
import { METRICS_FLAGS, type MetricsValues } from '#control-plane/flags/metrics-flags.ts'
import { SERVING_FLAGS, type ServingValues } from '#control-plane/flags/serving-flags.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import { type FlagGroup, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, float32, int32, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

/** By the names of the flags; durations in milliseconds. */
export interface CloudSettings extends LeaderElectionValues, ServingValues, DelegationValues, MetricsValues {
  readonly 'allocate-node-cidrs': boolean
  readonly 'cloud-config': string
  readonly 'cloud-provider': string
  readonly 'cluster-cidr': string
  readonly 'cluster-name': string
  readonly 'concurrent-node-syncs': number
  readonly 'concurrent-service-syncs': number
  readonly 'configure-cloud-routes': boolean
  readonly controllers: readonly string[]
  readonly 'feature-gates': FeatureGates
  readonly 'kube-api-burst': number
  readonly 'kube-api-qps': number
  readonly kubeconfig: string
  readonly master: string
  readonly 'node-monitor-period': number
  readonly 'node-status-update-frequency': number
  readonly profiling: boolean
  readonly 'route-reconciliation-period': number
  readonly 'use-service-account-credentials': boolean
}

const MIGRATION = 'the loops of clouds were never in another manager here'
const IPAM = 'nodes get addresses for their pods from kube-controller-manager'
const WEBHOOKS = 'there are no webhooks of clouds'

/** Of a port that is never opened: what serving has, under other names, each refused unless it keeps its default. */
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
  debugging: {
    'contention-profiling': unsupported(bool, false, 'there are no locks to profile'),
    profiling: FEATURE_FLAGS.profiling,
  },
  'leader-migration': {
    'enable-leader-migration': unsupported(bool, false, MIGRATION),
    'leader-migration-config': unsupported(string, '', MIGRATION),
  },
  generic: {
    ...leaderElectionFlags('cloud-controller-manager'),
    'allocate-node-cidrs': flag(bool, false, 'Whether nodes get addresses for their pods, and routes lead to them'),
    'cidr-allocator-type': idle(string, 'RangeAllocator', IPAM),
    'cloud-config': flag(string, '', 'File that the provider is given; none: no file'),
    'cloud-provider': flag(
      string,
      '',
      'The provider: "local" (load balancers and routes of the nodes themselves), "none", or a module that exports createProvider: a path, or the name of a package',
    ),
    'cluster-cidr': flag(string, '', 'Addresses of pods: routes to others are left alone'),
    'cluster-name': flag(string, 'kubernetes', 'What the provider knows the cluster by'),
    'configure-cloud-routes': flag(bool, true, 'Whether the provider is to know where pods are'),
    'controller-start-interval': idle(duration, 0, 'controllers start when their cache is whole'),
    controllers: flag(
      strings,
      ['*'],
      `Which controllers run: "*" is all, "-foo" all but foo.\nControllers: ${Object.keys(LOOP_NAMES).join(', ')}`,
    ),
    'external-cloud-volume-plugin': unsupported(string, '', 'volumes are for drivers'),
    'feature-gates': GENERIC_FLAGS['feature-gates'],
    'kube-api-burst': flag(int32, 30, 'How many requests a controller may send at once'),
    'kube-api-content-type': idle(string, 'application/vnd.kubernetes.protobuf', 'requests are sent as JSON'),
    'kube-api-qps': flag(float32, 20, 'How many requests a second a controller sends in the long run'),
    'min-resync-period': idle(duration, 12 * 3_600_000, 'watches miss nothing'),
    'node-monitor-period': flag(duration, 5000, 'How often it is looked whether machines of nodes are there'),
    'route-reconciliation-period': flag(duration, 10_000, 'How often routes are compared'),
    'use-service-account-credentials': flag(bool, false, 'Whether each controller acts as a ServiceAccount of its own'),
  },
  'cloud-node-controller': {
    'concurrent-node-status-updates': idle(int32, 0, 'addresses are asked for one node after the other'),
    'concurrent-node-syncs': flag(int32, 1, 'How many nodes are looked after at once'),
  },
  'service-lb-controller': {
    'concurrent-service-syncs': flag(int32, 1, 'How many Services are looked after at once'),
  },
  webhook: { webhooks: unsupported(strings, [], WEBHOOKS) },
  'webhook serving': webhookServing(),
  'secure serving': {
    ...SERVING_FLAGS,
    'cert-dir': flag(
      string,
      '',
      'Directory of cloud-controller-manager.crt and .key, made when they are not there; none: kept in memory',
    ),
    'secure-port': { ...SERVING_FLAGS['secure-port'], initial: 10_258, usage: 'Port for HTTPS; 0: none' },
  },
  authentication: DELEGATED_AUTHENTICATION_FLAGS,
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  'node-ipam-controller': {
    'node-cidr-mask-size': idle(int32, 0, IPAM),
    'node-cidr-mask-size-ipv4': idle(int32, 0, IPAM),
    'node-cidr-mask-size-ipv6': idle(int32, 0, IPAM),
    'service-cluster-ip-range': idle(string, '', IPAM),
  },
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
  misc: {
    kubeconfig: flag(string, '', 'Kubeconfig that says where the API server is and who we are'),
    master: flag(string, '', 'URL of the API server, instead of that in the kubeconfig'),
    'node-status-update-frequency': flag(duration, 300_000, 'How often addresses of nodes are asked for'),
  },
}
