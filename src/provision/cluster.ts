/**
 * The type of a parsed, defaulted and validated cluster.yml. Members keep RKE's names; the tables of `cluster-schema`
 * describe them.
 */
import type { JsonObject } from '#lib/json/value.ts'

export const ROLES = ['etcd', 'controlplane', 'worker'] as const
export type Role = (typeof ROLES)[number]

/** SSH credentials of a machine: a key or certificate as text, as a path, or from the agent. */
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
  /** The address for the operator's machine; unique. */
  readonly address: string
  /** The address for the other machines; `address` by default. */
  readonly internal_address: string
  /** In the order of ROLES, distinct, at least one. */
  readonly role: readonly Role[]
  /** The name of the Node: a unique DNS-1123 subdomain in lower case; `address` by default. */
  readonly hostname_override: string
  readonly docker_socket: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

export interface BastionHost extends SshAccess {
  readonly address: string
  readonly ignore_proxy_env_vars: boolean
}

/** Keys of every service. Non-empty Windows variants replace the others there. */
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
  /** A fraction if it comes from the older `creation`. */
  readonly interval_hours: number
  /** The number of snapshots to keep. */
  readonly retention: number
  readonly s3backupconfig?: S3BackupConfig
  readonly safe_timestamp: boolean
  /** Seconds. */
  readonly timeout: number
}

export interface EtcdService extends ServiceSettings {
  /** Not empty: an external etcd, and no node has the role. */
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
  /** Always present: the older `snapshot`, `creation` and `retention` are merged into it. */
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
  /** An AdmissionConfiguration; our defaults are added on deployment. */
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

/** A number, or a percentage such as `10%`. */
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

/** Keys of every addon that runs in pods. */
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
  /** 0: derived from the interface. */
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
  /** Docker Hub by default. */
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

/** Empty name: none. The blocks become /etc/kubernetes/cloud-config unchanged. */
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
    /** Seconds; -1: the value of the pod. */
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
  /** Files of the operator; RKE had none. */
  readonly image_archives: readonly string[]
  /** By RKE's image name, such as `coredns`; only the images in the file. */
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
  /** The server that manages the cluster. It is no key of the file: the server itself sets it. */
  readonly management?: ManagementServer
}

/** A management server, whose agent runs on every control plane. */
export interface ManagementServer {
  /** `https://manager.example`. */
  readonly url: string
  /** PEM; empty: a public authority. */
  readonly certificateAuthority: string
  /** By which the server knows the agents of this cluster. */
  readonly credential: string
}

export function hasRole(node: Pick<ClusterNode, 'role'>, role: Role): boolean {
  return node.role.includes(role)
}

/** Like RKE: flannel alone does not enforce network policies. */
export function holdsPolicies({ network: { plugin } }: Pick<ClusterFile, 'network'>): boolean {
  return plugin === 'canal' || plugin === 'calico'
}

/** The nodes of a plane, in file order. */
export function nodesOf(cluster: Pick<ClusterFile, 'nodes'>, role: Role): readonly ClusterNode[] {
  return cluster.nodes.filter((node) => hasRole(node, role))
}
