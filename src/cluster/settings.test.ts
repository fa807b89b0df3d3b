import assert from 'node:assert/strict'
import { test } from 'node:test'

import { parseCidr } from '#lib/net/cidr.ts'

import { podCidrFor } from './settings.ts'

test('each node gets 256 pod addresses, for any number of nodes', () => {
  for (const nodes of [1, 256, 257, 10_000, 32_768]) {
    const { prefixLength = 32 } = parseCidr(podCidrFor(nodes)) ?? {}
    assert.ok(2 ** (24 - prefixLength) >= nodes, `${nodes} nodes in ${podCidrFor(nodes)}`)
  }
})
