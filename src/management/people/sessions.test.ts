import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { startObjects } from '#kits/management/objects.ts'

import { Users as UserKind } from '../kinds/user.ts'
import { ENDED_SESSION, sessionCookies, Sessions } from './sessions.ts'
import { Tokens } from './tokens.ts'

const HOUR_MS = 3_600_000
const valueOf = (line: string): string => /^__Host-hk=([^;]*)/.exec(line)?.[1] ?? ''

describe('Sessions', () => {
  it('have cookies that scripts and other sites cannot read or send', async () => {
    using started = await startObjects()
    const tokens = new Tokens(started.objects)
    const user = await started.objects.create(UserKind, { metadata: { name: 'u-jane' }, spec: { username: 'jane' } })
    const { cookie: line } = await new Sessions(tokens).start(user)
    assert.match(
      line,
      /^__Host-hk=hk_t-[a-z0-9]{10}_[\w-]{43}; Path=\/; Max-Age=57600; Secure; HttpOnly; SameSite=Strict$/,
    )
    assert.equal(ENDED_SESSION, '__Host-hk=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict')
    await tokens.close()
  })

  it('end after an hour without requests, and after 16 hours', async () => {
    using started = await startObjects()
    const tokens = new Tokens(started.objects)
    const user = await started.objects.create(UserKind, { metadata: { name: 'u-jane' }, spec: { username: 'jane' } })
    const sessions = new Sessions(tokens)
    const [used = '', unused = ''] = [await sessions.start(user), await sessions.start(user)].map(({ cookie }) =>
      valueOf(cookie),
    )
    for (let halfHours = 1; halfHours < 32; halfHours++) {
      await started.clock.advance(HOUR_MS / 2)
      assert.ok(tokens.verify(used, 'session', ''), `${halfHours}`)
    }
    assert.equal(tokens.verify(unused, 'session', ''), undefined)
    await started.clock.advance(HOUR_MS / 2)
    assert.equal(tokens.verify(used, 'session', ''), undefined)
    await tokens.close()
  })

  it('are at most 100 for a user: the one that was unused for the longest time ends', async () => {
    using started = await startObjects()
    const tokens = new Tokens(started.objects)
    const user = await started.objects.create(UserKind, { metadata: { name: 'u-jane' }, spec: { username: 'jane' } })
    const sessions = new Sessions(tokens)
    const lines: string[] = []
    for (let n = 0; n < 101; n++) {
      lines.push(valueOf((await sessions.start(user)).cookie))
      await started.clock.advance(1000)
      assert.ok(tokens.verify(lines[0] ?? '', 'session', ''))
    }
    assert.equal(tokens.verify(lines[1] ?? '', 'session', ''), undefined)
    assert.equal(tokens.ofUser('u-jane').length, 100)
    await tokens.close()
  })
})

describe('sessionCookies() of the header Cookie', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['', []],
    ['a=1', []],
    ['__Host-hk=x', ['x']],
    ['a=1; __Host-hk=x; b=2', ['x']],
    ['__Host-hk=x;__Host-hk=y', ['x', 'y']],
    ['__Host-hk=a=b', ['a=b']],
    ['__host-hk=x', []],
    ['x__Host-hk=x', []],
    ['__Host-hk', []],
    ['__Host-hk-login=x', []],
  ]
  for (const [header, values] of rows) {
    it(`returns ${JSON.stringify(values)} for "${header}"`, () => assert.deepEqual(sessionCookies(header), values))
  }
})
