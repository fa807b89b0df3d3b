/** The kinds of volumes and their rules, in the order in which upstream looks for them. */
import type {
  AzureDiskVolumeSource,
  CSIVolumeSource,
  EmptyDirVolumeSource,
  FCVolumeSource,
  FlexVolumeSource,
  FlockerVolumeSource,
  GitRepoVolumeSource,
  HostPathVolumeSource,
  ImageVolumeSource,
  ISCSIVolumeSource,
  LocalObjectReference,
  QuobyteVolumeSource,
  StorageOSVolumeSource,
  Volume,
  VolumeSource,
} from '#apis/core/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import {
  child,
  type FieldError,
  forbidden,
  invalid,
  key,
  notSupported,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, inRange, rangeText } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import {
  oneOf,
  requiredOneOf,
  requiredText,
  validateDescendingPath,
  validateDnsLabel,
  validateNoBacksteps,
} from './checks.ts'
import { validateClaimTemplate } from './claim-spec.ts'
import { validateConfigFiles, validateDownwardFiles, validateProjected } from './projected.ts'
import type { PodOptions } from './rules.ts'

export type SourceName = keyof VolumeSource

type Check<N extends SourceName> = (
  path: string,
  source: NonNullable<VolumeSource[N]>,
  options: PodOptions,
) => FieldError[]

/** Fields that must be there. */
function needs<T>(...names: readonly (string & keyof T)[]): (path: string, source: T) => FieldError[] {
  return (path, source) =>
    names.flatMap((name) => {
      const value = source[name] as string | readonly unknown[] | null | undefined
      return (value ?? '').length === 0 ? [required(child(path, name))] : []
    })
}

const checks: { readonly [N in SourceName]-?: Check<N> } = {
  emptyDir: validateEmptyDir,
  hostPath: validateHostPath,
  gitRepo: validateGitRepo,
  gcePersistentDisk: (path, disk) => [...needs<typeof disk>('pdName')(path, disk), ...validatePartition(path, disk)],
  awsElasticBlockStore: (path, disk) => [
    ...needs<typeof disk>('volumeID')(path, disk),
    ...validatePartition(path, disk),
  ],
  secret: (path, source) => [
    ...requiredText(child(path, 'secretName'), source.secretName),
    ...validateConfigFiles(path, source),
  ],
  nfs: (path, nfs) => [
    ...needs<typeof nfs>('server', 'path')(path, nfs),
    ...(nfs.path.startsWith('/') ? [] : [invalid(child(path, 'path'), nfs.path, 'must be an absolute path')]),
  ],
  iscsi: validateIscsi,
  glusterfs: needs('endpoints', 'path'),
  flocker: validateFlocker,
  persistentVolumeClaim: needs('claimName'),
  rbd: needs('monitors', 'image'),
  cinder: (path, cinder) => [...needs<typeof cinder>('volumeID')(path, cinder), ...validateSecretRef(path, cinder)],
  cephfs: needs('monitors'),
  quobyte: validateQuobyte,
  downwardAPI: validateDownwardFiles,
  fc: validateFibreChannel,
  flexVolume: validateFlex,
  configMap: (path, source) => [
    ...requiredText(child(path, 'name'), source.name),
    ...validateConfigFiles(path, source),
  ],
  azureFile: needs('secretName', 'shareName'),
  vsphereVolume: needs('volumePath'),
  photonPersistentDisk: needs('pdID'),
  portworxVolume: needs('volumeID'),
  azureDisk: validateAzureDisk,
  storageos: validateStorageOs,
  projected: validateProjected,
  scaleIO: needs('gateway', 'system', 'volumeName'),
  csi: validateCsi,
  ephemeral: (path, { volumeClaimTemplate: template }) => {
    const field = child(path, 'volumeClaimTemplate')
    return template === undefined ? [required(field)] : validateClaimTemplate(field, template)
  },
  image: validateImage,
}

/** In upstream's order. */
export const sourceNames: readonly SourceName[] = Object.keys(checks) as SourceName[]

export function validateSource(name: SourceName, path: string, volume: Volume, options: PodOptions): FieldError[] {
  const check = checks[name] as (path: string, source: unknown, options: PodOptions) => FieldError[]
  return check(path, volume[name], options)
}

