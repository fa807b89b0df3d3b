/** Storage that outlives pods: volumes, claims on them. */
import type { DescriptionTable } from '../table.ts'
import { persistentSources } from './volume.ts'

const accessModes = 'How it can be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.'
const volumeMode = 'Filesystem (the default) or Block, a raw device.'

export const storageObjects: DescriptionTable = {
  PersistentVolume: { '': 'A piece of storage of the cluster, for a claim to use.' },
  PersistentVolumeSpec: {
    '': 'What a volume is. Exactly one member says what it is made of.',
    ...persistentSources,
    capacity: 'How large it is.',
    accessModes,
    claimRef: 'The claim it belongs to.',
    persistentVolumeReclaimPolicy: 'What becomes of it when the claim goes: Retain, Delete or Recycle.',
    storageClassName: 'The StorageClass it is of; empty for none.',
    mountOptions: 'Options for mount, not checked.',
    volumeMode,
    nodeAffinity: 'From which nodes it can be reached.',
    volumeAttributesClassName: 'The VolumeAttributesClass in force.',
  },
  PersistentVolumeStatus: {
    '': 'How a volume fares.',
    phase: 'Pending, Available, Bound, Released or Failed.',
    message: 'Why, as a sentence.',
    reason: 'Why, as one word.',
    lastPhaseTransitionTime: 'When the phase last changed.',
  },
  VolumeNodeAffinity: { '': 'From which nodes a volume can be reached.', required: 'Only from these.' },
  PersistentVolumeClaim: { '': 'Asks for storage, which is found or made, and then belongs to it.' },
  PersistentVolumeClaimSpec: {
    '': 'What storage is wanted. Once it is there, little can be changed but the size, upwards.',
    accessModes,
    selector: 'Only volumes with such labels.',
    resources: 'How much at least.',
    volumeName: 'The volume that belongs to it.',
    storageClassName: 'Of which StorageClass. Absent: the default one. Empty: of none.',
    volumeMode,
    dataSource: 'A snapshot or claim to begin with.',
    dataSourceRef: 'The same, for objects of any kind.',
    volumeAttributesClassName: 'Which VolumeAttributesClass the volume shall have.',
  },
  PersistentVolumeClaimStatus: {
    '': 'How a claim fares.',
    phase: 'Pending, Bound or Lost.',
    accessModes: 'How the volume can be mounted.',
    capacity: 'How large the volume is.',
    allocatedResources: 'How large it is going to be.',
    allocatedResourceStatuses: 'How far the change of its size has come.',
    currentVolumeAttributesClassName: 'The VolumeAttributesClass in force.',
    modifyVolumeStatus: 'How far the change of its VolumeAttributesClass has come.',
  },
  ModifyVolumeStatus: {
    '': 'How far the change of a VolumeAttributesClass has come.',
    targetVolumeAttributesClassName: 'Which class it shall be.',
    status: 'Pending, InProgress or Infeasible.',
  },
  VolumeResourceRequirements: {
    '': 'How much storage is wanted.',
    requests: 'At least so much.',
    limits: 'At most so much.',
  },
  CSIPersistentVolumeSource: {
    '': 'A volume of a CSI driver.',
    driver: 'The driver.',
    volumeHandle: 'What the driver calls the volume.',
    readOnly: 'Allow reading only.',
    fsType: 'The file system to make and mount.',
    volumeAttributes: 'What the driver noted about it.',
    controllerPublishSecretRef: 'A Secret for attaching.',
    nodeStageSecretRef: 'A Secret for staging on the node.',
    nodePublishSecretRef: 'A Secret for mounting.',
    controllerExpandSecretRef: 'A Secret for making it larger.',
    nodeExpandSecretRef: 'A Secret for making it larger on the node.',
  },
}
