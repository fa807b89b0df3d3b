import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { startObjects, type TestObjects } from '#kits/management/objects.ts'
import { ADMINISTRATOR, addRoles, isAdministratorIn } from '#kits/management/people.ts'

import { Members } from '../kinds/access.ts'
import { Passwords } from './passwords.ts'
import { Tokens } from './tokens.ts'
import { Users } from './users.ts'

const GOOD = 'correct horse battery'
const OTHER = 'another good password'
const CHEAP = { memoryKiB: 8, passes: 1, parallelism: 1 }
const hasCode = (code: number) => (error: unknown) => (error as { status?: { code?: number } }).status?.code === code

interface Started extends TestObjects, AsyncDisposable {
  readonly users: Users
  readonly tokens: Tokens
  usersWith(memoryKiB: number): Users
}

async function start(): Promise<Started> {
  const started = await startObjects()
  const { objects, clock } = started
  await addRoles(objects)
  const tokens = new Tokens(objects)
  const usersWith = (memoryKiB: number): Users =>
    new Users({
      objects,
      passwords: new Passwords({ clock, random: objects.random, cost: { ...CHEAP, memoryKiB } }),
      tokens,
      isAdministrator: isAdministratorIn(objects),
      administratorRole: ADMINISTRATOR,
    })
  const stop = async (): Promise<void> => {
    await tokens.close()
    started[Symbol.dispose]()
  }
  return { ...started, tokens, usersWith, users: usersWith(8), [Symbol.asyncDispose]: stop }
}

const rolesOf = ({ objects }: TestObjects, name = ''): string[] =>
  objects.list(Members).flatMap(({ spec }) => (spec.user === name ? [spec.role] : []))

