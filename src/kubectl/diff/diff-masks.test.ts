import assert from 'node:assert/strict'
import { it } from 'node:test'

import { maskedSecrets } from './diff-masks.ts'

it('kubectl diff masks values of Secrets', () => {
  const live = { metadata: {}, data: { same: 'a', changed: 'b', gone: 'c' } }
  const merged = { metadata: {}, data: { same: 'a', changed: 'x', fresh: 'd' } }
  const { live: from, merged: to } = maskedSecrets({ live, merged })
  assert.deepEqual(from?.['data'], { same: '***', changed: '*** (before)', gone: '***' })
  assert.deepEqual(to['data'], { same: '***', changed: '*** (after)', fresh: '***' })
  assert.deepEqual(maskedSecrets({ live: undefined, merged }).live, undefined)
})
