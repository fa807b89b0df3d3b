import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { createUserRanges } from './user-ranges.ts'

test('each pod with a user namespace has a separate range of user IDs, even after a restart, until it is removed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'user-ranges-'))
  try {
    const rangeOf = createUserRanges(folder)
    const [a, b] = await Promise.all([rangeOf('a'), rangeOf('b')])
    assert.deepEqual(
      [a, b],
      [
        { first: 65_536, length: 65_536 },
        { first: 131_072, length: 65_536 },
      ],
    )
    const mapping = { hostId: 131_072, containerId: 0, length: 65_536 }
    assert.deepEqual(JSON.parse(await readFile(join(folder, 'b', 'userns'), 'utf8')), {
      uidMappings: [mapping],
      gidMappings: [mapping],
    })
    await rm(join(folder, 'a'), { recursive: true })
    const next = createUserRanges(folder)
    assert.deepEqual(await next('b'), b)
    assert.deepEqual(await next('c'), a)
    assert.equal((await createUserRanges(folder, 2 * 65_536)('d')).first, 4 * 65_536, 'beside those of another size')
    const large = createUserRanges(folder, 2 ** 31)
    assert.equal((await large('e')).first, 2 ** 31)
    await assert.rejects(large('f'), /could not find an empty slot/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
