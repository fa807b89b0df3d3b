/** Lists the invalid objects that the API server must reject, for every API kind. */

import { mutatingAdmissionPolicy } from './admissionregistration/mutatingadmissionpolicy.ts'
import { mutatingAdmissionPolicyBinding } from './admissionregistration/mutatingadmissionpolicybinding.ts'
import { mutatingWebhookConfiguration } from './admissionregistration/mutatingwebhookconfiguration.ts'
import { validatingAdmissionPolicy } from './admissionregistration/validatingadmissionpolicy.ts'
import { validatingAdmissionPolicyBinding } from './admissionregistration/validatingadmissionpolicybinding.ts'
import { validatingWebhookConfiguration } from './admissionregistration/validatingwebhookconfiguration.ts'
import { customResourceDefinition } from './apiextensions/customresourcedefinition.ts'
import { apiService } from './apiregistration/apiservice.ts'
import { controllerRevision } from './apps/controllerrevision.ts'
import { daemonSet } from './apps/daemonset.ts'
import { deployment } from './apps/deployment.ts'
import { replicaSet } from './apps/replicaset.ts'
import { statefulSet } from './apps/statefulset.ts'
import { selfSubjectReview } from './authentication/selfsubjectreview.ts'
import { tokenReview } from './authentication/tokenreview.ts'
import { localSubjectAccessReview } from './authorization/localsubjectaccessreview.ts'
import { selfSubjectAccessReview } from './authorization/selfsubjectaccessreview.ts'
import { selfSubjectRulesReview } from './authorization/selfsubjectrulesreview.ts'
import { subjectAccessReview } from './authorization/subjectaccessreview.ts'
import { horizontalPodAutoscaler, horizontalPodAutoscalerV1 } from './autoscaling/horizontalpodautoscaler.ts'
import { cronJob } from './batch/cronjob.ts'
import { job } from './batch/job.ts'
import type { KindCases } from './case.ts'
import { certificateSigningRequest } from './certificates/certificatesigningrequest.ts'
import { lease } from './coordination/lease.ts'
import { binding } from './core/binding.ts'
import { configMap } from './core/configmap.ts'
import { endpoints } from './core/endpoints.ts'
import { event } from './core/event.ts'
import { limitRange } from './core/limitrange.ts'
import { namespace } from './core/namespace.ts'
import { node } from './core/node.ts'
import { persistentVolume } from './core/persistentvolume.ts'
import { persistentVolumeClaim } from './core/persistentvolumeclaim.ts'
import { pod } from './core/pod.ts'
import { podTemplate } from './core/podtemplate.ts'
import { replicationController } from './core/replicationcontroller.ts'
import { resourceQuota } from './core/resourcequota.ts'
import { secret } from './core/secret.ts'
import { service } from './core/service.ts'
import { serviceAccount } from './core/serviceaccount.ts'
import { value } from './custom/value.ts'
import { endpointSlice } from './discovery/endpointslice.ts'
import { event as regardingEvent } from './events/event.ts'
import { flowSchema } from './flowcontrol/flowschema.ts'
import { priorityLevelConfiguration } from './flowcontrol/prioritylevelconfiguration.ts'
import { ingress } from './networking/ingress.ts'
import { ingressClass } from './networking/ingressclass.ts'
import { ipAddress } from './networking/ipaddress.ts'
import { networkPolicy } from './networking/networkpolicy.ts'
import { serviceCidr } from './networking/servicecidr.ts'
import { runtimeClass } from './node/runtimeclass.ts'
import { podDisruptionBudget } from './policy/poddisruptionbudget.ts'
import { clusterRole } from './rbac/clusterrole.ts'
import { clusterRoleBinding } from './rbac/clusterrolebinding.ts'
import { role } from './rbac/role.ts'
import { roleBinding } from './rbac/rolebinding.ts'
import { deviceClass } from './resource/deviceclass.ts'
import { resourceClaim } from './resource/resourceclaim.ts'
import { resourceClaimTemplate } from './resource/resourceclaimtemplate.ts'
import { resourceSlice } from './resource/resourceslice.ts'
import { priorityClass } from './scheduling/priorityclass.ts'
import { csiDriver } from './storage/csidriver.ts'
import { csiNode } from './storage/csinode.ts'
import { csiStorageCapacity } from './storage/csistoragecapacity.ts'
import { storageClass } from './storage/storageclass.ts'
import { volumeAttachment } from './storage/volumeattachment.ts'
import { volumeAttributesClass } from './storage/volumeattributesclass.ts'

export const everyCase: readonly KindCases[] = [
  configMap,
  pod,
  binding,
  endpoints,
  event,
  limitRange,
  namespace,
  node,
  podTemplate,
  replicationController,
  resourceQuota,
  secret,
  serviceAccount,
  persistentVolume,
  persistentVolumeClaim,
  service,
  controllerRevision,
  daemonSet,
  deployment,
  replicaSet,
  statefulSet,
  cronJob,
  job,
  horizontalPodAutoscaler,
  horizontalPodAutoscalerV1,
  podDisruptionBudget,
  customResourceDefinition,
  apiService,
  mutatingAdmissionPolicy,
  mutatingAdmissionPolicyBinding,
  mutatingWebhookConfiguration,
  validatingAdmissionPolicy,
  validatingAdmissionPolicyBinding,
  validatingWebhookConfiguration,
  selfSubjectReview,
  tokenReview,
  localSubjectAccessReview,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
  certificateSigningRequest,
  lease,
  endpointSlice,
  regardingEvent,
  flowSchema,
  priorityLevelConfiguration,
  ingress,
  ingressClass,
  ipAddress,
  networkPolicy,
  serviceCidr,
  runtimeClass,
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
  deviceClass,
  resourceClaim,
  resourceClaimTemplate,
  resourceSlice,
  priorityClass,
  csiDriver,
  csiNode,
  csiStorageCapacity,
  storageClass,
  volumeAttachment,
  volumeAttributesClass,
  value,
]
