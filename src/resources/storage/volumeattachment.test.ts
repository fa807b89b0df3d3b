import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { volumeAttachment } from './volumeattachment.ts'

const { create, update, cells } = tryRules(volumeAttachment)

const body = {
  metadata: { name: 'x' },
  spec: { attacher: 'a.io', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
  status: {
    attached: true,
    attachmentMetadata: { a: 'b' },
    attachError: { time: '2024-01-01T00:00:00Z', message: 'm', errorCode: 3 },
  },
}

test('a VolumeAttachment names a volume and a node', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a VolumeAttachment rejects invalid attachers, sources and nodes', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.attacher', '', ['spec.attacher: Required value']],
    [
      'spec.attacher',
      'A_',
      [
        "spec.attacher: Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.nodeName',
      'A',
      [
        "spec.nodeName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.source',
      {},
      ['spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
    ],
    [
      'spec.source.persistentVolumeName',
      '',
      [
        'spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName',
        "spec.source.persistentVolumeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.source.inlineVolumeSpec',
      {},
      ['spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
    ],
    [
      'spec.source',
      {
        inlineVolumeSpec: {
          claimRef: {},
          capacity: { storage: '1' },
          accessModes: ['ReadWriteOnce', 'ReadWriteOncePod', 'Foo'],
          persistentVolumeReclaimPolicy: 'Delete',
          nodeAffinity: {},
          storageClassName: 'c',
          volumeMode: 'Block',
          nfs: { server: 's', path: '/' },
        },
      },
      [
        'spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.accessModes: Unsupported value: "Foo": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
        'spec.source.inlineVolumeSpec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
        'spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes',
        'spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a VolumeAttachment rejects updates of spec', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.nodeName',
      'other',
      [
        'spec: Invalid value: {"attacher":"a.io","source":{"persistentVolumeName":"pv"},"nodeName":"other"}: field is immutable',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a VolumeAttachment accepts the result of the attacher', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.attachError.errorCode',
      -1,
      ['status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive'],
    ],
    [
      'status.attachError.message',
      'a'.repeat(1025),
      ['status.attachError.message: Too long: may not be more than 262144 bytes'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('a VolumeAttachment prints the volume, the node and the state', () => {
  assert.deepEqual(
    volumeAttachment.columns?.map(({ name }) => name),
    ['Name', 'Attacher', 'PV', 'Node', 'Attached', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'a.io', 'pv', 'n', true, '<unknown>'])
  assert.equal(volumeAttachment.storagePrefix, 'volumeattachments')
  assert.equal(volumeAttachment.deleteAnswersObject, true)
  assert.equal(volumeAttachment.putNeedsVersion, true)
})
