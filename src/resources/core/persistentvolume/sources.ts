/** The kinds of storage a PersistentVolume can be, with the rules of those that differ from what pods mount. */
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
import { byteLength } from '#lib/go-text.ts'
import { child, type FieldError, forbidden, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Label, inRange } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { requiredText, validateDnsLabel, validateDnsSubdomain, validateNoBacksteps } from '#model/pod-spec/checks.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { type SourceName, validateDriverName, validateSource } from '#model/pod-spec/volume-sources.ts'

type VolumeName = keyof PersistentVolumeSpec & (SourceName | 'local')

interface SourceRule {
  readonly name: VolumeName
  /** Where upstream's complaints are, when not at the name. */
  readonly path?: string
  /** Where it complains about a second source. */
  readonly refusedPath?: string
  /** Upstream lets this one be a second source. */
  readonly mayBeSecond?: boolean
  check?(path: string, source: never, volume: NamedSpec): FieldError[]
}

interface NamedSpec {
  readonly name: string
  readonly spec: PersistentVolumeSpec
}

/** In the order in which upstream looks for them; without a check of its own, the rules of the same source in a pod. */
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

/** None of the sources that volumes share with pods asks for options. */
const NO_OPTIONS = {} as PodOptions

/** That there is exactly one, and that it is well formed. */
export function validateVolumeSource(path: string, name: string, spec: PersistentVolumeSpec): FieldError[] {
  let count = 0
  const errors = sourceRules.flatMap((rule) => {
    const source = spec[rule.name]
    if (source === undefined) return []
    if (count > 0 && rule.mayBeSecond !== true) {
      return [forbidden(child(path, rule.refusedPath ?? rule.name), 'may not specify more than 1 volume type')]
    }
    count++
    const field = child(path, rule.path ?? rule.name)
    if (rule.check !== undefined) return rule.check(field, source as never, { name, spec })
    return validateSource(rule.name as SourceName, field, { ...spec, name }, NO_OPTIONS)
  })
  return count === 0 ? [...errors, required(path, 'must specify a volume type')] : errors
}

/** The source alone, for telling whether it has changed. */
export function volumeSourceOf(spec: PersistentVolumeSpec): Partial<PersistentVolumeSpec> {
  return Object.fromEntries(sourceRules.map(({ name }) => [name, spec[name]]))
}

function validateGlusterfs(path: string, source: GlusterfsPersistentVolumeSource): FieldError[] {
  const { endpointsNamespace: namespace } = source
  const field = child(path, 'endpointsNamespace')
  const rule = 'if the endpointnamespace is set, it must be a valid namespace name'
  return [
    ...requiredText(child(path, 'endpoints'), source.endpoints),
    ...requiredText(child(path, 'path'), source.path),
    ...(namespace === '' ? [invalid(field, namespace, rule)] : []),
    ...(namespace === undefined || namespace === '' ? [] : complaining(field, namespace, dns1123Label(namespace))),
  ]
}

const MAX_PORTAL_BYTES = 64

const initiatorForms: readonly RegExp[] = [
  /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/,
  /^eui.[a-zA-Z0-9]{16}$/,
  /^naa.[a-zA-Z0-9]{32}$/,
]

function validateInitiator(field: string, name: string): FieldError[] {
  const form = ['iqn', 'eui', 'naa'].findIndex((prefix) => name.startsWith(prefix))
  return initiatorForms[form]?.test(name) === true ? [] : [invalid(field, name, 'must be valid format')]
}

function validateIscsi(path: string, iscsi: ISCSIPersistentVolumeSource, { name }: NamedSpec): FieldError[] {
  const { targetPortal, iqn, lun, initiatorName, secretRef } = iscsi
  const chap = iscsi.chapAuthDiscovery === true || iscsi.chapAuthSession === true
  const tooLong = initiatorName !== undefined && byteLength(`${name}:${targetPortal}`) > MAX_PORTAL_BYTES
  const rule =
    'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'
  return [
    ...requiredText(child(path, 'targetPortal'), targetPortal),
    ...(tooLong ? [invalid(child(path, 'targetportal'), targetPortal, rule)] : []),
    ...(iqn === '' ? [required(child(path, 'iqn'))] : validateInitiator(child(path, 'iqn'), iqn)),
    ...complaining(child(path, 'lun'), lun, inRange(lun, 0, 255)),
    ...(chap && secretRef === undefined ? [required(child(path, 'secretRef'))] : []),
    ...(secretRef === undefined ? [] : requiredText(child(path, 'secretRef', 'name'), secretRef.name)),
    ...(initiatorName === undefined ? [] : validateInitiator(child(path, 'initiatorname'), initiatorName)),
  ]
}

function requireNames(path: string, reference: SecretReference | undefined): FieldError[] {
  if (reference === undefined) return []
  return [
    ...requiredText(child(path, 'name'), reference.name),
    ...requiredText(child(path, 'namespace'), reference.namespace),
  ]
}

function validateCinder(path: string, { volumeID, secretRef }: CinderPersistentVolumeSource): FieldError[] {
  return [...requiredText(child(path, 'volumeID'), volumeID), ...requireNames(child(path, 'secretRef'), secretRef)]
}

function validateAzureFile(path: string, source: AzureFilePersistentVolumeSource): FieldError[] {
  const { secretName, shareName, secretNamespace } = source
  return [
    ...requiredText(child(path, 'secretName'), secretName),
    ...requiredText(child(path, 'shareName'), shareName),
    ...(secretNamespace === '' ? [required(child(path, 'secretNamespace'))] : []),
  ]
}

function validateLocal(path: string, source: LocalVolumeSource, { spec }: NamedSpec): FieldError[] {
  const field = child(path, 'path')
  const errors = source.path === '' ? [required(field)] : validateNoBacksteps(field, source.path)
  if (spec.nodeAffinity !== undefined) return errors
  return [...errors, required('spec.nodeAffinity', 'Local volume requires node affinity')]
}

function validateStorageOs(path: string, source: StorageOSPersistentVolumeSource): FieldError[] {
  const { volumeName = '', volumeNamespace = '', secretRef } = source
  const field = child(path, 'volumeName')
  return [
    ...(volumeName === '' ? [required(field)] : validateDnsLabel(field, volumeName)),
    ...(volumeNamespace === '' ? [] : validateDnsLabel(child(path, 'volumeNamespace'), volumeNamespace)),
    ...requireNames(child(path, 'secretRef'), secretRef),
  ]
}

/** The secret of staging is left out: upstream does not look at it. */
const csiSecrets = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const

function validateCsi(path: string, source: CSIPersistentVolumeSource): FieldError[] {
  return [
    ...validateDriverName(child(path, 'driver'), source.driver),
    ...requiredText(child(path, 'volumeHandle'), source.volumeHandle),
    ...csiSecrets.flatMap((name) => validateSecretReference(child(path, name), source[name])),
  ]
}

function validateSecretReference(path: string, reference: SecretReference | undefined): FieldError[] {
  if (reference === undefined) return []
  const { name = '', namespace = '' } = reference
  const [nameField, namespaceField] = [child(path, 'name'), child(path, 'namespace')]
  return [
    ...(name === '' ? [required(nameField)] : validateDnsSubdomain(nameField, name)),
    ...(namespace === '' ? [required(namespaceField)] : validateDnsLabel(namespaceField, namespace)),
  ]
}
