/** The rows about addons in the table of cluster.yml: network plugin, ingress, DNS, metrics. */
import { closest } from '#lib/nearest.ts'

import type {
  AddonPlacement,
  Amount,
  Dns,
  Ingress,
  LinearAutoscaler,
  Monitoring,
  Network,
  NetworkPlugin,
  Toleration,
  UpdateStrategy,
} from '../cluster.ts'
import { areLabels, isIp, isRange } from './field-checks.ts'
import { amount, choice, decimal, type Details, document, type Field, flag, list, map, type Members } from './field.ts'
import { object, text, whole, words } from './field.ts'

const selector: Field<Readonly<Record<string, string>>> = map('labels of the nodes it runs on', text('value'), {
  check: areLabels,
})

const toleration: Field<Toleration> = object<Toleration>(
  'a toleration',
  {
    key: text('key of the taint; empty matches every taint'),
    operator: text('Equal or Exists', { oneOf: ['Equal', 'Exists'] }),
    value: text('value of the taint'),
    effect: text('effect of the taint', { oneOf: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] }),
    tolerationSeconds: whole('toleration time in seconds'),
  },
  { anyCase: true },
)

function strategy(surges: boolean): Field<UpdateStrategy> {
  const rolling: Members<UpdateStrategy['rollingUpdate']> = {
    maxUnavailable: amount('maximum number of unavailable pods'),
    maxSurge: amount('maximum number of additional pods', surges ? {} : { check: noSurge }),
  }
  const known = surges ? ['RollingUpdate', 'Recreate'] : ['RollingUpdate', 'OnDelete']
  return object<UpdateStrategy>(
    'update strategy of the pods',
    {
      strategy: text('type of the strategy', { default: 'RollingUpdate', oneOf: known, aliases: ['type'] }),
      rollingUpdate: object<UpdateStrategy['rollingUpdate']>('its limits', rolling, {
        anyCase: true,
        aliases: ['rolling_update'],
      }),
    },
    { optional: true, anyCase: true },
  )
}

function noSurge(value: Amount): string | undefined {
  return value === 0 || value === '0%' ? undefined : 'The pods use host ports, so additional pods are not possible'
}

function placement(surges: boolean): Members<AddonPlacement> {
  return {
    options: map('options of the addon', text('value')),
    node_selector: selector,
    tolerations: list('tolerations', toleration),
    update_strategy: strategy(surges),
  }
}

/** The allowed `network.options` of each plugin, from RKE's documentation. */
export const NETWORK_OPTIONS: Readonly<Record<NetworkPlugin, readonly string[]>> = {
  flannel: [
    'flannel_iface',
    'flannel_backend_type',
    'flannel_backend_port',
    'flannel_backend_vni',
    'flannel_autoscaler_priority_class_name',
    'flannel_priority_class_name',
    'kube_flannel_priority_class_name',
  ],
  canal: [
    'canal_iface',
    'canal_flannel_backend_type',
    'canal_flannel_backend_port',
    'canal_flannel_backend_vni',
    'canal_flex_volume_plugin_dir',
    'canal_autoscaler_priority_class_name',
    'canal_priority_class_name',
  ],
  calico: [
    'calico_cloud_provider',
    'calico_flex_volume_plugin_dir',
    'calico_autoscaler_priority_class_name',
    'calico_priority_class_name',
  ],
  none: [],
}

const ALL_OPTIONS = Object.values(NETWORK_OPTIONS).flat()

/** RKE ignored unknown names, so that typing errors had no visible effect. */
function areNetworkOptions(options: Readonly<Record<string, string>>): string | undefined {
  for (const [name, value] of Object.entries(options)) {
    if (!ALL_OPTIONS.includes(name)) {
      const near = closest(name, ALL_OPTIONS)
      return `Unknown option "${name}"${near === undefined ? '' : `; did you mean "${near}"?`}`
    }
    if (/_backend_(port|vni)$/.test(name) && !/^\d{1,8}$/.test(value)) return `Option "${name}" must be a number`
    const types = ['vxlan', 'host-gw', 'none']
    if (name.endsWith('_backend_type') && !types.includes(value)) {
      return `Option "${name}" must be one of ${types.join(', ')}, not "${value}"`
    }
  }
  return undefined
}

const GONE_PLUGINS: ReadonlyMap<string, string> = new Map([
  ['weave', 'Weave Net was discontinued before Kubernetes 1.30; use canal or flannel'],
  ['aci', 'Cisco provides the manifests of ACI; use "plugin: none" and add them to addons_include'],
])

/** RKE used other programs for these. */
function ownNetwork(plugin: string): string | undefined {
  if (plugin !== 'calico' && plugin !== 'canal') return undefined
  return `hyperkube's own flannel runs instead of ${plugin}, and kube-network-policies enforces network policies; for another network use "plugin: none" and addons_include`
}

const plugin: Field<NetworkPlugin> = {
  ...(text('pod network: canal, flannel, calico or none', { default: 'canal' }) as Field<NetworkPlugin>),
  check: (value) => {
    if (Object.hasOwn(NETWORK_OPTIONS, value)) return undefined
    const near = closest(value, Object.keys(NETWORK_OPTIONS))
    const gone = GONE_PLUGINS.get(value)
    if (gone !== undefined) return gone
    return `"${value}" must be one of canal, flannel, calico, none${near === undefined ? '' : `; did you mean "${near}"?`}`
  },
  notice: ownNetwork,
}

