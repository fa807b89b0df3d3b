/** Corrects the generated API tables where the input of the generator is wrong, by the Kubernetes v1.36.4 sources. Kept as small as possible. */
import type { Message, Presence } from './facts.ts'

/** Groups of packages that have no kind in OpenAPI and no other version that has. */
export const GROUPS: Readonly<Record<string, string>> = {
  admission: 'admission.k8s.io',
  apidiscovery: 'apidiscovery.k8s.io',
  extensions: 'extensions',
  imagepolicy: 'imagepolicy.k8s.io',
  meta: 'meta.k8s.io',
}

/** Kinds that neither OpenAPI, nor a fixture, nor a list of them shows. */
export const EXTRA_KINDS: Readonly<Record<string, readonly string[]>> = {
  'apidiscovery/v2': ['APIGroupDiscoveryList'],
  'apidiscovery/v2beta1': ['APIGroupDiscoveryList'],
  'apiextensions/v1': ['ConversionReview'],
  'apiextensions/v1beta1': ['ConversionReview'],
  'meta/v1': ['PartialObjectMetadata', 'PartialObjectMetadataList', 'Table', 'TableOptions'],
  'meta/v1beta1': ['PartialObjectMetadataList'],
}

/** Kinds of one group version whose Go type is that of another: package → kind → package. */
export const ELSEWHERE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'core/v1': { List: 'meta/v1' },
  'meta/v1beta1': { PartialObjectMetadata: 'meta/v1', Table: 'meta/v1', TableOptions: 'meta/v1' },
}

/** Structs that are no kind of their own package and open with kind and apiVersion all the same. */
export const TYPE_META: ReadonlySet<string> = new Set([
  'meta/v1.APIGroup',
  'meta/v1.APIGroupList',
  'meta/v1.APIResourceList',
  'meta/v1.APIVersions',
  'meta/v1.ApplyOptions',
  'meta/v1.CreateOptions',
  'meta/v1.DeleteOptions',
  'meta/v1.GetOptions',
  'meta/v1.List',
  'meta/v1.ListOptions',
  'meta/v1.PatchOptions',
  'meta/v1.Status',
  'meta/v1.UpdateOptions',
])

/** Presence flags that wire-presence.json lacks. */
export const PRESENCE: Readonly<Record<string, Readonly<Record<string, Presence>>>> = {
  'core/v1.EphemeralContainer': { ephemeralContainerCommon: 'vi' },
  'admissionregistration/v1alpha1.MatchCondition': { name: 'v', expression: 'v' },
}

/** Structs that exist in JSON only: fields as protobuf would have them, without numbers, and their presence. */
export const JSON_ONLY: Readonly<Record<string, readonly [Message, Readonly<Record<string, Presence>>]>> = {
  'meta/v1.Table': [
    {
      metadata: { id: 0, type: 'ListMeta' },
      columnDefinitions: { id: 0, type: 'TableColumnDefinition', repeated: true },
      rows: { id: 0, type: 'TableRow', repeated: true },
    },
    { metadata: 'vo', columnDefinitions: 'v', rows: 'v' },
  ],
  'meta/v1.TableColumnDefinition': [
    {
      name: { id: 0, type: 'string' },
      type: { id: 0, type: 'string' },
      format: { id: 0, type: 'string' },
      description: { id: 0, type: 'string' },
      priority: { id: 0, type: 'int32' },
    },
    { name: 'v', type: 'v', format: 'v', description: 'v', priority: 'v' },
  ],
  'meta/v1.TableRow': [
    {
      cells: { id: 0, type: 'any', repeated: true },
      conditions: { id: 0, type: 'TableRowCondition', repeated: true },
      object: { id: 0, type: '.k8s.io.apimachinery.pkg.runtime.RawExtension' },
    },
    { cells: 'v', conditions: 'vo', object: 'vo' },
  ],
  'meta/v1.TableRowCondition': [
    {
      type: { id: 0, type: 'string' },
      status: { id: 0, type: 'string' },
      reason: { id: 0, type: 'string' },
      message: { id: 0, type: 'string' },
    },
    { type: 'v', status: 'v', reason: 'vo', message: 'vo' },
  ],
}

/**
 * Fields that are dropped on create while a gate stays off that is off by default in 1.36; in every version of the
 * struct, because upstream drops them from its internal form.
 */
export const GATES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'apps.RollingUpdateStatefulSetStrategy': { maxUnavailable: 'MaxUnavailableStatefulSet' },
  'coordination.LeaseSpec': {
    strategy: 'CoordinatedLeaderElection',
    preferredHolder: 'CoordinatedLeaderElection',
  },
  'core.TypedObjectReference': { namespace: 'CrossNamespaceVolumeDataSource' },
  'core.VolumeProjection': {
    clusterTrustBundle: 'ClusterTrustBundleProjection',
    podCertificate: 'PodCertificateRequest',
  },
  'core.PodSpec': { schedulingGroup: 'GenericWorkload' },
  'core.Lifecycle': { stopSignal: 'ContainerStopSignals' },
  'core.ContainerStatus': { stopSignal: 'ContainerStopSignals' },
  'core.PodStatus': { nodeAllocatableResourceClaimStatuses: 'DRANodeAllocatableResources' },
  'core.VolumeStatus': { image: 'ImageVolumeWithDigest' },
  'core.PodLogOptions': { stream: 'PodLogsQuerySplitStreams' },
  'storage.CSIDriverSpec': { preventPodSchedulingIfMissing: 'VolumeLimitScaling' },
  'resource.BasicDevice': { nodeAllocatableResourceMappings: 'DRANodeAllocatableResources' },
  'resource.Device': { nodeAllocatableResourceMappings: 'DRANodeAllocatableResources' },
  'resource.DeviceAttribute': {
    bools: 'DRAListTypeAttributes',
    ints: 'DRAListTypeAttributes',
    strings: 'DRAListTypeAttributes',
    versions: 'DRAListTypeAttributes',
  },
}

/**
 * Lists and maps that upstream's rules ask for being nil, where every other rule asks for being empty: `[]` is not the
 * same as nothing there. In every version of the struct.
 */
export const EMPTY_COUNTS: Readonly<Record<string, readonly string[]>> = {
  'apiextensions.JSONSchemaProps': ['dependencies'],
  'autoscaling.HPAScalingRules': ['policies'],
  'core.ResourceRequirements': ['claims'],
  'resource.DeviceAttribute': ['bools', 'ints', 'strings', 'versions'],
  'resource.DeviceRequest': ['selectors', 'tolerations'],
  'resource.ResourceSliceSpec': ['devices', 'sharedCounters'],
}

/** Gates that a resource needs on top of its version being turned on by `--runtime-config`. */
export const RESOURCE_GATES: Readonly<Record<string, string>> = {
  'certificates.k8s.io/clustertrustbundles': 'ClusterTrustBundle',
  'certificates.k8s.io/podcertificaterequests': 'PodCertificateRequest',
  'scheduling.k8s.io/podgroups': 'GenericWorkload',
  'scheduling.k8s.io/workloads': 'GenericWorkload',
  'storagemigration.k8s.io/storageversionmigrations': 'StorageVersionMigrator',
}

/** Fields that OpenAPI calls required and that are null in valid objects all the same. */
export const NULLABLE: ReadonlySet<string> = new Set([
  'authorization/v1.SubjectRulesReviewStatus.nonResourceRules',
  'authorization/v1.SubjectRulesReviewStatus.resourceRules',
  'core/v1.LimitRangeSpec.limits',
  'events/v1.Event.eventTime',
  'storage/v1.CSINodeSpec.drivers',
])
