/** Validates volume mounts and block devices of a container. */
import type { Container, Volume, VolumeDevice, VolumeMount } from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOf } from '#meta/validation/rules.ts'

import { validateDescendingPath, validateNoBacksteps } from '../checks.ts'

/** The valid volumes of the pod, by name. */
export type VolumeMap = ReadonlyMap<string, Volume>

export function validateMounts(field: FieldPath, container: Container, volumes: VolumeMap): FieldError[] {
  const { volumeMounts = [], volumeDevices = [] } = container
  const devices = new Map(volumeDevices.map(({ name, devicePath }) => [name, devicePath]))
  const devicePaths = new Set(devices.values())
  const isRepeated = createRepetition()
  return field.each(volumeMounts, (path, mount) => {
    const { name, mountPath } = mount
    return collectErrors(
      name === '' && path.child('name').required(),
      !volumes.has(name) && path.child('name').notFound(name),
      mountPath === '' && path.child('mountPath').required(),
      isRepeated(mountPath) && path.child('mountPath').invalid(mountPath, 'must be unique'),
      devices.has(name) && path.child('name').invalid(name, 'must not already exist in volumeDevices'),
      devicePaths.has(mountPath) &&
        path.child('mountPath').invalid(mountPath, 'must not already exist as a path in volumeDevices'),
      validateMountOptions(field, path, mount, container),
    )
  })
}

/** Upstream reports the list instead of the mount for most of these. */
function validateMountOptions(
  field: FieldPath,
  path: FieldPath,
  mount: VolumeMount,
  container: Container,
): FieldError[] {
  const { subPath = '', subPathExpr = '' } = mount
  const errors = subPath === '' ? [] : validateDescendingPath(field.child('subPath'), subPath)
  if (subPathExpr !== '') {
    if (subPath !== '') {
      const complaint = 'subPathExpr and subPath are mutually exclusive'
      errors.push(path.child('subPathExpr').invalid(subPathExpr, complaint))
    }
    errors.push(...validateDescendingPath(field.child('subPathExpr'), subPathExpr))
  }
  return [
    ...errors,
    ...validatePropagation(field.child('mountPropagation'), mount, container),
    ...validateRecursiveReadOnly(field.child('recursiveReadOnly'), mount),
  ]
}

function validatePropagation(path: FieldPath, { mountPropagation }: VolumeMount, container: Container): FieldError[] {
  if (mountPropagation === undefined) return []
  const errors = oneOf(path, mountPropagation, ['Bidirectional', 'HostToContainer', 'None'])
  if (mountPropagation !== 'Bidirectional' || container.securityContext?.privileged === true) return errors
  return [...errors, path.forbidden('Bidirectional mount propagation is available only to privileged containers')]
}

function validateRecursiveReadOnly(path: FieldPath, mount: VolumeMount): FieldError[] {
  const { recursiveReadOnly, readOnly, mountPropagation } = mount
  if (recursiveReadOnly === undefined || recursiveReadOnly === 'Disabled') return []
  const unknown = oneOf(path, recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible'])
  if (unknown.length > 0) return unknown
  const errors = readOnly === true ? [] : [path.forbidden('may only be specified when readOnly is true')]
  if (mountPropagation === undefined || mountPropagation === 'None') return errors
  return [...errors, path.forbidden('may only be specified when mountPropagation is None or not specified')]
}

export function validateDevices(path: FieldPath, container: Container, volumes: VolumeMap): FieldError[] {
  const { volumeMounts = [], volumeDevices = [] } = container
  const mounts = new Map(volumeMounts.map(({ name, mountPath }) => [name, mountPath]))
  const seen: SeenDevices = { names: new Set(), paths: new Set(), mounts, mountPaths: new Set(mounts.values()) }
  return path.each(volumeDevices, (path, device) => [
    ...validateDeviceName(path.child('name'), device, volumes, seen),
    ...validateDevicePath(path.child('devicePath'), device, seen),
    ...validateDeviceOverlap(path, device, seen),
  ])
}

interface SeenDevices {
  readonly names: Set<string>
  readonly paths: Set<string>
  readonly mounts: ReadonlyMap<string, string>
  readonly mountPaths: ReadonlySet<string>
}

function validateDeviceName(
  path: FieldPath,
  { name }: VolumeDevice,
  volumes: VolumeMap,
  seen: SeenDevices,
): FieldError[] {
  const errors = name === '' ? [path.required()] : []
  if (seen.names.has(name)) errors.push(path.invalid(name, 'must be unique'))
  if (name !== '') seen.names.add(name)
  const volume = volumes.get(name)
  if (volume === undefined) return [...errors, path.notFound(name)]
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return errors
  const complaint = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  return [...errors, path.invalid(name, complaint)]
}

function validateDevicePath(path: FieldPath, { devicePath }: VolumeDevice, seen: SeenDevices): FieldError[] {
  const errors = devicePath === '' ? [path.required()] : []
  if (seen.paths.has(devicePath)) errors.push(path.invalid(devicePath, 'must be unique'))
  if (devicePath !== '' && validateNoBacksteps(path, devicePath).length > 0) {
    return [...errors, path.invalid(devicePath, "can not contain backsteps ('..')")]
  }
  seen.paths.add(devicePath)
  return errors
}

function validateDeviceOverlap(path: FieldPath, { name, devicePath }: VolumeDevice, seen: SeenDevices): FieldError[] {
  return collectErrors(
    seen.mounts.has(name) && path.child('name').invalid(name, 'must not already exist in volumeMounts'),
    seen.mountPaths.has(devicePath) &&
      path.child('devicePath').invalid(devicePath, 'must not already exist as a path in volumeMounts'),
  )
}
