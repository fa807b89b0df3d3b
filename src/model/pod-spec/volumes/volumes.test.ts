import { describePodRules, web } from '../pod-spec.suite.ts'

describePodRules('volumes of a pod spec', [
  {
    title: 'volumes have names and one source',
    patch: {
      volumes: [
        { name: '' },
        { name: 'a', emptyDir: {}, hostPath: { path: '/x' }, cephfs: { monitors: ['m'] }, downwardAPI: {} },
        { name: 'b', emptyDir: {} },
        { name: 'b', emptyDir: { sizeLimit: '-1' } },
      ],
    },
    errors: [
      'spec.volumes[0].name: Required value',
      'spec.volumes[1].hostPath: Forbidden: may not specify more than 1 volume type',
      'spec.volumes[1].cephFS: Forbidden: may not specify more than 1 volume type',
      'spec.volumes[1].downwarAPI: Forbidden: may not specify more than 1 volume type',
      'spec.volumes[3].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
      'spec.volumes[3].name: Duplicate value: "b"',
    ],
  },
  {
    title: 'hostPath volumes have paths without ..',
    patch: {
      volumes: [
        { name: 'a', hostPath: { path: '/a/../b', type: 'Tape' } },
        { name: 'b', hostPath: { path: '' } },
      ],
    },
    errors: [
      `spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'`,
      'spec.volumes[0].hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
      'spec.volumes[1].hostPath.path: Required value',
    ],
  },
  {
    title: 'volumes have the required fields of their type',
    patch: {
      volumes: [
        { name: 'a', nfs: { server: '', path: 'x' } },
        { name: 'b', gcePersistentDisk: { pdName: '', partition: 300 } },
        { name: 'c', iscsi: { targetPortal: '', iqn: 'zzz', lun: 256, chapAuthSession: true } },
        { name: 'd', fc: {} },
        { name: 'e', flocker: {} },
        { name: 'f', quobyte: { registry: 'h', volume: '' } },
        { name: 'g', azureDisk: { diskName: 'd', diskURI: 'x', kind: 'Managed' } },
        { name: 'h', storageos: { volumeName: 'Bad_' } },
        { name: 'i', csi: { driver: 'bad_' } },
        { name: 'j', flexVolume: { driver: '', options: { 'k8s.io/x': '1' } } },
      ],
    },
    errors: [
      'spec.volumes[0].nfs.server: Required value',
      'spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path',
      'spec.volumes[1].persistentDisk.pdName: Required value',
      'spec.volumes[1].persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive',
      'spec.volumes[2].iscsi.targetPortal: Required value',
      'spec.volumes[2].iscsi.iqn: Invalid value: "zzz": must be valid format starting with iqn, eui, or naa',
      'spec.volumes[2].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
      'spec.volumes[2].iscsi.secretRef: Required value',
      'spec.volumes[3].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both',
      'spec.volumes[4].flocker: Required value: one of datasetName and datasetUUID is required',
      'spec.volumes[5].quobyte.registry: Invalid value: "h": must be a host:port pair or multiple pairs separated by commas',
      'spec.volumes[5].quobyte.volume: Required value',
      'spec.volumes[6].azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
      `spec.volumes[7].storageos.volumeName: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character …`,
      `spec.volumes[8].csi.driver: Invalid value: "bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.volumes[9].flexVolume.driver: Required value',
      'spec.volumes[9].flexVolume.options[k8s.io/x]: Invalid value: "k8s.io/x": kubernetes.io and k8s.io namespaces are reserved',
    ],
  },
  {
    title: 'volumes of files have paths inside the volume',
    patch: {
      volumes: [
        {
          name: 'a',
          secret: {
            secretName: '',
            defaultMode: 0o1000,
            items: [
              { key: '', path: '../x', mode: -1 },
              { key: 'k', path: '..data' },
            ],
          },
        },
        { name: 'b', configMap: { items: [{ key: 'k', path: '/abs' }] } },
      ],
    },
    errors: [
      'spec.volumes[0].secret.secretName: Required value',
      'spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
      'spec.volumes[0].secret.items[0].key: Required value',
      `spec.volumes[0].secret.items[0].path: Invalid value: "../x": must not contain '..'`,
      'spec.volumes[0].secret.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive',
      `spec.volumes[0].secret.items[1].path: Invalid value: "..data": must not start with '..'`,
      'spec.volumes[1].configMap.name: Required value',
      'spec.volumes[1].configMap.items[0].path: Invalid value: "/abs": must be a relative path',
    ],
  },
  {
    title: 'downward API volumes refer to known fields',
    patch: {
      volumes: [
        {
          name: 'a',
          downwardAPI: {
            items: [
              { path: 'x' },
              { path: 'y', fieldRef: { fieldPath: 'status.podIP' } },
              { path: 'z', resourceFieldRef: { resource: 'limits.cpu', divisor: '0' } },
            ],
          },
        },
      ],
    },
    errors: [
      'spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
      'spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
      'spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value',
    ],
  },
  {
    title: 'volumes project several sources without overlap',
    patch: {
      volumes: [
        {
          name: 'a',
          projected: {
            sources: [
              { secret: { name: 's', items: [{ key: 'k', path: 'p' }] } },
              { configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] } },
              { serviceAccountToken: { path: '', expirationSeconds: 1 } },
              { secret: { name: 's' }, configMap: { name: '' } },
            ],
          },
        },
      ],
    },
    errors: [
      'spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths',
      'spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
      'spec.volumes[0].projected.path: Required value',
      'spec.volumes[0].projected.sources[3].configMap.name: Required value',
      'spec.volumes[0].projected.sources[3]: Forbidden: may not specify more than 1 volume type per source',
    ],
  },
  {
    title: 'volumes project trust and certificates',
    patch: {
      volumes: [
        {
          name: 'a',
          projected: {
            sources: [
              { clusterTrustBundle: { path: 'p', name: ':x', labelSelector: {} } },
              { clusterTrustBundle: { path: '', signerName: 'x' } },
              { clusterTrustBundle: { path: 'q' } },
              {
                podCertificate: {
                  signerName: 'a.kubernetes.io/s',
                  keyType: 'DSA',
                  maxExpirationSeconds: 90000,
                  keyPath: 'p',
                },
              },
              { podCertificate: { signerName: '', keyType: 'ED25519' } },
            ],
          },
        },
      ],
    },
    errors: [
      'spec.volumes[0].projected.sources[0].clusterTrustBundle.name: Invalid value: ":x": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name',
      'spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified',
      `spec.volumes[0].projected.sources[1].clusterTrustBundle.signerName: Invalid value: "x": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
      'spec.volumes[0].projected.sources[1].clusterTrustBundle.path: Required value',
      'spec.volumes[0].projected.sources[2].clusterTrustBundle: Required value: either name or signerName must be specified',
      'spec.volumes[0].projected.sources[3].podCertificate.keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"',
      'spec.volumes[0].projected.sources[3].podCertificate.maxExpirationSeconds: Invalid value: 90000: if provided, maxExpirationSeconds must be <= 86400',
      'spec.volumes[0].projected: Invalid value: "p": conflicting duplicate paths',
      'spec.volumes[0].projected.sources[4].podCertificate.signerName: Required value',
      'spec.volumes[0].projected.sources[4].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath',
    ],
  },
  {
    title: 'ephemeral volumes have a valid claim template',
    patch: {
      volumes: [
        { name: 'a', ephemeral: {} },
        {
          name: 'b',
          ephemeral: {
            volumeClaimTemplate: {
              metadata: { name: 'x' },
              spec: {
                accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'],
                resources: { requests: { storage: '0' } },
                volumeMode: 'Tape',
                dataSource: { apiGroup: null, kind: 'Disk', name: '' },
              },
            },
          },
        },
      ],
    },
    errors: [
      'spec.volumes[0].ephemeral.volumeClaimTemplate: Required value',
      'spec.volumes[1].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set',
      'spec.volumes[1].ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      'spec.volumes[1].ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "0": must be greater than zero',
      'spec.volumes[1].ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
      'spec.volumes[1].ephemeral.volumeClaimTemplate.spec.dataSource.name: Required value',
      `spec.volumes[1].ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: "Disk": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
    ],
  },
  {
    title: 'volume mounts refer to volumes, one per path',
    patch: {
      volumes: [{ name: 'a', emptyDir: {} }],
      containers: [
        web({
          volumeMounts: [
            { name: 'a', mountPath: '/x' },
            { name: 'b', mountPath: '/x', subPath: '../up', subPathExpr: 'y' },
            { name: 'a', mountPath: '', mountPropagation: 'Bidirectional', recursiveReadOnly: 'Enabled' },
          ],
        }),
      ],
    },
    errors: [
      'spec.containers[0].volumeMounts[1].name: Not found: "b"',
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
      `spec.containers[0].volumeMounts.subPath: Invalid value: "../up": must not contain '..'`,
      'spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive',
      'spec.containers[0].volumeMounts[2].mountPath: Required value',
      'spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers',
      'spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true',
      'spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified',
    ],
  },
  {
    title: 'volume devices refer to claims',
    patch: {
      volumes: [
        { name: 'a', emptyDir: {} },
        { name: 'b', persistentVolumeClaim: { claimName: 'c' } },
      ],
      containers: [
        web({
          volumeDevices: [
            { name: 'a', devicePath: '/dev/x' },
            { name: 'b', devicePath: '../y' },
            { name: 'b', devicePath: '/m' },
          ],
          volumeMounts: [{ name: 'b', mountPath: '/m' }],
        }),
      ],
    },
    errors: [
      'spec.containers[0].volumeMounts[0].name: Invalid value: "b": must not already exist in volumeDevices',
      'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/m": must not already exist as a path in volumeDevices',
      'spec.containers[0].volumeDevices[0].name: Invalid value: "a": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      `spec.containers[0].volumeDevices[1].devicePath: Invalid value: "../y": can not contain backsteps ('..')`,
      'spec.containers[0].volumeDevices[1].name: Invalid value: "b": must not already exist in volumeMounts',
      'spec.containers[0].volumeDevices[2].name: Invalid value: "b": must be unique',
      'spec.containers[0].volumeDevices[2].name: Invalid value: "b": must not already exist in volumeMounts',
      'spec.containers[0].volumeDevices[2].devicePath: Invalid value: "/m": must not already exist as a path in volumeMounts',
    ],
  },
])
