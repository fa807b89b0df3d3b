/** Validates the sources of a PersistentVolume, where the rules differ from those of pod volumes. */
import type {
  AzureFilePersistentVolumeSource,
  CinderPersistentVolumeSource,
  CSIPersistentVolumeSource,
  GlusterfsPersistentVolumeSource,
  ISCSIPersistentVolumeSource,
  LocalVolumeSource,
  PersistentVolumeSpec,
  SecretReference,
  StorageOSPersistentVolumeSource,
} from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label, inRange } from '#meta/validation/names.ts'
import { requiredText, validateDnsLabel, validateDnsSubdomain } from '#meta/validation/rules.ts'
import { validateNoBacksteps } from '#model/pod-spec/checks.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { type SourceName, validateDriverName, validateSource } from '#model/pod-spec/volumes/volume-sources.ts'

type VolumeName = keyof PersistentVolumeSpec & (SourceName | 'local')

interface SourceRule {
  readonly name: VolumeName
  /** Upstream's path in errors, if it differs from the name. */
  readonly path?: string
  /** The path of the error about a second source. */
  readonly refusedPath?: string
  /** Upstream allows this one as a second source. */
  readonly mayBeSecond?: boolean
  check?(path: FieldPath, source: never, volume: NamedSpec): FieldError[]
}

interface NamedSpec {
  readonly name: string
  readonly spec: PersistentVolumeSpec
}

/** In the order of upstream's checks; without a specific check the rules of pod volumes apply. */
const sourceRules: readonly SourceRule[] = [
  { name: 'hostPath' },
  { name: 'gcePersistentDisk', path: 'persistentDisk' },
  { name: 'awsElasticBlockStore' },
  { name: 'glusterfs', check: validateGlusterfs },
  { name: 'flocker' },
  { name: 'nfs' },
  { name: 'rbd' },
  { name: 'quobyte' },
  { name: 'cephfs', refusedPath: 'cephFS' },
  { name: 'iscsi', check: validateIscsi },
  { name: 'cinder', check: validateCinder },
  { name: 'fc' },
  { name: 'flexVolume', mayBeSecond: true },
  { name: 'azureFile', check: validateAzureFile },
  { name: 'vsphereVolume' },
  { name: 'photonPersistentDisk' },
  { name: 'portworxVolume' },
  { name: 'azureDisk' },
  { name: 'scaleIO' },
  { name: 'local', check: validateLocal },
  { name: 'storageos', check: validateStorageOs },
  { name: 'csi', check: validateCsi },
]

/** The sources shared with pods need no options. */
const NO_OPTIONS = {} as PodOptions

/** Requires exactly one valid source. */
export function validateVolumeSource(path: FieldPath, name: string, spec: PersistentVolumeSpec): FieldError[] {
  let count = 0
  const errors = sourceRules.flatMap((rule) => {
    const source = spec[rule.name]
    if (source === undefined) return []
    if (count > 0 && rule.mayBeSecond !== true) {
      return [path.child(rule.refusedPath ?? rule.name).forbidden('may not specify more than 1 volume type')]
    }
    count++
    const field = path.child(rule.path ?? rule.name)
    if (rule.check !== undefined) return rule.check(field, source as never, { name, spec })
    return validateSource(rule.name as SourceName, field, { ...spec, name }, NO_OPTIONS)
  })
  return count === 0 ? [...errors, path.required('must specify a volume type')] : errors
}

/** The source alone, for change detection. */
export function volumeSourceOf(spec: PersistentVolumeSpec): Partial<PersistentVolumeSpec> {
  return Object.fromEntries(sourceRules.map(({ name }) => [name, spec[name]]))
}

function validateGlusterfs(path: FieldPath, source: GlusterfsPersistentVolumeSource): FieldError[] {
  const { endpointsNamespace: namespace } = source
  const field = path.child('endpointsNamespace')
  const rule = 'if the endpointnamespace is set, it must be a valid namespace name'
  return collectErrors(
    requiredText(path.child('endpoints'), source.endpoints),
    requiredText(path.child('path'), source.path),
    namespace === '' && field.invalid(namespace, rule),
    namespace !== undefined && namespace !== '' && field.check(namespace, dns1123Label),
  )
}

const MAX_PORTAL_BYTES = 64

