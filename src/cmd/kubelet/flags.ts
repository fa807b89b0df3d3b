/** Every flag of kubelet, with upstream's names, types and defaults. Most stand for a field of its configuration. */
import { configurationMap } from '#control-plane/flags/flag-kinds.ts'
import { FEATURE_GATES } from '#control-plane/flags/gates.ts'
import { SERVER_LOG_FLAGS } from '#control-plane/flags/general-flags.ts'
import { int64 } from '#control-plane/flags/serving-flags.ts'
import type { GivenConfiguration } from '#kubelet/configuration/configuration.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'
import { describeGates, featureGates, type FeatureGates } from '#lib/flags/feature-gates.ts'
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, int, int32, type Kind, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import { address, durationWord, headers, pair, reservedMemory, taints, thresholds, words } from './flag-kinds.ts'

/** What is no part of the configuration, by the names of the flags. */
export interface KubeletSettings {
  readonly 'bootstrap-kubeconfig': string
  readonly 'cert-dir': string
  readonly 'cloud-provider': string
  readonly config: string
  readonly 'config-dir': string
  readonly 'experimental-allocatable-ignore-eviction': boolean
  readonly 'feature-gates': FeatureGates
  readonly 'hostname-override': string
  readonly 'image-credential-provider-bin-dir': string
  readonly 'image-credential-provider-config': string
  readonly kubeconfig: string
  readonly 'maximum-dead-containers': number
  readonly 'maximum-dead-containers-per-container': number
  readonly 'minimum-container-ttl-duration': number
  readonly 'node-ip': string
  readonly 'node-labels': ReadonlyMap<string, string>
  readonly 'root-dir': string
  readonly 'seccomp-default': boolean
}

const LEAVING = 'Use --eviction-hard or --eviction-soft instead. Will be removed in a future version.'
const NO_LOCK = 'there is no lock file'
const CADVISOR =
  'This is a cadvisor flag that was mistakenly registered with the Kubelet. Due to legacy concerns, it will follow the standard CLI deprecation timeline before being removed.'
const NO_CADVISOR = 'there is no cadvisor'

const OWN_FLAGS: FlagsOf<KubeletSettings> & FlagGroup = {
  'bootstrap-kubeconfig': flag(
    string,
    '',
    'Kubeconfig with which a client certificate is asked for when --kubeconfig is not there yet; it is then written',
  ),
  'cert-dir': flag(string, '/var/lib/kubelet/pki', 'Directory of the certificates that are made or asked for'),
  'cloud-provider': flag(
    string,
    '',
    'external: a cloud-controller-manager says where the node is, and until then no pods come',
  ),
  config: flag(string, '', 'File with a KubeletConfiguration; flags count more'),
  'config-dir': flag(
    string,
    '',
    'Directory of files ending in .conf that are merged into the configuration in the order of their names',
  ),
  'experimental-allocatable-ignore-eviction': flag(
    bool,
    false,
    'Whether what is allocatable includes what evictions keep free',
    { deprecated: 'will be removed in 1.25 or later.', shown: true },
  ),
  'feature-gates': flag(featureGates(FEATURE_GATES), new Map(), describeGates(FEATURE_GATES)),
  'hostname-override': flag(string, '', 'Name of the node; default: that of the machine'),
  'image-credential-provider-bin-dir': flag(
    string,
    '',
    'Directory of the programs that know credentials of registries',
  ),
  'image-credential-provider-config': flag(
    string,
    '',
    'File with a CredentialProviderConfig, or directory of such files (*.json, *.yaml, *.yml) that are merged',
  ),
  kubeconfig: flag(string, '', 'Kubeconfig that says where the API server is and who we are'),
  'maximum-dead-containers': flag(int32, -1, 'How many containers that have ended are kept; negative: any number', {
    deprecated: LEAVING,
    shown: true,
  }),
  'maximum-dead-containers-per-container': flag(int32, 1, 'How many runs of a container that have ended are kept', {
    deprecated: LEAVING,
    shown: true,
  }),
  'minimum-container-ttl-duration': flag(duration, 0, 'How long a container that has ended is kept at least', {
    deprecated: LEAVING,
    shown: true,
  }),
  'node-ip': flag(
    string,
    '',
    'Address of the node, or two of both families with a comma between; 0.0.0.0 or :: for the default one of a family',
  ),
  'node-labels': flag(configurationMap, new Map(), 'Labels the node is registered with'),
  'root-dir': flag(string, '/var/lib/kubelet', 'Directory of what is kept of pods'),
  'seccomp-default': flag(bool, false, 'Whether containers that name no profile have that of the runtime'),

  'exit-on-lock-contention': unsupported(bool, false, NO_LOCK),
  'experimental-mounter-path': unsupported(string, '', 'mounts are made by the kernel', {
    deprecated: 'will be removed in 1.25 or later. in favor of using CSI.',
    shown: true,
  }),
  'housekeeping-interval': idle(duration, 10_000, NO_CADVISOR),
  'lock-file': unsupported(string, '', NO_LOCK),
  'runtime-cgroups': unsupported(string, '', 'the runtime stays in the cgroup it was started in'),
}

