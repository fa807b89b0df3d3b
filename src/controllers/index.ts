/** All controllers by name. `--controllers` selects among them: see selection.ts. */

import type { Controller } from './controller.ts'
import { deviceTaintEvictionController } from './devices/device-taint-eviction/controller.ts'
import { podGroupProtectionController } from './devices/podgroup-protection.ts'
import { resourceClaimController } from './devices/resourceclaim/controller.ts'
import { resourcePoolStatusRequestController } from './devices/resourcepoolstatusrequest.ts'
import { bootstrapSignerController } from './identity/bootstrap-signer.ts'
import { certificateApprovingController } from './identity/certificates/approving.ts'
import { certificateCleanerController } from './identity/certificates/cleaner.ts'
import { podCertificateCleanerController } from './identity/certificates/pod-cleaner.ts'
import { certificateSigningController } from './identity/certificates/signing.ts'
import { clusterRoleAggregationController } from './identity/clusterrole-aggregation.ts'
import { clusterTrustBundlePublisherController } from './identity/clustertrustbundle-publisher.ts'
import { legacyTokenCleanerController } from './identity/legacy-serviceaccount-token-cleaner.ts'
import { rootCaCertificatePublisherController } from './identity/root-ca-certificate-publisher.ts'
import { serviceAccountTokenController } from './identity/serviceaccount-token.ts'
import { serviceAccountController } from './identity/serviceaccount.ts'
import { tokenCleanerController } from './identity/token-cleaner.ts'
import { endpointsController } from './network/endpoints.ts'
import { endpointSliceMirroringController } from './network/endpointslice-mirroring.ts'
import { endpointSliceController } from './network/endpointslice/controller.ts'
import { serviceCidrController } from './network/service-cidr.ts'
import { nodeIpamController } from './nodes/node-ipam/controller.ts'
import { nodeLifecycleController } from './nodes/node-lifecycle/controller.ts'
import { taintEvictionController } from './nodes/taint-eviction.ts'
import { ttlController } from './nodes/ttl.ts'
import { garbageCollectorController } from './objects/garbage-collector/controller.ts'
import { namespaceController } from './objects/namespace.ts'
import { podGarbageCollectorController } from './objects/pod-garbage-collector.ts'
import { resourceQuotaController } from './objects/resourcequota.ts'
import { storageVersionMigratorController } from './objects/storage-version-migrator/controller.ts'
import { storageVersionGarbageCollectorController } from './objects/storageversion-garbage-collector.ts'
import { validatingAdmissionPolicyStatusController } from './objects/validatingadmissionpolicy-status.ts'
import { attachDetachController } from './volumes/attach-detach/controller.ts'
import { ephemeralVolumeController } from './volumes/ephemeral-volume.ts'
import { persistentVolumeBinderController } from './volumes/persistentvolume-binder/controller.ts'
import { persistentVolumeExpanderController } from './volumes/persistentvolume-expander.ts'
import { seLinuxWarningController } from './volumes/selinux-warning.ts'
import {
  claimProtectionController,
  volumeAttributesClassProtectionController,
  volumeProtectionController,
} from './volumes/volume-protection.ts'
import { cronJobController } from './workloads/cronjob/controller.ts'
import { daemonSetController } from './workloads/daemonset/controller.ts'
import { deploymentController } from './workloads/deployment/controller.ts'
import { disruptionController } from './workloads/disruption.ts'
import { horizontalPodAutoscalerController } from './workloads/horizontal-pod-autoscaler/controller.ts'
import { jobController } from './workloads/job/controller.ts'
import { replicaSetController } from './workloads/replicaset.ts'
import { replicationControllerController } from './workloads/replicationcontroller.ts'
import { statefulSetController } from './workloads/statefulset/controller.ts'
import { ttlAfterFinishedController } from './workloads/ttl-after-finished.ts'

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
