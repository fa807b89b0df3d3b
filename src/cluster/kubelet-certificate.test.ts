import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock, realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'

import { issueFor, keepIssuing } from './kubelet-certificate.ts'

const DAY_MS = 24 * 3_600_000

test('keepIssuing() renews the serving certificate of a kubelet in time for years', async () => {
  const clock = createVirtualClock(realClock.now())
  const authority = createAuthority({ commonName: 'kubernetes' }, { clock, random: secureRandom })
  const names = { node: 'm', ips: ['192.168.1.7', '127.0.0.1'] }
  let shown = issueFor(authority, names).certificate
  const rounds = keepIssuing(
    authority,
    names,
    { clock, onError: (error) => assert.fail(String(error)) },
    ({ certificate }) => {
      shown = certificate
    },
  )
  for (let month = 0; month < 26; month++) {
    await clock.advance(30 * DAY_MS)
    const { notAfterMs, names: found } = parseCertificate(shown)
    assert.ok(notAfterMs - clock.now() > 100 * DAY_MS, `in month ${month}`)
    assert.deepEqual([found.dns, found.ips], [['m'], names.ips])
  }
  await rounds.stop()
})
