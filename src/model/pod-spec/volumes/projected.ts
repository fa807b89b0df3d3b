/** Validates volumes that consist of files: ConfigMaps, Secrets, the downward API, and projections. */
import type {
  ClusterTrustBundleProjection,
  DownwardAPIVolumeFile,
  DownwardAPIVolumeSource,
  KeyToPath,
  PodCertificateProjection,
  ProjectedVolumeSource,
  ServiceAccountTokenProjection,
  VolumeProjection,
} from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { requiredText, validateAnnotations, validateDomainPrefixedKey } from '#meta/validation/rules.ts'

import { validateFileMode, validateUnreservedPath } from '../checks.ts'
import { validateFieldRef, validateResourceFieldRef } from '../containers/env.ts'
import type { PodOptions } from '../rules.ts'
import { isKubernetesSigner, trustBundleComplaints, validateSignerName } from '../signer-names.ts'

/** Mode and files of a ConfigMap or Secret volume. */
export function validateConfigFiles(
  path: FieldPath,
  { defaultMode, items = [] }: { readonly defaultMode?: number; readonly items?: readonly KeyToPath[] },
): FieldError[] {
  return [...validateFileMode(path.child('defaultMode'), defaultMode), ...validateItems(path, items)]
}

/** `after` adds errors of one item, right behind its own. */
function validateItems(
  path: FieldPath,
  items: readonly KeyToPath[],
  after: (item: KeyToPath) => FieldError[] = () => [],
): FieldError[] {
  return path
    .child('items')
    .each(items, (field, item) => [
      ...requiredText(field.child('key'), item.key),
      ...requiredText(field.child('path'), item.path),
      ...validateUnreservedPath(field.child('path'), item.path),
      ...validateFileMode(field.child('mode'), item.mode),
      ...after(item),
    ])
}

export function validateDownwardFiles(
  path: FieldPath,
  { defaultMode, items = [] }: DownwardAPIVolumeSource,
): FieldError[] {
  return [
    ...validateFileMode(path.child('defaultMode'), defaultMode),
    ...items.flatMap((file) => validateDownwardFile(path, file)),
  ]
}

const volumeFields = new Set([
  'metadata.name',
  'metadata.namespace',
  'metadata.labels',
  'metadata.annotations',
  'metadata.uid',
])

/** Upstream reports the volume instead of the file. */
function validateDownwardFile(path: FieldPath, file: DownwardAPIVolumeFile): FieldError[] {
  const { fieldRef, resourceFieldRef } = file
  const field = path.child('path')
  const errors = [...requiredText(field, file.path), ...validateUnreservedPath(field, file.path)]
  if (fieldRef !== undefined) {
    errors.push(...validateFieldRef(path.child('fieldRef'), fieldRef, volumeFields))
    if (resourceFieldRef !== undefined) {
      const complaint = 'fieldRef and resourceFieldRef can not be specified simultaneously'
      errors.push(path.invalid('resource', complaint))
    }
  } else if (resourceFieldRef !== undefined) {
    errors.push(...validateResourceFieldRef(path.child('resourceFieldRef'), resourceFieldRef, true))
  } else errors.push(path.required('one of fieldRef and resourceFieldRef is required'))
  return [...errors, ...validateFileMode(path.child('mode'), file.mode)]
}

/** A projection: several sources in one directory, without conflicting paths. */
export function validateProjected(
  path: FieldPath,
  { sources, defaultMode }: ProjectedVolumeSource,
  options: PodOptions,
): FieldError[] {
  const paths = new PathSet(path)
  return [
    ...validateFileMode(path.child('defaultMode'), defaultMode),
    ...path.child('sources').each(sources, (field, source) => {
      const given = Object.values(source).filter((part) => part !== undefined)
      return collectErrors(
        validateProjection(field, source, { volume: path, paths, options }),
        given.length > 1 && field.forbidden('may not specify more than 1 volume type per source'),
      )
    }),
  ]
}

/** The files of a projected volume so far. */
class PathSet {
  readonly #volume: FieldPath
  readonly #paths = new Set<string>()

  constructor(volume: FieldPath) {
    this.#volume = volume
  }

