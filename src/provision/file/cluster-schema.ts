/** The table of cluster.yml: every key of RKE with its type, default, rule and current effect. */
import { parseSemanticVersion } from '#lib/semver.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'

import type {
  Authentication,
  BastionHost,
  CloudProvider,
  ClusterFile,
  ClusterNode,
  PrivateRegistry,
  Role,
  SshAccess,
  Taint,
  UpgradeStrategy,
} from '../cluster.ts'
import { ROLES } from '../cluster.ts'
import { dns, ingress, monitoring, network } from './addon-schema.ts'
import { areLabels, isDuration, isHost, isPem } from './field-checks.ts'
import {
  amount,
  choice,
  document,
  type Field,
  flag,
  list,
  map,
  type Members,
  object,
  text,
  whole,
  words,
} from './field.ts'
import { services } from './service-schema.ts'

const SSH: Members<SshAccess> = {
  port: whole('SSH port', { default: 22, min: 1, max: 65_535, zeroIsUnset: true }),
  user: text('SSH user', { required: true }),
  ssh_agent_auth: flag('whether the SSH agent has the key', false),
  ssh_key: text('private key', { secret: true, check: isPem('key') }),
  ssh_key_path: text('file of the private key'),
  ssh_cert: text('certificate of the key'),
  ssh_cert_path: text("file of the key's certificate"),
}

const DOCKER_SOCKET = '/var/run/docker.sock'

function noDocker(value: string): string | undefined {
  if (value === DOCKER_SOCKET || value === '/run/docker.sock') return undefined
  return 'Docker is not used; for another socket of containerd set "container-runtime-endpoint" in services.kubelet.extra_args'
}

const taint: Field<Taint> = object<Taint>('a taint of the node', {
  key: text('its key', { required: true }),
  value: words('its value'),
  effect: text('its effect', { required: true, oneOf: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] }),
  timeAdded: text('since when', { aliases: ['time_added'] }),
})

const node: Field<ClusterNode> = object<ClusterNode>('a machine', {
  nodeName: text('its name in other tools'),
  address: text('SSH address', { required: true, check: isHost }),
  ...SSH,
  internal_address: text('address for the other machines; default: address', { check: isHost }),
  role: list<Role>('controlplane, etcd, worker', choice('a role', ROLES), {
    required: true,
    check: (roles) => (roles.length === 0 ? 'A machine needs at least one of controlplane, etcd, worker' : undefined),
    normalize: (roles) => ROLES.filter((role) => roles.includes(role)),
  }),
  hostname_override: text('node name; default: address'),
  docker_socket: text("Docker's socket", { default: DOCKER_SOCKET, past: true, check: noDocker }),
  labels: map('labels of the node', text('value'), { check: areLabels }),
  taints: list('taints of the node', taint),
})

const bastion: Field<BastionHost> = object<BastionHost>(
  'a jump host for SSH to all machines',
  {
    address: text('SSH address', { required: true, check: isHost }),
    ...SSH,
    ignore_proxy_env_vars: flag('whether proxies of the environment are ignored', false, {
      pending: 'They are always ignored',
    }),
  },
  { optional: true },
)

const authentication: Field<Authentication> = object<Authentication>('authentication', {
  strategy: text('x509, or x509|webhook', { default: 'x509', check: isStrategy }),
  sans: list("further names and addresses in the API server's certificate", text('name', { check: isHost })),
  webhook: object<NonNullable<Authentication['webhook']>>(
    'token webhook',
    {
      config_file: words('text of the kubeconfig of the webhook'),
      cache_timeout: text('lifetime of cached answers', { default: '5s', check: isDuration }),
    },
    { optional: true },
  ),
})

function isStrategy(value: string): string | undefined {
  const parts = value.split('|').map((part) => part.trim())
  const unknown = parts.find((part) => part !== 'x509' && part !== 'webhook')
  if (unknown !== undefined) return `"${unknown}" is not known; write x509, or x509|webhook`
  return parts.includes('x509') ? undefined : 'Certificates are how the programs know each other; write x509|webhook'
}