const initiatorForms: readonly RegExp[] = [
  /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/,
  /^eui.[a-zA-Z0-9]{16}$/,
  /^naa.[a-zA-Z0-9]{32}$/,
]

function validateInitiator(path: FieldPath, name: string): FieldError[] {
  const form = ['iqn', 'eui', 'naa'].findIndex((prefix) => name.startsWith(prefix))
  return initiatorForms[form]?.test(name) === true ? [] : [path.invalid(name, 'must be valid format')]
}

function validateIscsi(path: FieldPath, iscsi: ISCSIPersistentVolumeSource, { name }: NamedSpec): FieldError[] {
  const { targetPortal, iqn, lun, initiatorName, secretRef } = iscsi
  const chap = iscsi.chapAuthDiscovery === true || iscsi.chapAuthSession === true
  const tooLong = initiatorName !== undefined && byteLength(`${name}:${targetPortal}`) > MAX_PORTAL_BYTES
  const rule =
    'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'
  return collectErrors(
    requiredText(path.child('targetPortal'), targetPortal),
    tooLong && path.child('targetportal').invalid(targetPortal, rule),
    iqn === '' ? path.child('iqn').required() : validateInitiator(path.child('iqn'), iqn),
    path.child('lun').check(lun, () => inRange(lun, 0, 255)),
    chap && secretRef === undefined && path.child('secretRef').required(),
    secretRef !== undefined && requiredText(path.child('secretRef.name'), secretRef.name),
    initiatorName !== undefined && validateInitiator(path.child('initiatorname'), initiatorName),
  )
}

function requireNames(path: FieldPath, reference: SecretReference | undefined): FieldError[] {
  if (reference === undefined) return []
  return [
    ...requiredText(path.child('name'), reference.name),
    ...requiredText(path.child('namespace'), reference.namespace),
  ]
}

function validateCinder(path: FieldPath, { volumeID, secretRef }: CinderPersistentVolumeSource): FieldError[] {
  return [...requiredText(path.child('volumeID'), volumeID), ...requireNames(path.child('secretRef'), secretRef)]
}

function validateAzureFile(path: FieldPath, source: AzureFilePersistentVolumeSource): FieldError[] {
  const { secretName, shareName, secretNamespace } = source
  return collectErrors(
    requiredText(path.child('secretName'), secretName),
    requiredText(path.child('shareName'), shareName),
    secretNamespace === '' && path.child('secretNamespace').required(),
  )
}

function validateLocal(path: FieldPath, source: LocalVolumeSource, { spec }: NamedSpec): FieldError[] {
  const field = path.child('path')
  const errors = source.path === '' ? [field.required()] : validateNoBacksteps(field, source.path)
  if (spec.nodeAffinity !== undefined) return errors
  return [...errors, fieldPath('spec.nodeAffinity').required('Local volume requires node affinity')]
}

function validateStorageOs(path: FieldPath, source: StorageOSPersistentVolumeSource): FieldError[] {
  const { volumeName = '', volumeNamespace = '', secretRef } = source
  const field = path.child('volumeName')
  return collectErrors(
    volumeName === '' ? field.required() : validateDnsLabel(field, volumeName),
    volumeNamespace !== '' && validateDnsLabel(path.child('volumeNamespace'), volumeNamespace),
    requireNames(path.child('secretRef'), secretRef),
  )
}

/** Without the node stage secret, which upstream does not check. */
const csiSecrets = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const

function validateCsi(path: FieldPath, source: CSIPersistentVolumeSource): FieldError[] {
  return [
    ...validateDriverName(path.child('driver'), source.driver),
    ...requiredText(path.child('volumeHandle'), source.volumeHandle),
    ...csiSecrets.flatMap((name) => validateSecretReference(path.child(name), source[name])),
  ]
}

function validateSecretReference(path: FieldPath, reference: SecretReference | undefined): FieldError[] {
  if (reference === undefined) return []
  const { name = '', namespace = '' } = reference
  const [nameField, namespaceField] = [path.child('name'), path.child('namespace')]
  return [
    ...(name === '' ? [nameField.required()] : validateDnsSubdomain(nameField, name)),
    ...(namespace === '' ? [namespaceField.required()] : validateDnsLabel(namespaceField, namespace)),
  ]
}
