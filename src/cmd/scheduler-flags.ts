/** Every flag of kube-scheduler, in upstream's groups and order. */
import { DELEGATED_AUTHENTICATION_FLAGS, DELEGATED_AUTHORIZATION_FLAGS } from '#control-plane/flags/delegation-flags.ts'
import { FEATURE_FLAGS, GENERIC_FLAGS, SERVER_LOG_FLAGS } from '#control-plane/flags/general-flags.ts'
import { leaderElectionFlags } from '#control-plane/flags/leader-election-flags.ts'
import { METRICS_FLAGS } from '#control-plane/flags/metrics-flags.ts'
import { SERVING_FLAGS } from '#control-plane/flags/serving-flags.ts'
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, float32, int32, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import type { ComponentSettings } from './component.ts'

interface MiscValues {
  readonly config: string
  readonly master: string
  readonly 'write-config-to': string
}

interface DeprecatedValues {
  readonly 'kube-api-burst': number
  readonly 'kube-api-qps': number
  readonly kubeconfig: string
  readonly 'pod-max-in-unschedulable-pods-duration': number
  readonly profiling: boolean
}

/** What the program is told, by the names of the flags. */
export interface SchedulerSettings extends ComponentSettings, MiscValues, DeprecatedValues {}

const MISC_FLAGS: FlagsOf<MiscValues> & FlagGroup = {
  config: flag(string, '', 'File with a KubeSchedulerConfiguration'),
  master: flag(string, '', 'URL of the API server, instead of that in the kubeconfig'),
  'write-config-to': flag(string, '', 'File that gets the configuration with its defaults; then the program ends'),
}

const DEPRECATED_FLAGS: FlagsOf<DeprecatedValues> & FlagGroup = {
  'contention-profiling': idle(bool, true, 'there are no locks to profile'),
  'kube-api-burst': flag(int32, 100, 'How many requests may be sent at once; --config counts instead'),
  'kube-api-content-type': idle(string, 'application/vnd.kubernetes.protobuf', 'requests are sent as JSON'),
  'kube-api-qps': flag(float32, 50, 'How many requests a second are sent in the long run; --config counts instead'),
  kubeconfig: flag(string, '', 'Kubeconfig that says where the API server is and who we are; --config counts instead'),
  'pod-max-in-unschedulable-pods-duration': flag(
    duration,
    300_000,
    'How long a pod that fits nowhere waits at most before it is tried again',
  ),
  profiling: FEATURE_FLAGS.profiling,
}

export const SCHEDULER_FLAGS: FlagGroups = {
  misc: MISC_FLAGS,
  'secure serving': {
    ...SERVING_FLAGS,
    'cert-dir': flag(
      string,
      '',
      'Directory of kube-scheduler.crt and .key, made when they are not there; none: kept in memory',
    ),
    'secure-port': { ...SERVING_FLAGS['secure-port'], initial: 10_259, usage: 'Port for HTTPS; 0: none' },
  },
  authentication: {
    ...DELEGATED_AUTHENTICATION_FLAGS,
    'authentication-tolerate-lookup-failure': {
      ...DELEGATED_AUTHENTICATION_FLAGS['authentication-tolerate-lookup-failure'],
      initial: true,
    },
  },
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  deprecated: DEPRECATED_FLAGS,
  'leader election': leaderElectionFlags('kube-scheduler'),
  'feature gate': {
    'emulated-version': GENERIC_FLAGS['emulated-version'],
    'feature-gates': GENERIC_FLAGS['feature-gates'],
    'min-compatibility-version': unsupported(strings, [], 'there is no emulation of other versions'),
  },
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
}