const registry: Field<PrivateRegistry> = object<PrivateRegistry>('a private registry with credentials', {
  url: text('its host; default: Docker Hub', { default: 'docker.io' }),
  user: words('user'),
  password: words('password', { secret: true }),
  is_default: flag('whether it is the default registry', false, { pending: true }),
  ecr_credential_plugin: object<NonNullable<PrivateRegistry['ecr_credential_plugin']>>(
    'passwords from ecr-credential-provider, which must be installed on the machines',
    {
      aws_access_key_id: words('access key'),
      aws_secret_access_key: words('secret key', { secret: true }),
      aws_session_token: words('session token', { secret: true }),
    },
    {
      optional: true,
      aliases: ['ecrCredentialPlugin'],
      notice: () => 'Every machine must have ecr-credential-provider in /opt/hyperkube/credential-providers',
    },
  ),
})

const IN_TREE = ['aws', 'azure', 'openstack', 'vsphere', 'gce']
const CLOUDS = [...IN_TREE, 'external', 'external-aws', 'rancher-vsphere', 'harvester', 'custom']

const cloudBlock = document('settings of the provider; they become /etc/kubernetes/cloud-config')

const cloud: Field<CloudProvider> = object<CloudProvider>('cloud provider of the machines', {
  name: words('its name', {
    oneOf: CLOUDS,
    notice: (name) =>
      IN_TREE.includes(name)
        ? `Cloud providers were removed from Kubernetes in 1.31: addons must include the cloud-controller-manager of ${name}`
        : undefined,
  }),
  useInstanceMetadataHostname: flag('whether the cloud sets the node name', false, {
    pending: 'Set it with hostname_override',
  }),
  awsCloudProvider: cloudBlock,
  azureCloudProvider: cloudBlock,
  openstackCloudProvider: cloudBlock,
  vsphereCloudProvider: cloudBlock,
  harvesterCloudProvider: cloudBlock,
  customCloudProvider: words('text of /etc/kubernetes/cloud-config'),
})

const upgrade: Field<UpgradeStrategy> = object<UpgradeStrategy>('upgrade strategy', {
  max_unavailable_worker: amount('maximum number of unavailable workers', { default: '10%', check: notNone }),
  max_unavailable_controlplane: amount('maximum number of unavailable control planes', { default: 1, check: notNone }),
  drain: flag('whether nodes are drained before', false),
  node_drain_input: object<UpgradeStrategy['node_drain_input']>('drain settings', {
    force: flag('also evict pods without a controller', false),
    ignore_daemonsets: flag('ignore pods of DaemonSets', true, { aliases: ['ignoreDaemonSets'] }),
    delete_local_data: flag('also evict pods with emptyDir volumes', false, { aliases: ['deleteLocalData'] }),
    grace_period: whole('grace period in seconds; -1: the value of the pod', {
      default: -1,
      min: -1,
      aliases: ['gracePeriod'],
    }),
    timeout: whole('drain timeout in seconds', { default: 120, min: 0 }),
  }),
})

function notNone(value: number | string): string | undefined {
  return value === 0 || value === '0%' ? 'No machine could be upgraded; use at least 1' : undefined
}

const OUR_MINOR = KUBERNETES_VERSION.split('.').slice(0, 2).join('.')

function otherVersion(value: string): string | undefined {
  return value.split('-')[0] === KUBERNETES_VERSION || value === OUR_MINOR
    ? undefined
    : `This program is Kubernetes ${KUBERNETES_VERSION}, which the cluster will run instead of ${value}`
}

function isVersion(value: string): string | undefined {
  return parseSemanticVersion(value.replace(/^v/, '')) || /^v\d+\.\d+$/.test(value)
    ? undefined
    : `"${value}" is no version; write ${KUBERNETES_VERSION}, or leave it out`
}

/** RKE images that our programs replace, and that are never pulled. */
const UNUSED_IMAGES =
  /^(etcd|alpine|nginx_proxy|cert_downloader|kubernetes_services_sidecar|kubedns|dnsmasq|kubedns_\w+|kubernetes|nodelocal|ingress(_\w+)?|(flannel|calico|canal|weave|aci)(_\w+)?|windows_pod_infra_container|opflex\w*|openvswitch\w*|gbp_\w+)$/

/** Images of pods. */
export const USED_IMAGES = ['pod_infra_container', 'coredns', 'coredns_autoscaler', 'metrics_server'] as const

