/** A control plane without controllers and nodes, and kubectl in the same process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'

import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

export interface KubectlResult {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface KubectlBed extends AsyncDisposable {
  readonly plane: ControlPlane
  /** The working directory and home of kubectl. */
  readonly folder: string
  kubectl(line: string, env?: Readonly<Record<string, string>>): Promise<KubectlResult>
}

export async function startKubectlBed(): Promise<KubectlBed> {
  const plane = await startControlPlane()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-bed-'))
  await writeFile(join(folder, 'kubeconfig'), plane.kubeconfig)
  return {
    plane,
    folder,
    kubectl: (line, env = {}) => runLine(folder, line, env),
    async [Symbol.asyncDispose]() {
      await plane.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function runLine(folder: string, line: string, env: Readonly<Record<string, string>>): Promise<KubectlResult> {
  const texts = { out: '', err: '' }
  const sink = (name: 'out' | 'err'): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        texts[name] += chunk.toString()
        done()
      },
    })
  const context = {
    path: ['kubectl'],
    args: line.split(' '),
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), TMPDIR: folder, ...env },
    cwd: folder,
    stdin: () => Readable.from([]),
    stdout: sink('out'),
    stderr: sink('err'),
    clock: realClock,
    random: secureRandom,
  } as unknown as Parameters<typeof runKubectl>[0]
  const code = await runKubectl(context, new AbortController().signal)
  return { code, ...texts }
}
