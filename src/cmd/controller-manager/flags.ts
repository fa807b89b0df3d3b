/** Every flag of kube-controller-manager, in upstream's groups and order. */
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
import { componentServingFlags, type ServingValues } from '#component/flags/serving-flags.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import {
  CONTROLLER_FLAGS,
  type ControllerSettings,
  GENERIC_CONTROLLER_FLAGS,
  RUNS_IN_CLOUD_MANAGER,
} from '#controllers/settings.ts'
import { CONTROLLER_NAMES } from '#controllers/workloads/selection.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import { type FlagGroup, idle } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'

const DEBUGGING: FlagGroup = flagRows({
  'contention-profiling': 'bool unsupported: contention profiling does not exist in Node',
})

const MIGRATION: FlagGroup = flagRows({
  'enable-leader-migration': 'bool unsupported: cloud-controller-manager runs the cloud controllers',
  'leader-migration-config': 'string unsupported: cloud-controller-manager runs the cloud controllers',
})

const GENERIC = {
  'cloud-config': 'string unsupported: cloud-controller-manager runs the cloud controllers',
  'cloud-provider': 'string idle: cloud-controller-manager runs the cloud controllers',
  'configure-cloud-routes': 'bool =true idle: cloud-controller-manager runs the cloud controllers',
  'controller-shutdown-timeout': 'duration =10s Time that controllers get to shut down',
  'controller-start-interval': 'duration idle: controllers start after their caches have synced',
  controllers: 'strings =* Controllers to run',
  'external-cloud-volume-plugin': 'string unsupported: cloud-controller-manager runs the cloud controllers',
  'kube-api-burst': 'int32 =30 Burst of requests of a controller',
  'kube-api-content-type': 'string =application/vnd.kubernetes.protobuf idle: requests are sent as JSON',
  'kube-api-qps': 'float32 =20 Maximum sustained requests per second of a controller',
  'min-compatibility-version': 'strings unsupported: other versions cannot be emulated',
  'min-resync-period': 'duration =12h0m0s idle: watches are reliable and need no resync',
  'route-reconciliation-period': 'duration =10s idle: cloud-controller-manager runs the cloud controllers',
  'use-service-account-credentials': 'bool Use a separate ServiceAccount for each controller',
} as const

const MISC = {
  kubeconfig: 'string Kubeconfig with the API server and the credentials',
  master: 'string URL of the API server; overrides the kubeconfig',
} as const

/** The settings of the program, by flag name. */
export interface ManagerSettings
  extends
    ControllerSettings,
    LeaderElectionValues,
    ServingValues,
    DelegationValues,
    MetricsValues,
    RowValues<typeof GENERIC>,
    RowValues<typeof MISC>,
    Pick<GenericValues, 'feature-gates'>,
    Pick<FeatureValues, 'profiling'> {}

const MANAGER_GENERIC_FLAGS: FlagGroup = {
  ...GENERIC_CONTROLLER_FLAGS,
  ...leaderElectionFlags('kube-controller-manager'),
  ...flagRows(
    GENERIC,
    {},
    {
      controllers: {
        usage: `Controllers to run: "*" enables all that are on by default, "-foo" disables foo.\nControllers: ${CONTROLLER_NAMES.join(', ')}\nOff by default: bootstrap-signer-controller, selinux-warning-controller, token-cleaner-controller`,
      },
    },
  ),
  'emulated-version': GENERIC_FLAGS['emulated-version'],
  'feature-gates': GENERIC_FLAGS['feature-gates'],
}

export const MANAGER_FLAGS: FlagGroups = {
  debugging: { ...DEBUGGING, profiling: FEATURE_FLAGS.profiling },
  'leader-migration': MIGRATION,
  generic: MANAGER_GENERIC_FLAGS,
  'service-lb-controller': flagRows({
    'concurrent-service-syncs': 'int32 =1 idle: cloud-controller-manager runs the cloud controllers',
  }),
  'secure serving': componentServingFlags('kube-controller-manager', 10_257),
  authentication: DELEGATED_AUTHENTICATION_FLAGS,
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  ...Object.fromEntries(
    Object.entries(CONTROLLER_FLAGS).map(([name, flags]) => [name, idleWithoutController(name, flags)]),
  ),
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
  misc: flagRows(MISC),
}

/** A flag without a controller here reports that it has no effect. */
function idleWithoutController(controller: string, flags: FlagGroup): FlagGroup {
  if (CONTROLLERS.some(({ name }) => name === controller)) return flags
  const silenced = Object.entries(flags).map(([name, { kind, initial }]) => [
    name,
    idle(kind, initial, RUNS_IN_CLOUD_MANAGER),
  ])
  return Object.fromEntries(silenced) as FlagGroup
}
