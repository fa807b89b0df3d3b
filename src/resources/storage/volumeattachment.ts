/** VolumeAttachment: that a volume shall be attached to a node, and whether it is. */
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
import { byteLength } from '#lib/go-text.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  invalid,
  notInSet,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, rangeText } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateDriverName } from '#model/pod-spec/volume-sources.ts'

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
  return [...validateAttachment(next), ...immutable('spec', next.spec, old.spec)]
}

function validateAttachment({ spec, status }: VolumeAttachment): FieldError[] {
  const volume = spec.source.persistentVolumeName
  return [
    ...validateDriverName('spec.attacher', spec.attacher),
    ...validateSource('spec.source', spec.source),
    ...complaining('spec.nodeName', spec.nodeName, dns1123Subdomain(spec.nodeName)),
    ...(status === undefined ? [] : validateStatus('status', status)),
    ...(volume === undefined ? [] : complaining('spec.source.persistentVolumeName', volume, dns1123Subdomain(volume))),
  ]
}

const ONE_OF = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'

function validateSource(path: string, source: VolumeAttachmentSource): FieldError[] {
  const { persistentVolumeName: name, inlineVolumeSpec: spec } = source
  if (name === undefined) {
    return spec === undefined ? [required(path, ONE_OF)] : validateInlineVolume(child(path, 'inlineVolumeSpec'), spec)
  }
  if (spec !== undefined) return [forbidden(path, ONE_OF)]
  return name === ''
    ? [required(child(path, 'persistentVolumeName'), 'must specify non empty persistentVolumeName')]
    : []
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const INLINE = 'in the context of inline volumes'

/** A volume written in a pod and moved from an in-tree driver to CSI: it has no life of its own. */
function validateInlineVolume(path: string, spec: PersistentVolumeSpec): FieldError[] {
  const { persistentVolumeReclaimPolicy: policy = '', volumeMode = 'Filesystem', storageClassName = '' } = spec
  const refuse = (refused: boolean, field: string, detail = 'may not be specified'): FieldError[] =>
    refused ? [forbidden(child(path, field), `${detail} ${INLINE}`)] : []
  return [
    ...refuse(spec.claimRef !== undefined, 'claimRef'),
    ...refuse(Object.keys(spec.capacity ?? {}).length > 0, 'capacity'),
    ...(spec.csi === undefined ? [required(child(path, 'csi'), `has to be specified ${INLINE}`)] : []),
    ...validateAccessModes(child(path, 'accessModes'), spec.accessModes ?? []),
    ...refuse(policy !== '' && policy !== 'Retain', 'persistentVolumeReclaimPolicy', 'may only be Retain'),
    ...refuse(spec.nodeAffinity !== undefined, 'nodeAffinity'),
    ...validateVolumeSource(path, '', spec),
    ...refuse(storageClassName !== '', 'storageClassName'),
    ...refuse(volumeMode !== 'Filesystem', 'volumeMode', 'may not specify volumeMode other than Filesystem'),
  ]
}

function validateAccessModes(field: string, modes: readonly string[]): FieldError[] {
  if (modes.length === 0) return [required(field)]
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  const mixed = known.has('ReadWriteOncePod') && known.size > 1
  return [
    ...modes.filter((mode) => !known.has(mode)).map((mode) => notInSet(field, asJson(mode), accessModes)),
    ...(mixed ? [forbidden(field, 'may not use ReadWriteOncePod with other access modes')] : []),
  ]
}

function validateStatus(path: string, status: VolumeAttachmentStatus): FieldError[] {
  return [
    ...(sizeBytesOf(status.attachmentMetadata) > MAX_PARAMETERS_BYTES
      ? [tooLong(child(path, 'attachmentMetadata'), MAX_PARAMETERS_BYTES)]
      : []),
    ...errorFields.flatMap((name) => validateError(child(path, name), status[name])),
  ]
}

function validateError(path: string, error: VolumeError | undefined): FieldError[] {
  const { message = '', errorCode: code = 0 } = error ?? {}
  return [
    // Upstream names another limit than the one that counts.
    ...(byteLength(message) > MAX_MESSAGE_BYTES ? [tooLong(child(path, 'message'), MAX_PARAMETERS_BYTES)] : []),
    ...(code < 0 ? [invalid(child(path, 'errorCode'), code, rangeText(0, MAX_INT32))] : []),
  ]
}
