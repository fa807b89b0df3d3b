import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { mergeData } from './authentication-config.ts'

const clock = createVirtualClock()
const DAY_MS = 86_400_000

function authority(commonName: string, validityMs = 10 * DAY_MS): string {
  return createAuthority({ commonName, validityMs }, { clock, random: createSeededRandom(commonName.length) })
    .certificatePem
}

const [one, two, proxies] = [authority('one'), authority('three', DAY_MS), authority('proxies')]
const requestHeader = {
  authorities: proxies,
  allowedNames: ['front'],
  usernameHeaders: ['X-Remote-User'],
  uidHeaders: [],
  groupHeaders: ['X-Remote-Group'],
  extraHeaderPrefixes: ['X-Remote-Extra-'],
}

describe('ConfigMap extension-apiserver-authentication', () => {
  it('contains lists as JSON and omits settings that are not configured', () => {
    const data = mergeData({}, { clientAuthorities: one, requestHeader }, clock.now())
    assert.deepEqual(data, {
      'client-ca-file': one,
      'requestheader-client-ca-file': proxies,
      'requestheader-allowed-names': '["front"]',
      'requestheader-username-headers': '["X-Remote-User"]',
      'requestheader-uid-headers': '[]',
      'requestheader-group-headers': '["X-Remote-Group"]',
      'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    })
    assert.deepEqual(mergeData({}, { clientAuthorities: '' }, clock.now()), {})
  })

  it('keeps values that other servers wrote, without duplicates', () => {
    const before = mergeData(
      {},
      { clientAuthorities: two, requestHeader: { ...requestHeader, allowedNames: ['a'] } },
      clock.now(),
    )
    const both = mergeData(before, { clientAuthorities: one, requestHeader }, clock.now())
    assert.equal(both['client-ca-file'], two + one)
    assert.equal(both['requestheader-allowed-names'], '["a","front"]')
    assert.equal(both['requestheader-client-ca-file'], proxies)
    assert.deepEqual(mergeData(both, { clientAuthorities: one, requestHeader }, clock.now()), both)
  })

  it('drops expired authorities and unparsable values', () => {
    const before = { 'client-ca-file': two, 'requestheader-allowed-names': 'front', other: 'x' }
    const data = mergeData(before, { clientAuthorities: one, requestHeader }, clock.now() + 2 * DAY_MS)
    assert.equal(data['client-ca-file'], one)
    assert.equal(data['requestheader-allowed-names'], '["front"]')
    assert.equal(data['other'], 'x')
    assert.equal(
      mergeData({ 'client-ca-file': 'zork' }, { clientAuthorities: one }, clock.now())['client-ca-file'],
      one,
    )
  })
})
