/** Tests a hundred invalid cluster.yml files and the error of each: line, path and advice. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { MINIMAL } from './file/cluster-file.fixture.ts'
import { readClusterFile } from './file/cluster-file.ts'

/** The whole file, and every fault: `line path: text`, where `…` matches any text. */
type Row = readonly [file: string, ...faults: string[]]

/** One machine in four lines, with additions. */
const plus = (more: string): string => `${MINIMAL}${more}\n`
const node = (rest: string): string =>
  `nodes:\n- {address: 10.0.0.1, user: root, role: [controlplane, etcd], ${rest}}\n`
const nodes = (...all: readonly string[]): string => `nodes:\n${all.map((one) => `- {${one}}\n`).join('')}`
const FIRST = 'address: 10.0.0.1, user: a, role: [controlplane, etcd]'

const SHAPES: readonly Row[] = [
  ['', '1 : The file is empty; …'],
  ['# nothing\n', '1 : The file is empty; …'],
  ['- a\n- b\n', '1 : Must be a mapping with keys such as nodes, services, network, not a list'],
  ['hello\n', '1 : Must be a mapping with keys such as nodes, services, network, not "hello"'],
  ['nodes: [\n', '2 : The file is not valid YAML: …'],
  ['nodes:\n- address: "10.0.0.1\n', '3 : The file is not valid YAML: …'],
  ['nodes:\n\t- address: a\n', '2 : The file is not valid YAML: …'],
  ['a: 1\n  b: 2\n', '2 : The file is not valid YAML: …'],
  ['nodes: *nowhere\n', "1 : The file is not valid YAML: unknown anchor 'nowhere' referenced"],
  [plus('---\nnodes: []'), '1 : The file contains more than one document; a cluster is one'],
  ['cluster_name: a\n', '1 nodes: "nodes" is missing: the machines'],
  ['nodes:\n', '1 nodes: "nodes" is missing: the machines'],
  ['nodes: []\n', '1 nodes: There are no machines; add at least one'],
  ['nodes: 10.0.0.1\n', '1 nodes: Must be a list; write "nodes: [10.0.0.1]"'],
  ['nodes:\n  address: 10.0.0.1\n', '1 nodes: Must be a list; begin each item with "- "'],
  ['nodes:\n- 10.0.0.1\n', '2 nodes[0]: Must be a mapping with keys such as nodeName, address, port, not "10.0.0.1"'],
  [plus('- '), '4 nodes[1]: The item is empty; remove it or fill it in'],
  [plus('services: []'), '5 services: Must be a mapping with keys such as etcd, kube-api, kube-controller, not a list'],
  [
    plus('services: {kubelet: 5}'),
    '5 services.kubelet: Must be a mapping with keys such as image, extra_args, extra_args_array, not 5',
  ],
  [plus('cluster_name: {a: b}'), '5 cluster_name: Must be text, not a mapping'],
  [plus('ssh_agent_auth: maybe'), '5 ssh_agent_auth: Must be true or false, not "maybe"'],
  [plus('addon_job_timeout: soon'), '5 addon_job_timeout: Must be a whole number, not "soon"'],
  [plus('addon_job_timeout: 4.5'), '5 addon_job_timeout: Must be a whole number, not 4.5'],
  [plus('addon_job_timeout: -1'), '5 addon_job_timeout: -1 is too small; the least is 1'],
  [plus('system_images: [a]'), '5 system_images: Must be a mapping of names to values, not a list'],
]

