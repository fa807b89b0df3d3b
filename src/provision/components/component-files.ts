/**
 * Writes the configuration files of programs, except for certificates: admission, audit, webhook, encryption, cloud.
 */
import type { JsonObject } from '#lib/json/value.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { type ClusterFile, type ClusterNode, hasRole } from '../cluster.ts'
import { CONFIG_FILES, hostPath } from '../host-paths.ts'
import type { PkiFile } from '../pki/files.ts'
import type { BucketLocation } from '../s3/bucket.ts'

/** The files of one machine. A former file that is missing here is deleted. */
export function configFiles(cluster: ClusterFile, node: ClusterNode, encryption: string): PkiFile[] {
  const isControlPlane = hasRole(node, 'controlplane')
  const api = cluster.services['kube-api']
  const rows: readonly (readonly [path: string, content: string])[] = [
    [CONFIG_FILES.cloud, cloudConfig(cluster)],
    [CONFIG_FILES.credentialProviders, credentialProviders(cluster)],
    [CONFIG_FILES.registries, registryPasswords(cluster)],
    [CONFIG_FILES.authenticationWebhook, isControlPlane ? (cluster.authentication.webhook?.config_file ?? '') : ''],
    [CONFIG_FILES.encryption, isControlPlane ? encryption : ''],
    [CONFIG_FILES.agentCredential, isControlPlane ? (cluster.management?.credential ?? '') : ''],
    [CONFIG_FILES.agentAuthority, isControlPlane ? (cluster.management?.certificateAuthority ?? '') : ''],
    [CONFIG_FILES.snapshotBucket, hasRole(node, 'etcd') ? snapshotBucket(cluster) : ''],
    [CONFIG_FILES.admission, isControlPlane ? stringifyYaml(admissionConfiguration(cluster)) : ''],
    [CONFIG_FILES.auditPolicy, isControlPlane && api.audit_log.enabled ? auditPolicy(cluster) : ''],
  ]
  return rows
    .filter(([, content]) => content !== '')
    .map(([path, content]) => ({ path: hostPath(cluster, path), mode: 0o600, content }))
}

function auditPolicy(cluster: ClusterFile): string {
  return stringifyYaml(cluster.services['kube-api'].audit_log.configuration.policy)
}

/** In a file, because all users can read command lines. */
function snapshotBucket({ services }: ClusterFile): string {
  const s3 = services.etcd.backup_config.s3backupconfig
  if (s3 === undefined) return ''
  const location: BucketLocation = {
    endpoint: s3.endpoint,
    bucket: s3.bucket_name,
    region: s3.region,
    folder: s3.folder.replaceAll(/^\/+|\/+$/g, ''),
    accessKey: s3.access_key,
    secretKey: s3.secret_key,
    authority: s3.custom_ca,
  }
  return `${JSON.stringify(location, undefined, 2)}\n`
}

interface Plugin extends JsonObject {
  name: string
}

/** Our plugin configurations, overridden by those in the file. */
export function admissionConfiguration(cluster: ClusterFile): JsonObject {
  const { admission_configuration: given, event_rate_limit } = cluster.services['kube-api']
  const own: Plugin[] = [
    { name: 'EventRateLimit', configuration: event_rate_limit.configuration ?? EVENT_RATE_LIMIT },
    { name: 'PodSecurity', configuration: podSecurity(cluster) },
  ]
  const theirs = (given?.['plugins'] ?? []) as Plugin[]
  return {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    plugins: [...own.filter(({ name }) => !theirs.some((plugin) => plugin.name === name)), ...theirs],
  }
}

const EVENT_RATE_LIMIT: JsonObject = {
  apiVersion: 'eventratelimit.admission.k8s.io/v1alpha1',
  kind: 'Configuration',
  limits: [{ type: 'Server', qps: 5000, burst: 20_000 }],
}

function podSecurity(cluster: ClusterFile): JsonObject {
  const level = cluster.services['kube-api'].pod_security_configuration
  return {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    defaults: {
      enforce: level,
      'enforce-version': 'latest',
      audit: level,
      'audit-version': 'latest',
      warn: level,
      'warn-version': 'latest',
    },
    exemptions: {
      usernames: [],
      runtimeClasses: [],
      namespaces: level === 'restricted' ? ['ingress-nginx', 'kube-system'] : [],
    },
  }
}

/** In the provider's format: JSON for Azure, `key = value` sections for others. */
function cloudConfig({ cloud_provider: cloud }: ClusterFile): string {
  if (cloud.name === '') return ''
  if (cloud.customCloudProvider !== '') return cloud.customCloudProvider
  const block = {
    azure: cloud.azureCloudProvider,
    aws: cloud.awsCloudProvider,
    'external-aws': cloud.awsCloudProvider,
    openstack: cloud.openstackCloudProvider,
    vsphere: cloud.vsphereCloudProvider,
    'rancher-vsphere': cloud.vsphereCloudProvider,
    harvester: cloud.harvesterCloudProvider,
  }[cloud.name]
  if (!block) return ''
  if (cloud.name === 'azure') return `${JSON.stringify(block, undefined, 2)}\n`
  if (typeof block['cloud_config'] === 'string') return block['cloud_config']
  return sections(block)
}

function sections(block: JsonObject): string {
  const parts = Object.entries(block).map(([name, value]) => {
    const title = name === 'global' ? 'Global' : name
    const lines = Object.entries((value ?? {}) as JsonObject).map(([key, one]) => `${key} = ${scalar(one)}`)
    return `[${title}]\n${lines.join('\n')}\n`
  })
  return parts.join('\n')
}

function scalar(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** In docker's format, at the kubelet's path. */
function registryPasswords({ private_registries }: ClusterFile): string {
  const named = private_registries.filter(({ user }) => user !== '')
  if (named.length === 0) return ''
  const auths = named.map(({ url, user, password }) => [
    url,
    { auth: Buffer.from(`${user}:${password}`).toString('base64') },
  ])
  return `${JSON.stringify({ auths: Object.fromEntries(auths) as JsonObject }, undefined, 2)}\n`
}

/** Makes the kubelet call the plugin for images of these registries. */
function credentialProviders(cluster: ClusterFile): string {
  const registries = cluster.private_registries.filter(({ ecr_credential_plugin }) => ecr_credential_plugin)
  if (registries.length === 0) return ''
  const providers = registries.map(({ url, ecr_credential_plugin }) => ({
    name: 'ecr-credential-provider',
    matchImages: [url],
    defaultCacheDuration: '12h',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    env: Object.entries(ecr_credential_plugin ?? {})
      .filter(([, value]) => value !== '')
      .map(([name, value]) => ({ name: name.toUpperCase(), value })),
  }))
  return stringifyYaml({ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers })
}
