/** Computes the files of a volume from ConfigMaps, Secrets and pod fields. Pure. */
import type { ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret } from '#apis/core/v1.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import { containerNamed, defaultLimits, fieldText, resourceText } from '../pod/downward.ts'
import { combineErrors, type FileContent, type Payload } from './volume-plugin.ts'

interface Selection {
  readonly items: readonly KeyToPath[] | undefined
  readonly mode: number
  readonly isOptional: boolean
}

/** The API server fills in the default, so undefined is an error. */
export function modeOf(defaultMode: number | undefined): number {
  if (defaultMode === undefined) throw new Error('no defaultMode used, not even the default value for it')
  return defaultMode
}

/** `found` is undefined for a missing optional ConfigMap. */
export function configMapFiles(found: ConfigMap | undefined, selection: Selection): Payload {
  const texts = Object.entries(found?.data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const)
  const binaries = Object.entries(found?.binaryData ?? {}).map(([key, text]) => [key, decoded(text)] as const)
  return select(new Map([...texts, ...binaries]), selection, 'configmap references non-existent config key')
}

export function secretFiles(found: Secret | undefined, selection: Selection): Payload {
  const data = Object.entries(found?.data ?? {}).map(([key, text]) => [key, decoded(text)] as const)
  return select(new Map(data), selection, 'references non-existent secret key')
}

const decoded = (base64: string): Buffer => Buffer.from(base64, 'base64')

function select(
  data: ReadonlyMap<string, Buffer>,
  { items = [], mode, isOptional }: Selection,
  complaint: string,
): Payload {
  if (items.length === 0) return new Map([...data].map(([key, bytes]) => [key, { data: bytes, mode }]))
  const files = new Map<string, FileContent>()
  for (const item of items) {
    const bytes = data.get(item.key)
    if (bytes !== undefined) files.set(item.path, { data: bytes, mode: item.mode ?? mode })
    else if (!isOptional) throw new Error(`${complaint}: ${item.key}`)
  }
  return files
}

/** Throws all errors as one. */
export function downwardFiles(
  items: readonly DownwardAPIVolumeFile[],
  pod: Pod,
  allocatable: ResourceList,
  mode: number,
): Payload {
  const files = new Map<string, FileContent>()
  const errors: Error[] = []
  for (const item of items) {
    try {
      files.set(item.path, { data: Buffer.from(textOf(item, pod, allocatable)), mode: item.mode ?? mode })
    } catch (error) {
      errors.push(error as Error)
    }
  }
  if (errors.length > 0) throw combineErrors(errors)
  return files
}

function textOf({ fieldRef, resourceFieldRef }: DownwardAPIVolumeFile, pod: Pod, allocatable: ResourceList): string {
  if (fieldRef !== undefined) return fieldText(pod, fieldRef.fieldPath, NO_ADDRESSES)
  if (resourceFieldRef === undefined) return ''
  const container = containerNamed(pod, resourceFieldRef.containerName ?? '')
  return resourceText(container, resourceFieldRef, defaultLimits(pod, allocatable))
}

/** Files are written before the pod has addresses. */
const NO_ADDRESSES = { hostIps: [], podIps: [] }