const KEYS: readonly Row[] = [
  [
    'node:\n- address: a\n',
    '1 node: Unknown key "node"; did you mean "nodes"?',
    '1 nodes: "nodes" is missing: the machines',
  ],
  [
    plus('kubernets_version: v1.36.4'),
    '5 kubernets_version: Unknown key "kubernets_version"; did you mean "kubernetes_version"?',
  ],
  [plus('cluster-name: a'), '5 cluster-name: Unknown key "cluster-name"; did you mean "cluster_name"?'],
  [
    plus('cluster_cidr: 10.42.0.0/16'),
    '5 cluster_cidr: Unknown key "cluster_cidr"; it belongs under "services.kube-controller"',
  ],
  [plus('services:\n  nodes: []'), '6 services.nodes: Unknown key "nodes"; it belongs at the top of the file'],
  [
    plus('services:\n  kube-apiserver: {}'),
    '6 services.kube-apiserver: Unknown key "kube-apiserver"; did you mean "kube-api"?',
  ],
  [
    plus('services:\n  kubelet:\n    max-pods: 5'),
    '7 services.kubelet.max-pods: Unknown key "max-pods"; known here are …',
  ],
  [plus('zzz: 1'), '5 zzz: Unknown key "zzz"; known here are nodes, services, …'],
  [node('hostname: a'), '2 nodes[0].hostname: Unknown key "hostname"; …'],
  [
    'nodes:\n- adress: 10.0.0.1\n  user: root\n  roles: [etcd]\n',
    '2 nodes[0].adress: Unknown key "adress"; did you mean "address"?',
    '2 nodes[0].address: "address" is missing: SSH address',
    '2 nodes[0].role: "role" is missing: controlplane, etcd, worker',
    '4 nodes[0].roles: Unknown key "roles"; did you mean "role"?',
  ],
  [plus('cluster_name: a\ncluster_name: b'), '6 cluster_name: "cluster_name" is given twice; keep one of them'],
  [plus('services:\n  kubelet: {}\n  kubelet: {}'), '7 services.kubelet: "kubelet" is given twice; keep one of them'],
  [
    plus('services:\n  kube-api: {}\n  kube_api: {}'),
    '7 services.kube_api: "kube_api" and "kube-api" are the same key; keep one of them',
  ],
  [
    plus('upgrade_strategy:\n  drains: true\n  node_drain_input:\n    forces: true'),
    '6 upgrade_strategy.drains: Unknown key "drains"; did you mean "drain"?',
    '8 upgrade_strategy.node_drain_input.forces: Unknown key "forces"; did you mean "force"?',
  ],
  [
    plus('services:\n  etcd:\n    backup_config:\n      s3backupconfig:\n        bucket: b'),
    '8 services.etcd.backup_config.s3backupconfig.bucket_name: "bucket_name" is missing: bucket',
    '8 services.etcd.backup_config.s3backupconfig.endpoint: "endpoint" is missing: …',
    '9 services.etcd.backup_config.s3backupconfig.bucket: Unknown key "bucket"; …',
  ],
]

