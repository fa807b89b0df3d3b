/** Tests that `hyperkube build config` writes its file to the given path, readable by owner and group. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { it } from 'node:test'

import { config } from '#cmd/build/config.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { readClusterFile } from '#provision/file/cluster-file.ts'

it('hyperkube build config writes a valid cluster file once a machine is given', async (test) => {
  const cwd = await mkdtemp(join(tmpdir(), 'hyperkube-config-'))
  test.after(() => rm(cwd, { recursive: true }))
  const context = {
    path: ['hyperkube', 'build', 'config'],
    args: ['--empty', '--name', 'my.yml'],
    env: {},
    cwd,
    stdin: () => Readable.from([]),
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
    clock: realClock,
    random: secureRandom,
    readFile: () => Promise.reject(new Error('nothing is read')),
  }
  assert.equal(await config.run(context, new AbortController().signal), 0)
  const file = join(cwd, 'my.yml')
  assert.equal((await stat(file)).mode & 0o777, 0o640)
  const text = await readFile(file, 'utf8')
  assert.deepEqual(readClusterFile(text.replace('address: ""', 'address: 10.0.0.1')).faults, [])
})
