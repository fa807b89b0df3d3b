/** Lists all served kinds, one per line. Components of the running server are passed in. */
import type { Resource } from '#apiserver/registry/resource.ts'
import type { Access, Authorizer } from '#auth/authorizer.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import type { User } from '#auth/user.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { defineMutatingAdmissionPolicy } from './admissionregistration/mutatingadmissionpolicy.ts'
import { defineMutatingAdmissionPolicyBinding } from './admissionregistration/mutatingadmissionpolicybinding.ts'
import { mutatingWebhookConfiguration } from './admissionregistration/mutatingwebhookconfiguration.ts'
import { defineValidatingAdmissionPolicy } from './admissionregistration/validatingadmissionpolicy.ts'
import { defineValidatingAdmissionPolicyBinding } from './admissionregistration/validatingadmissionpolicybinding.ts'
import { validatingWebhookConfiguration } from './admissionregistration/validatingwebhookconfiguration.ts'
import { customResourceDefinition } from './apiextensions/customresourcedefinition/resource.ts'
import { apiService } from './apiregistration/apiservice.ts'
import { storageVersion } from './apiserverinternal/storageversion.ts'
import { controllerRevision } from './apps/controllerrevision.ts'
import { daemonSet } from './apps/daemonset.ts'
import { deployment } from './apps/deployment.ts'
import { replicaSet } from './apps/replicaset.ts'
import { statefulSet } from './apps/statefulset.ts'
import { horizontalPodAutoscaler } from './autoscaling/horizontalpodautoscaler/resource.ts'
import { cronJob } from './batch/cronjob.ts'
import { job } from './batch/job/resource.ts'
import { defineCertificateSigningRequest } from './certificates/certificatesigningrequest.ts'
import { clusterTrustBundle } from './certificates/clustertrustbundle.ts'
import { definePodCertificateRequest } from './certificates/podcertificaterequest/resource.ts'
import { lease } from './coordination/lease.ts'
import { leaseCandidate } from './coordination/leasecandidate.ts'
import { configMap } from './core/configmap.ts'
import { endpoints } from './core/endpoints.ts'
import { createEventResource, event } from './core/event.ts'
import { limitRange } from './core/limitrange.ts'
import { namespace } from './core/namespace.ts'
import { node } from './core/node/resource.ts'
import { persistentVolume } from './core/persistentvolume/resource.ts'
import { persistentVolumeClaim } from './core/persistentvolumeclaim/resource.ts'
import { pod } from './core/pod/resource.ts'
import { podTemplate } from './core/podtemplate.ts'
import { replicationController } from './core/replicationcontroller.ts'
import { resourceQuota } from './core/resourcequota.ts'
import { secret } from './core/secret.ts'
import type { ServiceAllocator } from './core/service/allocation.ts'
import { createServiceResource } from './core/service/resource.ts'
import { serviceAccount } from './core/serviceaccount.ts'
import { endpointSlice } from './discovery/endpointslice.ts'
import { flowSchema } from './flowcontrol/flowschema.ts'
import { priorityLevelConfiguration } from './flowcontrol/prioritylevelconfiguration.ts'
import { ingress } from './networking/ingress.ts'
import { ingressClass } from './networking/ingressclass.ts'
import { ipAddress } from './networking/ipaddress.ts'
import { networkPolicy } from './networking/networkpolicy.ts'
import { serviceCidr } from './networking/servicecidr.ts'
import { runtimeClass } from './node/runtimeclass.ts'
import { podDisruptionBudget } from './policy/poddisruptionbudget.ts'
import { defineClusterRole } from './rbac/clusterrole.ts'
import { defineClusterRoleBinding } from './rbac/clusterrolebinding.ts'
import { defineRole } from './rbac/role.ts'
import { defineRoleBinding } from './rbac/rolebinding.ts'
import { deviceClass } from './resource/deviceclass.ts'
import { deviceTaintRule } from './resource/devicetaintrule.ts'
import { defineResourceClaim } from './resource/resourceclaim.ts'
import { resourceClaimTemplate } from './resource/resourceclaimtemplate.ts'
import { resourcePoolStatusRequest } from './resource/resourcepoolstatusrequest.ts'
import { resourceSlice } from './resource/resourceslice.ts'
import { podGroup } from './scheduling/podgroup.ts'
import { priorityClass } from './scheduling/priorityclass.ts'
import { workload } from './scheduling/workload.ts'
import { csiDriver } from './storage/csidriver.ts'
import { csiNode } from './storage/csinode.ts'
import { csiStorageCapacity } from './storage/csistoragecapacity.ts'
import { storageClass } from './storage/storageclass.ts'
import { volumeAttachment } from './storage/volumeattachment.ts'
import { volumeAttributesClass } from './storage/volumeattributesclass.ts'
import { storageVersionMigration } from './storagemigration/storageversionmigration.ts'

export interface ResourceParts {
  /** Allocates addresses and node ports. */
  readonly services: ServiceAllocator
  /** Checks privilege escalation; absent if authorization is off. */
  readonly escalation?: EscalationChecks | undefined
  /** Authorizes signing and device allocation; absent if authorization is off. */
  readonly authorizer?: Authorizer
  /** The resource of a kind; undefined if there is none. */
  readonly resourceOf?: (kind: GroupVersionKind) => string | undefined
  /** `--event-ttl`; an hour by default. */
  readonly eventTtlMs?: number
  readonly metrics?: ServerMeters
}

/** Kinds without dependencies. */
const PLAIN: readonly Resource[] = [
  apiService,
  clusterTrustBundle,
  configMap,
  controllerRevision,
  cronJob,
  csiDriver,
  csiNode,
  csiStorageCapacity,
  customResourceDefinition,
  daemonSet,
  deployment,
  deviceClass,
  deviceTaintRule,
  endpointSlice,
  endpoints,
  flowSchema,
  horizontalPodAutoscaler,
  ingress,
  ingressClass,
  ipAddress,
  job,
  lease,
  leaseCandidate,
  limitRange,
  mutatingWebhookConfiguration,
  namespace,
  networkPolicy,
  node,
  persistentVolume,
  persistentVolumeClaim,
  pod,
  podDisruptionBudget,
  podGroup,
  podTemplate,
  priorityClass,
  priorityLevelConfiguration,
  replicaSet,
  replicationController,
  resourceClaimTemplate,
  resourcePoolStatusRequest,
  resourceQuota,
  resourceSlice,
  runtimeClass,
  secret,
  serviceAccount,
  serviceCidr,
  statefulSet,
  storageClass,
  storageVersion,
  storageVersionMigration,
  validatingWebhookConfiguration,
  volumeAttachment,
  volumeAttributesClass,
  workload,
]

export function createResources(parts: ResourceParts): readonly Resource[] {
  const { services, escalation, authorizer, eventTtlMs, metrics, resourceOf = () => undefined } = parts
  const ask = authorizer && ((user: User, access: Access) => authorizer.authorize(user, access))
  const params = ask && { ask, resourceOf }
  return [
    ...PLAIN,
    defineCertificateSigningRequest(metrics),
    createServiceResource(services),
    defineClusterRole(escalation),
    defineClusterRoleBinding(escalation),
    defineRole(escalation),
    defineRoleBinding(escalation),
    definePodCertificateRequest(ask),
    defineResourceClaim(ask),
    defineMutatingAdmissionPolicy(params),
    defineMutatingAdmissionPolicyBinding(params),
    defineValidatingAdmissionPolicy(params),
    defineValidatingAdmissionPolicyBinding(params),
    eventTtlMs === undefined ? event : createEventResource(eventTtlMs),
  ]
}
