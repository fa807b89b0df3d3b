/** Volumes of pods and where their contents come from. */
import type { DescriptionTable, FieldTexts } from '../table.ts'

const fsType = 'The file system on it, such as ext4. Default: ext4 or what the driver says.'
const readOnly = 'Allow reading only.'
const optional = 'Whether it may be missing.'
const defaultMode = 'Permission bits of the files that say none themselves. Default: 0644.'
const gone = 'Gone from Kubernetes; here for old objects.'
const byDriver = 'Handled by a CSI driver nowadays.'

const local = 'A disk or directory of one node; needs a node affinity.'

/** What volumes of pods and volumes of the cluster can both be made of. */
const shared: FieldTexts = {
  hostPath: "A file or directory of the node. Dangerous: it opens the node's file system.",
  csi: 'What a CSI driver provides.',
  nfs: 'A directory of an NFS server.',
  iscsi: 'An iSCSI disk.',
  fc: 'A fibre channel disk.',
  flexVolume: 'What an executable on the node provides. Use CSI.',
  awsElasticBlockStore: byDriver,
  gcePersistentDisk: byDriver,
  azureDisk: byDriver,
  azureFile: byDriver,
  vsphereVolume: byDriver,
  cinder: byDriver,
  portworxVolume: byDriver,
  glusterfs: gone,
  rbd: gone,
  cephfs: gone,
  flocker: gone,
  quobyte: gone,
  scaleIO: gone,
  storageos: gone,
  photonPersistentDisk: gone,
}

/** The members of a PersistentVolume that say what it is made of. */
export const persistentSources: FieldTexts = { ...shared, local }

const podSources: FieldTexts = {
  ...shared,
  emptyDir: 'An empty directory that lives as long as the pod.',
  secret: 'The contents of a Secret.',
  configMap: 'The contents of a ConfigMap.',
  downwardAPI: 'Fields of the pod, as files.',
  projected: 'Several sources in one directory.',
  persistentVolumeClaim: 'Storage that was claimed.',
  ephemeral: 'Storage that is claimed for this pod and goes with it.',
  image: 'The contents of a container image or OCI artifact.',
  gitRepo: gone,
}

