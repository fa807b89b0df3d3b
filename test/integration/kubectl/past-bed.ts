/** The bed of tests that run kubectl at moments of a cluster. Time is virtual: kubectl has the clock of the cluster. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { after, before } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import type { ProgramContext } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

/** A folder for the tests of a file. */
export let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-past-'))
})

after(() => rm(folder, { recursive: true, force: true }))

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

export class Text extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    this.emit('text')
    done()
  }

  /** Resolves when the text has a match. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) await new Promise((resolve) => this.once('text', resolve))
  }
}

export type Run = (line: string, stdin?: Readable) => Promise<Outcome>

export async function contextOf(
  cluster: TestCluster,
): Promise<Omit<ProgramContext, 'path' | 'args' | 'stdout' | 'stderr'>> {
  const kubeconfig = join(folder, `${new URL(cluster.url).port}.kubeconfig`)
  await writeFile(kubeconfig, cluster.kubeconfig)
  return {
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kubeconfig, TMPDIR: folder },
    cwd: folder,
    stdin: () => Readable.from([]),
    clock: { ...realClock, now: () => cluster.clock.now().getTime() },
    random: secureRandom,
    readFile: () => Promise.reject(new Error('no file')),
  }
}

export async function kubectlFor(cluster: TestCluster): Promise<Run> {
  const context = await contextOf(cluster)
  return async (line, stdin = Readable.from([])) => {
    const [stdout, stderr] = [new Text(), new Text()]
    const whole = { ...context, path: ['kubectl'], args: line.split(' '), stdout, stderr, stdin: () => stdin }
    const code = await runKubectl(whole, new AbortController().signal)
    return { code, out: stdout.text, err: stderr.text }
  }
}

export const namespace = 'default'

/** A cluster at 0:02: ConfigMap `early` changed at 0:01, when `late` was created and `gone` was deleted. */
export async function twoMinutes(): Promise<TestCluster> {
  const cluster = await startCluster({ clock: 'virtual', nodes: 0 })
  const { client, clock } = cluster
  const early = { namespace, name: 'early' }
  await client.create(ConfigMaps, { metadata: early, data: { value: 'old' } }, { fieldManager: 'ann' })
  await client.create(ConfigMaps, { metadata: { namespace, name: 'gone' }, data: { value: 'lost' } })
  await clock.advance('1m')
  const { metadata } = await client.get(ConfigMaps, early)
  await client.update(ConfigMaps, { metadata, data: { value: 'new' } }, { fieldManager: 'bob' })
  await client.create(ConfigMaps, { metadata: { namespace, name: 'late' } })
  await client.delete(ConfigMaps, { namespace, name: 'gone' })
  await clock.advance('1m')
  return cluster
}
