/** The table of `services`: etcd, the control plane's programs and the node's. */
import type { JsonObject } from '#lib/json-value.ts'

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
} from './cluster.ts'
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

const WINDOWS = 'Windows machines are not built; this has no effect'

function onWindows(): { past: true; notice(value: object): string | undefined } {
  return { past: true, notice: (value) => (Object.keys(value).length > 0 ? WINDOWS : undefined) }
}

const argument: Field<string> = text('value of the flag')
const argumentList: Field<readonly string[]> = list('values of the flag, each given by a flag of its own', argument)

const SETTINGS: Members<ServiceSettings> = {
  image: words('image of the service', {
    past: true,
    notice: () => 'Services are no containers; the program itself runs',
  }),
  extra_args: map('flags added last, so they win over all others', argument, { check: areFlags }),
  extra_args_array: map('flags that are given several times', argumentList, { check: areFlags }),
  extra_binds: list('folders the service sees, as in /srv:/srv', text('bind'), { check: areBinds }),
  extra_env: list('variables of the environment, as in NAME=value', text('variable'), { check: areVariables }),
  win_extra_args: map('extra_args on Windows', argument, onWindows()),
  win_extra_args_array: map('extra_args_array on Windows', argumentList, onWindows()),
  win_extra_binds: list('extra_binds on Windows', text('bind'), onWindows()),
  win_extra_env: list('extra_env on Windows', text('variable'), onWindows()),
}

const s3: Field<S3BackupConfig> = object<S3BackupConfig>(
  'where snapshots are copied to, if anywhere',
  {
    access_key: words('access key; empty: nothing is signed'),
    secret_key: words('secret key', { secret: true }),
    bucket_name: text('bucket', { required: true }),
    region: words('region of the bucket (us-east-1)'),
    endpoint: text('host of the service, as in s3.amazonaws.com', { required: true }),
    custom_ca: words('authority of the endpoint, PEM', { check: isPem('certificate') }),
    folder: words('folder in the bucket'),
  },
  { optional: true, aliases: ['s3_backup_config'] },
)

const backup: Field<BackupConfig> = object<BackupConfig>(
  'snapshots of etcd, every so often',
  {
    enabled: flag('whether they are taken', true),
    interval_hours: decimal('hours between two', { default: 12, zeroIsUnset: true, min: 0 }),
    retention: whole('how many are kept', { default: 6, zeroIsUnset: true, min: 1 }),
    s3backupconfig: s3,
    safe_timestamp: flag('colons in the names of snapshots become dashes', false),
    timeout: whole('seconds a snapshot may take', { default: 300, zeroIsUnset: true, min: 1 }),
  },
  { optional: true },
)

const etcd: Field<EtcdService> = object<EtcdService>("etcd, the cluster's memory", {
  ...SETTINGS,
  external_urls: list('an etcd that is already there, instead of ours', text('address', { check: isHttpUrl })),
  ca_cert: words('authority of the external etcd, PEM', { check: isPem('certificate') }),
  cert: words('certificate to show to the external etcd, PEM', { check: isPem('certificate') }),
  key: words('key of that certificate, PEM', { secret: true, check: isPem('key') }),
  path: words('prefix of our keys in the external etcd', { check: isAbsolute }),
  uid: whole('owner of the data folder', { default: 0, min: 0, max: 2 ** 31 - 1, pending: true }),
  gid: whole('group of the data folder', { default: 0, min: 0, max: 2 ** 31 - 1, pending: true }),
  snapshot: flag('whether snapshots are taken; older than backup_config', true),
  creation: text('time between two snapshots; older than backup_config', { default: '12h', check: isDuration }),
  retention: text('age at which snapshots go; older than backup_config', { default: '72h', check: isDuration }),
  backup_config: backup,
})

/** A single rule: who did what, without bodies. */
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