const systemImages: Field<Readonly<Record<string, string>>> = map('images of the addons', text('image'), {
  check: (images) => {
    const unknown = Object.keys(images).find((key) => !UNUSED_IMAGES.test(key) && !USED_IMAGES.includes(key as never))
    return unknown === undefined ? undefined : `Unknown image "${unknown}"; known are ${USED_IMAGES.join(', ')}`
  },
  notice: (images) => {
    const given = Object.keys(images).filter((key) => images[key] !== '')
    const ours = given.filter((key) => UNUSED_IMAGES.test(key))
    const pending = given.filter((key) => key === 'pod_infra_container')
    const notes = [
      ...(ours.length === 0 ? [] : [`hyperkube replaces ${ours.join(', ')}`]),
      ...(pending.length === 0 ? [] : [`${pending.join(', ')}: not supported yet`]),
    ]
    return notes.length === 0 ? undefined : notes.join('; ')
  },
})

/** In the order of RKE's documentation, which `build config` uses too. */
export const CLUSTER: Members<Omit<ClusterFile, 'management'>> = {
  nodes: list('the machines', node, {
    required: true,
    check: (nodes) => (nodes.length === 0 ? 'There are no machines; add at least one' : undefined),
  }),
  services,
  network,
  authentication,
  addons: words('manifests to apply after the cluster has started'),
  addons_include: list('files and URLs of manifests', text('path or URL')),
  image_archives: list('archives of images to load on machines without a registry', text('path')),
  system_images: systemImages,
  ssh_key_path: text('private key for machines without one', { default: '~/.ssh/id_rsa' }),
  ssh_cert_path: words('certificate of that key'),
  ssh_agent_auth: flag('whether the SSH agent has the keys', false),
  authorization: object<ClusterFile['authorization']>('authorization', {
    mode: choice('rbac, or none: full access for all users', ['rbac', 'none'], { default: 'rbac' }),
    options: map('options of the mode', text('value')),
  }),
  ignore_docker_version: flag('whether to ignore the Docker version; Docker is not used', false, { past: true }),
  enable_cri_dockerd: flag('whether to enable cri-dockerd', false, {
    past: true,
    notice: (value) => (value ? 'Containers run under containerd; neither Docker nor cri-dockerd is used' : undefined),
  }),
  kubernetes_version: text('version of Kubernetes', {
    default: KUBERNETES_VERSION,
    check: isVersion,
    notice: otherVersion,
    normalize: () => KUBERNETES_VERSION,
  }),
  private_registries: list('private registries', registry),
  ingress,
  cluster_name: text('name of the cluster', { default: 'local' }),
  cloud_provider: cloud,
  prefix_path: text('prefix of all folders on the machines', { default: '/' }),
  win_prefix_path: words('prefix_path on Windows', { past: true }),
  addon_job_timeout: whole('timeout of an addon in seconds', {
    default: 45,
    min: 1,
    zeroIsUnset: true,
    pending: '"up" applies addons itself, without Jobs',
  }),
  bastion_host: bastion,
  monitoring,
  restore: object<ClusterFile['restore']>('a snapshot to restore', {
    restore: flag('whether to restore a snapshot', false, {
      pending: 'Use "hyperkube build etcd snapshot-restore"',
    }),
    snapshot_name: words('name of the snapshot'),
  }),
  rotate_certificates: object<NonNullable<ClusterFile['rotate_certificates']>>(
    'certificates to rotate',
    {
      ca_certificates: flag('also rotate the certificate authorities', false, { aliases: ['caCertificates'] }),
      services: list('only of these services', text('service')),
    },
    { optional: true, pending: 'Use "hyperkube build cert rotate"' },
  ),
  rotate_encryption_key: flag('whether to rotate the encryption key of Secrets', false, {
    pending: 'Use "hyperkube build encrypt rotate-key"',
  }),
  dns,
  upgrade_strategy: upgrade,
  cri_dockerd_stream_server_address: words('address of cri-dockerd', { past: true, check: noStreams }),
  cri_dockerd_stream_server_port: words('port of cri-dockerd', { past: true, check: noStreams }),
}

function noStreams(): string {
  return "cri-dockerd is not used; containerd's streams are set in /etc/containerd/config.toml"
}
