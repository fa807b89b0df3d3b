import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { sendTo, TestBrowser, type TestAnswer } from '#kits/management/exchange.ts'
import { startObjects } from '#kits/management/objects.ts'
import { ADMINISTRATOR, addRoles, isAdministratorIn, permissionsIn } from '#kits/management/people.ts'
import type { VirtualClock } from '#lib/clock.ts'

import { Users as UserKind } from '../../kinds/user.ts'
import type { ManagementObjects } from '../../objects.ts'
import { createPeople, type People, type PeopleOptions } from '../people.ts'
import { CODE_LIFETIME_MS, type FirstLoginCode } from './first-login.ts'

const GOOD = 'correct horse battery'

interface Started extends AsyncDisposable {
  readonly objects: ManagementObjects
  readonly clock: VirtualClock
  readonly people: People
  readonly first: FirstLoginCode
  /** The number of times that a first log-in was complete. */
  completed: number
}

function optionsOf(objects: ManagementObjects): PeopleOptions {
  return {
    objects,
    isAdministrator: isAdministratorIn(objects),
    permissions: permissionsIn(objects),
    administratorRole: ADMINISTRATOR,
    serverUrl: () => 'https://hk.example.com',
    passwordHash: { cost: { memoryKiB: 8, passes: 1, parallelism: 1 } },
  }
}