const cadvisor = <T>(kind: Kind<T>, initial: NoInfer<T>) =>
  idle(kind, initial, NO_CADVISOR, { deprecated: CADVISOR, shown: true })

const CADVISOR_FLAGS: FlagGroup = {
  'application-metrics-count-limit': cadvisor(int, 100),
  'boot-id-file': cadvisor(string, '/proc/sys/kernel/random/boot_id'),
  'container-hints': cadvisor(string, '/etc/cadvisor/container_hints.json'),
  containerd: cadvisor(string, '/run/containerd/containerd.sock'),
  'containerd-namespace': cadvisor(string, 'k8s.io'),
  'enable-load-reader': cadvisor(bool, false),
  'event-storage-age-limit': cadvisor(string, 'default=0'),
  'event-storage-event-limit': cadvisor(string, 'default=0'),
  'global-housekeeping-interval': cadvisor(duration, 60_000),
  'log-cadvisor-usage': cadvisor(bool, false),
  'machine-id-file': cadvisor(string, '/etc/machine-id,/var/lib/dbus/machine-id'),
  'storage-driver-buffer-duration': cadvisor(duration, 60_000),
  'storage-driver-db': cadvisor(string, 'cadvisor'),
  'storage-driver-host': cadvisor(string, 'localhost:8086'),
  'storage-driver-password': cadvisor(string, 'root'),
  'storage-driver-secure': cadvisor(bool, false),
  'storage-driver-table': cadvisor(string, 'stats'),
  'storage-driver-user': cadvisor(string, 'root'),
}