const MACHINES: readonly Row[] = [
  [nodes('user: a, role: [etcd]'), '2 nodes[0].address: "address" is missing: SSH address'],
  [nodes('address: 10.0.0.1, role: [etcd]'), '2 nodes[0].user: "user" is missing: SSH user'],
  [nodes('address: 10.0.0.1, user: a'), '2 nodes[0].role: "role" is missing: controlplane, etcd, worker'],
  [
    nodes('address: 10.0.0.1, user: a, role: []'),
    '2 nodes[0].role: A machine needs at least one of controlplane, etcd, worker',
  ],
  [nodes('address: 10.0.0.1, user: a, role: worker'), '2 nodes[0].role: Must be a list; write "role: [worker]"'],
  [
    nodes('address: 10.0.0.1, user: a, role: [master]'),
    '2 nodes[0].role[0]: "master" must be one of etcd, controlplane, worker',
  ],
  [
    nodes('address: 10.0.0.1, user: a, role: [control-plane]'),
    '2 nodes[0].role[0]: "control-plane" must be one of etcd, controlplane, worker; did you mean "controlplane"?',
  ],
  [nodes('address: 10.0.0.300, user: a, role: [etcd]'), '2 nodes[0].address: "10.0.0.300" is not an IP address'],
  [
    nodes('address: "a b", user: a, role: [etcd]'),
    '2 nodes[0].address: "a b" is neither an IP address nor a host name',
  ],
  [node('port: 70000'), '2 nodes[0].port: 70000 is not between 1 and 65535'],
  [node('port: ssh'), '2 nodes[0].port: Must be a whole number, not "ssh"'],
  [node('internal_address: nope!'), '2 nodes[0].internal_address: "nope!" is neither …'],
  [node('hostname_override: my_host'), '2 nodes[0].hostname_override: "my_host" cannot be the name of a node: …'],
  [
    nodes('address: "fd00::1", user: a, role: [controlplane, etcd]'),
    '2 nodes[0].address: "fd00::1" cannot be the name of a node; give it a hostname_override',
  ],
  [node('docker_socket: /run/podman.sock'), '2 nodes[0].docker_socket: Docker is not used; …'],
  [
    node('ssh_key: ~/.ssh/id_rsa'),
    '2 nodes[0].ssh_key: This is no key in PEM form (-----BEGIN …); give its text, not a path',
  ],
  [node('labels: {"a b": c}'), '2 nodes[0].labels: Label "a b: c": …'],
  [node('labels: [a]'), '2 nodes[0].labels: Must be a mapping of names to values, not a list'],
  [
    node('taints: [{key: a, effect: NoRun}]'),
    '2 nodes[0].taints[0].effect: "NoRun" must be one of NoSchedule, PreferNoSchedule, NoExecute',
  ],
  [node('taints: [{value: a, effect: NoExecute}]'), '2 nodes[0].taints[0].key: "key" is missing: its key'],
  [nodes(FIRST, FIRST), '3 nodes[1].address: Address "10.0.0.1" is also that of nodes[0]'],
  [
    nodes(`${FIRST}, hostname_override: n`, 'address: 10.0.0.2, user: a, role: [worker], hostname_override: N'),
    '3 nodes[1].hostname_override: Name "n" is also that of nodes[0]',
  ],
  [
    nodes(
      `${FIRST}, internal_address: 10.9.0.1`,
      'address: 10.0.0.2, user: a, role: [worker], internal_address: 10.9.0.1',
    ),
    '3 nodes[1].internal_address: Internal address "10.9.0.1" is also that of nodes[0]',
  ],
  [
    nodes('address: 10.0.0.1, user: a, role: [etcd, worker]'),
    '1 nodes: No machine has role controlplane; at least one must',
  ],
  [nodes('address: 10.0.0.1, user: a, role: [controlplane]'), '1 nodes: No machine has role etcd; at least one must'],
  [
    nodes('address: 10.0.0.1, user: a, role: [worker]'),
    '1 nodes: No machine has role controlplane; at least one must',
    '1 nodes: No machine has role etcd; at least one must',
  ],
  [
    nodes('address: 10.42.0.5, user: a, role: [controlplane, etcd]'),
    '2 nodes[0].address: "10.42.0.5" is in the range of pods, "10.42.0.0/16"; choose another range',
  ],
  [
    node('internal_address: 10.43.7.7'),
    '2 nodes[0].internal_address: "10.43.7.7" is in the range of Services, "10.43.0.0/16"; choose another range',
  ],
  [plus('bastion_host: {address: b}'), '5 bastion_host.user: "user" is missing: SSH user'],
  [plus('bastion_host: {user: b}'), '5 bastion_host.address: "address" is missing: SSH address'],
]

const service = (name: string, rest: string): string => plus(`services:\n  ${name}:\n    ${rest}`)

