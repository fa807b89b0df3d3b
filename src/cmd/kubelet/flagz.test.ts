import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { KUBELET_FLAGS } from './flags.ts'
import { flagzValues } from './flagz.ts'

describe('shownFlags() of the kubelet', () => {
  it('lists every flag with its default or given value', () => {
    const shown = flagzValues(KUBELET_FLAGS, { 'max-pods': 50 })
    assert.deepEqual([shown.get('max-pods'), shown.get('port'), shown.get('anonymous-auth')], ['50', '10250', 'false'])
  })

  it('hides headers that may contain credentials', () => {
    const given = { 'manifest-url-header': { Authorization: ['Bearer secret'] } }
    assert.equal(flagzValues(KUBELET_FLAGS, given).get('manifest-url-header'), 'CLASSIFIED')
    assert.doesNotMatch([...flagzValues(KUBELET_FLAGS, {}).values()].join(), /CLASSIFIED/)
  })
})
