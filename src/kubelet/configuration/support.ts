/** How far each field of a KubeletConfiguration goes here. One that changes nothing is never taken in silence. Pure. */
import type { SupportFindings } from '#lib/flags/flag-support.ts'
import { goJson } from '#lib/go-text.ts'

import { CPU_OPTIONS } from '../topology/topology-settings.ts'
import type { KubeletConfiguration } from './configuration.ts'
import { withDefaults } from './defaults.ts'

const NO_SHARES = 'memory is not kept for classes of pods'
const NO_OPTION = 'processors are packed, by cores'
const NO_CGROUPS = 'no cgroups are made for programs that are no pods'
const NOT_EVICTED = 'memory is looked at every ten seconds'

/** Only the default is accepted: who asks for more must not believe to have got it. */
export const UNSUPPORTED: Readonly<Partial<Record<keyof KubeletConfiguration, string>>> = {
  cgroupsPerQOS: 'pods always have cgroups of their own',
  enableControllerAttachDetach: 'volumes are attached by kube-controller-manager',
  enableServer: 'the port is always served',
  enableSystemLogQuery: 'logs of the machine are served as files, by /logs/',
  kubeletCgroups: NO_CGROUPS,
  memoryReservationPolicy: NO_SHARES,
  memorySwap: 'containers do not swap',
  qosReserved: NO_SHARES,
  systemCgroups: NO_CGROUPS,
  tlsCurvePreferences: 'curves are those of OpenSSL',
  topologyManagerPolicyOptions: 'distances between nodes of memory do not count',
  tracing: 'spans are not sent',
}

/** Any value will do, for nothing hangs on it. */
export const IDLE: Readonly<Partial<Record<keyof KubeletConfiguration, string>>> = {
  configMapAndSecretChangeDetectionStrategy: 'what pods refer to is watched',
  contentType: 'requests are sent as JSON',
  enableContentionProfiling: 'there are no locks to profile',
  enableDebugFlagsHandler: 'flags are not changed over HTTP',
  enableProfilingHandler: 'profile with "node --inspect"',
  hairpinMode: 'networks of pods are made by the runtime',
  iptablesDropBit: 'there are no rules that would use it',
  iptablesMasqueradeBit: 'there are no rules that would use it',
  kernelMemcgNotification: NOT_EVICTED,
  makeIPTablesUtilChains: 'there are no rules to make',
  maxOpenFiles: 'the limit of the process stays as it was',
  memoryThrottlingFactor: 'memory is not throttled',
  podCIDR: 'networks of pods are made by the runtime',
  showHiddenMetricsForVersion: 'no metrics are hidden',
  streamingConnectionIdleTimeout: 'connections are ended by either end',
  syncFrequency: 'pods are looked at when something has happened',
  volumePluginDir: 'there are no plugins of that kind',
}

/** What a configuration asks for that is not there. */
export function unsupportedIn(config: KubeletConfiguration): SupportFindings {
  const plain = withDefaults({})
  const asked = (fields: typeof IDLE): (readonly [field: string, value: string, why: string])[] =>
    Object.entries(fields).flatMap(([field, why]) => {
      const [wanted, otherwise] = [config, plain].map((of) => goJson(of[field as keyof KubeletConfiguration] ?? null))
      return wanted === undefined || wanted === otherwise ? [] : [[field, wanted, why]]
    })
  const errors = asked(UNSUPPORTED).map(([field, value, why]) => `${field} ${value} is not supported: ${why}`)
  const options = Object.keys(config.cpuManagerPolicyOptions ?? {}).filter((name) => !CPU_OPTIONS.has(name))
  errors.push(...options.map((name) => `cpuManagerPolicyOptions "${name}" is not supported: ${NO_OPTION}`))
  return {
    errors,
    notes: asked(IDLE).map(([field, , why]) => `${field} has no effect: ${why}`),
  }
}
