import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { allowedAddress, isGlobalUnicast, isKubeletAddress } from './address-rule.ts'

/** Address, allowed for kubelets, allowed for users' requests. */
const ADDRESSES: readonly (readonly [string, boolean, boolean])[] = [
  ['10.1.2.3', true, true],
  ['192.168.0.1', true, true],
  ['8.8.8.8', true, true],
  ['fd00::1', true, true],
  ['2001:db8::1', true, true],
  ['127.0.0.1', true, false],
  ['127.255.0.9', true, false],
  ['::1', true, false],
  ['::ffff:127.0.0.1', true, false],
  ['127.0.00.1', true, false],
  ['169.254.169.254', false, false],
  ['::ffff:169.254.169.254', false, false],
  ['fe80::1', false, false],
  ['fe80::1%eth0', false, false],
  ['0.0.0.0', false, false],
  ['::', false, false],
  ['255.255.255.255', false, false],
  ['224.0.0.1', false, false],
  ['ff02::1', false, false],
  ['', false, false],
  ['no address', false, false],
]

describe('address rules for proxied requests', () => {
  for (const [address, kubelet, user] of ADDRESSES) {
    it(`${kubelet ? 'allow' : 'refuse'} "${address}" as a kubelet and ${user ? 'allow' : 'refuse'} it as a target of users`, () => {
      assert.deepEqual([isKubeletAddress(address), isGlobalUnicast(address)], [kubelet, user])
    })
  }

  it('check all addresses of a host name, and return a checked address for the connection', async () => {
    const answers = [['10.0.0.1'], ['10.0.0.1', '127.0.0.1'], []]
    const lookup = (): Promise<readonly string[]> => Promise.resolve(answers.shift() ?? [])
    assert.equal(await allowedAddress('node.example', { lookup }, isGlobalUnicast), '10.0.0.1')
    const refused = { message: 'address not allowed' }
    await assert.rejects(allowedAddress('node.example', { lookup }, isGlobalUnicast), refused)
    await assert.rejects(allowedAddress('node.example', { lookup }, isGlobalUnicast), /no addresses for hostname/)
  })

  it('apply to IP addresses without a DNS lookup', async () => {
    const lookup = (): Promise<never> => Promise.reject(new Error('asked'))
    assert.equal(await allowedAddress('10.0.0.1', { lookup }, isGlobalUnicast), '10.0.0.1')
  })
})
