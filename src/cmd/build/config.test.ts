import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'
import { readClusterFile } from '#provision/cluster-file.ts'

import { config } from './config.ts'

async function run(
  args: readonly string[],
  { answers = [] }: { readonly answers?: readonly string[] } = {},
): Promise<{ code: number; out: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  let out = ''
  for (const stream of [stdout, stderr]) stream.on('data', (chunk) => (out += String(chunk)))
  const context = {
    path: ['hyperkube', 'build', 'config'],
    args,
    env: {},
    cwd: '/',
    stdin: () => Readable.from(answers.map((line) => `${line}\n`)),
    stdout,
    stderr,
    clock: realClock,
    random: secureRandom,
    readFile: () => Promise.reject(new Error('nothing is read')),
  }
  const code = await config.run(context, new AbortController().signal)
  return { code, out }
}

describe('build config', () => {
  const answers = ['', '1', '10.0.0.1', '', '', 'root', 'y', 'y', 'y', ...Array<string>(10).fill('')]

  it('prints what was answered', async () => {
    const { code, out } = await run(['--print'], { answers })
    assert.equal(code, 0)
    assert.match(out, /\[\+\] Number of Hosts \[1\]: /)
    assert.deepEqual(readClusterFile(out.slice(out.indexOf('# A cluster'))).faults, [])
  })

  it('prints instead when it is asked to', async () => {
    const { out } = await run(['--print', '--empty'])
    assert.match(out, /^# A cluster for "hyperkube build up"/)
    assert.match((await run(['--list-version', '--all'])).out, new RegExp(`^${KUBERNETES_VERSION}\n$`))
    assert.match(JSON.stringify(JSON.parse((await run(['--schema'])).out)), /json-schema/)
  })

  it('writes nothing when the answers end early', async () => {
    const { code, out } = await run([], { answers: ['', '2'] })
    assert.equal(code, 1)
    assert.match(out, /The answers have ended before the questions/)
  })
})