const auditLog: Field<AuditLog> = object<AuditLog>('the log of who did what', {
  enabled: flag('whether it is written', true),
  configuration: object<AuditLog['configuration']>('how it is written', {
    max_age: whole('days a file is kept', { default: 30, min: 0, zeroIsUnset: true }),
    max_backup: whole('how many files are kept', { default: 10, min: 0, zeroIsUnset: true }),
    max_size: whole('megabytes of a file', { default: 100, min: 0, zeroIsUnset: true }),
    path: text('the file', { default: '/var/log/kube-audit/audit-log.json' }),
    format: text('json or legacy', { default: 'json', oneOf: ['json', 'legacy'] }),
    policy: document('an audit.k8s.io Policy', { default: METADATA_POLICY, ...ofKind('Policy') }),
  }),
})

/** Gone with Kubernetes 1.25; saying that one does not want it is fine. */
const podSecurityPolicy: Field<boolean> = flag('pod security policies', false, {
  past: true,
  check: (value) =>
    value
      ? 'PodSecurityPolicy left Kubernetes in 1.25; use "pod_security_configuration: restricted" instead'
      : undefined,
})

const kubeApi: Field<KubeApiService> = object<KubeApiService>(
  'kube-apiserver',
  {
    ...SETTINGS,
    service_cluster_ip_range: text('range of the addresses of Services (10.43.0.0/16)', { check: isRange }),
    service_node_port_range: text('range of node ports', { default: '30000-32767', check: isPortRange }),
    pod_security_policy: podSecurityPolicy,
    pod_security_configuration: text('what pods may do unless their namespace says otherwise', {
      default: 'privileged',
      oneOf: ['privileged', 'restricted'],
    }),
    always_pull_images: flag('whether every start of a pod asks the registry for its images', false),
    secrets_encryption_config: object<KubeApiService['secrets_encryption_config']>('encryption of Secrets in etcd', {
      enabled: flag('whether Secrets are encrypted', false),
      custom_config: document('an EncryptionConfiguration of your own', ofKind('EncryptionConfiguration')),
    }),
    audit_log: auditLog,
    admission_configuration: document('an AdmissionConfiguration', ofKind('AdmissionConfiguration')),
    event_rate_limit: object<KubeApiService['event_rate_limit']>('a limit to the number of Events', {
      enabled: flag('whether it is enforced', false),
      configuration: document('an eventratelimit.admission.k8s.io Configuration', ofKind('Configuration')),
    }),
  },
  { aliases: ['kube_api'] },
)

const kubeController: Field<KubeControllerService> = object<KubeControllerService>(
  'kube-controller-manager',
  {
    ...SETTINGS,
    cluster_cidr: text('range of the addresses of pods', { default: '10.42.0.0/16', check: isRange }),
    service_cluster_ip_range: text("range of the addresses of Services; kube-api's unless told", { check: isRange }),
  },
  { aliases: ['kube_controller'] },
)

const kubelet: Field<KubeletService> = object<KubeletService>('kubelet', {
  ...SETTINGS,
  cluster_domain: text("the cluster's domain", { default: 'cluster.local', check: isDomain }),
  infra_container_image: words("image of every pod's first container", {
    past: true,
    aliases: ['pod-infra-container-image'],
    notice: () =>
      'Kubelets have no flag for it any more: it is pinned_images.sandbox in the configuration of containerd',
  }),
  cluster_dns_server: text('address of cluster DNS; the tenth of the range of Services', { check: isIp }),
  fail_swap_on: flag('whether the kubelet refuses machines with swap', false),
  generate_serving_certificate: flag("whether kubelets serve with a certificate of the cluster's authority", false),
})

export const services: Field<Services> = object<Services>('the programs and their flags', {
  etcd,
  'kube-api': kubeApi,
  'kube-controller': kubeController,
  scheduler: object<ServiceSettings>('kube-scheduler', SETTINGS),
  kubelet,
  kubeproxy: object<ServiceSettings>('kube-proxy', SETTINGS, { aliases: ['kube-proxy', 'kube_proxy'] }),
})
