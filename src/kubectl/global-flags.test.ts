import assert from 'node:assert/strict'
import { test } from 'node:test'

import { globalFlags, unbuiltFlag } from './global-flags.ts'

test('kubectl names unsupported global flags in its error', () => {
  const defaults = Object.fromEntries(Object.entries(globalFlags({})).map(([name, { initial }]) => [name, initial]))
  assert.equal(unbuiltFlag(defaults), undefined)
  assert.equal(unbuiltFlag({ ...defaults, profile: 'cpu' }), 'profile')
})
