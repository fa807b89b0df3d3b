import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { LinkState } from '#lib/net/iproute.ts'

import { planOutside } from './node-namespace.ts'

const PLAN = { link: 'hkl-1', netns: 'hyperkube-1', nodeBridge: 'hkn-1' }
const HAIRPIN = ['link', 'set', 'dev', 'hkl-1', 'type', 'bridge_slave', 'hairpin', 'on']

const linkOf = (more: Partial<LinkState> = {}): LinkState => ({
  ifindex: 1,
  ifname: 'hkl-1',
  flags: ['UP'],
  mtu: 1500,
  master: 'hkn-1',
  linkinfo: { info_slave_data: { hairpin: true } },
  addr_info: [],
  ...more,
})

describe('planOutside() for the link of a node', () => {
  it('attaches a new link to the bridge in hairpin mode', () => {
    assert.deepEqual(planOutside(PLAN, undefined).slice(1), [
      ['link', 'set', 'dev', 'hkl-1', 'master', 'hkn-1'],
      HAIRPIN,
      ['link', 'set', 'dev', 'hkl-1', 'up'],
    ])
  })

  it('plans nothing for a correct link', () => assert.deepEqual(planOutside(PLAN, linkOf()), []))

  it('enables hairpin mode on a link of an older release', () => {
    assert.deepEqual(planOutside(PLAN, linkOf({ linkinfo: { info_slave_data: { hairpin: false } } })), [HAIRPIN])
    assert.deepEqual(planOutside(PLAN, linkOf({ linkinfo: {} })), [HAIRPIN])
  })
})
