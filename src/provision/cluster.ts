/**
 * A cluster as cluster.yml describes it, read, defaulted and checked. Members are named as in the file (RKE's names), so
 * that people recognise them; what a member means is said once, in the tables of `cluster-schema`.
 */
import type { JsonObject } from '#lib/json-value.ts'

export const ROLES = ['etcd', 'controlplane', 'worker'] as const
export type Role = (typeof ROLES)[number]

/** How to reach a machine: a key or a certificate is given as text, as a path, or by the agent. */
export interface SshAccess {
  readonly port: number
  readonly user: string
  readonly ssh_agent_auth: boolean
  readonly ssh_key?: string
  readonly ssh_key_path?: string
  readonly ssh_cert?: string
  readonly ssh_cert_path?: string
}

export interface Taint {
  readonly key: string
  readonly value: string
  readonly effect: string
  readonly timeAdded?: string
}

export interface ClusterNode extends SshAccess {
  readonly nodeName?: string
  /** Where the operator's machine reaches it; unique. */
  readonly address: string
  /** Where the other machines reach it; `address` unless told. */
  readonly internal_address: string
  /** In the order of ROLES, without repetition, at least one. */
  readonly role: readonly Role[]
  /** The name of the Node object: a DNS-1123 subdomain in lower case, unique; `address` unless told. */
  readonly hostname_override: string
  readonly docker_socket: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

export interface BastionHost extends SshAccess {
  readonly address: string
  readonly ignore_proxy_env_vars: boolean
}

/** What every service has. The Windows twins replace the others there when they are not empty. */
export interface ServiceSettings {
  readonly image: string
  readonly extra_args: Readonly<Record<string, string>>
  readonly extra_args_array: Readonly<Record<string, readonly string[]>>
  readonly extra_binds: readonly string[]
  readonly extra_env: readonly string[]
  readonly win_extra_args: Readonly<Record<string, string>>
  readonly win_extra_args_array: Readonly<Record<string, readonly string[]>>
  readonly win_extra_binds: readonly string[]
  readonly win_extra_env: readonly string[]
}

export interface S3BackupConfig {
  readonly access_key: string
  readonly secret_key: string
  readonly bucket_name: string
  readonly region: string
  readonly endpoint: string
  readonly custom_ca: string
  readonly folder: string
}

export interface BackupConfig {
  readonly enabled: boolean
  /** May be a fraction when it comes from the older `creation`. */
  readonly interval_hours: number
  /** How many snapshots are kept. */
  readonly retention: number
  readonly s3backupconfig?: S3BackupConfig
  readonly safe_timestamp: boolean
  /** Seconds. */
  readonly timeout: number
}

export interface EtcdService extends ServiceSettings {
  /** Not empty: somebody else's etcd, and no node has the role. */
  readonly external_urls: readonly string[]
  readonly ca_cert: string
  readonly cert: string
  readonly key: string
  readonly path: string
  readonly uid: number
  readonly gid: number
  readonly snapshot: boolean
  readonly retention: string
  readonly creation: string
  /** Always there: `snapshot`, `creation` and `retention` are an older way to say the same and are in it. */
  readonly backup_config: BackupConfig
}

export interface AuditLog {
  readonly enabled: boolean
  readonly configuration: {
    readonly max_age: number
    readonly max_backup: number
    readonly max_size: number
    readonly path: string
    readonly format: string
    readonly policy: JsonObject
  }
}

export interface KubeApiService extends ServiceSettings {
  readonly service_cluster_ip_range: string
  readonly service_node_port_range: string
  readonly pod_security_policy: boolean
  readonly pod_security_configuration: string
  readonly always_pull_images: boolean
  readonly secrets_encryption_config: { readonly enabled: boolean; readonly custom_config?: JsonObject }
  readonly audit_log: AuditLog
  /** An AdmissionConfiguration; what the file lacks of ours is added when it is deployed. */
  readonly admission_configuration?: JsonObject
  readonly event_rate_limit: { readonly enabled: boolean; readonly configuration?: JsonObject }
}

export interface KubeControllerService extends ServiceSettings {
  readonly cluster_cidr: string
  readonly service_cluster_ip_range: string
}

export interface KubeletService extends ServiceSettings {
  readonly cluster_domain: string
  readonly infra_container_image: string
  readonly cluster_dns_server: string
  readonly fail_swap_on: boolean
  readonly generate_serving_certificate: boolean
}

export interface Services {
  readonly etcd: EtcdService
  readonly 'kube-api': KubeApiService
  readonly 'kube-controller': KubeControllerService
  readonly scheduler: ServiceSettings
  readonly kubelet: KubeletService
  readonly kubeproxy: ServiceSettings
}

export type ServiceName = keyof Services

/** An amount of things, or a share of them such as `10%`. */
export type Amount = number | string

export interface UpdateStrategy {
  readonly strategy: string
  readonly rollingUpdate: { readonly maxUnavailable?: Amount; readonly maxSurge?: Amount }
}

export interface Toleration {
  readonly key?: string
  readonly operator?: string
  readonly value?: string
  readonly effect?: string
  readonly tolerationSeconds?: number
}

/** What every addon has that runs in pods. */
export interface AddonPlacement {
  readonly options: Readonly<Record<string, string>>
  readonly node_selector: Readonly<Record<string, string>>
  readonly tolerations: readonly Toleration[]
  readonly update_strategy?: UpdateStrategy
}

export const NETWORK_PLUGINS = ['canal', 'flannel', 'calico', 'none'] as const
export type NetworkPlugin = (typeof NETWORK_PLUGINS)[number]

export interface Network extends AddonPlacement {
  readonly plugin: NetworkPlugin
  /** 0: what the interface allows. */
  readonly mtu: number
  readonly calico_network_provider?: { readonly cloud_provider: string }
  readonly canal_network_provider?: { readonly iface: string }
  readonly flannel_network_provider?: { readonly iface: string }
  readonly weave_network_provider?: { readonly password: string }
  readonly aci_network_provider?: JsonObject
}

export interface Authentication {
  /** `x509`, or `x509|webhook`. */
  readonly strategy: string
  readonly sans: readonly string[]
  readonly webhook?: { readonly config_file: string; readonly cache_timeout: string }
}

export interface Ingress extends AddonPlacement {
  readonly provider: 'nginx' | 'none'
  readonly extra_args: Readonly<Record<string, string>>
  readonly dns_policy: string
  readonly extra_envs: readonly JsonObject[]
  readonly extra_volumes: readonly JsonObject[]
  readonly extra_volume_mounts: readonly JsonObject[]
  readonly http_port: number
  readonly https_port: number
  readonly network_mode: 'hostPort' | 'hostNetwork' | 'none'
  readonly default_backend: boolean
  readonly default_ingress_class: boolean
  readonly default_http_backend_priority_class_name: string
  readonly nginx_ingress_controller_priority_class_name: string
}

export interface LinearAutoscaler {
  readonly cores_per_replica: number
  readonly nodes_per_replica: number
  readonly min: number
  readonly max?: number
  readonly prevent_single_point_failure: boolean
}

export interface Dns extends AddonPlacement {
  readonly provider: 'coredns' | 'none'
  readonly upstreamnameservers: readonly string[]
  readonly reversecidrs: readonly string[]
  readonly stubdomains: Readonly<Record<string, readonly string[]>>
  readonly nodelocal?: {
    readonly ip_address: string
    readonly node_selector: Readonly<Record<string, string>>
    readonly update_strategy?: UpdateStrategy
    readonly nodelocal_dns_priority_class_name: string
  }
  readonly linear_autoscaler_params: LinearAutoscaler
}

export interface Monitoring extends AddonPlacement {
  readonly provider: 'metrics-server' | 'none'
  readonly replicas: number
  readonly metrics_server_priority_class_name: string
}

export interface PrivateRegistry {
  /** Docker Hub's unless told. */
  readonly url: string
  readonly user: string
  readonly password: string
  readonly is_default: boolean
  readonly ecr_credential_plugin?: {
    readonly aws_access_key_id: string
    readonly aws_secret_access_key: string
    readonly aws_session_token: string
  }
}

/** Empty name: none. The blocks are as written: they become /etc/kubernetes/cloud-config. */
export interface CloudProvider {
  readonly name: string
  readonly useInstanceMetadataHostname: boolean
  readonly awsCloudProvider?: JsonObject
  readonly azureCloudProvider?: JsonObject
  readonly openstackCloudProvider?: JsonObject
  readonly vsphereCloudProvider?: JsonObject
  readonly harvesterCloudProvider?: JsonObject
  readonly customCloudProvider: string
}

export interface UpgradeStrategy {
  readonly max_unavailable_worker: Amount
  readonly max_unavailable_controlplane: Amount
  readonly drain: boolean
  readonly node_drain_input: {
    readonly force: boolean
    readonly ignore_daemonsets: boolean
    readonly delete_local_data: boolean
    /** Seconds; -1: what the pod says. */
    readonly grace_period: number
    /** Seconds. */
    readonly timeout: number
  }
}

export interface ClusterFile {
  readonly nodes: readonly ClusterNode[]
  readonly services: Services
  readonly network: Network
  readonly authentication: Authentication
  readonly addons: string
  readonly addons_include: readonly string[]
  /** Files of the operator's; RKE had none. */
  readonly image_archives: readonly string[]
  /** By RKE's name of the image, such as `coredns`; only what the file names. */
  readonly system_images: Readonly<Record<string, string>>
  readonly ssh_key_path: string
  readonly ssh_cert_path: string
  readonly ssh_agent_auth: boolean
  readonly authorization: { readonly mode: 'rbac' | 'none'; readonly options: Readonly<Record<string, string>> }
  readonly ignore_docker_version: boolean
  readonly enable_cri_dockerd: boolean
  readonly kubernetes_version: string
  readonly private_registries: readonly PrivateRegistry[]
  readonly ingress: Ingress
  readonly cluster_name: string
  readonly cloud_provider: CloudProvider
  readonly prefix_path: string
  readonly win_prefix_path: string
  /** Seconds. */
  readonly addon_job_timeout: number
  readonly bastion_host?: BastionHost
  readonly monitoring: Monitoring
  readonly restore: { readonly restore: boolean; readonly snapshot_name: string }
  readonly rotate_certificates?: { readonly ca_certificates: boolean; readonly services: readonly string[] }
  readonly rotate_encryption_key: boolean
  readonly dns: Dns
  readonly upgrade_strategy: UpgradeStrategy
  readonly cri_dockerd_stream_server_address: string
  readonly cri_dockerd_stream_server_port: string
}

export function hasRole(node: Pick<ClusterNode, 'role'>, role: Role): boolean {
  return node.role.includes(role)
}

/** As with RKE: flannel alone knows no network policies. */
export function holdsPolicies({ network: { plugin } }: Pick<ClusterFile, 'network'>): boolean {
  return plugin === 'canal' || plugin === 'calico'
}

/** The nodes of a plane, in the order of the file. */
export function nodesOf(cluster: Pick<ClusterFile, 'nodes'>, role: Role): readonly ClusterNode[] {
  return cluster.nodes.filter((node) => hasRole(node, role))
}
