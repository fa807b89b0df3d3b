/** The table of all admission plugins of v1.36, in upstream's order, with the default of each. */
import type { Admission } from '#apiserver/registry/admission.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { alwaysDeny } from './always-deny.ts'
import { alwaysPullImages } from './always-pull-images.ts'
import { createCertificateApproval } from './certificate-approval.ts'
import { createCertificateSigning } from './certificate-signing.ts'
import { certificateSubjectRestriction } from './certificate-subject-restriction.ts'
import { createChain } from './chain.ts'
import { createClusterTrustBundleAttest } from './cluster-trust-bundle-attest.ts'
import { defaultIngressClass } from './default-ingress-class.ts'
import { defaultStorageClass } from './default-storage-class.ts'
import { createDefaultTolerationSeconds, type DefaultTolerationSecondsOptions } from './default-toleration-seconds.ts'
import { denyServiceExternalIps } from './deny-service-external-ips.ts'
import { createEventRateLimit, type EventLimit } from './event-rate-limit.ts'
import { extendedResourceToleration } from './extended-resource-toleration.ts'
import { createImagePolicyWebhook, type ImagePolicy } from './image-policy-webhook.ts'
import { createJobValidation } from './job-validation.ts'
import { limitPodHardAntiAffinityTopology } from './limit-pod-hard-anti-affinity-topology.ts'
import { createLimitRanger } from './limit-ranger.ts'
import { createNamespaceAutoProvision, type NamespaceCreator } from './namespace-auto-provision.ts'
import { namespaceExists } from './namespace-exists.ts'
import { namespaceLifecycle } from './namespace-lifecycle.ts'
import { createNodeDeclaredFeatureValidator } from './node-declared-feature-validator.ts'
import { createNodeRestriction } from './node-restriction/node-restriction.ts'
import {
  createOwnerReferencesPermissionEnforcement,
  type OwnerReferencesOptions,
} from './owner-references-permission-enforcement.ts'
import { persistentVolumeClaimResize } from './persistent-volume-claim-resize.ts'
import type { AdmissionPlugin } from './plugin.ts'
import { createPodGroupProtection } from './pod-group-protection.ts'
import { createPodGroupWorkloadExists } from './pod-group-workload-exists.ts'
import { createPodNodeSelector, type NodeSelectorsByNamespace } from './pod-node-selector.ts'
import { createPodResizeValidator } from './pod-resize-validator.ts'
import { createPodSecurity, type PodSecurityOptions } from './pod-security/pod-security.ts'
import { type ClusterTolerations, createPodTolerationRestriction } from './pod-toleration-restriction.ts'
import { createPodTopologyLabels } from './pod-topology-labels.ts'
import { createPriority } from './priority.ts'
import type { LimitedResource } from './resource-quota/check.ts'
import type { QuotaWriter } from './resource-quota/ledger.ts'
import { createResourceQuota } from './resource-quota/resource-quota.ts'
import { runtimeClass } from './runtime-class.ts'
import { createServiceAccountPlugin } from './service-account/service-account.ts'
import { storageObjectInUseProtection } from './storage-object-in-use-protection.ts'
import { taintNodesByCondition } from './taint-nodes-by-condition.ts'

export interface AdmissionFlags {
  /** `--enable-admission-plugins`: in addition to the default ones. */
  readonly enable?: readonly string[]
  /** `--disable-admission-plugins`. */
  readonly disable?: readonly string[]
}

/** The configuration of `--admission-control-config-file`, by plugin. */
export interface PluginSettings {
  readonly podSecurity?: Omit<PodSecurityOptions, 'clock'>
  readonly limitedResources?: readonly LimitedResource[]
  readonly eventLimits?: readonly EventLimit[]
  readonly nodeSelectors?: NodeSelectorsByNamespace
  readonly podTolerations?: ClusterTolerations
}

export interface AdmissionOptions extends AdmissionFlags, PluginSettings {
  readonly clock: Clock
  readonly random: Random
  readonly isEnabled: (gate: string) => boolean
  /** Authorizes the user for plugins that depend on further rights. */
  readonly authorize: Authorizer['authorize']
  /** Stores the usage of quotas. */
  readonly quotas: QuotaWriter
  /** For NamespaceAutoProvision. */
  readonly namespaces: NamespaceCreator
  /** For OwnerReferencesPermissionEnforcement. */
  readonly resourcesFor: OwnerReferencesOptions['resourcesFor']
  /** The backend of ImagePolicyWebhook, which requires one. */
  readonly imagePolicy?: ImagePolicy
  readonly tolerationSeconds?: DefaultTolerationSecondsOptions
  readonly metrics?: ServerMeters | undefined
  /** Plugins created elsewhere, inserted at upstream's position of their name: policies and webhooks. */
  readonly more?: readonly AdmissionPlugin[]
}

