import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { openBackend } from './index.ts'

describe('openBackend() for --datastore', () => {
  const options = { clock: createVirtualClock(), random: createSeededRandom(1) }

  it('opens the store for each form of location', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'open-backend-'))
    t.after(() => rm(folder, { recursive: true }))
    for (const [location, name] of [
      ['memory', 'memory'],
      [`sqlite:${join(folder, 'a:b.db')}`, 'sqlite'],
    ] as const) {
      const backend = await openBackend(location, options)
      assert.equal(backend.name, name)
      await backend.close()
    }
  })

  it('lists the valid forms of location in its error', async () => {
    for (const location of ['', 'sqlite:', 'memory:', 'postgres://x', '/var/lib/store.db']) {
      await assert.rejects(openBackend(location, options), /use "memory", "sqlite:PATH" or the URLs/)
    }
  })
})
