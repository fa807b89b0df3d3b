/** flanneld's flags by flannel's names and defaults. Only Kubernetes remembers leases here: what is for etcd says so. */
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, int, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { ANNOTATION_PREFIX } from '#network/flannel/lease.ts'

const NO_ETCD = 'leases are kept by Kubernetes (--kube-subnet-mgr)'

export interface FlanneldSettings {
  readonly 'kube-subnet-mgr': boolean
  readonly 'kubeconfig-file': string
  readonly 'kube-api-url': string
  readonly 'kube-annotation-prefix': string
  readonly 'net-config-path': string
  readonly 'subnet-file': string
  readonly iface: readonly string[]
  readonly 'iface-regex': readonly string[]
  readonly 'iface-can-reach': string
  readonly 'public-ip': string
  readonly 'public-ipv6': string
  readonly 'ip-masq': boolean
  readonly 'iptables-forward-rules': boolean
  readonly 'iptables-resync': number
  readonly 'set-node-network-unavailable': boolean
  readonly 'healthz-ip': string
  readonly 'healthz-port': number
  readonly cleanup: boolean
}

const NETWORK: FlagsOf<FlanneldSettings> & FlagGroup = {
  'kube-subnet-mgr': flag(bool, false, 'whether leases are kept by Kubernetes: the only way there is here'),
  'kubeconfig-file': flag(string, '', 'kubeconfig `file` (default: as a pod)'),
  'kube-api-url': flag(string, '', '`address` of the API server, instead of that of the kubeconfig'),
  'kube-annotation-prefix': flag(string, ANNOTATION_PREFIX, 'what the names of annotations begin with'),
  'net-config-path': flag(string, '/etc/kube-flannel/net-conf.json', '`file` with the configuration of the network'),
  'subnet-file': flag(string, '/run/flannel/subnet.env', '`file` that says which addresses this node has'),
  iface: flag(stringArray, [], 'interface, by name or address, over which other nodes are reached; may be repeated'),
  'iface-regex': flag(stringArray, [], 'pattern of its name or address; may be repeated, and counts after --iface'),
  'iface-can-reach': flag(string, '', 'address that is reached over the interface'),
  'public-ip': flag(string, '', 'address by which other nodes reach this one (default: that of the interface)'),
  'public-ipv6': flag(string, '', 'the same for IPv6'),
  'ip-masq': flag(bool, false, 'whether pods reach what is outside of the network as their node'),
  'iptables-forward-rules': flag(bool, true, 'whether traffic of pods is let through where forwarding is denied'),
  'iptables-resync': flag(int, 5, 'seconds after which links, routes and rules are looked at again'),
  'set-node-network-unavailable': flag(bool, true, 'whether the Node is told that its network is there'),
  'healthz-ip': flag(string, '0.0.0.0', 'address on which health is asked for'),
  'healthz-port': flag(int, 0, 'port on which health is asked for; 0: none'),
  cleanup: flag(bool, false, 'removes links, routes and rules of this machine, and exits; flannel has no such flag'),
}

const ETCD: FlagGroup = {
  'etcd-endpoints': unsupported(string, 'http://127.0.0.1:4001,http://127.0.0.1:2379', NO_ETCD),
  'etcd-prefix': unsupported(string, '/coreos.com/network', NO_ETCD),
  'etcd-keyfile': unsupported(string, '', NO_ETCD),
  'etcd-certfile': unsupported(string, '', NO_ETCD),
  'etcd-cafile': unsupported(string, '', NO_ETCD),
  'etcd-username': unsupported(string, '', NO_ETCD),
  'etcd-password': unsupported(string, '', NO_ETCD),
  'subnet-lease-renew-margin': idle(int, 60, NO_ETCD),
  'charon-executable-path': unsupported(string, '', 'there is no IPsec backend'),
  'charon-viciuri-path': unsupported(string, '', 'there is no IPsec backend'),
}

export const FLANNELD_FLAGS: FlagGroups = { network: NETWORK, etcd: ETCD, logs: LOG_FLAGS }