function provider(member: 'iface' | 'cloud_provider' | 'password', details: Details<object>): Field<never> {
  const members = { [member]: words('its value', { secret: member === 'password' }) }
  return object<object>('an option of the plugin', members, { optional: true, ...details }) as Field<never>
}

export const network: Field<Network> = object<Network>('network between pods', {
  ...placement(false),
  plugin,
  options: map('options of the plugin', text('value'), { check: areNetworkOptions }),
  mtu: whole('MTU of pods; 0: derived from the interface', {
    default: 0,
    min: 0,
    max: 65_535,
  }),
  calico_network_provider: provider('cloud_provider', { pending: 'The network needs no cloud' }),
  canal_network_provider: provider('iface', {}),
  flannel_network_provider: provider('iface', {}),
  weave_network_provider: provider('password', { past: true, check: () => GONE_PLUGINS.get('weave') }),
  aci_network_provider: document('ACI', { past: true, check: () => GONE_PLUGINS.get('aci') }),
})

const port = (about: string, byDefault: number): Field<number> =>
  whole(about, { default: byDefault, min: 1, max: 65_535, zeroIsUnset: true })

export const ingress: Field<Ingress> = object<Ingress>('ingress controller', {
  ...placement(false),
  provider: choice('nginx or none', ['nginx', 'none'], { default: 'nginx' }),
  options: map("settings of nginx's ConfigMap", text('value')),
  extra_args: map('flags of the controller', text('value')),
  dns_policy: words('dnsPolicy of its pods', { oneOf: ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'] }),
  extra_envs: list('environment variables of its pods', document('an EnvVar')),
  extra_volumes: list('volumes of its pods', document('a Volume')),
  extra_volume_mounts: list('mounts of its containers', document('a VolumeMount')),
  http_port: port('HTTP port on the nodes', 80),
  https_port: port('HTTPS port on the nodes', 443),
  network_mode: choice('network mode of the ports', ['hostPort', 'hostNetwork', 'none'], { default: 'hostPort' }),
  default_backend: flag('whether a default backend answers requests for unknown hosts', false, {
    pending: 'The controller itself answers them',
  }),
  default_ingress_class: flag('whether it serves Ingresses without a class', true),
  default_http_backend_priority_class_name: words('priority class of the default backend', {
    pending: 'The controller itself is that backend',
  }),
  nginx_ingress_controller_priority_class_name: words('priority class of the controller'),
})

const autoscaler: Field<LinearAutoscaler> = object<LinearAutoscaler>('minimum number of servers', {
  cores_per_replica: decimal('cores per server', { default: 128, min: 0, aliases: ['coresPerReplica'] }),
  nodes_per_replica: decimal('nodes per server', { default: 4, min: 0, aliases: ['nodesPerReplica'] }),
  min: whole('at least', { default: 1, min: 1 }),
  max: whole('at most', { min: 1, zeroIsUnset: true }),
  prevent_single_point_failure: flag('whether to run two servers if there are two nodes', true, {
    aliases: ['preventSinglePointFailure'],
  }),
})

export const dns: Field<Dns> = object<Dns>('cluster DNS', {
  ...placement(true),
  provider: {
    ...choice('coredns or none', ['coredns', 'kube-dns', 'none'] as const, { default: 'coredns' }),
    notice: (value: string) =>
      value === 'kube-dns' ? 'kube-dns was discontinued; CoreDNS is used instead' : undefined,
    normalize: (value: string) => (value === 'kube-dns' ? 'coredns' : value) as 'coredns',
  } as Field<Dns['provider']>,
  upstreamnameservers: list('upstream servers for other names', text('address', { check: isNameServer })),
  reversecidrs: list('ranges for reverse lookups', text('range', { check: isRange })),
  stubdomains: map('domains with other servers', list('servers', text('address', { check: isNameServer }))),
  nodelocal: object<NonNullable<Dns['nodelocal']>>(
    'DNS cache on every node',
    {
      ip_address: text('its address, such as 169.254.20.10', { required: true, check: isIp }),
      node_selector: selector,
      update_strategy: strategy(false),
      nodelocal_dns_priority_class_name: words('its priority class'),
    },
    { optional: true },
  ),
  linear_autoscaler_params: autoscaler,
})

function isNameServer(value: string): string | undefined {
  const address = /^\[(.+)\]:\d+$/.exec(value)?.[1] ?? /^([\d.]+):\d+$/.exec(value)?.[1] ?? value
  return isIp(address)
}

export const monitoring: Field<Monitoring> = object<Monitoring>('resource metrics for kubectl top and autoscalers', {
  ...placement(true),
  provider: choice('metrics-server or none', ['metrics-server', 'none'], { default: 'metrics-server' }),
  replicas: whole('number of replicas', { default: 1, min: 1, zeroIsUnset: true }),
  metrics_server_priority_class_name: words('its priority class'),
})
