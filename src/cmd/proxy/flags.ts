/** Every flag of kube-proxy, with upstream's names, types and defaults. Most set a field of its configuration. */
import { configFlags } from '#component/flags/config-flags.ts'
import { FEATURE_GATES } from '#component/flags/gates.ts'
import { SERVER_LOG_FLAGS } from '#component/flags/general-flags.ts'
import { describeGates, featureGates, type FeatureGates } from '#lib/flags/feature-gates.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { customKind, type Kind } from '#lib/flags/kinds.ts'
import { withValueAt } from '#meta/config-rows.ts'
import { PROXY_CONFIGURATION, withProxyDefaults } from '#proxy/configuration.ts'

interface ProxyKinds {
  readonly gates: Kind<FeatureGates>
}

const OWN = {
  cleanup: 'bool Remove the rules of kube-proxy and exit',
  config: 'string File with a KubeProxyConfiguration; flags for its fields are then ignored',
  'feature-gates': 'gates Feature gates',
  'hostname-override': 'string Name of the node (default: the host name)',
  'init-only': 'bool Perform the steps that need full privileges and exit; CAP_NET_ADMIN suffices afterwards',
  master: 'string Address of the API server; overrides the kubeconfig',
  'write-config-to': 'string Write the default configuration to this file and exit',
  'boot-id-file': 'string =/proc/sys/kernel/random/boot_id idle: there is no cadvisor',
  'machine-id-file': 'string =/etc/machine-id,/var/lib/dbus/machine-id idle: there is no cadvisor',
  'ipvs-exclude-cidrs': 'strings unsupported: mode ipvs is not supported',
} as const

/** Settings outside of the configuration, by flag name. */
export interface ProxySettings extends RowValues<typeof OWN, ProxyKinds> {}

const KINDS: ProxyKinds = { gates: featureGates(FEATURE_GATES) }

const OWN_FLAGS: FlagGroup = flagRows(OWN, KINDS, { 'feature-gates': { usage: describeGates(FEATURE_GATES) } })

const TEXTS = ['ip', 'ipport', 'LocalMode', 'ProxyMode'].map((type) => [type, customKind(type, String, String)])

/** The flag of one field has another default than the field. */
const DEFAULTS = withValueAt(withProxyDefaults(), 'ipvs.minSyncPeriod', '1s')

const FIELD_FLAGS = configFlags(PROXY_CONFIGURATION, DEFAULTS, Object.fromEntries(TEXTS))

export const PROXY_FLAGS: FlagGroups = {
  'kube-proxy': { ...OWN_FLAGS, ...FIELD_FLAGS, ...SERVER_LOG_FLAGS },
}
