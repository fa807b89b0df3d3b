import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { EventNames } from './event-names.ts'

describe('the name of an event', () => {
  it('is another one for each source that speaks of an object in the same millisecond', () => {
    const [scheduler, kubelet] = [new EventNames('default-scheduler|'), new EventNames('kubelet|node-0')]
    const names = [scheduler, kubelet, kubelet].map((source) => source.nameOf('pod', 1_700_000_000_000))
    assert.equal(new Set(names).size, 3)
    for (const name of names) assert.match(name, /^pod\.[0-9a-f]{16}$/)
  })

  it('is the same when everything happens again', () => {
    const again = (): string => new EventNames('kubelet|node-0').nameOf('pod', 1_700_000_000_000)
    assert.equal(again(), again())
  })
})
