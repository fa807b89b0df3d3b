/** Every flag of the kubelet, with upstream's names, types and defaults. Most set a field of its configuration. */
import { configFlags } from '#component/flags/config-flags.ts'
import { configurationMap } from '#component/flags/flag-kinds.ts'
import { FEATURE_GATES } from '#component/flags/gates.ts'
import { SERVER_LOG_FLAGS } from '#component/flags/general-flags.ts'
import { CONFIGURATION } from '#kubelet/configuration/configuration.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'
import { describeGates, type FeatureGates, featureGates } from '#lib/flags/feature-gates.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { Kind } from '#lib/flags/kinds.ts'

import { address, headers, pair, reservedMemory, taints, thresholds, words } from './flag-kinds.ts'

interface KubeletKinds {
  readonly gates: Kind<FeatureGates>
  readonly labels: Kind<ReadonlyMap<string, string>>
}

const OWN = {
  'bootstrap-kubeconfig':
    'string Kubeconfig for requesting a client certificate if --kubeconfig does not exist yet; the kubelet then writes --kubeconfig',
  'cert-dir': 'string =/var/lib/kubelet/pki Directory of generated and requested certificates',
  'cloud-provider':
    'string external: a cloud-controller-manager initializes the node, which accepts no pods until then',
  config: 'string File with a KubeletConfiguration; flags take precedence',
  'config-dir': 'string Directory of *.conf files that are merged into the configuration in alphabetical order',
  'experimental-allocatable-ignore-eviction': 'bool Include the eviction thresholds in the allocatable resources',
  'feature-gates': 'gates Feature gates',
  'hostname-override': 'string Name of the node (default: the host name)',
  'image-credential-provider-bin-dir': 'string Directory of credential provider plugins',
  'image-credential-provider-config':
    'string File with a CredentialProviderConfig, or directory of such files (*.json, *.yaml, *.yml), which are merged',
  kubeconfig: 'string Kubeconfig with the API server and the credentials',
  'maximum-dead-containers': 'int32 =-1 Maximum number of terminated containers to keep; negative means no limit',
  'maximum-dead-containers-per-container': 'int32 =1 Maximum number of terminated instances of a container to keep',
  'minimum-container-ttl-duration': 'duration Minimum age of a terminated container before it is removed',
  'node-ip':
    'string Address of the node, or two comma-separated addresses of both families; 0.0.0.0 or :: selects the default address of a family',
  'node-labels': 'labels Labels to register the node with',
  'root-dir': 'string =/var/lib/kubelet Directory for files of pods',
  'seccomp-default': "bool Use the runtime's default seccomp profile for containers without one",
  'exit-on-lock-contention': 'bool unsupported: there is no lock file',
  'experimental-mounter-path': 'string unsupported: the kernel creates mounts',
  'housekeeping-interval': 'duration =10s idle: there is no cadvisor',
  'lock-file': 'string unsupported: there is no lock file',
  'runtime-cgroups': 'string unsupported: the runtime stays in the cgroup in which it was started',
} as const

/** Settings outside of the configuration, by flag name. */
export interface KubeletSettings extends RowValues<typeof OWN, KubeletKinds> {}

const THRESHOLDS = {
  deprecated: 'Use --eviction-hard or --eviction-soft instead. Will be removed in a future version.',
  shown: true,
}
const REMOVAL = 'will be removed in 1.25 or later.'

const OWN_FLAGS: FlagGroup = flagRows(
  OWN,
  { gates: featureGates(FEATURE_GATES), labels: configurationMap } satisfies KubeletKinds,
  {
    'experimental-allocatable-ignore-eviction': { deprecated: REMOVAL, shown: true },
    'experimental-mounter-path': { deprecated: `${REMOVAL} in favor of using CSI.`, shown: true },
    'feature-gates': { usage: describeGates(FEATURE_GATES) },
    'maximum-dead-containers': THRESHOLDS,
    'maximum-dead-containers-per-container': THRESHOLDS,
    'minimum-container-ttl-duration': THRESHOLDS,
  },
)

const CADVISOR: FlagGroup = flagRows({
  'application-metrics-count-limit': 'int =100 idle: there is no cadvisor',
  'boot-id-file': 'string =/proc/sys/kernel/random/boot_id idle: there is no cadvisor',
  'container-hints': 'string =/etc/cadvisor/container_hints.json idle: there is no cadvisor',
  containerd: 'string =/run/containerd/containerd.sock idle: there is no cadvisor',
  'containerd-namespace': 'string =k8s.io idle: there is no cadvisor',
  'enable-load-reader': 'bool idle: there is no cadvisor',
  'event-storage-age-limit': 'string =default=0 idle: there is no cadvisor',
  'event-storage-event-limit': 'string =default=0 idle: there is no cadvisor',
  'global-housekeeping-interval': 'duration =1m0s idle: there is no cadvisor',
  'log-cadvisor-usage': 'bool idle: there is no cadvisor',
  'machine-id-file': 'string =/etc/machine-id,/var/lib/dbus/machine-id idle: there is no cadvisor',
  'storage-driver-buffer-duration': 'duration =1m0s idle: there is no cadvisor',
  'storage-driver-db': 'string =cadvisor idle: there is no cadvisor',
  'storage-driver-host': 'string =localhost:8086 idle: there is no cadvisor',
  'storage-driver-password': 'string =root idle: there is no cadvisor',
  'storage-driver-secure': 'bool idle: there is no cadvisor',
  'storage-driver-table': 'string =stats idle: there is no cadvisor',
  'storage-driver-user': 'string =root idle: there is no cadvisor',
})

const CADVISOR_REMOVAL =
  'This is a cadvisor flag that was mistakenly registered with the Kubelet. Due to legacy concerns, it will follow the standard CLI deprecation timeline before being removed.'

const MOVED =
  "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information."

/** Flags that are not deprecated. */
const KEPT = new Set(['provider-id', 'fail-cgroupv1'])

/** Flag types of fields: see `configFlags`. */
const KINDS = {
  address,
  pair,
  thresholds,
  'map[string]string': words,
  'map[string][]string': headers,
  '[]v1.Taint': taints,
  '[]v1beta1.MemoryReservation': reservedMemory,
}

const FIELD_FLAGS = configFlags(CONFIGURATION, withDefaults({}), KINDS, (name) =>
  KEPT.has(name) ? {} : { deprecated: MOVED, shown: true },
)

function deprecated(flags: FlagGroup, why: string): FlagGroup {
  return Object.fromEntries(
    Object.entries(flags).map(([name, each]) => [name, { ...each, deprecated: why, shown: true }]),
  )
}

const LATER = ['log-flush-frequency', 'v', 'vmodule']

/** Log flags are part of the configuration too, except these. */
const MOVED_LOG_FLAGS: FlagGroup = Object.fromEntries(
  Object.entries(SERVER_LOG_FLAGS).filter(([name]) => !LATER.includes(name)),
)

export const KUBELET_FLAGS: FlagGroups = {
  kubelet: {
    ...OWN_FLAGS,
    ...deprecated(CADVISOR, CADVISOR_REMOVAL),
    ...FIELD_FLAGS,
    ...SERVER_LOG_FLAGS,
    ...deprecated(MOVED_LOG_FLAGS, MOVED),
  },
}
