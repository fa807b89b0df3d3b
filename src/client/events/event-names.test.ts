import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { EventNames } from './event-names.ts'

describe('EventNames', () => {
  it('gives two event sources different names for the same object and millisecond', () => {
    const [scheduler, kubelet] = [new EventNames('default-scheduler|'), new EventNames('kubelet|node-0')]
    const names = [scheduler, kubelet, kubelet].map((source) => source.nameOf('pod', 1_700_000_000_000))
    assert.equal(new Set(names).size, 3)
    for (const name of names) assert.match(name, /^pod\.[0-9a-f]{16}$/)
  })

  it('generates the same names for the same source and times', () => {
    const again = (): string => new EventNames('kubelet|node-0').nameOf('pod', 1_700_000_000_000)
    assert.equal(again(), again())
  })
})
