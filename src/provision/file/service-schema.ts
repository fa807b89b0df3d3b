/** Describes the keys below `services` in cluster.yml: the settings of etcd, the control plane, kubelet and kube-proxy. */
import type { JsonObject } from '#lib/json/value.ts'

import type {
  AuditLog,
  BackupConfig,
  EtcdService,
  KubeApiService,
  KubeControllerService,
  KubeletService,
  S3BackupConfig,
  Services,
  ServiceSettings,
} from '../cluster.ts'
import {
  areBinds,
  areFlags,
  areVariables,
  isAbsolute,
  isDomain,
  isDuration,
  isHttpUrl,
  isIp,
  isPem,
  isPortRange,
  isRange,
} from './field-checks.ts'
import { decimal, document, type Field, flag, list, map, type Members, object, text, whole, words } from './field.ts'

const WINDOWS = 'Windows machines are not supported; this has no effect'

function onWindows(): { past: true; notice(value: object): string | undefined } {
  return { past: true, notice: (value) => (Object.keys(value).length > 0 ? WINDOWS : undefined) }
}

const argument: Field<string> = text('value of the flag')
const argumentList: Field<readonly string[]> = list('values of the flag, one flag each', argument)

const SETTINGS: Members<ServiceSettings> = {
  image: words('image of the service', {
    past: true,
    notice: () => 'Services are not containers; the program itself runs',
  }),
  extra_args: map('additional flags, which override all others', argument, { check: areFlags }),
  extra_args_array: map('flags that may be repeated', argumentList, { check: areFlags }),
  extra_binds: list('folders of the service, such as /srv:/srv', text('bind'), { check: areBinds }),
  extra_env: list('environment variables, such as NAME=value', text('variable'), { check: areVariables }),
  win_extra_args: map('extra_args on Windows', argument, onWindows()),
  win_extra_args_array: map('extra_args_array on Windows', argumentList, onWindows()),
  win_extra_binds: list('extra_binds on Windows', text('bind'), onWindows()),
  win_extra_env: list('extra_env on Windows', text('variable'), onWindows()),
}

const s3: Field<S3BackupConfig> = object<S3BackupConfig>(
  'S3 bucket for copies of snapshots',
  {
    access_key: words('access key; empty: requests are not signed'),
    secret_key: words('secret key', { secret: true }),
    bucket_name: text('bucket', { required: true }),
    region: words('region of the bucket (us-east-1)'),
    endpoint: text('endpoint, such as s3.amazonaws.com', { required: true }),
    custom_ca: words('certificate authority of the endpoint, PEM', { check: isPem('certificate') }),
    folder: words('folder in the bucket'),
  },
  { optional: true, aliases: ['s3_backup_config'] },
)

const backup: Field<BackupConfig> = object<BackupConfig>(
  'periodic snapshots of etcd',
  {
    enabled: flag('whether snapshots are taken', true),
    interval_hours: decimal('hours between snapshots', { default: 12, zeroIsUnset: true, min: 0 }),
    retention: whole('number of snapshots to keep', { default: 6, zeroIsUnset: true, min: 1 }),
    s3backupconfig: s3,
    safe_timestamp: flag('replace colons in snapshot names with dashes', false),
    timeout: whole('timeout of a snapshot in seconds', { default: 300, zeroIsUnset: true, min: 1 }),
  },
  { optional: true },
)

const etcd: Field<EtcdService> = object<EtcdService>("etcd, the cluster's database", {
  ...SETTINGS,
  external_urls: list('URLs of an external etcd', text('address', { check: isHttpUrl })),
  ca_cert: words('certificate authority of the external etcd, PEM', { check: isPem('certificate') }),
  cert: words('client certificate for the external etcd, PEM', { check: isPem('certificate') }),
  key: words('client key for the external etcd, PEM', { secret: true, check: isPem('key') }),
  path: words('key prefix in the external etcd', { check: isAbsolute }),
  uid: whole('owner of the data folder', { default: 0, min: 0, max: 2 ** 31 - 1, pending: true }),
  gid: whole('group of the data folder', { default: 0, min: 0, max: 2 ** 31 - 1, pending: true }),
  snapshot: flag('whether snapshots are taken; superseded by backup_config', true),
  creation: text('time between snapshots; superseded by backup_config', { default: '12h', check: isDuration }),
  retention: text('maximum age of snapshots; superseded by backup_config', { default: '72h', check: isDuration }),
  backup_config: backup,
})

