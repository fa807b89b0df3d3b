/** The rules of a pod spec, for pods and for templates, in the order in which upstream reports them (v1.36). */
import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { child, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, rangeText } from '#meta/validation/names.ts'
import { complaining, validateLabels } from '#meta/validation/rules.ts'

import { validateTolerations } from '../taints.ts'
import { validateAffinity } from './affinity.ts'
import { requiredOneOf, validateDnsLabel, validateObjectName, validateQualifiedName } from './checks.ts'
import { type PodScope, validateContainers, validateEphemeralContainers, validateInitContainers } from './containers.ts'
import {
  validateDnsConfig,
  validateHostAliases,
  validateHostnameOverride,
  validateHostNetworkPorts,
  validateHostUsers,
} from './network.ts'
import { validateOverhead, validatePodResources } from './resources.ts'
import type { PodOptions } from './rules.ts'
import { validatePodClaims, validateSchedulingGates, validateSchedulingGroup, validateSpread } from './scheduling.ts'
import { validatePodSecurity } from './security.ts'
import { validateFileKeyVolumes, validateVolumes } from './volumes.ts'
import { validateHostProcess, validateOs } from './windows.ts'

const MAX_INT32 = 2 ** 31 - 1

/** `metadata` only for the spec of a Pod: names of claims made for it are derived from its own. */
export function validatePodSpec(spec: PodSpec, path: string, options: PodOptions, metadata?: ObjectMeta): FieldError[] {
  const at = (name: string): string => child(path, name)
  const { volumes, errors } = validateVolumes(at('volumes'), spec.volumes, options, metadata)
  const claims = (spec.resourceClaims ?? []).map(({ name }) => name).filter((name) => name !== '')
  const scope: PodScope = { spec, volumes, claimNames: new Set(claims), options }
  return [
    ...(spec.terminationGracePeriodSeconds === undefined ? [required(at('terminationGracePeriodSeconds'))] : []),
    ...errors,
    ...validatePodClaims(at('resourceClaims'), spec.resourceClaims, metadata),
    ...validateContainers(at('containers'), scope),
    ...validateInitContainers(at('initContainers'), scope),
    ...validateEphemeralContainers(at('ephemeralContainers'), scope),
    ...(options.podLevelResources ? validatePodResources(path, spec, scope.claimNames, options) : []),
    ...validateHostNetworkPorts(path, spec, options),
    ...requiredOneOf(at('restartPolicy'), spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...requiredOneOf(at('dnsPolicy'), spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    ...validateLabels(at('nodeSelector'), spec.nodeSelector),
    ...validatePodSecurity(at('securityContext'), spec, options),
    ...validateAffinity(at('affinity'), spec.affinity, options),
    ...validateDnsConfig(at('dnsConfig'), spec, options),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, gate) =>
      validateQualifiedName(child(index(at('readinessGates'), gate), 'conditionType'), conditionType),
    ),
    ...validateSchedulingGates(at('schedulingGates'), spec.schedulingGates),
    ...validateSpread(at('topologySpreadConstraints'), spec.topologySpreadConstraints, options),
    ...validateHostProcess(path, spec, options.allowPrivileged),
    ...validateHostUsers(path, spec, options),
    ...validateHostnameOverride(path, spec),
    ...validateNamesAndTimes(path, spec),
    ...validateTolerations(at('tolerations'), spec.tolerations, options.tolerationComparisons),
    ...validateHostAliases(at('hostAliases'), spec.hostAliases, options),
    ...validateObjectName(at('priorityClassName'), spec.priorityClassName),
    ...validateClasses(path, spec),
    ...validateOverhead(at('overhead'), spec.overhead, options),
    ...validateOs(path, spec),
    ...validateSchedulingGroup(at('schedulingGroup'), spec.schedulingGroup),
    ...validateFileKeyVolumes(path, spec),
  ]
}

function validateNamesAndTimes(path: string, spec: PodSpec): FieldError[] {
  const { activeDeadlineSeconds: deadline, hostname = '', subdomain = '' } = spec
  return [
    ...validateObjectName(child(path, 'serviceAccountName'), spec.serviceAccountName),
    ...validateObjectName(child(path, 'nodeName'), spec.nodeName),
    ...(deadline === undefined || (deadline >= 1 && deadline <= MAX_INT32)
      ? []
      : [invalid(child(path, 'activeDeadlineSeconds'), deadline, rangeText(1, MAX_INT32))]),
    ...(hostname === '' ? [] : validateDnsLabel(child(path, 'hostname'), hostname)),
    ...(subdomain === '' ? [] : validateDnsLabel(child(path, 'subdomain'), subdomain)),
  ]
}

/** Pointers upstream: empty is not the same as absent. */
function validateClasses(path: string, { runtimeClassName, preemptionPolicy }: PodSpec): FieldError[] {
  return [
    ...(runtimeClassName === undefined
      ? []
      : complaining(child(path, 'runtimeClassName'), runtimeClassName, dns1123Subdomain(runtimeClassName))),
    ...(preemptionPolicy === undefined
      ? []
      : requiredOneOf(child(path, 'preemptionPolicy'), preemptionPolicy, ['PreemptLowerPriority', 'Never'])),
  ]
}
