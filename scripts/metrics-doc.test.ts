import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'

import { DOC, renderDoc } from './metrics-doc.ts'

it('docs/metrics.md lists every metric family as the sources declare it', () => {
  assert.equal(readFileSync(DOC, 'utf8'), renderDoc())
})
