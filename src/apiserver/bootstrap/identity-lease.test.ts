import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { identityOf } from './identity-lease.ts'

describe('identityOf', () => {
  it("is upstream's name for the server of a machine", () => {
    assert.equal(identityOf('node-1'), 'apiserver-lgabes5ywnaqeagh5dny4zlzs4')
  })

  it('differs from machine to machine', () => {
    assert.notEqual(identityOf('node-1'), identityOf('node-2'))
  })
})