/** Fields of the configuration that have a flag, by its name. */
const FIELDS = {
  address: [address, 'address'],
  'allowed-unsafe-sysctls': [strings, 'allowedUnsafeSysctls'],
  'anonymous-auth': [bool, 'authentication.anonymous.enabled'],
  'authentication-token-webhook': [bool, 'authentication.webhook.enabled'],
  'authentication-token-webhook-cache-ttl': [durationWord, 'authentication.webhook.cacheTTL'],
  'authorization-mode': [string, 'authorization.mode'],
  'authorization-webhook-cache-authorized-ttl': [durationWord, 'authorization.webhook.cacheAuthorizedTTL'],
  'authorization-webhook-cache-unauthorized-ttl': [durationWord, 'authorization.webhook.cacheUnauthorizedTTL'],
  'cgroup-driver': [string, 'cgroupDriver'],
  'cgroup-root': [string, 'cgroupRoot'],
  'cgroups-per-qos': [bool, 'cgroupsPerQOS'],
  'client-ca-file': [string, 'authentication.x509.clientCAFile'],
  'cluster-dns': [strings, 'clusterDNS'],
  'cluster-domain': [string, 'clusterDomain'],
  'container-log-max-files': [int32, 'containerLogMaxFiles'],
  'container-log-max-size': [string, 'containerLogMaxSize'],
  'container-runtime-endpoint': [string, 'containerRuntimeEndpoint'],
  'contention-profiling': [bool, 'enableContentionProfiling'],
  'cpu-cfs-quota': [bool, 'cpuCFSQuota'],
  'cpu-cfs-quota-period': [durationWord, 'cpuCFSQuotaPeriod'],
  'cpu-manager-policy': [string, 'cpuManagerPolicy'],
  'cpu-manager-policy-options': [pair, 'cpuManagerPolicyOptions'],
  'cpu-manager-reconcile-period': [durationWord, 'cpuManagerReconcilePeriod'],
  'enable-controller-attach-detach': [bool, 'enableControllerAttachDetach'],
  'enable-debugging-handlers': [bool, 'enableDebuggingHandlers'],
  'enable-server': [bool, 'enableServer'],
  'enforce-node-allocatable': [strings, 'enforceNodeAllocatable'],
  'event-burst': [int32, 'eventBurst'],
  'event-qps': [int32, 'eventRecordQPS'],
  'eviction-hard': [thresholds, 'evictionHard'],
  'eviction-max-pod-grace-period': [int32, 'evictionMaxPodGracePeriod'],
  'eviction-minimum-reclaim': [words, 'evictionMinimumReclaim'],
  'eviction-pressure-transition-period': [durationWord, 'evictionPressureTransitionPeriod'],
  'eviction-soft': [thresholds, 'evictionSoft'],
  'eviction-soft-grace-period': [words, 'evictionSoftGracePeriod'],
  'fail-cgroupv1': [bool, 'failCgroupV1'],
  'fail-swap-on': [bool, 'failSwapOn'],
  'file-check-frequency': [durationWord, 'fileCheckFrequency'],
  'hairpin-mode': [string, 'hairpinMode'],
  'healthz-bind-address': [address, 'healthzBindAddress'],
  'healthz-port': [int32, 'healthzPort'],
  'http-check-frequency': [durationWord, 'httpCheckFrequency'],
  'image-gc-high-threshold': [int32, 'imageGCHighThresholdPercent'],
  'image-gc-low-threshold': [int32, 'imageGCLowThresholdPercent'],
  'image-service-endpoint': [string, 'imageServiceEndpoint'],
  'kernel-memcg-notification': [bool, 'kernelMemcgNotification'],
  'kube-api-burst': [int32, 'kubeAPIBurst'],
  'kube-api-content-type': [string, 'contentType'],
  'kube-api-qps': [int32, 'kubeAPIQPS'],
  'kube-reserved': [words, 'kubeReserved'],
  'kube-reserved-cgroup': [string, 'kubeReservedCgroup'],
  'kubelet-cgroups': [string, 'kubeletCgroups'],
  'local-storage-capacity-isolation': [bool, 'localStorageCapacityIsolation'],
  'make-iptables-util-chains': [bool, 'makeIPTablesUtilChains'],
  'manifest-url': [string, 'staticPodURL'],
  'manifest-url-header': [headers, 'staticPodURLHeader'],
  'max-open-files': [int64, 'maxOpenFiles'],
  'max-pods': [int32, 'maxPods'],
  'memory-manager-policy': [string, 'memoryManagerPolicy'],
  'minimum-image-ttl-duration': [durationWord, 'imageMinimumGCAge'],
  'node-status-max-images': [int32, 'nodeStatusMaxImages'],
  'node-status-update-frequency': [durationWord, 'nodeStatusUpdateFrequency'],
  'oom-score-adj': [int32, 'oomScoreAdj'],
  'pod-cidr': [string, 'podCIDR'],
  'pod-manifest-path': [string, 'staticPodPath'],
  'pod-max-pids': [int64, 'podPidsLimit'],
  'pods-per-core': [int32, 'podsPerCore'],
  port: [int32, 'port'],
  'protect-kernel-defaults': [bool, 'protectKernelDefaults'],
  'provider-id': [string, 'providerID'],
  'qos-reserved': [words, 'qosReserved'],
  'read-only-port': [int32, 'readOnlyPort'],
  'register-node': [bool, 'registerNode'],
  'register-with-taints': [taints, 'registerWithTaints'],
  'registry-burst': [int32, 'registryBurst'],
  'registry-qps': [int32, 'registryPullQPS'],
  'reserved-cpus': [string, 'reservedSystemCPUs'],
  'reserved-memory': [reservedMemory, 'reservedMemory'],
  'resolv-conf': [string, 'resolvConf'],
  'rotate-certificates': [bool, 'rotateCertificates'],
  'rotate-server-certificates': [bool, 'serverTLSBootstrap'],
  runonce: [bool, 'runOnce'],
  'runtime-request-timeout': [durationWord, 'runtimeRequestTimeout'],
  'serialize-image-pulls': [bool, 'serializeImagePulls'],
  'streaming-connection-idle-timeout': [durationWord, 'streamingConnectionIdleTimeout'],
  'sync-frequency': [durationWord, 'syncFrequency'],
  'system-cgroups': [string, 'systemCgroups'],
  'system-reserved': [words, 'systemReserved'],
  'system-reserved-cgroup': [string, 'systemReservedCgroup'],
  'tls-cert-file': [string, 'tlsCertFile'],
  'tls-cipher-suites': [strings, 'tlsCipherSuites'],
  'tls-min-version': [string, 'tlsMinVersion'],
  'tls-private-key-file': [string, 'tlsPrivateKeyFile'],
  'topology-manager-policy': [string, 'topologyManagerPolicy'],
  'topology-manager-policy-options': [words, 'topologyManagerPolicyOptions'],
  'topology-manager-scope': [string, 'topologyManagerScope'],
  'volume-plugin-dir': [string, 'volumePluginDir'],
  'volume-stats-agg-period': [durationWord, 'volumeStatsAggPeriod'],
} as const satisfies Readonly<Record<string, readonly [kind: object, field: string]>>

