import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ObjectMeta } from '../object.ts'
import { fieldErrorText } from './field-error.ts'
import { type FieldError, fieldPath } from './field-path.ts'
import { nameIsSubdomain } from './names.ts'
import { validateFinalizerName, validateObjectMeta, validateObjectMetaUpdate } from './object-meta.ts'

const rules = { namespaced: true, name: nameIsSubdomain }
const good: ObjectMeta = { name: 'a', namespace: 'b', resourceVersion: '1', uid: 'u' }
const short = (errors: readonly FieldError[]): string[] => errors.map((error) => fieldErrorText(error).slice(0, 120))

describe('validateObjectMeta()', () => {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }
  const table: [string, ObjectMeta, string[]][] = [
    ['a plain object', good, []],
    ['a missing name', { namespace: 'b' }, ['metadata.name: Required value: name or generateName is required']],
    ['a missing namespace', { name: 'a' }, ['metadata.namespace: Required value']],
    [
      'an invalid name and generateName',
      { ...good, name: 'A', generateName: 'B.-c' },
      [
        'metadata.generateName: Invalid value: "B.-c": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric cha',
        'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \'-',
      ],
    ],
    [
      'a dotted namespace and a negative generation',
      { ...good, namespace: 'a.b', generation: -1 },
      [
        'metadata.namespace: Invalid value: "a.b": must not contain dots',
        'metadata.generation: Invalid value: -1: must be greater than or equal to 0',
      ],
    ],
    [
      'two controller owners',
      { ...good, ownerReferences: [owner, { ...owner, name: 'q' }] },
      [`metadata.ownerReferences: Invalid value: ${JSON.stringify([owner, { ...owner, name: 'q' }])}`.slice(0, 120)],
    ],
    [
      'an empty owner reference and an Event as owner',
      {
        ...good,
        ownerReferences: [
          { apiVersion: 'a/b/c', kind: '', name: '', uid: '' },
          { apiVersion: 'v1', kind: 'Event', name: 'e', uid: 'u' },
        ],
      },
      [
        'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
        'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
        'metadata.ownerReferences.name: Invalid value: "": must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}: /v1, Kind=Event is dis',
      ],
    ],
    [
      'conflicting finalizers',
      { ...good, finalizers: ['orphan', 'foregroundDeletion'] },
      [
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be b',
      ],
    ],
    [
      'invalid managed fields',
      {
        ...good,
        managedFields: [
          { manager: 'm\n', operation: 'x' as 'Apply', fieldsType: 'y', subresource: 's'.repeat(257) },
          { manager: 'm'.repeat(129), operation: 'Apply', fieldsType: 'FieldsV1' },
        ],
      },
      [
        'metadata.managedFields[0].operation: Invalid value: "x": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "y": must be `FieldsV1`',
        'metadata.managedFields[0].manager: Invalid value: "m\\n": invalid character U+000A (at position 1)',
        'metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes',
        'metadata.managedFields[1].manager: Too long: may not be more than 128 bytes',
      ],
    ],
  ]
  for (const [title, meta, expected] of table) {
    it(`reports the errors of ${title}`, () => assert.deepEqual(short(validateObjectMeta(meta, rules)), expected))
  }

  it('accepts cluster-scoped objects', () => {
    assert.deepEqual(short(validateObjectMeta(good, { ...rules, namespaced: false, path: fieldPath('m') })), [
      'm.namespace: Forbidden: not allowed on this type',
    ])
  })
})

describe('validateObjectMetaUpdate()', () => {
  const leaving = { ...good, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }

  it('accepts added labels and removed finalizers', () => {
    assert.deepEqual(validateObjectMetaUpdate({ ...good, labels: { a: 'b' } }, good), [])
    assert.deepEqual(validateObjectMetaUpdate(leaving, { ...leaving, finalizers: ['x.io/f'] }), [])
  })

  it('rejects new finalizers on an object with deletionTimestamp', () => {
    const next = { ...leaving, finalizers: ['y.io/f', 'x.io/f', 'a.io/f'] }
    assert.deepEqual(validateObjectMetaUpdate(next, { ...leaving, finalizers: ['x.io/f'] }).map(fieldErrorText), [
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a.io/f", "y.io/f"}',
    ])
  })

  it('rejects changes of name, namespace and UID', () => {
    const next: ObjectMeta = { name: 'z', uid: 'v', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
    const errors = validateObjectMetaUpdate(next, { ...leaving, generation: 2 }).map(fieldErrorText)
    assert.deepEqual(errors, [
      'metadata.resourceVersion: Invalid value: "": must be specified for an update',
      'metadata.generation: Invalid value: 1: must not be decremented',
      'metadata.name: Invalid value: "z": field is immutable',
      'metadata.namespace: Invalid value: "": field is immutable',
      'metadata.uid: Invalid value: "v": field is immutable',
      'metadata.creationTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable',
      'metadata.deletionTimestamp: Invalid value: null: field is immutable',
      'metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable',
    ])
  })
})

describe('validateFinalizerName()', () => {
  it('accepts names with a domain, and the standard names', () => {
    for (const name of ['example.com/a', 'kubernetes', 'orphan', 'foregroundDeletion']) {
      assert.deepEqual(validateFinalizerName(fieldPath('f'), name), [])
    }
  })

  it('rejects other names', () => {
    assert.deepEqual(validateFinalizerName(fieldPath('f'), 'mine').map(fieldErrorText), [
      'f: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
    ])
  })
})
