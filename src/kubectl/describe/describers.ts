/** Which kinds have a description of their own. All others have a generic one. */
import { describeAutoscaler } from './autoscaler.ts'
import { describeCertificateRequest } from './certificate.ts'
import {
  describeConfigMap,
  describeLimitRange,
  describeNamespace,
  describePodDisruptionBudget,
  describePriorityClass,
  describeResourceQuota,
  describeSecret,
  describeServiceAccount,
} from './configuration.ts'
import { type DescribedKind, describes } from './describer.ts'
import {
  describeEndpoints,
  describeEndpointSlice,
  describeIngress,
  describeIngressClass,
  describeIpAddress,
  describeNetworkPolicy,
  describeService,
  describeServiceCidr,
} from './networking.ts'
import { describeNode } from './node.ts'
import { describePod } from './pods.ts'
import { describeRole, describeRoleBinding } from './rbac.ts'
import {
  describeCsiNode,
  describePersistentVolume,
  describePersistentVolumeClaim,
  describeStorageClass,
  describeVolumeAttributesClass,
} from './storage.ts'
import {
  describeCronJob,
  describeDaemonSet,
  describeDeployment,
  describeJob,
  describeReplicaSet,
  describeReplicationController,
  describeStatefulSet,
} from './workloads.ts'

/** By kind and group: `Pod`, `Deployment.apps`. */
export const DESCRIBERS: ReadonlyMap<string, DescribedKind> = new Map([
  ['Pod', describes('v1/pods', describePod)],
  ['ReplicationController', describes('v1/replicationcontrollers', describeReplicationController)],
  ['Secret', describes('v1/secrets', describeSecret)],
  ['Service', describes('v1/services', describeService)],
  ['ServiceAccount', describes('v1/serviceaccounts', describeServiceAccount)],
  ['Node', describes('v1/nodes', describeNode)],
  ['LimitRange', describes('v1/limitranges', describeLimitRange)],
  ['ResourceQuota', describes('v1/resourcequotas', describeResourceQuota)],
  ['PersistentVolume', describes('v1/persistentvolumes', describePersistentVolume)],
  ['PersistentVolumeClaim', describes('v1/persistentvolumeclaims', describePersistentVolumeClaim)],
  ['Namespace', describes('v1/namespaces', describeNamespace)],
  ['Endpoints', describes('v1/endpoints', describeEndpoints)],
  ['ConfigMap', describes('v1/configmaps', describeConfigMap)],
  ['EndpointSlice.discovery.k8s.io', describes('discovery.k8s.io/v1/endpointslices', describeEndpointSlice)],
  ['HorizontalPodAutoscaler.autoscaling', describes('autoscaling/v2/horizontalpodautoscalers', describeAutoscaler)],
  ['Ingress.networking.k8s.io', describes('networking.k8s.io/v1/ingresses', describeIngress)],
  ['IngressClass.networking.k8s.io', describes('networking.k8s.io/v1/ingressclasses', describeIngressClass)],
  ['ServiceCIDR.networking.k8s.io', describes('networking.k8s.io/v1/servicecidrs', describeServiceCidr)],
  ['IPAddress.networking.k8s.io', describes('networking.k8s.io/v1/ipaddresses', describeIpAddress)],
  ['NetworkPolicy.networking.k8s.io', describes('networking.k8s.io/v1/networkpolicies', describeNetworkPolicy)],
  ['Job.batch', describes('batch/v1/jobs', describeJob)],
  ['CronJob.batch', describes('batch/v1/cronjobs', describeCronJob)],
  ['StatefulSet.apps', describes('apps/v1/statefulsets', describeStatefulSet)],
  ['Deployment.apps', describes('apps/v1/deployments', describeDeployment)],
  ['DaemonSet.apps', describes('apps/v1/daemonsets', describeDaemonSet)],
  ['ReplicaSet.apps', describes('apps/v1/replicasets', describeReplicaSet)],
  [
    'CertificateSigningRequest.certificates.k8s.io',
    describes('certificates.k8s.io/v1/certificatesigningrequests', describeCertificateRequest),
  ],
  ['StorageClass.storage.k8s.io', describes('storage.k8s.io/v1/storageclasses', describeStorageClass)],
  ['CSINode.storage.k8s.io', describes('storage.k8s.io/v1/csinodes', describeCsiNode)],
  [
    'VolumeAttributesClass.storage.k8s.io',
    describes('storage.k8s.io/v1/volumeattributesclasses', describeVolumeAttributesClass),
  ],
  ['PodDisruptionBudget.policy', describes('policy/v1/poddisruptionbudgets', describePodDisruptionBudget)],
  ['Role.rbac.authorization.k8s.io', describes('rbac.authorization.k8s.io/v1/roles', describeRole)],
  ['ClusterRole.rbac.authorization.k8s.io', describes('rbac.authorization.k8s.io/v1/clusterroles', describeRole)],
  [
    'RoleBinding.rbac.authorization.k8s.io',
    describes('rbac.authorization.k8s.io/v1/rolebindings', describeRoleBinding),
  ],
  [
    'ClusterRoleBinding.rbac.authorization.k8s.io',
    describes('rbac.authorization.k8s.io/v1/clusterrolebindings', describeRoleBinding),
  ],
  ['PriorityClass.scheduling.k8s.io', describes('scheduling.k8s.io/v1/priorityclasses', describePriorityClass)],
])
