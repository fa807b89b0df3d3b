/** Validates the spec of pods and pod templates, in upstream's order (v1.36). */
import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, rangeText } from '#meta/validation/names.ts'
import {
  requiredOneOf,
  validateDnsLabel,
  validateLabels,
  validateObjectName,
  validateQualifiedName,
} from '#meta/validation/rules.ts'

import { validateTolerations } from '../nodes/taints.ts'
import { validateAffinity } from './affinity.ts'
import {
  type PodScope,
  validateContainers,
  validateEphemeralContainers,
  validateInitContainers,
} from './containers/containers.ts'
import { validateOverhead, validatePodResources } from './containers/resources.ts'
import {
  validateDnsConfig,
  validateHostAliases,
  validateHostnameOverride,
  validateHostNetworkPorts,
  validateHostUsers,
} from './network.ts'
import type { PodOptions } from './rules.ts'
import { validatePodClaims, validateSchedulingGates, validateSchedulingGroup, validateSpread } from './scheduling.ts'
import { validatePodSecurity } from './security.ts'
import { validateFileKeyVolumes, validateVolumes } from './volumes/volumes.ts'
import { validateHostProcess, validateOs } from './windows.ts'

const MAX_INT32 = 2 ** 31 - 1

/** `metadata` only for the spec of a Pod: names of generated claims derive from its name. */
export function validatePodSpec(
  spec: PodSpec,
  path: FieldPath,
  options: PodOptions,
  metadata?: ObjectMeta,
): FieldError[] {
  const at = (name: string): FieldPath => path.child(name)
  const { volumes, errors } = validateVolumes(at('volumes'), spec.volumes, options, metadata)
  const claims = (spec.resourceClaims ?? []).map(({ name }) => name).filter((name) => name !== '')
  const scope: PodScope = { spec, volumes, claimNames: new Set(claims), options }
  return collectErrors(
    spec.terminationGracePeriodSeconds === undefined && at('terminationGracePeriodSeconds').required(),
    errors,
    validatePodClaims(at('resourceClaims'), spec.resourceClaims, metadata),
    validateContainers(at('containers'), scope),
    validateInitContainers(at('initContainers'), scope),
    validateEphemeralContainers(at('ephemeralContainers'), scope),
    options.podLevelResources && validatePodResources(path, spec, scope.claimNames, options),
    validateHostNetworkPorts(path, spec, options),
    requiredOneOf(at('restartPolicy'), spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    requiredOneOf(at('dnsPolicy'), spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    validateLabels(at('nodeSelector'), spec.nodeSelector),
    validatePodSecurity(at('securityContext'), spec, options),
    validateAffinity(at('affinity'), spec.affinity, options),
    validateDnsConfig(at('dnsConfig'), spec, options),
    at('readinessGates').each(spec.readinessGates, (path, { conditionType }) =>
      validateQualifiedName(path.child('conditionType'), conditionType),
    ),
    validateSchedulingGates(at('schedulingGates'), spec.schedulingGates),
    validateSpread(at('topologySpreadConstraints'), spec.topologySpreadConstraints, options),
    validateHostProcess(path, spec, options.allowPrivileged),
    validateHostUsers(path, spec, options),
    validateHostnameOverride(path, spec),
    validateNamesAndTimes(path, spec),
    validateTolerations(at('tolerations'), spec.tolerations, options.tolerationComparisons),
    validateHostAliases(at('hostAliases'), spec.hostAliases, options),
    validateObjectName(at('priorityClassName'), spec.priorityClassName),
    validateClasses(path, spec),
    validateOverhead(at('overhead'), spec.overhead, options),
    validateOs(path, spec),
    validateSchedulingGroup(at('schedulingGroup'), spec.schedulingGroup),
    validateFileKeyVolumes(path, spec),
  )
}

function validateNamesAndTimes(path: FieldPath, spec: PodSpec): FieldError[] {
  const { activeDeadlineSeconds: deadline, hostname = '', subdomain = '' } = spec
  return collectErrors(
    validateObjectName(path.child('serviceAccountName'), spec.serviceAccountName),
    validateObjectName(path.child('nodeName'), spec.nodeName),
    deadline !== undefined &&
      (deadline < 1 || deadline > MAX_INT32) &&
      path.child('activeDeadlineSeconds').invalid(deadline, rangeText(1, MAX_INT32)),
    hostname !== '' && validateDnsLabel(path.child('hostname'), hostname),
    subdomain !== '' && validateDnsLabel(path.child('subdomain'), subdomain),
  )
}

/** Pointers in upstream: empty differs from absent. */
function validateClasses(path: FieldPath, { runtimeClassName, preemptionPolicy }: PodSpec): FieldError[] {
  return collectErrors(
    runtimeClassName !== undefined && path.child('runtimeClassName').check(runtimeClassName, dns1123Subdomain),
    preemptionPolicy !== undefined &&
      requiredOneOf(path.child('preemptionPolicy'), preemptionPolicy, ['PreemptLowerPriority', 'Never']),
  )
}
