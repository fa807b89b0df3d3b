import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import type { VirtualClock } from '#lib/clock.ts'

import { createMemoryBackend } from '../memory.ts'
import type { EncryptionConfig } from './config.ts'
import { type MockPlugin, startPlugin, testServices, type TestServices } from './kms-plugin.fixture.ts'
import { prepareValues } from './prepared-backend.ts'
import { type OpenAtRest, openAtRest } from './providers.ts'

const KEY = '/registry/secrets/a/b'
const secrets = { group: '', resource: 'secrets' }
const value = Buffer.from('canary')

const configOf = ({ socket }: MockPlugin, name = 'vault', timeoutMs = 1000): EncryptionConfig => ({
  resources: [{ resources: ['secrets'], providers: [{ type: 'kms', name, socket, timeoutMs }, { type: 'identity' }] }],
})

interface World {
  readonly atRest: OpenAtRest
  readonly clock: VirtualClock
  readonly services: TestServices
}

async function open(t: TestContext, config: EncryptionConfig, services: TestServices = testServices()): Promise<World> {
  const clock = services.clock as VirtualClock
  const atRest = await meanwhile(clock, openAtRest(config, services))
  t.after(() => atRest.close())
  return { atRest, clock, services }
}

/** Virtual time, with turns for real I/O in between, in which a plugin can answer. */
async function letPass(clock: VirtualClock, ms: number): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  await clock.advance(ms)
}

/** Advances the virtual time until the promise is settled. */
async function meanwhile<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  const state = { isSettled: false }
  const settle = (): void => void (state.isSettled = true)
  promise.then(settle, settle)
  while (!state.isSettled) await letPass(clock, 50)
  return promise
}

async function passUntil({ clock }: World, isSo: () => boolean, stepMs: number): Promise<void> {
  for (let step = 0; step < 2000 && !isSo(); step++) await letPass(clock, stepMs)
  assert.ok(isSo(), 'it never happened')
}

async function untilWell({ clock, atRest }: World): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const isWell = atRest.check().then(
      () => true,
      () => false,
    )
    if (await meanwhile(clock, isWell)) return
    await letPass(clock, 1000)
  }
  assert.fail('the plugin is not well')
}

/** Another server with other random numbers. */
function ofAnotherSeed(): TestServices {
  const services = testServices()
  services.random.bytes(1000)
  return services
}

