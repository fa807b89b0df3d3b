import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { openSharedKeys, SHARED_FILES, TOKEN_FILE } from './shared-keys.ts'

interface Folder {
  readonly texts: Map<string, string>
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
}

function folder(texts = new Map<string, string>()): Folder {
  return {
    texts,
    read: (name) => Promise.resolve(texts.get(name)),
    write: (name, text) => Promise.resolve(void texts.set(name, text)),
  }
}

const clock = createVirtualClock()

describe('keys that replicas of the management server share', () => {
  let backend: Backend
  const open = (files: Folder, token?: string): Promise<void> =>
    openSharedKeys({ backend, files, token, clock, random: secureRandom })
  const keysOf = ({ texts }: Folder): (string | undefined)[] => SHARED_FILES.map((name) => texts.get(name))

  beforeEach(() => {
    backend = createMemoryBackend({ clock, random: secureRandom, historyMs: Infinity })
  })

  it('are given to a second replica that has the token of the first', async () => {
    const [first, second] = [folder(), folder()]
    await open(first)
    await open(second, first.texts.get(TOKEN_FILE))
    assert.deepEqual(keysOf(second), keysOf(first))
    assert.ok(keysOf(first).every((text) => text !== undefined && text !== ''))
    // Later starts need no token.
    second.texts.delete(TOKEN_FILE)
    await open(second)
  })

  it('are encrypted in the datastore with the token', async () => {
    const first = folder()
    await open(first)
    const { items } = await backend.range({ start: '/hyperkube/server/keys' })
    const stored = Buffer.from(items[0]?.value ?? []).toString()
    assert.match(stored, /"sealed"/)
    for (const text of [...keysOf(first), first.texts.get(TOKEN_FILE)])
      assert.ok(!stored.includes((text ?? '-').trim().slice(0, 40)))
  })

  it('are the same for two replicas that start at the same time with one token', async () => {
    const token = 'a token that both replicas have got from somewhere'
    const [one, two] = [folder(), folder()]
    await Promise.all([open(one, token), open(two, token)])
    assert.deepEqual(keysOf(one), keysOf(two))
  })

  it('are the existing keys of a server that ran without replicas before', async () => {
    const alone = folder()
    await open(alone)
    backend = createMemoryBackend({ clock, random: secureRandom, historyMs: Infinity })
    const before = keysOf(alone)
    await open(alone)
    assert.deepEqual(keysOf(alone), before)
    const second = folder()
    await open(second, alone.texts.get(TOKEN_FILE))
    assert.deepEqual(keysOf(second), before)
  })

  it('are completed on disk after a start that was killed', async () => {
    const first = folder()
    await open(first)
    const before = keysOf(first)
    for (const name of SHARED_FILES) {
      first.texts.delete(name)
      await open(first)
      assert.deepEqual(keysOf(first), before)
    }
  })

  const refusals: readonly (readonly [string, (first: Folder) => Promise<void>, RegExp])[] = [
    ['no token', () => open(folder()), /Copy the file "replica-token"/],
    ['a wrong token', () => open(folder(), 'x'.repeat(40)), /does not open the keys/],
    ['a short token', () => open(folder(), 'short'), /at least 32 characters/],
    [
      'the keys of another server',
      async () => {
        const [other, mine] = [folder(), backend]
        backend = createMemoryBackend({ clock, random: secureRandom, historyMs: Infinity })
        await open(other)
        backend = mine
        await open(other)
      },
      /are not those of the server/,
    ],
    [
      'one key file of another server',
      async (first) => {
        const texts = new Map([['pki/sa.key', 'another key']])
        await open(folder(texts), first.texts.get(TOKEN_FILE))
      },
      /are not those of the server/,
    ],
  ]
  for (const [what, attempt, message] of refusals) {
    it(`are refused with ${what}`, async () => {
      const first = folder()
      await open(first)
      await assert.rejects(attempt(first), (error) => error instanceof ProgramError && message.test(error.message))
    })
  }
})
