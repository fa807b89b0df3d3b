import assert from 'node:assert/strict'
import { test } from 'node:test'

import { dnsAddress } from './machine-dns.ts'

test('dnsAddress() returns the tenth Service address of the first family', () => {
  assert.equal(dnsAddress('10.96.0.0/16'), '10.96.0.10')
  assert.equal(dnsAddress('fd00:10:96::/112,10.96.0.0/16'), 'fd00:10:96::a')
  assert.equal(dnsAddress('10.0.0.0/29'), undefined)
  assert.equal(dnsAddress(''), undefined)
})
