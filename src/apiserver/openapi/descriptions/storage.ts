/** storage and storagemigration: where volumes come from, and how stored objects change their version. */
import type { DescriptionTable } from './table.ts'

export const storage: DescriptionTable = {
  StorageClass: {
    '': 'A sort of storage that claims can ask for by name.',
    provisioner: 'Who makes the volumes, such as a CSI driver. Cannot be changed.',
    parameters: 'What the provisioner wants to know. Cannot be changed.',
    reclaimPolicy: 'What becomes of a volume when its claim goes: Delete (the default) or Retain.',
    mountOptions: 'Options for mount, not checked.',
    allowVolumeExpansion: 'Whether volumes can become larger.',
    volumeBindingMode: 'Immediate (the default), or WaitForFirstConsumer to see first where the pod goes.',
    allowedTopologies: 'In which parts of the cluster volumes may be made.',
  },
  VolumeAttributesClass: {
    '': 'Settings of a volume that can be changed while it is used.',
    driverName: 'The CSI driver. Cannot be changed.',
    parameters: 'The settings. Cannot be changed.',
  },
  VolumeAttachment: { '': 'That a volume shall be attached to a node, and whether it is.' },
  VolumeAttachmentSpec: {
    '': 'Which volume, where. Cannot be changed.',
    attacher: 'Who attaches it, such as a CSI driver.',
    source: 'The volume.',
    nodeName: 'The node.',
  },
  VolumeAttachmentSource: {
    '': 'A volume to be attached. One of the two is set.',
    persistentVolumeName: 'A PersistentVolume.',
    inlineVolumeSpec: 'Or what it would say, for volumes that a pod describes itself.',
  },
  VolumeAttachmentStatus: {
    '': 'Whether a volume is attached.',
    attached: 'Whether it is.',
    attachmentMetadata: 'What mounting needs to know.',
    attachError: 'What went wrong last when attaching.',
    detachError: 'What went wrong last when detaching.',
  },
  VolumeError: {
    '': 'Something that went wrong.',
    time: 'When.',
    message: 'What.',
    errorCode: 'What, as a gRPC code.',
  },
  CSIDriver: { '': 'What a CSI driver can do and wants.' },
  CSIDriverSpec: {
    '': 'What a CSI driver can do and wants.',
    attachRequired: 'Whether volumes must be attached before they are mounted. Default: true.',
    podInfoOnMount: 'Whether it wants to know which pod it mounts for.',
    volumeLifecycleModes: 'Persistent, Ephemeral or both.',
    storageCapacity: 'Whether it says how much room is where.',
    fsGroupPolicy: 'How volumes get the group of the pod: ReadWriteOnceWithFSType, File or None.',
    tokenRequests: 'Tokens of the ServiceAccount of the pod that it wants.',
    requiresRepublish: 'Whether it wants to be called again and again while a volume is mounted.',
    seLinuxMount: 'Whether volumes can be mounted with an SELinux label.',
    nodeAllocatableUpdatePeriodSeconds: 'How often to ask how many volumes a node can take.',
    serviceAccountTokenInSecrets: 'Whether tokens are handed over among the secrets.',
    preventPodSchedulingIfMissing: 'Whether pods are kept off nodes that do not have the driver.',
  },
  TokenRequest: { '': 'A token a driver wants.', audience: 'For whom.', expirationSeconds: 'For how long.' },
  CSINode: { '': 'Which CSI drivers a node has.' },
  CSINodeSpec: { '': 'The drivers of a node.', drivers: 'One entry for each.' },
  CSINodeDriver: {
    '': 'A driver on a node.',
    name: 'The driver.',
    nodeID: 'What the driver calls the node.',
    topologyKeys: 'Labels by which it tells where volumes can be reached.',
    allocatable: 'How many volumes the node can take.',
  },
  VolumeNodeResources: { '': 'How many volumes a node can take.', count: 'So many. Absent: no limit is known.' },
  CSIStorageCapacity: {
    '': 'How much room there is for a StorageClass in a part of the cluster.',
    nodeTopology: 'Which part, by labels of nodes. Cannot be changed.',
    storageClassName: 'The StorageClass. Cannot be changed.',
    capacity: 'How much room there is.',
    maximumVolumeSize: 'How large one volume can be.',
  },
}

export const storageMigration: DescriptionTable = {
  StorageVersionMigration: {
    '': 'That all objects of a resource shall be written anew, in the storage version of today.',
  },
  StorageVersionMigrationSpec: { '': 'What is migrated. Cannot be changed.', resource: 'The resource.' },
  StorageVersionMigrationStatus: {
    '': 'How far a migration has come.',
    conditions: 'Running, Succeeded or Failed.',
    resourceVersion: 'Objects older than this are written anew.',
  },
}
