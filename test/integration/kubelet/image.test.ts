/**
 * Tests `hyperkube image` on a real containerd: loaded images run, survive garbage collection, and are listed and
 * removed by name.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'

import { image } from '#cmd/image.ts'
import { createImageApi } from '#containerd/image-api.ts'
import type { Containerd } from '#containerd/start.ts'
import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { realClock } from '#lib/clock.ts'
import { tarArchive } from '#lib/files/tar-write.ts'

import { type Bed, busyboxConfig, busyboxLayer, createBed, tracesOf, whyNoContainerd } from './containerd-bed.ts'

const missing = await whyNoContainerd()
if (missing !== undefined) process.stderr.write(`images: skipping, ${missing}\n`)

/** As `docker save` writes it. */
function dockerArchive(names: readonly string[], architecture?: string): Buffer {
  const layer = busyboxLayer()
  const config = busyboxConfig(`sha256:${createHash('sha256').update(layer).digest('hex')}`, architecture)
  const manifest = [{ Config: 'c.json', RepoTags: names, Layers: ['l.tar'] }]
  return tarArchive([
    { name: 'l.tar', mode: 0o644, content: layer },
    { name: 'c.json', mode: 0o644, content: Buffer.from(JSON.stringify(config)) },
    { name: 'manifest.json', mode: 0o644, content: Buffer.from(JSON.stringify(manifest)) },
  ])
}

describe('hyperkube image', { skip: missing ?? false }, () => {
  const closing = new AsyncDisposableStack()
  let bed: Bed
  let containerd: Containerd
  before(async () => {
    bed = createBed()
    containerd = await bed.start(closing)
  })
  after(async () => {
    await closing.disposeAsync()
    await bed[Symbol.asyncDispose]()
    assert.deepEqual(Object.values(await tracesOf(bed)).flat(), [])
  })

  const { signal } = new AbortController()
  const run = (...args: string[]): Promise<Outcome> =>
    runProgram((context) => image.run(context, signal), {
      path: ['hyperkube', 'image'],
      args: [...args, '--data-dir', bed.options.dataDir],
      clock: realClock,
      cwd: bed.options.dataDir,
    })
  const save = (name: string, content: Buffer): string => {
    writeFileSync(join(bed.options.dataDir, name), content)
    return name
  }

  it('loads archives, and keeps their images after a garbage collection', async () => {
    const plain = save('a.tar', dockerArchive(['example.com/one:1', 'two']))
    const zipped = save('b.tar.gz', gzipSync(dockerArchive(['three:3'])))
    const { code, out, err } = await run('load', plain, zipped)
    assert.deepEqual(
      [code, err, out],
      [0, '', 'Loaded example.com/one:1\nLoaded docker.io/library/two:latest\nLoaded docker.io/library/three:3\n'],
    )
    const api = createImageApi(containerd.client)
    await api.createImage({
      image: { name: 'gone', target: (await api.getImage({ name: 'example.com/one:1' })).image?.target },
    })
    await api.deleteImage({ name: 'gone', sync: true })
    const listed = await run('list')
    assert.match(listed.out, /^IMAGE +ID +SIZE\n/)
    for (const name of [
      'docker.io/library/three:3',
      'docker.io/library/two:latest',
      'example.com/one:1',
      'hyperkube.local/pause:1',
    ])
      assert.match(listed.out, new RegExp(`^${RegExp.escape(name)} +[0-9a-f]{12} +\\d`, 'm'))
    await runOne(containerd, bed, 'example.com/one:1')
  })

  it('rejects broken, foreign and missing archives without leftovers', async () => {
    const whole = dockerArchive(['broken:1'])
    const table: [string, RegExp][] = [
      [save('short.tar', whole.subarray(0, 100_000)), /"short\.tar" cannot be loaded: the archive is cut short/],
      [save('text.tar', Buffer.alloc(4096, 'text')), /"text\.tar" cannot be loaded: this is no tar archive/],
      [save('arm.tar', dockerArchive(['arm:1'], 'arm64')), /arm:1 is for linux\/arm64, this machine is linux\/amd64/],
      ['nowhere.tar', /There is no file "nowhere\.tar"/],
    ]
    for (const [name, complaint] of table) {
      const { code, err } = await run('load', name)
      assert.equal(code, 1)
      assert.match(err, complaint)
    }
    assert.doesNotMatch((await run('list')).out, /broken|arm:1/)
    assert.match((await run('load')).err, /Give the archives to load/)
    assert.match(
      (await run('load', 'a.tar', '--address', '/nowhere.sock')).err,
      /No containerd responds at \/nowhere\.sock/,
    )
  })

  it('deletes an image in use only with --force, and reports a missing one', async () => {
    const name = 'example.com/used:1'
    await run('load', save('used.tar', dockerArchive([name])))
    const sandbox = await runOne(containerd, bed, name)
    assert.match((await run('rm', name)).err, /is used by container "app" of pod/)
    const forced = await run('rm', name, '--force')
    assert.match(forced.out, /^Removed example\.com\/used:1$/m)
    assert.match((await run('rm', name)).err, /There is no image "example\.com\/used:1"/)
    await containerd.runtime.stopPodSandbox({ podSandboxId: sandbox })
  })

  it('reports the error of the registry or the connection if a pull fails', async () => {
    const { code, err } = await run('pull', '127.0.0.1:1/no-such:1')
    assert.equal(code, 1)
    assert.match(err, /failed to pull and unpack image "127\.0\.0\.1:1\/no-such:1"/)
  })
})

let count = 0

/** A container of the image that has written output. */
async function runOne({ runtime, cgroupParent }: Containerd, bed: Bed, name: string): Promise<string> {
  const uid = `image-${process.pid}-${++count}`
  const logDirectory = join(bed.options.dataDir, 'logs', uid)
  mkdirSync(logDirectory, { recursive: true })
  const sandboxConfig = {
    metadata: { name: uid, namespace: 'default', uid, attempt: 0 },
    logDirectory,
    linux: { cgroupParent: `${cgroupParent}/${uid}` },
  }
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
  const config = {
    metadata: { name: 'app', attempt: 0 },
    image: { image: name },
    command: ['sleep', '600'],
    logPath: '0.log',
  }
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig })
  await runtime.startContainer({ containerId })
  const { stdout } = await runtime.execSync({ containerId, cmd: ['echo', 'hello'], timeout: 10 })
  assert.equal(stdout.toString(), 'hello\n')
  return podSandboxId
}
