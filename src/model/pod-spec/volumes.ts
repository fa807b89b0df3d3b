/** The volumes of a pod: exactly one source each, and names that mounts can refer to. */
import type { PodSpec, Volume } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import type { ObjectMeta } from '#meta/object.ts'
import {
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notFound,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

import { validateDnsLabel } from './checks.ts'
import type { VolumeMap } from './mounts.ts'
import type { PodOptions } from './rules.ts'
import { type SourceName, sourceNames, validateSource } from './volume-sources.ts'
import { containersOf } from './walk.ts'

/** Longest `<volume name>:<target portal>` that open-iscsi takes as the name of an interface. */
const MAX_ISCSI_INTERFACE = 64

export interface JudgedVolumes {
  /** Those in order, to which mounts may refer. */
  readonly volumes: VolumeMap
  readonly errors: FieldError[]
}

/** `metadata` only for a Pod: claims made for ephemeral volumes are named after it. */
export function validateVolumes(
  field: string,
  list: readonly Volume[] = [],
  options: PodOptions,
  metadata?: ObjectMeta,
): JudgedVolumes {
  const podName = metadata?.name ?? ''
  const made = new Set(
    podName === ''
      ? []
      : list.filter(({ ephemeral }) => ephemeral !== undefined).map(({ name }) => `${podName}-${name}`),
  )
  const volumes = new Map<string, Volume>()
  const errors = list.flatMap((volume, at) => {
    const path = index(field, at)
    const found = validateVolume(path, volume, { options, podName, taken: volumes })
    if (found.length === 0) volumes.set(volume.name, volume)
    const claim = volume.persistentVolumeClaim?.claimName
    if (claim === undefined || !made.has(claim)) return found
    const complaint = 'must not reference a PVC that gets created for an ephemeral volume'
    return [...found, invalid(child(path, 'persistentVolumeClaim', 'claimName'), claim, complaint)]
  })
  return { volumes, errors }
}

interface VolumeScope {
  readonly options: PodOptions
  readonly podName: string
  readonly taken: VolumeMap
}

function validateVolume(path: string, volume: Volume, { options, podName, taken }: VolumeScope): FieldError[] {
  const { name } = volume
  const field = child(path, 'name')
  return [
    ...validateOneSource(path, volume, options, podName),
    ...(name === '' ? [required(field)] : validateDnsLabel(field, name)),
    ...(taken.has(name) ? [duplicate(field, name)] : []),
  ]
}

/** Upstream's slips, which clients see. */
const pathSlips = new Map<SourceName, { readonly second?: string; readonly first?: string }>([
  ['gcePersistentDisk', { first: 'persistentDisk' }],
  ['cephfs', { second: 'cephFS' }],
  ['downwardAPI', { second: 'downwarAPI' }],
])

/** The first source is looked at, each further one refused. */
function validateOneSource(path: string, volume: Volume, options: PodOptions, podName: string): FieldError[] {
  const given = sourceNames.filter((name) => volume[name] !== undefined)
  if (given.length === 0) return [required(path, 'must specify a volume type')]
  return given.flatMap((name, at) => {
    const slip = pathSlips.get(name)
    const errors =
      at > 0
        ? [forbidden(child(path, slip?.second ?? name), 'may not specify more than 1 volume type')]
        : validateSource(name, child(path, slip?.first ?? name), volume, options)
    if (name === 'iscsi') errors.push(...validateIscsiName(path, volume))
    if (name === 'ephemeral' && at === 0) errors.push(...validateClaimName(path, volume.name, podName))
    return errors
  })
}

function validateIscsiName(path: string, { name, iscsi }: Volume): FieldError[] {
  if (iscsi?.initiatorName === undefined) return []
  if (byteLength(`${name}:${iscsi.targetPortal}`) <= MAX_ISCSI_INTERFACE) return []
  const complaint =
    'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'
  return [invalid(child(path, 'name'), name, complaint)]
}

function validateClaimName(path: string, volume: string, podName: string): FieldError[] {
  if (podName === '' || volume === '') return []
  const claim = `${podName}-${volume}`
  return dns1123Subdomain(claim).map((complaint) =>
    invalid(child(path, 'name'), volume, `PVC name "${claim}": ${complaint}`),
  )
}

/** Variables read from files: the file must be in an emptyDir, where a container of the pod has put it. */
export function validateFileKeyVolumes(path: string, spec: PodSpec): FieldError[] {
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]))
  return containersOf(spec, path).flatMap(({ container, path: at }) =>
    (container.env ?? []).flatMap(({ valueFrom }, envAt) => {
      const name = valueFrom?.fileKeyRef?.volumeName
      if (name === undefined) return []
      const field = child(index(child(at, 'env'), envAt), 'valueFrom', 'fileKeyRef', 'volumeName')
      const volume = volumes.get(name)
      if (volume === undefined) return [notFound(field, name)]
      return volume.emptyDir === undefined ? [invalid(field, name, 'referenced volume must be of type emptyDir')] : []
    }),
  )
}
