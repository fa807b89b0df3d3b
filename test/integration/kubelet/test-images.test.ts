/**
 * Tests the images of `test/images`: builds are reproducible and the programs run. Debian and Go images are tested only
 * on machines that have built them.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { image } from '#cmd/image.ts'
import type { Containerd } from '#containerd/start.ts'
import { CONTAINER_STATE } from '#cri/codes.ts'
import { runProgram } from '#kits/cmd/run-program.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { CATALOG } from '../../images/catalog.ts'
import { makeImages } from '../../images/main.ts'
import { type Bed, createBed, whyNoContainerd } from './containerd-bed.ts'

const missing = await whyNoContainerd()
if (missing !== undefined) process.stderr.write(`images for tests: skipping, ${missing}\n`)

/** The command of each image (empty: the image's own), its output, and a second command. */
const TRIALS: Readonly<Record<string, { command?: string[]; says?: RegExp; beside?: [string, RegExp] }>> = {
  busybox: { command: ['sh', '-c', 'id; sleep 600'], says: /uid=0\(root\)/ },
  'e2e-busybox': { command: ['sh', '-c', 'env; sleep 600'], says: /^PATH=/m },
  pause: {},
  agnhost: {
    beside: [
      'dig -v 2>&1; curl --version; nc -h 2>&1; ss -V; bash --version; iperf -v 2>&1; ' +
        '/agnhost netexec --http-port 8080 >/dev/null 2>&1 & sleep 2; ' +
        'for program in wget /bin/wget; do $program -T 5 -qO- http://localhost:8080/hostname; echo " $program $?"; done',
      /DiG[^]*curl[^]*OpenBSD[^]*iproute2[^]*bash[^]*iperf[^]* wget 0\n[^]* \/bin\/wget 0\n/,
    ],
  },
  nginx: { beside: ['wget -qO- 127.0.0.1', /Welcome to nginx!/] },
  httpd: { beside: ['wget -qO- 127.0.0.1', /It works!/] },
  'glibc-dns-testing': { command: ['sh', '-c', 'getent hosts localhost; dig -v; sleep 600'], says: /localhost[^]*DiG/ },
  nonewprivs: { command: ['sh', '-c', 'su nobody -s /bin/sh -c nnp; sleep 600'], says: /Effective uid: 0/ },
  'sample-apiserver': { command: ['/sample-apiserver', '--help'], says: /Usage/ },
  etcd: { command: ['/usr/local/bin/etcd', '--version'], says: /etcd Version: 3/ },
}

/** Images that need Debian or Go are tested on request. */
const asked = process.env['HYPERKUBE_TEST_IMAGES'] ?? 'busybox pause'
const names = asked === 'all' ? Object.keys(CATALOG) : asked.split(' ')

describe('images for the kubelet tests', { skip: missing ?? false }, () => {
  const closing = new AsyncDisposableStack()
  let bed: Bed
  let containerd: Containerd
  let folder: string
  before(async () => {
    bed = createBed()
    folder = join(bed.options.dataDir, 'archives')
    containerd = await bed.start(closing)
  })
  after(async () => {
    await closing.disposeAsync()
    await bed[Symbol.asyncDispose]()
  })

  it('have a test each', () => assert.deepEqual(Object.keys(TRIALS).sort(), Object.keys(CATALOG).sort()))

  it('are reproducible', async () => {
    const [first = ''] = await makeImages(folder, ['busybox'], () => undefined)
    const [second = ''] = await makeImages(join(folder, 'again'), ['busybox'], () => undefined)
    assert.ok(readFileSync(first).equals(readFileSync(second)))
    await assert.rejects(
      makeImages(folder, ['windows'], () => undefined),
      /There is no image "windows"; there are: busybox/,
    )
  })

  for (const name of names)
    it(`run with ${name}`, async () => {
      const [file = ''] = await makeImages(folder, [name], () => undefined)
      const { signal } = new AbortController()
      const args = ['load', file, '--data-dir', bed.options.dataDir]
      const loaded = await runProgram((context) => image.run(context, signal), {
        path: ['hyperkube', 'image'],
        args,
        clock: realClock,
      })
      rmSync(file)
      const expected = CATALOG[name]?.images.flatMap((one) => one.names) ?? []
      assert.deepEqual(
        loaded.out.trim().split('\n'),
        expected.map((one) => `Loaded ${one}`),
        loaded.err,
      )
      await tryOne(containerd, bed, { name, image: expected[0] ?? '' })
    })
})

async function tryOne(
  { runtime, cgroupParent }: Containerd,
  bed: Bed,
  { name, image: of }: { readonly name: string; readonly image: string },
): Promise<void> {
  const { command, says, beside } = TRIALS[name] ?? {}
  const logDirectory = join(bed.options.dataDir, 'logs', name)
  mkdirSync(logDirectory, { recursive: true })
  const metadata = { name, namespace: 'default', uid: name, attempt: 0 }
  const sandboxConfig = { metadata, logDirectory, linux: { cgroupParent: `${cgroupParent}/${name}` } }
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
  const config = {
    metadata: { name: 'app', attempt: 0 },
    image: { image: of },
    logPath: '0.log',
    ...(command !== undefined && { command }),
  }
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig })
  await runtime.startContainer({ containerId })
  const log = (): string => readFileSync(join(logDirectory, '0.log'), 'utf8')
  const hasSaid = (): boolean => says === undefined || says.test(log())
  for (let tries = 300; tries > 0 && !hasSaid(); tries--) await sleep(realClock, 100)
  assert.ok(hasSaid(), log())
  if (beside !== undefined) {
    const [script, answer] = beside
    const cmd = ['sh', '-c', `for i in 1 2 3 4 5 6 7 8 9; do ${script} && break; sleep 1; done`]
    const { stdout, stderr } = await runtime.execSync({ containerId, cmd, timeout: 60 })
    assert.match(stdout.toString(), answer, stderr.toString() + log())
  }
  const { status } = await runtime.containerStatus({ containerId })
  assert.ok(status?.state === CONTAINER_STATE.running || status?.exitCode === 0, log())
  await runtime.stopPodSandbox({ podSandboxId })
  await runtime.removePodSandbox({ podSandboxId })
}