const SERVICES: readonly Row[] = [
  [
    service('kube-api', 'service_cluster_ip_range: 10.43.0.0'),
    '7 services.kube-api.service_cluster_ip_range: "10.43.0.0" is not an address range; …',
  ],
  [
    service('kube-api', 'service_cluster_ip_range: 10.43.1.0/16'),
    '7 services.kube-api.service_cluster_ip_range: "10.43.1.0/16" has bits set behind its prefix; …',
  ],
  [
    service('kube-api', 'service_cluster_ip_range: 10.43.0.0/16,10.44.0.0/16'),
    '7 services.kube-api.service_cluster_ip_range: Two ranges must be of different families, one IPv4 and one IPv6',
  ],
  [
    service(
      'kube-api',
      'service_cluster_ip_range: 10.50.0.0/16\n  kube-controller:\n    service_cluster_ip_range: 10.51.0.0/16',
    ),
    '9 services.kube-controller.service_cluster_ip_range: "10.51.0.0/16" differs from "10.50.0.0/16" of kube-api; give the range in one place',
  ],
  [
    service('kube-controller', 'cluster_cidr: 10.43.128.0/17'),
    '7 services.kube-controller.cluster_cidr: The ranges of pods "10.43.128.0/17" and of Services "10.43.0.0/16" overlap',
  ],
  [
    service('kube-controller', 'cluster_cidr: fd00::/48'),
    '7 services.kube-controller.cluster_cidr: Pods have IPv6 and Services IPv4; both must have the same, in one order',
  ],
  [
    service('kube-api', 'service_cluster_ip_range: 10.43.0.0/29'),
    '7 services.kube-api.service_cluster_ip_range: "10.43.0.0/29" has no tenth address for DNS; use a wider range',
  ],
  [
    service('kubelet', 'cluster_dns_server: 10.96.0.10'),
    '7 services.kubelet.cluster_dns_server: "10.96.0.10" is not in the range of Services, …',
  ],
  [
    service('kubelet', 'cluster_dns_server: 10.43.0.1'),
    '7 services.kubelet.cluster_dns_server: "10.43.0.1" is the address of the API server\'s own Service; …',
  ],
  [service('kubelet', 'cluster_dns_server: dns'), '7 services.kubelet.cluster_dns_server: "dns" is not an IP address'],
  [
    service('kubelet', 'cluster_domain: Cluster_Local'),
    '7 services.kubelet.cluster_domain: "Cluster_Local" is not a domain; …',
  ],
  [
    service('kube-api', 'service_node_port_range: 30000'),
    '7 services.kube-api.service_node_port_range: "30000" is not a port range; …',
  ],
  [
    service('kube-api', 'service_node_port_range: 32767-30000'),
    '7 services.kube-api.service_node_port_range: "32767-30000" ends before it begins',
  ],
  [
    service('kube-api', 'pod_security_policy: true'),
    '7 services.kube-api.pod_security_policy: PodSecurityPolicy was removed in Kubernetes 1.25; …',
  ],
  [
    service('kube-api', 'pod_security_configuration: baseline'),
    '7 services.kube-api.pod_security_configuration: "baseline" must be one of privileged, restricted',
  ],
  [
    service('kube-api', 'audit_log: {configuration: {format: xml}}'),
    '7 services.kube-api.audit_log.configuration.format: "xml" must be one of json, legacy',
  ],
  [
    service('kube-api', 'audit_log: {configuration: {policy: {kind: Polizei}}}'),
    '7 services.kube-api.audit_log.configuration.policy: Must be an object of kind "Policy"',
  ],
  [service('kube-api', 'extra_args: {--v: 4}'), '7 services.kube-api.extra_args: "--v" is not the name of a flag; …'],
  [
    service('kube-api', 'extra_args: [v=4]'),
    '7 services.kube-api.extra_args: Must be a mapping of names to values, not a list',
  ],
  [
    service('kube-api', 'extra_args_array: {a: b}'),
    '7 services.kube-api.extra_args_array.a: Must be a list; write "a: [b]"',
  ],
  [
    service('kubelet', 'extra_binds: ["/host/dev:/dev"]'),
    '7 services.kubelet.extra_binds: "/host/dev:/dev" shows a folder under another name; …',
  ],
  [
    service('kubelet', 'extra_env: [HTTP_PROXY]'),
    '7 services.kubelet.extra_env: "HTTP_PROXY" is not a variable; use a form such as NAME=value',
  ],
  [
    service('etcd', 'external_urls: [https://e:2379]'),
    '4 nodes[0].role: With services.etcd.external_urls no machine can have role etcd',
    '7 services.etcd.external_urls: An external etcd needs services.etcd.ca_cert too',
    '7 services.etcd.external_urls: An external etcd needs services.etcd.cert too',
    '7 services.etcd.external_urls: An external etcd needs services.etcd.key too',
    '7 services.etcd.external_urls: An external etcd needs services.etcd.path too',
  ],
  [service('etcd', 'external_urls: [etcd]'), '7 services.etcd.external_urls[0]: "etcd" is not a URL; …'],
  [service('etcd', 'creation: 12'), '7 services.etcd.creation: "12" is not a duration; use a form such as 12h or 90m'],
  [
    service('etcd', 'backup_config: {retention: -1}'),
    '7 services.etcd.backup_config.retention: -1 is too small; the least is 1',
  ],
  [
    service('etcd', 'ca_cert: /etc/ca.pem'),
    '7 services.etcd.ca_cert: This is no certificate in PEM form (-----BEGIN …); give its text, not a path',
  ],
]

