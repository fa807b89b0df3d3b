import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { StatusError } from '#meta/status.ts'

import { apiCredentialOf } from './parameters.ts'

const PEM = '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n'
const caCert = Buffer.from(PEM).toString('base64')

describe("apiCredentialOf() for parameters of Rancher's cluster agent", () => {
  it('returns address, token and CA of the API server', () => {
    const cluster = { address: '10.43.0.1:443', token: 'eyJ.x.y', caCert }
    const found = { address: '10.43.0.1:443', token: 'eyJ.x.y', certificateAuthority: PEM }
    assert.deepEqual(apiCredentialOf({ cluster }), found)
    assert.deepEqual(apiCredentialOf({ cluster: { ...cluster, address: '[fd00::1]:443', caCert: '' } }), {
      address: '[fd00::1]:443',
      token: 'eyJ.x.y',
      certificateAuthority: '',
    })
  })

  it('returns undefined for parameters of our own agent', () => {
    assert.equal(apiCredentialOf({ uid: 'abcdefgh', agentVersion: '1' }), undefined)
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['a string as the cluster', 'x'],
    ['null as the cluster', null],
    ['no address', { token: 'x' }],
    ['an address without a port', { address: '10.43.0.1', token: 'x' }],
    ['an address with a path', { address: '10.43.0.1:443/x', token: 'x' }],
    ['a port that is too large', { address: '10.43.0.1:65536', token: 'x' }],
    ['an address with a line break', { address: '10.43.0.1:443\n', token: 'x' }],
    ['no token', { address: '10.43.0.1:443' }],
    ['a token with a line break', { address: '10.43.0.1:443', token: 'x\r\nX-Evil: 1' }],
    ['a token that is too long', { address: '10.43.0.1:443', token: 'x'.repeat(20_000) }],
    ['a CA that is not PEM', { address: '10.43.0.1:443', token: 'x', caCert: 'eA==' }],
  ]
  for (const [what, cluster] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => apiCredentialOf({ cluster }),
        (error) => error instanceof StatusError && error.status.code === 400,
      )
    })
  }
})