async function start(): Promise<Started> {
  const { objects, clock, ...ending } = await startObjects()
  await addRoles(objects)
  const people = createPeople({ ...optionsOf(objects), onFirstLogin: async () => void started.completed++ })
  const first = await people.issueFirstLogin()
  assert.ok(first !== undefined)
  const stop = async (): Promise<void> => {
    await people.close()
    ending[Symbol.dispose]()
  }
  const started = { objects, clock, people, first, completed: 0, [Symbol.asyncDispose]: stop }
  return started
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

function post({ people }: Started, fields: Readonly<Record<string, string>>, headers = {}): Promise<TestAnswer> {
  const text = new URLSearchParams(fields).toString()
  return sendTo(people, { method: 'POST', path: '/first-login', headers: { ...FORM, ...headers }, text })
}

function redeem({ people }: Started, code: unknown, more: object = {}): Promise<TestAnswer> {
  const body = { code, password: GOOD, ...more }
  return sendTo(people, { method: 'POST', path: '/v3-public/first-login', body })
}

const show = ({ people }: Started, code: string, address = '10.0.0.1'): Promise<TestAnswer> =>
  sendTo(people, { path: `/first-login?code=${encodeURIComponent(code)}`, address })

describe('page /first-login of the management server', () => {
  it('sets the password and logs in without scripts', async () => {
    await using started = await start()
    const { code } = started.first
    const page = await show(started, code)
    assert.equal(page.status, 200)
    assert.ok(page.text.includes(`name="code" value="${code}"`))
    assert.ok(!/<script|javascript:|\son[a-z]+=|https?:/i.test(page.text))
    const done = await post(started, { code, username: 'admin', password: GOOD, repeated: GOOD })
    assert.equal(done.status, 200, done.text)
    assert.match(done.text, /<meta http-equiv="refresh" content="0;url=\/ui\/">/)
    const [cookie = ''] = done.values('Set-Cookie')
    assert.match(cookie, /^__Host-hk=hk_.*; Secure; HttpOnly; SameSite=Strict$/)
    const me = await sendTo(started.people, { path: '/v3/me', headers: { cookie: cookie.split(';')[0] ?? '' } })
    assert.deepEqual([me.status, me.body['isAdministrator']], [200, true])
    assert.equal(started.completed, 1)
    assert.equal((await new TestBrowser(started.people).logIn('admin', GOOD)).status, 200)
  })

  it('allows only its style and its form by Content-Security-Policy', async () => {
    await using started = await start()
    for (const page of [await show(started, started.first.code), await show(started, 'wrong')]) {
      const [policy = ''] = page.values('Content-Security-Policy')
      assert.match(
        policy,
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
      )
      assert.deepEqual(page.values('Referrer-Policy'), ['no-referrer'])
      assert.deepEqual(page.values('Cache-Control'), ['no-store'])
    }
  })

  it('escapes text from the request', async () => {
    await using started = await start()
    const evil = '"><script>alert(1)</script>'
    const { text } = await show(started, evil)
    assert.ok(!text.includes('<script'))
    const { code } = started.first
    const again = await post(started, { code, username: evil, password: evil, repeated: 'x' })
    assert.equal(again.status, 400)
    assert.ok(again.text.includes('The two passwords differ.') && !again.text.includes('<script'))
  })

  const refused: readonly (readonly [string, Readonly<Record<string, string>>, object, number])[] = [
    ['a wrong code', { code: 'wrong' }, {}, 401],
    ['an empty code', { code: '' }, {}, 401],
    ['two different passwords', { repeated: `${GOOD}!` }, {}, 400],
    ['a short password', { password: 'short', repeated: 'short' }, {}, 400],
    ['a request from another site', {}, { 'sec-fetch-site': 'cross-site' }, 403],
    ['a request from another origin', {}, { origin: 'https://evil.example' }, 403],
    ['a body that is not a form', {}, { 'content-type': 'text/plain' }, 400],
  ]
  for (const [what, fields, headers, status] of refused) {
    it(`refuses ${what}, and the link stays valid`, async () => {
      await using started = await start()
      const { code } = started.first
      const answer = await post(started, { code, password: GOOD, repeated: GOOD, ...fields }, headers)
      assert.equal(answer.status, status)
      assert.deepEqual(answer.values('Set-Cookie'), [])
      assert.equal((await redeem(started, code)).status, 200)
    })
  }
})

describe('one-time code for the first log-in', () => {
  it('can be exchanged for an API token by programs', async () => {
    await using started = await start()
    const { body } = await redeem(started, started.first.code, { responseType: 'token' })
    const headers = { authorization: `Bearer ${String(body['token'])}` }
    assert.equal((await sendTo(started.people, { path: '/v3/users', headers })).status, 200)
  })

  it('works once, also for two requests at the same time', async () => {
    await using started = await start()
    const { code } = started.first
    const answers = await Promise.all(['a', 'b'].map((end) => redeem(started, code, { password: GOOD + end })))
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(answers.filter(({ status }) => status === 401).length, 1)
    assert.equal((await redeem(started, code)).status, 401)
    assert.equal((await show(started, code)).status, 401)
    assert.equal(started.completed, 1)
  })

  it('expires after an hour', async () => {
    await using started = await start()
    await started.clock.advance(CODE_LIFETIME_MS - 1)
    assert.equal((await show(started, started.first.code)).status, 200)
    await started.clock.advance(1)
    assert.equal((await redeem(started, started.first.code)).status, 401)
  })

  it('is issued at each start until a password is set; earlier codes stay valid', async () => {
    await using started = await start()
    const { people, first } = started
    const second = await people.issueFirstLogin()
    assert.notEqual(second?.code, first.code)
    assert.equal((await show(started, first.code)).status, 200)
    assert.equal((await redeem(started, second?.code)).status, 200)
    assert.equal((await redeem(started, first.code)).status, 401)
    assert.equal(await people.issueFirstLogin(), undefined)
  })

  it('is accepted by another replica of the management server', async () => {
    await using started = await start()
    const { objects, first, clock } = started
    const other = createPeople(optionsOf(objects))
    assert.equal((await redeem({ ...started, people: other }, first.code)).status, 200)
    assert.equal((await redeem(started, first.code)).status, 401)
    await other.close()
    // A replica that has found no code looks again after a while.
    await clock.advance(10_000)
    assert.equal((await redeem(started, first.code)).status, 401)
  })

  it('is refused if the user is disabled or deleted', async () => {
    await using started = await start()
    const { objects, people, first } = started
    const [admin] = objects.list(UserKind)
    const name = admin?.metadata.name ?? ''
    const disable = (disabled: boolean): Promise<unknown> =>
      objects.change(UserKind, name, (user) => ({ ...user, spec: { ...user.spec, disabled } }))
    await disable(true)
    assert.equal((await redeem(started, first.code)).status, 403)
    await disable(false)
    await objects.delete(UserKind, name)
    assert.equal((await redeem(started, first.code)).status, 401)
    // There is no user now, so the next start creates one.
    const next = await people.issueFirstLogin()
    assert.equal((await redeem(started, first.code)).status, 401)
    assert.equal((await redeem(started, next?.code)).status, 200)
  })

  it('is protected by a delay after wrong attempts, and stored only as a hash', async () => {
    await using started = await start()
    const { objects, first } = started
    const statuses = new Set<number>()
    for (let n = 0; n < 30; n++) statuses.add((await show(started, `guess-${n}`)).status)
    assert.deepEqual([...statuses], [401, 429])
    assert.equal((await show(started, first.code, '10.0.0.2')).status, 200)
    const secret = await objects.secret('first-login')
    const text = Object.values(secret?.data ?? {}).map((value) => Buffer.from(value, 'base64').toString())
    assert.ok(!text.join().includes(first.code))
  })
})
