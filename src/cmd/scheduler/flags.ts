/** Every flag of kube-scheduler, in upstream's groups and order. */
import type { ComponentSettings } from '#component/component.ts'
import { DELEGATED_AUTHENTICATION_FLAGS, DELEGATED_AUTHORIZATION_FLAGS } from '#component/flags/delegation-flags.ts'
import { FEATURE_FLAGS, type FeatureValues, GENERIC_FLAGS, SERVER_LOG_FLAGS } from '#component/flags/general-flags.ts'
import { leaderElectionFlags } from '#component/flags/leader-election-flags.ts'
import { METRICS_FLAGS } from '#component/flags/metrics-flags.ts'
import { componentServingFlags } from '#component/flags/serving-flags.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'

const MISC = {
  config: 'string File with a KubeSchedulerConfiguration',
  master: 'string URL of the API server; overrides the kubeconfig',
  'write-config-to': 'string Write the configuration with its defaults to this file and exit',
} as const

const DEPRECATED = {
  'contention-profiling': 'bool =true idle: contention profiling does not exist in Node',
  'kube-api-burst': 'int32 =100 Burst of requests; ignored with --config',
  'kube-api-content-type': 'string =application/vnd.kubernetes.protobuf idle: requests are sent as JSON',
  'kube-api-qps': 'float32 =50 Maximum sustained requests per second; ignored with --config',
  kubeconfig: 'string Kubeconfig with the API server and the credentials; ignored with --config',
  'pod-max-in-unschedulable-pods-duration':
    'duration =5m0s Maximum time that an unschedulable pod waits before it is retried',
} as const

/** The settings of the program, by flag name. */
export interface SchedulerSettings
  extends ComponentSettings, RowValues<typeof MISC>, RowValues<typeof DEPRECATED>, Pick<FeatureValues, 'profiling'> {}

const LOOKUP_FAILURE = DELEGATED_AUTHENTICATION_FLAGS['authentication-tolerate-lookup-failure']

const GATES: FlagGroup = flagRows({
  'min-compatibility-version': 'strings unsupported: other versions cannot be emulated',
})

export const SCHEDULER_FLAGS: FlagGroups = {
  misc: flagRows(MISC),
  'secure serving': componentServingFlags('kube-scheduler', 10_259),
  authentication: {
    ...DELEGATED_AUTHENTICATION_FLAGS,
    'authentication-tolerate-lookup-failure': { ...LOOKUP_FAILURE, initial: true },
  },
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  deprecated: { ...flagRows(DEPRECATED), profiling: FEATURE_FLAGS.profiling },
  'leader election': leaderElectionFlags('kube-scheduler'),
  'feature gate': {
    'emulated-version': GENERIC_FLAGS['emulated-version'],
    'feature-gates': GENERIC_FLAGS['feature-gates'],
    ...GATES,
  },
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
}