const ADDONS: readonly Row[] = [
  [
    plus('network: {plugin: weave}'),
    '5 network.plugin: Weave Net was discontinued before Kubernetes 1.30; use canal or flannel',
  ],
  [plus('network: {plugin: aci}'), '5 network.plugin: Cisco provides the manifests of ACI; …'],
  [
    plus('network: {plugin: flanel}'),
    '5 network.plugin: "flanel" must be one of canal, flannel, calico, none; did you mean "flannel"?',
  ],
  [
    plus('network: {plugin: flannel, mtu: 1400}'),
    '5 network.mtu: The MTU of flannel cannot be set; use "plugin: canal"',
  ],
  [
    plus('network: {options: {canal_ifaces: eth0}}'),
    '5 network.options: Unknown option "canal_ifaces"; did you mean "canal_iface"?',
  ],
  [
    plus('network: {options: {flannel_backend_port: vx}}'),
    '5 network.options: Option "flannel_backend_port" must be a number',
  ],
  [
    plus('network: {options: {flannel_backend_type: udp}}'),
    '5 network.options: Option "flannel_backend_type" must be one of vxlan, host-gw, none, not "udp"',
  ],
  [
    plus('network: {weave_network_provider: {password: x}}'),
    '5 network.weave_network_provider: Weave Net was discontinued …',
  ],
  [
    plus('network: {tolerations: [{operator: Is}]}'),
    '5 network.tolerations[0].operator: "Is" must be one of Equal, Exists…',
  ],
  [plus('ingress: {provider: traefik}'), '5 ingress.provider: "traefik" must be one of nginx, none'],
  [
    plus('ingress: {network_mode: hostport}'),
    '5 ingress.network_mode: "hostport" must be one of hostPort, hostNetwork, none; did you mean "hostPort"?',
  ],
  [plus('ingress: {http_port: 443}'), '5 ingress.https_port: Port 443 is that of HTTP already'],
  [
    plus('ingress: {update_strategy: {strategy: Recreate}}'),
    '5 ingress.update_strategy.strategy: "Recreate" must be one of RollingUpdate, OnDelete',
  ],
  [plus('dns: {provider: bind}'), '5 dns.provider: "bind" must be one of coredns, kube-dns, none'],
  [plus('dns: {upstreamnameservers: [ns1]}'), '5 dns.upstreamnameservers[0]: "ns1" is not an IP address'],
  [
    plus('dns: {nodelocal: {ip_address: 10.43.0.10}}'),
    '5 dns.nodelocal.ip_address: The cache on the nodes needs a separate address, …',
  ],
  [
    plus('dns: {linear_autoscaler_params: {min: 5, max: 2}}'),
    '5 dns.linear_autoscaler_params.max: At most 2 cannot be at least 5',
  ],
  [plus('monitoring: {replicas: -2}'), '5 monitoring.replicas: -2 is too small; the least is 1'],
  [plus('addons: "a: ["'), '5 addons: The manifests are not YAML: …'],
  [plus('addons: |\n  kind: Pod'), '5 addons: Manifest 1 has no apiVersion and kind'],
  [
    plus('authentication: {strategy: webhook}'),
    '5 authentication.strategy: Certificates are how the programs know each other; write x509|webhook',
  ],
  [
    plus('authentication: {strategy: x509|ldap}'),
    '5 authentication.strategy: "ldap" is not known; write x509, or x509|webhook',
  ],
  [
    plus('authentication: {sans: ["*.a b"]}'),
    '5 authentication.sans[0]: "*.a b" is neither an IP address nor a host name',
  ],
  [plus('authorization: {mode: abac}'), '5 authorization.mode: "abac" must be one of rbac, none…'],
  [plus('kubernetes_version: latest'), '5 kubernetes_version: "latest" is no version; write v1.36.4, or leave it out'],
  [plus('system_images: {corednss: a}'), '5 system_images: Unknown image "corednss"; …'],
  [
    plus('private_registries: [{url: r, user: a}]'),
    '5 private_registries[0]: Registry "r" needs both user and password, or neither',
  ],
  [plus('private_registries: [{url: r}, {url: r}]'), '5 private_registries[1].url: Registry "r" is given twice'],
  [
    plus('private_registries: [{url: r, is_default: true}, {url: s, is_default: true}]'),
    '5 private_registries[1].is_default: Only one registry can be the default',
  ],
  [plus('restore: {restore: true}'), '5 restore.restore: Which snapshot? Set restore.snapshot_name'],
  [
    plus('rotate_certificates: {services: [kubelets]}'),
    '5 rotate_certificates.services[0]: "kubelets" must be one of …',
  ],
  [
    plus('cloud_provider: {name: custom}'),
    '5 cloud_provider.name: A custom provider needs its configuration text in customCloudProvider',
  ],
  [plus('cloud_provider: {name: cloudy}'), '5 cloud_provider.name: "cloudy" must be one of aws, …'],
  [
    plus('upgrade_strategy: {max_unavailable_worker: 0}'),
    '5 upgrade_strategy.max_unavailable_worker: No machine could be upgraded; use at least 1',
  ],
  [
    plus('upgrade_strategy: {max_unavailable_worker: many}'),
    '5 upgrade_strategy.max_unavailable_worker: Must be a whole number or a share such as "10%", not "many"',
  ],
  [plus('cri_dockerd_stream_server_port: "10010"'), '5 cri_dockerd_stream_server_port: cri-dockerd is not used; …'],
]

