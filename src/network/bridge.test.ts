import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { LinkState } from '#lib/net/iproute.ts'

import { macFor, planBridge } from './bridge.ts'

const BRIDGE: LinkState = {
  ifindex: 7,
  ifname: 'hk-1',
  flags: ['BROADCAST', 'UP'],
  mtu: 1500,
  linkinfo: { info_kind: 'bridge' },
  addr_info: [
    { family: 'inet', local: '10.244.0.1', prefixlen: 24, scope: 'global' },
    { family: 'inet6', local: 'fe80::1', prefixlen: 64, scope: 'link' },
  ],
}

test('the node network creates its bridge once, with a MAC address that no port can change', () => {
  const spec = { name: 'hk-1', addresses: ['10.244.0.1/24'] }
  assert.deepEqual(planBridge(spec, undefined), [
    ['link', 'add', 'name', 'hk-1', 'address', '0a:58:0a:f4:00:01', 'type', 'bridge'],
    ['address', 'add', '10.244.0.1/24', 'dev', 'hk-1'],
    ['link', 'set', 'dev', 'hk-1', 'up'],
  ])
  assert.deepEqual(planBridge(spec, BRIDGE), [])
  assert.equal(macFor('fd00::1/64'), undefined)
})

test('the node network adds a new bridge address before it removes the old one', () => {
  assert.deepEqual(planBridge({ name: 'hk-1', addresses: ['10.244.3.1/24'] }, { ...BRIDGE, flags: [] }), [
    ['address', 'add', '10.244.3.1/24', 'dev', 'hk-1'],
    ['address', 'delete', '10.244.0.1/24', 'dev', 'hk-1'],
    ['link', 'set', 'dev', 'hk-1', 'up'],
  ])
})

test('the node network does not change a link that another program created', () => {
  const spec = { name: 'hk-1', addresses: [] }
  assert.throws(() => planBridge(spec, { ...BRIDGE, linkinfo: {} }), /not a bridge/)
})
