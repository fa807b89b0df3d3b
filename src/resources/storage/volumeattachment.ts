/** The VolumeAttachment resource: the intent to attach a volume to a node, and its result. */
import type { PersistentVolumeSpec } from '#apis/core/v1.ts'
import {
  type VolumeAttachment,
  VolumeAttachments,
  type VolumeAttachmentSource,
  type VolumeAttachmentStatus,
  type VolumeError,
} from '#apis/storage/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, rangeText } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

import { validateVolumeSource } from '../core/persistentvolume/sources.ts'
import { MAX_PARAMETERS_BYTES, sizeBytesOf } from './parameters.ts'

const MAX_MESSAGE_BYTES = 1024
const MAX_INT32 = 2 ** 31 - 1
const errorFields = ['attachError', 'detachError'] as const

export const volumeAttachment: Resource<VolumeAttachment> = defineResource<VolumeAttachment>({
  kind: VolumeAttachments,
  metadataRules: { update: ['whole'], part: [] },
  validate: validateAttachment,
  validateUpdate: validateAttachmentUpdate,
  status: {
    prepareUpdate(next, old, { isEnabled }) {
      if (isEnabled('MutableCSINodeAllocatableCount')) return
      for (const name of errorFields) {
        if (old.status?.[name]?.errorCode === undefined) delete next.status?.[name]?.errorCode
      }
    },
    validateUpdate: validateAttachmentUpdate,
  },
  columns: [
    nameColumn,
    { name: 'Attacher', format: 'name', value: ({ spec }) => spec.attacher },
    { name: 'PV', value: ({ spec }) => spec.source.persistentVolumeName ?? '' },
    { name: 'Node', value: ({ spec }) => spec.nodeName },
    { name: 'Attached', type: 'boolean', value: ({ status }) => status?.attached ?? false },
    ageColumn,
  ],
  deleteAnswersObject: true,
  putNeedsVersion: true,
})

function validateAttachmentUpdate(next: VolumeAttachment, old: VolumeAttachment): FieldError[] {
  return [...validateAttachment(next), ...immutable(fieldPath('spec'), next.spec, old.spec)]
}

function validateAttachment({ spec, status }: VolumeAttachment): FieldError[] {
  const volume = spec.source.persistentVolumeName
  return collectErrors(
    validateDriverName(fieldPath('spec.attacher'), spec.attacher),
    validateSource(fieldPath('spec.source'), spec.source),
    fieldPath('spec.nodeName').check(spec.nodeName, dns1123Subdomain),
    status !== undefined && validateStatus(fieldPath('status'), status),
    volume !== undefined && fieldPath('spec.source.persistentVolumeName').check(volume, dns1123Subdomain),
  )
}

const ONE_OF = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'

function validateSource(path: FieldPath, source: VolumeAttachmentSource): FieldError[] {
  const { persistentVolumeName: name, inlineVolumeSpec: spec } = source
  if (name === undefined) {
    return spec === undefined ? [path.required(ONE_OF)] : validateInlineVolume(path.child('inlineVolumeSpec'), spec)
  }
  if (spec !== undefined) return [path.forbidden(ONE_OF)]
  return name === '' ? [path.child('persistentVolumeName').required('must specify non empty persistentVolumeName')] : []
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const INLINE = 'in the context of inline volumes'

/** An inline volume of a pod, migrated from an in-tree driver to CSI. */
function validateInlineVolume(path: FieldPath, spec: PersistentVolumeSpec): FieldError[] {
  const { persistentVolumeReclaimPolicy: policy = '', volumeMode = 'Filesystem', storageClassName = '' } = spec
  const refuse = (refused: boolean, field: string, detail = 'may not be specified'): FieldError[] =>
    refused ? [path.child(field).forbidden(`${detail} ${INLINE}`)] : []
  return collectErrors(
    refuse(spec.claimRef !== undefined, 'claimRef'),
    refuse(Object.keys(spec.capacity ?? {}).length > 0, 'capacity'),
    spec.csi === undefined && path.child('csi').required(`has to be specified ${INLINE}`),
    validateAccessModes(path.child('accessModes'), spec.accessModes ?? []),
    refuse(policy !== '' && policy !== 'Retain', 'persistentVolumeReclaimPolicy', 'may only be Retain'),
    refuse(spec.nodeAffinity !== undefined, 'nodeAffinity'),
    validateVolumeSource(path, '', spec),
    refuse(storageClassName !== '', 'storageClassName'),
    refuse(volumeMode !== 'Filesystem', 'volumeMode', 'may not specify volumeMode other than Filesystem'),
  )
}

function validateAccessModes(path: FieldPath, modes: readonly string[]): FieldError[] {
  if (modes.length === 0) return [path.required()]
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  const mixed = known.has('ReadWriteOncePod') && known.size > 1
  return collectErrors(
    modes.filter((mode) => !known.has(mode)).map((mode) => path.notInSet(asJson(mode), accessModes)),
    mixed && path.forbidden('may not use ReadWriteOncePod with other access modes'),
  )
}

function validateStatus(path: FieldPath, status: VolumeAttachmentStatus): FieldError[] {
  return collectErrors(
    sizeBytesOf(status.attachmentMetadata) > MAX_PARAMETERS_BYTES &&
      path.child('attachmentMetadata').tooLong(MAX_PARAMETERS_BYTES),
    errorFields.flatMap((name) => validateError(path.child(name), status[name])),
  )
}

function validateError(path: FieldPath, error: VolumeError | undefined): FieldError[] {
  const { message = '', errorCode: code = 0 } = error ?? {}
  return collectErrors(
    // Upstream prints another limit than the effective one.
    byteLength(message) > MAX_MESSAGE_BYTES && path.child('message').tooLong(MAX_PARAMETERS_BYTES),
    code < 0 && path.child('errorCode').invalid(code, rangeText(0, MAX_INT32)),
  )
}
