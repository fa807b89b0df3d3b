/** Validates rules of cluster.yml that involve several keys. Each error names the key to change. */
import { contains, overlaps, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { parseYamlAll } from '#lib/yaml/yaml.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

import { type ClusterFile, nodesOf } from '../cluster.ts'
import { NETWORK_OPTIONS } from './addon-schema.ts'
import type { Reading } from './field-reader.ts'

/** The keys of a rule: the rule is skipped while one of them is invalid. */
export interface Rule {
  readonly looksAt: readonly string[]
  readonly check: (cluster: ClusterFile, reading: Reading) => void
}

const RANGES = [
  'services.kube-api.service_cluster_ip_range',
  'services.kube-controller.service_cluster_ip_range',
  'services.kube-controller.cluster_cidr',
]

export const RULES: readonly Rule[] = [
  { looksAt: ['nodes'], check: namesAreUnique },
  { looksAt: ['nodes'], check: namesAreDns },
  { looksAt: ['nodes', 'services.etcd.external_urls'], check: planesHaveMachines },
  { looksAt: ['nodes', 'services.etcd'], check: externalEtcdIsWhole },
  { looksAt: RANGES, check: rangesAgree },
  { looksAt: ['nodes', ...RANGES], check: machinesAreOutsideOfRanges },
  { looksAt: ['dns.nodelocal', 'services.kubelet.cluster_dns_server', ...RANGES], check: dnsIsReachable },
  { looksAt: ['network'], check: networkOptionsFit },
  { looksAt: ['services.kube-api.secrets_encryption_config'], check: secretsAreWhole },
  { looksAt: ['private_registries'], check: registriesDiffer },
  { looksAt: ['restore'], check: restoreHasName },
  { looksAt: ['rotate_certificates'], check: rotationKnowsServices },
  { looksAt: ['addons'], check: addonsAreManifests },
  { looksAt: ['ingress'], check: ingressPortsDiffer },
  { looksAt: ['dns.linear_autoscaler_params'], check: autoscalerHasRoom },
  { looksAt: ['cloud_provider'], check: cloudHasConfig },
  { looksAt: ['authorization'], check: authorizationIsMeant },
]

/** The key of a node, and its description. */
const UNIQUE: readonly (readonly [key: 'address' | 'internal_address' | 'hostname_override', noun: string])[] = [
  ['address', 'Address'],
  ['internal_address', 'Internal address'],
  ['hostname_override', 'Name'],
]

function namesAreUnique({ nodes }: ClusterFile, reading: Reading): void {
  for (const [key, noun] of UNIQUE) {
    const first = new Map<string, number>()
    for (const [index, node] of nodes.entries()) {
      const value = node[key].toLowerCase()
      const other = first.get(value)
      first.set(value, other ?? index)
      const path = `nodes[${index}].${key}`
      // A fault of a derived value was already reported for the address.
      const isOwn = reading.isGiven(path) || key === 'address'
      if (other !== undefined && isOwn) reading.fault(path, `${noun} "${node[key]}" is also that of nodes[${other}]`)
    }
  }
}

function namesAreDns({ nodes }: ClusterFile, reading: Reading): void {
  for (const [index, { hostname_override }] of nodes.entries()) {
    const [complaint] = dns1123Subdomain(hostname_override)
    const given = `nodes[${index}].hostname_override`
    const path = reading.isGiven(given) ? given : `nodes[${index}].address`
    const isIpv6 = hostname_override.includes(':') && path !== given
    if (isIpv6) reading.fault(path, `"${hostname_override}" cannot be the name of a node; give it a hostname_override`)
    else if (complaint !== undefined)
      reading.fault(path, `"${hostname_override}" cannot be the name of a node: ${complaint}`)
  }
}

function planesHaveMachines(cluster: ClusterFile, reading: Reading): void {
  const etcd = nodesOf(cluster, 'etcd').length
  const isExternal = cluster.services.etcd.external_urls.length > 0
  if (nodesOf(cluster, 'controlplane').length === 0) {
    reading.fault('nodes', 'No machine has role controlplane; at least one must')
  }
  if (etcd === 0 && !isExternal) reading.fault('nodes', 'No machine has role etcd; at least one must')
  if (nodesOf(cluster, 'worker').length === 0) {
    reading.notice('nodes', 'No machine has role worker: only pods that tolerate the taints of the others will run')
  }
  if (etcd > 0 && etcd % 2 === 0) {
    reading.notice('nodes', `${etcd} machines have role etcd: the cluster tolerates the loss of ${etcd - 1} could`)
  }
}

function externalEtcdIsWhole(cluster: ClusterFile, reading: Reading): void {
  const { etcd } = cluster.services
  if (etcd.external_urls.length === 0) return
  for (const key of ['ca_cert', 'cert', 'key', 'path'] as const) {
    if (etcd[key] === '')
      reading.fault('services.etcd.external_urls', `An external etcd needs services.etcd.${key} too`)
  }
  for (const [index, { role }] of cluster.nodes.entries()) {
    if (role.includes('etcd')) {
      reading.fault(`nodes[${index}].role`, 'With services.etcd.external_urls no machine can have role etcd')
    }
  }
}

const SERVICE_RANGE = 'service_cluster_ip_range'

function rangesAgree({ services }: ClusterFile, reading: Reading): void {
  const api = services['kube-api'][SERVICE_RANGE]
  const controller = services['kube-controller'][SERVICE_RANGE]
  if (api !== controller) {
    const path = `services.kube-controller.${SERVICE_RANGE}`
    reading.fault(path, `"${controller}" differs from "${api}" of kube-api; give the range in one place`)
    return
  }
  const pods = services['kube-controller'].cluster_cidr
  const path = reading.isGiven('services.kube-controller.cluster_cidr')
    ? 'services.kube-controller.cluster_cidr'
    : pathOfServiceRange(reading)
  for (const [one, other] of blocksOf(pods).flatMap((one) => blocksOf(api).map((other) => [one, other] as const))) {
    if (overlaps(one, other)) reading.fault(path, `The ranges of pods "${pods}" and of Services "${api}" overlap`)
  }
  const families = [pods, api].map((range) =>
    blocksOf(range)
      .map(({ family }) => `IPv${family}`)
      .join(' and '),
  )
  if (families[0] !== families[1]) {
    reading.fault(path, `Pods have ${families[0]} and Services ${families[1]}; both must have the same, in one order`)
  }
}

function blocksOf(range: string): NonNullable<ReturnType<typeof parseCidr>>[] {
  return range.split(',').flatMap((part) => parseCidr(part) ?? [])
}

function pathOfServiceRange(reading: Reading): string {
  const own = `services.kube-api.${SERVICE_RANGE}`
  return reading.isGiven(own) ? own : `services.kube-controller.${SERVICE_RANGE}`
}

function machinesAreOutsideOfRanges({ nodes, services }: ClusterFile, reading: Reading): void {
  const ranges = [
    ['pods', services['kube-controller'].cluster_cidr],
    ['Services', services['kube-api'][SERVICE_RANGE]],
  ] as const
  for (const [index, node] of nodes.entries()) {
    for (const [what, range] of ranges) {
      const ip = parseIp(node.internal_address)
      if (ip === undefined || !blocksOf(range).some((block) => contains(block, ip))) continue
      const own = `nodes[${index}].internal_address`
      const path = reading.isGiven(own) ? own : `nodes[${index}].address`
      reading.fault(path, `"${node.internal_address}" is in the range of ${what}, "${range}"; choose another range`)
    }
  }
}

function dnsIsReachable({ services, dns }: ClusterFile, reading: Reading): void {
  const range = services['kube-api'][SERVICE_RANGE]
  const address = services.kubelet.cluster_dns_server
  const path = 'services.kubelet.cluster_dns_server'
  if (address === '') {
    return reading.fault(pathOfServiceRange(reading), `"${range}" has no tenth address for DNS; use a wider range`)
  }
  const ip = parseIp(address)
  const blocks = blocksOf(range)
  if (ip !== undefined && !blocks.some((block) => contains(block, ip))) {
    reading.fault(path, `"${address}" is not in the range of Services, "${range}"; omit it to use the tenth address`)
  }
  if (ip !== undefined && blocks.some((block) => block.base + 1n === ip.value)) {
    reading.fault(path, `"${address}" is the address of the API server's own Service; leave it out to have the tenth`)
  }
  if (dns.nodelocal && dns.nodelocal.ip_address === address) {
    reading.fault('dns.nodelocal.ip_address', 'The cache on the nodes needs a separate address, such as 169.254.20.10')
  }
}

function networkOptionsFit({ network }: ClusterFile, reading: Reading): void {
  if (network.plugin === 'flannel' && network.mtu > 0) {
    reading.fault('network.mtu', 'The MTU of flannel cannot be set; use "plugin: canal"')
  }
  for (const name of Object.keys(network.options)) {
    if (!NETWORK_OPTIONS[network.plugin].includes(name)) {
      reading.notice(`network.options.${name}`, `"${name}" has no effect with plugin "${network.plugin}"`)
    } else if (!/_(?:iface|backend_(?:type|port|vni))$/.test(name)) {
      reading.notice(`network.options.${name}`, `"${name}" has no effect: no pod runs the network`)
    }
  }
}

function secretsAreWhole({ services }: ClusterFile, reading: Reading): void {
  const { enabled, custom_config } = services['kube-api'].secrets_encryption_config
  if (custom_config !== undefined && !enabled) {
    const path = 'services.kube-api.secrets_encryption_config.custom_config'
    reading.notice(path, 'Nothing is encrypted unless "enabled" is true')
  }
}

function registriesDiffer({ private_registries: registries }: ClusterFile, reading: Reading): void {
  const seen = new Set<string>()
  for (const [index, { url, user, password, is_default, ecr_credential_plugin }] of registries.entries()) {
    const path = `private_registries[${index}]`
    if (seen.has(url)) reading.fault(`${path}.url`, `Registry "${url}" is given twice`)
    seen.add(url)
    if ((user === '') !== (password === '')) {
      reading.fault(path, `Registry "${url}" needs both user and password, or neither`)
    }
    if (user !== '' && ecr_credential_plugin) {
      reading.fault(`${path}.ecr_credential_plugin`, 'Passwords come from the plugin or from the file, not from both')
    }
    if (is_default && registries.findIndex((other) => other.is_default) !== index) {
      reading.fault(`${path}.is_default`, 'Only one registry can be the default')
    }
  }
}

function restoreHasName({ restore }: ClusterFile, reading: Reading): void {
  if (restore.restore && restore.snapshot_name === '') {
    reading.fault('restore.restore', 'Which snapshot? Set restore.snapshot_name')
  }
}

/** The services that `build cert rotate --service` accepts. */
export const ROTATED_SERVICES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'etcd',
] as const

