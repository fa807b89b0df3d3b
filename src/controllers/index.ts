/** Every controller there is, by name. Which of them run is `--controllers`' choice: see selection.ts. */
import { attachDetachController } from './attach-detach/controller.ts'
import { bootstrapSignerController } from './bootstrap-signer.ts'
import { certificateApprovingController } from './certificates/approving.ts'
import { certificateCleanerController } from './certificates/cleaner.ts'
import { podCertificateCleanerController } from './certificates/pod-cleaner.ts'
import { certificateSigningController } from './certificates/signing.ts'
import { clusterRoleAggregationController } from './clusterrole-aggregation.ts'
import { clusterTrustBundlePublisherController } from './clustertrustbundle-publisher.ts'
import type { Controller } from './controller.ts'
import { cronJobController } from './cronjob/controller.ts'
import { daemonSetController } from './daemonset/controller.ts'
import { deploymentController } from './deployment/controller.ts'
import { deviceTaintEvictionController } from './device-taint-eviction/controller.ts'
import { disruptionController } from './disruption.ts'
import { endpointsController } from './endpoints.ts'
import { endpointSliceMirroringController } from './endpointslice-mirroring.ts'
import { endpointSliceController } from './endpointslice/controller.ts'
import { ephemeralVolumeController } from './ephemeral-volume.ts'
import { garbageCollectorController } from './garbage-collector/controller.ts'
import { horizontalPodAutoscalerController } from './horizontal-pod-autoscaler/controller.ts'
import { jobController } from './job/controller.ts'
import { legacyTokenCleanerController } from './legacy-serviceaccount-token-cleaner.ts'
import { namespaceController } from './namespace.ts'
import { nodeIpamController } from './node-ipam/controller.ts'
import { nodeLifecycleController } from './node-lifecycle/controller.ts'
import { persistentVolumeBinderController } from './persistentvolume-binder/controller.ts'
import { persistentVolumeExpanderController } from './persistentvolume-expander.ts'
import { podGarbageCollectorController } from './pod-garbage-collector.ts'
import { podGroupProtectionController } from './podgroup-protection.ts'
import { replicaSetController } from './replicaset.ts'
import { replicationControllerController } from './replicationcontroller.ts'
import { resourceClaimController } from './resourceclaim/controller.ts'
import { resourcePoolStatusRequestController } from './resourcepoolstatusrequest.ts'
import { resourceQuotaController } from './resourcequota.ts'
import { rootCaCertificatePublisherController } from './root-ca-certificate-publisher.ts'
import { seLinuxWarningController } from './selinux-warning.ts'
import { serviceCidrController } from './service-cidr.ts'
import { serviceAccountTokenController } from './serviceaccount-token.ts'
import { serviceAccountController } from './serviceaccount.ts'
import { statefulSetController } from './statefulset/controller.ts'
import { storageVersionMigratorController } from './storage-version-migrator/controller.ts'
import { storageVersionGarbageCollectorController } from './storageversion-garbage-collector.ts'
import { taintEvictionController } from './taint-eviction.ts'
import { tokenCleanerController } from './token-cleaner.ts'
import { ttlAfterFinishedController } from './ttl-after-finished.ts'
import { ttlController } from './ttl.ts'
import { validatingAdmissionPolicyStatusController } from './validatingadmissionpolicy-status.ts'
import {
  claimProtectionController,
  volumeAttributesClassProtectionController,
  volumeProtectionController,
} from './volume-protection.ts'

export const CONTROLLERS: readonly Controller[] = [
  bootstrapSignerController,
  certificateApprovingController,
  certificateCleanerController,
  certificateSigningController,
  clusterRoleAggregationController,
  cronJobController,
  daemonSetController,
  deploymentController,
  deviceTaintEvictionController,
  disruptionController,
  endpointsController,
  endpointSliceController,
  endpointSliceMirroringController,
  ephemeralVolumeController,
  garbageCollectorController,
  horizontalPodAutoscalerController,
  jobController,
  clusterTrustBundlePublisherController,
  legacyTokenCleanerController,
  namespaceController,
  nodeIpamController,
  nodeLifecycleController,
  attachDetachController,
  persistentVolumeBinderController,
  persistentVolumeExpanderController,
  volumeProtectionController,
  claimProtectionController,
  podGarbageCollectorController,
  podCertificateCleanerController,
  podGroupProtectionController,
  replicaSetController,
  replicationControllerController,
  resourceClaimController,
  resourcePoolStatusRequestController,
  resourceQuotaController,
  rootCaCertificatePublisherController,
  seLinuxWarningController,
  serviceCidrController,
  serviceAccountController,
  serviceAccountTokenController,
  statefulSetController,
  storageVersionMigratorController,
  storageVersionGarbageCollectorController,
  taintEvictionController,
  tokenCleanerController,
  ttlAfterFinishedController,
  ttlController,
  validatingAdmissionPolicyStatusController,
  volumeAttributesClassProtectionController,
]
