import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'

import { startObjects } from '#kits/management/objects.ts'

import { Tokens as TokenKind } from '../kinds/token.ts'
import { Users as UserKind } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import { type NewToken, type TokenPlan, Tokens } from './tokens.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const hasCode = (code: number) => (error: unknown) => (error as { status?: { code?: number } }).status?.code === code

async function addUser(objects: ManagementObjects, name: string): Promise<void> {
  await objects.create(UserKind, { metadata: { name }, spec: { username: name } })
}

async function start(): ReturnType<typeof startObjects> {
  const started = await startObjects()
  await addUser(started.objects, 'u-jane')
  return started
}

function createFor(tokens: Tokens, more: Partial<TokenPlan> = {}): Promise<NewToken> {
  return tokens.create({ user: 'u-jane', type: 'api', lifetimeMs: DAY_MS, ...more })
}

describe('Tokens', () => {
  it('store the hash of a secret of 256 bits and accept the token at once', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text, token } = await createFor(tokens, { description: 'CI', cluster: 'c-1', readOnly: true })
    const [, name, secret = ''] = /^hk_(t-[a-z0-9]{10})_(.{43})$/.exec(text) ?? []
    assert.equal(Buffer.from(secret, 'base64url').length, 32)
    assert.deepEqual([token.metadata.name, token.spec.hash], [name, hash('sha256', secret)])
    assert.ok(!JSON.stringify(started.objects.list(TokenKind)).includes(secret))
    const caller = tokens.verify(text, 'api', '10.0.0.1')
    assert.deepEqual([caller?.user.metadata.name, caller?.token.spec.cluster], ['u-jane', 'c-1'])
    await tokens.close()
  })

  it('refuse malformed, foreign and changed tokens', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text } = await createFor(tokens)
    const { text: other } = await createFor(tokens)
    const [name, secret] = [text.slice(0, 15), text.slice(16)]
    const wrong = [
      '',
      'hk_',
      text.slice(0, -1),
      `${text}=`,
      `${text} `,
      text.toUpperCase(),
      `${name}_${other.slice(16)}`,
      `hk_t-unknown222_${secret}`,
      `hk_${secret}`,
      `${name}_${'A'.repeat(43)}`,
      `${name}_${hash('sha256', secret).slice(0, 43)}`,
      `${text}\n`,
    ]
    assert.equal(name.length, 15)
    for (const one of wrong) assert.equal(tokens.verify(one, 'api', ''), undefined, one)
    assert.ok(tokens.verify(text, 'api', ''))
    await tokens.close()
  })

  it('accept sessions as sessions only, and API tokens as API tokens only', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const session = await createFor(tokens, { type: 'session' })
    const api = await createFor(tokens)
    assert.equal(tokens.verify(session.text, 'api', ''), undefined)
    assert.equal(tokens.verify(api.text, 'session', ''), undefined)
    await tokens.close()
  })

  it('refuse expired tokens', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text } = await createFor(tokens, { lifetimeMs: HOUR_MS })
    await started.clock.advance(HOUR_MS - 1)
    assert.ok(tokens.verify(text, 'api', ''))
    await started.clock.advance(1)
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    await tokens.close()
  })

  it('refuse tokens that were not used for too long, and accept those that were', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text } = await createFor(tokens, { type: 'session', idleSeconds: 3600 })
    for (let hours = 0; hours < 5; hours++) {
      await started.clock.advance(HOUR_MS - 1)
      assert.ok(tokens.verify(text, 'session', ''))
    }
    await started.clock.advance(HOUR_MS)
    assert.equal(tokens.verify(text, 'session', ''), undefined)
    await tokens.close()
  })

  it('know the last use after a restart', async () => {
    using started = await start()
    const first = new Tokens(started.objects)
    const { text } = await createFor(first, { type: 'session', idleSeconds: 3600 })
    await started.clock.advance(50 * 60_000)
    assert.ok(first.verify(text, 'session', ''))
    await first.close()
    await started.clock.advance(50 * 60_000)
    const second = new Tokens(started.objects)
    assert.ok(second.verify(text, 'session', ''))
    await second.close()
  })

  it('refuse tokens of disabled and of deleted users, and disabled tokens', async () => {
    using started = await start()
    const { objects } = started
    const tokens = new Tokens(objects)
    const { text, token } = await createFor(tokens)
    const setDisabled = (disabled: boolean): Promise<unknown> =>
      objects.change(UserKind, 'u-jane', (user) => ({ ...user, spec: { ...user.spec, disabled } }))
    await setDisabled(true)
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    await setDisabled(false)
    assert.ok(tokens.verify(text, 'api', ''))
    await objects.change(TokenKind, token.metadata.name ?? '', (one) => ({
      ...one,
      spec: { ...one.spec, disabled: true },
    }))
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    const { text: second } = await createFor(tokens)
    await objects.delete(UserKind, 'u-jane')
    assert.equal(tokens.verify(second, 'api', ''), undefined)
    await tokens.close()
  })

  it('refuse an ended token before its deletion is complete', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text, token } = await createFor(tokens)
    const ending = tokens.end(token)
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    await ending
    assert.equal(tokens.verify(text, 'api', ''), undefined)
    assert.deepEqual(tokens.ofUser('u-jane'), [])
    await tokens.close()
  })

  it('end all tokens of one user', async () => {
    using started = await start()
    await addUser(started.objects, 'u-joe')
    const tokens = new Tokens(started.objects)
    const [first, second, joes] = [
      await createFor(tokens),
      await createFor(tokens),
      await createFor(tokens, { user: 'u-joe' }),
    ]
    await tokens.endOfUser('u-jane', ({ metadata }) => metadata.name === second.token.metadata.name)
    assert.deepEqual(
      [first, second, joes].map(({ text }) => tokens.verify(text, 'api', '') !== undefined),
      [false, true, true],
    )
    await tokens.close()
  })

  it('write the last use at most once a minute, and never in a request', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    const { text, token } = await createFor(tokens)
    await started.clock.advance(30_000)
    const before = started.api.requests.length
    for (let n = 0; n < 1000; n++) tokens.verify(text, 'api', `10.0.0.${n % 7}`)
    assert.equal(started.api.requests.length, before)
    await started.clock.advance(10 * 60_000 - 60_000)
    const writes = started.api.requests.filter((line) => line.startsWith('PUT') && line.endsWith('/status'))
    assert.equal(writes.length, 1)
    const stored = started.objects.get(TokenKind, token.metadata.name ?? '')
    assert.deepEqual(stored?.status, { lastUsedAt: '2026-01-01T00:00:30Z', lastAddress: '10.0.0.5' })
    await tokens.close()
  })

  it('delete expired tokens and those of deleted users, and nothing else', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    await createFor(tokens, { lifetimeMs: HOUR_MS })
    await createFor(tokens, { type: 'session', idleSeconds: 60 })
    await createFor(tokens, { user: 'u-nobody' })
    const { token } = await createFor(tokens)
    await started.clock.advance(HOUR_MS + 10 * 60_000)
    assert.deepEqual(
      started.objects.list(TokenKind).map(({ metadata }) => metadata.name),
      [token.metadata.name],
    )
    await tokens.close()
  })

  it('limit the life and the number of API tokens', async () => {
    using started = await start()
    const tokens = new Tokens(started.objects)
    for (const lifetimeMs of [0, -1, Number.NaN, Infinity, 90 * DAY_MS + 1]) {
      await assert.rejects(createFor(tokens, { lifetimeMs }), hasCode(400))
    }
    for (let n = 0; n < 500; n++) await createFor(tokens, { lifetimeMs: 90 * DAY_MS })
    await assert.rejects(createFor(tokens), hasCode(403))
    await tokens.close()
  })
})
