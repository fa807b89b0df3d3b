/**
 * The options of pod validation: feature gates, and errors that the old object already has. An update may keep those,
 * so that objects of older releases stay writable.
 */
import type { PodSpec } from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { labelValue } from '#meta/validation/names.ts'

import { podAffinityTerms, validateLabelKeys, validateTermSelectors } from './affinity.ts'
import { deletionCostOf } from './annotations.ts'
import { validateUnreservedPath } from './checks.ts'
import { isHugePages, isWholePages } from './containers/resource-names.ts'
import type { PodLike, PodOptions, PodRules } from './rules.ts'
import { validateUnmergedKeys } from './scheduling.ts'
import { sharedNamespaceOf } from './security.ts'
import { containersOf, isSidecar } from './walk.ts'

/** The options for a Pod. Without `old`, for a new one. */
export function podOptions(rules: PodRules, old?: PodLike): PodOptions {
  return { ...podTemplateOptions(rules, old), isPod: true }
}

/** The options for a template of any kind. Without `old`, for a new object. */
export function podTemplateOptions({ isEnabled, allowPrivileged }: PodRules, old?: PodLike): PodOptions {
  const spec = old?.spec
  const had = (test: (spec: PodSpec) => boolean): boolean => spec !== undefined && test(spec)
  const costs = isEnabled('PodDeletionCost')
  return {
    allowPrivileged,
    isPod: false,
    strictIps: isEnabled('StrictIPCIDRValidation'),
    relaxedEnvNames: true,
    envFiles: isEnabled('EnvFiles') || had(usesEnvFiles),
    podLevelResources: isEnabled('PodLevelResources'),
    podLevelResize: isEnabled('InPlacePodLevelResourcesVerticalScaling'),
    restartRules: isEnabled('ContainerRestartRules') || had(usesRestartRules),
    restartAllContainers: isEnabled('RestartAllContainersOnContainerExits') || had(usesRestartAll),
    tolerationComparisons: isEnabled('TaintTolerationComparisonOperators') || had(usesComparisons),
    userNamespacesOnHostNetwork:
      isEnabled('UserNamespacesHostNetworkSupport') ||
      had((one) => one.hostUsers === false && one.hostNetwork === true),
    userNamespacesWithDevices: had((one) => one.hostUsers === false && usesDevices(one)),
    onlyRecursiveSELinux:
      !isEnabled('SELinuxMount') && !had((one) => one.securityContext?.seLinuxChangePolicy !== undefined),
    mergedSpreadKeys: mergesSpreadKeys(isEnabled, spec),
    imageVolumeStatus: isEnabled('ImageVolumeWithDigest'),
    indivisibleHugePages: had(hasIndivisibleHugePages),
    invalidDeletionCost: !costs || (old !== undefined && deletionCostOf(old.metadata.annotations) === undefined),
    invalidAffinityValues: had((one) =>
      podAffinityTerms(one.affinity).some((term) => validateTermSelectors(fieldPath(''), term, false).length > 0),
    ),
    invalidNodeAffinityValues: had(hasInvalidNodeAffinity),
    invalidSpreadSelector: had(hasInvalidSpreadSelector),
    nonLocalTokenPaths: had(hasNonLocalTokenPath),
    sharedSysctls: had(hasSharedSysctl),
    restartingInitResize: had(hasRestartingInitResize),
  }
}

function usesEnvFiles(spec: PodSpec): boolean {
  return containersOf(spec).some(({ container }) =>
    container.env?.some(({ valueFrom }) => valueFrom?.fileKeyRef !== undefined),
  )
}

export function usesRestartRules(spec: PodSpec): boolean {
  return (
    (spec.containers ?? []).some(({ restartPolicy }) => restartPolicy !== undefined) ||
    (spec.initContainers ?? []).some(
      ({ restartPolicy = 'Always', restartPolicyRules: rules = [] }) => restartPolicy !== 'Always' || rules.length > 0,
    )
  )
}

function usesRestartAll(spec: PodSpec): boolean {
  const asksForAll = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].some(({ restartPolicyRules }) =>
    restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers'),
  )
  return (
    asksForAll || (spec.initContainers ?? []).some((one) => isSidecar(one) && (one.restartPolicyRules ?? []).length > 0)
  )
}

function usesComparisons({ tolerations = [] }: PodSpec): boolean {
  return tolerations.some(({ operator }) => operator === 'Lt' || operator === 'Gt')
}

function usesDevices(spec: PodSpec): boolean {
  return containersOf(spec).some(({ container }) => (container.volumeDevices ?? []).length > 0)
}

/** An object that breaks the current rules is validated by the older ones. */
function mergesSpreadKeys(isEnabled: PodRules['isEnabled'], old: PodSpec | undefined): boolean {
  if (!isEnabled('MatchLabelKeysInPodTopologySpread')) return false
  const constraints = old?.topologySpreadConstraints ?? []
  if (isEnabled('MatchLabelKeysInPodTopologySpreadSelectorMerge')) {
    return constraints.every(
      ({ matchLabelKeys, labelSelector }) =>
        validateLabelKeys(fieldPath(''), { matchLabelKeys, labelSelector }).length === 0,
    )
  }
  return constraints.some((constraint) => validateUnmergedKeys(fieldPath(''), constraint).length > 0)
}

function hasIndivisibleHugePages(spec: PodSpec): boolean {
  return containersOf(spec).some(({ container }) => {
    const { limits = {}, requests = {} } = container.resources ?? {}
    const amounts = [...Object.entries(limits), ...Object.entries(requests)]
    return amounts.some(([name, amount]) => isHugePages(name) && !isWholePages(name, amount))
  })
}

function hasInvalidNodeAffinity({ affinity }: PodSpec): boolean {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const values = terms.flatMap(({ matchExpressions = [] }) => matchExpressions.flatMap((one) => one.values ?? []))
  return values.some((value) => labelValue(value).length > 0)
}

function hasInvalidSpreadSelector({ topologySpreadConstraints = [] }: PodSpec): boolean {
  return topologySpreadConstraints.some(
    ({ labelSelector }) => validateLabelSelector(fieldPath(''), labelSelector).length > 0,
  )
}

function hasNonLocalTokenPath({ volumes = [] }: PodSpec): boolean {
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? [])
  return sources.some(
    ({ serviceAccountToken: token }) =>
      token !== undefined && validateUnreservedPath(fieldPath(''), token.path).length > 0,
  )
}

function hasSharedSysctl(spec: PodSpec): boolean {
  return (spec.securityContext?.sysctls ?? []).some(({ name }) => sharedNamespaceOf(name, spec) !== undefined)
}

function hasRestartingInitResize({ initContainers = [] }: PodSpec): boolean {
  return initContainers.some(
    (one) => !isSidecar(one) && one.resizePolicy?.some(({ restartPolicy }) => restartPolicy === 'RestartContainer'),
  )
}
