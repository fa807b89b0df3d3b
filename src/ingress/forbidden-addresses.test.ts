import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ForbiddenAddressError, isForbiddenAddress, resolveAllowed } from './forbidden-addresses.ts'

const FORBIDDEN = [
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  '::1',
  '::',
  '0:0:0:0:0:0:0:1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::FFFF:169.254.169.254',
  '64:ff9b::127.0.0.1',
  '64:ff9b:1::7f00:1',
  '::ffff:0:169.254.169.254',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  '192.0.0.192',
]
const ALLOWED = [
  '10.42.0.5',
  '192.0.2.1',
  '128.0.0.1',
  '1.1.1.1',
  '::ffff:10.0.0.1',
  '64:ff9b::a00:1',
  '64:ff9b:1::a00:1',
  '::ffff:0:a00:1',
  '2002:c000:201::7f00:1',
  'fd00::5',
  '2001:db8::1',
]

describe('isForbiddenAddress() of an ingress backend', () => {
  for (const address of FORBIDDEN)
    it(`returns true for ${address}`, () => assert.equal(isForbiddenAddress(address), true))
  for (const address of ALLOWED)
    it(`returns false for ${address}`, () => assert.equal(isForbiddenAddress(address), false))
  it('returns false for host names, which resolveAllowed() checks', () =>
    assert.equal(isForbiddenAddress('localhost'), false))
})

describe('resolveAllowed() for an ingress backend', () => {
  it('returns the first address of a name', async () => {
    assert.equal(await resolveAllowed('web.example', async () => ['192.0.2.1', '192.0.2.2']), '192.0.2.1')
    assert.equal(await resolveAllowed('10.42.0.5', () => assert.fail('there is nothing to resolve')), '10.42.0.5')
  })

  it('rejects a name if any of its addresses is forbidden', async () => {
    for (const addresses of [['127.0.0.1'], ['192.0.2.1', '::1'], ['::ffff:169.254.169.254']])
      await assert.rejects(
        resolveAllowed('web.example', async () => addresses),
        ForbiddenAddressError,
      )
    await assert.rejects(resolveAllowed('127.0.0.1'), ForbiddenAddressError)
  })

  it('fails with a connection error if a name has no address', async () => {
    await assert.rejects(
      resolveAllowed('web.example', async () => []),
      { code: 'connect' },
    )
    const failing = async (): Promise<never> => Promise.reject(new Error('ENOTFOUND'))
    await assert.rejects(resolveAllowed('web.example', failing), { code: 'connect', message: /ENOTFOUND/ })
  })
})