describe('Users', () => {
  it('creates a user with a random name, the default roles and a password in a Secret', async () => {
    await using started = await start()
    const { users, objects } = started
    const user = await users.create({ username: 'Jane', displayName: 'Jane Doe', password: GOOD })
    const { name = '' } = user.metadata
    assert.match(name, /^u-[a-z0-9]{5}$/)
    assert.deepEqual(user.spec, { username: 'jane', displayName: 'Jane Doe' })
    assert.deepEqual(rolesOf(started, name), ['user-base'])
    const secret = await objects.secret(`password-${name}`)
    assert.match(Buffer.from(secret?.data?.['hash'] ?? '', 'base64').toString(), /^\$argon2id\$/)
    assert.equal(users.find('JANE')?.metadata.name, name)
    assert.equal(await users.hasPassword(user, GOOD), true)
    assert.equal(await users.hasPassword(user, `${GOOD}!`), false)
    assert.equal(await users.hasPassword(undefined, GOOD), false)
  })

  it('rejects invalid and existing usernames, and stores nothing', async () => {
    await using started = await start()
    const { users, objects } = started
    await users.create({ username: 'jane' })
    await assert.rejects(users.create({ username: 'JANE', password: GOOD }), hasCode(409))
    for (const username of ['', 'a b', '-a', 'a-', 'ü', 'x'.repeat(129), 'a\n', '../a']) {
      await assert.rejects(users.create({ username, password: GOOD }), hasCode(400), username)
    }
    await assert.rejects(users.create({ username: 'joe', password: 'short' }), hasCode(400))
    assert.deepEqual([users.list().length, objects.list(Members).length], [1, 1])
  })

  it('creates one user if several requests want the same username at the same time', async () => {
    await using started = await start()
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, () => started.users.create({ username: 'jane' })),
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal(started.users.list().length, 1)
  })

  it('creates the first administrator once, without a password', async () => {
    await using started = await start()
    const { users } = started
    const prepared: string[] = []
    await assert.rejects(
      users.ensureFirst(() => Promise.reject(new Error('disk full'))),
      /disk full/,
    )
    assert.equal(users.list().length, 0)
    const first = await users.ensureFirst(async (name) => {
      assert.equal(users.list().length, 0)
      prepared.push(name)
    })
    assert.deepEqual(prepared, [first?.metadata.name])
    const admin = users.find('admin')
    assert.equal(await users.hasPassword(admin, ''), false)
    assert.deepEqual(rolesOf(started, admin?.metadata.name), ['user-base', ADMINISTRATOR])
    assert.equal(await users.ensureFirst(() => assert.fail('there is a user')), undefined)
  })

  it('sets the first password of a user only once', async () => {
    await using started = await start()
    const { users } = started
    const jane = await users.create({ username: 'jane' })
    const name = jane.metadata.name ?? ''
    await assert.rejects(users.setFirstPassword(name, 'short'), hasCode(400))
    assert.equal(await users.canUsePassword(name), false)
    const results = await Promise.allSettled([users.setFirstPassword(name, GOOD), users.setFirstPassword(name, OTHER)])
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    const works = [await users.hasPassword(jane, GOOD), await users.hasPassword(jane, OTHER)]
    assert.equal(works.filter(Boolean).length, 1)
  })

  it('does not create the first administrator again after its deletion', async () => {
    await using started = await start()
    const { users, objects } = started
    await users.ensureFirst(async () => undefined)
    const jane = await users.create({ username: 'jane', roles: [ADMINISTRATOR] })
    await users.delete(users.find('admin')?.metadata.name ?? '')
    assert.equal(await users.ensureFirst(() => assert.fail('there is a user')), undefined)
    assert.deepEqual(
      users.list().map(({ metadata }) => metadata.name),
      [jane.metadata.name],
    )
    assert.ok(objects.list(Members).every(({ spec }) => spec.user === jane.metadata.name))
  })

  it('deletes password, tokens and memberships with a user', async () => {
    await using started = await start()
    const { users, tokens, objects } = started
    const { name = '' } = (await users.create({ username: 'jane', password: GOOD })).metadata
    const { text } = await tokens.create({ user: name, type: 'api', lifetimeMs: 1000 })
    await users.delete(name)
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    assert.deepEqual([tokens.ofUser(name), rolesOf(started, name)], [[], []])
    assert.equal(await objects.secret(`password-${name}`), undefined)
    await assert.rejects(users.delete(name), hasCode(404))
  })

  it('deletes all tokens of a user who is disabled, and does not restore them', async () => {
    await using started = await start()
    const { users, tokens } = started
    const { name = '' } = (await users.create({ username: 'jane' })).metadata
    const { text } = await tokens.create({ user: name, type: 'api', lifetimeMs: 1000 })
    await users.setDisabled(name, true)
    await users.setDisabled(name, false)
    assert.equal(tokens.verify(text, 'api', ''), undefined)
  })

  it('keeps one administrator, even when two are deleted at the same time', async () => {
    await using started = await start()
    const { users } = started
    const one = await users.create({ username: 'one', roles: [ADMINISTRATOR] })
    await assert.rejects(users.delete(one.metadata.name ?? ''), hasCode(403))
    await assert.rejects(users.setDisabled(one.metadata.name ?? '', true), hasCode(403))
    const two = await users.create({ username: 'two', roles: [ADMINISTRATOR] })
    const results = await Promise.allSettled([one, two].map(({ metadata }) => users.delete(metadata.name ?? '')))
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
    assert.deepEqual(
      users.list().map(({ spec }) => spec.username),
      ['two'],
    )
  })

  it('does not count a disabled administrator', async () => {
    await using started = await start()
    const { users } = started
    const one = await users.create({ username: 'one', roles: [ADMINISTRATOR] })
    const two = await users.create({ username: 'two', roles: [ADMINISTRATOR] })
    await users.setDisabled(one.metadata.name ?? '', true)
    await assert.rejects(users.delete(two.metadata.name ?? ''), hasCode(403))
  })

  it('ends sessions and keeps API tokens when the password changes', async () => {
    await using started = await start()
    const { users, tokens } = started
    const user = await users.create({ username: 'jane', password: GOOD })
    const { name = '' } = user.metadata
    const session = await tokens.create({ user: name, type: 'session', lifetimeMs: 1000 })
    const api = await tokens.create({ user: name, type: 'api', lifetimeMs: 1000 })
    const changed = await users.setPassword(name, 'another password', true)
    assert.equal(changed.spec.mustChangePassword, true)
    assert.equal(tokens.verify(session.text, 'session', ''), undefined)
    assert.ok(tokens.verify(api.text, 'api', ''))
    assert.deepEqual(
      [await users.hasPassword(user, GOOD), await users.hasPassword(user, 'another password')],
      [false, true],
    )
  })

  it('hashes a password again when its hash has a lower cost', async () => {
    await using started = await start()
    const user = await started.users.create({ username: 'jane', password: GOOD })
    assert.equal(await started.usersWith(16).hasPassword(user, GOOD), true)
    const secret = await started.objects.secret(`password-${user.metadata.name}`)
    assert.match(Buffer.from(secret?.data?.['hash'] ?? '', 'base64').toString(), /m=16,/)
    assert.equal(await started.users.hasPassword(user, GOOD), true)
  })

  it('sends as many API requests for an unknown user as for a known one', async () => {
    await using started = await start()
    const user = await started.users.create({ username: 'jane', password: GOOD })
    const count = async (run: () => Promise<unknown>): Promise<number> => {
      const before = started.api.requests.length
      await run()
      return started.api.requests.length - before
    }
    assert.equal(await count(() => started.users.hasPassword(user, 'wrong')), 1)
    assert.equal(await count(() => started.users.hasPassword(undefined, 'wrong')), 1)
  })
})