describe('KMS encryption keys', () => {
  it('are derived from one seed for each value, and decrypt it again', async (t) => {
    const plugin = await startPlugin(t)
    const { atRest } = await open(t, configOf(plugin))
    const resting = atRest.resting(secrets)
    const sealed = resting.seal(KEY, value)
    assert.ok(sealed.toString('latin1').startsWith('k8s:enc:kms:v2:vault:'))
    assert.equal(sealed.includes('canary'), false)
    assert.deepEqual(Buffer.from(resting.open(KEY, sealed)), value)
    assert.notDeepEqual(resting.seal(KEY, value), sealed)
    assert.throws(() => resting.open('/registry/secrets/a/other', sealed), { code: 'corrupt' })
    assert.deepEqual(plugin.calls, { status: 1, encrypt: 1, decrypt: 0 })
  })

  it('are fetched once for values of another server, before those are delivered', async (t) => {
    const plugin = await startPlugin(t)
    const other = await open(t, configOf(plugin))
    const { atRest, services } = await open(t, configOf(plugin), ofAnotherSeed())
    const inner = createMemoryBackend(services)
    const backend = prepareValues(inner, atRest)
    const resting = atRest.resting(secrets)
    const foreign = other.atRest.resting(secrets)
    for (const name of ['x', 'y']) {
      await inner.commit([{ key: `/${name}`, value: foreign.seal(`/${name}`, value) }])
    }
    const { items } = await backend.range({ start: '/', end: '0' })
    for (const item of items) assert.deepEqual(Buffer.from(resting.open(item.key, item.value)), value)
    for await (const { events } of backend.watch({
      start: '/',
      end: '0',
      from: 1,
      signal: AbortSignal.timeout(5000),
    })) {
      assert.deepEqual(Buffer.from(resting.open('/x', events[0]!.value)), value)
      break
    }
    assert.equal(plugin.calls.decrypt, 1)
    assert.equal(backend.name, 'memory')
    await backend.close()
  })

  it('change when the plugin reports a new key ID, and old values are readable but stale', async (t) => {
    const plugin = await startPlugin(t)
    const world = await open(t, configOf(plugin))
    const resting = world.atRest.resting(secrets)
    const old = resting.seal(KEY, value)
    assert.equal(resting.isStale(old), false)
    plugin.reported.keyId = 'key-2'
    await passUntil(world, () => resting.isStale(old), 30_000)
    assert.equal(plugin.calls.encrypt, 2)
    assert.deepEqual(Buffer.from(resting.open(KEY, old)), value)
    assert.equal(resting.isStale(resting.seal(KEY, value)), false)
  })

  it('may be used for three minutes after the plugin was last healthy', async (t) => {
    const plugin = await startPlugin(t)
    const world = await open(t, configOf(plugin))
    const resting = world.atRest.resting(secrets)
    const sealed = resting.seal(KEY, value)
    await passUntil(world, () => plugin.calls.status > 2, 1000)
    assert.deepEqual(Buffer.from(resting.open(KEY, resting.seal(KEY, value))), value)
    await plugin.stop()
    let failure = ''
    await passUntil(
      world,
      () => {
        try {
          resting.seal(KEY, value)
        } catch (error) {
          failure = (error as Error).message
        }
        return failure !== ''
      },
      10_000,
    )
    assert.match(
      failure,
      /^encryptedDEKSource with keyID hash "sha256:[0-9a-f]{64}" expired at 2026-\S+Z \(current time is 2026-\S+Z\)$/,
    )
    assert.deepEqual(Buffer.from(resting.open(KEY, sealed)), value)
    await plugin.start()
    await untilWell(world)
    assert.deepEqual(Buffer.from(resting.open(KEY, resting.seal(KEY, value))), value)
  })

  it('become available when the plugin starts; until then writes fail, and the health check reports why', async (t) => {
    const plugin = await startPlugin(t, false)
    const world = await open(t, configOf(plugin))
    const resting = world.atRest.resting(secrets)
    assert.throws(() => resting.seal(KEY, value), { message: 'got unexpected nil transformer' })
    await assert.rejects(
      meanwhile(world.clock, world.atRest.check()),
      /^Error: kms-provider-0: failed to perform status section of the healthz check for KMS Provider vault, error: rpc error: code = \w+ desc = /,
    )
    assert.match(world.services.logged(), /kms plugin failed health check probe/)
    await plugin.start()
    await untilWell(world)
    assert.deepEqual(Buffer.from(resting.open(KEY, resting.seal(KEY, value))), value)
  })

  it('are fetched before a range is decrypted, and ranges fail while the plugin is unreachable', async (t) => {
    const plugin = await startPlugin(t)
    const other = await open(t, configOf(plugin))
    const third = await open(t, configOf(plugin), ofAnotherSeed())
    const sealed = third.atRest.resting(secrets).seal(KEY, value)
    const resting = other.atRest.resting(secrets)
    assert.throws(() => resting.open(KEY, sealed), { code: 'unavailable' })
    await plugin.stop()
    const failing = assert.rejects(other.atRest.prepare([sealed])!, {
      code: 'unavailable',
      message: /^failed to decrypt DEK, error: rpc error: code = /,
    })
    await meanwhile(other.clock, failing)
    await plugin.start()
    await untilWell(other)
    await meanwhile(other.clock, Promise.resolve(other.atRest.prepare([sealed])))
    assert.deepEqual(Buffer.from(resting.open(KEY, sealed)), value)
  })

  const unwell: [what: string, change: (plugin: MockPlugin) => void, text: RegExp][] = [
    [
      'reports that it is unhealthy',
      ({ reported }) => (reported.healthz = 'on fire'),
      /: got unexpected healthz status: on fire$/,
    ],
    ['reports no version', ({ reported }) => (reported.version = 'v9'), /: expected KMSv2 API version v2, got v9$/],
    [
      'changes its version',
      ({ reported }) => (reported.version = 'v2beta1'),
      /should not change after the initial status response version v2, got v2beta1$/,
    ],
    [
      'reports no key ID',
      ({ reported }) => (reported.keyId = ''),
      /: got invalid KMSv2 KeyID hash "": keyID is empty$/,
    ],
    [
      'reports a key ID that is too long',
      ({ reported }) => (reported.keyId = 'x'.repeat(1025)),
      /keyID is 1025 bytes, which exceeds the max size of 1024$/,
    ],
    [
      'encrypts with another key than it reports',
      (plugin) => {
        plugin.reported.keyId = 'key-2'
        plugin.slip.keyId = 'key-3'
      },
      /failed to rotate DEK uid="[-0-9a-f]+", useSeed=true, errState=<nil>, errGen=<nil>, statusKeyIDHash="sha256:[0-9a-f]{64}", encryptKeyIDHash="sha256:[0-9a-f]{64}", stateKeyIDHash="sha256:[0-9a-f]{64}", expirationTimestamp=2026-/,
    ],
  ]
  for (const [what, change, text] of unwell) {
    it(`stay in use when the plugin ${what}`, async (t) => {
      const plugin = await startPlugin(t)
      const { atRest, clock } = await open(t, configOf(plugin))
      change(plugin)
      await clock.advance(20_000)
      const failure: unknown = await meanwhile(clock, atRest.check()).catch((error: unknown) => error)
      assert.match((failure as Error).message, /^kms-provider-0: kmsv2 Provider vault is not healthy, error: /)
      assert.match((failure as Error).message, text)
      const resting = atRest.resting(secrets)
      assert.deepEqual(Buffer.from(resting.open(KEY, resting.seal(KEY, value))), value)
    })
  }
})

describe('a new encryption configuration with KMS', () => {
  it('takes effect only when its plugins are healthy', async (t) => {
    const plugin = await startPlugin(t)
    const next = await startPlugin(t, false)
    const world = await open(t, configOf(plugin))
    const resting = world.atRest.resting(secrets)
    const old = resting.seal(KEY, value)
    const failing = assert.rejects(
      world.atRest.reload(configOf(next, 'other')),
      /^Error: health check for new transformers failed, polling error context deadline exceeded: kms-provider-0: /,
    )
    await meanwhile(world.clock, failing)
    assert.ok(resting.seal(KEY, value).toString('latin1').startsWith('k8s:enc:kms:v2:vault:'))
    await next.start()
    const both = {
      resources: [
        {
          resources: ['secrets'],
          providers: [...configOf(next, 'other').resources[0]!.providers, ...configOf(plugin).resources[0]!.providers],
        },
      ],
    }
    await meanwhile(world.clock, world.atRest.reload(both))
    assert.ok(resting.seal(KEY, value).toString('latin1').startsWith('k8s:enc:kms:v2:other:'))
    await meanwhile(world.clock, Promise.resolve(world.atRest.prepare([old])))
    assert.deepEqual(Buffer.from(resting.open(KEY, old)), value)
    assert.equal(resting.isStale(old), true)
  })
})
