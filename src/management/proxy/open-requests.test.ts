import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { OpenRequests } from './open-requests.ts'

const clock = createVirtualClock()
const user = { name: 'u-abcde', groups: [] }
const metadata = { name: 'x' }
const person = {
  user: { metadata, spec: { username: 'jane' } },
  token: { metadata, spec: { user: 'x', type: 'api', hash: '', expiresAt: '2099-01-01T00:00:00Z' } },
  hasCookie: false,
} as const

describe('OpenRequests', () => {
  it('refuses more than 2000 requests of a user at once', async () => {
    const open = new OpenRequests({ clock, get: () => undefined })
    const { promise, resolve } = Promise.withResolvers<void>()
    const request = { person, user, current: () => user }
    const first = Array.from({ length: 2000 }, () => open.during(request, () => promise))
    await assert.rejects(
      open.during(request, () => promise),
      /2000 requests under way/,
    )
    const other = open.during({ ...request, user: { ...user, name: 'u-other' } }, () => promise)
    resolve()
    await Promise.all([...first, other])
    await open.during(request, () => promise)
    open.close()
  })
})
