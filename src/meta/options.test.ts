import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  decodeDeleteOptions,
  type DeleteOptions,
  invalidOptionsError,
  type ListOptions,
  listOptionsQuery,
  patchOptionsQuery,
  validateCreateOptions,
  validateDeleteOptions,
  validateListOptions,
  validatePatchOptions,
  validateTableOptions,
  validateUpdateOptions,
} from './options.ts'
import { decodeQuery } from './query.ts'
import { fieldErrorText } from './validation/field-error.ts'
import type { FieldError } from './validation/field-path.ts'

const texts = (errors: readonly FieldError[]): string[] => errors.map(fieldErrorText)

describe('ListOptions', () => {
  const table: [ListOptions, string[]][] = [
    [{}, []],
    [{ resourceVersion: '5', resourceVersionMatch: 'Exact' }, []],
    [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, []],
    [
      { resourceVersionMatch: 'NotOlderThan' },
      ['resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided'],
    ],
    [
      { resourceVersion: '5', resourceVersionMatch: 'Exact', continue: 'x' },
      ['resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided'],
    ],
    [
      { resourceVersion: '0', resourceVersionMatch: 'Exact' },
      ['resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'],
    ],
    [
      { resourceVersion: '5', resourceVersionMatch: 'foo' },
      ['resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""'],
    ],
    [{ sendInitialEvents: true }, ['sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list']],
    [{ watch: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true }, []],
    [
      { watch: true, sendInitialEvents: true },
      ['resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'],
    ],
    [
      { watch: true, resourceVersionMatch: 'Exact', continue: 'x' },
      [
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
        'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"',
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
      ],
    ],
  ]
  for (const [options, expected] of table) {
    it(`${expected.length === 0 ? 'are valid' : 'are invalid'}: ${JSON.stringify(options)}`, () =>
      assert.deepEqual(texts(validateListOptions(options)), expected))
  }

  it('are rejected with 422', () => {
    const error = invalidOptionsError('ListOptions', validateListOptions({ sendInitialEvents: false }))
    assert.equal(error.status.code, 422)
    assert.match(error.message, /^ListOptions\.meta\.k8s\.io "" is invalid: sendInitialEvents: Forbidden/)
  })

  it('are parsed from query parameters', () => {
    const query = new URLSearchParams('limit=500&watch=1&timeoutSeconds=0&timeout=7m12s&labelSelector=a%3Db')
    assert.deepEqual(decodeQuery(listOptionsQuery, query), {
      labelSelector: 'a=b',
      watch: true,
      timeoutSeconds: 0,
      limit: 500,
    })
    const patch = new URLSearchParams('fieldManager=kubectl&force=true')
    assert.deepEqual(decodeQuery(patchOptionsQuery, patch), { fieldManager: 'kubectl', force: true })
  })
})

describe('DeleteOptions', () => {
  const ignore = 'ignoreStoreReadErrorWithClusterBreakingPotential'
  const table: [DeleteOptions, string[]][] = [
    [{ propagationPolicy: 'Foreground', dryRun: ['All'] }, []],
    [
      { propagationPolicy: 'x' },
      ['propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"'],
    ],
    [
      { propagationPolicy: 'Orphan', orphanDependents: true },
      ['propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set'],
    ],
    [{ dryRun: ['All', 'x'] }, ['dryRun: Unsupported value: ["All","x"]: supported values: "All"']],
    [{ ignoreStoreReadErrorWithClusterBreakingPotential: true, dryRun: [] }, []],
    [
      { ignoreStoreReadErrorWithClusterBreakingPotential: true, gracePeriodSeconds: 0, preconditions: { uid: 'u' } },
      [
        `${ignore}: Invalid value: true: cannot be set together with .gracePeriodSeconds`,
        `${ignore}: Invalid value: true: cannot be set together with .preconditions`,
      ],
    ],
  ]
  for (const [options, expected] of table) {
    it(`${expected.length === 0 ? 'are valid' : 'are invalid'}: ${JSON.stringify(options)}`, () =>
      assert.deepEqual(texts(validateDeleteOptions(options)), expected))
  }

  it('are parsed from query parameters, including preconditions', () => {
    const query = new URLSearchParams('uid=u&resourceVersion=&gracePeriodSeconds=0&orphanDependents=false')
    assert.deepEqual(decodeDeleteOptions(query), {
      gracePeriodSeconds: 0,
      orphanDependents: false,
      preconditions: { uid: 'u' },
    })
    assert.deepEqual(decodeDeleteOptions(new URLSearchParams()), {})
  })
})

describe('validation of write options', () => {
  it('checks dryRun, fieldValidation and fieldManager', () => {
    const errors = validateCreateOptions({ dryRun: ['x'], fieldValidation: 'y', fieldManager: 'a\u0007é\u200b' })
    assert.deepEqual(texts(errors), [
      'fieldManager: Invalid value: "a\\aé\\u200b": invalid character U+0007 (at position 1)',
      'fieldManager: Invalid value: "a\\aé\\u200b": invalid character U+200B (at position 4)',
      'dryRun: Unsupported value: ["x"]: supported values: "All"',
      'fieldValidation: Unsupported value: "y": supported values: "", "Ignore", "Strict", "Warn"',
    ])
    assert.deepEqual(texts(validateUpdateOptions({ fieldManager: 'x'.repeat(129) })), [
      'fieldManager: Too long: may not be more than 128 bytes',
    ])
  })

  it('requires fieldManager for apply, and allows force only for apply', () => {
    assert.deepEqual(texts(validatePatchOptions({ force: true }, { apply: true })), [
      'fieldManager: Required value: is required for apply patch',
    ])
    assert.deepEqual(texts(validatePatchOptions({ force: false }, { apply: false })), [
      'force: Forbidden: may not be specified for non-apply patch',
    ])
    assert.deepEqual(validatePatchOptions({ force: true, fieldManager: 'm' }, { apply: true }), [])
  })

  it('checks includeObject of a table request', () => {
    assert.deepEqual(validateTableOptions({ includeObject: 'None' }), [])
    assert.deepEqual(texts(validateTableOptions({ includeObject: 'x' })), [
      `includeObject: Invalid value: "x": must be 'Metadata', 'Object', 'None', or empty`,
    ])
  })
})
