import assert from 'node:assert/strict'
import { test } from 'node:test'

import { globalFlags, unbuiltFlag } from './global-flags.ts'

test('the error for unsupported global flags names them', () => {
  const defaults = Object.fromEntries(Object.entries(globalFlags({})).map(([name, { initial }]) => [name, initial]))
  assert.equal(unbuiltFlag(defaults), undefined)
  assert.equal(unbuiltFlag({ ...defaults, profile: 'cpu' }), 'profile')
})
