/** Where volumes appear in a container: as directories (mounts) or as block devices. */
import type { Container, Volume, VolumeDevice, VolumeMount } from '#apis/core/v1.ts'
import { child, type FieldError, forbidden, index, invalid, notFound, required } from '#meta/validation/field-error.ts'

import { oneOf, validateDescendingPath, validateNoBacksteps } from './checks.ts'

/** The volumes of the pod that are in order, by name. */
export type VolumeMap = ReadonlyMap<string, Volume>

export function validateMounts(field: string, container: Container, volumes: VolumeMap): FieldError[] {
  const { volumeMounts = [], volumeDevices = [] } = container
  const devices = new Map(volumeDevices.map(({ name, devicePath }) => [name, devicePath]))
  const devicePaths = new Set(devices.values())
  const paths = new Set<string>()
  return volumeMounts.flatMap((mount, at) => {
    const path = index(field, at)
    const { name, mountPath } = mount
    const errors: FieldError[] = []
    if (name === '') errors.push(required(child(path, 'name')))
    if (!volumes.has(name)) errors.push(notFound(child(path, 'name'), name))
    if (mountPath === '') errors.push(required(child(path, 'mountPath')))
    if (paths.has(mountPath)) errors.push(invalid(child(path, 'mountPath'), mountPath, 'must be unique'))
    paths.add(mountPath)
    if (devices.has(name)) errors.push(invalid(child(path, 'name'), name, 'must not already exist in volumeDevices'))
    if (devicePaths.has(mountPath)) {
      errors.push(invalid(child(path, 'mountPath'), mountPath, 'must not already exist as a path in volumeDevices'))
    }
    return [...errors, ...validateMountOptions(field, path, mount, container)]
  })
}

/** Upstream names the list and not the mount for most of these. */
function validateMountOptions(field: string, path: string, mount: VolumeMount, container: Container): FieldError[] {
  const { subPath = '', subPathExpr = '' } = mount
  const errors = subPath === '' ? [] : validateDescendingPath(child(field, 'subPath'), subPath)
  if (subPathExpr !== '') {
    if (subPath !== '') {
      const complaint = 'subPathExpr and subPath are mutually exclusive'
      errors.push(invalid(child(path, 'subPathExpr'), subPathExpr, complaint))
    }
    errors.push(...validateDescendingPath(child(field, 'subPathExpr'), subPathExpr))
  }
  return [
    ...errors,
    ...validatePropagation(child(field, 'mountPropagation'), mount, container),
    ...validateRecursiveReadOnly(child(field, 'recursiveReadOnly'), mount),
  ]
}

function validatePropagation(field: string, { mountPropagation }: VolumeMount, container: Container): FieldError[] {
  if (mountPropagation === undefined) return []
  const errors = oneOf(field, mountPropagation, ['Bidirectional', 'HostToContainer', 'None'])
  if (mountPropagation !== 'Bidirectional' || container.securityContext?.privileged === true) return errors
  return [...errors, forbidden(field, 'Bidirectional mount propagation is available only to privileged containers')]
}

function validateRecursiveReadOnly(field: string, mount: VolumeMount): FieldError[] {
  const { recursiveReadOnly, readOnly, mountPropagation } = mount
  if (recursiveReadOnly === undefined || recursiveReadOnly === 'Disabled') return []
  const unknown = oneOf(field, recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible'])
  if (unknown.length > 0) return unknown
  const errors = readOnly === true ? [] : [forbidden(field, 'may only be specified when readOnly is true')]
  if (mountPropagation === undefined || mountPropagation === 'None') return errors
  return [...errors, forbidden(field, 'may only be specified when mountPropagation is None or not specified')]
}

export function validateDevices(field: string, container: Container, volumes: VolumeMap): FieldError[] {
  const { volumeMounts = [], volumeDevices = [] } = container
  const mounts = new Map(volumeMounts.map(({ name, mountPath }) => [name, mountPath]))
  const seen: SeenDevices = { names: new Set(), paths: new Set(), mounts, mountPaths: new Set(mounts.values()) }
  return volumeDevices.flatMap((device, at) => {
    const path = index(field, at)
    return [
      ...validateDeviceName(child(path, 'name'), device, volumes, seen),
      ...validateDevicePath(child(path, 'devicePath'), device, seen),
      ...validateDeviceOverlap(path, device, seen),
    ]
  })
}

interface SeenDevices {
  readonly names: Set<string>
  readonly paths: Set<string>
  readonly mounts: ReadonlyMap<string, string>
  readonly mountPaths: ReadonlySet<string>
}

function validateDeviceName(
  field: string,
  { name }: VolumeDevice,
  volumes: VolumeMap,
  seen: SeenDevices,
): FieldError[] {
  const errors = name === '' ? [required(field)] : []
  if (seen.names.has(name)) errors.push(invalid(field, name, 'must be unique'))
  if (name !== '') seen.names.add(name)
  const volume = volumes.get(name)
  if (volume === undefined) return [...errors, notFound(field, name)]
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return errors
  const complaint = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  return [...errors, invalid(field, name, complaint)]
}

function validateDevicePath(field: string, { devicePath }: VolumeDevice, seen: SeenDevices): FieldError[] {
  const errors = devicePath === '' ? [required(field)] : []
  if (seen.paths.has(devicePath)) errors.push(invalid(field, devicePath, 'must be unique'))
  if (devicePath !== '' && validateNoBacksteps(field, devicePath).length > 0) {
    return [...errors, invalid(field, devicePath, "can not contain backsteps ('..')")]
  }
  seen.paths.add(devicePath)
  return errors
}

function validateDeviceOverlap(path: string, { name, devicePath }: VolumeDevice, seen: SeenDevices): FieldError[] {
  const errors: FieldError[] = []
  if (seen.mounts.has(name)) {
    errors.push(invalid(child(path, 'name'), name, 'must not already exist in volumeMounts'))
  }
  if (seen.mountPaths.has(devicePath)) {
    const complaint = 'must not already exist as a path in volumeMounts'
    errors.push(invalid(child(path, 'devicePath'), devicePath, complaint))
  }
  return errors
}