function validateEmptyDir(path: string, { sizeLimit }: EmptyDirVolumeSource): FieldError[] {
  if (sizeLimit === undefined || quantitySign(parseQuantity(sizeLimit)) >= 0) return []
  return [forbidden(child(path, 'sizeLimit'), 'SizeLimit field must be a valid resource quantity')]
}

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]

function validateHostPath(path: string, { path: hostPath, type }: HostPathVolumeSource): FieldError[] {
  const field = child(path, 'path')
  if (hostPath === '') return [required(field)]
  return [...validateNoBacksteps(field, hostPath), ...oneOf(child(path, 'type'), type, hostPathTypes)]
}

function validateGitRepo(path: string, { repository, directory = '' }: GitRepoVolumeSource): FieldError[] {
  return [
    ...requiredText(child(path, 'repository'), repository),
    ...validateDescendingPath(child(path, 'directory'), directory),
  ]
}

/** Upstream says from 1, and takes 0 for no partition. */
function validatePartition(path: string, { partition = 0 }: { readonly partition?: number }): FieldError[] {
  if (partition >= 0 && partition <= 255) return []
  return [invalid(child(path, 'partition'), partition, rangeText(1, 255))]
}

const initiatorForms: readonly [prefix: string, form: RegExp][] = [
  ['iqn', /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/],
  ['eui', /^eui.[a-zA-Z0-9]{16}$/],
  ['naa', /^naa.[a-zA-Z0-9]{32}$/],
]

/** RFC 3720 ends at 223 bytes; without an end the first form, which is not anchored, takes quadratic time. */
const MAX_INITIATOR_LENGTH = 4096

function validateInitiator(field: string, name: string): FieldError[] {
  const form = initiatorForms.find(([prefix]) => name.startsWith(prefix))
  if (form === undefined) return [invalid(field, name, 'must be valid format starting with iqn, eui, or naa')]
  const fits = name.length <= MAX_INITIATOR_LENGTH && form[1].test(name)
  return fits ? [] : [invalid(field, name, 'must be valid format')]
}

function validateIscsi(path: string, iscsi: ISCSIVolumeSource): FieldError[] {
  const { iqn, lun, initiatorName, secretRef } = iscsi
  const field = child(path, 'iqn')
  const chap = iscsi.chapAuthDiscovery === true || iscsi.chapAuthSession === true
  return [
    ...requiredText(child(path, 'targetPortal'), iscsi.targetPortal),
    ...(iqn === '' ? [required(field)] : validateInitiator(field, iqn)),
    ...complaining(child(path, 'lun'), lun, inRange(lun, 0, 255)),
    ...(chap && secretRef === undefined ? [required(child(path, 'secretRef'))] : []),
    ...(initiatorName === undefined ? [] : validateInitiator(child(path, 'initiatorname'), initiatorName)),
  ]
}

