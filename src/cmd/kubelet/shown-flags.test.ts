import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { KUBELET_FLAGS } from './flags.ts'
import { shownFlags } from './shown-flags.ts'

describe('shownFlags', () => {
  it('has every flag, with its default or the value that was given', () => {
    const shown = shownFlags(KUBELET_FLAGS, { 'max-pods': 50 })
    assert.deepEqual([shown.get('max-pods'), shown.get('port'), shown.get('anonymous-auth')], ['50', '10250', 'false'])
  })

  it('hides headers that may hold credentials', () => {
    const given = { 'manifest-url-header': { Authorization: ['Bearer secret'] } }
    assert.equal(shownFlags(KUBELET_FLAGS, given).get('manifest-url-header'), 'CLASSIFIED')
    assert.doesNotMatch([...shownFlags(KUBELET_FLAGS, {}).values()].join(), /CLASSIFIED/)
  })
})