function rotationKnowsServices({ rotate_certificates }: ClusterFile, reading: Reading): void {
  for (const [index, service] of (rotate_certificates?.services ?? []).entries()) {
    if (ROTATED_SERVICES.includes(service as never)) continue
    const known = ROTATED_SERVICES.join(', ')
    reading.fault(`rotate_certificates.services[${index}]`, `"${service}" must be one of ${known}`)
  }
}

function addonsAreManifests({ addons }: ClusterFile, reading: Reading): void {
  try {
    for (const [index, manifest] of parseYamlAll(addons).entries()) {
      const { apiVersion, kind } = (manifest ?? {}) as { apiVersion?: unknown; kind?: unknown }
      const isManifest = typeof apiVersion === 'string' && typeof kind === 'string'
      if (!isManifest) reading.fault('addons', `Manifest ${index + 1} has no apiVersion and kind`)
    }
  } catch (error) {
    reading.fault('addons', `The manifests are not YAML: ${(error as Error).message}`)
  }
}

function ingressPortsDiffer({ ingress }: ClusterFile, reading: Reading): void {
  if (ingress.provider !== 'none' && ingress.http_port === ingress.https_port) {
    reading.fault('ingress.https_port', `Port ${ingress.https_port} is that of HTTP already`)
  }
}

function autoscalerHasRoom({ dns }: ClusterFile, reading: Reading): void {
  const { min, max, cores_per_replica, nodes_per_replica } = dns.linear_autoscaler_params
  const path = 'dns.linear_autoscaler_params'
  if (max !== undefined && max < min) reading.fault(`${path}.max`, `At most ${max} cannot be at least ${min}`)
  if (cores_per_replica === 0 && nodes_per_replica === 0) {
    reading.fault(path, 'cores_per_replica or nodes_per_replica must be greater than 0')
  }
}

function cloudHasConfig({ cloud_provider: cloud }: ClusterFile, reading: Reading): void {
  if (cloud.name === 'custom' && cloud.customCloudProvider === '') {
    reading.fault('cloud_provider.name', 'A custom provider needs its configuration text in customCloudProvider')
  }
}

function authorizationIsMeant(cluster: ClusterFile, reading: Reading): void {
  if (cluster.authorization.mode === 'none') {
    reading.notice('authorization.mode', 'All authenticated users have full access')
  }
}