  /** Adds a path; `name` is printed if it exists. */
  claim(path: string, name = path): FieldError[] {
    if (this.#paths.has(path)) return [this.#volume.invalid(name, 'conflicting duplicate paths')]
    this.#paths.add(path)
    return []
  }
}

interface ProjectionScope {
  /** The path of the volume. */
  readonly volume: FieldPath
  readonly paths: PathSet
  readonly options: PodOptions
}

function validateProjection(path: FieldPath, source: VolumeProjection, scope: ProjectionScope): FieldError[] {
  const { paths } = scope
  const { secret, configMap, serviceAccountToken, clusterTrustBundle, podCertificate } = source
  const files = source.downwardAPI?.items ?? []
  return collectErrors(
    secret !== undefined && validateConfigProjection(path.child('secret'), secret, paths),
    configMap !== undefined && validateConfigProjection(path.child('configMap'), configMap, paths),
    files.flatMap((file) =>
      collectErrors(validateDownwardFile(path.child('downwardAPI'), file), file.path !== '' && paths.claim(file.path)),
    ),
    serviceAccountToken !== undefined && validateToken(path.child('serviceAccountToken'), serviceAccountToken, scope),
    clusterTrustBundle !== undefined &&
      validateTrustBundle(path.child('clusterTrustBundle'), clusterTrustBundle, paths),
    podCertificate !== undefined && validateCertificate(path.child('podCertificate'), podCertificate, paths),
  )
}

function validateConfigProjection(
  path: FieldPath,
  { name = '', items = [] }: { readonly name?: string; readonly items?: readonly KeyToPath[] },
  paths: PathSet,
): FieldError[] {
  return [
    ...requiredText(path.child('name'), name),
    ...validateItems(path, items, (item) => (item.path === '' ? [] : paths.claim(item.path, name))),
  ]
}

const MIN_TOKEN_SECONDS = 10 * 60

function validateToken(path: FieldPath, token: ServiceAccountTokenProjection, scope: ProjectionScope): FieldError[] {
  const { expirationSeconds = 0 } = token
  const field = path.child('expirationSeconds')
  const errors: FieldError[] = []
  if (expirationSeconds < MIN_TOKEN_SECONDS) {
    errors.push(field.invalid(expirationSeconds, 'may not specify a duration less than 10 minutes'))
  }
  if (expirationSeconds > 2 ** 32) {
    errors.push(field.invalid(expirationSeconds, 'may not specify a duration larger than 2^32 seconds'))
  }
  // The path of the volume, not of the source, as in upstream.
  const at = scope.volume.child('path')
  if (token.path === '') return [...errors, at.required()]
  return scope.options.nonLocalTokenPaths ? errors : [...errors, ...validateUnreservedPath(at, token.path)]
}

function validateTrustBundle(path: FieldPath, bundle: ClusterTrustBundleProjection, paths: PathSet): FieldError[] {
  const field = path.child('path')
  return [
    ...validateBundleReference(path, bundle),
    ...requiredText(field, bundle.path),
    ...validateUnreservedPath(field, bundle.path),
    ...paths.claim(bundle.path),
  ]
}

function validateBundleReference(path: FieldPath, bundle: ClusterTrustBundleProjection): FieldError[] {
  const { name, signerName, labelSelector } = bundle
  if (name !== undefined && signerName !== undefined) {
    return [path.invalid(bundle, 'only one of name and signerName may be used')]
  }
  if (name !== undefined) {
    const field = path.child('name')
    const complaints = trustBundleComplaints(name)
    return collectErrors(
      requiredText(field, name, 'must be a valid object name'),
      complaints.map((complaint) => field.invalid(name, `not a valid clustertrustbundlename: ${complaint}`)),
      labelSelector !== undefined &&
        path.child('labelSelector').invalid(labelSelector, 'labelSelector must be unset if name is specified'),
    )
  }
  if (signerName === undefined) return [path.required('either name or signerName must be specified')]
  return [
    ...requiredText(path.child('signerName'), signerName, 'must be a valid signer name'),
    ...validateSignerName(path.child('signerName'), signerName),
    ...validateLabelSelector(path.child('labelSelector'), labelSelector),
  ]
}

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519']
const MIN_EXPIRATION_SECONDS = 60 * 60
const MAX_EXPIRATION_SECONDS = 91 * 24 * 60 * 60
const MAX_KUBERNETES_EXPIRATION_SECONDS = 24 * 60 * 60

function validateCertificate(path: FieldPath, certificate: PodCertificateProjection, paths: PathSet): FieldError[] {
  const { signerName = '', keyType = '', userAnnotations } = certificate
  const files = (['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const).filter(
    (name) => (certificate[name] ?? '') !== '',
  )
  return collectErrors(
    validateSignerName(path.child('signerName'), signerName),
    validateUserAnnotations(path.child('userAnnotations'), userAnnotations),
    !keyTypes.includes(keyType) && path.child('keyType').notSupported(keyType, keyTypes),
    validateExpiration(path.child('maxExpirationSeconds'), certificate),
    files.flatMap((name) => {
      const file = certificate[name] ?? ''
      return [...validateUnreservedPath(path.child(name), file), ...paths.claim(file)]
    }),
    files.length === 0 &&
      path.required('specify at least one of credentialBundlePath, keyPath, and certificateChainPath'),
  )
}

function validateUserAnnotations(path: FieldPath, annotations: Readonly<Record<string, string>> = {}): FieldError[] {
  const tooLarge = validateAnnotations(path, annotations).filter(({ type }) => type === 'FieldValueTooLong')
  return [
    ...Object.keys(annotations).flatMap((name) => validateDomainPrefixedKey(path, name.toLowerCase())),
    ...tooLarge,
  ]
}

function validateExpiration(path: FieldPath, certificate: PodCertificateProjection): FieldError[] {
  const { maxExpirationSeconds: seconds, signerName = '' } = certificate
  if (seconds === undefined) return []
  const most = isKubernetesSigner(signerName) ? MAX_KUBERNETES_EXPIRATION_SECONDS : MAX_EXPIRATION_SECONDS
  if (seconds < MIN_EXPIRATION_SECONDS) {
    return [path.invalid(seconds, 'if provided, maxExpirationSeconds must be >= 3600')]
  }
  return seconds > most ? [path.invalid(seconds, `if provided, maxExpirationSeconds must be <= ${most}`)] : []
}