function validateFlocker(path: string, { datasetName = '', datasetUUID = '' }: FlockerVolumeSource): FieldError[] {
  const errors: FieldError[] = []
  if (datasetName === '' && datasetUUID === '') {
    errors.push(required(path, 'one of datasetName and datasetUUID is required'))
  }
  if (datasetName !== '' && datasetUUID !== '') {
    errors.push(invalid(path, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'))
  }
  if (datasetName.includes('/')) {
    errors.push(invalid(child(path, 'datasetName'), datasetName, "must not contain '/'"))
  }
  return errors
}

function validateSecretRef(path: string, { secretRef }: { readonly secretRef?: LocalObjectReference }): FieldError[] {
  return secretRef === undefined ? [] : requiredText(child(path, 'secretRef', 'name'), secretRef.name)
}

const MAX_TENANT_BYTES = 64

function validateQuobyte(path: string, { registry, tenant = '', volume }: QuobyteVolumeSource): FieldError[] {
  return [...validateRegistry(path, registry, tenant), ...requiredText(child(path, 'volume'), volume)]
}

function validateRegistry(path: string, registry: string, tenant: string): FieldError[] {
  const field = child(path, 'registry')
  const form = 'must be a host:port pair or multiple pairs separated by commas'
  if (registry === '') return [required(field, form)]
  if (byteLength(tenant) > MAX_TENANT_BYTES) {
    return [required(child(path, 'tenant'), 'must be a UUID and may not exceed a length of 64 characters')]
  }
  return registry
    .split(',')
    .filter((pair) => !/^(?:[^[\]:]*|\[[^[\]]*\]):[^[\]:]*$/.test(pair))
    .map(() => invalid(field, registry, form))
}

function validateFibreChannel(path: string, { targetWWNs = [], wwids = [], lun }: FCVolumeSource): FieldError[] {
  const field = child(path, 'targetWWNs')
  if (targetWWNs.length === 0) {
    return wwids.length > 0 ? [] : [required(field, 'must specify either targetWWNs or wwids, but not both')]
  }
  const both = 'targetWWNs and wwids can not be specified simultaneously'
  const errors = wwids.length > 0 ? [invalid(field, targetWWNs, both)] : []
  if (lun === undefined) return [...errors, required(child(path, 'lun'), 'lun is required if targetWWNs is specified')]
  return [...errors, ...complaining(child(path, 'lun'), lun, inRange(lun, 0, 255))]
}

function validateFlex(path: string, { driver, options = {} }: FlexVolumeSource): FieldError[] {
  const reserved = Object.keys(options).filter((name) =>
    /\.(?:kubernetes|k8s)\.io$/.test(`.${(name.split('/', 1)[0] ?? '').toLowerCase()}`),
  )
  return [
    ...requiredText(child(path, 'driver'), driver),
    ...reserved.map((name) =>
      invalid(key(child(path, 'options'), name), name, 'kubernetes.io and k8s.io namespaces are reserved'),
    ),
  ]
}

const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'

function validateAzureDisk(
  path: string,
  { diskName, diskURI, cachingMode, kind }: AzureDiskVolumeSource,
): FieldError[] {
  const field = child(path, 'diskURI')
  const errors = [
    ...requiredText(child(path, 'diskName'), diskName),
    ...requiredText(field, diskURI),
    ...oneOf(child(path, 'cachingMode'), cachingMode, ['None', 'ReadOnly', 'ReadWrite']),
    ...oneOf(child(path, 'kind'), kind, ['Dedicated', 'Managed', 'Shared']),
  ]
  if (kind === 'Managed' && !diskURI.startsWith('/subscriptions/')) {
    errors.push(notSupported(field, diskURI, [managedDisk]))
  }
  if (kind !== undefined && kind !== 'Managed' && !diskURI.startsWith('https://')) {
    errors.push(notSupported(field, diskURI, [blobDisk]))
  }
  return errors
}

function validateStorageOs(path: string, source: StorageOSVolumeSource): FieldError[] {
  const { volumeName = '', volumeNamespace = '' } = source
  const field = child(path, 'volumeName')
  return [
    ...(volumeName === '' ? [required(field)] : validateDnsLabel(field, volumeName)),
    ...(volumeNamespace === '' ? [] : validateDnsLabel(child(path, 'volumeNamespace'), volumeNamespace)),
    ...validateSecretRef(path, source),
  ]
}

const MAX_DRIVER_BYTES = 63

/** The name of a CSI driver; its case does not matter. */
export function validateDriverName(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)]
  return [
    ...(byteLength(name) > MAX_DRIVER_BYTES ? [tooLong(field, MAX_DRIVER_BYTES)] : []),
    ...complaining(field, name, dns1123Subdomain(name.toLowerCase())),
  ]
}

function validateCsi(path: string, { driver, nodePublishSecretRef: secret }: CSIVolumeSource): FieldError[] {
  const errors = validateDriverName(child(path, 'driver'), driver)
  if (secret === undefined) return errors
  const { name = '' } = secret
  if (name === '') return [...errors, required(child(path, 'nodePublishSecretRef', 'name'))]
  return [...errors, ...complaining(child(path, 'name'), name, dns1123Subdomain(name))]
}

function validateImage(
  path: string,
  { reference = '', pullPolicy }: ImageVolumeSource,
  options: PodOptions,
): FieldError[] {
  return [
    ...(options.isPod ? requiredText(child(path, 'reference'), reference) : []),
    ...requiredOneOf(child(path, 'pullPolicy'), pullPolicy, ['Always', 'IfNotPresent', 'Never']),
  ]
}
