/** Validates the volumes of a pod: exactly one source each, and unique names. */
import type { PodSpec, Volume } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { validateDnsLabel } from '#meta/validation/rules.ts'

import type { VolumeMap } from '../containers/mounts.ts'
import type { PodOptions } from '../rules.ts'
import { containersOf } from '../walk.ts'
import { type SourceName, sourceNames, validateSource } from './volume-sources.ts'

/** The longest `<volume name>:<target portal>` that open-iscsi accepts as an interface name. */
const MAX_ISCSI_INTERFACE = 64

export interface ValidatedVolumes {
  /** The valid volumes, to which mounts may refer. */
  readonly volumes: VolumeMap
  readonly errors: FieldError[]
}

/** `metadata` only for a Pod: claims of ephemeral volumes are named after it. */
export function validateVolumes(
  field: FieldPath,
  list: readonly Volume[] = [],
  options: PodOptions,
  metadata?: ObjectMeta,
): ValidatedVolumes {
  const podName = metadata?.name ?? ''
  const made = new Set(
    podName === ''
      ? []
      : list.filter(({ ephemeral }) => ephemeral !== undefined).map(({ name }) => `${podName}-${name}`),
  )
  const volumes = new Map<string, Volume>()
  const errors = list.flatMap((volume, at) => {
    const path = field.index(at)
    const found = validateVolume(path, volume, { options, podName, taken: volumes })
    if (found.length === 0) volumes.set(volume.name, volume)
    const claim = volume.persistentVolumeClaim?.claimName
    if (claim === undefined || !made.has(claim)) return found
    const complaint = 'must not reference a PVC that gets created for an ephemeral volume'
    return [...found, path.child('persistentVolumeClaim.claimName').invalid(claim, complaint)]
  })
  return { volumes, errors }
}

interface VolumeScope {
  readonly options: PodOptions
  readonly podName: string
  readonly taken: VolumeMap
}

function validateVolume(path: FieldPath, volume: Volume, { options, podName, taken }: VolumeScope): FieldError[] {
  const { name } = volume
  const field = path.child('name')
  return collectErrors(
    validateOneSource(path, volume, options, podName),
    name === '' ? field.required() : validateDnsLabel(field, name),
    taken.has(name) && field.duplicate(name),
  )
}

/** Upstream's typing errors, which clients see. */
const pathSlips = new Map<SourceName, { readonly second?: string; readonly first?: string }>([
  ['gcePersistentDisk', { first: 'persistentDisk' }],
  ['cephfs', { second: 'cephFS' }],
  ['downwardAPI', { second: 'downwarAPI' }],
])

/** The first source is validated; further ones are rejected. */
function validateOneSource(path: FieldPath, volume: Volume, options: PodOptions, podName: string): FieldError[] {
  const given = sourceNames.filter((name) => volume[name] !== undefined)
  if (given.length === 0) return [path.required('must specify a volume type')]
  return given.flatMap((name, at) => {
    const slip = pathSlips.get(name)
    return collectErrors(
      at > 0
        ? path.child(slip?.second ?? name).forbidden('may not specify more than 1 volume type')
        : validateSource(name, path.child(slip?.first ?? name), volume, options),
      name === 'iscsi' && validateIscsiName(path, volume),
      name === 'ephemeral' && at === 0 && validateClaimName(path, volume.name, podName),
    )
  })
}

function validateIscsiName(path: FieldPath, { name, iscsi }: Volume): FieldError[] {
  if (iscsi?.initiatorName === undefined) return []
  if (byteLength(`${name}:${iscsi.targetPortal}`) <= MAX_ISCSI_INTERFACE) return []
  const complaint =
    'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'
  return [path.child('name').invalid(name, complaint)]
}

function validateClaimName(path: FieldPath, volume: string, podName: string): FieldError[] {
  if (podName === '' || volume === '') return []
  const claim = `${podName}-${volume}`
  return dns1123Subdomain(claim).map((complaint) =>
    path.child('name').invalid(volume, `PVC name "${claim}": ${complaint}`),
  )
}

/** Variables from files: the file must be in an emptyDir volume of the pod. */
export function validateFileKeyVolumes(path: FieldPath, spec: PodSpec): FieldError[] {
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]))
  return containersOf(spec, path).flatMap(({ container, path: at }) =>
    at.child('env').each(container.env, (path, { valueFrom }) => {
      const name = valueFrom?.fileKeyRef?.volumeName
      if (name === undefined) return []
      const field = path.child('valueFrom.fileKeyRef.volumeName')
      const volume = volumes.get(name)
      if (volume === undefined) return [field.notFound(name)]
      return volume.emptyDir === undefined ? [field.invalid(name, 'referenced volume must be of type emptyDir')] : []
    }),
  )
}
