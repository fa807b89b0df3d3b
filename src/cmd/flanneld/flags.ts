/**
 * flanneld's flags with flannel's names and defaults. Kubernetes stores the leases, so flags for etcd have no effect.
 */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'

const NETWORK = {
  'kube-subnet-mgr': 'bool store leases in Kubernetes; the only supported mode',
  'kubeconfig-file': 'string kubeconfig `file` (default: the service account of the pod)',
  'kube-api-url': 'string `address` of the API server; overrides the kubeconfig',
  'kube-annotation-prefix': 'string =flannel.alpha.coreos.com prefix of annotation names',
  'net-config-path': 'string =/etc/kube-flannel/net-conf.json `file` with the configuration of the network',
  'subnet-file': 'string =/run/flannel/subnet.env `file` to write the subnet of this node to',
  iface: 'stringArray interface, by name or address, for traffic between nodes; may be repeated',
  'iface-regex':
    'stringArray regular expression for the name or address of the interface; may be repeated; checked after --iface',
  'iface-can-reach': 'string address that must be reachable over the interface',
  'public-ip': 'string address at which other nodes reach this one (default: the address of the interface)',
  'public-ipv6': 'string the same for IPv6',
  'ip-masq': 'bool masquerade traffic from pods to destinations outside of the network',
  'iptables-forward-rules': 'bool =true accept forwarded traffic of pods if the default policy denies forwarding',
  'iptables-resync': 'int =5 seconds between checks of links, routes and rules',
  'set-node-network-unavailable': 'bool =true update the NetworkUnavailable condition of the Node',
  'healthz-ip': 'string =0.0.0.0 address of the health server',
  'healthz-port': 'int port of the health server; 0 disables it',
  cleanup: 'bool remove links, routes and rules from this machine and exit; flannel has no such flag',
} as const

const ETCD = {
  'etcd-endpoints':
    'string =http://127.0.0.1:4001,http://127.0.0.1:2379 unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-prefix': 'string =/coreos.com/network unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-keyfile': 'string unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-certfile': 'string unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-cafile': 'string unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-username': 'string unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'etcd-password': 'string unsupported: Kubernetes stores the leases (--kube-subnet-mgr)',
  'subnet-lease-renew-margin': 'int =60 idle: Kubernetes stores the leases (--kube-subnet-mgr)',
  'charon-executable-path': 'string unsupported: there is no IPsec backend',
  'charon-viciuri-path': 'string unsupported: there is no IPsec backend',
} as const

export interface FlanneldSettings extends RowValues<typeof NETWORK> {}

export const FLANNELD_FLAGS: FlagGroups = { network: flagRows(NETWORK), etcd: flagRows(ETCD), logs: LOG_FLAGS }
