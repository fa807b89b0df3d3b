/** What a KubeletConfiguration leaves unsaid, as upstream fills it in. Pure. */
import type { GivenConfiguration, KubeletConfiguration } from './configuration.ts'

/** What counts as unsaid too is zero; where zero means something, it is in POINTERS. */
const DEFAULTS = {
  enableServer: true,
  podLogsDir: '/var/log/pods',
  syncFrequency: '1m0s',
  fileCheckFrequency: '20s',
  httpCheckFrequency: '20s',
  address: '0.0.0.0',
  port: 10_250,
  authentication: {
    x509: {},
    webhook: { enabled: true, cacheTTL: '2m0s' },
    anonymous: { enabled: false },
  },
  authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: '5m0s', cacheUnauthorizedTTL: '30s' } },
  registryPullQPS: 5,
  registryBurst: 10,
  imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages',
  eventRecordQPS: 50,
  eventBurst: 100,
  enableDebuggingHandlers: true,
  healthzPort: 10_248,
  healthzBindAddress: '127.0.0.1',
  oomScoreAdj: -999,
  streamingConnectionIdleTimeout: '4h0m0s',
  nodeStatusUpdateFrequency: '10s',
  nodeStatusReportFrequency: '5m0s',
  nodeLeaseDurationSeconds: 40,
  imageMinimumGCAge: '2m0s',
  imageMaximumGCAge: '0s',
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  volumeStatsAggPeriod: '1m0s',
  cgroupsPerQOS: true,
  cgroupDriver: 'cgroupfs',
  cpuManagerPolicy: 'none',
  cpuManagerReconcilePeriod: '10s',
  memoryManagerPolicy: 'None',
  topologyManagerPolicy: 'none',
  topologyManagerScope: 'container',
  runtimeRequestTimeout: '2m0s',
  hairpinMode: 'promiscuous-bridge',
  maxPods: 110,
  podPidsLimit: -1,
  resolvConf: '/etc/resolv.conf',
  cpuCFSQuota: true,
  cpuCFSQuotaPeriod: '100ms',
  nodeStatusMaxImages: 50,
  maxOpenFiles: 1_000_000,
  contentType: 'application/vnd.kubernetes.protobuf',
  kubeAPIQPS: 50,
  kubeAPIBurst: 100,
  serializeImagePulls: true,
  evictionPressureTransitionPeriod: '5m0s',
  mergeDefaultEvictionSettings: false,
  enableControllerAttachDetach: true,
  makeIPTablesUtilChains: true,
  iptablesMasqueradeBit: 14,
  iptablesDropBit: 15,
  failSwapOn: true,
  memorySwap: {},
  containerLogMaxSize: '10Mi',
  containerLogMaxFiles: 5,
  containerLogMaxWorkers: 1,
  containerLogMonitorInterval: '10s',
  configMapAndSecretChangeDetectionStrategy: 'Watch',
  enforceNodeAllocatable: ['pods'],
  volumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
  logging: { format: 'text', flushFrequency: '5s', verbosity: 0, options: {} },
  enableSystemLogHandler: true,
  enableSystemLogQuery: false,
  shutdownGracePeriod: '0s',
  shutdownGracePeriodCriticalPods: '0s',
  crashLoopBackOff: { maxContainerRestartPeriod: '5m0s' },
  enableProfilingHandler: true,
  enableDebugFlagsHandler: true,
  seccompDefault: false,
  memoryThrottlingFactor: 0.9,
  memoryReservationPolicy: 'None',
  registerNode: true,
  localStorageCapacityIsolation: true,
  containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
  failCgroupV1: true,
} as const satisfies KubeletConfiguration

/** Durations of which zero is a wish like any other. */
const POINTERS: ReadonlySet<string> = new Set([
  'cpuCFSQuotaPeriod',
  'containerLogMonitorInterval',
  'maxContainerRestartPeriod',
])

/** What a file says of evictions replaces all of these, unless it wants them merged. */
export const EVICTION_HARD: Readonly<Record<string, string>> = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
}

/**
 * Also for a kubelet without a file. Upstream's flags then default to anonymous access, AlwaysAllow and the read-only port
 * 10255; here they default to the same as a file's fields (ADR 17).
 */
export function withDefaults(given: GivenConfiguration): KubeletConfiguration {
  const filled = fill(given, DEFAULTS) as unknown as KubeletConfiguration
  const said = (field: keyof KubeletConfiguration): boolean => given[field] !== undefined && given[field] !== '0s'
  return {
    ...filled,
    // Who says how often the node is looked at means how often it is reported.
    ...(!said('nodeStatusReportFrequency') &&
      said('nodeStatusUpdateFrequency') && { nodeStatusReportFrequency: filled.nodeStatusUpdateFrequency }),
    // Who says how many images may be pulled at once need not say that they are.
    ...(!said('serializeImagePulls') && { serializeImagePulls: (filled.maxParallelImagePulls ?? 1) < 2 }),
    ...(filled.podPidsLimit < 0 && { podPidsLimit: -1 }),
  }
}

function fill(given: GivenConfiguration, defaults: object): GivenConfiguration {
  const all: Record<string, unknown> = { ...given }
  for (const [name, otherwise] of Object.entries(defaults)) {
    const value = given[name]
    const isZero = value === '0s' && !POINTERS.has(name)
    if (value === undefined || value === null || isZero) all[name] = otherwise
    else if (isObject(otherwise) && isObject(value)) all[name] = fill(value, otherwise)
  }
  return all
}

function isObject(value: unknown): value is GivenConfiguration {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