export const volumes: DescriptionTable = {
  Volume: { '': 'A directory or device for the containers of a pod.', name: 'What mounts call it.', ...podSources },
  VolumeMount: {
    '': 'A volume in the file system of a container.',
    name: 'Which volume.',
    mountPath: 'Where.',
    subPath: 'Only this path within the volume.',
    subPathExpr: 'The same, with $(NAME) replaced by environment variables.',
    readOnly,
    recursiveReadOnly: 'Whether mounts below are read-only too: Disabled, IfPossible or Enabled.',
    mountPropagation: 'Whether later mounts are seen across: None, HostToContainer or Bidirectional.',
  },
  VolumeDevice: {
    '': 'A volume as a raw device of a container.',
    name: 'Which claim.',
    devicePath: 'The path of the device.',
  },
  HostPathVolumeSource: {
    '': 'A file or directory of the node.',
    path: 'Its path on the node.',
    type: 'What must be there, such as Directory or Socket; or is made, as with DirectoryOrCreate. Empty: not checked.',
  },
  EmptyDirVolumeSource: {
    '': 'Where an empty directory is, and how much it may hold.',
    medium: "Where: empty for the node's disk, Memory, or HugePages.",
    sizeLimit: 'How much may be in it.',
  },
  SecretVolumeSource: {
    '': 'A Secret, each key a file.',
    secretName: 'The Secret.',
    items: 'Only these keys, at these paths.',
    defaultMode,
    optional,
  },
  ConfigMapVolumeSource: {
    '': 'A ConfigMap, each key a file.',
    name: 'The ConfigMap.',
    items: 'Only these keys, at these paths.',
    defaultMode,
    optional,
  },
  KeyToPath: { '': 'A key and the file it becomes.', key: 'The key.', path: 'The file.', mode: 'Its permission bits.' },
  DownwardAPIVolumeSource: { '': 'Which fields become which files.', items: 'The files.', defaultMode },
  DownwardAPIVolumeFile: {
    '': 'A field of the pod as a file.',
    path: 'The file.',
    fieldRef: 'The field: name, namespace, uid, labels or annotations.',
    resourceFieldRef: 'A request or limit of a container.',
    mode: 'Its permission bits.',
  },
  ProjectedVolumeSource: { '': 'What is put together in one directory.', sources: 'The sources.', defaultMode },
  VolumeProjection: {
    '': 'One of the sources of a projected volume. One member is set.',
    secret: 'A Secret.',
    configMap: 'A ConfigMap.',
    downwardAPI: 'Fields of the pod.',
    serviceAccountToken: 'A token of the ServiceAccount of the pod, renewed in time.',
    clusterTrustBundle: 'Certificates to trust.',
    podCertificate: 'A key and a certificate for the pod, renewed in time.',
  },
  SecretProjection: { '': 'A Secret in a projected volume.', name: 'The Secret.', items: 'Only these keys.', optional },
  ConfigMapProjection: {
    '': 'A ConfigMap in a projected volume.',
    name: 'The ConfigMap.',
    items: 'Only these keys.',
    optional,
  },
  DownwardAPIProjection: { '': 'Fields of the pod in a projected volume.', items: 'The files.' },
  ServiceAccountTokenProjection: {
    '': 'A token for the API or somebody else.',
    audience: 'Whom it is for. Default: the API server.',
    expirationSeconds: 'How long it is good for; at least 600. Default: an hour.',
    path: 'The file.',
  },
  ClusterTrustBundleProjection: {
    '': 'Certificates to trust, from one bundle or from all bundles of a signer.',
    name: 'One bundle.',
    signerName: 'All bundles of this signer.',
    labelSelector: 'Of these only those with such labels.',
    optional,
    path: 'The file.',
  },
  PodCertificateProjection: {
    '': 'A key and a certificate that a signer issues for the pod.',
    signerName: 'The signer.',
    keyType: 'The type of the key, such as ED25519 or ECDSAP256.',
    maxExpirationSeconds: 'How long the certificate may be good for at most.',
    credentialBundlePath: 'One file with both, key first.',
    keyPath: 'A file for the key alone.',
    certificateChainPath: 'A file for the certificates alone.',
    userAnnotations: 'Hints to the signer. Nobody checks them.',
  },
  PersistentVolumeClaimVolumeSource: {
    '': 'Which claim, and whether it may be written.',
    claimName: 'The PersistentVolumeClaim, in the namespace of the pod.',
    readOnly,
  },
  EphemeralVolumeSource: {
    '': 'Storage that is claimed for one pod.',
    volumeClaimTemplate: 'The claim to make. It is called after the pod and the volume, and goes with the pod.',
  },
  PersistentVolumeClaimTemplate: { '': 'A claim to be made for a pod.' },
  ImageVolumeSource: {
    '': 'The contents of an image.',
    reference: 'The image.',
    pullPolicy: 'When to pull it: Always, IfNotPresent or Never.',
  },
  CSIVolumeSource: {
    '': 'A volume that a CSI driver makes for one pod.',
    driver: 'The driver.',
    fsType,
    readOnly,
    volumeAttributes: 'What the driver wants to know.',
    nodePublishSecretRef: 'A Secret for the driver.',
  },
  NFSVolumeSource: {
    '': 'Which directory of which NFS server.',
    server: 'The server.',
    path: 'The directory it exports.',
    readOnly,
  },
  ISCSIVolumeSource: {
    '': 'How an iSCSI disk is found.',
    targetPortal: 'Address and port of the target.',
    portals: 'Further addresses.',
    iqn: 'The name of the target.',
    lun: 'The number of the disk there.',
    iscsiInterface: 'The interface to use. Default: default.',
    fsType,
    readOnly,
    secretRef: 'A Secret with credentials.',
    chapAuthDiscovery: 'Authenticate while looking for targets.',
    chapAuthSession: 'Authenticate for the session.',
    initiatorName: 'The name to go by.',
  },
  FCVolumeSource: {
    '': 'How a fibre channel disk is found.',
    targetWWNs: 'Names of the targets.',
    lun: 'The number of the disk there.',
    wwids: 'Or names of the disk.',
    fsType,
    readOnly,
  },
  FlexVolumeSource: {
    '': 'What an executable on the node provides.',
    driver: 'The executable.',
    fsType,
    secretRef: 'A Secret for it.',
    readOnly,
    options: 'What it wants to know.',
  },
  LocalVolumeSource: { '': 'Where a disk or directory of a node is.', path: 'Its path on the node.', fsType },
}