/** One file with many kinds of faults, all reported at once. */
const MANY: Row = [
  `nodes:
- address: 10.0.0.1
  users: root
  role: [controlplane, etcd]
- address: 10.0.0.1
  user: root
  role: [wroker]
services:
  kubelet:
    cluster_dns_server: 10.96.0.10
  kube-api:
    extra_arg: {}
network:
  plugin: flannel
  mtu: 1400
clustername: c
`,
  '2 nodes[0].user: "user" is missing: SSH user',
  '3 nodes[0].users: Unknown key "users"; did you mean "user"?',
  '7 nodes[1].role[0]: "wroker" must be one of etcd, controlplane, worker; did you mean "worker"?',
  '10 services.kubelet.cluster_dns_server: "10.96.0.10" is not in the range of Services, …',
  '12 services.kube-api.extra_arg: Unknown key "extra_arg"; did you mean "extra_args"?',
  '15 network.mtu: The MTU of flannel cannot be set; …',
  '16 clustername: Unknown key "clustername"; did you mean "cluster_name"?',
]

const TABLES = { SHAPES, KEYS, MACHINES, SERVICES, ADDONS, MANY: [MANY] }

function matches(found: string, wanted: string): boolean {
  const parts = wanted.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`).test(found)
}

describe('faults of an invalid cluster.yml', () => {
  for (const [name, rows] of Object.entries(TABLES)) {
    for (const [index, [file, ...wanted]] of rows.entries()) {
      it(`are reported in case ${index + 1} of ${name.toLowerCase()}: ${wanted[0] ?? ''}`, () => {
        const { cluster, faults } = readClusterFile(file)
        const found = faults.map(({ line, path, text }) => `${line} ${path}: ${text}`)
        const expected = wanted.filter((fault) => fault !== '')
        const isAsWanted =
          found.length === expected.length && found.every((one, at) => matches(one, expected[at] as string))
        assert.ok(isAsWanted, `found\n${found.join('\n')}\nwanted\n${expected.join('\n')}`)
        assert.equal(cluster === undefined, expected.length > 0)
      })
    }
  }

  it('are tested in more than a hundred cases', () => {
    const wrong = Object.values(TABLES).flatMap((rows) => rows.filter(([, fault]) => fault !== ''))
    assert.ok(wrong.length > 100, `${wrong.length}`)
  })

  it('include the column', () => {
    const [fault] = readClusterFile(`${MINIMAL}network: {plugin: weave}\n`).faults
    assert.equal(fault?.column, 19)
  })
})
