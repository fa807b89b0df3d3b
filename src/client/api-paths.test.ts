import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '#apis/kinds.ts'

import { pathOf } from './api-client.ts'

const PODS = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true } as unknown as Kind

describe('pathOf() for an API object', () => {
  it('rejects names that lead to a collection or to another object', () => {
    const cases: readonly (readonly [Parameters<typeof pathOf>[1], string])[] = [
      [{ namespace: 'a', name: '..' }, `invalid resource name "..": [may not be '..']`],
      [{ namespace: 'a', name: '.' }, `invalid resource name ".": [may not be '.']`],
      [{ namespace: 'a', name: 'b/c%' }, `invalid resource name "b/c%": [may not contain '/' may not contain '%']`],
      [{ namespace: '..', name: 'b' }, `invalid namespace "..": [may not be '..']`],
      [{ namespace: 'a', name: 'b', subresource: '..' }, `invalid subresource "..": [may not be '..']`],
    ]
    for (const [place, message] of cases) assert.throws(() => pathOf(PODS, place), { message })
  })

  it('encodes the names of objects', () => {
    assert.equal(pathOf(PODS, { namespace: 'a', name: 'b:c' }), '/api/v1/namespaces/a/pods/b%3Ac')
  })
})