/** A single rule: metadata of all requests, without bodies. */
const METADATA_POLICY: JsonObject = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [{ level: 'Metadata' }],
}

function ofKind(kind: string): { check(value: JsonObject): string | undefined } {
  return {
    check: (value) => (value['kind'] === kind ? undefined : `Must be an object of kind "${kind}"`),
  }
}

const auditLog: Field<AuditLog> = object<AuditLog>('audit log', {
  enabled: flag('whether it is enabled', true),
  configuration: object<AuditLog['configuration']>('its settings', {
    max_age: whole('days to keep a file', { default: 30, min: 0, zeroIsUnset: true }),
    max_backup: whole('number of files to keep', { default: 10, min: 0, zeroIsUnset: true }),
    max_size: whole('maximum size of a file in megabytes', { default: 100, min: 0, zeroIsUnset: true }),
    path: text('the file', { default: '/var/log/kube-audit/audit-log.json' }),
    format: text('json or legacy', { default: 'json', oneOf: ['json', 'legacy'] }),
    policy: document('an audit.k8s.io Policy', { default: METADATA_POLICY, ...ofKind('Policy') }),
  }),
})

/** Removed in Kubernetes 1.25; an explicit false is accepted. */
const podSecurityPolicy: Field<boolean> = flag('pod security policies', false, {
  past: true,
  check: (value) =>
    value
      ? 'PodSecurityPolicy was removed in Kubernetes 1.25; use "pod_security_configuration: restricted" instead'
      : undefined,
})

const kubeApi: Field<KubeApiService> = object<KubeApiService>(
  'kube-apiserver',
  {
    ...SETTINGS,
    service_cluster_ip_range: text('CIDR of Services (10.43.0.0/16)', { check: isRange }),
    service_node_port_range: text('node port range', { default: '30000-32767', check: isPortRange }),
    pod_security_policy: podSecurityPolicy,
    pod_security_configuration: text('default pod security level of namespaces', {
      default: 'privileged',
      oneOf: ['privileged', 'restricted'],
    }),
    always_pull_images: flag('whether images are pulled at every pod start (AlwaysPullImages)', false),
    secrets_encryption_config: object<KubeApiService['secrets_encryption_config']>('encryption of Secrets in etcd', {
      enabled: flag('whether Secrets are encrypted', false),
      custom_config: document('a custom EncryptionConfiguration', ofKind('EncryptionConfiguration')),
    }),
    audit_log: auditLog,
    admission_configuration: document('an AdmissionConfiguration', ofKind('AdmissionConfiguration')),
    event_rate_limit: object<KubeApiService['event_rate_limit']>('rate limit for Events', {
      enabled: flag('whether it is enabled', false),
      configuration: document('an eventratelimit.admission.k8s.io Configuration', ofKind('Configuration')),
    }),
  },
  { aliases: ['kube_api'] },
)

const kubeController: Field<KubeControllerService> = object<KubeControllerService>(
  'kube-controller-manager',
  {
    ...SETTINGS,
    cluster_cidr: text('CIDR of pods', { default: '10.42.0.0/16', check: isRange }),
    service_cluster_ip_range: text("CIDR of Services; default: kube-api's", { check: isRange }),
  },
  { aliases: ['kube_controller'] },
)

const kubelet: Field<KubeletService> = object<KubeletService>('kubelet', {
  ...SETTINGS,
  cluster_domain: text("the cluster's DNS domain", { default: 'cluster.local', check: isDomain }),
  infra_container_image: words('pause image', {
    past: true,
    aliases: ['pod-infra-container-image'],
    notice: () => 'The kubelet has no such flag any more: set pinned_images.sandbox in the configuration of containerd',
  }),
  cluster_dns_server: text('address of cluster DNS; default: the tenth address of the service range', { check: isIp }),
  fail_swap_on: flag('whether the kubelet fails with swap enabled', false),
  generate_serving_certificate: flag('whether the cluster signs serving certificates of kubelets', false),
})

export const services: Field<Services> = object<Services>('programs and their flags', {
  etcd,
  'kube-api': kubeApi,
  'kube-controller': kubeController,
  scheduler: object<ServiceSettings>('kube-scheduler', SETTINGS),
  kubelet,
  kubeproxy: object<ServiceSettings>('kube-proxy', SETTINGS, { aliases: ['kube-proxy', 'kube_proxy'] }),
})
