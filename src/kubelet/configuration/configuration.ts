/**
 * KubeletConfiguration v1beta1 as one table in upstream's field order (see `#meta/config-rows.ts`). Rules about several
 * fields are in validation.ts.
 */
import { type ConfigTable, defineConfig, readConfig } from '#meta/config-kind.ts'
import type { Complete } from '#meta/config-rows.ts'

export const GROUP_VERSION = 'kubelet.config.k8s.io/v1beta1'

const STRUCTS = {
  'v1beta1.KubeletConfiguration': {
    enableServer: '*bool =true --enable-server unsupported: the port is always served',
    staticPodPath: 'string --pod-manifest-path',
    podLogsDir: 'string =/var/log/pods',
    syncFrequency: 'v1.Duration =1m0s --sync-frequency idle: pods are synced on events',
    fileCheckFrequency: 'v1.Duration =20s --file-check-frequency',
    httpCheckFrequency: 'v1.Duration =20s --http-check-frequency',
    staticPodURL: 'string --manifest-url',
    staticPodURLHeader: 'map[string][]string --manifest-url-header',
    address: 'string =0.0.0.0 --address:address',
    port: 'int32 =10250 1..65535 --port',
    readOnlyPort: 'int32 0..65535 --read-only-port',
    tlsCertFile: 'string --tls-cert-file',
    tlsPrivateKeyFile: 'string --tls-private-key-file',
    tlsCipherSuites: '[]string --tls-cipher-suites',
    tlsCurvePreferences: '[]int32 unsupported: OpenSSL chooses the curves',
    tlsMinVersion: 'string --tls-min-version',
    rotateCertificates: 'bool --rotate-certificates',
    serverTLSBootstrap: 'bool --rotate-server-certificates',
    authentication: 'v1beta1.KubeletAuthentication',
    authorization: 'v1beta1.KubeletAuthorization',
    registryPullQPS: '*int32 =5 0.. --registry-qps',
    registryBurst: 'int32 =10 0.. --registry-burst',
    imagePullCredentialsVerificationPolicy: 'string =NeverVerifyPreloadedImages',
    preloadedImagesVerificationAllowlist: '[]string',
    eventRecordQPS: '*int32 =50 0.. --event-qps',
    eventBurst: 'int32 =100 0.. --event-burst',
    enableDebuggingHandlers: '*bool =true --enable-debugging-handlers',
    enableContentionProfiling: 'bool --contention-profiling idle: there are no locks to profile',
    healthzPort: '*int32 =10248 --healthz-port',
    healthzBindAddress: 'string =127.0.0.1 --healthz-bind-address:address',
    oomScoreAdj: '*int32 =-999 -1000..1000 --oom-score-adj',
    clusterDomain: 'string --cluster-domain',
    clusterDNS: '[]string --cluster-dns',
    streamingConnectionIdleTimeout:
      'v1.Duration =4h0m0s --streaming-connection-idle-timeout idle: only the peers close connections',
    nodeStatusUpdateFrequency: 'v1.Duration =10s --node-status-update-frequency',
    nodeStatusReportFrequency: 'v1.Duration =5m0s',
    nodeLeaseDurationSeconds: 'int32 =40',
    imageMinimumGCAge: 'v1.Duration =2m0s --minimum-image-ttl-duration',
    imageMaximumGCAge: 'v1.Duration =0s',
    imageGCHighThresholdPercent: '*int32 =85 0..100 --image-gc-high-threshold',
    imageGCLowThresholdPercent: '*int32 =80 0..100 --image-gc-low-threshold',
    volumeStatsAggPeriod: 'v1.Duration =1m0s --volume-stats-agg-period',
    kubeletCgroups: 'string --kubelet-cgroups unsupported: no cgroups are created for processes outside of pods',
    systemCgroups: 'string --system-cgroups unsupported: no cgroups are created for processes outside of pods',
    cgroupRoot: 'string --cgroup-root',
    cgroupsPerQOS: '*bool =true --cgroups-per-qos unsupported: pods always have their own cgroups',
    cgroupDriver: 'string =cgroupfs --cgroup-driver',
    cpuManagerPolicy: 'string =none --cpu-manager-policy',
    singleProcessOOMKill: '*bool',
    cpuManagerPolicyOptions: 'map[string]string --cpu-manager-policy-options:pair',
    cpuManagerReconcilePeriod: 'v1.Duration =10s --cpu-manager-reconcile-period',
    memoryManagerPolicy: 'string =None --memory-manager-policy',
    topologyManagerPolicy: 'string =none --topology-manager-policy',
    topologyManagerScope: 'string =container --topology-manager-scope',
    topologyManagerPolicyOptions:
      'map[string]string --topology-manager-policy-options unsupported: distances between NUMA nodes are ignored',
    qosReserved: 'map[string]string --qos-reserved unsupported: memory is not reserved for QoS classes',
    runtimeRequestTimeout: 'v1.Duration =2m0s --runtime-request-timeout',
    hairpinMode: 'string =promiscuous-bridge --hairpin-mode idle: the runtime creates pod networks',
    maxPods: 'int32 =110 0.. --max-pods',
    podCIDR: 'string --pod-cidr idle: the runtime creates pod networks',
    podPidsLimit: '*int64 =-1 --pod-max-pids',
    resolvConf: '*string =/etc/resolv.conf --resolv-conf',
    runOnce: 'bool --runonce',
    cpuCFSQuota: '*bool =true --cpu-cfs-quota',
    cpuCFSQuotaPeriod: '*v1.Duration =100ms --cpu-cfs-quota-period',
    nodeStatusMaxImages: '*int32 =50 -1.. --node-status-max-images',
    maxOpenFiles: 'int64 =1000000 0.. --max-open-files idle: the limit of the process is not changed',
    contentType: 'string =application/vnd.kubernetes.protobuf --kube-api-content-type idle: requests are sent as JSON',
    kubeAPIQPS: '*int32 =50 0.. --kube-api-qps',
    kubeAPIBurst: 'int32 =100 0.. --kube-api-burst',
    serializeImagePulls: '*bool =true --serialize-image-pulls',
    maxParallelImagePulls: '*int32',
    evictionHard: '*map[string]string --eviction-hard:thresholds',
    evictionSoft: 'map[string]string --eviction-soft:thresholds',
    evictionSoftGracePeriod: 'map[string]string --eviction-soft-grace-period',
    evictionPressureTransitionPeriod: 'v1.Duration =5m0s --eviction-pressure-transition-period',
    evictionMaxPodGracePeriod: 'int32 --eviction-max-pod-grace-period',
    evictionMinimumReclaim: 'map[string]string --eviction-minimum-reclaim',
    mergeDefaultEvictionSettings: '*bool =false',
    podsPerCore: 'int32 0.. --pods-per-core',
    enableControllerAttachDetach:
      '*bool =true --enable-controller-attach-detach unsupported: volumes are attached by kube-controller-manager',
    protectKernelDefaults: 'bool --protect-kernel-defaults',
    makeIPTablesUtilChains: '*bool =true --make-iptables-util-chains idle: the kubelet creates no rules',
    iptablesMasqueradeBit: '*int32 =14 idle: no rule uses it',
    iptablesDropBit: '*int32 =15 idle: no rule uses it',
    featureGates: 'map[string]bool',
    failSwapOn: '*bool =true --fail-swap-on',
    memorySwap: 'v1beta1.MemorySwapConfiguration unsupported: containers do not swap',
    containerLogMaxSize: 'string =10Mi --container-log-max-size',
    containerLogMaxFiles: '*int32 =5 --container-log-max-files',
    containerLogMaxWorkers: '*int32 =1',
    containerLogMonitorInterval: '*v1.Duration =10s',
    configMapAndSecretChangeDetectionStrategy: 'string =Watch idle: referenced objects are watched',
    systemReserved: 'map[string]string --system-reserved',
    kubeReserved: 'map[string]string --kube-reserved',
    reservedSystemCPUs: 'string --reserved-cpus',
    showHiddenMetricsForVersion: 'string idle: no metrics are hidden',
    systemReservedCgroup: 'string --system-reserved-cgroup',
    kubeReservedCgroup: 'string --kube-reserved-cgroup',
    enforceNodeAllocatable: '*[]string =pods --enforce-node-allocatable',
    allowedUnsafeSysctls: '[]string --allowed-unsafe-sysctls',
    volumePluginDir:
      'string =/usr/libexec/kubernetes/kubelet-plugins/volume/exec/ --volume-plugin-dir idle: there are no plugins of that kind',
    providerID: 'string --provider-id',
    kernelMemcgNotification: 'bool --kernel-memcg-notification idle: memory is checked every ten seconds',
    logging: 'v1.LoggingConfiguration',
    enableSystemLogHandler: '*bool =true',
    enableSystemLogQuery: '*bool =false unsupported: logs of the machine are served as files, by /logs/',
    shutdownGracePeriod: 'v1.Duration =0s',
    shutdownGracePeriodCriticalPods: 'v1.Duration =0s',
    shutdownGracePeriodByPodPriority: '[]v1beta1.ShutdownGracePeriodByPodPriority',
    crashLoopBackOff: 'v1beta1.CrashLoopBackOffConfig',
    reservedMemory: '[]v1beta1.MemoryReservation --reserved-memory',
    enableProfilingHandler: '*bool =true idle: profile with "node --inspect"',
    enableDebugFlagsHandler: '*bool =true idle: flags are not changed over HTTP',
    seccompDefault: '*bool =false',
    memoryThrottlingFactor: '*float64 =0.9 idle: memory is not throttled',
    memoryReservationPolicy: 'string =None unsupported: memory is not reserved for QoS classes',
    registerWithTaints: '[]v1.Taint --register-with-taints',
    registerNode: '*bool =true --register-node',
    tracing: '*v1.TracingConfiguration unsupported: spans are not sent',
    localStorageCapacityIsolation: '*bool =true --local-storage-capacity-isolation',
    containerRuntimeEndpoint: 'string =unix:///run/containerd/containerd.sock --container-runtime-endpoint',
    imageServiceEndpoint: 'string --image-service-endpoint',
    failCgroupV1: '*bool =true --fail-cgroupv1',
    userNamespaces: '*v1beta1.UserNamespaces',
  },
  'v1beta1.KubeletAuthentication': {
    x509: 'v1beta1.KubeletX509Authentication',
    webhook: 'v1beta1.KubeletWebhookAuthentication',
    anonymous: 'v1beta1.KubeletAnonymousAuthentication',
  },
  'v1beta1.KubeletX509Authentication': {
    clientCAFile: 'string --client-ca-file',
  },
  'v1beta1.KubeletWebhookAuthentication': {
    enabled: '*bool =true --authentication-token-webhook',
    cacheTTL: 'v1.Duration =2m0s --authentication-token-webhook-cache-ttl',
  },
  'v1beta1.KubeletAnonymousAuthentication': {
    enabled: '*bool =false --anonymous-auth',
  },
  'v1beta1.KubeletAuthorization': {
    mode: 'string =Webhook --authorization-mode',
    webhook: 'v1beta1.KubeletWebhookAuthorization',
  },
  'v1beta1.KubeletWebhookAuthorization': {
    cacheAuthorizedTTL: 'v1.Duration =5m0s --authorization-webhook-cache-authorized-ttl',
    cacheUnauthorizedTTL: 'v1.Duration =30s --authorization-webhook-cache-unauthorized-ttl',
  },
  'v1beta1.MemorySwapConfiguration': {
    swapBehavior: 'string',
  },
  'v1.LoggingConfiguration': {
    format: 'string =text',
    flushFrequency: 'v1.TimeOrMetaDuration =5s',
    verbosity: 'v1.VerbosityLevel =0',
    vmodule: '[]v1.VModuleItem',
    options: 'v1.FormatOptions ={}',
  },
  'v1.VModuleItem': {
    filePattern: 'string =',
    verbosity: 'v1.VerbosityLevel =0',
  },
  'v1.FormatOptions': {
    text: 'v1.TextOptions',
    json: 'v1.JSONOptions',
  },
  'v1.TextOptions': {
    splitStream: 'bool',
    infoBufferSize: 'resource.QuantityValue',
  },
  'v1.JSONOptions': {
    splitStream: 'bool',
    infoBufferSize: 'resource.QuantityValue',
  },
  'v1beta1.ShutdownGracePeriodByPodPriority': {
    priority: 'int32 =0',
    shutdownGracePeriodSeconds: 'int64 =0',
  },
  'v1beta1.CrashLoopBackOffConfig': {
    maxContainerRestartPeriod: '*v1.Duration =5m0s',
  },
  'v1beta1.MemoryReservation': {
    numaNode: 'int32',
    limits: 'map[string]resource.Quantity ={}',
  },
  'v1.Taint': {
    key: 'string =',
    value: 'string',
    effect: 'string =',
    timeAdded: '*v1.Time',
  },
  'v1.TracingConfiguration': {
    endpoint: '*string',
    samplingRatePerMillion: '*int32',
  },
  'v1beta1.UserNamespaces': {
    idsPerPod: '*int64',
  },
} as const

/** With all defaults. Durations are in Go's format. */
export interface KubeletConfiguration extends Complete<typeof STRUCTS, 'v1beta1.KubeletConfiguration'> {}

export const CONFIGURATION: ConfigTable<KubeletConfiguration> = defineConfig(
  ['KubeletConfiguration', 'v1beta1.KubeletConfiguration'],
  [GROUP_VERSION],
  STRUCTS,
)

/** The fields set in files, without defaults. */
export type GivenConfiguration = Readonly<Record<string, unknown>>

/** Throws upstream's errors. `lenient` receives unknown fields; without it they are rejected. */
export function readConfiguration(source: string, lenient?: (message: string) => void): GivenConfiguration {
  const { value } = readConfig(source, [CONFIGURATION], lenient === undefined ? {} : { warn: lenient })
  const { kind: _, apiVersion: __, ...given } = value
  return given
}
