import assert from 'node:assert/strict'
import { test } from 'node:test'

import { nodeAddresses, parseNodeIp } from './node-addresses.ts'

test('--node-ip is one address or one per IP family', () => {
  assert.deepEqual(parseNodeIp(''), { addresses: [], ignored: [] })
  assert.deepEqual(parseNodeIp('10.0.0.1, fd00::1'), { addresses: ['10.0.0.1', 'fd00::1'], ignored: [] })
  assert.deepEqual(parseNodeIp('10.0.0.1,x'), { addresses: ['10.0.0.1'], ignored: ['x'] })
  assert.throws(() => parseNodeIp('10.0.0.1,10.0.0.2'), /^Error: must contain either a single IP or a dual-stack pair/)
  assert.throws(() => parseNodeIp('0.0.0.0,fd00::1'), /dual-stack node IP cannot include '0\.0\.0\.0' or '::'/)
})

test('a node has its --node-ip addresses, or the address that its name resolves to', async () => {
  assert.deepEqual(await nodeAddresses('n', ['10.0.0.1']), ['10.0.0.1'])
  assert.deepEqual(await nodeAddresses('10.0.0.7', []), ['10.0.0.7'])
  assert.equal(await nodeAddresses('no-such-name.invalid', ['0.0.0.0']), undefined)
})
