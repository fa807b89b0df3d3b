/** Validates the kinds of volumes, in the order of upstream's checks. */
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
import { byteLength } from '#lib/go/text.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, inRange, rangeText } from '#meta/validation/names.ts'
import { oneOf, requiredOneOf, requiredText, validateDnsLabel } from '#meta/validation/rules.ts'

import { validateDescendingPath, validateNoBacksteps } from '../checks.ts'
import type { PodOptions } from '../rules.ts'
import { validateClaimTemplate } from './claim-spec.ts'
import { validateConfigFiles, validateDownwardFiles, validateProjected } from './projected.ts'

export type SourceName = keyof VolumeSource

type Check<N extends SourceName> = (
  path: FieldPath,
  source: NonNullable<VolumeSource[N]>,
  options: PodOptions,
) => FieldError[]

/** Required fields. */
function needs<T>(...names: readonly (string & keyof T)[]): (path: FieldPath, source: T) => FieldError[] {
  return (path, source) =>
    names.flatMap((name) => {
      const value = source[name] as string | readonly unknown[] | null | undefined
      return (value ?? '').length === 0 ? [path.child(name).required()] : []
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
    ...requiredText(path.child('secretName'), source.secretName),
    ...validateConfigFiles(path, source),
  ],
  nfs: (path, nfs) => [
    ...needs<typeof nfs>('server', 'path')(path, nfs),
    ...(nfs.path.startsWith('/') ? [] : [path.child('path').invalid(nfs.path, 'must be an absolute path')]),
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
  configMap: (path, source) => [...requiredText(path.child('name'), source.name), ...validateConfigFiles(path, source)],
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
    const field = path.child('volumeClaimTemplate')
    return template === undefined ? [field.required()] : validateClaimTemplate(field, template)
  },
  image: validateImage,
}

/** In upstream's order. */
export const sourceNames: readonly SourceName[] = Object.keys(checks) as SourceName[]

export function validateSource(name: SourceName, path: FieldPath, volume: Volume, options: PodOptions): FieldError[] {
  const check = checks[name] as (path: FieldPath, source: unknown, options: PodOptions) => FieldError[]
  return check(path, volume[name], options)
}

function validateEmptyDir(path: FieldPath, { sizeLimit }: EmptyDirVolumeSource): FieldError[] {
  if (sizeLimit === undefined || quantitySign(parseQuantity(sizeLimit)) >= 0) return []
  return [path.child('sizeLimit').forbidden('SizeLimit field must be a valid resource quantity')]
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

function validateHostPath(path: FieldPath, { path: hostPath, type }: HostPathVolumeSource): FieldError[] {
  const field = path.child('path')
  if (hostPath === '') return [field.required()]
  return [...validateNoBacksteps(field, hostPath), ...oneOf(path.child('type'), type, hostPathTypes)]
}

function validateGitRepo(path: FieldPath, { repository, directory = '' }: GitRepoVolumeSource): FieldError[] {
  return [
    ...requiredText(path.child('repository'), repository),
    ...validateDescendingPath(path.child('directory'), directory),
  ]
}

/** Upstream's text begins at 1, but it accepts 0 for no partition. */
function validatePartition(path: FieldPath, { partition = 0 }: { readonly partition?: number }): FieldError[] {
  if (partition >= 0 && partition <= 255) return []
  return [path.child('partition').invalid(partition, rangeText(1, 255))]
}

const initiatorForms: readonly [prefix: string, form: RegExp][] = [
  ['iqn', /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/],
  ['eui', /^eui.[a-zA-Z0-9]{16}$/],
  ['naa', /^naa.[a-zA-Z0-9]{32}$/],
]

/** RFC 3720 limits names to 223 bytes; without a limit the first, unanchored form takes quadratic time. */
const MAX_INITIATOR_LENGTH = 4096

function validateInitiator(path: FieldPath, name: string): FieldError[] {
  const form = initiatorForms.find(([prefix]) => name.startsWith(prefix))
  if (form === undefined) return [path.invalid(name, 'must be valid format starting with iqn, eui, or naa')]
  const fits = name.length <= MAX_INITIATOR_LENGTH && form[1].test(name)
  return fits ? [] : [path.invalid(name, 'must be valid format')]
}

function validateIscsi(path: FieldPath, iscsi: ISCSIVolumeSource): FieldError[] {
  const { iqn, lun, initiatorName, secretRef } = iscsi
  const field = path.child('iqn')
  const chap = iscsi.chapAuthDiscovery === true || iscsi.chapAuthSession === true
  return collectErrors(
    requiredText(path.child('targetPortal'), iscsi.targetPortal),
    iqn === '' ? field.required() : validateInitiator(field, iqn),
    path.child('lun').check(lun, () => inRange(lun, 0, 255)),
    chap && secretRef === undefined && path.child('secretRef').required(),
    initiatorName !== undefined && validateInitiator(path.child('initiatorname'), initiatorName),
  )
}

function validateFlocker(path: FieldPath, { datasetName = '', datasetUUID = '' }: FlockerVolumeSource): FieldError[] {
  return collectErrors(
    datasetName === '' && datasetUUID === '' && path.required('one of datasetName and datasetUUID is required'),
    datasetName !== '' &&
      datasetUUID !== '' &&
      path.invalid('resource', 'datasetName and datasetUUID can not be specified simultaneously'),
    datasetName.includes('/') && path.child('datasetName').invalid(datasetName, "must not contain '/'"),
  )
}

function validateSecretRef(
  path: FieldPath,
  { secretRef }: { readonly secretRef?: LocalObjectReference },
): FieldError[] {
  return secretRef === undefined ? [] : requiredText(path.child('secretRef.name'), secretRef.name)
}

const MAX_TENANT_BYTES = 64

function validateQuobyte(path: FieldPath, { registry, tenant = '', volume }: QuobyteVolumeSource): FieldError[] {
  return [...validateRegistry(path, registry, tenant), ...requiredText(path.child('volume'), volume)]
}

function validateRegistry(path: FieldPath, registry: string, tenant: string): FieldError[] {
  const field = path.child('registry')
  const form = 'must be a host:port pair or multiple pairs separated by commas'
  if (registry === '') return [field.required(form)]
  if (byteLength(tenant) > MAX_TENANT_BYTES) {
    return [path.child('tenant').required('must be a UUID and may not exceed a length of 64 characters')]
  }
  return registry
    .split(',')
    .filter((pair) => !/^(?:[^[\]:]*|\[[^[\]]*\]):[^[\]:]*$/.test(pair))
    .map(() => field.invalid(registry, form))
}

function validateFibreChannel(path: FieldPath, { targetWWNs = [], wwids = [], lun }: FCVolumeSource): FieldError[] {
  const field = path.child('targetWWNs')
  if (targetWWNs.length === 0) {
    return wwids.length > 0 ? [] : [field.required('must specify either targetWWNs or wwids, but not both')]
  }
  const both = 'targetWWNs and wwids can not be specified simultaneously'
  const errors = wwids.length > 0 ? [field.invalid(targetWWNs, both)] : []
  if (lun === undefined) return [...errors, path.child('lun').required('lun is required if targetWWNs is specified')]
  return [...errors, ...path.child('lun').check(lun, () => inRange(lun, 0, 255))]
}

function validateFlex(path: FieldPath, { driver, options = {} }: FlexVolumeSource): FieldError[] {
  const reserved = Object.keys(options).filter((name) =>
    /\.(?:kubernetes|k8s)\.io$/.test(`.${(name.split('/', 1)[0] ?? '').toLowerCase()}`),
  )
  return [
    ...requiredText(path.child('driver'), driver),
    ...reserved.map((name) =>
      path.child('options').key(name).invalid(name, 'kubernetes.io and k8s.io namespaces are reserved'),
    ),
  ]
}

const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'

function validateAzureDisk(
  path: FieldPath,
  { diskName, diskURI, cachingMode, kind }: AzureDiskVolumeSource,
): FieldError[] {
  const field = path.child('diskURI')
  return collectErrors(
    requiredText(path.child('diskName'), diskName),
    requiredText(field, diskURI),
    oneOf(path.child('cachingMode'), cachingMode, ['None', 'ReadOnly', 'ReadWrite']),
    oneOf(path.child('kind'), kind, ['Dedicated', 'Managed', 'Shared']),
    kind === 'Managed' && !diskURI.startsWith('/subscriptions/') && field.notSupported(diskURI, [managedDisk]),
    kind !== undefined &&
      kind !== 'Managed' &&
      !diskURI.startsWith('https://') &&
      field.notSupported(diskURI, [blobDisk]),
  )
}

function validateStorageOs(path: FieldPath, source: StorageOSVolumeSource): FieldError[] {
  const { volumeName = '', volumeNamespace = '' } = source
  const field = path.child('volumeName')
  return collectErrors(
    volumeName === '' ? field.required() : validateDnsLabel(field, volumeName),
    volumeNamespace !== '' && validateDnsLabel(path.child('volumeNamespace'), volumeNamespace),
    validateSecretRef(path, source),
  )
}

const MAX_DRIVER_BYTES = 63

/** The name of a CSI driver; case does not matter. */
export function validateDriverName(path: FieldPath, name: string): FieldError[] {
  if (name === '') return [path.required()]
  return collectErrors(
    byteLength(name) > MAX_DRIVER_BYTES && path.tooLong(MAX_DRIVER_BYTES),
    path.check(name, () => dns1123Subdomain(name.toLowerCase())),
  )
}

function validateCsi(path: FieldPath, { driver, nodePublishSecretRef: secret }: CSIVolumeSource): FieldError[] {
  const errors = validateDriverName(path.child('driver'), driver)
  if (secret === undefined) return errors
  const { name = '' } = secret
  if (name === '') return [...errors, path.child('nodePublishSecretRef.name').required()]
  return [...errors, ...path.child('name').check(name, dns1123Subdomain)]
}

function validateImage(
  path: FieldPath,
  { reference = '', pullPolicy }: ImageVolumeSource,
  options: PodOptions,
): FieldError[] {
  return collectErrors(
    options.isPod && requiredText(path.child('reference'), reference),
    requiredOneOf(path.child('pullPolicy'), pullPolicy, ['Always', 'IfNotPresent', 'Never']),
  )
}
