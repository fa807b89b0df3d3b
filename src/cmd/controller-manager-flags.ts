/** Every flag of kube-controller-manager, in upstream's groups and order. */
import {
  DELEGATED_AUTHENTICATION_FLAGS,
  DELEGATED_AUTHORIZATION_FLAGS,
  type DelegationValues,
} from '#control-plane/flags/delegation-flags.ts'
import { FEATURE_FLAGS, GENERIC_FLAGS, SERVER_LOG_FLAGS } from '#control-plane/flags/general-flags.ts'
import { leaderElectionFlags, type LeaderElectionValues } from '#control-plane/flags/leader-election-flags.ts'
import { METRICS_FLAGS, type MetricsValues } from '#control-plane/flags/metrics-flags.ts'
import { SERVING_FLAGS, type ServingValues } from '#control-plane/flags/serving-flags.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { CONTROLLER_NAMES } from '#controllers/selection.ts'
import {
  CONTROLLER_FLAGS,
  type ControllerSettings,
  GENERIC_CONTROLLER_FLAGS,
  NOT_BUILT,
} from '#controllers/settings.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, float32, int32, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

interface GenericValues extends LeaderElectionValues {
  readonly 'controller-shutdown-timeout': number
  readonly controllers: readonly string[]
  readonly 'kube-api-burst': number
  readonly 'kube-api-qps': number
  readonly 'use-service-account-credentials': boolean
}

interface OwnValues {
  readonly 'feature-gates': FeatureGates
  readonly profiling: boolean
  readonly kubeconfig: string
  readonly master: string
}

/** What the program is told, by the names of the flags. */
export interface ManagerSettings
  extends ControllerSettings, GenericValues, OwnValues, ServingValues, DelegationValues, MetricsValues {}

const CLOUD = 'clouds have a controller manager of their own'

const MANAGER_GENERIC_FLAGS: FlagsOf<GenericValues> & FlagGroup = {
  ...GENERIC_CONTROLLER_FLAGS,
  ...leaderElectionFlags('kube-controller-manager'),
  'cloud-config': unsupported(string, '', CLOUD),
  'cloud-provider': idle(string, '', CLOUD),
  'configure-cloud-routes': idle(bool, true, CLOUD),
  'controller-shutdown-timeout': flag(duration, 10_000, 'How long controllers may take to end'),
  'controller-start-interval': idle(duration, 0, 'controllers start when their cache is whole'),
  controllers: flag(
    strings,
    ['*'],
    `Which controllers run: "*" is all that are on by default, "-foo" all but foo.\nControllers: ${CONTROLLER_NAMES.join(', ')}\nOnly by name: bootstrap-signer-controller, selinux-warning-controller, token-cleaner-controller`,
  ),
  'emulated-version': GENERIC_FLAGS['emulated-version'],
  'external-cloud-volume-plugin': unsupported(string, '', CLOUD),
  'feature-gates': GENERIC_FLAGS['feature-gates'],
  'kube-api-burst': flag(int32, 30, 'How many requests a controller may send at once'),
  'kube-api-content-type': idle(string, 'application/vnd.kubernetes.protobuf', 'requests are sent as JSON'),
  'kube-api-qps': flag(float32, 20, 'How many requests a second a controller sends in the long run'),
  'min-compatibility-version': unsupported(strings, [], 'there is no emulation of other versions'),
  'min-resync-period': idle(duration, 12 * 3_600_000, 'watches miss nothing'),
  'route-reconciliation-period': idle(duration, 10_000, CLOUD),
  'use-service-account-credentials': flag(bool, false, 'Whether each controller acts as a ServiceAccount of its own'),
}

export const MANAGER_FLAGS: FlagGroups = {
  debugging: {
    'contention-profiling': unsupported(bool, false, 'there are no locks to profile'),
    profiling: FEATURE_FLAGS.profiling,
  },
  'leader-migration': {
    'enable-leader-migration': unsupported(bool, false, CLOUD),
    'leader-migration-config': unsupported(string, '', CLOUD),
  },
  generic: MANAGER_GENERIC_FLAGS,
  'service-lb-controller': { 'concurrent-service-syncs': idle(int32, 1, CLOUD) },
  'secure serving': {
    ...SERVING_FLAGS,
    'cert-dir': flag(
      string,
      '',
      'Directory of kube-controller-manager.crt and .key, made when they are not there; none: kept in memory',
    ),
    'secure-port': { ...SERVING_FLAGS['secure-port'], initial: 10_257, usage: 'Port for HTTPS; 0: none' },
  },
  authentication: DELEGATED_AUTHENTICATION_FLAGS,
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  ...Object.fromEntries(Object.entries(CONTROLLER_FLAGS).map(([name, flags]) => [name, idleUnlessBuilt(name, flags)])),
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
  misc: {
    kubeconfig: flag(string, '', 'Kubeconfig that says where the API server is and who we are'),
    master: flag(string, '', 'URL of the API server, instead of that in the kubeconfig'),
  },
}

/** Flags say by themselves that they do nothing, until the controller that reads them is in the list. */
function idleUnlessBuilt(controller: string, flags: FlagGroup): FlagGroup {
  if (CONTROLLERS.some(({ name }) => name === controller)) return flags
  const silenced = Object.entries(flags).map(([name, { kind, initial }]) => [name, idle(kind, initial, NOT_BUILT)])
  return Object.fromEntries(silenced) as FlagGroup
}