/** Throws the errors of `admissionFlagErrors`. */
export function createAdmission(options: AdmissionOptions): Admission {
  const errors = admissionFlagErrors(options)
  if (errors.length > 0) throw new Error(errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`)
  const enabled = new Set(enabledPlugins(options))
  const plugins = PLUGINS.filter(([name]) => enabled.has(name)).flatMap(([name, , source]) =>
    typeof source === 'function' ? source(options) : (options.more?.filter((plugin) => plugin.name === name) ?? []),
  )
  return createChain({
    mutating: plugins.filter((plugin) => 'mutate' in plugin),
    validating: plugins.filter((plugin) => 'validate' in plugin),
    metrics: options.metrics,
    clock: options.clock,
  })
}

type Source =
  | ((options: AdmissionOptions) => AdmissionPlugin)
  /** Taken from `more`, if present. */
  | 'elsewhere'
  /** Does nothing. */
  | 'silent'

/**
 * All plugins: upstream's names in upstream's order, whether each is on by default, and its factory. NodeRestriction is
 * on here, because nodes are not trusted by default.
 */
export const PLUGINS: readonly (readonly [name: string, state: 'on' | 'off', source: Source])[] = [
  ['AlwaysAdmit', 'off', 'silent'],
  ['NamespaceAutoProvision', 'off', ({ namespaces }) => createNamespaceAutoProvision(namespaces)],
  ['NamespaceLifecycle', 'on', () => namespaceLifecycle],
  ['NamespaceExists', 'off', () => namespaceExists],
  ['LimitPodHardAntiAffinityTopology', 'off', () => limitPodHardAntiAffinityTopology],
  ['LimitRanger', 'on', createLimitRanger],
  ['ServiceAccount', 'on', createServiceAccountPlugin],
  ['NodeRestriction', 'on', ({ isEnabled, authorize: ask }) => createNodeRestriction({ isEnabled, ask })],
  ['TaintNodesByCondition', 'on', () => taintNodesByCondition],
  ['AlwaysPullImages', 'off', () => alwaysPullImages],
  ['ImagePolicyWebhook', 'off', createImagePolicyWebhook],
  ['PodSecurity', 'on', ({ podSecurity, clock, metrics }) => createPodSecurity({ ...podSecurity, clock, metrics })],
  ['PodNodeSelector', 'off', ({ nodeSelectors }) => createPodNodeSelector(nodeSelectors)],
  ['Priority', 'on', createPriority],
  ['DefaultTolerationSeconds', 'on', ({ tolerationSeconds }) => createDefaultTolerationSeconds(tolerationSeconds)],
  ['PodTolerationRestriction', 'off', createPodTolerationRestriction],
  ['EventRateLimit', 'off', ({ clock, eventLimits = [] }) => createEventRateLimit({ clock, limits: eventLimits })],
  ['ExtendedResourceToleration', 'off', () => extendedResourceToleration],
  ['DefaultStorageClass', 'on', () => defaultStorageClass],
  ['StorageObjectInUseProtection', 'on', () => storageObjectInUseProtection],
  ['PodGroupProtection', 'on', createPodGroupProtection],
  ['OwnerReferencesPermissionEnforcement', 'off', createOwnerReferencesPermissionEnforcement],
  ['PersistentVolumeClaimResize', 'on', () => persistentVolumeClaimResize],
  ['RuntimeClass', 'on', () => runtimeClass],
  ['CertificateApproval', 'on', ({ authorize }) => createCertificateApproval(authorize)],
  ['CertificateSigning', 'on', ({ authorize }) => createCertificateSigning(authorize)],
  [
    'ClusterTrustBundleAttest',
    'on',
    ({ authorize: ask, isEnabled }) => createClusterTrustBundleAttest({ ask, isEnabled }),
  ],
  ['CertificateSubjectRestriction', 'on', () => certificateSubjectRestriction],
  ['DefaultIngressClass', 'on', () => defaultIngressClass],
  ['DenyServiceExternalIPs', 'off', () => denyServiceExternalIps],
  ['PodTopologyLabels', 'on', createPodTopologyLabels],
  ['PodGroupWorkloadExists', 'on', createPodGroupWorkloadExists],
  ['NodeDeclaredFeatureValidator', 'on', createNodeDeclaredFeatureValidator],
  ['JobValidation', 'on', createJobValidation],
  ['PodResizeValidator', 'on', createPodResizeValidator],
  ['MutatingAdmissionPolicy', 'on', 'elsewhere'],
  ['MutatingAdmissionWebhook', 'on', 'elsewhere'],
  ['ValidatingAdmissionPolicy', 'on', 'elsewhere'],
  ['ValidatingAdmissionWebhook', 'on', 'elsewhere'],
  ['ResourceQuota', 'on', ({ quotas: writer, ...options }) => createResourceQuota({ ...options, writer })],
  ['AlwaysDeny', 'off', () => alwaysDeny],
]

/** All names for the flags, sorted, for their help. */
export const pluginNames: readonly string[] = PLUGINS.map(([name]) => name).sort(compareText)

const nameSet: ReadonlySet<string> = new Set(pluginNames)

/** The errors of the flags, with upstream's texts where they exist. */
export function admissionFlagErrors({ enable = [], disable = [] }: AdmissionFlags): string[] {
  const unknown = (flag: string, names: readonly string[]): string[] =>
    names
      .filter((name) => !nameSet.has(name))
      .map((name) => `${flag}-admission-plugins plugin ${goQuote(name)} is unknown`)
  const both = [...new Set(enable)].filter((name) => disable.includes(name)).sort(compareText)
  const overlap = `[${both.join(' ')}] in enable-admission-plugins and disable-admission-plugins overlapped`
  return [...unknown('enable', enable), ...unknown('disable', disable), ...(both.length === 0 ? [] : [overlap])]
}

/** The enabled names, in order. */
export function enabledPlugins({ enable = [], disable = [] }: AdmissionFlags): string[] {
  return PLUGINS.filter(([name, state]) => (state === 'on' && !disable.includes(name)) || enable.includes(name)).map(
    ([name]) => name,
  )
}