const MOVED =
  "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information."

/** These stay. */
const KEPT = new Set(['provider-id', 'fail-cgroupv1'])

function configurationFlags(): FlagGroup {
  const defaults = withDefaults({}) as unknown as GivenConfiguration
  const rows = Object.entries(FIELDS).map(([name, [kind, field]]) => {
    const known = kind as Kind<unknown>
    const initial = valueAt(defaults, field) ?? emptyOf(known)
    const options = KEPT.has(name) ? {} : { deprecated: MOVED, shown: true }
    return [name, flag(known, initial, `${field} of the KubeletConfiguration`, options)] as const
  })
  return Object.fromEntries(rows)
}

function valueAt(config: GivenConfiguration, field: string): unknown {
  return field.split('.').reduce<unknown>((at, name) => (at as GivenConfiguration | undefined)?.[name], config)
}

function emptyOf(kind: Kind<unknown>): unknown {
  if (kind.type === 'bool') return false
  if (kind.type === 'mapStringString') return {}
  return kind.type.startsWith('int') ? 0 : kind.parse('')
}

/** Where what a flag says goes; undefined for flags that are no part of the configuration. */
export function fieldOf(name: string): string | undefined {
  return Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof typeof FIELDS][1] : undefined
}

const LATER = ['log-flush-frequency', 'v', 'vmodule']

/** Those of the log are part of the configuration too, but for these. */
const LOG_FLAGS: FlagGroup = Object.fromEntries(
  Object.entries(SERVER_LOG_FLAGS).map(([name, each]) => [
    name,
    LATER.includes(name) ? each : { ...each, deprecated: MOVED, shown: true },
  ]),
)

export const KUBELET_FLAGS: FlagGroups = {
  kubelet: { ...OWN_FLAGS, ...CADVISOR_FLAGS, ...configurationFlags(), ...LOG_FLAGS },
}
