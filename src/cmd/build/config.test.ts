import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import type { Program } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'
import { ownImage } from '#model/own-image.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'
import { progressLine } from '#provision/builder/progress.ts'
import { readClusterFile } from '#provision/file/cluster-file.ts'
import type { Step, Wave } from '#provision/plan/step.ts'

import { build } from './build.ts'
import { config } from './config.ts'

async function run(
  args: readonly string[],
  { answers = [], program = config }: { readonly answers?: readonly string[]; readonly program?: Program } = {},
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
  const code = await program.run(context, new AbortController().signal)
  return { code, out }
}

describe('hyperkube build config', () => {
  const answers = ['', '1', '10.0.0.1', '', '', 'root', 'y', 'y', 'y', ...Array<string>(10).fill('')]

  it("writes the user's answers to cluster.yml", async () => {
    const { code, out } = await run(['--print'], { answers })
    assert.equal(code, 0)
    assert.match(out, /\[\+\] Number of Hosts \[1\]: /)
    assert.deepEqual(readClusterFile(out.slice(out.indexOf('# A cluster'))).faults, [])
  })

  it('prints the file with --print', async () => {
    const { out } = await run(['--print', '--empty'])
    assert.match(out, /^# A cluster for "hyperkube build up"/)
    assert.match((await run(['--list-version', '--all'])).out, new RegExp(`^${KUBERNETES_VERSION}\n$`))
    assert.match(JSON.stringify(JSON.parse((await run(['--schema'])).out)), /json-schema/)
  })

  it('writes no file if the input ends before the last question', async () => {
    const { code, out } = await run([], { answers: ['', '2'] })
    assert.equal(code, 1)
    assert.match(out, /The input ended before all questions were answered/)
  })

  it('prints the images of a cluster', async () => {
    const images = `${ownImage()}\nhyperkube.local/pause:1\n`
    assert.deepEqual(await run(['--system-images', '--quiet']), { code: 0, out: images })
    const { out } = await run(['-s', '-a'])
    assert.ok(out.startsWith(`Images for version [${KUBERNETES_VERSION}]`) && out.endsWith(images))
  })
})

describe('hyperkube build', () => {
  const runBuild = async (...args: readonly string[]): Promise<string> => (await run(args, { program: build })).out

  it('accepts --debug, --quiet and --trace before and after a command', async () => {
    for (const flags of [['-q'], ['--quiet'], ['-d', '-q'], ['--trace', '--quiet=true']]) {
      assert.equal(await runBuild(...flags, 'config', '-s'), await runBuild('config', '-s', ...flags))
      assert.doesNotMatch(await runBuild(...flags, 'config', '-s'), /Images/)
    }
    assert.match(await runBuild('-d', 'config', '-s'), /^Images/)
  })
})

describe('progressLine() of hyperkube build', () => {
  it('prints the start of a step in debug mode', () => {
    const step = { host: 'n', describe: 'start etcd' } as Step
    const progress = { event: 'begin', wave: { name: 'etcd' } as Wave, step } as const
    assert.equal(progressLine(progress), undefined)
    assert.equal(progressLine(progress, true), '[etcd] begin n: start etcd')
  })
})
