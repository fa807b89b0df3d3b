/** Volumes made of files: from ConfigMaps and Secrets, from the pod itself, and projections of several into one. */
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
import {
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { validateAnnotations, validateDomainPrefixedKey } from '#meta/validation/rules.ts'

import { requiredText, validateFileMode, validateUnreservedPath } from './checks.ts'
import { validateFieldRef, validateResourceFieldRef } from './env.ts'
import type { PodOptions } from './rules.ts'
import { isKubernetesSigner, trustBundleComplaints, validateSignerName } from './signer-names.ts'

/** Mode and files of a volume that shows a ConfigMap or a Secret. */
export function validateConfigFiles(
  path: string,
  { defaultMode, items = [] }: { readonly defaultMode?: number; readonly items?: readonly KeyToPath[] },
): FieldError[] {
  return [...validateFileMode(child(path, 'defaultMode'), defaultMode), ...validateItems(path, items)]
}

/** `after` adds what concerns one item, right behind its own errors. */
function validateItems(
  path: string,
  items: readonly KeyToPath[],
  after: (item: KeyToPath) => FieldError[] = () => [],
): FieldError[] {
  return items.flatMap((item, at) => {
    const field = index(child(path, 'items'), at)
    return [
      ...requiredText(child(field, 'key'), item.key),
      ...requiredText(child(field, 'path'), item.path),
      ...validateUnreservedPath(child(field, 'path'), item.path),
      ...validateFileMode(child(field, 'mode'), item.mode),
      ...after(item),
    ]
  })
}

export function validateDownwardFiles(
  path: string,
  { defaultMode, items = [] }: DownwardAPIVolumeSource,
): FieldError[] {
  return [
    ...validateFileMode(child(path, 'defaultMode'), defaultMode),
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

/** Upstream names the volume and not the file. */
function validateDownwardFile(path: string, file: DownwardAPIVolumeFile): FieldError[] {
  const { fieldRef, resourceFieldRef } = file
  const field = child(path, 'path')
  const errors = [...requiredText(field, file.path), ...validateUnreservedPath(field, file.path)]
  if (fieldRef !== undefined) {
    errors.push(...validateFieldRef(child(path, 'fieldRef'), fieldRef, volumeFields))
    if (resourceFieldRef !== undefined) {
      const complaint = 'fieldRef and resourceFieldRef can not be specified simultaneously'
      errors.push(invalid(path, 'resource', complaint))
    }
  } else if (resourceFieldRef !== undefined) {
    errors.push(...validateResourceFieldRef(child(path, 'resourceFieldRef'), resourceFieldRef, true))
  } else errors.push(required(path, 'one of fieldRef and resourceFieldRef is required'))
  return [...errors, ...validateFileMode(child(path, 'mode'), file.mode)]
}

/** Several sources in one directory, none hiding a file of another. */
export function validateProjected(
  path: string,
  { sources, defaultMode }: ProjectedVolumeSource,
  options: PodOptions,
): FieldError[] {
  const paths = new PathSet(path)
  return [
    ...validateFileMode(child(path, 'defaultMode'), defaultMode),
    ...(sources ?? []).flatMap((source, at) => {
      const field = index(child(path, 'sources'), at)
      const errors = validateProjection(field, source, { volume: path, paths, options })
      const given = Object.values(source).filter((part) => part !== undefined)
      if (given.length > 1) errors.push(forbidden(field, 'may not specify more than 1 volume type per source'))
      return errors
    }),
  ]
}

/** The files of a projected volume so far. */
class PathSet {
  readonly #volume: string
  readonly #paths = new Set<string>()

  constructor(volume: string) {
    this.#volume = volume
  }

  /** Takes a path; `name` is what is shown when it was taken already. */
  claim(path: string, name = path): FieldError[] {
    if (this.#paths.has(path)) return [invalid(this.#volume, name, 'conflicting duplicate paths')]
    this.#paths.add(path)
    return []
  }
}

interface ProjectionScope {
  /** Where the volume is. */
  readonly volume: string
  readonly paths: PathSet
  readonly options: PodOptions
}

function validateProjection(path: string, source: VolumeProjection, scope: ProjectionScope): FieldError[] {
  const { paths } = scope
  const { secret, configMap, serviceAccountToken, clusterTrustBundle, podCertificate } = source
  const files = source.downwardAPI?.items ?? []
  return [
    ...(secret === undefined ? [] : validateConfigProjection(child(path, 'secret'), secret, paths)),
    ...(configMap === undefined ? [] : validateConfigProjection(child(path, 'configMap'), configMap, paths)),
    ...files.flatMap((file) => [
      ...validateDownwardFile(child(path, 'downwardAPI'), file),
      ...(file.path === '' ? [] : paths.claim(file.path)),
    ]),
    ...(serviceAccountToken === undefined
      ? []
      : validateToken(child(path, 'serviceAccountToken'), serviceAccountToken, scope)),
    ...(clusterTrustBundle === undefined
      ? []
      : validateTrustBundle(child(path, 'clusterTrustBundle'), clusterTrustBundle, paths)),
    ...(podCertificate === undefined ? [] : validateCertificate(child(path, 'podCertificate'), podCertificate, paths)),
  ]
}

function validateConfigProjection(
  path: string,
  { name = '', items = [] }: { readonly name?: string; readonly items?: readonly KeyToPath[] },
  paths: PathSet,
): FieldError[] {
  return [
    ...requiredText(child(path, 'name'), name),
    ...validateItems(path, items, (item) => (item.path === '' ? [] : paths.claim(item.path, name))),
  ]
}

const MIN_TOKEN_SECONDS = 10 * 60

function validateToken(path: string, token: ServiceAccountTokenProjection, scope: ProjectionScope): FieldError[] {
  const { expirationSeconds = 0 } = token
  const field = child(path, 'expirationSeconds')
  const errors: FieldError[] = []
  if (expirationSeconds < MIN_TOKEN_SECONDS) {
    errors.push(invalid(field, expirationSeconds, 'may not specify a duration less than 10 minutes'))
  }
  if (expirationSeconds > 2 ** 32) {
    errors.push(invalid(field, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'))
  }
  // The path of the volume, not of the source: as upstream has it.
  const at = child(scope.volume, 'path')
  if (token.path === '') return [...errors, required(at)]
  return scope.options.nonLocalTokenPaths ? errors : [...errors, ...validateUnreservedPath(at, token.path)]
}

function validateTrustBundle(path: string, bundle: ClusterTrustBundleProjection, paths: PathSet): FieldError[] {
  const field = child(path, 'path')
  return [
    ...validateBundleReference(path, bundle),
    ...requiredText(field, bundle.path),
    ...validateUnreservedPath(field, bundle.path),
    ...paths.claim(bundle.path),
  ]
}

function validateBundleReference(path: string, bundle: ClusterTrustBundleProjection): FieldError[] {
  const { name, signerName, labelSelector } = bundle
  if (name !== undefined && signerName !== undefined) {
    return [invalid(path, bundle, 'only one of name and signerName may be used')]
  }
  if (name !== undefined) {
    const field = child(path, 'name')
    const complaints = trustBundleComplaints(name)
    return [
      ...requiredText(field, name, 'must be a valid object name'),
      ...complaints.map((complaint) => invalid(field, name, `not a valid clustertrustbundlename: ${complaint}`)),
      ...(labelSelector === undefined
        ? []
        : [invalid(child(path, 'labelSelector'), labelSelector, 'labelSelector must be unset if name is specified')]),
    ]
  }
  if (signerName === undefined) return [required(path, 'either name or signerName must be specified')]
  return [
    ...requiredText(child(path, 'signerName'), signerName, 'must be a valid signer name'),
    ...validateSignerName(child(path, 'signerName'), signerName),
    ...validateLabelSelector(child(path, 'labelSelector'), labelSelector),
  ]
}

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519']
const MIN_EXPIRATION_SECONDS = 60 * 60
const MAX_EXPIRATION_SECONDS = 91 * 24 * 60 * 60
const MAX_KUBERNETES_EXPIRATION_SECONDS = 24 * 60 * 60

function validateCertificate(path: string, certificate: PodCertificateProjection, paths: PathSet): FieldError[] {
  const { signerName = '', keyType = '', userAnnotations } = certificate
  const files = (['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const).filter(
    (name) => (certificate[name] ?? '') !== '',
  )
  return [
    ...validateSignerName(child(path, 'signerName'), signerName),
    ...validateUserAnnotations(child(path, 'userAnnotations'), userAnnotations),
    ...(keyTypes.includes(keyType) ? [] : [notSupported(child(path, 'keyType'), keyType, keyTypes)]),
    ...validateExpiration(child(path, 'maxExpirationSeconds'), certificate),
    ...files.flatMap((name) => {
      const file = certificate[name] ?? ''
      return [...validateUnreservedPath(child(path, name), file), ...paths.claim(file)]
    }),
    ...(files.length > 0
      ? []
      : [required(path, 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath')]),
  ]
}

function validateUserAnnotations(field: string, annotations: Readonly<Record<string, string>> = {}): FieldError[] {
  const tooLarge = validateAnnotations(field, annotations).filter(({ type }) => type === 'FieldValueTooLong')
  return [
    ...Object.keys(annotations).flatMap((name) => validateDomainPrefixedKey(field, name.toLowerCase())),
    ...tooLarge,
  ]
}

function validateExpiration(field: string, certificate: PodCertificateProjection): FieldError[] {
  const { maxExpirationSeconds: seconds, signerName = '' } = certificate
  if (seconds === undefined) return []
  const most = isKubernetesSigner(signerName) ? MAX_KUBERNETES_EXPIRATION_SECONDS : MAX_EXPIRATION_SECONDS
  if (seconds < MIN_EXPIRATION_SECONDS) {
    return [invalid(field, seconds, 'if provided, maxExpirationSeconds must be >= 3600')]
  }
  return seconds > most ? [invalid(field, seconds, `if provided, maxExpirationSeconds must be <= ${most}`)] : []
}
